// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "net/worker.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "base/silence.h"
#include "device/registry.h"
#include "net/address_table.h"
#include "net/paced_worker.h"
#include "net/seal.h"
#include "net/ucx.h"
#include "net/ucx_memory.h"

namespace accord::net {

class Peer {
 public:
  ucp_ep_h end = nullptr;  // null: given up,
  Silence::Clock::time_point given_up_at{};
  ucs_status_t status = UCS_OK;
  std::uint64_t id = 0;      // as seals call it
  std::uint64_t posted = 0;  // messages
  std::size_t moving_bytes = 0;
  Silence silence;
};

namespace {

// How long the end of a connection may take whose peer does nothing any more.
constexpr std::chrono::seconds kFarewell{1};
// Slower than this no network is taken to be.
constexpr std::size_t kMovedBytesPerSecond = std::size_t{1} << 20;

// The kind of message beyond those of others: questions for a sign of life, and the answers.
constexpr unsigned kLife = Worker::kKinds;
constexpr std::byte kQuestion{0};
constexpr std::byte kAnswer{1};

// A message, until UCX has sent it.
struct Posted {
  const Ucx& ucx;
  Seal seal;
  std::vector<std::byte> bytes;
};

class UcxWorker final : public Worker {
 public:
  UcxWorker(const Ucx& ucx, const Options& options)
      : ucx_(ucx), sealer_(options.key), patience_(options.patience) {}
  ~UcxWorker() override { close(); }

  Status start(const Options& options);

  Bytes address() const noexcept override { return address_; }
  Status connect(Bytes address, Peer*& peer) override;
  Status check(const Peer& peer) override;
  Status await(Peer& peer) override;
  void note_coming(Peer& peer, std::ptrdiff_t change_bytes) noexcept override {
    const std::lock_guard locked(mutex_);
    peer.moving_bytes += static_cast<std::size_t>(change_bytes);
  }
  Status post(Peer& peer, unsigned kind, Bytes message) override;
  void listen(unsigned kind, Handler handler) override;
  std::uint64_t strange_messages() const noexcept override { return strange_messages_.load(); }
  bool reaches(const device::PointerInfo& where) const noexcept override;
  Ticket send(Peer& peer, std::uint64_t tag, const void* memory, std::size_t size_bytes,
              const Where& where) override;
  Ticket receive(Peer& peer, std::uint64_t tag, void* memory, std::size_t size_bytes,
                 const Where& where) override;
  Status share(void* memory, std::size_t size_bytes, std::unique_ptr<Region>& made,
               const Where& where) override;
  Status reach(Peer& peer, Bytes key, std::unique_ptr<RemoteRegion>& made) override;
  Ticket put(Peer& peer, const void* from, std::size_t size_bytes, std::uint64_t to,
             RemoteRegion& region, const Where& where) override;
  Ticket get(Peer& peer, void* to, std::size_t size_bytes, std::uint64_t from, RemoteRegion& region,
             const Where& where) override;
  Status poll(Ticket& ticket, bool& done) override;
  void cancel(Ticket& ticket) noexcept override;
  bool progress() override;
  int descriptor() const noexcept override { return descriptor_; }
  bool arm() override;
  void wake() noexcept override { (void)ucx_.worker_signal(worker_); }
  void close() noexcept override;

 private:
  struct Arrived {
    unsigned kind;
    std::vector<std::byte> bytes;
  };
  // Where the messages of one kind come to; UCX keeps its address.
  struct Ear {
    UcxWorker* worker = nullptr;
    unsigned kind = 0;
    Handler handler;
  };

  Status make_context(const Options& options);
  Status make_worker();
  Ticket ticket(Peer& peer, std::size_t size_bytes, ucs_status_ptr_t request, const char* call);
  static ucs_status_t arrive(void* ear, const void* header, std::size_t header_bytes, void* data,
                             std::size_t size_bytes, const ucp_am_recv_param_t* param);

  bool is_of_job(Bytes header, unsigned kind, Bytes message);
  void ask_for_life(Peer& peer);
  void answer(Bytes message);
  void give_up(Peer& peer);

  const Ucx& ucx_;
  Sealer sealer_;
  const std::chrono::milliseconds patience_;
  std::atomic<std::uint64_t> strange_messages_{0};
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  std::uint64_t memory_types_ = 0;
  int descriptor_ = -1;
  std::vector<std::byte> address_;
  AddressTable<std::unique_ptr<Peer>> peers_;
  std::unordered_map<std::uint64_t, Peer*> peers_by_id_;
  std::array<Ear, kKinds + 1> ears_;
  std::deque<Arrived> arrived_;
  bool is_calling_ = false;  // a handler
};

Status UcxWorker::make_context(const Options& options) {
  ucp_config_t* settings = nullptr;
  ACCORD_TRY(status_of(ucx_, ucx_.config_read(nullptr, nullptr, &settings), "ucp_config_read"));
  ucs_status_t status = UCS_OK;
  const auto set = [&](const char* name, const std::string& value) {
    if (status == UCS_OK && !value.empty())
      status = ucx_.config_modify(settings, name, value.c_str());
  };
  set("NET_DEVICES", options.net_devices);
  set("TLS", options.transports);
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.name = "accord";
  if (status == UCS_OK)
    status = ucx_.init(UCP_API_MAJOR, UCP_API_MINOR, &params, settings, &context_);
  ucx_.config_release(settings);
  ACCORD_TRY(status_of(ucx_, status, "ucp_init"));
  ucp_context_attr_t attributes{};
  attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  if (ucx_.context_query(context_, &attributes) == UCS_OK) memory_types_ = attributes.memory_types;
  return {};
}

Status UcxWorker::make_worker() {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ACCORD_TRY(status_of(ucx_, ucx_.worker_create(context_, &params, &worker_), "ucp_worker_create"));
  ACCORD_TRY(status_of(ucx_, ucx_.worker_get_efd(worker_, &descriptor_), "ucp_worker_get_efd"));
  ucp_address_t* address = nullptr;
  std::size_t size_bytes = 0;
  ACCORD_TRY(status_of(ucx_, ucx_.worker_get_address(worker_, &address, &size_bytes),
                       "ucp_worker_get_address"));
  const auto* const first = reinterpret_cast<const std::byte*>(address);
  address_.assign(first, first + size_bytes);
  ucx_.worker_release_address(worker_, address);
  return {};
}

Status UcxWorker::start(const Options& options) {
  const std::lock_guard locked(mutex_);
  ACCORD_TRY(make_context(options));
  ACCORD_TRY(make_worker());
  sealer_.set_own(address_);
  listen(kLife, [this](Bytes message) { answer(message); });
  return {};
}

Status UcxWorker::connect(Bytes address, Peer*& peer) {
  const std::lock_guard locked(mutex_);
  if (const auto* const known = peers_.find(address)) {
    peer = known->get();
    return {};
  }
  if (address.empty()) return {StatusCode::network, "net: a worker without an address"};
  auto made = std::make_unique<Peer>();
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = [](void* gone, ucp_ep_h, ucs_status_t status) {
    static_cast<Peer*>(gone)->status = status;
  };
  params.err_handler.arg = made.get();
  ACCORD_TRY(status_of(ucx_, ucx_.ep_create(worker_, &params, &made->end), "ucp_ep_create"));
  peer = made.get();
  peer->id = sealer_.id_of(address);
  peers_by_id_[peer->id] = peer;
  peers_.add(address, std::move(made));
  return {};
}

Status UcxWorker::check(const Peer& peer) {
  const std::lock_guard locked(mutex_);
  if (peer.end == nullptr)
    return {StatusCode::network,
            fmt::format("net: it has given no sign of life for {} s", patience_.count() / 1000)};
  return status_of(ucx_, peer.status, "the connection has ended");
}

// Its answers queue behind what is being sent.
Status UcxWorker::await(Peer& peer) {
  const std::lock_guard locked(mutex_);
  ACCORD_TRY(check(peer));
  const std::chrono::seconds for_moving(peer.moving_bytes / kMovedBytesPerSecond);
  const auto next = peer.silence.look(Silence::Clock::now(), patience_ + for_moving);
  if (next == Silence::Next::ask) ask_for_life(peer);
  if (next == Silence::Next::give_up) give_up(peer);
  return check(peer);
}

// With how to answer.
void UcxWorker::ask_for_life(Peer& peer) {
  std::vector<std::byte> question{kQuestion};
  question.insert(question.end(), address_.begin(), address_.end());
  (void)post(peer, kLife, question);
}

void UcxWorker::answer(Bytes message) {
  if (message.size() < 2 || message.front() != kQuestion) return;
  Peer* peer = nullptr;
  if (connect(message.subspan(1), peer).ok()) (void)post(*peer, kLife, {&kAnswer, 1});
}

// What waits for it ends, and all that comes later is told so at once.
void UcxWorker::give_up(Peer& peer) {
  peer.status = UCS_ERR_ENDPOINT_TIMEOUT;
  peer.given_up_at = Silence::Clock::now();
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const ucs_status_ptr_t closing = ucx_.ep_close(std::exchange(peer.end, nullptr), &param);
  if (closing != nullptr && !UCS_PTR_IS_ERR(closing)) ucx_.request_free(closing);
}

ucs_status_t UcxWorker::arrive(void* ear, const void* header, std::size_t header_bytes, void* data,
                               std::size_t size_bytes, const ucp_am_recv_param_t* param) {
  const Ear& here = *static_cast<const Ear*>(ear);
  UcxWorker& worker = *here.worker;
  const bool is_whole = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0;
  const Bytes seal(static_cast<const std::byte*>(header), header_bytes);
  const Bytes message(static_cast<const std::byte*>(data), size_bytes);
  if (is_whole && size_bytes <= kMessageBytesMax && worker.is_of_job(seal, here.kind, message))
    worker.arrived_.push_back({here.kind, {message.begin(), message.end()}});
  else if (worker.strange_messages_.fetch_add(1) == 0)
    log::warn("net: a message that is not of this job has come, and is dropped");
  return UCS_OK;
}

bool UcxWorker::is_of_job(Bytes header, unsigned kind, Bytes message) {
  std::uint64_t from = 0;
  if (!sealer_.open(header, kind, message, from)) return false;
  const auto known = peers_by_id_.find(from);
  if (known != peers_by_id_.end()) known->second->silence.hear(Silence::Clock::now());
  return true;
}

void UcxWorker::listen(unsigned kind, Handler handler) {
  const std::lock_guard locked(mutex_);
  Ear& ear = ears_[kind];
  ear = {this, kind, std::move(handler)};
  ucp_am_handler_param_t params{};
  params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                      UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  params.id = kind;
  params.flags = UCP_AM_FLAG_WHOLE_MSG;
  params.cb = arrive;
  params.arg = &ear;
  (void)ucx_.worker_set_am_handler(worker_, &params);
}

Status UcxWorker::post(Peer& peer, unsigned kind, Bytes message) {
  const std::lock_guard locked(mutex_);
  ACCORD_TRY(check(peer));
  const Seal seal = sealer_.seal(peer.id, ++peer.posted, kind, message);
  auto posted = std::make_unique<Posted>(Posted{ucx_, seal, {message.begin(), message.end()}});
  ucp_request_param_t param{};
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.flags = UCP_AM_SEND_FLAG_EAGER;
  param.user_data = posted.get();
  param.cb.send = [](void* request, ucs_status_t, void* sent) {
    const std::unique_ptr<Posted> ended(static_cast<Posted*>(sent));
    ended->ucx.request_free(request);
  };
  const ucs_status_ptr_t request = ucx_.am_send(peer.end, kind, &posted->seal, sizeof posted->seal,
                                                posted->bytes.data(), posted->bytes.size(), &param);
  if (UCS_PTR_IS_ERR(request)) return status_of(ucx_, UCS_PTR_STATUS(request), "ucp_am_send_nbx");
  if (request != nullptr) (void)posted.release();  // the callback has it
  return {};
}

bool UcxWorker::reaches(const device::PointerInfo& where) const noexcept {
  if (!device::needs_staging(where) || where.runtime == nullptr) return true;
  const ucs_memory_type_t type = type_of(where);
  if (type == UCS_MEMORY_TYPE_UNKNOWN) return false;
  return type == UCS_MEMORY_TYPE_HOST || (memory_types_ >> static_cast<unsigned>(type) & 1) != 0;
}

Ticket UcxWorker::ticket(Peer& peer, std::size_t size_bytes, ucs_status_ptr_t request,
                         const char* call) {
  if (UCS_PTR_IS_ERR(request))
    return {nullptr, status_of(ucx_, UCS_PTR_STATUS(request), call), &peer};
  if (request == nullptr) return {nullptr, {}, &peer};
  peer.moving_bytes += size_bytes;
  return {request, {}, &peer, size_bytes};
}

Ticket UcxWorker::send(Peer& peer, std::uint64_t tag, const void* memory, std::size_t size_bytes,
                       const Where& where) {
  const std::lock_guard locked(mutex_);
  if (Status gone = check(peer); !gone.ok()) return {nullptr, std::move(gone), &peer};
  const ucp_request_param_t param = param_of(where);
  return ticket(peer, size_bytes,
                ucx_.tag_send(peer.end, memory, size_bytes, sealer_.tag_of(tag), &param),
                "ucp_tag_send_nbx");
}

Ticket UcxWorker::receive(Peer& peer, std::uint64_t tag, void* memory, std::size_t size_bytes,
                          const Where& where) {
  const std::lock_guard locked(mutex_);
  if (Status gone = check(peer); !gone.ok()) return {nullptr, std::move(gone), &peer};
  ucp_request_param_t param = param_of(where);
  param.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  return ticket(
      peer, size_bytes,
      ucx_.tag_receive(worker_, memory, size_bytes, sealer_.tag_of(tag), ~std::uint64_t{0}, &param),
      "ucp_tag_recv_nbx");
}

Status UcxWorker::share(void* memory, std::size_t size_bytes, std::unique_ptr<Region>& made,
                        const Where& where) {
  const std::lock_guard locked(mutex_);
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  params.address = memory;
  params.length = size_bytes;
  params.memory_type = type_of(where);
  if (params.memory_type != UCS_MEMORY_TYPE_UNKNOWN)
    params.field_mask |= UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
  ucp_mem_h mapped = nullptr;
  ACCORD_TRY(status_of(ucx_, ucx_.mem_map(context_, &params, &mapped), "ucp_mem_map"));
  auto region = std::make_unique<MappedRegion>(ucx_, context_, mapped, mutex_);
  ACCORD_TRY(region->pack());
  made = std::move(region);
  return {};
}

Status UcxWorker::reach(Peer& peer, Bytes key, std::unique_ptr<RemoteRegion>& made) {
  const std::lock_guard locked(mutex_);
  ACCORD_TRY(check(peer));
  // UCX is not told how long it is: which memory domains, and of which kind.
  constexpr std::size_t kKeyBytesMin = sizeof(std::uint64_t) + 1;
  if (key.size() < kKeyBytesMin) return {StatusCode::network, "net: a remote key that is cut off"};
  ucp_rkey_h unpacked = nullptr;
  ACCORD_TRY(
      status_of(ucx_, ucx_.rkey_unpack(peer.end, key.data(), &unpacked), "ucp_ep_rkey_unpack"));
  made = std::make_unique<UnpackedRegion>(ucx_, unpacked, mutex_);
  return {};
}

// What UCX calls a put that is done has only left this process: a flush behind it tells more.
Ticket UcxWorker::put(Peer& peer, const void* from, std::size_t size_bytes, std::uint64_t to,
                      RemoteRegion& region, const Where& where) {
  const std::lock_guard locked(mutex_);
  if (Status gone = check(peer); !gone.ok()) return {nullptr, std::move(gone), &peer};
  const ucp_request_param_t param = param_of(where);
  const ucs_status_ptr_t begun =
      ucx_.put(peer.end, from, size_bytes, to, static_cast<UnpackedRegion&>(region).key, &param);
  if (UCS_PTR_IS_ERR(begun)) return ticket(peer, 0, begun, "ucp_put_nbx");
  if (begun != nullptr) ucx_.request_free(begun);  // the flush ends behind it
  const ucp_request_param_t nothing{};
  return ticket(peer, size_bytes, ucx_.ep_flush(peer.end, &nothing), "ucp_ep_flush_nbx");
}

Ticket UcxWorker::get(Peer& peer, void* to, std::size_t size_bytes, std::uint64_t from,
                      RemoteRegion& region, const Where& where) {
  const std::lock_guard locked(mutex_);
  if (Status gone = check(peer); !gone.ok()) return {nullptr, std::move(gone), &peer};
  const ucp_request_param_t param = param_of(where);
  return ticket(
      peer, size_bytes,
      ucx_.get(peer.end, to, size_bytes, from, static_cast<UnpackedRegion&>(region).key, &param),
      "ucp_get_nbx");
}

Status UcxWorker::poll(Ticket& ticket, bool& done) {
  const std::lock_guard locked(mutex_);
  done = true;
  if (ticket.request == nullptr) return std::exchange(ticket.status, {});
  ucs_status_t status = ucx_.request_status(ticket.request);
  if (status == UCS_INPROGRESS) {
    done = false;
    // A receive ends with nobody's connection.
    if (ticket.peer == nullptr || ticket.peer->status == UCS_OK) return {};
    cancel(ticket);
    // Some versions of UCX do not end a receive that has begun when its connection is closed. But
    // nothing comes by that any more.
    const bool is_given_up = ticket.peer->end == nullptr;
    done = is_given_up && Silence::Clock::now() - ticket.peer->given_up_at > kFarewell;
    if (!done) return {};
    ucx_.request_free(std::exchange(ticket.request, nullptr));
    return check(*ticket.peer);
  }
  ucx_.request_free(std::exchange(ticket.request, nullptr));
  if (ticket.peer != nullptr) ticket.peer->moving_bytes -= std::exchange(ticket.moving_bytes, 0);
  if (status == UCS_ERR_CANCELED && ticket.peer != nullptr && ticket.peer->status != UCS_OK)
    status = ticket.peer->status;
  return status_of(ucx_, status, "a transfer has failed");
}

void UcxWorker::cancel(Ticket& ticket) noexcept {
  const std::lock_guard locked(mutex_);
  if (ticket.peer != nullptr) ticket.peer->moving_bytes -= std::exchange(ticket.moving_bytes, 0);
  if (ticket.request != nullptr) ucx_.request_cancel(worker_, ticket.request);
}

bool UcxWorker::progress() {
  const std::unique_lock locked(mutex_, std::try_to_lock);
  if (!locked.owns_lock() || worker_ == nullptr) return false;  // another thread does it
  const bool moved = ucx_.worker_progress(worker_) != 0;
  if (is_calling_) return moved;
  is_calling_ = true;
  while (!arrived_.empty()) {
    const Arrived next = std::move(arrived_.front());
    arrived_.pop_front();
    if (const Handler& handler = ears_[next.kind].handler) handler(next.bytes);
  }
  is_calling_ = false;
  return moved;
}

bool UcxWorker::arm() {
  const std::lock_guard locked(mutex_);
  return arrived_.empty() && ucx_.worker_arm(worker_) == UCS_OK;
}

void UcxWorker::close() noexcept {
  const std::lock_guard locked(mutex_);
  const auto end = std::chrono::steady_clock::now() + kFarewell;
  peers_.for_each([&](const std::unique_ptr<Peer>& peer) {
    if (peer->end == nullptr) return;
    ucp_request_param_t param{};
    if (peer->status != UCS_OK) {
      param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
      param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    }
    const ucs_status_ptr_t closing = ucx_.ep_close(peer->end, &param);
    if (closing == nullptr || UCS_PTR_IS_ERR(closing)) return;
    while (ucx_.request_status(closing) == UCS_INPROGRESS &&
           std::chrono::steady_clock::now() < end) {
      if (ucx_.worker_progress(worker_) == 0) ::sched_yield();
    }
    ucx_.request_free(closing);
  });
  if (worker_ != nullptr) ucx_.worker_destroy(std::exchange(worker_, nullptr));
  if (context_ != nullptr) ucx_.cleanup(std::exchange(context_, nullptr));
  peers_by_id_.clear();
  peers_.clear();
  descriptor_ = -1;
}

}  // namespace

void* Worker::address_of(void* memory, const device::PointerInfo& where) noexcept {
  return where.runtime != nullptr ? where.runtime->address_for_library(memory) : memory;
}

std::string Worker::library() {
  const Ucx* ucx = nullptr;
  Dl_info found{};
  const bool is_known = load_ucx(ucx).ok() &&
                        ::dladdr(reinterpret_cast<void*>(ucx->init), &found) != 0 &&
                        found.dli_fname != nullptr;
  return is_known ? found.dli_fname : "";
}

Status Worker::open(const Options& options, std::unique_ptr<Worker>& made) {
  const Ucx* ucx = nullptr;
  ACCORD_TRY(load_ucx(ucx));
  auto worker = std::make_unique<UcxWorker>(*ucx, options);
  ACCORD_TRY(worker->start(options));
  made = std::move(worker);
  if (device::AdapterModel* const model = device::default_runtime().adapter_model())
    made = make_paced(std::move(made), *model);
  return {};
}

}  // namespace accord::net

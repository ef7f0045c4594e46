// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The embedded host runtime: "device" memory for machines without accelerators, so that everything
// above it runs, and is tested, anywhere. Its device pointers cannot be touched by the CPU (see
// host/arena.h): one that slips through to the host MPI faults as it would on a GPU.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/config.h"
#include "device/device_runtime.h"
#include "device/host/arena.h"
#include "device/host/cost_model.h"
#include "device/host/direct.h"
#include "device/host/inbox.h"
#include "device/host/partitions.h"
#include "device/host/reach.h"
#include "device/host/test_settings.h"
#include "device/inbox_server.h"
#include "device/registry.h"

namespace accord::device {

DeviceRuntime& host_runtime();

namespace {

// What ExportedMemory::bytes holds; the memfd travels beside it.
struct HostHandle {
  static constexpr std::uint64_t kMagic = 0x31747368'64726361ULL;
  std::uint64_t magic = kMagic;
  std::uint64_t size_bytes = 0;
  std::int64_t home = 0;
};

// What copy_begin or reduce_begin left for later: the work (see copy_polls), or that it is over.
struct PendingWork : HostWork {
  long polls_left = 0;
  bool has_run = false;
  CostModel::Moment end{};
};

// Equal in all processes of this machine and nowhere else, as the UUID of a real device is.
std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

// Inbox exchanges by the calling thread: what it sends it sends at once (or after some polls, see
// copy_polls), what it receives it takes if all of it is there.
class HostInboxServer final : public InboxServer {
 public:
  explicit HostInboxServer(const HostArena& arena) : arena_(arena) {}
  KernelPlace kernel_place() const override { return host_place(); }
  PacketReach packet_reach() const override { return {.own = cpu_keeps_packets_whole() ? 1U : 0U}; }
  bool does_direct_work() const override { return true; }
  bool reaches(const PointerInfo&) const override { return true; }
  Status begin(InboxTicket& ticket) override;
  Status poll(InboxTicket& ticket, bool& done) override;
  void stop(InboxTicket& ticket, bool& done) override {
    ticket.state = InboxTicket::State::idle;
    done = true;
  }

 private:
  const HostArena& arena_;
};

// There is nothing to save here: the work is simply done again.
class HostRecording final : public Recording {
 public:
  explicit HostRecording(std::function<Status(void*)> work) : work_(std::move(work)) {}
  Status put(void* stream) override { return work_(stream); }

 private:
  std::function<Status(void*)> work_;
};

// The work is done at once; only that it is may be told late.
class HostStream final : public LibraryStream {
 public:
  Status enqueue(const std::function<Status(void*)>& work) override {
    ACCORD_TRY(work(nullptr));
    polls_left_ = copy_polls();
    return Status();
  }
  Status poll(bool& done) override {
    done = polls_left_ <= 0 || --polls_left_ <= 0;
    return Status();
  }
  Status record(const std::function<Status(void*)>& work,
                std::unique_ptr<Recording>& made) override {
    made = std::make_unique<HostRecording>(work);
    return Status();
  }

 private:
  long polls_left_ = 0;
};

class HostRuntime final : public DeviceRuntime {
 public:
  const char* name() const noexcept override { return "host"; }
  bool active() noexcept override { return arena_.in_use(); }
  bool present() noexcept override {
    return active() || config().runtime == name() ||
           (memory_is_wanted() && &default_runtime() == this);
  }

  bool classify(const void* pointer, PointerInfo& info) noexcept override;

  Status copy(int device, std::span<const Copy> copies) override;
  Status copy_begin(int device, std::span<const Copy> copies, CopyTicket& ticket) override;
  Status copy_batch(int device, const CopyBatch& batch) override;
  Status batch_begin(int device, const CopyBatch& batch, CopyTicket& ticket) override;
  Status copy_done(CopyTicket& ticket, bool& done) override;

  bool can_reduce(ReduceOp op, Element element) override { return is_defined(op, element); }
  Status reduce_begin(int device, const Reduction& reduction, CopyTicket& ticket) override;

  Status run_on(int device, const std::function<Status()>& work) override;
  Status make_stream(int device, std::unique_ptr<LibraryStream>& stream) override;
  void* address_for_library(void* pointer) noexcept override;
  KernelPlace kernel_place(int /*device*/) override { return host_place(); }

  PacketReach packet_reach(int) override { return inbox_server_.packet_reach(); }
  Status inbox_server(int device, InboxServer*& server) override {
    server = &inbox_server_;
    return check_device(device);
  }

  Status make_partition_reducer(int device, const PartitionReduction& reduction,
                                std::uint32_t* arrived,
                                std::unique_ptr<PartitionReducer>& reducer) override;

  Status host_allocate(std::size_t size_bytes, void*& pointer) override;
  void host_free(void* pointer, std::size_t size_bytes) noexcept override;
  Status host_pin(void*, std::size_t) override { return pin_pages(); }
  void host_unpin(void*) noexcept override {}

  Status allocate(int device, MemoryKind kind, std::size_t size_bytes, void*& pointer) override;
  Status free(void* pointer) override;

  Status export_memory(const void* pointer, ExportedMemory& exported) override;
  Status open_memory(int device, const ExportedMemory& exported, void*& pointer) override;
  Status close_memory(void* pointer) override;

  Status default_stream_busy(const PointerInfo&, bool& busy) override {
    busy = default_stream_is_busy();
    return Status();
  }
  int device_count() override { return static_cast<int>(config().host_devices); }
  int device_in_use() noexcept override { return arena_.in_use() ? 0 : -1; }
  AdapterModel* adapter_model() noexcept override { return costs_.get(); }
  Status describe(int device, DeviceDescription& description) override;

 private:
  Status check_device(int device);
  Status begin(std::unique_ptr<PendingWork> work, CopyTicket& ticket);
  void run(HostWork& work) const;

  const std::unique_ptr<CostModel> costs_ = CostModel::of_settings();  // null: all costs nothing
  HostArena arena_;
  HostInboxServer inbox_server_{arena_};
};

Status HostRuntime::check_device(int device) {
  if (device >= 0 && device < device_count()) return Status();
  return Status(StatusCode::invalid_argument,
                fmt::format("host runtime has no device {} ({} devices)", device, device_count()));
}

bool HostRuntime::classify(const void* pointer, PointerInfo& info) noexcept {
  const HostAllocationRef owner = arena_.find(pointer);
  if (owner == nullptr || owner->kind == MemoryKind::host) return false;
  info.kind = owner->kind;
  info.runtime = this;
  info.device = owner->device;
  info.base = owner->user;
  info.size_bytes = owner->size_bytes;
  info.buffer_id = owner->buffer_id;
  return true;
}

Status HostRuntime::copy(int device, std::span<const Copy> copies) {
  ACCORD_TRY(check_device(device));
  if (copies.size() == 1 && copies[0].row_bytes > 0 && copies[0].rows > 0) {  // no list needed
    ReachableCopy reachable;
    ACCORD_TRY(reach(arena_, copies[0], reachable));
    if (costs_ == nullptr) {
      reachable.run();
      return Status();
    }
  }
  HostWork work;
  ACCORD_TRY(work.add(arena_, copies));
  run(work);
  return Status();
}

// The CPU's own copying is part of the time that it is to take.
void HostRuntime::run(HostWork& work) const {
  if (costs_ == nullptr) return work.run();
  const CostModel::Moment end = costs_->begin(work.traffic());
  work.run();
  CostModel::wait_until(end);
}

Status HostRuntime::copy_batch(int device, const CopyBatch& batch) {
  if (batch.laid_out.empty()) return copy(device, batch.plain.copies());
  ACCORD_TRY(check_device(device));
  HostWork work;
  ACCORD_TRY(work.add(arena_, batch));
  run(work);
  return Status();
}

Status HostRuntime::copy_begin(int device, std::span<const Copy> copies, CopyTicket& ticket) {
  ticket.handle = nullptr;
  if (copy_polls() <= 0 && costs_ == nullptr) return copy(device, copies);
  ACCORD_TRY(check_device(device));
  auto work = std::make_unique<PendingWork>();
  ACCORD_TRY(work->add(arena_, copies));
  return begin(std::move(work), ticket);
}

Status HostRuntime::batch_begin(int device, const CopyBatch& batch, CopyTicket& ticket) {
  ticket.handle = nullptr;
  ACCORD_TRY(check_device(device));
  auto work = std::make_unique<PendingWork>();
  ACCORD_TRY(work->add(arena_, batch));
  return begin(std::move(work), ticket);
}

Status HostRuntime::copy_done(CopyTicket& ticket, bool& done) {
  auto* work = static_cast<PendingWork*>(ticket.handle);
  done = work == nullptr ||
         (--work->polls_left <= 0 && (costs_ == nullptr || CostModel::has_come(work->end)));
  if (work == nullptr || !done) return Status();
  if (!work->has_run) work->run();
  delete work;
  ticket.handle = nullptr;
  return Status();
}

Status HostRuntime::begin(std::unique_ptr<PendingWork> work, CopyTicket& ticket) {
  work->polls_left = copy_polls();
  if (costs_ != nullptr) work->end = costs_->begin(work->traffic());
  if (work->polls_left <= 0) {
    work->run();
    work->has_run = true;
    if (costs_ == nullptr || CostModel::has_come(work->end)) return Status();
  }
  ticket.handle = work.release();
  return Status();
}

Status HostRuntime::reduce_begin(int device, const Reduction& reduction, CopyTicket& ticket) {
  ticket.handle = nullptr;
  ACCORD_TRY(check_device(device));
  ACCORD_TRY(check_reduction(reduction));
  if (reduction.count == 0) return Status();
  auto work = std::make_unique<PendingWork>();
  ACCORD_TRY(work->add(arena_, reduction));
  return begin(std::move(work), ticket);
}

Status HostRuntime::make_partition_reducer(int device, const PartitionReduction& reduction,
                                           std::uint32_t* arrived,
                                           std::unique_ptr<PartitionReducer>& reducer) {
  ACCORD_TRY(check_device(device));
  if (!is_defined(reduction.op, reduction.element))
    return Status(StatusCode::unsupported, "reductions of partitions: not defined");
  PartitionReduction reachable = reduction;
  std::vector<HostAllocationRef> owners;
  Status status;
  const auto reachable_at = [&](const void* pointer, std::size_t bytes) {
    auto* const user = static_cast<std::byte*>(const_cast<void*>(pointer));
    std::byte* at = nullptr;
    keep_first(status, reach(arena_, {user, bytes, 1, 0}, at, owners.emplace_back()));
    return at;
  };
  for (int i = 0; i < reduction.source_count; ++i)
    reachable.sources[i] = reachable_at(reduction.sources[i], place_bytes(reduction, i));
  for (int i = 0; i < reduction.target_count; ++i)
    reachable.targets[i] =
        static_cast<void*>(reachable_at(reduction.targets[i], place_bytes(reduction, i)));
  for (int rank = 0; rank < reduction.ranks; ++rank) {
    reachable.words[rank] = reinterpret_cast<std::uint32_t*>(reachable_at(
        reduction.words[rank], rank == reduction.rank ? partition_memory_bytes(reduction)
                                                      : shared_memory_bytes(reduction)));
  }
  ACCORD_TRY(status);
  reducer = make_host_partition_reducer(reachable, arrived, std::move(owners));
  return Status();
}

Status HostRuntime::run_on(int device, const std::function<Status()>& work) {
  ACCORD_TRY(check_device(device));
  return work();
}

Status HostRuntime::make_stream(int device, std::unique_ptr<LibraryStream>& stream) {
  ACCORD_TRY(check_device(device));
  stream = std::make_unique<HostStream>();
  return Status();
}

void* HostRuntime::address_for_library(void* pointer) noexcept {
  const HostAllocationRef owner = arena_.find(pointer);
  if (owner == nullptr) return pointer;
  return owner->alias + (static_cast<std::byte*>(pointer) - owner->user);
}

// Plain host memory is allowed: a device reaches page-locked memory, which here is no other.
Status HostInboxServer::begin(InboxTicket& ticket) {
  ticket.state = InboxTicket::State::running;
  ticket.number = static_cast<std::uint64_t>(std::max(copy_polls(), 0L));
  bool done = false;
  return poll(ticket, done);
}

Status HostInboxServer::poll(InboxTicket& ticket, bool& done) {
  done = ticket.state == InboxTicket::State::idle;
  if (done) return Status();
  if (ticket.number > 0) {  // polls left
    --ticket.number;
    return Status();
  }
  if (ticket.direct != nullptr) {
    ticket.state = InboxTicket::State::idle;
    done = true;
    return do_direct_work(arena_, *ticket.direct);
  }
  std::vector<HostAllocationRef> owners;
  Status status;
  const auto reachable_at = [&](const void* pointer) {
    auto* const user = static_cast<std::byte*>(const_cast<void*>(pointer));
    std::byte* reachable = nullptr;
    keep_first(status, reach(arena_, {user, 1, 1, 0}, reachable, owners.emplace_back()));
    return reachable;
  };
  InboxExchange exchange = ticket.exchange;
  exchange.inbox = reachable_at(exchange.inbox);
  std::vector<InboxPart> parts(exchange.parts.begin(), exchange.parts.end());
  for (InboxPart& part : parts) {
    part.src = part.send_bytes != 0 ? reachable_at(part.src) : nullptr;
    part.dst = part.receive_bytes != 0 ? reachable_at(part.dst) : nullptr;
  }
  exchange.parts = parts;
  const bool in_parts = !parts.empty();
  exchange.src = exchange.send_to != 0 && !in_parts ? reachable_at(exchange.src) : nullptr;
  exchange.dst = exchange.receive_from != 0 && !in_parts ? reachable_at(exchange.dst) : nullptr;
  ACCORD_TRY(status);
  if (!ticket.sent) {
    std::array<std::byte*, kInboxRanksMax> inboxes{};
    for (int peer = 0; peer < kInboxRanksMax; ++peer) {
      void* inbox = nullptr;
      std::memcpy(&inbox, exchange.inbox + static_cast<std::size_t>(peer) * sizeof inbox,
                  sizeof inbox);
      if ((exchange.send_to & inbox_bit(peer)) != 0)
        inboxes[static_cast<std::size_t>(peer)] = reachable_at(inbox);
    }
    ACCORD_TRY(status);
    inbox_send(exchange, inboxes);
    ticket.sent = true;
  }
  done = inbox_receive(exchange);
  ticket.state = done ? InboxTicket::State::idle : InboxTicket::State::late;
  return Status();
}

// As page-locked memory is to a driver, it is known where each ends: a copy must not leave it.
Status HostRuntime::host_allocate(std::size_t size_bytes, void*& pointer) {
  wait_for_kernel();
  pointer = nullptr;
  return arena_.allocate(0, MemoryKind::host, size_bytes, pointer);
}

void HostRuntime::host_free(void* pointer, std::size_t) noexcept {
  (void)arena_.release(pointer, HostArena::Origin::own);
}

Status HostRuntime::allocate(int device, MemoryKind kind, std::size_t size_bytes, void*& pointer) {
  wait_for_kernel();
  pointer = nullptr;
  ACCORD_TRY(check_device(device));
  if (kind == MemoryKind::host) {
    return Status(StatusCode::invalid_argument, "plain host memory comes from malloc");
  }
  if (size_bytes == 0) return Status();
  ACCORD_TRY(arena_.allocate(device, kind, size_bytes, pointer));
  note_active();
  return Status();
}

Status HostRuntime::free(void* pointer) {
  if (pointer == nullptr) return Status();
  return arena_.release(pointer, HostArena::Origin::own);
}

Status HostRuntime::export_memory(const void* pointer, ExportedMemory& exported) {
  wait_for_kernel();
  const HostAllocationRef owner = arena_.find(pointer);
  if (owner == nullptr) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("export: {} is no memory of the host runtime", pointer));
  }
  if (owner->file_descriptor < 0) {
    return Status(StatusCode::unsupported,
                  owner->imported ? "export: memory opened from another process"
                  : owner->kind == MemoryKind::device
                      ? "export: out of file descriptors when the memory was allocated"
                      : "export: only device memory can be exported");
  }
  const int descriptor = fcntl(owner->file_descriptor, F_DUPFD_CLOEXEC, 0);
  if (descriptor < 0) {
    return Status(StatusCode::unsupported, fmt::format("export: dup: {}", std::strerror(errno)));
  }
  HostHandle handle;
  handle.size_bytes = owner->size_bytes;
  handle.home = owner->home;
  exported.bytes.resize(sizeof handle);
  std::memcpy(exported.bytes.data(), &handle, sizeof handle);
  exported.file_descriptor = descriptor;
  exported.offset_bytes =
      static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - owner->user);
  return Status();
}

Status HostRuntime::open_memory(int device, const ExportedMemory& exported, void*& pointer) {
  wait_for_kernel();
  pointer = nullptr;
  ACCORD_TRY(check_device(device));
  HostHandle handle;
  if (exported.bytes.size() != sizeof handle) {
    return Status(StatusCode::invalid_argument, "open: no handle of the host runtime");
  }
  std::memcpy(&handle, exported.bytes.data(), sizeof handle);
  if (handle.magic != HostHandle::kMagic || handle.size_bytes == 0) {
    return Status(StatusCode::invalid_argument, "open: no handle of the host runtime");
  }
  const auto size_bytes = static_cast<std::size_t>(handle.size_bytes);
  ACCORD_TRY(arena_.import({device, static_cast<int>(handle.home)}, exported.file_descriptor,
                           size_bytes, pointer));
  note_active();
  return Status();
}

Status HostRuntime::close_memory(void* pointer) {
  return arena_.release(pointer, HostArena::Origin::imported);
}

Status HostRuntime::describe(int device, DeviceDescription& description) {
  ACCORD_TRY(check_device(device));
  description.name = "embedded host device";
  description.uuid = fmt::format("host-{}-{}", boot_id(), device);
  description.memory_bytes = host_memory_bytes();
  if (host_place().device != 0) description.mps = host_place().server != 0;
  return Status();
}

}  // namespace

DeviceRuntime& host_runtime() {
  // Never destroyed: memory of the program may be in use until the very end of the process.
  static HostRuntime& runtime = *new HostRuntime;
  return runtime;
}

}  // namespace accord::device

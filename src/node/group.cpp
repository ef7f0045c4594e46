// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/group.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "device/adapter_reach.h"
#include "device/machine.h"
#include "node/shared_mapping.h"

namespace accord::node {
namespace {

// When to look whether the peers' processes still exist, which takes a system call for each: by
// time, since on a crowded machine a poll may take as long as the others' turns on the processor.
constexpr unsigned kChecksPerClock = 16;
constexpr std::chrono::milliseconds kLookPause(5);
// The parcel with which a rank joins; those of offers are numbered from 0.
constexpr std::int32_t kJoinItem = -1;

// Where sockets can be that processes in different network namespaces reach.
std::array<std::string, 2> meeting_places() {
  const char* temporary = std::getenv("TMPDIR");
  return {"/dev/shm", temporary != nullptr && *temporary == '/' ? temporary : "/tmp"};
}

// Equal for paths that are one directory, also from different containers; 0: there is none.
std::uint64_t directory_number(const std::string& path) {
  struct stat of {};
  if (::stat(path.c_str(), &of) != 0) return 0;
  return std::hash<std::string>{}(fmt::format("{}/{}", of.st_dev, of.st_ino)) | 1;
}

Status too_small() {
  return {StatusCode::unsupported, "node: exchange regions are too small for so many ranks"};
}

// Of this process, those that it has left and not yet freed among them.
std::atomic<int> groups_of_one_request{0};

// Those of this process that all have opened, and those that it has left.
struct Parish {
  std::mutex mutex;
  std::set<Group*> living;
  std::vector<Group*> dead;
};

// Never destroyed: the driver may be gone when static objects are.
Parish& parish() {
  static Parish& instance = *new Parish;
  return instance;
}

}  // namespace

Status Group::prepare(int rank, int size, device::DeviceRuntime& runtime, int device, Use use,
                      Record& mine) {
  bury();
  rank_ = rank;
  size_ = size;
  runtime_ = &runtime;
  device_ = device;
  use_ = use;
  regions_.resize(static_cast<std::size_t>(size));
  opened_.resize(static_cast<std::size_t>(size));
  life_lines_.resize(static_cast<std::size_t>(size));
  bells_.resize(static_cast<std::size_t>(size));
  known_begun_.resize(static_cast<std::size_t>(size));
  mine = Record{};
  mine.node = node_number();
  mine.has_rdma = device::rdma_adapter_on_machine() ? 1 : 0;
  mine.adapters = device::adapter_reach();
  mine.network = DescriptorPort::network();
  std::ranges::transform(meeting_places(), mine.directories.begin(), directory_number);
  const bool lacks_device = device < 0 && !use.of_messages;
  mine.without_device = lacks_device ? 1 : 0;
  if (use.of_one_request && ++groups_of_one_request > kOfOneRequestMax)
    return {StatusCode::unsupported, "node: too many persistent requests have memory of their own"};
  if (lacks_device) return {StatusCode::unsupported, "node: this rank uses no device yet"};
  const bool inboxes = use.region_bytes == 0;
  if (use.region_bytes != 0 && slot_bytes() < Plan::slot_bytes_min(size)) return too_small();
  expect_device_pools(size, device < 0 ? 1 : runtime.device_count());
  ACCORD_TRY(port_.open());
  mine.port = port_.address();
  if (rank == 0) ACCORD_TRY(make_mailboxes());
  if (!use.of_memory()) {
    mine.ok = 1;
    return {};
  }
  mine.kernels = runtime.kernel_place(device);
  ACCORD_TRY(inboxes ? lease_inbox() : lease_region());
  life_ = runtime.context_life(device);
  regions_[static_cast<std::size_t>(rank)] = memory_.data();
  if (inboxes) ACCORD_TRY(prepare_inbox(mine));
  // One for all: a runtime has all kernels or none. Asked now that the device is in use for sure.
  mine.reduces = runtime.can_reduce(device::ReduceOp::sum, device::Element::float32) ? 1 : 0;
  ACCORD_TRY(share_memory(mine));
  mine.ok = 1;
  return {};
}

// Before any peer knows of it: what lies in fresh memory must not look like a word of some call.
Status Group::prepare_inbox(Record& mine) {
  static std::atomic<std::uint32_t> last_number{0};
  if (size_ > device::kInboxRanksMax)
    return {StatusCode::unsupported, "node: inboxes are for fewer ranks"};
  ACCORD_TRY(runtime_->inbox_server(device_, inbox_server_));
  inbox_number_ = ++last_number;
  mine.inbox_kernels = inbox_server_->kernel_place();
  mine.packet_reach = inbox_server_->packet_reach();
  const std::vector<std::byte> zeros(device::inbox_bytes(size_, use_.lane_bytes));
  const device::Copy clear{.dst = regions_[static_cast<std::size_t>(rank_)],
                           .src = zeros.data(),
                           .row_bytes = zeros.size()};
  return runtime_->copy(device_, {&clear, 1});
}

// Tells the own device where the inboxes of all ranks are.
Status Group::address_inboxes() {
  const device::Copy header{.dst = regions_[static_cast<std::size_t>(rank_)],
                            .src = regions_.data(),
                            .row_bytes = regions_.size() * sizeof regions_[0]};
  return runtime_->copy(device_, {&header, 1});
}

Status Group::bounce_memory(std::size_t size_bytes, bool on_device, std::byte*& memory) {
  if (on_device) {
    const bool lacks = device_bounce_.size_bytes() < size_bytes;
    if (lacks) device_bounce_.reset();
    const Status leased = lacks ? lease_device_memory(*runtime_, device_, std::bit_ceil(size_bytes),
                                                      LeaseOf::group, device_bounce_)
                                : Status();
    memory = device_bounce_.data();
    if (leased.ok()) return leased;
  }
  if (bounce_bytes_ < size_bytes) {
    if (bounce_ != nullptr) ACCORD_TRY(runtime_->free(bounce_));
    bounce_ = nullptr;
    bounce_bytes_ = 0;
    void* fresh = nullptr;
    const std::size_t fresh_bytes = std::bit_ceil(size_bytes);
    ACCORD_TRY(runtime_->allocate(device_, device::MemoryKind::pinned, fresh_bytes, fresh));
    bounce_ = static_cast<std::byte*>(fresh);
    bounce_bytes_ = fresh_bytes;
  }
  memory = bounce_;
  return {};
}

// Whether what a rank says of its memory fits together.
bool Group::is_sound(const Record& record) const noexcept {
  if (!use_.of_memory()) return true;
  const std::size_t used_bytes =
      use_.region_bytes != 0 ? use_.region_bytes : device::inbox_bytes(size_, use_.lane_bytes);
  return used_bytes <= record.memory.size_bytes &&
         record.offset_bytes <= record.memory.size_bytes - used_bytes;
}

namespace {

// Ranks whose inboxes' kernels run on one device; 1 where that is not told.
std::size_t most_on_one_device(std::span<const Record> records) {
  std::map<std::uint64_t, std::size_t> ranks;
  for (const Record& record : records)
    if (record.inbox_kernels.device != 0) ++ranks[record.inbox_kernels.device];
  std::size_t most = 1;
  for (const auto& [device, count] : ranks) most = std::max(most, count);
  return most;
}

// What all of them write for all goes through one memory, and beyond that straight copies are
// sooner there (H100 under MPS, 4 ranks: 512 KiB 14 us instead of 23, 1 MiB 23.5 instead of 22.8;
// 8 ranks: 128 KiB 19 instead of 28, 256 KiB 33 instead of 28).
std::size_t lane_bytes_where_shared(std::size_t ranks) {
  constexpr std::size_t kAllBytes = std::size_t{8} << 20;
  if (ranks < 2) return SIZE_MAX;
  return kAllBytes / (ranks * ranks) / device::kInboxUnitBytes * device::kInboxUnitBytes;
}

}  // namespace

// Also of ranks that cannot be a group for it.
void Group::look_for_turns(std::span<const Record> records) {
  std::vector<device::KernelPlace> places;
  for (const Record& record : records) places.push_back(record.kernels);
  shares_device_ = device::take_turns(places);
  takes_long_turns_ = device::take_long_turns(places);
  const auto mine = static_cast<std::size_t>(rank_);
  for (std::size_t rank = 0; rank < places.size(); ++rank)
    if (rank != mine && records[rank].node == records[mine].node &&
        device::takes_long_turns(places[mine], places[rank]))
      runtime_->expect_turns(device_);
}

Status Group::accept(std::span<const Record> records) {
  look_for_turns(records);
  reduces_ = true;
  for (const Record& record : records) {
    if (record.ok == 0) return {StatusCode::unsupported, "node: a rank cannot take part"};
    if (record.node != records[0].node)
      return {StatusCode::unsupported, "node: the ranks do not share memory"};
    reduces_ = reduces_ && record.reduces != 0;
  }
  const auto of_all = [&](auto Record::*member) {
    std::vector<std::remove_cvref_t<decltype(records[0].*member)>> all;
    for (const Record& record : records) all.push_back(record.*member);
    return all;
  };
  if (device::take_turns(of_all(&Record::inbox_kernels)))
    return {StatusCode::unsupported, "node: ranks share a device, where kernels must not wait"};
  const std::size_t sharers = most_on_one_device(records);
  if (inbox_server_ != nullptr) inbox_server_->share_with(static_cast<int>(sharers));
  std::size_t& own_bytes = use_.region_bytes != 0 ? use_.region_bytes : use_.lane_bytes;
  for (const Record& record : records)
    own_bytes = std::min<std::size_t>(own_bytes, record.granted_bytes);
  if (use_.region_bytes == 0) own_bytes = std::min(own_bytes, lane_bytes_where_shared(sharers));
  takes_packets_ = use_.lane_bytes >= device::kInboxLaneBytesOfPackets &&
                   device::all_take_packets(of_all(&Record::packet_reach));
  if (use_.region_bytes != 0 && slot_bytes() < Plan::slot_bytes_min(size_)) return too_small();
  if (!std::ranges::all_of(records, [&](const Record& record) { return is_sound(record); }))
    return {StatusCode::unsupported, "node: a rank's memory cannot be where it says"};
  records_.assign(records.begin(), records.end());
  return {};
}

bool Group::too_early(std::span<const Record> records) noexcept {
  return std::ranges::all_of(
             records,
             [&](const Record& record) { return record.ok != 0 || record.without_device != 0; }) &&
         std::ranges::any_of(records, [](const Record& one) { return one.without_device != 0; });
}

// Nothing where all ranks are in one network namespace, as far as the kernel says.
Status Group::find_meeting_place() {
  std::uint64_t network = 0;
  bool differ = false;
  for (const Record& record : records_) {
    differ = differ || (network != 0 && record.network != 0 && record.network != network);
    if (network == 0) network = record.network;
  }
  if (!differ) return {};
  for (std::size_t place = 0; place < records_[0].directories.size(); ++place) {
    const std::uint64_t number = records_[0].directories[place];
    if (number != 0 && std::ranges::all_of(records_, [&](const Record& record) {
          return record.directories[place] == number;
        }))
      return port_.open_path(meeting_places()[place]);
  }
  return {
      StatusCode::unsupported,
      "node: the ranks are in different network namespaces and share neither /dev/shm nor TMPDIR"};
}

// In the order in which open_peer expects them.
std::vector<int> Group::descriptors_to_send() {
  std::vector<int> numbers;
  for (const Descriptor* one : {&mailbox_descriptor_, &registration_.descriptor()}) {
    if (one->is_open()) numbers.push_back(one->number());
  }
  return numbers;
}

Status Group::send(bool& done) {
  done = false;
  if (sent_to_ == 0 && !shown_) {
    ACCORD_TRY(find_meeting_place());
    give_up_ = std::chrono::steady_clock::now() + kPatience;
    shown_ = true;
  }
  std::vector<int> descriptors = descriptors_to_send();
  ACCORD_TRY(own_bell(descriptors.emplace_back()));
  ACCORD_TRY(own_life_line(descriptors.emplace_back()));
  for (; sent_to_ + 1 < size_; ++sent_to_) {
    const int peer = (rank_ + sent_to_ + 1) % size_;
    bool sent = false;
    ACCORD_TRY(port_.send(records_[static_cast<std::size_t>(peer)].port, {rank_, kJoinItem, 0},
                          descriptors, sent));
    if (!sent && std::chrono::steady_clock::now() > give_up_)
      return {StatusCode::unsupported, fmt::format("node: rank {} takes no descriptors", peer)};
    if (!sent) return {};
  }
  done = true;
  return {};
}

Status Group::open() {
  registration_.descriptor().close();
  mailbox_descriptor_.close();
  port_.close_path();
  std::vector<PortAddress> ports;
  for (std::size_t peer = 0; peer < records_.size(); ++peer) {
    ports.push_back(records_[peer].port);
    if (static_cast<int>(peer) != rank_) ACCORD_TRY(open_peer(peer));
  }
  records_.clear();
  if (use_.of_messages) {
    ports_ = std::move(ports);
    attach(*runtime_, device_);  // to say that nothing is open here
  }
  if (!use_.of_memory()) return {};
  if (use_.region_bytes == 0) return address_inboxes();
  std::byte* const scratch = regions_[static_cast<std::size_t>(rank_)] + use_.region_bytes;
  offers_.attach(offers_memory(), rank_, *runtime_, device_, reduces_ ? scratch : nullptr, port_,
                 std::move(ports), bells_);
  ACCORD_TRY(try_to_reduce());
  enter();
  return {};
}

// From now on it is looked after.
void Group::enter() noexcept {
  const std::lock_guard lock(parish().mutex);
  parish().living.insert(this);
}

void Group::attach(device::DeviceRuntime& runtime, int device) {
  runtime_ = &runtime;
  device_ = device;
  offers_.attach(offers_memory(), rank_, runtime, device, nullptr, port_, ports_, bells_);
  enter();
}

Status Group::open_peer(std::size_t peer) {
  const Record& record = records_[peer];
  std::vector<Descriptor> descriptors;
  const std::size_t expected =
      2 + (peer == 0 ? 1 : 0) + (record.memory.with_descriptor != 0 ? 1 : 0);
  if (!port_.take({static_cast<std::int32_t>(peer), kJoinItem, 0}, descriptors) ||
      descriptors.size() != expected)
    return {StatusCode::unsupported, fmt::format("node: no descriptors came from rank {}", peer)};
  life_lines_[peer] = life_line_of(record.port.process, std::move(descriptors.back()));
  descriptors.pop_back();
  ACCORD_TRY(bell_of(record.port.process, descriptors.back(), bells_[peer]));
  descriptors.pop_back();
  if (peer == 0) ACCORD_TRY(map_mailboxes(descriptors[0]));
  if (!use_.of_memory()) return {};
  Descriptor of_memory;
  if (record.memory.with_descriptor != 0) of_memory = std::move(descriptors.back());
  ACCORD_TRY(opened_[peer].open(*runtime_, device_, record.memory, of_memory));
  regions_[peer] = opened_[peer].start() + record.offset_bytes;
  return {};
}

// One element from all regions: what cannot be addressed from here (a region of another context)
// must show now, while the ranks can still decline.
Status Group::try_to_reduce() {
  if (!reduces_) return {};
  constexpr std::size_t kResultBytes = 256;  // behind what the peers read
  const std::vector<const void*> sources(regions_.begin(), regions_.end());
  bool done = false;
  ACCORD_TRY(trial_.run(*runtime_, device_,
                        {.dst = regions_[static_cast<std::size_t>(rank_)] + kResultBytes,
                         .sources = sources,
                         .count = 1,
                         .op = device::ReduceOp::bxor,
                         .element = device::Element::uint32},
                        done));
  return done ? Status() : Trial::unended();
}

Group::~Group() {
  if (use_.of_one_request) --groups_of_one_request;
  (void)close_peers();
  if (bounce_ != nullptr && !was_reset()) (void)runtime_->free(bounce_);
  if (has_pinned_) runtime_->host_unpin(host_regions_[0]);
  if (mailboxes_ != nullptr) unmap_shared(mailboxes_, mapped_bytes_);
}

Status Group::close_peers() noexcept {
  offers_.close();
  if (!trial_.ended()) return Trial::unended();
  for (PeerMemory& peer : opened_) peer.close();
  if (mailboxes_ == nullptr || own_mailbox().closed.exchange(1, std::memory_order_acq_rel) != 0)
    return {};
  for (const auto& bell : bells_)
    if (bell != nullptr) bell->ring();
  return {};
}

bool Group::abandoned() noexcept {
  if (!trial_.ended() || !offers_.trial_ended()) return false;
  if (!shown_) return true;
  if (mailboxes_ == nullptr) return false;
  for (int peer = 0; peer < size_; ++peer) {
    if (mailboxes_[peer].closed.load(std::memory_order_acquire) != 0) continue;
    const auto& line = life_lines_[static_cast<std::size_t>(peer)];
    if (line == nullptr || !line->is_cut()) return false;
  }
  return true;
}

namespace {

// The parish's mutex is held.
void bury_dead() noexcept {
  auto& dead = parish().dead;
  for (Group* group : dead) (void)group->close_peers();
  std::erase_if(dead, [](Group* group) {
    if (!group->abandoned()) return false;
    delete group;
    return true;
  });
}

}  // namespace

void Group::retire(Group* group) {
  group->port_.close_path();  // one that could not join has not; it may be kept until the end
  const std::lock_guard lock(parish().mutex);
  parish().living.erase(group);
  parish().dead.push_back(group);
  bury_dead();
}

void Group::bury() noexcept {
  const std::lock_guard lock(parish().mutex);
  bury_dead();
}

void Group::tidy() noexcept {
  const std::lock_guard lock(parish().mutex);
  for (Group* group : parish().living) group->offers_.tidy();
  bury_dead();
}

std::uint64_t Group::take(std::size_t chunks) noexcept {
  const std::uint64_t first = next_;
  next_ += chunks;
  return first;
}

bool Group::is_time_to_look() noexcept {
  if (++checks_ % kChecksPerClock != 0) return false;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_look_) return false;
  next_look_ = now + kLookPause;
  return true;
}

Status Group::check_peer(int peer) {
  if (peer == rank_ || !is_time_to_look() || !life_lines_[static_cast<std::size_t>(peer)]->is_cut())
    return {};
  return {StatusCode::device_error, fmt::format("node: the process of rank {} is gone", peer)};
}

// What a peer's error has led to is told as that error.
void Group::explain(const Status& status) noexcept {
  if (mailboxes_ == nullptr || has_given_up()) return;
  Cause& own = causes_[rank_];
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_ || mailboxes_[peer].failed.load(std::memory_order_acquire) == 0) continue;
    own = causes_[peer];
    return;
  }
  own.rank = rank_;
  const std::size_t length = std::min(status.message().size(), sizeof own.text - 1);
  std::memcpy(own.text, status.message().data(), length);
  own.text[length] = '\0';
}

Status Group::given_up_by(int peer) const {
  const Cause cause = causes_[peer];
  const int rank = cause.rank >= 0 && cause.rank < size_ ? cause.rank : peer;
  std::string text(cause.text, ::strnlen(cause.text, sizeof cause.text));
  return {StatusCode::device_error, fmt::format("node: rank {} has given up this communicator{}{}",
                                                rank, text.empty() ? "" : ": ", text)};
}

Status Group::check_self() const {
  if (has_given_up()) return given_up_by(rank_);
  if (!was_reset()) return {};
  return {StatusCode::device_error,
          fmt::format("node: the program has reset device {}, which this communicator's memory was "
                      "on",
                      device_)};
}

Status Group::check_buffers() const {
  for (int peer = 0; peer < size_; ++peer)
    if (mailboxes_[peer].failed.load(std::memory_order_acquire) != 0) return given_up_by(peer);
  return {};
}

Status Group::check_peers() {
  const bool look = is_time_to_look();
  for (int peer = 0; peer < size_; ++peer) {
    if (look && peer != rank_ && life_lines_[static_cast<std::size_t>(peer)]->is_cut()) {
      // It may have ended because of another's error, and has said so.
      ACCORD_TRY(check_buffers());
      return {StatusCode::device_error, fmt::format("node: the process of rank {} is gone", peer)};
    }
  }
  return check_buffers();
}

}  // namespace accord::node

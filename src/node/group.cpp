// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/group.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <mutex>
#include <new>
#include <set>
#include <string>

#include "node/descriptor.h"
#include "node/handle_cache.h"
#include "node/plan.h"

namespace accord::node {
namespace {

// How many polls go by between two looks whether the peers' processes still exist.
constexpr unsigned kChecksPerLook = 4096;

Status from_errno(StatusCode code, const char* what) {
  return {code, fmt::format("node: {}: {}", what, std::strerror(errno))};
}

// Equal in processes of this kernel that see each other's /proc: what the descriptors travel by.
std::uint64_t node_number() {
  std::string text;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> text;
  struct stat processes {};
  if (::stat("/proc/self/ns/pid", &processes) == 0)
    text += fmt::format("/{}/{}/{}", processes.st_dev, processes.st_ino, ::getuid());
  return std::hash<std::string>{}(text) | 1;
}

struct Graveyard {
  std::mutex mutex;
  std::vector<Group*> groups;
};

// Never destroyed: the driver may be gone when static objects are.
Graveyard& graveyard() {
  static Graveyard& instance = *new Graveyard;
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
  mine = Record{};
  mine.node = node_number();
  mine.process = ::getpid();
  const bool inboxes = use.region_bytes == 0;
  if (!inboxes && slot_bytes() < Plan::slot_bytes_min(size))
    return {StatusCode::unsupported, "node: exchange regions are too small for so many ranks"};
  if (rank == 0) ACCORD_TRY(make_mailboxes());
  mine.mailbox_descriptor = mailbox_descriptor_;
  void* memory = nullptr;
  const std::size_t size_bytes = inboxes ? device::inbox_bytes(size, use.lane_bytes)
                                         : use.region_bytes + Offers::kScratchBytes;
  ACCORD_TRY(runtime.allocate(device, device::MemoryKind::device, size_bytes, memory));
  regions_[static_cast<std::size_t>(rank)] = static_cast<std::byte*>(memory);
  if (inboxes) ACCORD_TRY(prepare_inbox(mine));
  // One for all: a runtime has all kernels or none. Asked now that the device is in use for sure.
  mine.reduces = runtime.can_reduce(device::ReduceOp::sum, device::Element::float32) ? 1 : 0;
  device::ExportedMemory exported;
  ACCORD_TRY(runtime.export_memory(memory, exported));
  memory_descriptor_ = exported.file_descriptor;
  if (exported.bytes.size() > Record::kHandleBytesMax)
    return {StatusCode::unsupported, "node: a memory handle is too long"};
  std::memcpy(mine.handle, exported.bytes.data(), exported.bytes.size());
  mine.handle_bytes = static_cast<std::uint32_t>(exported.bytes.size());
  mine.offset_bytes = exported.offset_bytes;
  mine.memory_descriptor = memory_descriptor_;
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
  mine.exclusive_device = inbox_server_->exclusive_device();
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

Status Group::bounce_memory(std::size_t size_bytes, std::byte*& memory) {
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

Status Group::make_mailboxes() {
  mailbox_descriptor_ = ::memfd_create("accord-mailboxes", MFD_CLOEXEC);
  if (mailbox_descriptor_ < 0) return from_errno(StatusCode::no_memory, "memfd_create");
  if (::ftruncate(mailbox_descriptor_, static_cast<off_t>(shared_bytes())) != 0)
    return from_errno(StatusCode::no_memory, "ftruncate");
  ACCORD_TRY(map_mailboxes(mailbox_descriptor_));
  for (int peer = 0; peer < size_; ++peer) new (mailboxes_ + peer) Mailbox;
  for (int pair = 0; pair < size_ * size_; ++pair) new (parcels_ + pair) Parcel;
  Offers::make(parcels_ + size_ * size_, size_);
  return {};
}

Status Group::map_mailboxes(int descriptor) {
  void* memory = ::mmap(nullptr, shared_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return from_errno(StatusCode::no_memory, "mmap of the mailboxes");
  mailboxes_ = static_cast<Mailbox*>(memory);
  parcels_ = reinterpret_cast<Parcel*>(mailboxes_ + size_);
  return {};
}

Status Group::open(std::span<const Record> records) {
  reduces_ = true;
  std::set<std::uint64_t> exclusive_devices;
  for (const Record& record : records) {
    if (record.ok == 0) return {StatusCode::unsupported, "node: a rank cannot take part"};
    if (record.node != records[0].node)
      return {StatusCode::unsupported, "node: the ranks do not share memory"};
    if (record.exclusive_device != 0 && !exclusive_devices.insert(record.exclusive_device).second)
      return {StatusCode::unsupported, "node: ranks share a device, where kernels must not wait"};
    reduces_ = reduces_ && record.reduces != 0;
    processes_.push_back(record.process);
  }
  if (rank_ != 0) {
    int descriptor = open_theirs(records[0].process, records[0].mailbox_descriptor);
    if (descriptor < 0) return from_errno(StatusCode::unsupported, "opening the mailboxes");
    const Status mapped = map_mailboxes(descriptor);
    close_descriptor(descriptor);
    ACCORD_TRY(mapped);
  }
  for (std::size_t peer = 0; peer < records.size(); ++peer) {
    if (static_cast<int>(peer) == rank_) continue;
    const Record& record = records[peer];
    const PeerMemory region{.process = record.process,
                            .descriptor = record.memory_descriptor,
                            .handle = {record.handle, record.handle_bytes}};
    ACCORD_TRY(open_peer_memory(*runtime_, device_, region, opened_[peer]));
    regions_[peer] = static_cast<std::byte*>(opened_[peer]) + record.offset_bytes;
  }
  if (use_.region_bytes == 0) return address_inboxes();
  std::byte* const scratch = regions_[static_cast<std::size_t>(rank_)] + use_.region_bytes;
  offers_.attach(parcels_ + size_ * size_, rank_, size_, *runtime_, device_,
                 reduces_ ? scratch : nullptr);
  return try_to_reduce();
}

// One element from all regions: what cannot be addressed from here (a region of another context)
// must show now, while the ranks can still decline.
Status Group::try_to_reduce() {
  if (!reduces_) return {};
  constexpr std::size_t kResultBytes = 256;  // behind what the peers read
  const std::vector<const void*> sources(regions_.begin(), regions_.end());
  device::CopyTicket ticket;
  ACCORD_TRY(
      runtime_->reduce_begin(device_,
                             {.dst = regions_[static_cast<std::size_t>(rank_)] + kResultBytes,
                              .sources = sources,
                              .count = 1,
                              .op = device::ReduceOp::bxor,
                              .element = device::Element::uint32},
                             ticket));
  for (bool done = ticket.handle == nullptr; !done;) ACCORD_TRY(runtime_->copy_done(ticket, done));
  return {};
}

void Group::joined(bool all_opened) noexcept {
  joined_ = all_opened;
  close_descriptors();
}

void Group::close_descriptors() noexcept {
  close_descriptor(memory_descriptor_);
  close_descriptor(mailbox_descriptor_);
}

Group::~Group() {
  close_descriptors();
  close_peers();
  if (bounce_ != nullptr) (void)runtime_->free(bounce_);
  if (runtime_ != nullptr && !regions_.empty() &&
      regions_[static_cast<std::size_t>(rank_)] != nullptr)
    (void)runtime_->free(regions_[static_cast<std::size_t>(rank_)]);
  if (mailboxes_ != nullptr) ::munmap(mailboxes_, shared_bytes());
}

void Group::close_peers() noexcept {
  offers_.close();
  for (void*& peer : opened_) {
    if (peer != nullptr) (void)runtime_->close_memory(peer);
    peer = nullptr;
  }
  if (mailboxes_ != nullptr) own_mailbox().closed.store(1, std::memory_order_release);
}

bool Group::abandoned() const noexcept {
  for (int peer = 0; peer < size_; ++peer) {
    if (mailboxes_[peer].closed.load(std::memory_order_acquire) != 0) continue;
    const auto process = processes_[static_cast<std::size_t>(peer)];
    if (::kill(process, 0) != 0 && errno == ESRCH) continue;
    return false;
  }
  return true;
}

void Group::retire(Group* group) {
  group->close_peers();
  // One that never came to be: nobody reads its region.
  if (!group->joined_) {
    delete group;
    return;
  }
  {
    const std::lock_guard lock(graveyard().mutex);
    graveyard().groups.push_back(group);
  }
  bury();
}

void Group::bury() noexcept {
  const std::lock_guard lock(graveyard().mutex);
  auto& groups = graveyard().groups;
  std::erase_if(groups, [](Group* group) {
    if (!group->abandoned()) return false;
    delete group;
    return true;
  });
}

std::uint64_t Group::take(std::size_t chunks) noexcept {
  const std::uint64_t first = next_;
  next_ += chunks;
  return first;
}

Status Group::check_peers() {
  const bool look = ++checks_ % kChecksPerLook == 0;
  for (int peer = 0; peer < size_; ++peer) {
    const bool gone =
        look && ::kill(processes_[static_cast<std::size_t>(peer)], 0) != 0 && errno == ESRCH;
    if (gone)
      return {StatusCode::device_error, fmt::format("node: the process of rank {} is gone", peer)};
    if (mailboxes_[peer].failed.load(std::memory_order_acquire) != 0)
      return {StatusCode::device_error,
              fmt::format("node: rank {} has given up this communicator", peer)};
  }
  return {};
}

}  // namespace accord::node

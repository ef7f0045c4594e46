// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "fake_device.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

#include "device/reduce_on_host.h"

namespace accord::model {
namespace {

// Address space; what is touched of it becomes memory.
constexpr std::size_t kArenaBytes = std::size_t{512} << 20;

std::byte* reserve(int protection) {
  void* base =
      mmap(nullptr, kArenaBytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(base);
}

// What ExportedMemory::bytes holds.
struct Handle {
  const FakeDevice* owner = nullptr;
  std::size_t source = 0;
  std::uint64_t source_id = 0;
  std::size_t size_bytes = 0;
};

// From one allocation to the next.
std::size_t rounded(std::size_t size_bytes) {
  constexpr std::size_t kAlignmentBytes = 64;
  return (size_bytes / kAlignmentBytes + 1) * kAlignmentBytes;
}

}  // namespace

// A batch on its way.
struct FakeDevice::Pending {
  std::vector<std::function<void()>> steps;  // left to do
  std::uint64_t polls_left = 0;

  void step() {
    steps.back()();
    steps.pop_back();
  }
};

FakeDevice::FakeDevice() : base_(reserve(PROT_NONE)), bytes_(reserve(PROT_READ | PROT_WRITE)) {}

FakeDevice& FakeDevice::get(std::size_t index) {
  static std::array<FakeDevice*, kCount> devices{new FakeDevice, new FakeDevice};
  return *devices[index];
}

FakeDevice* FakeDevice::owner(const void* pointer) {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (get(i).contains(pointer)) return &get(i);
  }
  return nullptr;
}

device::PointerInfo FakeDevice::classify_any(const void* pointer) {
  device::PointerInfo info;
  if (FakeDevice* device = owner(pointer)) (void)device->classify(pointer, info);
  return info;
}

void FakeDevice::attach(Scheduler* scheduler, const ExchangeOptions& options) {
  scheduler_.store(scheduler);
  options_ = options;
  fail_after_.store(-1);
  refuse_after_.store(-1);
  for (FakeInboxServer& server : inbox_servers_) server.reset();
  const HiddenLock locked(mutex_);
  in_flight_.clear();
  pinned_.clear();
  // A run that fails may leave regions for good, of groups whose peers were never heard of. What
  // lies behind them is used again all the same: else many such runs would fill the device.
  freed_.clear();
  next_offset_ = 0;
  for (const auto& [offset, allocation] : allocations_)
    next_offset_ = std::max(next_offset_, offset + rounded(allocation.size_bytes));
}

bool FakeDevice::contains(const void* pointer) const noexcept {
  const auto* address = static_cast<const std::byte*>(pointer);
  return address >= base_ && address < base_ + kArenaBytes;
}

std::size_t FakeDevice::offset_of(const void* pointer) const noexcept {
  return static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - base_);
}

std::byte* FakeDevice::behind(const void* pointer) const { return bytes_ + offset_of(pointer); }

std::uint64_t FakeDevice::random(std::uint64_t bound) {
  Scheduler* scheduler = scheduler_.load();
  return scheduler != nullptr ? scheduler->random(bound) : 0;
}

void FakeDevice::complain(const char* what) {
  if (Scheduler* scheduler = scheduler_.load()) {
    scheduler->fail(what);
  } else {
    std::abort();
  }
}

// Under mutex_: the allocation that `pointer` is in, or the end.
FakeDevice::Allocations::const_iterator FakeDevice::find(const void* pointer) const {
  auto found = allocations_.upper_bound(offset_of(pointer));
  if (found == allocations_.begin()) return allocations_.end();
  --found;
  return offset_of(pointer) < found->first + found->second.size_bytes ? found : allocations_.end();
}

bool FakeDevice::classify(const void* pointer, device::PointerInfo& info) noexcept {
  if (!contains(pointer)) return false;
  const HiddenLock locked(mutex_);
  const auto found = find(pointer);
  if (found == allocations_.end()) return false;
  const Allocation& allocation = found->second;
  info = {allocation.kind,     this, 0, base_ + found->first, allocation.size_bytes,
          allocation.buffer_id};
  return true;
}

// The CPU's address for `pointer`; complains about device memory that is not there, unless it may
// have gone: then what stands there counts for nobody.
std::byte* FakeDevice::reachable(const void* pointer, std::size_t span_bytes, Presence presence) {
  if (!contains(pointer)) {
    if (owner(pointer) != nullptr) complain("a copy was given to the wrong device runtime");
    return static_cast<std::byte*>(const_cast<void*>(pointer));
  }
  HiddenLock locked(mutex_);
  const auto found = find(pointer);
  const std::size_t inside = found == allocations_.end() ? 0 : offset_of(pointer) - found->first;
  const bool exists =
      found != allocations_.end() && inside + span_bytes <= found->second.size_bytes;
  const bool freed = exists && !is_there(found->second);
  if (!exists || freed) {
    locked.unlock();
    if (presence == Presence::may_be_gone) return behind(pointer);
    complain(freed ? "a copy touches opened device memory that its owner has freed"
                   : "a copy touches device memory outside of the allocation");
    return behind(pointer);
  }
  return bytes_ + found->second.source + inside;
}

void FakeDevice::move(const device::Copy& copy) {
  std::byte* dst = reachable(copy.dst, (copy.rows - 1) * copy.dst_pitch_bytes + copy.row_bytes);
  const std::byte* src =
      reachable(copy.src, (copy.rows - 1) * copy.src_pitch_bytes + copy.row_bytes);
  for (std::size_t row = 0; row < copy.rows; ++row) {
    std::memcpy(dst + row * copy.dst_pitch_bytes, src + row * copy.src_pitch_bytes, copy.row_bytes);
  }
}

void FakeDevice::reduce(const device::Reduction& reduction, Presence presence, bool is_seen) {
  const std::size_t size_bytes = reduction.count * device::element_bytes(reduction.element);
  std::vector<const void*> sources;
  for (const void* source : reduction.sources)
    sources.push_back(reachable(source, size_bytes, presence));
  std::vector<void*> copies;
  for (void* copy : reduction.copies) copies.push_back(reachable(copy, size_bytes));
  device::Reduction reached = reduction;
  reached.dst = reachable(reduction.dst, size_bytes);
  reached.sources = sources;
  reached.copies = copies;
  // The compiler copies blocks by code of its own there, which is not instrumented.
  if (is_seen) {
    for (const void* source : reached.sources) note_read(source, size_bytes);
    for (void* copy : reached.copies) note_write(copy, size_bytes);
    note_write(reached.dst, size_bytes);
  }
  device::reduce_on_host(reached);
}

Status FakeDevice::next_copy_status() {
  if (fail_after_.load() < 0 || fail_after_.fetch_sub(1) != 0) return {};
  return {StatusCode::device_error, "injected"};
}

Status FakeDevice::copy(int, std::span<const device::Copy> copies) {
  if (Scheduler* scheduler = scheduler_.load()) scheduler->yield();
  ACCORD_TRY(next_copy_status());
  for (const device::Copy& one : copies) move(one);
  return {};
}

// Some of the steps are done at once, perhaps all.
Status FakeDevice::begin(std::vector<std::function<void()>> steps, device::CopyTicket& ticket) {
  ticket.handle = nullptr;
  for (std::size_t i = steps.size(); i > 1; --i) std::swap(steps[i - 1], steps[random(i)]);
  auto pending = std::make_unique<Pending>();
  pending->steps = std::move(steps);
  pending->polls_left = random(kPollsMax + 1);
  while (!pending->steps.empty() && random(2) == 0) pending->step();
  if (pending->steps.empty() && pending->polls_left == 0) return {};  // complete already
  const HiddenLock locked(mutex_);
  ticket.handle = reinterpret_cast<void*>(++last_ticket_);
  in_flight_[ticket.handle] = std::move(pending);
  return {};
}

Status FakeDevice::copy_begin(int, std::span<const device::Copy> copies,
                              device::CopyTicket& ticket) {
  if (Scheduler* scheduler = scheduler_.load()) scheduler->yield();
  ACCORD_TRY(next_copy_status());
  std::vector<std::function<void()>> steps;
  for (const device::Copy& one : copies) steps.emplace_back([this, one] { move(one); });
  return begin(std::move(steps), ticket);
}

// Writes `done` only when it is: what the interface promises, and no more.
Status FakeDevice::copy_done(device::CopyTicket& ticket, bool& done) {
  if (ticket.handle == nullptr) {
    done = true;
    return {};
  }
  Pending* pending = nullptr;
  {
    const HiddenLock locked(mutex_);
    const auto found = in_flight_.find(ticket.handle);
    if (found != in_flight_.end()) pending = found->second.get();
  }
  if (pending == nullptr) return {StatusCode::device_error, "a batch of an earlier job"};
  if (pending->polls_left > 0) {
    --pending->polls_left;
    if (!pending->steps.empty() && random(4) == 0) pending->step();
    return {};
  }
  while (!pending->steps.empty()) pending->step();
  {
    const HiddenLock locked(mutex_);
    in_flight_.erase(ticket.handle);
  }
  ticket.handle = nullptr;
  if (Scheduler* scheduler = scheduler_.load()) scheduler->event();
  done = true;
  return {};
}

// Any of them: exchanges of one rank compete sometimes, and so do those of several.
Status FakeDevice::inbox_server(int, device::InboxServer*& server) {
  if (refuses()) return refused("inbox exchanges");
  server = &inbox_servers_[random(inbox_servers_.size())];
  return {};
}

bool FakeDevice::is_pinned(const void* pointer) const {
  const auto* address = static_cast<const std::byte*>(pointer);
  const HiddenLock locked(mutex_);
  const auto next = pinned_.upper_bound(address);
  if (next == pinned_.begin()) return false;
  const auto& [start, bytes] = *std::prev(next);
  return address < start + bytes->size();
}

bool FakeDevice::can_reduce(device::ReduceOp, device::Element) {
  return random(100) < options_.kernels_percent;
}

// Whether kernels can address the memory; complains about what is not this runtime's.
bool FakeDevice::kernels_reach(const void* pointer) {
  if (!contains(pointer)) complain("a kernel was given memory that is not of its device runtime");
  const HiddenLock locked(mutex_);
  const auto found = find(pointer);
  return found == allocations_.end() || found->second.for_kernels;
}

Status FakeDevice::reduce_begin(int, const device::Reduction& reduction,
                                device::CopyTicket& ticket) {
  // Only to try memory out, under a lock that other ranks of the job want, too.
  const bool tries = reduction.op == device::ReduceOp::bxor;
  const bool tries_users = tries && reduction.element == device::Element::uint8;
  if (Scheduler* scheduler = scheduler_.load(); scheduler != nullptr && !tries) scheduler->yield();
  ACCORD_TRY(next_copy_status());
  ACCORD_TRY(device::check_reduction(reduction));
  bool all_reached = kernels_reach(reduction.dst);
  for (const void* source : reduction.sources) all_reached = kernels_reach(source) && all_reached;
  for (const void* copy : reduction.copies) all_reached = kernels_reach(copy) && all_reached;
  if (!all_reached) return refused("reduce: a kernel cannot address the memory");
  // Two pieces, each done at a time of its own.
  const std::size_t size_bytes = device::element_bytes(reduction.element);
  const std::size_t half = reduction.count / 2;
  std::vector<std::function<void()>> steps;
  for (const auto& [first, count] :
       {std::pair{std::size_t{0}, half}, std::pair{half, reduction.count - half}}) {
    std::vector<const void*> sources;
    for (const void* source : reduction.sources)
      sources.push_back(static_cast<const std::byte*>(source) + first * size_bytes);
    std::vector<void*> copies;
    for (void* copy : reduction.copies)
      copies.push_back(static_cast<std::byte*>(copy) + first * size_bytes);
    device::Reduction piece = reduction;
    piece.dst = static_cast<std::byte*>(reduction.dst) + first * size_bytes;
    piece.count = count;
    steps.emplace_back([this, tries, tries_users, piece, sources, copies]() mutable {
      piece.sources = sources;
      piece.copies = copies;
      if (piece.count == 0) return;
      if (!tries) return reduce(piece, Presence::must_be, true);
      // What a trial finds does not count, so that it may read what its owner is writing. Whoever
      // ends it may throw nothing; what is wrong the run knows all the same.
      const Hidden hidden;
      try {
        reduce(piece, tries_users ? Presence::may_be_gone : Presence::must_be, false);
      } catch (const Aborted&) {
      }
    });
  }
  if (!tries) return begin(std::move(steps), ticket);
  // Of the library's own memory most end at once: else no ranks would ever join.
  const std::uint64_t late_one_in = tries_users ? 3 : 40;
  if (options_.knobs.late_trials && random(late_one_in) != 0) {
    for (auto& step : steps) step();
    ticket.handle = nullptr;
    return {};
  }
  return begin(std::move(steps), ticket);
}

Status FakeDevice::host_allocate(std::size_t size_bytes, void*& pointer) {
  if (!has_memory()) return {StatusCode::no_memory, "injected"};
  pointer = std::malloc(size_bytes);
  if (pointer == nullptr) return {StatusCode::no_memory, "host memory"};
  std::memset(pointer, 0x5a, size_bytes);
  host_allocations_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

void FakeDevice::host_free(void* pointer, std::size_t) noexcept {
  std::free(pointer);
  host_allocations_.fetch_sub(1, std::memory_order_relaxed);
}

Status FakeDevice::add(Allocation allocation, void*& pointer) {
  const HiddenLock locked(mutex_);
  const std::size_t offset = take_place(allocation.size_bytes);
  if (offset + allocation.size_bytes > kArenaBytes)
    return {StatusCode::no_memory, "the fake device is full"};
  allocation.buffer_id = ++last_buffer_id_;
  if (!allocation.opened) {
    allocation.source = offset;
    allocation.source_id = allocation.buffer_id;
  }
  pointer = base_ + offset;
  allocations_[offset] = allocation;
  return {};
}

// Under mutex_.
std::size_t FakeDevice::take_place(std::size_t size_bytes) {
  if (allocations_.empty()) {
    next_offset_ = 0;
    freed_.clear();
    takes_over(&freed_);
  }
  std::vector<std::size_t>& freed = freed_[rounded(size_bytes)];
  if (!freed.empty() && random(4) != 0) {
    const std::size_t offset = freed.back();
    freed.pop_back();
    takes_over(bytes_ + offset);
    return offset;
  }
  const std::size_t offset = next_offset_;
  if (offset + size_bytes <= kArenaBytes) next_offset_ += rounded(size_bytes);
  return offset;
}

// Under mutex_.
void FakeDevice::erase(Allocations::const_iterator allocation) {
  passes_on(&freed_);
  passes_on(bytes_ + allocation->first);
  freed_[rounded(allocation->second.size_bytes)].push_back(allocation->first);
  allocations_.erase(allocation);
}

// Under mutex_: whether the bytes are, those of an opened allocation too.
bool FakeDevice::is_there(const Allocation& allocation) const {
  const auto source = allocations_.find(allocation.source);
  return source != allocations_.end() && source->second.buffer_id == allocation.source_id;
}

// Fresh memory holds what an inbox must not take for words of a first call.
Status FakeDevice::allocate(int, device::MemoryKind kind, std::size_t size_bytes, void*& pointer) {
  if (!has_memory()) return {StatusCode::no_memory, "injected"};
  return make(kind, size_bytes, pointer);
}

Status FakeDevice::make(device::MemoryKind kind, std::size_t size_bytes, void*& pointer) {
  if (kind == device::MemoryKind::pinned) {
    auto bytes = std::make_unique<std::vector<std::byte>>(size_bytes, std::byte{0x5a});
    pointer = bytes->data();
    const HiddenLock locked(mutex_);
    pinned_[bytes->data()] = std::move(bytes);
    return {};
  }
  ACCORD_TRY(add({.size_bytes = size_bytes, .kind = kind, .for_kernels = !refuses()}, pointer));
  std::byte* const fresh = behind(pointer);
  constexpr std::uint32_t kOldWord = 1;
  for (std::size_t at = 0; at + sizeof kOldWord <= size_bytes; at += sizeof kOldWord)
    std::memcpy(fresh + at, &kOldWord, sizeof kOldWord);
  return {};
}

Status FakeDevice::allocate_for_program(device::MemoryKind kind, std::size_t size_bytes,
                                        void*& pointer) {
  ACCORD_TRY(make(kind, size_bytes, pointer));
  const HiddenLock locked(mutex_);
  allocations_[offset_of(pointer)].of_program = true;
  return {};
}

Status FakeDevice::free(void* pointer) {
  const HiddenLock locked(mutex_);
  if (pinned_.erase(static_cast<const std::byte*>(pointer)) != 0) return {};
  const auto found = allocations_.find(offset_of(pointer));
  if (found == allocations_.end() || found->second.source != found->first)
    return {StatusCode::invalid_argument, "not an allocation"};
  erase(found);
  return {};
}

Status FakeDevice::export_memory(const void* pointer, device::ExportedMemory& exported) {
  if (refuses()) return refused("export");
  const HiddenLock locked(mutex_);
  const auto found = allocations_.find(find(pointer)->first);
  if (found->second.of_program && refuses_to_lend()) return refused("export");
  const Handle handle{this, found->first, found->second.buffer_id, found->second.size_bytes};
  if (options_.descriptors) exported.file_descriptor = eventfd(0, EFD_CLOEXEC);
  exported.bytes.resize(sizeof handle);
  std::memcpy(exported.bytes.data(), &handle, sizeof handle);
  exported.offset_bytes = offset_of(pointer) - found->first;
  return {};
}

Status FakeDevice::open_memory(int, const device::ExportedMemory& exported, void*& pointer) {
  Handle handle;
  if (exported.bytes.size() != sizeof handle) return refused("open: a foreign handle");
  std::memcpy(&handle, exported.bytes.data(), sizeof handle);
  if (handle.owner != this || refuses()) return refused("open");
  if (options_.descriptors && fcntl(exported.file_descriptor, F_GETFD) < 0)
    return refused("open: no descriptor");
  const Allocation opened{.size_bytes = handle.size_bytes,
                          .source = handle.source,
                          .source_id = handle.source_id,
                          .opened = true};
  {
    const HiddenLock locked(mutex_);
    if (!is_there(opened)) return refused("open: freed");
    if (allocations_[opened.source].of_program && refuses_to_lend()) return refused("open");
  }
  return add(opened, pointer);
}

Status FakeDevice::close_memory(void* pointer) {
  const HiddenLock locked(mutex_);
  const auto found = allocations_.find(offset_of(pointer));
  if (found == allocations_.end() || found->second.source == found->first)
    return {StatusCode::invalid_argument, "not opened"};
  erase(found);
  return {};
}

Status FakeDevice::describe(int, device::DeviceDescription& description) {
  description = {.name = "fake", .uuid = "fake", .memory_bytes = kArenaBytes};
  return {};
}

std::size_t FakeDevice::live_allocations() const {
  const HiddenLock locked(mutex_);
  return allocations_.size() + pinned_.size();
}

bool FakeDevice::inbox_servers_idle() const {
  return std::ranges::all_of(inbox_servers_, &FakeInboxServer::idle);
}

}  // namespace accord::model

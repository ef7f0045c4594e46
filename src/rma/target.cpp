// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "rma/target.h"

#include <fmt/format.h>
#include <sched.h>

#include <array>
#include <cstring>
#include <utility>

#include "rma/batch.h"

namespace accord::rma {

void Attached::add(const void* base, std::uint64_t size_bytes) {
  const std::lock_guard<std::mutex> locked(mutex_);
  sizes_.insert_or_assign(reinterpret_cast<std::uint64_t>(base), size_bytes);
}

bool Attached::remove(const void* base) {
  const std::lock_guard<std::mutex> locked(mutex_);
  return sizes_.erase(reinterpret_cast<std::uint64_t>(base)) != 0;
}

// A run may reach over several that follow one another.
Status Attached::check(std::span<const Piece> pieces) const {
  const std::lock_guard<std::mutex> locked(mutex_);
  for (const Piece& piece : pieces) {
    auto at = static_cast<std::uint64_t>(piece.offset_bytes);
    const std::uint64_t end = at + piece.length_bytes;
    if (end < at) return {StatusCode::out_of_window, "a run beyond all memory"};
    while (at < end) {
      auto next = sizes_.upper_bound(at);
      if (next == sizes_.begin() || (--next)->first + next->second <= at)
        return {StatusCode::out_of_window,
                fmt::format("nothing is attached at {:#x} to the target's window", at)};
      at = next->first + next->second;
    }
  }
  return {};
}

Status Target::check(std::span<const Piece> pieces) const {
  if (attached_ != nullptr) return attached_->check(pieces);
  if (size_bytes_ == kAnySize) return {};
  for (const Piece& piece : pieces) {
    const auto first = static_cast<std::uint64_t>(piece.offset_bytes);
    if (first > size_bytes_ || piece.length_bytes > size_bytes_ - first)
      return {StatusCode::out_of_window,
              fmt::format("bytes from {} on of the target's window, which has {}",
                          piece.offset_bytes, size_bytes_)};
  }
  return {};
}

Status Target::locate(const Piece& run, std::byte*& start) const {
  if (memory_.is_absolute)
    return {StatusCode::unsupported, "a dynamic window's memory goes by messages alone"};
  ACCORD_TRY(check({&run, 1}));
  start = address_in(memory_, run.offset_bytes);
  return {};
}

Status Target::update(const Update& update, std::span<const Piece> pieces, const std::byte* in,
                      std::byte* result) const {
  ACCORD_TRY(check(pieces));
  const auto size_bytes = static_cast<std::size_t>(size_of(pieces));
  Room room;
  ACCORD_TRY(room.take(memory_.where.runtime, size_bytes));
  std::byte* const old = room.data();
  UpdateTurn turn;
  ACCORD_TRY(turn.take(*words_, own_rank_, *lines_));
  if (result != nullptr || update.op != Update::kReplace) ACCORD_TRY(pack(old, memory_, pieces));
  if (result != nullptr) std::memcpy(result, old, size_bytes);
  if (update.op == Update::kNoOp) return {};
  if (update.op == Update::kReplace) return unpack(memory_, pieces, in);
  ACCORD_TRY(combine_(update, in, old, size_bytes));
  return unpack(memory_, pieces, old);
}

namespace {

// Where a kernel finds the first bytes of some ends: there themselves, or packed in memory that it
// reaches.
class Reached {
 public:
  explicit Reached(std::size_t size_bytes) : size_bytes_(size_bytes) {}

  // False: it finds them nowhere.
  bool add(const End& end, device::DirectWorker& worker, void*& at) {
    Entry& entry = entries_[count_++];
    entry = {.end = &end, .at = &at};
    if (end.place.is_absolute || end.pieces.empty()) return false;
    std::byte* const start = address_in(end.place, end.pieces.front().offset_bytes);
    entry.is_packed =
        end.pieces.size() != 1 || !worker.reaches(end.place.where, start, size_bytes_);
    if (!entry.is_packed) at = start;
    return !entry.is_packed || !device::needs_staging(end.place.where);
  }
  // Once all are there. Those that are read are packed.
  Status open(device::DeviceRuntime& runtime, const void* result) {
    constexpr std::size_t kAlignment = 16;
    const std::size_t step = (size_bytes_ + kAlignment - 1) / kAlignment * kAlignment;
    std::size_t packed = 0;
    for (const Entry& entry : std::span(entries_).first(count_))
      packed += entry.is_packed ? step : 0;
    if (packed == 0) return {};
    ACCORD_TRY(room_.take(&runtime, packed));
    std::byte* next = room_.data();
    for (const Entry& entry : std::span(entries_).first(count_)) {
      if (!entry.is_packed) continue;
      *entry.at = std::exchange(next, next + step);
      if (entry.at != result)
        ACCORD_TRY(pack(static_cast<std::byte*>(*entry.at), entry.end->place,
                        slice(entry.end->pieces, 0, size_bytes_)));
    }
    return {};
  }
  // Once the kernel has been there.
  Status close(const void* result) {
    for (const Entry& entry : std::span(entries_).first(count_))
      if (entry.is_packed && entry.at == result)
        return unpack(entry.end->place, slice(entry.end->pieces, 0, size_bytes_),
                      static_cast<std::byte*>(*entry.at));
    return {};
  }

 private:
  struct Entry {
    const End* end = nullptr;
    void** at = nullptr;
    bool is_packed = false;
  };
  const std::size_t size_bytes_;
  std::array<Entry, 3> entries_;
  std::size_t count_ = 0;
  Room room_;
};

// Whether a kernel can: what only moves, it always can.
bool set_operation(const Update& update, device::DeviceRuntime& runtime,
                   device::DirectUpdate& work) {
  if (update.op == Update::kReplace || update.op == Update::kNoOp) return true;
  work.op = update.device_op;
  work.element = update.element;
  return device::has_direct_update(work.op, work.element) &&
         runtime.can_reduce(work.op, work.element);
}

}  // namespace

Status Target::update_at_once(const Update& update, const Piece& elements, const End& origin,
                              const End* compare, const End* result, bool& done) const {
  done = false;
  const auto size_bytes = static_cast<std::size_t>(elements.length_bytes);
  if (worker_ == nullptr || size_bytes > short_bytes() || !worker_->is_wanted()) return {};
  device::DirectUpdate work{.target = address_in(memory_, elements.offset_bytes),
                            .size_bytes = size_bytes};
  if (!set_operation(update, *memory_.where.runtime, work) ||
      !worker_->reaches(memory_.where, work.target, size_bytes) ||
      (compare != nullptr && size_bytes > device::kDirectElementBytesMax))
    return {};
  Reached ends(size_bytes);
  void* operand = nullptr;
  void* expected = nullptr;
  void* before = nullptr;
  if ((update.op != Update::kNoOp && !ends.add(origin, *worker_, operand)) ||
      (compare != nullptr && !ends.add(*compare, *worker_, expected)) ||
      (result != nullptr && !ends.add(*result, *worker_, before)))
    return {};
  ACCORD_TRY(ends.open(*memory_.where.runtime, &before));
  work.operand = operand;
  work.compare = expected;
  work.result = before;
  {
    UpdateTurn turn;
    ACCORD_TRY(turn.take(*words_, own_rank_, *lines_));
    ACCORD_TRY(worker_->run({.update = &work}, done));
  }
  return done ? ends.close(&before) : Status();
}

bool Target::can_reduce(const Update& update, std::span<const Piece> pieces, const Place& origin,
                        std::span<const Piece> origin_pieces) const {
  const auto is_on_device = [](const Place& place) {
    return !place.is_absolute && place.where.kind == device::MemoryKind::device;
  };
  return update.element != device::Element::none && pieces.size() == 1 &&
         origin_pieces.size() == 1 && is_on_device(memory_) && is_on_device(origin) &&
         memory_.where.runtime == origin.where.runtime &&
         memory_.where.runtime->can_reduce(update.device_op, update.element);
}

Status Target::reduce(const Update& update, const Piece& elements, const Place& origin,
                      const Piece& origin_elements) const {
  std::byte* const to = address_in(memory_, elements.offset_bytes);
  const void* const sources[] = {to, address_in(origin, origin_elements.offset_bytes)};
  device::DeviceRuntime& runtime = *memory_.where.runtime;
  UpdateTurn turn;
  ACCORD_TRY(turn.take(*words_, own_rank_, *lines_));
  device::CopyTicket ticket;
  ACCORD_TRY(runtime.reduce_begin(origin.where.device,
                                  {.dst = to,
                                   .sources = sources,
                                   .count = elements.length_bytes / update.element_bytes,
                                   .op = update.device_op,
                                   .element = update.element},
                                  ticket));
  Status status;
  for (bool done = false; !done && status.ok(); ::sched_yield())
    status = runtime.copy_done(ticket, done);
  return status;
}

Status Target::compare_and_swap(const Piece& element, const std::byte* in, const std::byte* compare,
                                std::byte* result) const {
  ACCORD_TRY(check({&element, 1}));
  UpdateTurn turn;
  ACCORD_TRY(turn.take(*words_, own_rank_, *lines_));
  ACCORD_TRY(pack(result, memory_, {&element, 1}));
  if (std::memcmp(result, compare, element.length_bytes) != 0) return {};
  return unpack(memory_, {&element, 1}, in);
}

}  // namespace accord::rma

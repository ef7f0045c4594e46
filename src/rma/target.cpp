// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "rma/target.h"

#include <fmt/format.h>
#include <sched.h>

#include <cstring>

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

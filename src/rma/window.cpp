// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "rma/window.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rma/arrivals.h"

namespace accord::rma {

using message::Kind;

namespace {

// A run has a byte at least.
std::uint64_t question_bytes(const Pieces& pieces) {
  return pieces.size() > kRunsMax ? kRunsMax : kQuestionBytesMax;
}

// Calls visit(first, length) for parts of at most `part_bytes`, which hold whole elements.
template <class Visit>
Status for_each_part(std::uint64_t size_bytes, std::uint64_t part_bytes,
                     std::uint64_t element_bytes, Visit visit) {
  part_bytes -= part_bytes % element_bytes;
  for (std::uint64_t first = 0; first < size_bytes; first += part_bytes)
    ACCORD_TRY(visit(first, std::min(part_bytes, size_bytes - first)));
  return {};
}

}  // namespace

Status Window::check_bounds(int target, std::span<const Piece> pieces) const {
  if (is_dynamic_) return {};
  const auto size_bytes = static_cast<std::int64_t>(rank_at(target).size_bytes);
  for (const Piece& piece : pieces) {
    const auto length_bytes = static_cast<std::int64_t>(piece.length_bytes);
    if (piece.offset_bytes < 0 || piece.offset_bytes > size_bytes - length_bytes)
      return {
          StatusCode::out_of_window,
          fmt::format("bytes {} to {} of the window of rank {}, which has {}", piece.offset_bytes,
                      piece.offset_bytes + length_bytes, target, size_bytes)};
  }
  return {};
}

// Before any operation.
Status Window::begin(int target, std::span<const Piece> pieces) {
  ACCORD_TRY(check_bounds(target, pieces));
  if (!all_locked_) return {};
  return hold_shared(target);
}

Status Window::hold_shared(int target) {
  const std::lock_guard<std::mutex> locked(locks_mutex_);
  Rank& rank = rank_at(target);
  if (rank.held != Held::none) return {};
  if (all_checked_) ACCORD_TRY(take_lock(target, LockKind::shared));
  rank.held = all_checked_ ? Held::shared : Held::unchecked;
  rank.is_of_all = true;
  return {};
}

Status Window::ask(int target, const Service::Question& question, Result result,
                   const ProgressPointer& progress) {
  return service_->ask(target, question, std::move(result), progress);
}

// Where both ends are one run of memory that one may move; `run`: this rank's.
std::int32_t Window::find_transport(int target, std::span<const Piece> there, const End& here,
                                    net::Memory& run) {
  const device::PointerInfo& where = here.place.where;
  const bool may_lie_there =
      where.kind == device::MemoryKind::device || !device::needs_staging(where);
  if (transports_ == nullptr || route(target) != Route::messages || is_dynamic_ ||
      !rank_at(target).is_on_device || here.place.is_absolute || !may_lie_there ||
      there.size() != 1 || here.pieces.empty() ||
      here.pieces.front().length_bytes < there.front().length_bytes)
    return Transports::kNone;
  run = {address_in(here.place, here.pieces.front().offset_bytes),
         static_cast<std::size_t>(there.front().length_bytes), where};
  return transports_->choose(target, run.size_bytes, where);
}

Status Window::ask_by_transport(Kind kind, int target, const Pieces& there, std::int32_t transport,
                                const net::Memory& run, const ProgressPointer& progress) {
  Service::Question question;
  question.header.kind = kind;
  question.header.transport = transport;
  question.pieces = there;
  question.memory = run;
  return ask(target, question, {}, progress);
}

Status Window::put(int target, const Extent& there, const End& origin,
                   const ProgressPointer& progress) {
  const Pieces& pieces = there.pieces;
  ACCORD_TRY(begin(target, pieces));
  if (const Target* const near = reached(target, pieces)) {
    if (near->memory().is_absolute) return near->put(pieces, origin.place, origin.pieces);
    ACCORD_TRY(batch_.add(Batch::Direction::put, {near->memory(), pieces, there.layout}, origin));
    return progress != nullptr ? batch_.finish(engine_) : Status();
  }
  net::Memory run;
  const std::int32_t transport = find_transport(target, pieces, origin, run);
  if (transport != Transports::kNone)
    return ask_by_transport(Kind::put, target, pieces, transport, run, progress);
  return for_each_part(
      size_of(pieces), question_bytes(pieces), 1, [&](std::uint64_t first, std::uint64_t length) {
        Room room;
        ACCORD_TRY(room.take(origin.place.where.runtime, length));
        ACCORD_TRY(pack(room.data(), origin.place, slice(origin.pieces, first, length)));
        Service::Question question;
        question.header.kind = Kind::put;
        const Pieces part = slice(pieces, first, length);
        question.pieces = part;
        question.data = {room.data(), static_cast<std::size_t>(length)};
        return ask(target, question, {}, progress);
      });
}

Status Window::get(int target, const Extent& there, const End& result,
                   const ProgressPointer& progress) {
  const Pieces& pieces = there.pieces;
  ACCORD_TRY(begin(target, pieces));
  if (const Target* const near = reached(target, pieces)) {
    if (near->memory().is_absolute) return near->get(pieces, result.place, result.pieces);
    ACCORD_TRY(batch_.add(Batch::Direction::get, result, {near->memory(), pieces, there.layout}));
    return progress != nullptr ? batch_.finish(engine_) : Status();
  }
  net::Memory run;
  const std::int32_t transport = find_transport(target, pieces, result, run);
  if (transport != Transports::kNone)
    return ask_by_transport(Kind::get, target, pieces, transport, run, progress);
  return for_each_part(
      size_of(pieces), question_bytes(pieces), 1, [&](std::uint64_t first, std::uint64_t length) {
        Service::Question question;
        question.header.kind = Kind::get;
        const Pieces part = slice(pieces, first, length);
        question.pieces = part;
        return ask(target, question, {result.place, slice(result.pieces, first, length)}, progress);
      });
}

Status Window::update_by_message(int target, const Update& update, std::span<const Piece> pieces,
                                 std::span<const std::byte> in, Result result, bool fetches,
                                 const ProgressPointer& progress) {
  Service::Question question;
  question.header.kind = fetches ? Kind::fetch : Kind::update;
  question.header.update = update;
  question.pieces = pieces;
  question.data = in;
  return ask(target, question, std::move(result), progress);
}

Status Window::update(int target, const Update& update, const Pieces& pieces, const End& origin,
                      const End* result, const ProgressPointer& progress) {
  ACCORD_TRY(begin(target, pieces));
  const Target* const near = reached(target, pieces);
  const bool reads = update.op != Update::kNoOp;
  if (near != nullptr && pieces.size() == 1) {
    bool done = false;
    ACCORD_TRY(near->update_at_once(update, pieces.front(), origin, nullptr, result, done));
    if (done) return {};
  }
  if (near != nullptr && result == nullptr && reads &&
      near->can_reduce(update, pieces, origin.place, origin.pieces)) {
    const Status reduced =
        near->reduce(update, pieces.front(), origin.place, origin.pieces.front());
    if (reduced.code() != StatusCode::unsupported) return reduced;
  }
  return for_each_part(
      size_of(pieces), Target::kUpdateBytes, update.element_bytes,
      [&](std::uint64_t first, std::uint64_t length) {
        const auto length_bytes = static_cast<std::size_t>(length);
        const Pieces part = slice(pieces, first, length);
        const Pieces results = result != nullptr ? slice(result->pieces, first, length) : Pieces();
        Room in;
        if (reads) ACCORD_TRY(in.take(origin.place.where.runtime, length));
        if (reads) ACCORD_TRY(pack(in.data(), origin.place, slice(origin.pieces, first, length)));
        if (near == nullptr)
          return update_by_message(target, update, part, {in.data(), reads ? length_bytes : 0},
                                   result != nullptr ? Result{result->place, results} : Result(),
                                   result != nullptr, progress);
        Room out;
        if (result != nullptr) ACCORD_TRY(out.take(result->place.where.runtime, length));
        ACCORD_TRY(near->update(update, part, in.data(), out.data()));
        return result != nullptr ? unpack(result->place, results, out.data()) : Status();
      });
}

Status Window::compare_and_swap(int target, const Piece& element, const End& origin,
                                const End& compare, const End& result) {
  ACCORD_TRY(begin(target, {&element, 1}));
  const Target* const near = reached(target, {&element, 1});
  if (near != nullptr) {
    bool done = false;
    constexpr Update kReplaces{.op = Update::kReplace};
    ACCORD_TRY(near->update_at_once(kReplaces, element, origin, &compare, &result, done));
    if (done) return {};
  }
  std::byte in[kElementBytesMax];
  std::byte expected[kElementBytesMax];
  std::byte found[kElementBytesMax];
  const auto size_bytes = static_cast<std::size_t>(element.length_bytes);
  if (size_bytes > kElementBytesMax)
    return {StatusCode::invalid_argument, "an element that is too long to be compared"};
  ACCORD_TRY(pack(in, origin.place, origin.pieces));
  ACCORD_TRY(pack(expected, compare.place, compare.pieces));
  if (near != nullptr) {
    ACCORD_TRY(near->compare_and_swap(element, in, expected, found));
    return unpack(result.place, result.pieces, found);
  }
  Service::Question question;
  question.header.kind = Kind::compare;
  question.header.update.element_bytes = static_cast<std::uint32_t>(size_bytes);
  question.pieces = {&element, 1};
  question.data = {in, size_bytes};
  question.compare = {expected, size_bytes};
  return ask(target, question, {result.place, result.pieces}, nullptr);
}

Status Window::flush(int target) {
  // All that is in it: it goes together.
  if (rank_at(target).route == Route::direct) return batch_.finish(engine_);
  if (rank_at(target).route == Route::host) return {};
  Status status = is_mixed_ ? batch_.finish(engine_) : Status();
  engine_.wait_until([&] { return service_->is_quiet(target); });
  keep_first(status, service_->take_error(target));
  return status;
}

Status Window::flush_all() {
  Status first;
  for (int target = 0; target < size_; ++target) keep_first(first, flush(target));
  return first;
}

Status Window::check_lives(std::span<const int> ranks) {
  if (ranks.empty() && service_ != nullptr) service_->await(-1);
  for (int rank = 0; ranks.empty() && rank < size_; ++rank) ACCORD_TRY(check_peer(lines_, rank));
  for (const int rank : ranks) {
    if (service_ != nullptr) service_->await(rank);
    ACCORD_TRY(check_peer(lines_, rank));
  }
  return {};
}

void Window::wind_up() {
  if (service_ != nullptr) engine_.wait_until([&] { return service_->ends_asking(); });
}

Status Window::take_lock(int target, LockKind kind) {
  const Rank& rank = rank_at(target);
  if (rank.target.has_words()) {
    Words& words = rank.target.words();
    Status waited;
    LifeChecks checks;
    engine_.wait_until([&] {
      if (try_lock(words, kind, rank_)) return true;
      if (checks.is_due()) {
        waited = check_lock(words, lines_);
        if (service_ != nullptr) service_->await(holder_of(words));
      }
      engine_.port().poke();
      return !waited.ok();
    });
    return waited;
  }
  const auto progress = std::make_shared<Progress>();
  Service::Question question;
  question.header.kind = Kind::lock;
  question.header.lock = kind;
  ACCORD_TRY(ask(target, question, {}, progress));
  engine_.wait_until([&] { return progress->is_done(); });
  return progress->status;
}

Status Window::give_lock(int target, LockKind kind) {
  const Rank& rank = rank_at(target);
  if (rank.target.has_words()) {
    rma::unlock(rank.target.words(), kind);
    return {};
  }
  Service::Question question;
  question.header.kind = Kind::unlock;
  question.header.lock = kind;
  ACCORD_TRY(ask(target, question, {}, nullptr));
  return flush(target);
}

Status Window::attach(const void* base, std::uint64_t size_bytes, bool is_host) {
  const std::lock_guard<std::mutex> locked(attaching_mutex_);
  attached_.add(base, size_bytes);
  if (is_host || !is_mixed_) return {};
  DeviceRanges& ranges = rank_at(rank_).target.words().device_ranges;
  DeviceRanges::Entry entry;
  if (!ranges.next(entry)) {
    (void)attached_.remove(base);
    return {StatusCode::no_memory, "too many pieces of device memory are attached"};
  }
  entry.base = reinterpret_cast<std::uint64_t>(base);
  entry.size_bytes = size_bytes;
  entry.memory = export_attached(entry);
  ranges.add(entry);
  return {};
}

Status Window::detach(const void* base, bool& is_host) {
  const std::lock_guard<std::mutex> locked(attaching_mutex_);
  is_host = is_mixed_ && !rank_at(rank_).target.words().device_ranges.remove(base);
  return attached_.remove(base) ? Status()
                                : Status(StatusCode::out_of_window, "nothing is attached there");
}

Status Window::lock(int target, LockKind kind, bool is_checked) {
  Rank& rank = rank_at(target);
  if (rank.held != Held::none || all_locked_)
    return {StatusCode::no_epoch, fmt::format("rank {} is locked already", target)};
  if (is_checked) ACCORD_TRY(take_lock(target, kind));
  rank.held = !is_checked                   ? Held::unchecked
              : kind == LockKind::exclusive ? Held::exclusive
                                            : Held::shared;
  rank.is_of_all = false;
  return {};
}

Status Window::unlock(int target) {
  Rank& rank = rank_at(target);
  if (rank.held == Held::none)
    return {StatusCode::no_epoch, fmt::format("rank {} is not locked", target)};
  Status first = flush(target);
  const Held held = std::exchange(rank.held, Held::none);
  if (held != Held::unchecked)
    keep_first(first,
               give_lock(target, held == Held::exclusive ? LockKind::exclusive : LockKind::shared));
  return first;
}

Status Window::lock_all(bool is_checked) {
  if (all_locked_) return {StatusCode::no_epoch, "all ranks are locked already"};
  all_checked_ = is_checked;
  all_locked_ = true;
  Status held;
  for (int target = 0; held.ok() && target < size_; ++target)
    if (is_mixed_ || (target == rank_ && route(target) != Route::host)) held = hold_shared(target);
  if (!held.ok()) (void)unlock_all();
  return held;
}

Status Window::unlock_all() {
  if (!all_locked_) return {StatusCode::no_epoch, "MPI_Win_lock_all has not been called"};
  all_locked_ = false;
  Status first;
  for (int target = 0; target < size_; ++target)
    if (rank_at(target).is_of_all && rank_at(target).held != Held::none)
      keep_first(first, unlock(target));
  return first;
}

}  // namespace accord::rma

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the steps of a partitioned collective take: from what has come, or from this rank's own
// memory, into its place, where it is stored or combined with what is there.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "device/registry.h"
#include "partitioned/collective.h"

namespace accord::partitioned {

bool PartitionedCollective::may_take(std::int32_t partition) const {
  const Track& track = tracks_[static_cast<std::size_t>(partition)];
  if (track.stage != Track::Stage::taking || track.begun_bytes == track.wanted_bytes) return false;
  const int from = plan_.schedule[track.step].from;
  if (from == plan_.rank) return true;
  const auto found = arrived_.find({partition, process_of(from)});
  return found != arrived_.end() && !found->second.empty();
}

// As few as can be.
Status PartitionedCollective::begin_moves(Run run) {
  const Step& step = plan_.schedule[tracks_of(run).front().step];
  for (Run rest = run; rest.count > 0;) {
    Move& move = moves_.emplace_back();
    move.step = &step;
    move.run.first = rest.first;
    ACCORD_TRY(step.from == plan_.rank ? take_own(move, rest) : take_arrived(move, rest));
    for (Track& track : tracks_of(move.run)) track.begun_bytes += move.each_bytes;
    rest = {move.run.end(), rest.count - move.run.count};
  }
  return {};
}

// What is to be combined on a device goes there first.
bool PartitionedCollective::lifts(const Step& step) const {
  return step.combine != Combine::store && work_.on_device();
}

// How many partitions a move may be of. The CPU combines one at a time.
std::int32_t PartitionedCollective::together(const Step& step, std::uint64_t each_bytes) const {
  if (!step.into.whole() || (step.combine != Combine::store && !lifts(step)) || each_bytes == 0)
    return 1;
  const std::uint64_t most = std::max<std::uint64_t>(longest_message_ / each_bytes, 1);
  return static_cast<std::int32_t>(std::min<std::uint64_t>(most, partitions()));
}

// Parts of a partition by themselves.
Status PartitionedCollective::take_arrived(Move& move, Run rest) {
  const int process = process_of(move.step->from);
  const std::uint64_t wanted_bytes = tracks_of(rest).front().wanted_bytes;
  const std::int32_t most = std::min(rest.count, together(*move.step, wanted_bytes));
  for (std::int32_t partition = rest.first; move.run.count < most; ++partition) {
    const Track& track = tracks_[static_cast<std::size_t>(partition)];
    auto& box = arrived_.find({partition, process})->second;
    const Arrived& next = box.front();
    if (next.first_bytes != track.begun_bytes ||
        next.length_bytes > wanted_bytes - track.begun_bytes)
      return {StatusCode::truncated,
              fmt::format("partitioned: rank {} gives another number of bytes than the {} that "
                          "are taken from it",
                          move.step->from, wanted_bytes)};
    const bool is_part = next.length_bytes != wanted_bytes;
    if (is_part && move.run.count > 0) return {};
    move.first_bytes = track.begun_bytes;
    move.each_bytes = next.length_bytes;
    ++move.run.count;
    Arrived* const last = move.pieces.empty() ? nullptr : &move.pieces.back();
    if (last != nullptr && last->letter == next.letter &&
        last->bytes + last->length_bytes == next.bytes) {
      last->length_bytes += next.length_bytes;
    } else {
      move.pieces.push_back(next);
    }
    box.pop_front();
    if (is_part) return {};
  }
  return {};
}

// Straight where neither side has gaps.
Status PartitionedCollective::take_own(Move& move, Run rest) {
  const Step& step = *move.step;
  move.each_bytes = tracks_of(rest).front().wanted_bytes;
  move.run.count = step.own.whole() ? std::min(rest.count, together(step, move.each_bytes)) : 1;
  const core::CallEnd from = part(step.own, move.run);
  const core::CallEnd to = part(step.into, move.run);
  const std::size_t length = to.segment.size_bytes();
  if (from.segment.size_bytes() != length)
    return {StatusCode::truncated,
            fmt::format("partitioned: a rank gives itself {} bytes and takes {}",
                        from.segment.size_bytes(), length)};
  const bool one_runtime =
      from.runtime == nullptr || to.runtime == nullptr || from.runtime == to.runtime;
  if (step.combine == Combine::store && from.contiguous() && to.contiguous() && one_runtime) {
    move.stage = Move::Stage::moving;
    if (from.address(0) == to.address(0)) return {};
    const core::CallEnd& with = to.runtime != nullptr ? to : from;
    move.mover = with.runtime;
    const device::Copy copy{.dst = to.address(0), .src = from.address(0), .row_bytes = length};
    if (with.runtime != nullptr)
      return with.runtime->copy_begin_beside_kernels(with.device, {&copy, 1}, move.ticket);
    std::memcpy(copy.dst, copy.src, length);
    return {};
  }
  Arrived& own = move.pieces.emplace_back();
  own.letter = std::make_shared<PartitionedChannel::Letter>();
  own.length_bytes = length;
  ACCORD_TRY(table_.channel().take_memory(&staging_runtime(), length, *own.letter));
  own.bytes = own.letter->data();
  move.mover = from.runtime;
  return from.copy(core::CallEnd::Direction::pack, 0, length, own.bytes, move.ticket);
}

Status PartitionedCollective::advance_moves(bool& any) {
  for (auto next = moves_.begin(); next != moves_.end();) {
    const auto move = next++;
    bool done = false;
    ACCORD_TRY(advance(*move, done));
    if (!done) continue;
    end(*move);
    moves_.erase(move);
    any = true;
  }
  return {};
}

// As far as it can.
Status PartitionedCollective::advance(Move& move, bool& done) {
  for (;;) {
    bool here = move.ticket.handle == nullptr;
    if (!here) {
      const Status status = move.mover->copy_done(move.ticket, here);
      if (!status.ok()) move.ticket = {};
      ACCORD_TRY(status);
    }
    if (!here) return {};
    switch (move.stage) {
      case Move::Stage::landing:
        ACCORD_TRY(put(move));
        if (move.stage == Move::Stage::landing) return {};
        break;
      case Move::Stage::lifting:
        move.stage = Move::Stage::moving;
        ACCORD_TRY(work_.combine_lifted(
            move.step->combine, part(move.step->into, move.run), move.first_bytes, move.lifted,
            static_cast<std::size_t>(move.run.count) * move.each_bytes, move.ticket));
        break;
      case Move::Stage::moving:
        done = true;
        return {};
    }
  }
}

// Stays where it is as long as no memory is to be had for it.
Status PartitionedCollective::put(Move& move) {
  const Step& step = *move.step;
  const core::CallEnd into = part(step.into, move.run);
  move.mover = into.runtime;
  if (lifts(step)) {
    if (!take_scrap(move.lifted)) return {};
    move.stage = Move::Stage::lifting;
    std::vector<PartitionWork::Came> came;
    for (const Arrived& piece : move.pieces) came.push_back({piece.bytes, piece.length_bytes});
    return work_.lift(came, move.lifted, move.ticket);
  }
  move.stage = Move::Stage::moving;
  if (step.combine != Combine::store) {
    const Arrived& piece = move.pieces.front();
    return work_.combine(step.combine, into, move.first_bytes, piece.bytes, piece.length_bytes);
  }
  device::CopyBatch batch;
  std::uint64_t first = move.first_bytes;
  for (const Arrived& piece : move.pieces) {
    batch.add(
        into.copies(core::CallEnd::Direction::unpack, first, piece.length_bytes, piece.bytes));
    first += piece.length_bytes;
  }
  return into.carry(batch, move.ticket);
}

// While kernels may run only what has been taken before is given out, else any.
bool PartitionedCollective::take_scrap(core::DeviceScrap& scrap) {
  if (!has_prequest()) return true;
  if (scraps_.empty()) return false;
  scrap = std::move(scraps_.back());
  scraps_.pop_back();
  return true;
}

void PartitionedCollective::end(Move& move) {
  for (Track& track : tracks_of(move.run)) track.taken_bytes += move.each_bytes;
  if (move.lifted.data() != nullptr && has_prequest()) scraps_.push_back(std::move(move.lifted));
}

}  // namespace accord::partitioned

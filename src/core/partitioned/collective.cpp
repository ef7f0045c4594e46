// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/partitioned/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "device/registry.h"

namespace accord::core {

PartitionedCollective::PartitionedCollective(PartitionedTable& table, PartitionedCall call,
                                             CollectivePlan plan)
    : Partitioned(table, std::move(call)), plan_(std::move(plan)), tracks_(partitions()) {
  const auto meet = [&](int rank) {
    if (rank != plan_.rank && rank != Step::kNobody) peers_[process_of(rank)] = 0;
  };
  for (const Step& step : plan_.schedule) {
    meet(step.from);
    for (const Outgoing& outgoing : step.outgoing) meet(outgoing.peer);
  }
}

PartitionedCollective::~PartitionedCollective() {
  const std::lock_guard<std::mutex> locked(table_.mutex());
  table_.leave(*this);
  node_.reset();
}

device::DeviceRuntime& PartitionedCollective::staging_runtime() const {
  return call_.end.runtime != nullptr ? *call_.end.runtime : device::default_runtime();
}

Status PartitionedCollective::open() {
  const std::lock_guard<std::mutex> locked(table_.mutex());
  ACCORD_TRY(make_words(partitions() + device::partition_host_words(call_.partitions)));
  meet_on_node();
  ACCORD_TRY(open_work());
  table_.enter(*this);
  return node_ ? node_->open() : Status();
}

Status PartitionedCollective::open_work() {
  if (!plan_.reduction.type) return {};
  return work_.open(std::move(plan_.reduction), call_.partitions, plan_.result, staging_runtime());
}

Status PartitionedCollective::pready(std::int32_t low, std::int32_t high) {
  ACCORD_TRY(check_partition(low, high));
  if (!plan_.gives)
    return {StatusCode::invalid_argument, "MPI_Pready on a rank that gives nothing"};
  if (!started())
    return {StatusCode::invalid_argument, "MPI_Pready on a request that has not been started"};
  const std::uint32_t now = round();
  for (std::int32_t partition = low; partition <= high; ++partition) {
    if (word(static_cast<std::size_t>(partition)).exchange(now, std::memory_order_acq_rel) == now)
      return {StatusCode::invalid_argument,
              fmt::format("MPI_Pready: partition {} is ready already", partition)};
    note_host_mark(partition);
  }
  return {};
}

Status PartitionedCollective::parrived(std::int32_t partition, bool& arrived) {
  ACCORD_TRY(check_partition(partition, partition));
  if (!plan_.gets)
    return {StatusCode::invalid_argument, "MPI_Parrived on a rank that gets nothing"};
  arrived = !started() || arrival(partition).load(std::memory_order_acquire) == round();
  return {};
}

void PartitionedCollective::begin_round() {
  for (Track& track : tracks_) track = {};
  open_.resize(partitions());
  std::iota(open_.begin(), open_.end(), 0);
  gathered_ = 0;
  arrived_.clear();
  unmarked_ = open_;
  way_ = node_ ? NodeReduction::Way::unknown : NodeReduction::Way::messages;
  if (node_) fail_on_error(choose_way(NodeReduction::Opening::allowed));
  if (has_prequest()) fail_on_error(reserve());
}

// Pieces are at most as long as this rank's own settings have them.
std::uint64_t PartitionedCollective::longest_message() const {
  std::uint64_t longest = 0;
  for (const Step& step : plan_.schedule) {
    for (const Outgoing& outgoing : step.outgoing)
      longest = std::max<std::uint64_t>(longest, part(outgoing.place, 0).segment.size_bytes());
    if (step.from != Step::kNobody)
      longest = std::max<std::uint64_t>(longest, part(step.into, 0).segment.size_bytes());
  }
  return std::min(longest, longest_piece());
}

Status PartitionedCollective::reserve() {
  constexpr std::size_t kScraps = 2;
  if (way_ == NodeReduction::Way::kernels) return {};
  const std::uint64_t size_bytes = longest_message();
  keep_staging(size_bytes);
  while (work_.on_device() && scraps_.size() < kScraps) {
    DeviceScrap& scrap = scraps_.emplace_back();
    ACCORD_TRY(scrap.take(*work_.area().end.runtime, work_.area().end.device, size_bytes));
  }
  return {};
}

// Kernels mark and look, and the host moves: what they look at is in its memory from the start.
void PartitionedCollective::describe(accord_prequest& shown) const {
  shown.sides =
      (plan_.gives ? ACCORD_PARTITION_SENDS : 0) | (plan_.gets ? ACCORD_PARTITION_RECEIVES : 0);
  const bool on_node = way_ == NodeReduction::Way::kernels;
  if (on_node) node_->describe(shown.node);
  shown.partition_bytes = 1;
  shown.transfer_partitions = 1;
  shown.marks = call_.marks;
  shown.ready = reinterpret_cast<std::uint32_t*>(&word(0));
  shown.link = {.transfer_bytes = 1,
                .total_bytes = partitions(),
                .arrived = reinterpret_cast<std::uint32_t*>(&arrival(0)),
                .peer_ready = nullptr,
                .peer = nullptr};
  shown.state = on_node ? ACCORD_PARTITION_STATE_ON_NODE : ACCORD_PARTITION_STATE_CONNECTED;
}

void PartitionedCollective::note(int process, const wire::Header& header,
                                 std::span<const std::byte> body) {
  if (header.kind == wire::Kind::collective_ready) {
    note_ready(process, header);
  } else if (header.kind == wire::Kind::collective_failed) {
    note_failure_of_peer(header.round);
  } else if (node_) {
    node_->take(process, header.kind, body);
  }
}

void PartitionedCollective::note_ready(int process, const wire::Header& header) {
  const auto peer = peers_.find(process);
  if (header.first_bytes != plan_.fingerprint || (peer == peers_.end() && !node_)) {
    mismatch_ = true;
    return;
  }
  if (peer != peers_.end()) peer->second = header.round;
  if (node_) node_->note_messages(process, header.round);
}

// One that gives nothing may be rounds ahead.
bool PartitionedCollective::is_ready(int process) const {
  return static_cast<std::int32_t>(peers_.at(process) - round()) >= 0;
}

// Also the ranks of the node that this one exchanges nothing with, as long as these do not know
// whether kernels do it.
Status PartitionedCollective::tell_peers(wire::Kind kind, std::uint32_t told_round) {
  const bool all = node_ && !node_->is_settled();
  for (const int process : plan_.processes) {
    if (process == process_of(plan_.rank) || !(all || peers_.contains(process))) continue;
    ACCORD_TRY(table_.channel().post(process, {.kind = kind,
                                               .to = plan_.name.number,
                                               .round = told_round,
                                               .first_bytes = plan_.fingerprint,
                                               .lineage = plan_.name.lineage}));
  }
  return {};
}

void PartitionedCollective::tell_failure(std::uint32_t failed) {
  (void)tell_peers(wire::Kind::collective_failed, failed);
}

std::string PartitionedCollective::path() const {
  if (way_ == NodeReduction::Way::kernels) return "kernel";
  return peers_.empty() ? "nothing" : "messages";
}

stages::Stage PartitionedCollective::stage() const {
  return messages_.empty() ? stages::Stage::wait : stages::Stage::move;
}

// What is left of a round that has failed is for nobody.
void PartitionedCollective::take(int process, const wire::Header& header,
                                 std::span<const std::byte> body,
                                 PartitionedChannel::Letter& letter) {
  if (!started() || header.round != round()) return;
  if (header.transfer < 0 || header.transfer >= call_.partitions ||
      header.length_bytes != body.size()) {
    mismatch_ = true;
    return;
  }
  arrived_[{header.transfer, process}].push_back({.letter = std::move(letter),
                                                  .bytes = const_cast<std::byte*>(body.data()),
                                                  .first_bytes = header.first_bytes,
                                                  .length_bytes = header.length_bytes});
}

Status PartitionedCollective::step(HostPort& host, bool& done) {
  if (way_ == NodeReduction::Way::unknown) ACCORD_TRY(choose_way(opening()));
  switch (way_) {
    case NodeReduction::Way::unknown:
      return complaint();
    case NodeReduction::Way::kernels:
      return step_on_node(done);
    case NodeReduction::Way::messages:
      break;
  }
  return step_by_messages(host, done);
}

Status PartitionedCollective::step_by_messages(HostPort& host, bool& done) {
  if (told_round_ != round())
    ACCORD_TRY(tell_peers(wire::Kind::collective_ready, told_round_ = round()));
  if (!peers_.empty()) ACCORD_TRY(table_.poll());
  if (node_ && !node_->is_settled()) ACCORD_TRY(node_->join(next_round(round()), opening()));
  if (std::ranges::all_of(peers_, [&](const auto& peer) { return is_ready(peer.first); }))
    prepared_.store(round(), std::memory_order_release);
  Status status;
  std::erase_if(open_, [&](std::int32_t partition) {
    Track& track = tracks_[static_cast<std::size_t>(partition)];
    keep_first(status, advance(partition, track));
    return track.stage == Track::Stage::done;
  });
  ACCORD_TRY(status);
  ACCORD_TRY(send(host));
  done = open_.empty() && queued_.empty() && messages_.empty();
  return done ? Status() : complaint();
}

Status PartitionedCollective::complaint() const {
  if (mismatch_)
    return {StatusCode::mismatch,
            "partitioned: the ranks' collectives, numbers of partitions or sizes differ"};
  if (given_up_by_peer())
    return {StatusCode::device_error, "partitioned: another rank has given up after an error"};
  return {};
}

PipelineEnd PartitionedCollective::part(const Place& place, std::int32_t partition) const {
  switch (place.area) {
    case Area::contribution:
      return plan_.contribution.at(place, partition);
    case Area::result:
      return plan_.result.at(place, partition);
    case Area::work:
      break;
  }
  return work_.area().at(place, partition);
}

Status PartitionedCollective::advance(std::int32_t partition, Track& track) {
  using Stage = Track::Stage;
  for (Status status;;) {
    switch (track.stage) {
      case Stage::unmarked:
        if (plan_.gives &&
            word(static_cast<std::size_t>(partition)).load(std::memory_order_acquire) != round())
          return {};
        track.stage = Stage::between;
        break;
      case Stage::between:
        if (!begin_step(partition, track)) return {};
        break;
      case Stage::giving:
        if (track.unsent > 0) return {};
        track.stage = Stage::taking;
        break;
      case Stage::taking:
        ACCORD_TRY(take_next(partition, track));
        if (track.stage == Stage::taking) return {};
        break;
      case Stage::landing:
        if (!moved(track, status)) return status;
        ACCORD_TRY(put(partition, track));
        if (track.stage == Stage::landing) return {};
        break;
      case Stage::lifting:
        if (!moved(track, status)) return status;
        ACCORD_TRY(put_lifted(partition, track));
        break;
      case Stage::moving:
        if (!moved(track, status)) return status;
        track.taken_bytes += track.under_way.length_bytes;
        track.under_way = {};
        if (track.lifted.data() != nullptr && has_prequest())
          scraps_.push_back(std::move(track.lifted));
        track.lifted.put_back();
        track.stage = Stage::taking;
        break;
      case Stage::done:
        return {};
    }
  }
}

bool PartitionedCollective::all_gathered(Track& track) {
  if (!track.gathered) ++gathered_;
  track.gathered = true;
  return gathered_ == partitions();
}

// False: it cannot begin yet.
bool PartitionedCollective::begin_step(std::int32_t partition, Track& track) {
  if (track.step == plan_.schedule.size()) {
    arrival(partition).store(round(), std::memory_order_release);
    track.stage = Track::Stage::done;
    return true;
  }
  const Step& step = plan_.schedule[track.step];
  if (step.together && !all_gathered(track)) return false;
  for (const Outgoing& outgoing : step.outgoing) queue(partition, track, outgoing);
  track.taken_bytes = 0;
  track.wanted_bytes =
      step.from == Step::kNobody ? 0 : part(step.into, partition).segment.size_bytes();
  track.stage = Track::Stage::giving;
  return true;
}

// In pieces of whole elements where these are to be combined.
void PartitionedCollective::queue(std::int32_t partition, Track& track, const Outgoing& outgoing) {
  const PipelineEnd end = part(outgoing.place, partition);
  const std::uint64_t total = end.segment.size_bytes();
  std::uint64_t piece = longest_piece();
  if (total > 0) {
    const std::uint64_t element = end.segment.type->size_bytes();
    piece = std::max(piece / element * element, element);
  }
  for (std::uint64_t first = 0; first < total; first += piece) {
    Message& message = queued_.emplace_back();
    message.partition = partition;
    message.peer = outgoing.peer;
    message.end = end;
    message.first_bytes = first;
    message.length_bytes = std::min(piece, total - first);
    ++track.unsent;
  }
}

// Stays in its stage where nothing has come.
Status PartitionedCollective::take_next(std::int32_t partition, Track& track) {
  const Step& step = plan_.schedule[track.step];
  if (track.taken_bytes == track.wanted_bytes) {
    ++track.step;
    track.stage = Track::Stage::between;
    return {};
  }
  if (step.from == plan_.rank) return take_own(partition, track);
  const auto found = arrived_.find({partition, process_of(step.from)});
  if (found == arrived_.end() || found->second.empty()) return {};
  track.under_way = std::move(found->second.front());
  found->second.pop_front();
  const Arrived& piece = track.under_way;
  if (piece.first_bytes != track.taken_bytes ||
      piece.length_bytes > track.wanted_bytes - track.taken_bytes)
    return {StatusCode::truncated,
            fmt::format("partitioned: rank {} gives another number of bytes than the {} that are "
                        "taken from it",
                        step.from, track.wanted_bytes)};
  track.stage = Track::Stage::landing;
  return {};
}

// Straight where neither side has gaps.
Status PartitionedCollective::take_own(std::int32_t partition, Track& track) {
  const Step& step = plan_.schedule[track.step];
  const PipelineEnd from = part(step.own, partition);
  const PipelineEnd to = part(step.into, partition);
  const std::size_t length = track.wanted_bytes;
  if (from.segment.size_bytes() != length)
    return {StatusCode::truncated,
            fmt::format("partitioned: a rank gives itself {} bytes and takes {}",
                        from.segment.size_bytes(), length)};
  track.under_way.length_bytes = length;
  const bool one_runtime =
      from.runtime == nullptr || to.runtime == nullptr || from.runtime == to.runtime;
  if (step.combine == Combine::store && from.contiguous() && to.contiguous() && one_runtime) {
    track.stage = Track::Stage::moving;
    if (from.address(0) == to.address(0)) return {};
    const PipelineEnd& with = to.runtime != nullptr ? to : from;
    track.mover = with.runtime;
    const device::Copy copy{.dst = to.address(0), .src = from.address(0), .row_bytes = length};
    if (with.runtime != nullptr)
      return with.runtime->copy_begin(with.device, {&copy, 1}, track.ticket);
    std::memcpy(copy.dst, copy.src, length);
    return {};
  }
  ACCORD_TRY(table_.channel().take_memory(&staging_runtime(), length, track.under_way.letter));
  track.under_way.bytes = track.under_way.letter.data();
  track.mover = from.runtime;
  track.stage = Track::Stage::landing;
  return from.copy(PipelineEnd::Direction::pack, 0, length, track.under_way.bytes, track.ticket);
}

// What is under way, into its place. Stays where it is as long as no memory is to be had for it.
Status PartitionedCollective::put(std::int32_t partition, Track& track) {
  const Step& step = plan_.schedule[track.step];
  const PipelineEnd into = part(step.into, partition);
  const Arrived& piece = track.under_way;
  const bool lifts = step.combine != Combine::store && work_.on_device();
  if (lifts && !take_scrap(track.lifted)) return {};
  track.stage = Track::Stage::moving;
  track.mover = into.runtime;
  if (lifts) {
    track.stage = Track::Stage::lifting;
    return work_.lift(piece.bytes, piece.length_bytes, track.lifted, track.ticket);
  }
  if (step.combine != Combine::store)
    return work_.combine(step.combine, into, track.taken_bytes, piece.bytes, piece.length_bytes);
  return into.copy(PipelineEnd::Direction::unpack, track.taken_bytes, piece.length_bytes,
                   piece.bytes, track.ticket);
}

// While kernels may run only what has been taken before is given out, else any.
bool PartitionedCollective::take_scrap(DeviceScrap& scrap) {
  if (!has_prequest()) return true;
  if (scraps_.empty()) return false;
  scrap = std::move(scraps_.back());
  scraps_.pop_back();
  return true;
}

Status PartitionedCollective::put_lifted(std::int32_t partition, Track& track) {
  const Step& step = plan_.schedule[track.step];
  track.stage = Track::Stage::moving;
  return work_.combine_lifted(step.combine, part(step.into, partition), track.taken_bytes,
                              track.lifted, track.under_way.length_bytes, track.ticket);
}

bool PartitionedCollective::moved(Track& track, Status& status) {
  bool done = track.ticket.handle == nullptr;
  if (!done) status = track.mover->copy_done(track.ticket, done);
  if (!status.ok()) track.ticket = {};
  return done && status.ok();
}

}  // namespace accord::core

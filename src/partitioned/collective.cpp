// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "partitioned/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/config.h"
#include "device/registry.h"

namespace accord::partitioned {
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
  longest_message_ = find_longest_message();
  table_.enter(*this);
  return node_ ? node_->open() : Status();
}

// A short reduction of several steps is made on the host, as MPI_Allreduce is up to that length:
// two copies a step would take longer than the CPU does.
Status PartitionedCollective::open_work() {
  if (!plan_.reduction.type) return {};
  const auto combined = std::ranges::count_if(plan_.schedule, [&](const Step& step) {
    return step.combine != Combine::store && step.from != plan_.rank;
  });
  const std::uint64_t each_bytes = plan_.reduction.count * plan_.reduction.type->size_bytes();
  const bool is_short = round_bytes(each_bytes) < config().two_level_bytes;
  const auto where =
      combined > 1 && is_short ? PartitionWork::Where::host : PartitionWork::Where::device;
  return work_.open(std::move(plan_.reduction), call_.partitions, plan_.result, where,
                    staging_runtime());
}

Status PartitionedCollective::pready(std::int32_t low, std::int32_t high) {
  ACCORD_TRY(check_partition(low, high));
  if (!plan_.gives) return {StatusCode::invalid_argument, "this rank gives nothing"};
  if (!started()) return {StatusCode::invalid_argument, "the request has not been started"};
  const std::uint32_t now = round();
  for (std::int32_t partition = low; partition <= high; ++partition) {
    if (word(static_cast<std::size_t>(partition)).exchange(now, std::memory_order_acq_rel) == now)
      return {StatusCode::invalid_argument,
              fmt::format("partition {} is ready already", partition)};
    note_host_mark(partition);
  }
  return {};
}

Status PartitionedCollective::parrived(std::int32_t partition, bool& arrived) {
  ACCORD_TRY(check_partition(partition, partition));
  if (!plan_.gets) return {StatusCode::invalid_argument, "this rank gets nothing"};
  arrived = !started() || arrival(partition).load(std::memory_order_acquire) == round();
  return {};
}

void PartitionedCollective::begin_round() {
  for (Track& track : tracks_) track = {};
  open_.resize(partitions());
  std::iota(open_.begin(), open_.end(), 0);
  marked_ = gathered_ = 0;
  arrived_.clear();
  unmarked_ = open_;
  way_ = node_ ? NodeReduction::Way::unknown : NodeReduction::Way::messages;
  if (node_) fail_on_error(choose_way(NodeReduction::Opening::allowed));
  if (has_prequest()) fail_on_error(reserve());
}

// Of one partition, or of several. Pieces are at most as long as this rank's own settings have
// them.
std::uint64_t PartitionedCollective::find_longest_message() const {
  std::uint64_t longest = 0;
  for (const Step& step : plan_.schedule) {
    for (const Outgoing& outgoing : step.outgoing)
      longest = std::max<std::uint64_t>(longest, part(outgoing.place, 0).segment.size_bytes());
    if (step.from != Step::kNobody)
      longest = std::max<std::uint64_t>(longest, part(step.into, 0).segment.size_bytes());
  }
  const std::uint64_t several =
      std::min(round_bytes(longest), together_bytes(round_bytes(longest)));
  return std::min(std::max(longest, several), longest_piece());
}

Status PartitionedCollective::reserve() {
  constexpr std::size_t kScraps = 4;
  if (way_ == NodeReduction::Way::kernels) return {};
  keep_staging(longest_message_);
  while (work_.on_device() && scraps_.size() < kScraps) {
    core::DeviceScrap& scrap = scraps_.emplace_back();
    ACCORD_TRY(scrap.take(*work_.area().end.runtime, work_.area().end.device, longest_message_));
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
                .transfers = partitions(),
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

// Also the ranks of the node that this one exchanges nothing with, unless all know that kernels do
// not do it.
Status PartitionedCollective::tell_peers(wire::Kind kind, std::uint32_t told_round) {
  const bool all = node_ && (!node_->is_settled() || node_->is_used());
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
  const std::int64_t end = std::int64_t{header.transfer} + header.partitions;
  if (header.transfer < 0 || header.partitions < 1 || end > call_.partitions ||
      header.length_bytes != body.size() ||
      body.size() % static_cast<std::size_t>(header.partitions) != 0) {
    mismatch_ = true;
    return;
  }
  const auto shared = std::make_shared<PartitionedChannel::Letter>(std::move(letter));
  const std::size_t each_bytes = body.size() / static_cast<std::size_t>(header.partitions);
  auto* bytes = const_cast<std::byte*>(body.data());
  for (std::int32_t partition = header.transfer; partition < end; ++partition) {
    arrived_[{partition, process}].push_back({.letter = shared,
                                              .bytes = bytes,
                                              .first_bytes = header.first_bytes,
                                              .length_bytes = each_bytes});
    bytes += each_bytes;
  }
}

Status PartitionedCollective::step(core::HostPort& host, bool& done) {
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

Status PartitionedCollective::step_by_messages(core::HostPort& host, bool& done) {
  if (told_round_ != round())
    ACCORD_TRY(tell_peers(wire::Kind::collective_ready, told_round_ = round()));
  if (!peers_.empty()) ACCORD_TRY(table_.poll());
  if (node_ && !node_->is_settled()) ACCORD_TRY(node_->join(next_round(round()), opening()));
  // What is marked is packed before peers have started, but for the first time.
  const auto knows_of = [&](const auto& peer) {
    return (!node_ || node_->is_settled()) ? peer.second != 0 : is_ready(peer.first);
  };
  if (std::ranges::all_of(peers_, knows_of)) prepared_.store(round(), std::memory_order_release);
  ACCORD_TRY(advance());
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

core::CallEnd PartitionedCollective::part(const Place& place, Run run) const {
  switch (place.area) {
    case Area::contribution:
      return plan_.contribution.at(place, run.first, run.count);
    case Area::result:
      return plan_.result.at(place, run.first, run.count);
    case Area::work:
      break;
  }
  return work_.area().at(place, run.first, run.count);
}

Status PartitionedCollective::advance() {
  for (bool any = true; any;) {
    any = false;
    ACCORD_TRY(for_each_run([&](std::int32_t partition) { return may_begin(partition); },
                            [&](Run run) {
                              begin_step(run, any);
                              return Status();
                            }));
    std::erase_if(open_, [&](std::int32_t partition) {
      return tracks_[static_cast<std::size_t>(partition)].stage == Track::Stage::done;
    });
    end_steps(any);
    ACCORD_TRY(for_each_run([&](std::int32_t partition) { return may_take(partition); },
                            [&](Run run) { return begin_moves(run); }));
    ACCORD_TRY(advance_moves(any));
  }
  return {};
}

template <class May, class Visit>
Status PartitionedCollective::for_each_run(May may, Visit visit) {
  Run run;
  const auto step_of = [&](std::int32_t partition) {
    return tracks_[static_cast<std::size_t>(partition)].step;
  };
  for (const std::int32_t partition : open_) {
    if (!may(partition)) continue;
    if (run.count > 0 && (run.end() != partition || step_of(run.first) != step_of(partition))) {
      ACCORD_TRY(visit(run));
      run.count = 0;
    }
    if (run.count++ == 0) run.first = partition;
  }
  return run.count > 0 ? visit(run) : Status();
}

bool PartitionedCollective::all_gathered(Track& track) {
  if (!track.gathered) ++gathered_;
  track.gathered = true;
  return gathered_ == partitions();
}

bool PartitionedCollective::may_begin(std::int32_t partition) {
  const auto number = static_cast<std::size_t>(partition);
  Track& track = tracks_[number];
  if (track.stage == Track::Stage::unmarked) {
    if (plan_.gives && word(number).load(std::memory_order_acquire) != round()) return false;
    ++marked_;
    track.stage = Track::Stage::between;
  }
  if (track.stage != Track::Stage::between) return false;
  const bool is_last = track.step == plan_.schedule.size();
  return is_last || !plan_.schedule[track.step].together || all_gathered(track);
}

void PartitionedCollective::begin_step(Run run, bool& any) {
  const std::size_t number = tracks_of(run).front().step;
  if (number == plan_.schedule.size()) {
    for (std::int32_t partition = run.first; partition < run.end(); ++partition)
      arrival(partition).store(round(), std::memory_order_release);
    for (Track& track : tracks_of(run)) track.stage = Track::Stage::done;
    return;
  }
  const Step& step = plan_.schedule[number];
  if (waits_for_company(step, run)) return;
  const std::uint64_t wanted_bytes =
      step.from == Step::kNobody ? 0 : part(step.into, run.first).segment.size_bytes();
  for (Track& track : tracks_of(run)) {
    track.stage = Track::Stage::giving;
    track.begun_bytes = track.taken_bytes = 0;
    track.wanted_bytes = wanted_bytes;
  }
  for (const Outgoing& outgoing : step.outgoing) queue(run, outgoing);
  any = true;
}

// While messages are being packed, what is marked meanwhile waits for that, to go together.
bool PartitionedCollective::waits_for_company(const Step& step, Run run) const {
  if (step.outgoing.empty() || marked_ == partitions()) return false;
  const Place& place = step.outgoing.front().place;
  const std::uint64_t each_bytes = part(place, run.first).segment.size_bytes();
  const std::uint64_t run_bytes = each_bytes * static_cast<std::uint64_t>(run.count);
  return place.whole() && run_bytes < together_bytes(round_bytes(each_bytes)) &&
         std::ranges::count_if(messages_, [](const Message& message) { return !message.sent; }) >=
             kPackingMax;
}

// In pieces of whole elements where these are to be combined; short partitions together.
void PartitionedCollective::queue(Run run, const Outgoing& outgoing) {
  const std::uint64_t each_bytes = part(outgoing.place, run.first).segment.size_bytes();
  if (each_bytes == 0) return;
  const auto together = outgoing.place.whole()
                            ? static_cast<std::int32_t>(std::max<std::uint64_t>(
                                  together_bytes(round_bytes(each_bytes)) / each_bytes, 1))
                            : 1;
  for (Run rest = run; rest.count > 0;) {
    const Run now{rest.first, std::min(rest.count, together)};
    rest = {now.end(), rest.count - now.count};
    const core::CallEnd end = part(outgoing.place, now);
    const std::uint64_t element = end.segment.type->size_bytes();
    const std::uint64_t total = end.segment.size_bytes();
    const std::uint64_t longest = piece_bytes(each_bytes, round_bytes(each_bytes));
    // Several partitions are one piece: who takes them knows where each begins.
    const std::uint64_t piece =
        now.count > 1 ? total : std::max(longest / element * element, element);
    for (std::uint64_t first = 0; first < total; first += piece) {
      Message& message = queued_.emplace_back();
      message.run = now;
      message.peer = outgoing.peer;
      message.end = end;
      message.first_bytes = first;
      message.length_bytes = std::min(piece, total - first);
      for (Track& track : tracks_of(now)) ++track.unsent;
    }
  }
}

// What a rank has for itself may go to its place while it goes out, too. Contributions and results
// may lie in the same memory.
bool PartitionedCollective::overwrites_what_goes_out(const Step& step) const {
  const auto is_apart = [&](const Outgoing& outgoing) {
    const Place& place = outgoing.place;
    if (step.from == plan_.rank && step.combine == Combine::store) return place == step.own;
    const auto end = [](const Place& of) {
      return of.count == Place::kRest ? Place::kRest : of.first + of.count;
    };
    return place.area == step.into.area && place.block == step.into.block &&
           (end(place) <= step.into.first || end(step.into) <= place.first);
  };
  return step.from != Step::kNobody && !std::ranges::all_of(step.outgoing, is_apart);
}

void PartitionedCollective::end_steps(bool& any) {
  for (const std::int32_t partition : open_) {
    Track& track = tracks_[static_cast<std::size_t>(partition)];
    if (track.stage == Track::Stage::giving &&
        (track.unsent == 0 || !overwrites_what_goes_out(plan_.schedule[track.step])))
      track.stage = Track::Stage::taking;
    if (track.stage != Track::Stage::taking || track.unsent != 0 ||
        track.taken_bytes != track.wanted_bytes)
      continue;
    ++track.step;
    track.stage = Track::Stage::between;
    any = true;
  }
}

}  // namespace accord::partitioned

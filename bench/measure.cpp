// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "bench/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "bench/capacity.h"
#include "bench/data.h"
#include "bench/statistics.h"

namespace accord::bench {
namespace {

double now_us() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// One way at one size, while it is measured.
struct Track {
  Way* way = nullptr;
  WayResult result;
  double call_us = 0;       // a first estimate, the same on all ranks
  std::size_t samples = 0;  // to be taken
  std::vector<double> times_us;

  bool runs() const { return result.why_not.empty(); }
};

// How many calls are timed together, how many times, and in how many blocks.
struct Plan {
  int batch = 1;
  std::size_t blocks = 1;
};

class SizeMeasurement {
 public:
  SizeMeasurement(const Session& session, const Trial& trial, Progress& progress)
      : session_(session), trial_(trial), progress_(progress) {}

  void prepare(const std::vector<Way*>& ways);
  void run();
  std::vector<WayResult> finish();

 private:
  void warm_up(Track& track);
  double run_bounded(Track& track, int calls);
  void leave_hopeless();
  void make_plan();
  void land_for(const Way& way) const;
  void run_block(Track& track, std::size_t block);
  void take_sample(Track& track);
  void verify(Track& track);
  bool is_ours(const Track& track) const { return &track == &tracks_.front(); }
  void leave(Track& track, std::string why_not);
  void note_path(Track& track);
  void reduce_times(Track& track);
  bool clock_counts() const {
    const int timed = trial_.operation->ranks_timed;
    return timed == 0 || session_.rank < timed;
  }
  std::string title() const {
    return fmt::format("{} {}", trial_.operation->name,
                       size_text(trial_.shape.elements * session_.element->size_bytes));
  }

  const Session& session_;
  const Trial& trial_;
  Progress& progress_;
  std::vector<Track> tracks_;
  Plan plan_;
};

void SizeMeasurement::prepare(const std::vector<Way*>& ways) {
  for (Way* way : ways) {
    Track track;
    track.way = way;
    track.result.way = way->name();
    track.result.algorithm = way->algorithm();
    track.result.why_not = session_.first_text(way->why_not(*trial_.operation));
    if (track.runs()) {
      std::string local;
      try {
        local = way->prepare(trial_);
      } catch (const std::exception& error) {
        local = error.what();
      }
      track.result.why_not = session_.first_text(local);
      if (!track.runs()) way->release();
    }
    tracks_.push_back(std::move(track));
  }
}

// Long enough for what a library does once for a buffer: open the peers' memory, agree on a way.
// With less, few samples are planned for it, and some of them are of that.
void SizeMeasurement::warm_up(Track& track) {
  constexpr int kProbesMin = 1;
  constexpr int kCallsOfLong = 8;
  progress_.show(fmt::format("{}: {}: warm-up", title(), track.result.way));
  const std::size_t size_bytes = trial_.shape.elements * session_.element->size_bytes;
  int calls = session_.options.warmup;
  if (calls < 0) calls = size_bytes <= (64U << 10) ? 20 : kCallsOfLong;
  run_bounded(track, calls);
  track.call_us = session_.max(run_bounded(track, std::max(calls, kProbesMin)));
}

// The time of the fastest of so many calls; of a way that takes long the first of them tell enough.
// All ranks make equally many.
double SizeMeasurement::run_bounded(Track& track, int calls) {
  const double limit_us = std::max(session_.options.seconds_per_size, 0.25) * 1e6;
  double fastest_us = 1e30;
  double spent_us = 0;
  for (int call = 0; call < calls && session_.max(spent_us) < limit_us; ++call) {
    const double begin_us = now_us();
    track.way->run();
    const double call_us = now_us() - begin_us;
    fastest_us = std::min(fastest_us, call_us);
    spent_us += call_us;
  }
  return fastest_us;
}

void SizeMeasurement::leave(Track& track, std::string why_not) {
  track.result.why_not = std::move(why_not);
  track.way->release();
}

void SizeMeasurement::leave_hopeless() {
  const double factor = session_.options.give_up;
  if (factor <= 0) return;
  double fastest_us = 1e30;
  for (const Track& track : tracks_) {
    if (track.runs()) fastest_us = std::min(fastest_us, track.call_us);
  }
  for (Track& track : tracks_) {
    if (!track.runs() || is_ours(track) || track.call_us <= factor * fastest_us) continue;
    leave(track,
          fmt::format("takes {:.0f} times as long as the fastest", track.call_us / fastest_us));
    track.way->note_left(*trial_.operation, trial_.shape.elements * session_.element->size_bytes);
  }
}

void SizeMeasurement::make_plan() {
  constexpr double kSampleUs = 30;  // so that reading the clock costs less than a thousandth
  constexpr double kBarrierUs = 1;
  constexpr double kBatchMax = 100;
  constexpr double kSamplesMin = 5;
  constexpr double kSamplesMax = 2000;
  constexpr std::size_t kBlocksMax = 20;
  const Options& options = session_.options;
  double fastest_us = 1e30;
  std::size_t running = 0;
  for (const Track& track : tracks_) {
    if (!track.runs()) continue;
    fastest_us = std::min(fastest_us, track.call_us);
    ++running;
  }
  if (options.batch > 0) {
    plan_.batch = options.batch;
  } else if (trial_.operation->synchronises) {
    // Few calls asked for still make several samples.
    const double batch_max = options.iterations > 0
                                 ? std::clamp(options.iterations / kSamplesMin, 1.0, kBatchMax)
                                 : kBatchMax;
    plan_.batch = static_cast<int>(std::clamp(std::ceil(kSampleUs / fastest_us), 1.0, batch_max));
  }
  std::size_t fewest = SIZE_MAX;
  for (Track& track : tracks_) {
    if (!track.runs()) continue;
    track.result.calls_per_sample = plan_.batch;
    const double budget_us = options.seconds_per_size * 1e6 / static_cast<double>(running);
    const double sample_us = (track.call_us + options.gap_us) * plan_.batch + kBarrierUs;
    const double wanted = options.iterations > 0
                              ? std::ceil(static_cast<double>(options.iterations) / plan_.batch)
                              : std::clamp(budget_us / sample_us, kSamplesMin, kSamplesMax);
    track.samples = static_cast<std::size_t>(wanted);
    track.times_us.reserve(track.samples);
    fewest = std::min(fewest, track.samples);
  }
  plan_.blocks = std::min(fewest, kBlocksMax);
}

// Keeps this rank busy; returns for how long.
double work(double time_us) {
  if (time_us <= 0) return 0;
  const double begin_us = now_us();
  double spent_us = 0;
  while (spent_us < time_us) spent_us = now_us() - begin_us;
  return spent_us;
}

void SizeMeasurement::take_sample(Track& track) {
  session_.barrier();
  const double begin_us = now_us();
  double other_work_us = 0;
  for (int call = 0; call < plan_.batch; ++call) {
    other_work_us += work(session_.options.gap_us);
    track.way->run();
  }
  const double time_us = (now_us() - begin_us - other_work_us) / plan_.batch;
  track.times_us.push_back(clock_counts() ? time_us : 0);
}

void SizeMeasurement::run_block(Track& track, std::size_t block) {
  progress_.show(
      fmt::format("{}: {}: block {} of {}", title(), track.result.way, block + 1, plan_.blocks));
  const std::size_t end = track.samples * (block + 1) / plan_.blocks;
  while (track.times_us.size() < end) take_sample(track);
}

// MPI finds what the program's copies bring by itself; the streams of peers wait for none of them.
void SizeMeasurement::land_for(const Way& way) const {
  if (!way.is_accord() && session_.cuda != nullptr) session_.cuda->synchronize(nullptr);
}

// A B, B A, A B, …: what drifts slowly meets both sides of every comparison alike.
void SizeMeasurement::run() {
  std::vector<Track*> order;
  for (Track& track : tracks_) {
    if (track.runs()) order.push_back(&track);
  }
  if (order.empty()) return;
  const void* filled = nullptr;
  for (Track* track : order) {
    const Buffers buffers = track->way->buffers(trial_);
    // Ways on the same buffers send the same.
    if (filled == nullptr || filled != buffers.send)
      fill_send(session_, trial_, buffers, fresh_pattern(session_, *trial_.operation));
    filled = buffers.send;
    land_for(*track->way);
    warm_up(*track);
  }
  leave_hopeless();
  std::erase_if(order, [](const Track* track) { return !track->runs(); });
  make_plan();
  for (std::size_t block = 0; block < plan_.blocks; ++block) {
    for (Track* track : order) run_block(*track, block);
    std::reverse(order.begin(), order.end());
  }
}

void SizeMeasurement::note_path(Track& track) {
  if (track.way->is_accord()) track.result.path = session_.accord->last_path();
}

// After the timed calls, on data they have not seen, so that a stale result cannot pass.
void SizeMeasurement::verify(Track& track) {
  note_path(track);
  if (session_.options.verify == Verify::off || !trial_.operation->has_data) return;
  progress_.show(fmt::format("{}: {}: checking", title(), track.result.way));
  const Buffers buffers = track.way->buffers(trial_);
  const Pattern pattern = fresh_pattern(session_, *trial_.operation);
  fill_send(session_, trial_, buffers, pattern);
  poison_recv(session_, trial_, buffers);
  land_for(*track.way);
  session_.barrier();
  track.way->run();
  note_path(track);
  static const char* corrupt = std::getenv("ACCORD_TEST_BENCH_CORRUPT");
  if (is_ours(track) && corrupt != nullptr && *corrupt == '1')
    corrupt_recv(session_, trial_, buffers);
  const Verdict verdict = check_recv(session_, trial_, buffers, pattern);
  track.result.verified =
      static_cast<std::uint64_t>(session_.sum(static_cast<double>(verdict.checked)));
  const auto bad_ranks = static_cast<int>(session_.sum(verdict.wrong > 0 ? 1 : 0));
  const std::string first = session_.first_text(
      verdict.wrong == 0 ? "" : fmt::format("rank {}: {}", session_.rank, verdict.first));
  if (bad_ranks > 1) {
    track.result.fault = fmt::format("{} (wrong on {} ranks)", first, bad_ranks);
  } else {
    track.result.fault = first;
  }
}

void SizeMeasurement::reduce_times(Track& track) {
  session_.max_to_root(track.times_us.data(), static_cast<int>(track.times_us.size()));
  const double parts = trial_.operation->parts(trial_.shape);
  for (double& time_us : track.times_us) time_us /= parts;
  track.result.block_medians_us = block_medians(track.times_us, plan_.blocks);
  track.result.samples_us = std::move(track.times_us);
}

std::vector<WayResult> SizeMeasurement::finish() {
  std::vector<WayResult> results;
  for (Track& track : tracks_) {
    if (track.runs()) {
      verify(track);
      reduce_times(track);
      track.result.detail = track.way->detail();
      track.way->release();
    }
    results.push_back(std::move(track.result));
  }
  return results;
}

Extent checked_extent(const Operation& operation, const Shape& shape) {
  return operation.has_data ? operation.extent(shape) : Extent{};
}

// What the records tell of each way where this size cannot be measured at all.
SizeResult without_ways(SizeResult result, std::string why_not, const std::vector<Way*>& ways) {
  for (const Way* way : ways) {
    WayResult left;
    left.way = way->name();
    left.algorithm = way->algorithm();
    left.why_not = why_not;
    result.ways.push_back(std::move(left));
  }
  result.why_not = std::move(why_not);
  return result;
}

}  // namespace

SizeResult measure_size(const Session& session, const Operation& operation, std::size_t size_bytes,
                        const std::vector<Way*>& ways, ProgramBuffers& buffers,
                        Progress& progress) {
  SizeResult result;
  result.size_bytes = size_bytes;
  const std::size_t element_bytes = session.element->size_bytes;
  const auto shape = make_shape(operation, {.rank = session.rank,
                                            .ranks = session.ranks,
                                            .size_bytes = size_bytes,
                                            .element_bytes = element_bytes,
                                            .window = session.options.window});
  if (!shape) {
    result.shape.elements = size_bytes / element_bytes;
    return without_ways(result, "the counts or displacements do not fit into an int", ways);
  }
  result.shape = *shape;
  Trial trial{.operation = &operation,
              .shape = *shape,
              .extent = checked_extent(operation, *shape),
              .buffers = {}};
  std::string local = capacity_problem(session, trial, ways.size());
  std::string why_not = session.first_text(local);
  if (!why_not.empty()) return without_ways(result, std::move(why_not), ways);
  try {
    buffers.send.reserve(trial.extent.send * element_bytes);
    buffers.recv.reserve(trial.extent.recv * element_bytes);
  } catch (const std::exception& error) {
    local = error.what();
  }
  why_not = session.first_text(local);
  if (!why_not.empty()) return without_ways(result, std::move(why_not), ways);
  trial.buffers = {buffers.send.data(), buffers.recv.data()};

  SizeMeasurement measurement(session, trial, progress);
  measurement.prepare(ways);
  measurement.run();
  result.ways = measurement.finish();
  return result;
}

}  // namespace accord::bench

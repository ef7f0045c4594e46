// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/cuda/partitions.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "device/cuda/kernels.h"
#include "device/cuda/modules.h"
#include "device/cuda/partition_kernels.h"
#include "device/reduce_functions.h"

namespace accord::device::cuda {
namespace {

// How long the kernel stays where nothing becomes ready, and how long it then stays away, for what
// may have waited for it to start.
constexpr std::uint64_t kPatienceNs = 2'000'000;
constexpr std::chrono::microseconds kPause{50};

// Polls between two looks whether the kernel still runs.
constexpr unsigned kPollsPerLook = 1 << 14;

Kernels& kernels() {
  static Kernels& loaded = *new Kernels(&KernelImages::partitions, "reductions of partitions");
  return loaded;
}

const char* kernel_name(ReduceOp op, Element element) {
  struct Kernel {
    Element element;
    ReduceOp op;
    const char* name;
  };
  static constexpr Kernel kKernels[] = {
#define ACCORD_KERNEL(named, type, operation) \
  {Element::named, ReduceOp::operation, "accord_partitions_" #named "_" #operation},
      ACCORD_PARTITION_REDUCTIONS(ACCORD_KERNEL)
#undef ACCORD_KERNEL
  };
  const Element calculated = arithmetic_element(op, element);
  for (const Kernel& kernel : kKernels)
    if (kernel.element == calculated && kernel.op == op) return kernel.name;
  return nullptr;
}

// Streams of our own, ahead of the program's kernels, one for each reducer: two on one stream would
// wait for each other. By the id of their context; never destroyed, since to make one takes long.
class Streams {
 public:
  Status take(const Driver& driver, unsigned long long context, Stream& stream) {
    const std::lock_guard lock(mutex_);
    auto& idle = idle_[context];
    if (!idle.empty()) {
      stream = idle.back();
      idle.pop_back();
      return {};
    }
    int least = 0;
    int greatest = 0;
    ACCORD_TRY(status_of(driver, driver.stream_priority_range(&least, &greatest),
                         symbol::stream_priority_range));
    return status_of(driver,
                     driver.stream_create_with_priority(&stream, kStreamNonBlocking, greatest),
                     symbol::stream_create_with_priority);
  }
  void put_back(unsigned long long context, Stream stream) {
    const std::lock_guard lock(mutex_);
    idle_[context].push_back(stream);
  }

 private:
  std::mutex mutex_;
  std::map<unsigned long long, std::vector<Stream>> idle_;
};

Streams& streams() {
  static Streams& instance = *new Streams;
  return instance;
}

// How far apart the buffers are, and what they have in common: what decides how they are read.
void choose_access(const PartitionReduction& reduction, PartitionSchedule& schedule) {
  const auto start = reinterpret_cast<std::uintptr_t>(reduction.targets[0]);
  std::uintptr_t any = 0;
  std::uintptr_t differing = 0;
  const auto look = [&](const void* pointer) {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    any |= address;
    differing |= address ^ start;
  };
  std::for_each_n(reduction.sources, reduction.source_count, look);
  std::for_each_n(reduction.targets, reduction.target_count, look);
  schedule.aligned = any % element_alignment(reduction.element) == 0 ? 1 : 0;
  schedule.vectors = differing % kReduceVectorBytes == 0 ? 1 : 0;
}

class CudaPartitionReducer final : public PartitionReducer {
 public:
  CudaPartitionReducer(const Driver& driver, const PartitionReduction& reduction,
                       std::uint32_t* arrived)
      : driver_(driver), arrived_(arrived) {
    schedule_.reduction = reduction;
    schedule_.share = reduction.shared ? share_elements(reduction.count, reduction.ranks,
                                                        element_bytes(reduction.element))
                                       : reduction.count;
    schedule_.shares = static_cast<std::uint32_t>(share_count(reduction));
    schedule_.slices = static_cast<std::uint32_t>(partition_slices(reduction));
    schedule_.slices_together =
        schedule_.slices / static_cast<std::uint32_t>(std::max(reduction.pairs, 1));
    schedule_.teams = static_cast<std::uint32_t>(std::clamp(
        kPartitionBlocksMax / static_cast<int>(schedule_.slices), 1, reduction.partitions));
    schedule_.patience_ns = kPatienceNs;
    schedule_.arrived = arrived;
    schedule_.left = arrived + reduction.partitions;
    choose_access(reduction, schedule_);
  }
  ~CudaPartitionReducer() override;
  CudaPartitionReducer(const CudaPartitionReducer&) = delete;
  CudaPartitionReducer& operator=(const CudaPartitionReducer&) = delete;

  Status open(const ContextScope& scope);
  Status start(std::uint32_t round) override;
  Status mark(std::span<const std::int32_t> partitions) override;
  Status progress() override;

 private:
  Status enter(ContextScope& scope) const;
  Status launch();
  bool all_arrived() const;
  bool has_left() const {
    return std::atomic_ref(*schedule_.left).load(std::memory_order_acquire) == schedule_.launch;
  }

  const Driver& driver_;
  std::uint32_t* const arrived_;
  PartitionSchedule schedule_{};
  Context context_ = nullptr;
  unsigned long long id_ = 0;  // of the context, never used twice
  Function function_ = nullptr;
  Function mark_function_ = nullptr;
  Stream stream_ = nullptr;
  std::vector<CopyTicket> marking_;
  unsigned polls_ = 0;
  bool away_ = false;  // the kernel has left before the round has ended
  std::chrono::steady_clock::time_point away_since_;
};

Status CudaPartitionReducer::open(const ContextScope& scope) {
  const PartitionReduction& reduction = schedule_.reduction;
  context_ = scope.context();
  ACCORD_TRY(status_of(driver_, driver_.context_get_id(context_, &id_), symbol::context_get_id));
  ACCORD_TRY(
      kernels().find(driver_, context_, kernel_name(reduction.op, reduction.element), function_));
  ACCORD_TRY(kernels().find(driver_, context_, "accord_partitions_mark", mark_function_));
  return streams().take(driver_, id_, stream_);
}

// A program that resets its device takes the stream along.
Status CudaPartitionReducer::enter(ContextScope& scope) const {
  unsigned long long id = 0;
  Result result = driver_.context_get_id(context_, &id);
  if (result == Result::success && id != id_) result = Result::context_is_destroyed;
  if (result == Result::success) result = scope.enter(context_);
  return status_of(driver_, result, "partitions: context");
}

CudaPartitionReducer::~CudaPartitionReducer() {
  ContextScope scope(driver_);
  if (stream_ == nullptr || !enter(scope).ok()) return;
  for (CopyTicket& ticket : marking_)
    for (bool done = false; !done && copy_done(driver_, ticket, done).ok();) {
    }
  if (driver_.stream_synchronize(stream_) == Result::success) streams().put_back(id_, stream_);
}

Status CudaPartitionReducer::launch() {
  ++schedule_.launch;
  away_ = false;
  ContextScope scope(driver_);
  ACCORD_TRY(enter(scope));
  void* parameters[] = {&schedule_};
  const unsigned watchers = schedule_.reduction.by_packets ? 0 : 1;
  const unsigned blocks = schedule_.teams * schedule_.slices + watchers;
  return status_of(driver_,
                   driver_.launch_kernel(function_, blocks, 1, 1, kPartitionThreads, 1, 1, 0,
                                         stream_, parameters, nullptr),
                   symbol::launch_kernel);
}

Status CudaPartitionReducer::start(std::uint32_t round) {
  schedule_.round = round;
  return launch();
}

// On a stream of its own: on that of the kernel it would come when that has left.
Status CudaPartitionReducer::mark(std::span<const std::int32_t> partitions) {
  ContextScope scope(driver_);
  ACCORD_TRY(enter(scope));
  const PartitionReduction& reduction = schedule_.reduction;
  PartitionMarks marks{};
  std::copy_n(reduction.words, reduction.ranks, marks.words);
  marks.rank = reduction.rank;
  marks.ranks = reduction.ranks;
  marks.round = schedule_.round;
  while (!partitions.empty()) {
    const std::size_t count = std::min<std::size_t>(partitions.size(), PartitionMarks::kMost);
    std::copy_n(partitions.begin(), count, marks.partitions);
    marks.count = static_cast<std::uint32_t>(count);
    partitions = partitions.subspan(count);
    void* parameters[] = {&marks};
    ACCORD_TRY(begin_work(
        driver_, scope,
        [&](Stream stream) {
          return status_of(driver_,
                           driver_.launch_kernel(mark_function_, 1, 1, 1, PartitionMarks::kMost, 1,
                                                 1, 0, stream, parameters, nullptr),
                           symbol::launch_kernel);
        },
        marking_.emplace_back()));
  }
  return {};
}

bool CudaPartitionReducer::all_arrived() const {
  for (int i = 0; i < schedule_.reduction.partitions; ++i)
    if (std::atomic_ref(arrived_[i]).load(std::memory_order_acquire) != schedule_.round)
      return false;
  return true;
}

Status CudaPartitionReducer::progress() {
  Status status;
  std::erase_if(marking_, [&](CopyTicket& ticket) {
    bool done = false;
    keep_first(status, copy_done(driver_, ticket, done));
    return done;
  });
  ACCORD_TRY(status);
  if (!has_left()) {
    if (++polls_ % kPollsPerLook != 0) return {};
    ContextScope scope(driver_);
    ACCORD_TRY(enter(scope));
    const Result result = driver_.stream_query(stream_);
    return result == Result::not_ready ? Status()
                                       : status_of(driver_, result, symbol::stream_query);
  }
  if (all_arrived()) return {};
  const auto now = std::chrono::steady_clock::now();
  if (!away_) {
    away_ = true;
    away_since_ = now;
  }
  return now - away_since_ < kPause ? Status() : launch();
}

}  // namespace

Status make_partition_reducer(const Driver& driver, Device device,
                              const PartitionReduction& reduction, std::uint32_t* arrived,
                              std::unique_ptr<PartitionReducer>& reducer) {
  if (driver.images.partitions == nullptr ||
      kernel_name(reduction.op, reduction.element) == nullptr)
    return Status(StatusCode::unsupported, "cuda partitions: no kernel for this reduction");
  std::vector<ByteRange> ranges;
  const auto add = [&](const void* first, std::size_t size_bytes) {
    ranges.push_back({first, static_cast<const std::byte*>(first) + size_bytes - 1});
  };
  for (int i = 0; i < reduction.source_count; ++i)
    add(reduction.sources[i], place_bytes(reduction, i));
  for (int i = 0; i < reduction.target_count; ++i)
    add(reduction.targets[i], place_bytes(reduction, i));
  for (int rank = 0; rank < reduction.ranks; ++rank)
    add(reduction.words[rank], shared_memory_bytes(reduction));
  add(reduction.words[reduction.rank], partition_memory_bytes(reduction));
  ContextScope scope(driver);
  ACCORD_TRY(enter_for_kernel(driver, device, ranges, "partitions", scope));
  auto made = std::make_unique<CudaPartitionReducer>(driver, reduction, arrived);
  ACCORD_TRY(made->open(scope));
  reducer = std::move(made);
  return Status();
}

}  // namespace accord::device::cuda

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/host/partitions.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "device/reduce_on_host.h"

namespace accord::device {
namespace {

using Clock = std::chrono::steady_clock;

// As the kernels of devices do.
constexpr std::chrono::microseconds kPatience{2000};

class HostPartitionReducer final : public PartitionReducer {
 public:
  HostPartitionReducer(const PartitionReduction& reduction, std::uint32_t* arrived,
                       std::vector<HostAllocationRef> owners)
      : reduction_(reduction),
        arrived_(arrived),
        owners_(std::move(owners)),
        bytes_(element_bytes(reduction.element)),
        share_(reduction.shared ? share_elements(reduction.count, reduction.ranks, bytes_)
                                : reduction.count),
        shares_(share_count(reduction)),
        reduced_(static_cast<std::size_t>(reduction.partitions)) {}
  ~HostPartitionReducer() override { await_kernel(); }
  HostPartitionReducer(const HostPartitionReducer&) = delete;
  HostPartitionReducer& operator=(const HostPartitionReducer&) = delete;

  Status start(std::uint32_t round) override {
    await_kernel();
    round_ = round;
    launch();
    return {};
  }
  Status mark(std::span<const std::int32_t> partitions) override {
    for (const std::int32_t partition : partitions)
      tell_all(ready_word(reduction_.ranks, partition, reduction_.rank));
    return {};
  }
  Status progress() override {
    if (!left_.load(std::memory_order_acquire) || all_arrived()) return {};
    await_kernel();
    launch();
    return {};
  }

 private:
  void await_kernel() {
    if (kernel_.joinable()) kernel_.join();
  }
  void launch() {
    left_.store(false, std::memory_order_relaxed);
    kernel_ = std::thread([this] {
      run();
      left_.store(true, std::memory_order_release);
    });
  }

  bool holds(std::uint32_t& word) const {
    return std::atomic_ref(word).load(std::memory_order_acquire) == round_;
  }
  bool all_hold(std::size_t first, int count) const {
    std::uint32_t* const words = reduction_.words[reduction_.rank] + first;
    return std::all_of(words, words + count, [&](std::uint32_t& word) { return holds(word); });
  }
  bool all_arrived() const {
    return std::all_of(arrived_, arrived_ + reduction_.partitions,
                       [&](std::uint32_t& word) { return holds(word); });
  }
  void tell_all(std::size_t word) const {
    for (int rank = 0; rank < reduction_.ranks; ++rank)
      std::atomic_ref(reduction_.words[rank][word]).store(round_, std::memory_order_release);
  }

  bool have_started() {
    if (!started_)
      started_ =
          all_hold(started_word(reduction_.ranks, reduction_.partitions, reduction_.starters.first),
                   reduction_.starters.count);
    return started_;
  }
  // Whether there was anything to do.
  bool reduce_ready(int partition) {
    auto& reduced = reduced_[static_cast<std::size_t>(partition)];
    const int share = own_share(reduction_, partition);
    if (reduced == round_ || share >= shares_ || !have_started() ||
        !all_hold(ready_word(reduction_.ranks, partition, reduction_.givers.first),
                  reduction_.givers.count))
      return false;
    if (reduction_.pairs > 0) {
      move_pairs(partition);
    } else if (reduction_.target_count > 0) {
      reduce(partition, reduction_.shared ? static_cast<std::size_t>(share) * share_ : 0);
    }
    tell_all(landed_word(reduction_.ranks, reduction_.partitions, partition, share));
    reduced = round_;
    return true;
  }
  void reduce(int partition, std::size_t first) const {
    const std::size_t offset =
        (static_cast<std::size_t>(partition) * reduction_.count + first) * bytes_;
    const void* sources[kPartitionRanksMax];
    void* targets[kPartitionRanksMax];
    const auto from = static_cast<std::size_t>(reduction_.source_count);
    const auto to = static_cast<std::size_t>(reduction_.target_count);
    for (std::size_t i = 0; i < from; ++i)
      sources[i] = static_cast<const std::byte*>(reduction_.sources[i]) + offset;
    for (std::size_t i = 0; i < to; ++i)
      targets[i] = static_cast<std::byte*>(reduction_.targets[i]) + offset;
    reduce_on_host({.dst = targets[0],
                    .sources = {sources, from},
                    .count = std::min(share_, reduction_.count - first),
                    .op = reduction_.op,
                    .element = reduction_.element,
                    .copies = {targets + 1, to - 1}});
  }
  void move_pairs(int partition) const {
    for (int pair = 0; pair < reduction_.pairs; ++pair) {
      const std::size_t bytes = reduction_.counts[pair] * bytes_;
      const std::size_t offset = static_cast<std::size_t>(partition) * bytes;
      std::memcpy(static_cast<std::byte*>(reduction_.targets[pair]) + offset,
                  static_cast<const std::byte*>(reduction_.sources[pair]) + offset, bytes);
    }
  }
  bool tell_host(int partition) const {
    if (holds(arrived_[partition]) || !all_hold(landed_word(reduction_.ranks, reduction_.partitions,
                                                            partition, reduction_.awaited.first),
                                                reduction_.awaited.count))
      return false;
    std::atomic_ref(arrived_[partition]).store(round_, std::memory_order_release);
    return true;
  }

  void run() {
    started_ = reduction_.starters.count == 0;
    if (reduction_.tells_start)
      tell_all(started_word(reduction_.ranks, reduction_.partitions, reduction_.rank));
    for (auto since = Clock::now(); !all_arrived() && Clock::now() - since < kPatience;) {
      bool any = false;
      for (int partition = 0; partition < reduction_.partitions; ++partition) {
        any = reduce_ready(partition) || any;
        any = tell_host(partition) || any;
      }
      if (any) since = Clock::now();
      std::this_thread::yield();
    }
  }

  const PartitionReduction reduction_;
  std::uint32_t* const arrived_;
  const std::vector<HostAllocationRef> owners_;
  const std::size_t bytes_;
  const std::size_t share_;
  const int shares_;
  std::vector<std::uint32_t> reduced_;  // the kernel's: by partition, the last round
  bool started_ = false;                // the kernel's: all it waits for
  std::uint32_t round_ = 0;             // written while there is no kernel
  std::atomic<bool> left_{true};
  std::thread kernel_;
};

}  // namespace

std::unique_ptr<PartitionReducer> make_host_partition_reducer(
    const PartitionReduction& reduction, std::uint32_t* arrived,
    std::vector<HostAllocationRef> owners) {
  return std::make_unique<HostPartitionReducer>(reduction, arrived, std::move(owners));
}

}  // namespace accord::device

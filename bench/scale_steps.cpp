// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include <time.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "bench/scale.h"
#include "coll/inter/plan.h"
#include "core/job_nodes.h"
#include "core/placement.h"
#include "core/wire.h"
#include "device/kernel_place.h"
#include "net/address_table.h"
#include "node/group.h"
#include "rma/window.h"
#include "tests/unit/idle_port.h"

namespace accord::bench {
namespace {

// What the processor has given this thread: the machine may have other work.
double seconds_now() {
  timespec now{};
  (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The compiler shall not see that nobody reads it.
template <class Value>
void use(const Value& value) {
  asm volatile("" : : "r"(&value) : "memory");
}

// What `make` returns is what is kept. Short ones are made again, and the best time counts.
template <class Make>
Cost cost_of(Make make) {
  constexpr double kEnoughSeconds = 1;
  constexpr int kTimesMax = 20;
  Cost cost;
  double spent = 0;
  for (int time = 0; time < kTimesMax && spent < kEnoughSeconds; ++time) {
    const std::size_t before_bytes = bytes_in_use();
    const double start = seconds_now();
    const auto made = make();
    use(made);
    const double seconds = seconds_now() - start;
    spent += seconds;
    cost.seconds = time == 0 ? seconds : std::min(cost.seconds, seconds);
    cost.bytes = bytes_in_use() - before_bytes;
  }
  return cost;
}

// Numbers as hashes are: in no order.
std::uint64_t mixed(std::uint64_t number) {
  number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9U;
  return (number ^ number >> 27) * 0x94d049bb133111ebU;
}

std::vector<std::uint64_t> node_numbers(const Job& job) {
  std::vector<std::uint64_t> numbers;
  for (int rank = 0; rank < job.ranks; ++rank)
    numbers.push_back(mixed(static_cast<std::uint64_t>(rank / job.node) + 1) | 1);
  return numbers;
}

Cost placement(const Job& job) {
  const std::vector<std::uint64_t> numbers = node_numbers(job);
  return cost_of([&] { return core::Placement::of(numbers); });
}

// Each process tells all others as MPI begins.
Cost told_to_job(const Job& job) {
  const auto ranks = static_cast<std::size_t>(job.ranks);
  return {.seconds = 0, .bytes = ranks * sizeof(core::JobNodes::Word)};
}

// A communicator's ranks tell each other by which tags they receive, and those of a node what they
// have made.
Cost told_to_communicator(const Job& job) {
  return {.seconds = 0,
          .bytes = static_cast<std::size_t>(job.ranks) * core::Wire::kToldBytes +
                   static_cast<std::size_t>(job.node) * sizeof(node::Record)};
}

// What a communicator asks of what the job knows.
Cost placement_of_communicator(const Job& job) {
  std::vector<core::JobNodes::Word> words;
  for (const std::uint64_t number : node_numbers(job)) words.push_back({.node = number});
  core::JobNodes nodes;
  nodes.learn(words);
  std::vector<int> processes(words.size());
  std::iota(processes.rbegin(), processes.rend(), 0);
  return cost_of([&] { return nodes.placement(processes); });
}

// No two ranks use one device: all pairs have to be looked at, or what does as well.
Cost turns(const Job& job) {
  std::vector<device::KernelPlace> places(static_cast<std::size_t>(job.ranks));
  for (std::size_t rank = 0; rank < places.size(); ++rank) places[rank].device = mixed(rank + 1);
  return cost_of([&] { return device::take_turns(places); });
}

// A rank that sends to every other one.
Cost peers(const Job& job) {
  constexpr std::size_t kWords = 32;  // of an address
  std::vector<std::vector<std::uint64_t>> addresses(static_cast<std::size_t>(job.ranks),
                                                    std::vector<std::uint64_t>(kWords, 7));
  for (std::size_t rank = 0; rank < addresses.size(); ++rank)
    addresses[rank].back() = mixed(rank + 1);
  return cost_of([&] {
    net::AddressTable<std::size_t> table;
    for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
      const auto address = std::as_bytes(std::span(addresses[rank]));
      if (table.find(address) == nullptr) table.add(address, rank);
    }
    return table;
  });
}

Cost plan(const Job& job, node::Kind kind, std::size_t block_bytes) {
  const core::Placement placement = core::Placement::of(node_numbers(job));
  node::Call call{.kind = kind, .size = job.ranks, .block_bytes = block_bytes};
  if (kind == node::Kind::allreduce) {
    call.op = device::ReduceOp::sum;
    call.element = device::Element::float32;
  }
  return cost_of([&] {
    const coll::TwoLevelPlan made(call, placement, 1 % job.ranks, false, INT_MAX,
                                  core::Placement::kParcelBytesAuto);
    return made.chunk(0);
  });
}

// A rank of a window on device memory that reaches the other nodes by messages.
Cost told_to_window(const Job& job) {
  constexpr std::size_t kWords = 3;  // whether all went well, and who needs messages
  return {.seconds = 0,
          .bytes = static_cast<std::size_t>(job.ranks) *
                   (sizeof(rma::Window::Told) + kWords * sizeof(std::int32_t))};
}

// On which nothing ever comes.
class SilentWire final : public core::Wire {
 public:
  Status send(int, int, const void*, std::size_t, core::HostRequest&) override { return {}; }
  Status receive(int, int, void*, std::size_t, core::HostRequest&) override { return {}; }
  Status test(core::HostRequest&, bool& done, core::Completion&) override {
    done = false;
    return {};
  }
  void cancel(core::HostRequest&) noexcept override {}
  Status opened() override { return {}; }
};

struct OpenWindow {
  test::IdlePort port;
  core::Engine engine{port};
  std::unique_ptr<rma::Window> window;
};

// Of a node without other ranks, all of which have device memory.
Cost window(const Job& job) {
  return cost_of([&] {
    auto made = std::make_unique<OpenWindow>();
    made->engine.allow_threads(true);
    made->window = std::make_unique<rma::Window>(made->engine, 0, job.ranks, nullptr);
    const auto told_by_all = [&](const void* mine, void* all, std::size_t size_bytes) -> Status {
      for (std::size_t rank = 0; rank < static_cast<std::size_t>(job.ranks); ++rank) {
        std::byte* const its = static_cast<std::byte*>(all) + rank * size_bytes;
        std::memcpy(its, mine, size_bytes);
        // The first word of what is longest is the node.
        if (size_bytes == sizeof(rma::Window::Told)) std::memcpy(its, &rank, sizeof rank);
      }
      return {};
    };
    if (!made->window->open({}, std::make_unique<SilentWire>(), told_by_all).ok()) std::abort();
    return made;
  });
}

Cost allreduce_plan(const Job& job) { return plan(job, node::Kind::allreduce, 1 << 30); }
Cost allgather_plan(const Job& job) { return plan(job, node::Kind::allgather, 64 << 10); }
Cost reduce_scatter_plan(const Job& job) {
  return plan(job, node::Kind::reduce_scatter_block, 64 << 10);
}
Cost alltoall_plan(const Job& job) { return plan(job, node::Kind::alltoall, 64 << 10); }

constexpr ScaleStep kSteps[] = {
    {"which ranks share a node, from their numbers", placement},
    {"the same, from what the job knows", placement_of_communicator},
    {"received by a rank in MPI_Init for that", told_to_job},
    {"received by a rank for a communicator", told_to_communicator},
    {"received by a rank for a window", told_to_window},
    {"a window", window},
    {"whether kernels take turns", turns},
    {"connections to all ranks over UCX", peers},
    {"a chunk of an allreduce of 1 GiB", allreduce_plan},
    {"a chunk of an allgather of 64 KiB", allgather_plan},
    {"a chunk of a reduce_scatter of 64 KiB", reduce_scatter_plan},
    {"a chunk of an alltoall of 64 KiB", alltoall_plan},
};

}  // namespace

std::span<const ScaleStep> scale_steps() { return kSteps; }

}  // namespace accord::bench

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/job_nodes.h"

#include <algorithm>
#include <ranges>

#include "device/adapter_reach.h"
#include "device/machine.h"
#include "node/node_number.h"

namespace accord::core {

JobNodes::Word JobNodes::Word::own() {
  return {.node = node::node_number(),
          .has_rdma = device::rdma_adapter_on_machine() ? 1U : 0U,
          .adapters = device::adapter_reach()};
}

void JobNodes::learn(std::span<const Word> words) {
  const Placement all = Placement::of_numbers(words | std::views::transform(&Word::node));
  node_of_.clear();
  has_rdma_.assign(static_cast<std::size_t>(all.nodes()), 1);
  adapters_.assign(static_cast<std::size_t>(all.nodes()), device::AdapterReach::fast);
  for (std::size_t process = 0; process < words.size(); ++process) {
    node_of_.push_back(all.node(static_cast<int>(process)));
    const auto node = static_cast<std::size_t>(node_of_.back());
    if (words[process].has_rdma == 0) has_rdma_[node] = 0;
    adapters_[node] = std::min(adapters_[node], words[process].adapters);
  }
}

Placement JobNodes::placement(std::span<const int> processes) const {
  const auto node_of = [this](int process) { return node_of_[static_cast<std::size_t>(process)]; };
  Placement made = Placement::of_numbers(processes | std::views::transform(node_of));
  made.has_rdma = std::ranges::all_of(processes, [&](int process) {
    return has_rdma_[static_cast<std::size_t>(node_of(process))] != 0;
  });
  made.adapters = device::AdapterReach::fast;
  for (const int process : processes)
    made.adapters = std::min(made.adapters, adapters_[static_cast<std::size_t>(node_of(process))]);
  return made;
}

}  // namespace accord::core

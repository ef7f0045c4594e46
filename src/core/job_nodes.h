// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Which processes of the job share a node, and what the nodes are like that do not change. Learnt
// once, as MPI begins: a communicator then only says who its ranks are, and nobody tells anybody
// anything. Knows no MPI.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/placement.h"
#include "device/adapter_reach.h"

namespace accord::core {

class JobNodes {
 public:
  // What each process tells all others: plain bytes.
  struct Word {
    std::uint64_t node = 0;      // equal where memory can be shared
    std::uint32_t has_rdma = 0;  // an adapter that reads and writes memory by itself
    device::AdapterReach adapters = device::AdapterReach::none;
    static Word own();
  };

  // By process. Before anybody asks.
  void learn(std::span<const Word> words);
  bool are_known() const noexcept { return !node_of_.empty(); }

  // Where the ranks of a communicator are, which are these processes.
  Placement placement(std::span<const int> processes) const;

 private:
  std::vector<int> node_of_;                    // by process
  std::vector<char> has_rdma_;                  // by node: all its processes have
  std::vector<device::AdapterReach> adapters_;  // by node: the worst of its processes
};

}  // namespace accord::core

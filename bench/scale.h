// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The steps that bench/scale.cpp measures: each is something that a rank does or keeps of which the
// cost depends on how many ranks there are.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace accord::bench {

struct Job {
  int ranks = 1;
  int node = 1;  // ranks of each node
};

struct Cost {
  double seconds = 0;     // 0: only bytes are counted
  std::size_t bytes = 0;  // memory that is kept, or, as a step's name says, gathered or used
};

struct ScaleStep {
  const char* what;
  Cost (*measure)(const Job& job);
};

std::span<const ScaleStep> scale_steps();

// The rounds of each chunk of an allreduce of floats, or an alltoall, in two levels: how many
// messages the leader of rank 0 sends, and their bytes.
std::string plan_in_json(bool is_alltoall, std::size_t block_bytes, const Job& job,
                         std::size_t parcel_bytes);

// Memory that this process has from new.
std::size_t bytes_in_use() noexcept;

}  // namespace accord::bench

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The ways a collective can take, by name, and which of them ACCORD_ALGORITHM asks for. The names
// are those that traces and accord_last_path give. Equal on all ranks, since the setting is. Knows
// no mpi.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ccl/library.h"
#include "node/plan.h"

namespace accord::core {

struct Algorithm {
  // automatic: by size and place, as if nothing were asked for.
  // ccl: by a collective library.
  enum class Way { automatic, staged, pipelined, node, direct, inbox, ccl };
  // Of reductions through regions or straight: who reduces what.
  enum class Shots { by_size, one, two };

  Way way = Way::automatic;
  Shots shots = Shots::by_size;
  ccl::Library* library = nullptr;  // ccl only

  bool operator==(const Algorithm&) const = default;
};

// What a list such as "node" or "staged,allreduce:inbox" asks for.
class AlgorithmChoice {
 public:
  // Leaves out what it does not understand, and says so in `problem`.
  static AlgorithmChoice parse(std::string_view list, std::string& problem);

  // An item for this collective counts more than one for all; of two for the same the last counts.
  Algorithm of(node::Kind kind) const;
  // Some collective is not automatic.
  bool any() const;

 private:
  struct OfKind {
    node::Kind kind;
    Algorithm algorithm;
  };
  Algorithm of_all_;
  std::vector<OfKind> of_kinds_;
};

// Of ACCORD_ALGORITHM, read once.
const AlgorithmChoice& algorithm_choice();
// What is wrong with it; empty when nothing is.
const std::string& algorithm_problem();

}  // namespace accord::core

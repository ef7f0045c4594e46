// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "program_json.h"

#include <nlohmann/json.hpp>

namespace accord::model {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(End, place, gap_elements, pool)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Part, rank, thread, persistent, send, recv)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Event, kind, comm, rounds, elements, block_elements, tag,
                                   synchronous, spare_elements, collective, op, root, in_place,
                                   persistent, weights, children, colors, parts)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Ref, event, round, part)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Action, verb, refs)
// What only the model knows of is not kept.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Program, ranks, threads, salt, churn_percent, comms, events,
                                   lists)

}  // namespace accord::model

namespace accord::programs {

std::string to_json(const model::Program& program) { return nlohmann::json(program).dump(); }

model::Program from_json(const std::string& text) {
  return nlohmann::json::parse(text).get<model::Program>();
}

}  // namespace accord::programs

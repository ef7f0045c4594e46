// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Whether one size fits into main memory, found before anything is allocated: Linux promises memory
// that it does not have, and kills a process that uses it.
#pragma once

#include <string>

#include "bench/way.h"

namespace accord::bench {

// Why this rank cannot hold the buffers of `trial` for so many ways; empty when it can.
std::string capacity_problem(const Session& session, const Trial& trial, std::size_t ways);

}  // namespace accord::bench

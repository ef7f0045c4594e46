// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#pragma once

#include <vector>

#include "layer.h"
#include "tokens.h"

namespace moe {

// How many numbers of a result differ in any bit from what one process computes.
long long wrong_numbers(const Problem& problem, const Tokens& tokens, int count, int crowded,
                        const std::vector<float>& result);

}  // namespace moe

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Programs in files, for those who cut them down and run what is left.
#pragma once

#include <string>

#include "program.h"

namespace accord::programs {

std::string to_json(const model::Program& program);
// Throws what nlohmann_json throws.
model::Program from_json(const std::string& text);

}  // namespace accord::programs

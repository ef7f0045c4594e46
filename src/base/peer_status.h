// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Errors as other processes tell them.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace accord {

// What another process says that its error was. What is no error, and an error of its host MPI's,
// which has no code here, is one of the network.
constexpr StatusCode status_code_of_peer(std::uint64_t number) noexcept {
  constexpr auto kFirst = static_cast<std::uint64_t>(StatusCode::invalid_argument);
  constexpr auto kLast = static_cast<std::uint64_t>(StatusCode::no_epoch);
  return number < kFirst || number > kLast ? StatusCode::network : static_cast<StatusCode>(number);
}

}  // namespace accord

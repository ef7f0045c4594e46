// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The loader of Level Zero, found at run time: building takes its headers alone, and a machine
// without an Intel GPU loads nothing. Called in this folder only.
#pragma once

#include <level_zero/ze_api.h>

#include <cstdint>

#include "base/status.h"

namespace accord::device::level_zero {

struct Driver {
#define LEVEL_ZERO_FUNCTION(member, symbol) decltype(&::symbol) member = nullptr;
#include "device/level_zero/driver.def"
#undef LEVEL_ZERO_FUNCTION
  // Gives a handle of ipc_get_handle back; null where the loader is older than 1.6 of the
  // interface, whose drivers keep one descriptor an allocation and close it with that.
  ze_result_t (*ipc_put_handle)(ze_context_handle_t, ze_ipc_mem_handle_t) = nullptr;
};

// The exported name of each member, for messages.
namespace symbol {
#define LEVEL_ZERO_FUNCTION(member, symbol) inline constexpr const char* member = #symbol;
#include "device/level_zero/driver.def"
#undef LEVEL_ZERO_FUNCTION
}  // namespace symbol

// Of calls that wait.
inline constexpr std::uint64_t kNoTimeOut = UINT64_MAX;

// The functions of the loader; null where there is none, or nothing it could drive. The first call
// looks for both. Initialises nothing.
const Driver* driver() noexcept;

// Why there are none although there is something to drive; else ok.
const Status& driver_problem() noexcept;

// ok for success, else an error that names the call and what Level Zero calls the result.
Status status_of(ze_result_t result, const char* call);

}  // namespace accord::device::level_zero

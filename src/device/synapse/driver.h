// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Synapse, the library of Intel's Gaudi accelerators, found at run time: our own declarations of
// its public API (synapse_api.h), so that building needs none of it. Called in this folder
// only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace accord::device::synapse {

// Names follow synapse_common_types.h and synapse_api_types.h: synStatus, synDmaDir, ...
enum class Result : unsigned {
  success = 0,
  out_of_host_memory = 3,
  out_of_device_memory = 4,
  failed_to_allocate = 14,
  already_acquired = 20,
  busy = 22,
  already_initialized = 29,
};

enum class Direction : unsigned { to_device = 0, to_host = 1, within_device = 2 };
enum class Attribute : unsigned { memory_start = 1, memory_bytes = 3, type = 7 };
enum class Type : unsigned { gaudi = 2, gaudi2 = 4, gaudi3 = 5 };

using Address = std::uint64_t;  // on the device, or of host memory that it knows
using DeviceId = std::uint32_t;
using Module = std::uint32_t;  // a Gaudi's place in its machine
using Stream = struct StreamHandle*;

struct Driver {
#define SYNAPSE_FUNCTION(member, symbol, parameters) Result(*member) parameters = nullptr;
#include "device/synapse/driver.def"
#undef SYNAPSE_FUNCTION
};

// The exported name of each member, for messages.
namespace symbol {
#define SYNAPSE_FUNCTION(member, symbol, parameters) inline constexpr const char* member = #symbol;
#include "device/synapse/driver.def"
#undef SYNAPSE_FUNCTION
}  // namespace symbol

// Synapse, where this process has loaded it or ACCORD_RUNTIME=synapse asks for it; else null.
// Initialises nothing.
const Driver* driver() noexcept;

// Loads it where this machine has a Gaudi, too.
const Driver* open_driver() noexcept;

// Whether this process may come to use Synapse.
bool may_be_used() noexcept;

// Whether the kernel driver shows a Gaudi.
bool device_exists() noexcept;

// Why there is a Gaudi and no library for it; ok where nothing is amiss.
Status driver_problem();

// ok for success, else an error that names the call.
Status status_of(Result result, const char* call);

inline Address address_of(const void* pointer) { return reinterpret_cast<Address>(pointer); }

}  // namespace accord::device::synapse

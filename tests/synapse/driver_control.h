// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How a test in the process of the stand-in for Synapse speaks with it, as a program does and past
// its interface.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "../stand_in_control.h"

namespace accord::test::synapse {

class DriverControl : public StandInControl {
 public:
  DriverControl() : StandInControl({"libSynapse.so", "accord_test_synapse_", "libSynapse.so"}) {}
};

inline const std::vector<std::string> kFunctions = {
#define SYNAPSE_FUNCTION(member, symbol, parameters) #symbol,
#include "device/synapse/driver.def"
#undef SYNAPSE_FUNCTION
};

// What these cannot release, nobody can.
inline const std::set<std::string> kReleasing = {"synDeviceFree", "synHostFree",
                                                 "synStreamDestroy"};

}  // namespace accord::test::synapse

namespace accord::test {
namespace driver = synapse;  // for tests of any vendor's
}

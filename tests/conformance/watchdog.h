// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Turns a hang or a crash into one line that reruns the case, with a stack. Knows no MPI: it must
// work while MPI does not.
#pragma once

#include <string>

namespace accord::conformance {

// Starts the thread and the signal handlers. A case that takes longer than `limit_s` ends the
// process with exit code 3, a crash with exit code 4.
void watchdog_start(int rank, double limit_s);

// A case begins: `rerun` is printed if it never ends.
void watchdog_arm(const std::string& rerun);
// What the case is doing, so far.
void watchdog_describe(const char* text);
// Text printed with a crash or a hang: failures found earlier and not reported yet.
void watchdog_pending(const std::string& text);
// No case runs: set-up and the end may take as long as they like.
void watchdog_disarm();

}  // namespace accord::conformance

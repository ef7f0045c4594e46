// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// For tests of what the embedded host runtime does, also where the machine has an accelerator.
#include <gtest/gtest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  setenv("ACCORD_RUNTIME", "host", 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "base/commit.h"

namespace accord {

// libaccord.so has a definition that takes the place of this one (cmake/WriteCommit.cmake). It is
// in no other program, so that a new commit links one library and not all tests.
[[gnu::weak]] const char* commit() noexcept { return ""; }

}  // namespace accord

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What this process holds of the system, which must not grow from program to program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace accord::programs {

struct Held {
  std::size_t descriptors = 0;
  std::size_t mappings = 0;  // of memory that processes share
};

Held held_now();

// Between programs, when nothing of them is left; a few hundred times at most.
class Holdings {
 public:
  void note() { seen_.push_back(held_now()); }
  // A sentence where it is more in the later half of each third than ever in the third before, as
  // is what programs leave behind; else empty.
  std::string growth() const;

 private:
  std::vector<Held> seen_;
};

}  // namespace accord::programs

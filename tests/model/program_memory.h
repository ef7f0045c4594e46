// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The device memory that a test's programs use. Each test links one definition: of the fake devices
// (fake_memory.cpp), or of the library's C API.
#pragma once

#include <cstddef>
#include <memory>

#include "program.h"

namespace accord::model {

// Not for Place::host. A test without memory ends.
void* allocate_for_program(Place place, std::size_t size_bytes);
void free_of_program(void* pointer);

// The bytes of such memory while this lives, for the test itself.
class ProgramAccess {
 public:
  enum class Use { read, write };  // write: reads, too
  ProgramAccess(void* pointer, std::size_t size_bytes, Use use);
  ~ProgramAccess();
  ProgramAccess(const ProgramAccess&) = delete;
  ProgramAccess& operator=(const ProgramAccess&) = delete;

  std::byte* bytes() const noexcept { return bytes_; }

 private:
  struct Window;
  std::unique_ptr<Window> window_;
  std::byte* bytes_ = nullptr;
};

}  // namespace accord::model

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The memory of programs over a real MPI: what the library's C API gives. The second device of the
// model is pinned memory here.
#include <accord/accord.h>

#include <vector>

#include "job.h"
#include "program_memory.h"

namespace accord::model {
namespace {

void must(int code, const char* call) {
  if (code != ACCORD_OK)
    programs::fail(programs::Symptom::error, std::string(call) + ": " + accord_last_error());
}

}  // namespace

void* allocate_for_program(Place place, std::size_t size_bytes) {
  const accord_memory kind = place == Place::managed    ? ACCORD_MEMORY_MANAGED
                             : place == Place::device_b ? ACCORD_MEMORY_PINNED
                                                        : ACCORD_MEMORY_DEVICE;
  void* made = nullptr;
  must(accord_malloc(&made, size_bytes, kind), "accord_malloc");
  return made;
}

void free_of_program(void* pointer) { must(accord_free(pointer), "accord_free"); }

struct ProgramAccess::Window {
  void* pointer;
  Use use;
  std::vector<std::byte> bytes;
};

ProgramAccess::ProgramAccess(void* pointer, std::size_t size_bytes, Use use)
    : window_(std::make_unique<Window>(Window{pointer, use, std::vector<std::byte>(size_bytes)})),
      bytes_(window_->bytes.data()) {
  must(accord_memcpy(bytes_, pointer, size_bytes), "accord_memcpy");
}

ProgramAccess::~ProgramAccess() {
  if (window_->use == Use::write)
    must(accord_memcpy(window_->pointer, bytes_, window_->bytes.size()), "accord_memcpy");
}

}  // namespace accord::model

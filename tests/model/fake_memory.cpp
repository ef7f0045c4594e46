// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The memory of modelled programs: that of the fake devices.
#include <cstdlib>

#include "fake_device.h"
#include "program_memory.h"

namespace accord::model {

void* allocate_for_program(Place place, std::size_t size_bytes) {
  const auto kind =
      place == Place::managed ? device::MemoryKind::managed : device::MemoryKind::device;
  FakeDevice& device = FakeDevice::get(place == Place::device_b ? 1 : 0);
  void* made = nullptr;
  if (!device.allocate_for_program(kind, size_bytes, made).ok()) std::abort();
  return made;
}

void free_of_program(void* pointer) { (void)FakeDevice::owner(pointer)->free(pointer); }

struct ProgramAccess::Window {};

ProgramAccess::ProgramAccess(void* pointer, std::size_t, Use)
    : bytes_(FakeDevice::owner(pointer)->behind(pointer)) {}
ProgramAccess::~ProgramAccess() = default;

}  // namespace accord::model

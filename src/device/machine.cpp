// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/machine.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include "device/registry.h"

namespace accord::device {

bool accelerator_on_machine() {
  return std::ranges::any_of(runtimes(), [](DeviceRuntime* next) { return next->on_machine(); });
}

bool rdma_adapter_on_machine() noexcept {
  // By increment(): what ++ does on an error would end the program here.
  static const bool found = [] {
    std::error_code error;
    std::filesystem::directory_iterator file("/dev/infiniband", error);
    for (; !error && file != std::filesystem::directory_iterator(); file.increment(error))
      if (file->path().filename().string().starts_with("uverbs")) return true;
    return false;
  }();
  return found;
}

}  // namespace accord::device

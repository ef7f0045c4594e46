// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/machine.h"

#include <filesystem>
#include <string>

#include "device/cuda/driver.h"
#include "device/hip/driver.h"
#include "device/registry.h"

namespace accord::device {

// What other vendors' runtimes call present they tell by files, whatever the environment hides.
bool accelerator_on_machine() {
  return accelerator_present() || cuda::device_exists() || hip::device_exists();
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

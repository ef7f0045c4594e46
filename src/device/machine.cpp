// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/machine.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include "device/cuda_driver.h"
#include "device/hip_driver.h"
#include "device/registry.h"

namespace accord::device {

// What other vendors' runtimes call present they tell by files, whatever the environment hides.
bool accelerator_on_machine() {
  return accelerator_present() || cuda::device_exists() || hip::device_exists();
}

bool rdma_adapter_on_machine() noexcept {
  static const bool found = [] {
    std::error_code error;
    const std::filesystem::directory_iterator files("/dev/infiniband", error);
    return !error && std::any_of(begin(files), end(files), [](const auto& file) {
      return file.path().filename().string().starts_with("uverbs");
    });
  }();
  return found;
}

}  // namespace accord::device

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/cuda/mps.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

namespace accord::device::cuda {

std::uint64_t mps_server(const Driver& driver, Device device) {
  int is_client = 0;
  if (driver.device_get_attribute(&is_client, DeviceAttribute::mps_enabled, device) !=
          Result::success ||
      is_client == 0)
    return 0;
  const char* const named = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  const std::string pipe = fmt::format("{}/control", named != nullptr ? named : "/tmp/nvidia-mps");
  struct stat file {};
  if (::stat(pipe.c_str(), &file) != 0) return 0;
  const std::string name = fmt::format("{}.{}.{}", file.st_dev, file.st_ino, ::geteuid());
  return std::hash<std::string>{}(name) | 1;
}

}  // namespace accord::device::cuda

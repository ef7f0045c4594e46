// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/host/test_settings.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace accord::device {

long copy_polls() {
  static const long polls = [] {
    const char* text = std::getenv("ACCORD_TEST_COPY_POLLS");
    return text == nullptr ? 0 : std::strtol(text, nullptr, 10);
  }();
  return polls;
}

KernelPlace host_place() {
  static const KernelPlace place = [] {
    const char* const server = std::getenv("ACCORD_TEST_KERNEL_SERVER");
    const char* const turn = std::getenv("ACCORD_TEST_TURN_US");
    return KernelPlace{
        .device = std::getenv("ACCORD_TEST_EXCLUSIVE_DEVICE") != nullptr ? std::uint64_t{1} : 0,
        .server = server != nullptr ? std::strtoull(server, nullptr, 10) : 0,
        .turn_us = turn != nullptr ? std::strtoull(turn, nullptr, 10) : 0};
  }();
  return place;
}

void wait_for_kernel() {
  static const char* const path = std::getenv("ACCORD_TEST_KERNEL_FILE");
  if (path == nullptr || access(path, F_OK) != 0) return;
  std::ofstream(std::string(path) + ".waited");
  while (access(path, F_OK) == 0) usleep(500);
}
Status pin_pages() {
  wait_for_kernel();
  static const bool refuses = std::getenv("ACCORD_TEST_PIN") != nullptr;
  if (refuses) return {StatusCode::no_memory, "page-locked memory: a test asks for none"};
  return {};
}

bool default_stream_is_busy() {
  const char* const text = std::getenv("ACCORD_TEST_DEFAULT_STREAM");
  return text != nullptr && std::strcmp(text, "busy") == 0;
}

bool device_memory_is_touchable() {
  static const bool touchable = std::getenv("ACCORD_TEST_TOUCHABLE") != nullptr;
  return touchable;
}

}  // namespace accord::device

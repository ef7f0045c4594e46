// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "bench/capacity.h"

#include <fmt/format.h>

#include <fstream>

namespace accord::bench {
namespace {

// What the kernel says can be had without swapping; 0 when it does not say.
std::size_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  std::size_t kilobytes = 0;
  while (file >> key >> kilobytes) {
    std::getline(file, unit);
    if (key == "MemAvailable:") return kilobytes << 10;
  }
  return 0;
}

}  // namespace

std::string capacity_problem(const Session& session, const Trial& trial, std::size_t ways) {
  // Read once: later the buffers of the last size would be missing from it.
  static const std::size_t available = available_bytes();
  const Options& options = session.options;
  std::size_t limit = options.memory_bytes_max;
  if (limit == 0) limit = available / 10 * 7 / static_cast<std::size_t>(session.local_ranks);
  if (limit == 0) return "";

  const bool in_host_memory = session.cuda == nullptr;
  const bool staged = options.send_memory != Memory::host || options.recv_memory != Memory::host;
  const std::size_t message_bytes =
      (trial.extent.send + trial.extent.recv) * session.element->size_bytes;
  // The buffers themselves, and a staging copy of them for every way that makes one.
  const std::size_t copies = (in_host_memory ? 1 : 0) + (staged ? ways : 0);
  if (message_bytes * copies <= limit) return "";
  return fmt::format("{} MiB a rank would be needed, {} MiB may be used (--memory-max)",
                     message_bytes * copies >> 20, limit >> 20);
}

}  // namespace accord::bench

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How well network adapters read device memory. The kernel tells it by where devices and adapters
// are on the PCI buses, so nothing is measured and nothing initialised. Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>

namespace accord::device {

// In this order, so that the worst of several is the least.
enum class AdapterReach : std::uint32_t {
  none,  // no adapter does: a CPU copies each byte that leaves the machine
  slow,  // far below the rate of the network: by way of the CPU, over a link older than PCIe 4
  half,  // at a third to a half of it: that way over PCIe 4
  fast,  // at its rate or nearly so; also where the kernel does not tell
};

// Of this machine; with ACCORD_HOST_MACHINE, of that one.
AdapterReach adapter_reach();

// What the sysfs at `root` tells of a machine that has adapters: the worst of its devices. A device
// is reached fast by an adapter behind the same root port, which a PCIe switch joins them at.
AdapterReach adapter_reach_in(const std::filesystem::path& root);

}  // namespace accord::device

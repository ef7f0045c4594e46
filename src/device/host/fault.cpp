// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/host/fault.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <string_view>

namespace accord::device {
namespace {

std::uintptr_t first_address = 0;
std::size_t range_bytes = 0;
struct sigaction before = {};

// A signal handler may call nothing that formats.
void tell(std::uintptr_t address) noexcept {
  constexpr std::string_view kSaid =
      "accord: error: the CPU touched 0x0000000000000000, device memory of the host runtime: copy "
      "it with accord_memcpy, as a GPU's memory needs, too\n";
  constexpr std::size_t kLastDigit = kSaid.find("0x") + 17;
  std::array<char, kSaid.size()> line{};
  kSaid.copy(line.data(), line.size());
  for (std::size_t at = kLastDigit; address != 0; --at, address >>= 4)
    line[at] = "0123456789abcdef"[address & 0xf];
  (void)!write(STDERR_FILENO, line.data(), line.size());
}

// Returns to the access, which faults again: now as if we had never been here.
void on_fault(int signal, siginfo_t* info, void* /*context*/) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (address - first_address < range_bytes) tell(address);
  (void)sigaction(signal, &before, nullptr);
}

}  // namespace

void explain_faults(std::uintptr_t start, std::size_t size_bytes) noexcept {
  first_address = start;
  range_bytes = size_bytes;
  struct sigaction ours = {};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  (void)sigaction(SIGSEGV, &ours, &before);
}

}  // namespace accord::device

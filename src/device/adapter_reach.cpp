// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/adapter_reach.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <ranges>
#include <set>
#include <string>
#include <string_view>

#include "device/adapter_model.h"
#include "device/machine.h"
#include "device/registry.h"

namespace accord::device {
namespace {

namespace fs = std::filesystem;

std::string line_of(const fs::path& file) {
  std::string line;
  std::getline(std::ifstream(file), line);
  return line;
}

// A GPU or another accelerator; a server's own display is none.
bool is_accelerator(const fs::path& device) {
  static constexpr std::array<std::string_view, 4> kMakers{"0x10de", "0x1002", "0x8086", "0x1da3"};
  const std::string kind = line_of(device / "class");
  return (kind.starts_with("0x03") || kind.starts_with("0x12")) &&
         std::ranges::find(kMakers, line_of(device / "vendor")) != kMakers.end();
}

// Where the device hangs: pci0000:15/0000:15:01.0/... begins with the bus of a CPU and its root
// port. Empty if it is on the bus itself, as most virtual machines have it.
std::string root_port_of(const fs::path& device) {
  std::error_code error;
  const fs::path place = fs::canonical(device, error);
  auto part = std::ranges::find_if(
      place, [](const fs::path& one) { return one.string().starts_with("pci"); });
  if (part == place.end()) return {};
  const auto port = ++part;
  return port != place.end() && ++part != place.end() ? port->string() : std::string();
}

// How CPUs pass on what an adapter reads. Those that have PCIe 5 do it at nearly full rate.
AdapterReach reach_by_link_of(const fs::path& device) {
  constexpr double kPcie4 = 16.0;  // GT/s
  constexpr double kPcie5 = 32.0;
  const double speed = std::strtod(line_of(device / "max_link_speed").c_str(), nullptr);
  if (speed >= kPcie5) return AdapterReach::fast;
  return speed >= kPcie4 ? AdapterReach::half : AdapterReach::slow;
}

template <class Visit>
void for_each_in(const fs::path& folder, Visit visit) {
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  // By increment(): what ++ does on an error would end the program here.
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) visit(entry->path());
}

AdapterReach reach_of_this_machine() {
  for (DeviceRuntime* runtime : runtimes())
    if (const AdapterModel* const model = runtime->adapter_model()) return model->reach();
  if (!rdma_adapter_on_machine()) return AdapterReach::none;
#ifdef __x86_64__
  return adapter_reach_in("/sys");
#else
  // Others have CPUs with faster links to their devices than the PCI buses show.
  return AdapterReach::fast;
#endif
}

}  // namespace

AdapterReach adapter_reach() {
  static const AdapterReach found = reach_of_this_machine();
  return found;
}

AdapterReach adapter_reach_in(const fs::path& root) {
  std::set<std::string> of_adapters;
  for_each_in(root / "class/infiniband", [&](const fs::path& adapter) {
    of_adapters.insert(root_port_of(adapter / "device"));
  });
  AdapterReach worst = AdapterReach::fast;
  for_each_in(root / "bus/pci/devices", [&](const fs::path& device) {
    if (!is_accelerator(device)) return;
    const std::string port = root_port_of(device);
    if (!port.empty() && !of_adapters.contains(port))
      worst = std::min(worst, reach_by_link_of(device));
  });
  return worst;
}

}  // namespace accord::device

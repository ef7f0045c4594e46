// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What is read from the kernel's files of a machine; each machine is a folder with files as the
// kernel has them.
#include "device/adapter_reach.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <string>

namespace accord::device {
namespace {

namespace fs = std::filesystem;

class Machine {
 public:
  Machine() {
    std::string name = (fs::temp_directory_path() / "accord_reach_XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) root_ = name;
    fs::create_directories(buses());
  }
  ~Machine() { fs::remove_all(root_); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // At `place`, such as pci0000:15/0000:15:01.0/0000:16:00.0.
  void add(const std::string& place, const char* kind, const char* vendor = "0x10de",
           const char* speed = "8.0 GT/s PCIe") {
    const fs::path device = root_ / "devices" / place;
    fs::create_directories(device);
    write(device / "class", kind);
    write(device / "vendor", vendor);
    write(device / "max_link_speed", speed);
    fs::create_directory_symlink(device, buses() / device.filename());
  }
  void add_adapter(const std::string& place) {
    add(place, "0x020700", "0x15b3");
    const fs::path adapter = root_ / "class/infiniband" / ("mlx5_" + std::to_string(adapters_++));
    fs::create_directories(adapter);
    fs::create_directory_symlink(root_ / "devices" / place, adapter / "device");
  }
  AdapterReach reach() const { return adapter_reach_in(root_); }

 private:
  fs::path buses() const { return root_ / "bus/pci/devices"; }
  static void write(const fs::path& file, const char* text) { std::ofstream(file) << text << '\n'; }

  fs::path root_;
  int adapters_ = 0;
};

constexpr const char* kGpu = "0x030200";
constexpr const char* kDisplay = "0x030000";

TEST(adapter_reach, is_fast_behind_a_common_switch) {
  Machine machine;
  machine.add("pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0", kGpu);
  machine.add_adapter("pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0");
  EXPECT_EQ(machine.reach(), AdapterReach::fast);
  // Another device has no adapter beside it.
  machine.add("pci0000:15/0000:15:02.0/0000:1a:00.0", kGpu);
  EXPECT_EQ(machine.reach(), AdapterReach::slow);
}

TEST(adapter_reach, is_slow_by_way_of_the_cpu) {
  Machine machine;
  machine.add_adapter("pci0000:80/0000:80:01.0/0000:81:00.0");
  EXPECT_EQ(machine.reach(), AdapterReach::fast);  // no device
  machine.add("pci0000:00/0000:00:1c.0/0000:02:00.0", kDisplay, "0x1a03");
  EXPECT_EQ(machine.reach(), AdapterReach::fast);  // a display
  machine.add("pci0000:40/0000:40:01.0/0000:41:00.0", "0x120000", "0x1002");
  EXPECT_EQ(machine.reach(), AdapterReach::slow);
}

TEST(adapter_reach, is_half_over_links_of_pcie_4) {
  Machine machine;
  machine.add_adapter("pci0000:80/0000:80:01.0/0000:81:00.0");
  machine.add("pci0000:40/0000:40:01.0/0000:41:00.0", kGpu, "0x10de", "16.0 GT/s PCIe");
  EXPECT_EQ(machine.reach(), AdapterReach::half);
  machine.add("pci0000:41/0000:41:01.0/0000:42:00.0", kGpu, "0x10de", "8.0 GT/s PCIe");
  EXPECT_EQ(machine.reach(), AdapterReach::slow);
}

TEST(adapter_reach, is_fast_over_links_of_pcie_5) {
  Machine machine;
  machine.add_adapter("pci0000:80/0000:80:01.0/0000:81:00.0");
  machine.add("pci0000:40/0000:40:01.0/0000:41:00.0", kGpu, "0x10de", "32.0 GT/s PCIe");
  EXPECT_EQ(machine.reach(), AdapterReach::fast);
}

// As a virtual machine has them.
TEST(adapter_reach, is_fast_where_no_port_is_shown) {
  Machine machine;
  machine.add_adapter("pci0000:00/0000:00:06.0");
  machine.add("pci0000:00/0000:00:05.0", kGpu);
  EXPECT_EQ(machine.reach(), AdapterReach::fast);
}

TEST(adapter_reach, is_fast_where_the_kernel_tells_nothing) {
  EXPECT_EQ(adapter_reach_in("/nowhere"), AdapterReach::fast);
}

}  // namespace
}  // namespace accord::device

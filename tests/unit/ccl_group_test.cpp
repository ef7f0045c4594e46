// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How a communicator leaves its collective library: with its device current, what was recorded of
// the library's calls first, and what the calls work on last.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "coll/library/group.h"
#include "forwarding_runtime.h"
#include "node_world.h"

namespace accord::test {
namespace {

std::vector<std::string> events;

class OneDevice final : public ForwardingRuntime {
 public:
  Status run_on(int, const std::function<Status()>& work) override {
    events.emplace_back("device current");
    const Status status = work();
    events.emplace_back("no device");
    return status;
  }
  Status free(void* pointer) override {
    if (pointer == scratch) events.emplace_back("scratch freed");
    return ForwardingRuntime::free(pointer);
  }
  std::byte* scratch = nullptr;
};

class Recorded final : public device::Recording {
 public:
  ~Recorded() override { events.emplace_back("recording freed"); }
  Status put(void*) override { return {}; }
};

TEST(CclGroup, leaves_the_library_with_its_device_current) {
  static OneDevice& runtime = *new OneDevice;
  accord_ccl_plugin plugin{};
  plugin.name = "plugin";
  plugin.leave = [](void*) { events.emplace_back("left"); };
  ccl::Library library({&plugin, {}});
  NodeWorld world(1, 64 << 10, 1, runtime);
  {
    coll::CclGroup group(library);
    group.node.group = world.shared_group(0);
    group.communicator = std::make_shared<ccl::Communicator>(plugin, &plugin);
    group.replays = std::make_unique<coll::CclReplays>();
    group.replays->keep(0, {}, 0, std::make_unique<Recorded>());
    EXPECT_OK(group.scratch(1000, runtime.scratch));
    events.clear();
  }
  EXPECT_EQ(events, (std::vector<std::string>{"device current", "recording freed", "left",
                                              "no device", "scratch freed"}));
}

}  // namespace
}  // namespace accord::test

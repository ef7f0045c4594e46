// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The end of a proxy for ranks that come meanwhile: the next program of a job may start while the
// last one's proxy ends.
#include "proxy/door.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "proxy/meeting_place.h"
#include "support.h"

namespace accord::proxy {
namespace {

std::vector<std::unique_ptr<Server>> one_server() {
  std::vector<std::unique_ptr<Server>> servers;
  servers.push_back(std::make_unique<Server>(nullptr, Status(StatusCode::unsupported, "no network"),
                                             Server::Bounds{}, "of the test"));
  return servers;
}

struct Visit {
  std::uint64_t cookie = static_cast<std::uint64_t>(::getpid());
  std::uint64_t node = 0;
  node::Descriptor socket;
  bool is_there = false;

  void come() { ASSERT_OK(connect_to_place(cookie, node, socket, is_there)); }
};

// Its workers are yet to be closed, which may take seconds.
TEST(Door, LeavesItsPlaceBeforeItsServersGo) {
  Visit first;
  node::Descriptor place;
  ASSERT_OK(take_place(first.cookie, first.node, place));
  Door door(std::move(place), one_server());
  first.come();
  ASSERT_TRUE(first.is_there);
  std::thread leaves([&first] { first.socket.close(); });
  door.run();
  leaves.join();
  Visit next;
  next.come();
  EXPECT_FALSE(next.is_there) << "it would wait for an answer that never comes";
  ASSERT_OK(take_place(next.cookie, next.node, place));
  EXPECT_TRUE(place.is_open());
}

}  // namespace
}  // namespace accord::proxy

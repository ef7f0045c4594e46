// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// When the proxy says that it lacks a core.
#include "proxy/core_watch.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

namespace accord::proxy {
namespace {

// What the kernel is to say: milliseconds that the thread ran, and waited.
class Told {
 public:
  Told() : path_(testing::TempDir() + "core_watch_" + std::to_string(::getpid())) { say(0, 0); }
  ~Told() { (void)::unlink(path_.c_str()); }
  void say(long ran_ms, long waited_ms) const {
    std::ofstream(path_) << ran_ms << "000000 " << waited_ms << "000000 7\n";
  }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

TEST(core_watch, a_thread_that_waits_for_much_of_its_time_lacks_a_core) {
  const Told told;
  CoreWatch watch(told.path());
  EXPECT_FALSE(watch.is_starved());
  told.say(100, 10);
  EXPECT_FALSE(watch.is_starved());
  told.say(150, 60);
  EXPECT_TRUE(watch.is_starved());
  told.say(151, 60);  // too little to say anything
  EXPECT_TRUE(watch.is_starved());
  told.say(200, 60);
  EXPECT_FALSE(watch.is_starved());
}

TEST(core_watch, nobody_lacks_a_core_where_the_kernel_does_not_say) {
  EXPECT_FALSE(CoreWatch("/nonexistent").is_starved());
}

// Two that never sleep, on one core.
TEST(core_watch, the_kernel_says_it_of_this_thread) {
  cpu_set_t before;
  ASSERT_EQ(0, ::sched_getaffinity(0, sizeof before, &before));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core)
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  ASSERT_EQ(0, ::sched_setaffinity(0, sizeof one, &one));
  std::atomic<bool> is_over{false};
  std::thread beside([&] {
    while (!is_over.load()) {
    }
  });
  CoreWatch watch;
  if (!std::ifstream("/proc/thread-self/schedstat").is_open()) {
    is_over = true;
    beside.join();
    GTEST_SKIP() << "this kernel does not say";
  }
  (void)watch.is_starved();
  bool is_starved = false;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!is_starved && std::chrono::steady_clock::now() < end) is_starved = watch.is_starved();
  is_over = true;
  beside.join();
  (void)::sched_setaffinity(0, sizeof before, &before);
  EXPECT_TRUE(is_starved);
}

}  // namespace
}  // namespace accord::proxy

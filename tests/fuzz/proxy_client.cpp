// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a rank makes of a proxy's packets. They come behind a welcome, over a place of this
// process's own; a pool must be as large as it was asked to be, whatever the proxy says.
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "packets.h"
#include "proxy/client.h"
#include "proxy/meeting_place.h"

namespace {

using namespace accord;

constexpr std::size_t kAskedBytes = 128 << 10;

// The proxy: answers each rank with the packets of an input and is gone.
class Proxy {
 public:
  Proxy() {
    meeting.cookie = static_cast<std::uint64_t>(::getpid());
    FUZZ_CHECK(proxy::take_place(meeting.cookie, meeting.node, place_).ok() && place_.is_open());
    std::thread([this] { serve(); }).detach();
  }
  void prepare(fuzz::Input input) {
    const std::lock_guard locked(mutex_);
    input_ = input;
    is_done_ = false;
  }
  void await() {
    std::unique_lock locked(mutex_);
    done_.wait(locked, [&] { return is_done_; });
  }
  proxy::Meeting meeting;

 private:
  void serve() {
    for (;;) {
      node::Descriptor rank(::accept4(place_.number(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!rank.is_open()) continue;
      const std::lock_guard locked(mutex_);
      const fuzz::Frame welcome{.kind = static_cast<std::uint32_t>(proxy::Kind::welcome)};
      (void)::send(rank.number(), &welcome, sizeof welcome, MSG_NOSIGNAL);
      while (!input_.empty()) fuzz::send_one(rank.number(), input_);
      // What the rank sends has somewhere to go, or it would not look at what has come.
      ::shutdown(rank.number(), SHUT_WR);
      ranks_ = std::move(rank);
      is_done_ = true;
      done_.notify_all();
    }
  }

  node::Descriptor place_;
  node::Descriptor ranks_;
  std::mutex mutex_;
  std::condition_variable done_;
  fuzz::Input input_{nullptr, 0};
  bool is_done_ = false;
};

void use(proxy::Client& client) {
  std::shared_ptr<proxy::Pool> pool;
  if (client.take_pool(kAskedBytes, pool).ok()) {
    FUZZ_CHECK(pool->pages.size_bytes() >= kAskedBytes);
    std::memset(pool->pages.data(), 1, kAskedBytes);
  }
  client.drop(3);
  for (std::uint64_t number = 0; number < 4; ++number) {
    bool done = false;
    (void)client.poll(number, done);
  }
  (void)client.check();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
  static Proxy& own = *new Proxy;
  (void)fuzz::exported();
  const auto run = [&] {
    own.prepare({data, size_bytes});
    std::unique_ptr<proxy::Client> client;
    FUZZ_CHECK(proxy::Client::connect(own.meeting, client).ok());
    own.await();
    use(*client);
  };
  static const bool warm = (run(), true);  // the proxy's end of the last one stays open
  static_cast<void>(warm);
  const std::size_t before = fuzz::open_descriptors();
  run();
  FUZZ_CHECK(fuzz::open_descriptors() == before);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Processes that are threads of one, for tests of partitioned communication: what they send each
// other comes in order and late, and tests of requests say not yet now and then.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "core/host_port.h"
#include "partitioned/channel.h"

namespace accord::partitioned {

inline std::vector<std::thread> launch(int threads, const std::function<void(int)>& body) {
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) all.emplace_back(body, i);
  return all;
}
inline void join(std::vector<std::thread>& all) {
  for (std::thread& one : all) one.join();
}

// What processes send each other; they stay in order and come late.
class Mail {
 public:
  struct Letter {
    int from;
    int polls_left;
    std::vector<std::byte> bytes;
  };
  void put(int to, Letter letter) {
    const std::lock_guard lock(mutex_);
    boxes_[to].push_back(std::move(letter));
  }
  bool take(int to, Letter& letter) {
    const std::lock_guard lock(mutex_);
    auto& box = boxes_[to];
    if (box.empty() || --box.front().polls_left > 0) return false;
    letter = std::move(box.front());
    box.pop_front();
    return true;
  }

 private:
  std::mutex mutex_;
  std::map<int, std::deque<Letter>> boxes_;
};

class ThreadMessages final : public MessagePort {
 public:
  ThreadMessages(Mail& mail, int own)
      : mail_(mail), own_(own), random_(static_cast<unsigned>(own)) {}
  Status send(int process, std::span<const std::byte> bytes, core::HostRequest& request) override {
    request = 1;
    ++sent_;
    mail_.put(process, {own_, static_cast<int>(random_() % 4), {bytes.begin(), bytes.end()}});
    return {};
  }
  int sent() const noexcept { return sent_; }
  Status probe(bool& found, int& process, std::size_t& size_bytes,
               std::uint64_t& message) override {
    message = 1;
    found = mail_.take(own_, letter_);
    process = letter_.from;
    size_bytes = letter_.bytes.size();
    return {};
  }
  Status receive(std::uint64_t, std::span<std::byte> bytes, core::HostRequest& request) override {
    request = 1;
    std::ranges::copy(letter_.bytes, bytes.begin());
    return {};
  }

 private:
  Mail& mail_;
  int own_;
  std::minstd_rand random_;
  int sent_ = 0;
  Mail::Letter letter_{};
};

// Every other test of a request says not yet.
class ThreadHost final : public core::HostPort {
 public:
  Status test(core::HostRequest&, bool& done) override {
    done = ++tests_ % 2 == 0;
    return {};
  }
  Status peek(core::HostRequest, bool& done) override {
    done = true;
    return {};
  }
  Status grequest_start(core::HostRequest&) override { return {}; }
  void grequest_complete(core::HostRequest) override {}
  Status placeholder_init(core::HostRequest&, int&) override { return {}; }
  void placeholder_complete(int) override {}
  void placeholder_release(int) override {}
  void pause() override { std::this_thread::yield(); }

 private:
  unsigned tests_ = 0;
};

}  // namespace accord::partitioned

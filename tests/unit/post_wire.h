// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages between ranks of one process, which arrive when chance has it, those of one sender and
// tag in their order. A send is complete at once, and is counted until it has been asked for that.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <list>
#include <random>
#include <vector>

#include "core/wire.h"

namespace accord::test {

class Post {
 public:
  explicit Post(unsigned seed) : random_(seed) {}

  struct Letter {
    int from;
    int to;
    int tag;
    std::vector<std::byte> bytes;
  };
  struct Receive {
    int from;
    int to;
    int tag;
    void* bytes;
    std::size_t size_bytes;
  };

  std::list<Letter> letters;
  std::list<Receive> receives;
  std::list<int> sends;  // by whom

  bool is_send(core::HostRequest request) const {
    return std::ranges::any_of(sends, [=](const int& one) { return request_of(one) == request; });
  }
  template <class Entry>
  static core::HostRequest request_of(const Entry& entry) {
    return reinterpret_cast<core::HostRequest>(&entry);
  }

  // The first receive that asks for them gets those of a sender first that were sent first.
  bool arrives(Receive& receive) {
    const auto matches = [&](const Letter& letter) {
      return (receive.from == core::Wire::kAnyRank || receive.from == letter.from) &&
             receive.to == letter.to && receive.tag == letter.tag;
    };
    const auto found = std::ranges::find_if(letters, matches);
    if (found == letters.end() || random_() % 3 != 0) return false;
    EXPECT_LE(found->bytes.size(), receive.size_bytes);
    std::memcpy(receive.bytes, found->bytes.data(), found->bytes.size());
    letters.erase(found);
    return true;
  }

 private:
  std::mt19937 random_;
};

class PostWire final : public core::Wire {
 public:
  // `name`: of the wires of all ranks.
  PostWire(Post& post, int rank, std::uint32_t name = 0) : post_(post), rank_(rank), name_(name) {}

  Status send(int rank, int tag, const void* bytes, std::size_t size_bytes,
              core::HostRequest& request) override {
    const auto* const first = static_cast<const std::byte*>(bytes);
    post_.letters.push_back({rank_, rank, tag, {first, first + size_bytes}});
    request = Post::request_of(post_.sends.emplace_back(rank_));
    return {};
  }
  Status receive(int rank, int tag, void* bytes, std::size_t size_bytes,
                 core::HostRequest& request) override {
    post_.receives.push_back({rank, rank_, tag, bytes, size_bytes});
    request = Post::request_of(post_.receives.back());
    return {};
  }
  Status test(core::HostRequest& request, bool& done, core::Completion&) override {
    done = request == 0 || post_.is_send(request) ||
           post_.arrives(*reinterpret_cast<Post::Receive*>(request));
    if (done) cancel(request);
    return {};
  }
  void cancel(core::HostRequest& request) noexcept override {
    const auto is_it = [&](const auto& one) { return Post::request_of(one) == request; };
    std::erase_if(post_.receives, is_it);
    std::erase_if(post_.sends, is_it);
    request = 0;
  }
  std::uint32_t name_at(int) const noexcept override { return name_; }
  Status opened() override { return {}; }

 private:
  Post& post_;
  int rank_;
  std::uint32_t name_;
};

}  // namespace accord::test

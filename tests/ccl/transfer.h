// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One message of a stand-in for a collective library on its way through a lane: what its sender and
// its receiver must agree on, then its bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <utility>

#include "segment.h"

namespace accord::fake {

enum class Way { out, in };
enum class Advance { none, some, mismatch };

// What sender and receiver must agree on: the size, and a code of the call.
using Header = std::array<std::uint64_t, 2>;

class Transfer {
 public:
  Transfer(Way way, const Header& header, std::byte* data)
      : way_(way), header_(header), data_(data) {}

  Advance advance(Lane& lane);
  bool complete() const { return done_ == sizeof(Header) + header_[0]; }
  Way way() const { return way_; }
  const Header& header() const { return header_; }
  const Header& seen() const { return seen_; }

 private:
  std::span<std::byte> rest();

  Way way_;
  Header header_;
  Header seen_{};
  std::byte* data_;  // only read on the way out
  std::size_t done_ = 0;
};

// All transfers of a group. Those of one lane go one after the other.
class Transfers {
 public:
  void add(Lane& lane, const Transfer& transfer);
  // Moves what can move; after a mismatch, culprit() says which.
  Advance advance();
  bool complete() const { return left_ == 0; }
  const Transfer& culprit() const { return *culprit_; }

 private:
  std::map<std::pair<Lane*, Way>, std::deque<Transfer>> queues_;
  std::size_t left_ = 0;
  const Transfer* culprit_ = nullptr;
};

}  // namespace accord::fake

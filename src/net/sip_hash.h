// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// SipHash-2-4 (Aumasson and Bernstein, 2012): a code of 8 bytes that nobody makes without the key,
// of messages of any length. Our own since no header library that distributions package has a MAC,
// and a shared library would be one more that every process loads.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "net/job_key.h"

namespace accord::net {

class SipHash {
 public:
  explicit SipHash(const JobKey& key)
      : v0_(0x736f6d6570736575 ^ key[0]),
        v1_(0x646f72616e646f6d ^ key[1]),
        v2_(0x6c7967656e657261 ^ key[0]),
        v3_(0x7465646279746573 ^ key[1]) {}

  // As its eight bytes, before all others.
  SipHash& add(std::uint64_t word) {
    length_bytes_ += sizeof word;
    take(word);
    return *this;
  }
  // The code, with these bytes at the end.
  std::uint64_t end(std::span<const std::byte> bytes = {}) {
    length_bytes_ += bytes.size();
    for (; bytes.size() >= sizeof(std::uint64_t); bytes = bytes.subspan(sizeof(std::uint64_t)))
      take(word_of(bytes));
    take(word_of(bytes) | length_bytes_ << 56);
    v2_ ^= 0xff;
    for (int i = 0; i < 4; ++i) mix();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  // The first eight, or what there is.
  static std::uint64_t word_of(std::span<const std::byte> bytes) {
    std::uint64_t word = 0;
    if (!bytes.empty()) std::memcpy(&word, bytes.data(), std::min(bytes.size(), sizeof word));
    return word;
  }
  void take(std::uint64_t word) {
    v3_ ^= word;
    mix();
    mix();
    v0_ ^= word;
  }
  void mix() {
    v0_ += v1_;
    v2_ += v3_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ = std::rotl(v0_, 32) + v3_;
    v2_ += v1_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ = std::rotl(v2_, 32);
  }

  std::uint64_t v0_, v1_, v2_, v3_;
  std::uint64_t length_bytes_ = 0;
};

}  // namespace accord::net

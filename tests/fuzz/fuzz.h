// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What fuzz targets share. A target is a function of bytes that anybody may have sent; it must
// return 0, whatever they are, and abort where something does not hold that should.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes);

// As assert, in every build.
#define FUZZ_CHECK(condition)                                                             \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                       \
    }                                                                                     \
  } while (false)

namespace accord::fuzz {

// An input that is more than one thing: takes it apart from the front; zeros where it has ended.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size_bytes)
      : rest_(reinterpret_cast<const std::byte*>(data), size_bytes) {}

  bool empty() const noexcept { return rest_.empty(); }
  std::span<const std::byte> take(std::size_t size_bytes) {
    const auto taken = rest_.first(std::min(size_bytes, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  std::span<const std::byte> rest() { return take(rest_.size()); }
  template <class T>
  T value() {
    T value{};
    const auto bytes = take(sizeof value);
    if (!bytes.empty()) std::memcpy(static_cast<void*>(&value), bytes.data(), bytes.size());
    return value;
  }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace accord::fuzz

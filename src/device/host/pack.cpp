// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/host/pack.h"

#include <cstring>

namespace accord::device {
namespace {

template <class Index>
void pack(const PackArguments& arguments, std::size_t word_bytes) {
  std::byte* dst = nullptr;
  const std::byte* src = nullptr;
  for (std::uint64_t word = 0; word < arguments.length_bytes / word_bytes; ++word) {
    if (locate_word<Index>(arguments, word_bytes, word, dst, src)) {
      std::memcpy(dst, src, word_bytes);
    }
  }
}

}  // namespace

void pack_on_host(const PackArguments& arguments, std::size_t word_bytes, bool narrow) {
  if (narrow) {
    pack<std::uint32_t>(arguments, word_bytes);
  } else {
    pack<std::uint64_t>(arguments, word_bytes);
  }
}

}  // namespace accord::device

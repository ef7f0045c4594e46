// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "transfer.h"

namespace accord::fake {

std::span<std::byte> Transfer::rest() {
  if (done_ >= sizeof(Header)) {
    const std::size_t at = done_ - sizeof(Header);
    return {data_ + at, header_[0] - at};
  }
  Header& words = way_ == Way::out ? header_ : seen_;
  return std::as_writable_bytes(std::span(words)).subspan(done_);
}

Advance Transfer::advance(Lane& lane) {
  Advance result = Advance::none;
  while (!complete()) {
    const std::span<std::byte> bytes = rest();
    const std::size_t count = way_ == Way::out ? lane.put(bytes) : lane.take(bytes);
    if (count == 0) break;
    done_ += count;
    result = Advance::some;
    if (way_ == Way::in && done_ == sizeof(Header) && seen_ != header_) return Advance::mismatch;
  }
  return result;
}

void Transfers::add(Lane& lane, const Transfer& transfer) {
  queues_[{&lane, transfer.way()}].push_back(transfer);
  ++left_;
}

Advance Transfers::advance() {
  Advance result = Advance::none;
  for (auto& [key, queue] : queues_) {
    while (!queue.empty()) {
      const Advance one = queue.front().advance(*key.first);
      if (one == Advance::mismatch) {
        culprit_ = &queue.front();
        return one;
      }
      if (one == Advance::some) result = one;
      if (!queue.front().complete()) break;
      queue.pop_front();
      --left_;
    }
  }
  return result;
}

}  // namespace accord::fake

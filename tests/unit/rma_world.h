// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Numbers, places and runs for tests of one-sided operations.
#pragma once

#include <unistd.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "device/registry.h"
#include "node/life_line.h"
#include "rma/batch.h"
#include "rma/window.h"
#include "support.h"

namespace accord::test {

using namespace accord::rma;

inline std::vector<int> counted(int first, int count) {
  std::vector<int> list(static_cast<std::size_t>(count));
  std::iota(list.begin(), list.end(), first);
  return list;
}

// Numbers in memory of the host runtime.
class OnDevice {
 public:
  explicit OnDevice(const std::vector<int>& content) : size_bytes_(content.size() * sizeof(int)) {
    EXPECT_OK(runtime_.allocate(0, device::MemoryKind::device, size_bytes_, pointer_));
    device::PointerInfo where;
    EXPECT_TRUE(runtime_.classify(pointer_, where));
    place_ = {.start = static_cast<std::byte*>(pointer_), .where = where};
    const Piece all{0, size_bytes_};
    EXPECT_OK(unpack(place_, {&all, 1}, reinterpret_cast<const std::byte*>(content.data())));
  }
  ~OnDevice() { EXPECT_OK(runtime_.free(pointer_)); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  const Place& place() const { return place_; }
  std::vector<int> content() const {
    std::vector<int> list(size_bytes_ / sizeof(int));
    const Piece all{0, size_bytes_};
    EXPECT_OK(pack(reinterpret_cast<std::byte*>(list.data()), place_, {&all, 1}));
    return list;
  }

 private:
  device::DeviceRuntime& runtime_ = device::default_runtime();
  std::size_t size_bytes_;
  void* pointer_ = nullptr;
  Place place_;
};

inline Place on_host(std::vector<int>& list) { return Place::host(list.data()); }

inline Pieces ints(std::initializer_list<std::pair<int, int>> first_and_count) {
  Pieces pieces;
  for (const auto& [first, count] : first_and_count)
    pieces.push_back({first * std::int64_t{4}, static_cast<std::uint64_t>(count) * 4});
  return pieces;
}

// What the host MPI does in a program: sums.
inline Status add(const Update&, const std::byte* in, std::byte* inout, std::size_t size_bytes) {
  for (std::size_t at = 0; at < size_bytes; at += sizeof(int)) {
    int one = 0;
    int other = 0;
    std::memcpy(&one, in + at, sizeof one);
    std::memcpy(&other, inout + at, sizeof other);
    one += other;
    std::memcpy(inout + at, &one, sizeof one);
  }
  return {};
}
constexpr Update kSum{.op = 1, .type = 3, .element_bytes = 4};

// The life line of a process that has ended.
inline std::shared_ptr<const node::LifeLine> cut_line() {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  ::close(ends[1]);
  return std::make_shared<const node::LifeLine>(node::Descriptor(ends[0]));
}

}  // namespace accord::test

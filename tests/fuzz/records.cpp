// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The record with which a rank joins a group, as the other one gets it: a true one with changes.
// The first byte: inboxes instead of regions; then changes, each a place, a length and bytes.
// Either the group is declined, or every byte of the other rank's memory that it may use can be
// read.
#include "node/group.h"
#include "packets.h"

namespace {

using namespace accord;
using node::Group;

constexpr std::size_t kRegionBytes = 64 << 10;
constexpr std::size_t kLaneBytes = 4096;

void change(node::Record& record, fuzz::Input input) {
  while (!input.empty()) {
    const std::size_t place = input.value<std::uint16_t>() % sizeof record;
    const auto bytes = input.take(input.value<std::uint8_t>());
    const std::size_t length = std::min(bytes.size(), sizeof record - place);
    if (length != 0)
      std::memcpy(reinterpret_cast<std::byte*>(&record) + place, bytes.data(), length);
  }
}

void read_all(Group& group) {
  if (group.slot_bytes() == 0) return;
  std::vector<std::byte> slot(group.slot_bytes());
  for (std::size_t i = 0; i < Group::kSlots; ++i) {
    const device::Copy copy{.dst = slot.data(), .src = group.slot(1, i), .row_bytes = slot.size()};
    FUZZ_CHECK(group.runtime().copy(0, {&copy, 1}).ok());
  }
}

// Both ranks, in the steps of coll/intra/joining.h. Says no where one declines.
bool join(Group& first, Group& second, std::span<const node::Record> seen,
          std::span<const node::Record> true_ones) {
  if (!first.accept(seen).ok() || !second.accept(true_ones).ok()) return false;
  bool sent[2] = {};
  if (!first.send(sent[0]).ok() || !second.send(sent[1]).ok() || !sent[0] || !sent[1]) return false;
  return first.open().ok() && second.open().ok();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
  const auto run = [](fuzz::Input input) {
    device::DeviceRuntime& runtime = device::default_runtime();
    const bool inboxes = (input.value<std::uint8_t>() & 1) != 0;
    const node::Use use =
        inboxes ? node::Use{.lane_bytes = kLaneBytes} : node::Use{.region_bytes = kRegionBytes};
    std::shared_ptr<Group> groups[2];
    node::Record records[2];
    for (int rank = 0; rank < 2; ++rank) {
      groups[rank] = {new Group, Group::retire};
      FUZZ_CHECK(groups[rank]->prepare(rank, 2, runtime, 0, use, records[rank]).ok());
      records[rank].inbox_kernels = {};  // both are on the only device
    }
    node::Record seen[2] = {records[0], records[1]};
    change(seen[1], input);
    if (join(*groups[0], *groups[1], seen, records)) {
      read_all(*groups[0]);
    } else {
      for (const auto& group : groups) (void)group->close_peers();
      for (const auto& group : groups) group->parted();
    }
  };
  static const bool warm = (run({nullptr, 0}), true);
  static_cast<void>(warm);
  const std::size_t before = fuzz::open_descriptors();
  run({data, size_bytes});
  Group::bury();
  FUZZ_CHECK(fuzz::open_descriptors() <= before);
  return 0;
}

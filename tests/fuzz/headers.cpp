// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Headers of messages of the node, and their tickets. The board of the sender, memory that it
// shares, holds the input too; the input does not know the cookies, or is given them (its first
// byte). What is no message that waits is not recognised, and nothing is dismissed by its ticket.
#include "node/group.h"
#include "node/outbox.h"
#include "packets.h"

namespace {

using namespace accord;
using node::MessageHeader;
using node::OutboxBoard;
using node::OutboxSlot;

struct Ranks {
  std::shared_ptr<node::Group> groups[2];
  std::unique_ptr<node::Outbox> outboxes[2];

  Ranks() {
    node::Record records[2];
    for (int rank = 0; rank < 2; ++rank) {
      groups[rank] = {new node::Group, node::Group::retire};
      FUZZ_CHECK(groups[rank]
                     ->prepare(rank, 2, device::default_runtime(), -1, {.of_messages = true},
                               records[rank])
                     .ok());
    }
    for (const auto& group : groups) {
      bool sent = false;
      FUZZ_CHECK(group->accept(records).ok() && group->send(sent).ok() && sent);
    }
    for (int rank = 0; rank < 2; ++rank) {
      FUZZ_CHECK(groups[rank]->open().ok());
      outboxes[rank] = std::make_unique<node::Outbox>(groups[rank], 16384);
    }
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
  static Ranks& ranks = *new Ranks;
  fuzz::Input input(data, size_bytes);
  const auto how = input.value<std::uint8_t>();
  auto header = input.value<MessageHeader>();
  const auto stage = static_cast<node::Stage>(input.value<std::uint8_t>() % 8);
  // One that is being moved is waited for.
  const auto kept = stage == node::Stage::moving ? node::Stage::lent : stage;
  const auto place = input.value<std::uint16_t>() % OutboxBoard::kSlots;
  const auto generation = input.value<std::uint32_t>();
  OutboxBoard& board = ranks.groups[0]->outbox(1);
  OutboxSlot& slot = board.slots[place];
  slot.receiver = input.value<std::int8_t>();
  slot.state = OutboxSlot::state_of(generation, kept);
  const bool waits = slot.receiver == 0 && kept != node::Stage::none &&
                     kept != node::Stage::taken && kept != node::Stage::failed;

  const auto& cookie = ranks.groups[0]->outbox(0).cookie;
  if ((how & 1) != 0) header.cookie = cookie[1];
  if ((how & 2) != 0) header.ticket ^= cookie[0];
  const bool is_it = header.sender == 1 && header.slot == place && header.generation == generation;
  if (ranks.outboxes[0]->recognises(header))
    FUZZ_CHECK(waits && is_it && header.cookie == cookie[1]);
  ranks.outboxes[0]->dismiss(header.ticket);
  const std::uint64_t now = slot.state;
  if (!waits) FUZZ_CHECK(now == OutboxSlot::state_of(generation, kept));
  FUZZ_CHECK(now >> 8 == generation);
  slot.state = 0;
  return 0;
}

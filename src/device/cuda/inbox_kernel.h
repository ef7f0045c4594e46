// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What cuda/inbox.cpp and the resident kernel of cuda/inbox_kernel.cu agree on. Each block of the
// kernel is a server of its own: it polls a doorbell in host memory, does its part of the exchange
// that rings it, answers in host memory, and leaves when nobody has rung for the linger time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/inbox.h"

namespace accord::device::cuda {

constexpr unsigned kInboxThreads = 512;  // of a block
constexpr unsigned kInboxBlocksMax = 32;

constexpr std::uint32_t kInboxSendStride = 1;     // blocks to send lie one after the other
constexpr std::uint32_t kInboxReceiveStride = 2;  // so do those to receive
constexpr std::uint32_t kInboxToHost = 16;        // dst is host memory
constexpr std::uint32_t kInboxOwnFromSource = 8;  // what it gives itself is still in src
constexpr std::uint32_t kInboxSend = 4;  // not set: nothing to send, or all has been sent already
constexpr std::uint32_t kInboxSecondLanes = 32;  // InboxExchange::turn
constexpr std::uint32_t kInboxInPieces = 64;     // lengths differ by pair: see InboxPiece
constexpr std::uint32_t kInboxInPackets = 128;   // InboxExchange::in_packets

// An InboxExchange, as a doorbell carries it.
struct InboxCommand {
  std::uint64_t inbox;
  std::uint64_t src;
  std::uint64_t dst;
  std::uint64_t send_to;
  std::uint64_t receive_from;
  std::uint32_t inbox_number;
  std::uint32_t epoch;
  std::uint32_t block_bytes;
  std::uint32_t lane_bytes;
  std::uint16_t linger_us;
  std::uint16_t wait_us;  // for data; then the block answers that some is missing
  std::uint8_t rank;
  std::uint8_t op;
  std::uint8_t element;  // an arithmetic_element
  std::uint8_t flags;
};

// Each word of a command travels with the number of the command: a block has all of it once all
// words have the number it waits for. One line of the bus.
constexpr unsigned kInboxCommandWords = sizeof(InboxCommand) / sizeof(std::uint32_t);
struct alignas(128) InboxDoorbell {
  std::uint64_t words[kInboxCommandWords];  // number << 32 | word
  // Number of the last launch: a block of an earlier one that has nothing to do leaves at once,
  // since the next one starts when all have.
  std::uint64_t newest_launch;
};
static_assert(sizeof(InboxCommand) == 64 && sizeof(InboxDoorbell) == 256);

// Direct work (device/direct_work.h), as doorbells of the kernel for that carry it: an update, one
// copy, or the number of those that are told as pieces: src, dst, send_bytes and send_end.
enum class DirectKind : std::uint8_t { copy, pieces, update };
struct DirectCommand {
  std::uint64_t dst;      // or target
  std::uint64_t src;      // or operand; 0: none
  std::uint64_t compare;  // 0: none
  std::uint64_t result;   // 0: none
  std::uint64_t unused[2];
  std::uint32_t size_bytes;
  std::uint32_t piece_count;
  // From here as in an InboxCommand.
  std::uint16_t linger_us;
  std::uint16_t wait_us;
  DirectKind kind;
  std::uint8_t op;  // 0: replaces
  std::uint8_t element;
  std::uint8_t flags;  // kInboxToHost: what it writes is not all on the device
};
static_assert(sizeof(DirectCommand) == sizeof(InboxCommand) &&
              offsetof(DirectCommand, linger_us) == offsetof(InboxCommand, linger_us) &&
              offsetof(DirectCommand, flags) == offsetof(InboxCommand, flags));

// An InboxPart. All units to send are numbered through, rank after rank, and so are those to
// receive: threads take them by their numbers, however they are spread over the ranks.
struct InboxPiece {
  std::uint64_t src;
  std::uint64_t dst;
  std::uint32_t send_bytes;
  std::uint32_t receive_bytes;
  std::uint32_t send_end;  // number behind the last unit of this rank
  std::uint32_t receive_end;
};
constexpr unsigned kInboxPieceWords = sizeof(InboxPiece) / sizeof(std::uint64_t);
static_assert(sizeof(InboxPiece) == 32);

// In host memory that the device reaches; written by one side only, as said.
struct InboxControl {
  // By the host, one for each block: polls of one line by several blocks wait for one another, a
  // microsecond each.
  InboxDoorbell doorbells[kInboxBlocksMax];
  // By each block. Number of the last command << 1, plus 1 where not all had arrived in time.
  alignas(128) std::uint64_t answers[kInboxBlocksMax];
  alignas(128) std::uint64_t left[kInboxBlocksMax];  // number of the launch that it has left
  // By the host before it rings with kInboxInPieces, by rank, up to the last one of the command.
  // The same for each block, for the reason that doorbells are (2 x H200, 32 blocks: 23 us).
  alignas(128) InboxPiece pieces[kInboxBlocksMax][kInboxRanksMax];
};

struct InboxLaunch {
  InboxControl* control;
  std::uint64_t number;
  std::uint64_t linger_us;  // of blocks that find nothing to do
};

}  // namespace accord::device::cuda

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/cuda/inbox_commands.h"

#include <algorithm>
#include <bit>

#include "device/cuda/driver.h"
#include "device/direct_work.h"

namespace accord::device::cuda {
namespace {

static_assert(kDirectCopiesMax <= kInboxRanksMax && kDirectElementBytesMax == kInboxUnitBytes);

// How long the kernel waits for data: of peers that are on their way (for long messages more, since
// these alone take 20 us), and of those that are in the same call. Then the host looks after them,
// and other exchanges have their turn.
constexpr std::uint16_t kShortWaitUs = 20;
constexpr std::uint16_t kShortWideWaitUs = 60;
constexpr std::uint16_t kLongWaitUs = 1000;

// Whether src and dst have nothing in common, so that src is still there when dst is written.
bool apart(const InboxExchange& exchange) {
  const auto last =
      static_cast<std::size_t>(std::bit_width(exchange.send_to | exchange.receive_from)) - 1;
  const auto end = [&](const void* start, std::size_t stride_bytes) {
    return reinterpret_cast<std::uintptr_t>(start) + exchange.block_bytes + last * stride_bytes;
  };
  return end(exchange.src, exchange.send_stride_bytes) <=
             reinterpret_cast<std::uintptr_t>(exchange.dst) ||
         end(exchange.dst, exchange.receive_stride_bytes) <=
             reinterpret_cast<std::uintptr_t>(exchange.src);
}

std::uint32_t units_of(std::size_t size_bytes) {
  return static_cast<std::uint32_t>((size_bytes + kInboxUnitBytes - 1) / kInboxUnitBytes);
}

// What decides how many blocks it takes, and how long: of all parts together, since threads take
// them as one.
std::size_t exchange_width_bytes(const InboxExchange& exchange) {
  if (exchange.parts.empty()) return exchange.block_bytes;
  std::size_t sent = 0;
  std::size_t received = 0;
  for (const InboxPart& part : exchange.parts) {
    sent += units_of(part.send_bytes);
    received += units_of(part.receive_bytes);
  }
  return std::max(sent, received) * kInboxUnitBytes;
}

// What a rank gives itself never passes through its lane.
void write_parts(const InboxExchange& exchange, InboxPiece* pieces) {
  InboxPiece piece{};
  for (std::size_t rank = 0; rank < exchange.parts.size(); ++rank) {
    const InboxPart& part = exchange.parts[rank];
    const bool own = static_cast<int>(rank) == exchange.rank;
    piece.src = address_of(part.src);
    piece.dst = address_of(part.dst);
    piece.send_bytes = own ? 0 : static_cast<std::uint32_t>(part.send_bytes);
    piece.receive_bytes = static_cast<std::uint32_t>(part.receive_bytes);
    piece.send_end += units_of(piece.send_bytes);
    piece.receive_end += units_of(piece.receive_bytes);
    pieces[rank] = piece;
  }
}

InboxCommand exchange_command(const InboxTicket& ticket, std::uint16_t linger_us) {
  const InboxExchange& exchange = ticket.exchange;
  const std::uint64_t own = inbox_bit(exchange.rank);
  const bool own_from_source = (exchange.send_to & exchange.receive_from & own) != 0 &&
                               (!exchange.parts.empty() || apart(exchange));
  InboxCommand command{};
  command.inbox = address_of(exchange.inbox);
  command.src = address_of(exchange.src);
  command.dst = address_of(exchange.dst);
  command.send_to = exchange.send_to & (own_from_source ? ~own : ~std::uint64_t{0});
  command.receive_from = exchange.receive_from;
  command.inbox_number = exchange.inbox_number;
  command.epoch = exchange.epoch;
  command.block_bytes = static_cast<std::uint32_t>(exchange.block_bytes);
  command.lane_bytes = static_cast<std::uint32_t>(exchange.lane_bytes);
  command.linger_us = linger_us;
  command.wait_us = ticket.patience == InboxTicket::Patience::long_wait ? kLongWaitUs
                    : exchange_width_bytes(exchange) > kNarrowBytes     ? kShortWideWaitUs
                                                                        : kShortWaitUs;
  command.rank = static_cast<std::uint8_t>(exchange.rank);
  command.op = static_cast<std::uint8_t>(exchange.op);
  command.element = static_cast<std::uint8_t>(arithmetic_element(exchange.op, exchange.element));
  command.flags = static_cast<std::uint8_t>(
      (exchange.send_stride_bytes != 0 ? kInboxSendStride : 0) |
      (exchange.receive_stride_bytes != 0 ? kInboxReceiveStride : 0) |
      (own_from_source ? kInboxOwnFromSource : 0) | (exchange.dst_on_host ? kInboxToHost : 0) |
      (exchange.turn != 0 ? kInboxSecondLanes : 0) | (exchange.in_packets ? kInboxInPackets : 0) |
      (exchange.parts.empty() ? 0 : kInboxInPieces) |
      (ticket.sent || exchange.send_to == 0 ? 0 : kInboxSend));
  return command;
}

std::size_t direct_bytes(const DirectWork& work) {
  if (work.update != nullptr) return work.update->size_bytes;
  std::size_t units = 0;
  for (const Copy& copy : work.copies) units += units_of(copy.row_bytes);
  return units * kInboxUnitBytes;
}

InboxCommand direct_command(const DirectWork& work, std::uint16_t linger_us) {
  DirectCommand command{};
  command.linger_us = linger_us;
  command.flags = work.leaves_device ? kInboxToHost : 0;
  if (work.update != nullptr) {
    const DirectUpdate& update = *work.update;
    command.kind = DirectKind::update;
    command.dst = address_of(update.target);
    command.src = address_of(update.operand);
    command.compare = address_of(update.compare);
    command.result = address_of(update.result);
    command.size_bytes = static_cast<std::uint32_t>(update.size_bytes);
    command.op = static_cast<std::uint8_t>(update.op);
    command.element = static_cast<std::uint8_t>(arithmetic_element(update.op, update.element));
  } else if (work.copies.size() == 1) {
    command.dst = address_of(work.copies[0].dst);
    command.src = address_of(work.copies[0].src);
    command.size_bytes = static_cast<std::uint32_t>(work.copies[0].row_bytes);
  } else {
    command.kind = DirectKind::pieces;
    command.piece_count = static_cast<std::uint32_t>(work.copies.size());
  }
  return std::bit_cast<InboxCommand>(command);
}

std::size_t write_copies(std::span<const Copy> copies, InboxPiece* pieces) {
  if (copies.size() < 2) return 0;  // the command has it
  InboxPiece piece{};
  for (std::size_t i = 0; i < copies.size(); ++i) {
    piece.src = address_of(copies[i].src);
    piece.dst = address_of(copies[i].dst);
    piece.send_bytes = static_cast<std::uint32_t>(copies[i].row_bytes);
    piece.send_end += units_of(copies[i].row_bytes);
    pieces[i] = piece;
  }
  return copies.size();
}

}  // namespace

std::size_t width_bytes(const InboxTicket& ticket) {
  return ticket.direct != nullptr ? direct_bytes(*ticket.direct)
                                  : exchange_width_bytes(ticket.exchange);
}

InboxCommand command_of(const InboxTicket& ticket, std::uint16_t linger_us) {
  return ticket.direct != nullptr ? direct_command(*ticket.direct, linger_us)
                                  : exchange_command(ticket, linger_us);
}

std::size_t write_pieces(const InboxTicket& ticket, InboxPiece* pieces) {
  if (ticket.direct != nullptr) return write_copies(ticket.direct->copies, pieces);
  if (!ticket.exchange.parts.empty()) write_parts(ticket.exchange, pieces);
  return ticket.exchange.parts.size();
}

}  // namespace accord::device::cuda

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/host/inbox.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#include "device/reduce_on_host.h"

namespace accord::device {
namespace {

using PacketBits [[gnu::vector_size(16)]] = std::uint32_t;

using Unit = std::array<std::byte, kInboxUnitBytes>;

struct Quarter {
  std::uint32_t data;
  std::uint32_t epoch;
};

// One 8-byte store: what a receiver sees of it is all of it.
void store_quarter(std::uint32_t* address, Quarter quarter) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &quarter, sizeof bits);
  std::atomic_ref(*reinterpret_cast<std::uint64_t*>(address))
      .store(bits, std::memory_order_release);
}

Quarter load_quarter(std::uint32_t* address) {
  const std::uint64_t bits =
      std::atomic_ref(*reinterpret_cast<std::uint64_t*>(address)).load(std::memory_order_acquire);
  Quarter quarter{};
  std::memcpy(&quarter, &bits, sizeof quarter);
  return quarter;
}

int lane_of(const InboxExchange& exchange, int sender) { return inbox_lane(sender, exchange.turn); }

constexpr std::size_t kQuarters = kInboxUnitBytes / sizeof(std::uint32_t);

// Data and epoch of a quarter of a unit.
std::uint32_t* cell(std::byte* inbox, int lane, std::size_t lane_bytes, std::size_t unit,
                    std::size_t quarter) {
  const std::size_t word = inbox_word_offset(lane, lane_bytes, unit, quarter / kInboxWordsPerUnit);
  return reinterpret_cast<std::uint32_t*>(inbox + word) + quarter % kInboxWordsPerUnit * 2;
}

std::size_t units(std::size_t size_bytes) {
  return (size_bytes + kInboxUnitBytes - 1) / kInboxUnitBytes;
}

std::size_t length(std::size_t size_bytes, std::size_t unit) {
  return std::min(kInboxUnitBytes, size_bytes - unit * kInboxUnitBytes);
}

// Packets, in the same lanes: stored and loaded by one access, of which a CPU with AVX sees all or
// nothing. By instructions of our own, since to a compiler it would be a data race.
void store_packet(InboxPacket* address, InboxPacket packet) {
#ifdef __x86_64__
  asm volatile("movdqa %1, %0"
               : "=m"(*address)
               : "x"(std::bit_cast<PacketBits>(packet))
               : "memory");
#endif
}

InboxPacket load_packet(const InboxPacket* address) {
  PacketBits bits{};
#ifdef __x86_64__
  asm volatile("movdqa %1, %0" : "=x"(bits) : "m"(*address) : "memory");
#endif
  return std::bit_cast<InboxPacket>(bits);
}

InboxPacket* packet_at(std::byte* inbox, const InboxExchange& exchange, int sender, std::size_t row,
                       std::size_t bundle) {
  return reinterpret_cast<InboxPacket*>(
      inbox + inbox_packet_offset(lane_of(exchange, sender), exchange.lane_bytes,
                                  inbox_bundles(exchange.block_bytes), row, bundle));
}

void send_packets(const InboxExchange& exchange, std::byte* inbox, const std::byte* block) {
  const std::size_t bundles = inbox_bundles(exchange.block_bytes);
  const std::size_t count = units(exchange.block_bytes);
  for (std::size_t bundle = 0; bundle < bundles; ++bundle) {
    InboxPacket packets[kInboxPacketsPerBundle] = {};
    for (std::size_t row = 0; row < kInboxUnitsPerBundle; ++row) {
      const std::size_t unit = row * bundles + bundle;
      std::uint32_t data[kQuarters] = {};
      if (unit < count)
        std::memcpy(data, block + unit * kInboxUnitBytes, length(exchange.block_bytes, unit));
      std::copy_n(data, kInboxUnitsPerBundle, packets[row].data);
      packets[kInboxUnitsPerBundle].data[row] = data[kInboxUnitsPerBundle];
    }
    for (std::size_t row = 0; row < kInboxPacketsPerBundle; ++row) {
      packets[row].epoch = exchange.epoch;
      store_packet(packet_at(inbox, exchange, exchange.rank, row, bundle), packets[row]);
    }
  }
}

bool packets_arrived(const InboxExchange& exchange, int sender) {
  for (std::size_t row = 0; row < kInboxPacketsPerBundle; ++row)
    for (std::size_t bundle = 0; bundle < inbox_bundles(exchange.block_bytes); ++bundle)
      if (load_packet(packet_at(exchange.inbox, exchange, sender, row, bundle)).epoch !=
          exchange.epoch)
        return false;
  return true;
}

Unit take_of_packets(const InboxExchange& exchange, int sender, std::size_t unit) {
  const std::size_t bundles = inbox_bundles(exchange.block_bytes);
  const std::size_t row = unit / bundles;
  const auto packet = [&](std::size_t of_row) {
    return load_packet(packet_at(exchange.inbox, exchange, sender, of_row, unit % bundles));
  };
  Unit result;
  const InboxPacket first = packet(row);
  const InboxPacket last = packet(kInboxUnitsPerBundle);
  std::memcpy(result.data(), first.data, sizeof first.data);
  std::memcpy(result.data() + sizeof first.data, &last.data[row], sizeof last.data[row]);
  return result;
}

// The last half of a word first: what packets left in a lane may look like an epoch, but not where
// theirs was, and a sender writes that half of a word last.
bool arrived(const InboxExchange& exchange, int sender) {
  if (exchange.in_packets) return packets_arrived(exchange, sender);
  for (std::size_t unit = 0; unit < units(exchange.receive_bytes(sender)); ++unit) {
    for (std::size_t quarter = kQuarters; quarter-- > 0;) {
      auto* address =
          cell(exchange.inbox, lane_of(exchange, sender), exchange.lane_bytes, unit, quarter);
      if (load_quarter(address).epoch != exchange.epoch) return false;
    }
  }
  return true;
}

Unit take(const InboxExchange& exchange, int sender, std::size_t unit) {
  if (exchange.in_packets) return take_of_packets(exchange, sender, unit);
  Unit result;
  for (std::size_t quarter = 0; quarter < kQuarters; ++quarter) {
    const Quarter got = load_quarter(
        cell(exchange.inbox, lane_of(exchange, sender), exchange.lane_bytes, unit, quarter));
    std::memcpy(result.data() + quarter * sizeof got.data, &got.data, sizeof got.data);
  }
  return result;
}

void combine(const InboxExchange& exchange, Unit& sum, const Unit& next) {
  const void* sources[] = {sum.data(), next.data()};
  reduce_on_host({.dst = sum.data(),
                  .sources = sources,
                  .count = kInboxUnitBytes / element_bytes(exchange.element),
                  .op = exchange.op,
                  .element = exchange.element});
}

bool has(std::uint64_t ranks, int rank) { return (ranks & inbox_bit(rank)) != 0; }

// Each block at its place.
void place(const InboxExchange& exchange) {
  for (int peer = 0; peer < kInboxRanksMax; ++peer) {
    if (!has(exchange.receive_from, peer)) continue;
    const std::size_t size_bytes = exchange.receive_bytes(peer);
    for (std::size_t unit = 0; unit < units(size_bytes); ++unit) {
      std::memcpy(exchange.destination(peer) + unit * kInboxUnitBytes,
                  take(exchange, peer, unit).data(), length(size_bytes, unit));
    }
  }
}

// All in the order of the ranks.
void reduce(const InboxExchange& exchange) {
  for (std::size_t unit = 0; unit < units(exchange.block_bytes); ++unit) {
    Unit sum{};
    bool first = true;
    for (int peer = 0; peer < kInboxRanksMax; ++peer) {
      if (!has(exchange.receive_from, peer)) continue;
      const Unit got = take(exchange, peer, unit);
      if (first) {
        sum = got;
      } else {
        combine(exchange, sum, got);
      }
      first = false;
    }
    if (!first)
      std::memcpy(exchange.destination(0) + unit * kInboxUnitBytes, sum.data(),
                  length(exchange.block_bytes, unit));
  }
}

}  // namespace

bool cpu_keeps_packets_whole() noexcept {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx") != 0;
#else
  return false;
#endif
}

void inbox_send(const InboxExchange& exchange, std::span<std::byte* const> inboxes) {
  for (int peer = 0; peer < kInboxRanksMax; ++peer) {
    if (!has(exchange.send_to, peer)) continue;
    std::byte* const inbox = inboxes[static_cast<std::size_t>(peer)];
    const std::byte* const block = exchange.source(peer);
    const std::size_t size_bytes = exchange.send_bytes(peer);
    if (exchange.in_packets) {
      send_packets(exchange, inbox, block);
      continue;
    }
    for (std::size_t unit = 0; unit < units(size_bytes); ++unit) {
      Unit data{};
      std::memcpy(data.data(), block + unit * kInboxUnitBytes, length(size_bytes, unit));
      for (std::size_t quarter = 0; quarter < kQuarters; ++quarter) {
        Quarter out{0, exchange.epoch};
        std::memcpy(&out.data, data.data() + quarter * sizeof out.data, sizeof out.data);
        store_quarter(
            cell(inbox, lane_of(exchange, exchange.rank), exchange.lane_bytes, unit, quarter), out);
      }
    }
  }
}

bool inbox_receive(const InboxExchange& exchange) {
  for (int peer = 0; peer < kInboxRanksMax; ++peer) {
    if (has(exchange.receive_from, peer) && !arrived(exchange, peer)) return false;
  }
  exchange.op == ReduceOp::none ? place(exchange) : reduce(exchange);
  return true;
}

}  // namespace accord::device

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages between two ranks of a node that wait in device memory of their sender. The sender packs
// a message there before it tells anybody of it, the receiver fetches it whenever it has matched
// it, and neither ever waits for the other. What goes by the host MPI is a header of 32 bytes. The
// memory is lent once to each receiver (offers.h); until a receiver has opened it, it gets no
// header. Knows no MPI and no vendor. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "device/device_runtime.h"
#include "node/offers.h"

namespace accord::node {

class Group;

// Goes in the message's stead. Random numbers tell it from a message of the same length.
struct MessageHeader {
  std::array<std::uint64_t, 2> cookie{};
  std::uint32_t generation = 0;
  std::uint16_t sender = 0;
  std::uint16_t slot = 0;
  std::uint64_t size_bytes = 0;  // of the message
};
static_assert(sizeof(MessageHeader) == 32);

// A message that waits. Written by its sender while nobody knows of it, but for `taken`.
struct OutboxSlot {
  std::atomic<std::uint32_t> generation{0};  // of the message, never the same again; 0: none yet
  std::atomic<std::uint32_t> taken{0};       // the last one that nobody will fetch any more
  std::int32_t receiver = -1;
  Place place;
};

// What the ranks of a group share of their outboxes: one a rank.
struct alignas(128) OutboxBoard {
  static constexpr std::size_t kSlots = 512;
  std::array<std::uint64_t, 2> cookie{};  // rank 0's is everybody's
  OutboxSlot slots[kSlots];
};

class Outbox {
 public:
  // `size_bytes`: of the memory that messages wait in, made when the first one shall.
  Outbox(std::shared_ptr<Group> group, std::size_t size_bytes);
  // Once no peer reads there any more: see close().
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // This rank uses `device` for its messages from the first call on; what others lend is opened
  // there. False where it uses another one for them already.
  bool attach(device::DeviceRuntime& runtime, int device);
  bool is_attached() const noexcept { return attached_.load(std::memory_order_acquire); }
  device::DeviceRuntime& runtime() const noexcept;
  int device() const noexcept;

  // Opens what peers lend, so that they may send headers: not to be called by a rank that has
  // receives under way which nobody would look for a header in.
  void follow();
  // Whether this rank may ever have got a header from `sender`.
  bool may_hear_from(int sender) const noexcept;

  // Device memory for a message to `receiver`, to be filled before the header is sent. Null where
  // there is none, or the receiver does not reach it yet; `is_full` where there may be soon.
  std::byte* reserve(int receiver, std::size_t size_bytes, MessageHeader& header, bool& is_full);
  // It is not full any more in that sense, until a receiver has fetched something.
  void give_up() noexcept;
  // The header was not sent after all, or has been taken back.
  void withdraw(const MessageHeader& header) noexcept;

  // Whether this is the header of a message that waits for this rank.
  bool recognises(const MessageHeader& header) const noexcept;
  // Where that lies, and that it need not any longer.
  const std::byte* find(const MessageHeader& header);
  void took(const MessageHeader& header) noexcept;

  // Messages that went this way.
  struct Counters {
    std::uint64_t sent = 0;
    std::uint64_t fetched = 0;
  };
  Counters counters() const noexcept { return {sent_.load(), fetched_.load()}; }

  // Closes what peers lend. Once all have, the memory may go.
  void close() noexcept;

 private:
  struct Waiting {
    std::uint16_t slot;
    std::size_t size_bytes;
  };

  bool make_memory();
  bool find_room(std::size_t size_bytes, std::size_t& first_bytes) const;
  void reclaim();
  OutboxSlot& slot(const MessageHeader& header) const noexcept;

  std::shared_ptr<Group> group_;
  const std::size_t size_bytes_;
  mutable std::mutex mutex_;
  std::atomic<bool> attached_{false};
  std::vector<std::atomic<std::uint64_t>> followed_;  // by rank: changes of its offers acted upon
  std::byte* memory_ = nullptr;
  device::PointerInfo memory_info_;
  bool has_failed_ = false;  // to make it
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<std::uint64_t> fetched_{0};
  bool has_given_up_ = false;
  std::map<std::size_t, Waiting> waiting_;  // by where they begin
  std::vector<std::uint16_t> free_slots_;
};

}  // namespace accord::node

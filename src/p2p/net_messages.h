// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages from a device to a rank of another node, while the host MPI carries their headers
// (net/mail.h): in the user's buffer where the design reaches that, else packed into page-locked
// memory. Ranks are those of MPI_COMM_WORLD. Knows no mpi.h.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/layout.h"
#include "core/staged_buffer.h"
#include "net/mail.h"
#include "node/outbox.h"
#include "p2p/device_message.h"

namespace accord::p2p {

// Messages of other nodes that have been matched, and that are on their way together.
class NetBatch {
 public:
  explicit NetBatch(net::Mail& mail) : mail_(mail) {}
  NetBatch(const NetBatch&) = delete;
  NetBatch& operator=(const NetBatch&) = delete;

  // `host`: where the header lies in the user's memory; null: it does not.
  void add(std::shared_ptr<net::Mail::Fetch> fetch, const core::Segment& segment, void* host);
  std::size_t size() const noexcept { return begun_.size(); }
  // Whether all have come, or failed.
  bool poll();
  // Waits for all; what has become of each, in their order.
  std::vector<Status> run();

 private:
  struct Begun {
    std::shared_ptr<net::Mail::Fetch> fetch;
    core::Segment segment;
    void* host;
  };
  net::Mail& mail_;
  std::vector<Begun> begun_;
};

class NetMessages final : public node::Lender {
 public:
  using Cookie = std::array<std::uint64_t, 2>;  // everybody's
  // `rank`: this one.
  NetMessages(net::Mail& mail, const Cookie& cookie, std::uint32_t rank, std::uint32_t ranks)
      : mail_(mail), cookie_(cookie), rank_(rank), ranks_(ranks) {}

  // Readies `segment` of a buffer for `receiver`, by this design if it can be, or says no: then
  // there is no header. After an error there may be one all the same, which brings the receiver an
  // error, too.
  Status post(const core::Segment& segment, const core::StagedBuffer& buffer,
              std::uint32_t receiver, const net::Design& design, node::MessageHeader& header,
              Posted& posted);
  // Puts the message where the user wants it; truncated where it does not fit. Waits for its
  // sender's process, never for its program. One run of bytes is left to the batch, if there is
  // one.
  Status fetch(const core::Segment& segment, core::StagedBuffer& buffer,
               const node::MessageHeader& header, NetBatch* batch = nullptr);
  // What a header that was cut off stands for, if it is one of ours, nobody will fetch.
  void dismiss(std::uint64_t ticket) noexcept;
  // From now on no send waits for a receiver that has not taken its header.
  void leave() noexcept { is_leaving_.store(true, std::memory_order_release); }
  // The way it takes, for people.
  const char* path_of(const node::MessageHeader& header) const;

  // Whether it is one of ours at all.
  bool is_own(const node::MessageHeader& header) const noexcept {
    return header.cookie == cookie_[1] && sender_of(header.ticket) < ranks_;
  }
  bool is_leaving() const noexcept override { return is_leaving_.load(std::memory_order_acquire); }
  bool recognises(const node::MessageHeader& header) const noexcept override;
  void withdraw(const node::MessageHeader& header) noexcept override;
  bool is_lent(const node::MessageHeader& header) const override;
  Status look(const node::MessageHeader& header, Loan& loan) override;
  Status move(const node::MessageHeader& header) override;
  std::chrono::nanoseconds patience(const node::MessageHeader& header) const noexcept override;
  Clock::time_point begin_wait(int receiver, Clock::duration takes) noexcept override;
  void end_wait(int receiver, Clock::duration takes) noexcept override;

 private:
  // A ticket is the sender's rank and its number of the message, hidden by the cookie.
  std::uint32_t sender_of(std::uint64_t ticket) const noexcept {
    return static_cast<std::uint32_t>((ticket ^ cookie_[0]) >> 32);
  }
  std::uint32_t number_of(std::uint64_t ticket) const noexcept {
    return static_cast<std::uint32_t>(ticket ^ cookie_[0]);
  }
  void put_ticket(std::uint32_t number, node::MessageHeader& header) const noexcept {
    header.ticket = cookie_[0] ^ (std::uint64_t{rank_} << 32 | number);
  }
  bool is_of_peer(std::uint64_t ticket) const noexcept;
  Status receive(const core::Segment& segment, core::StagedBuffer& buffer,
                 const node::MessageHeader& header, NetBatch* batch);

  net::Mail& mail_;
  const Cookie cookie_;
  const std::uint32_t rank_;
  const std::uint32_t ranks_;
  std::atomic<bool> is_leaving_{false};
  std::atomic<Clock::rep> awaited_{0};  // what all that are waited for take
};

}  // namespace accord::p2p

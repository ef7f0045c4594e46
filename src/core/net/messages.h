// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages from a device to a rank of another node, while the host MPI carries their headers
// (net/mail.h): in the user's buffer where the design reaches that, else packed into page-locked
// memory. Ranks are those of MPI_COMM_WORLD. Knows no mpi.h.
#pragma once

#include <array>
#include <cstdint>

#include "core/device_message.h"
#include "core/layout.h"
#include "core/staged_buffer.h"
#include "net/mail.h"
#include "node/outbox.h"

namespace accord::core {

class NetMessages final : public node::Lender {
 public:
  using Cookie = std::array<std::uint64_t, 2>;  // everybody's
  // `rank`: this one.
  NetMessages(net::Mail& mail, const Cookie& cookie, std::uint32_t rank, std::uint32_t ranks)
      : mail_(mail), cookie_(cookie), rank_(rank), ranks_(ranks) {}

  // Readies `segment` of a buffer for `receiver`, or says no: then there is no header. After an
  // error there may be one all the same, which brings the receiver an error, too.
  Status post(const Segment& segment, const StagedBuffer& buffer, std::uint32_t receiver,
              node::MessageHeader& header, Posted& posted);
  // Puts the message where the user wants it; truncated where it does not fit. Waits for its
  // sender's process, never for its program.
  Status fetch(const Segment& segment, StagedBuffer& buffer, const node::MessageHeader& header);
  // The way it takes, for people.
  static const char* path_of(const node::MessageHeader& header);

  // Whether it is one of ours at all.
  bool is_own(const node::MessageHeader& header) const noexcept { return header.cookie == cookie_; }
  bool recognises(const node::MessageHeader& header) const noexcept override;
  void withdraw(const node::MessageHeader& header) noexcept override;
  bool is_lent(const node::MessageHeader& header) const override;
  Status look(const node::MessageHeader& header, Loan& loan) override;
  Status move(const node::MessageHeader& header) override;
  std::chrono::nanoseconds patience(std::size_t size_bytes) const noexcept override;

 private:
  Status receive(const Segment& segment, StagedBuffer& buffer, const node::MessageHeader& header);

  net::Mail& mail_;
  const Cookie cookie_;
  const std::uint32_t rank_;
  const std::uint32_t ranks_;
};

}  // namespace accord::core

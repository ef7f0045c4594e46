// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The receiver's end of partitioned communication. Once it knows its sender it tells it how its
// buffer is reached: by messages, or, within a node, through a board of pages in shared memory and,
// where it can be exported, the buffer itself. Then it says of each round that it has started.
#pragma once

#include <cstdint>
#include <vector>

#include "node/partition_board.h"
#include "partitioned/request.h"

namespace accord::partitioned {

class PartitionedReceive final : public Partitioned {
 public:
  PartitionedReceive(PartitionedTable& table, PartitionedCall call);
  ~PartitionedReceive() override;

  Status open();

  Status pready(std::int32_t low, std::int32_t high) override;
  Status parrived(std::int32_t partition, bool& arrived) override;
  std::uint64_t received_bytes() const noexcept override { return hello_.total_bytes; }

  // By the table, under its lock.
  void meet(const wire::Hello& hello);
  Status declined();
  Status take(const wire::Header& header, std::span<const std::byte> body,
              PartitionedChannel::Letter& letter);

 private:
  // What has come by a message, on its way into the user's buffer.
  struct Unpacking {
    std::size_t transfer;  // that it begins in
    std::uint64_t first_bytes;
    std::uint64_t length_bytes;
    PartitionedChannel::Letter letter;
    device::CopyTicket ticket;
  };

  Status step(core::HostPort& host, bool& done) override;
  bool drained(core::HostPort& host) override;
  void begin_round() override;
  void describe(accord_prequest& prequest) const override;
  std::size_t transfers() const noexcept override { return 0; }
  const char* call_name() const override { return "precv"; }
  std::string path() const override;
  stages::Stage stage() const override;
  Status pin_board() override;
  void tell_failure(std::uint32_t round) override;

  std::uint64_t bytes_of(std::size_t transfer) const noexcept;
  bool on_node() const noexcept;
  void forget_arrivals();
  void show_board();
  Status welcome();
  void lend_buffer();
  Status register_buffer();
  Status send_descriptors(bool& sent);
  Status tell_ready();
  Status unpack();
  void note_got(const Unpacking& part);

  bool met_ = false;
  wire::Hello hello_;
  bool truncated_ = false;
  bool is_unsound_ = false;
  // The sender knows what it takes. Until then the welcome as it will be.
  bool welcomed_ = false;
  bool prepared_welcome_ = false;
  bool tried_to_lend_ = false;
  wire::Welcome welcome_;
  node::Registration registration_;
  node::PartitionBoard
      board_;  // where it is not shared, nobody but this side's kernels looks at it
  std::atomic<bool> has_board_{false};
  std::uint32_t told_round_ = 0;  // the last one that the sender was told of

  // Of the round under way.
  std::size_t first_missing_ = 0;         // of the transfers
  std::vector<std::uint64_t> got_bytes_;  // by transfer, by messages
  std::vector<Unpacking> unpacking_;
  bool by_messages_ = false;
};

}  // namespace accord::partitioned

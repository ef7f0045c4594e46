// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The sender's end of partitioned communication. A transfer is moved once all its partitions are
// marked ready and the receiver has started the same round: into the receiver's memory where that
// is open here (by a kernel that has marked it itself, or by a copy engine), else by messages of
// the host MPI.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "node/partition_board.h"
#include "partitioned/request.h"

namespace accord::partitioned {

class PartitionedSend final : public Partitioned {
 public:
  PartitionedSend(PartitionedTable& table, PartitionedCall call);
  ~PartitionedSend() override;

  // Tells the receiver that there is this request.
  Status open();

  Status pready(std::int32_t low, std::int32_t high) override;
  Status parrived(std::int32_t partition, bool& arrived) override;

  // By the table, under its lock: what the receiver says.
  Status welcomed(const wire::Welcome& welcome, std::uint32_t round);
  void note_ready(std::uint32_t round) { told_round_ = round; }

 private:
  // Copies into the receiver's memory that were begun together.
  struct Batch {
    device::CopyTicket ticket;
    std::vector<std::size_t> transfers;
  };
  // A piece of the message on its way by the host MPI.
  struct Message {
    PartitionedChannel::Letter letter;
    std::size_t size_bytes = 0;
    device::CopyTicket packing;
    core::HostRequest request = 0;
    bool sent = false;
  };

  Status step(core::HostPort& host, bool& done) override;
  bool drained(core::HostPort& host) override;
  void begin_round() override;
  void describe(accord_prequest& prequest) const override;
  std::size_t transfers() const noexcept override { return transfers_; }
  const char* call_name() const override { return "psend"; }
  std::string path() const override;
  stages::Stage stage() const override;
  Status pin_board() override;
  void tell_failure(std::uint32_t round) override;

  std::uint64_t transfer_bytes() const noexcept {
    return call_.partition_bytes * static_cast<std::uint64_t>(call_.transfer_partitions);
  }
  std::uint64_t bytes_of(std::size_t transfer) const noexcept;
  std::uint32_t partitions_of(std::size_t transfer) const noexcept;
  bool receiver_is_ready() const noexcept;
  bool may_begin() const noexcept;
  std::size_t messages_max() const noexcept;
  bool has_arrived(std::size_t transfer) const noexcept;

  Status open_board(const wire::Welcome& welcome);
  using Opening = node::Opening;
  void reach(Opening opening, std::uint32_t from_round);
  bool find_memory(Opening opening);
  bool is_marked(std::size_t transfer) const noexcept;
  bool is_left(std::size_t transfer) const noexcept { return taken_rounds_[transfer] != round(); }
  void take(std::size_t transfer);
  void look_for_kernels();
  void collect();
  bool waits_for_company();
  Status issue();
  void queue_pieces(const std::vector<std::size_t>& ready);
  Status copy(const std::vector<std::size_t>& ready);
  Status finish_batches();
  Status send_pieces(core::HostPort& host);
  Status send_piece();
  Status progress_message(core::HostPort& host, Message& message, bool& done);

  const std::size_t transfers_;
  // What the receiver has said.
  bool welcomed_ = false;
  bool dropped_ = false;  // nobody takes the data
  std::uint32_t receiver_ = 0;
  std::uint32_t told_round_ = 0;  // without a board: the last one it has started
  node::PartitionBoard board_;
  bool is_lent_ = false;  // its buffer can be opened, as soon as that is allowed
  wire::Welcome lent_;
  node::Descriptor lent_descriptor_;
  node::PeerMemory opened_;
  std::byte* memory_ = nullptr;       // its buffer, here; null: by messages
  std::atomic<bool> reaches_{false};  // memory_ is there
  bool kernels_reach_ = false;
  bool connected_ = false;  // kernels have been told, if there are any

  // Of the round under way.
  PartitionedTable::Moved moved_;
  bool by_messages_ = false;  // some data has gone that way
  // Transfers that nobody has begun to move: how many, and none of them is before the first. Those
  // of them that are marked are taken, for the host to move them.
  std::size_t left_ = 0;
  std::size_t first_left_ = 0;
  std::vector<std::uint32_t> taken_rounds_;
  std::vector<std::size_t> ready_;
  std::vector<Batch> batches_;
  // Of one transfer, or of several in a row.
  struct Piece {
    std::size_t transfer;  // that it begins in
    std::uint64_t first_bytes;
    std::uint64_t length_bytes;
  };
  std::deque<Piece> pieces_;  // to be sent
  // Transfers that the messages sent so far end with, of those that the receiver has not said to
  // have; only where it says so on a board.
  std::deque<std::size_t> unseen_;
  std::vector<Message> messages_;
  std::size_t moving_ = 0;  // transfers in batches, and pieces

  // By the host's MPI_Pready.
  std::vector<std::atomic<std::uint32_t>> partition_rounds_;  // in which it was marked last
  std::vector<std::atomic<std::uint32_t>> transfer_counts_;   // of its partitions that are ready
  // Transfers that it has completed, until the next step.
  std::mutex marked_mutex_;
  std::vector<std::size_t> marked_;
};

}  // namespace accord::partitioned

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages of partitioned requests from process to process, over a communicator of the host MPI
// that is Accord's alone. They arrive in the order in which they were sent. Nothing here waits.
// Protected by the lock of PartitionedTable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/host_port.h"
#include "device/staging_pool.h"
#include "partitioned/wire.h"

namespace accord::partitioned {

// What it takes of the host MPI; the shim's. Processes are ranks of MPI_COMM_WORLD.
class MessagePort {
 public:
  virtual ~MessagePort() = default;
  virtual Status send(int process, std::span<const std::byte> bytes,
                      core::HostRequest& request) = 0;
  // The next message of any process, if one has come; then it must be received.
  virtual Status probe(bool& found, int& process, std::size_t& size_bytes,
                       std::uint64_t& message) = 0;
  virtual Status receive(std::uint64_t message, std::span<std::byte> bytes,
                         core::HostRequest& request) = 0;
};

// Of data in one message: its count fits an int, with the header.
std::uint64_t longest_piece();

// What becomes ready shortly after one another goes in one message up to so many bytes of a round
// of so many. Each message costs as much as some ten thousand bytes, so short ones gain nothing;
// but the way from device to device is faster where a part of the round is under way on each
// stretch of it.
std::uint64_t together_bytes(std::uint64_t round_bytes);
// Longer partitions are cut, if into few pieces.
std::uint64_t piece_bytes(std::uint64_t partition_bytes, std::uint64_t round_bytes);

// Messages that may be on their way into staging memory before what becomes ready waits for
// company: one copy alone would leave the link of the device idle while the next one begins.
constexpr std::ptrdiff_t kPackingMax = 3;

class PartitionedChannel {
 public:
  PartitionedChannel(MessagePort& messages, core::HostPort& host)
      : messages_(messages), host_(host) {}

  // A header and what belongs to it.
  template <class Record>
  Status post(int process, wire::Header header, const Record& record) {
    header.length_bytes = sizeof record;
    return post(process, header, std::as_bytes(std::span(&record, 1)));
  }
  Status post(int process, const wire::Header& header, std::span<const std::byte> body = {});

  // Data: `bytes` stay where they are until `request` is complete, and begin with the header.
  Status post_data(int process, std::span<const std::byte> bytes, core::HostRequest& request) {
    return messages_.send(process, bytes, request);
  }

  // Memory of a message. Its bytes stay where they are when it is moved.
  struct Letter {
    device::StagingBuffer staging;
    std::unique_ptr<std::byte[]> plain;
    std::byte* data() const noexcept {
      return plain ? plain.get() : static_cast<std::byte*>(staging.data());
    }
  };
  // The runtime's fastest host memory, where it is long that of the default one if there is none;
  // plain memory where it is short, and where kernels may run and none of the other kind is left:
  // the driver might let more of it wait for them.
  Status take_memory(device::DeviceRuntime* runtime, std::size_t size_bytes, Letter& letter) const;
  void let_kernels_run(bool may) noexcept { kernels_may_run_ = may; }

  // Keeps what has been sent until the host MPI has it: after an error nobody waits for that, since
  // the receiver may not look for messages any more.
  void keep(Letter letter, core::HostRequest request) {
    abandoned_.push_back({std::move(letter), request});
  }

  // Hands over what has come: the header and what follows it; the letter may be taken.
  using Deliver = std::function<Status(int process, const wire::Header& header,
                                       std::span<const std::byte> body, Letter& letter)>;
  Status poll(const Deliver& deliver);

 private:
  struct Outgoing {
    std::vector<std::byte> bytes;
    core::HostRequest request;
  };
  struct Abandoned {
    Letter letter;
    core::HostRequest request;
  };
  struct Incoming {
    int process;
    std::size_t size_bytes;
    Letter letter;
    core::HostRequest request;
  };

  Status take_in();

  MessagePort& messages_;
  core::HostPort& host_;
  std::deque<Outgoing> outgoing_;
  std::deque<Incoming> incoming_;
  std::vector<Abandoned> abandoned_;
  bool kernels_may_run_ = false;
};

}  // namespace accord::partitioned

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Copies by Synapse. Its engines reach host memory only where that is mapped for the device: other
// memory goes by way of a buffer that is. Called by synapse/runtime.cpp only.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "device/device_runtime.h"
#include "device/synapse/device.h"

namespace accord::device::synapse {

// A stream with a buffer; for one batch of copies at a time.
class Lane {
 public:
  // `mapped` is host memory that the device reaches. Both outlive the lane.
  Lane(const Driver& driver, const OneDevice& device, const Allocations& mapped)
      : driver_(driver), device_(device), mapped_(mapped) {}
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // The user's memory stays where it is until poll or wait has ended. After an error nothing is
  // under way, and the lane is of no more use.
  Status begin(std::span<const Copy> copies);
  Status poll(bool& done);
  Status wait();

 private:
  // One row, or what is left of it.
  struct Move {
    Address dst;
    Address src;
    std::size_t size_bytes;
    Direction direction;
    bool by_buffer;
  };
  // What lies in the buffer for the user when the stream has done its step.
  struct Return {
    std::byte* dst;
    const std::byte* src;
    std::size_t size_bytes;
  };

  Status make();
  void add_row(std::byte* dst, const std::byte* src, std::size_t size_bytes);
  bool reaches(const std::byte* host, std::size_t size_bytes) const;
  Status submit();
  Status finish_step(Result result, const char* call, bool& done);

  const Driver& driver_;
  const OneDevice& device_;
  const Allocations& mapped_;
  Stream stream_ = nullptr;
  std::byte* buffer_ = nullptr;
  std::vector<Move> moves_;
  std::size_t next_ = 0;  // of the moves, to be submitted
  std::vector<Return> returns_;
  std::vector<Address> dst_, src_;  // of the step that is under way
  std::vector<std::uint64_t> sizes_;
};

// Lanes of the device, used again.
class Lanes {
 public:
  std::unique_ptr<Lane> borrow(const Driver& driver, const OneDevice& device,
                               const Allocations& mapped);
  void give_back(std::unique_ptr<Lane> lane);

 private:
  static constexpr std::size_t kIdleMax = 8;

  std::mutex mutex_;
  std::vector<std::unique_ptr<Lane>> idle_;
};

// For HCCL: the stream it is given is Synapse's.
Status make_stream(const Driver& driver, const OneDevice& device,
                   std::unique_ptr<LibraryStream>& stream);

}  // namespace accord::device::synapse

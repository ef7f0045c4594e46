// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Copies by command lists, in lanes of our own: a batch is one list, executed once and awaited
// once, then reset and used again; a single copy goes by an immediate list, which spares it two
// calls. Objects of Level Zero are for one thread at a time, so a lane is lent to one batch. Called
// by level_zero.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "device/device_runtime.h"
#include "device/level_zero_devices.h"

namespace accord::device::level_zero {

class Lane {
 public:
  // The `number` spreads lanes over the engines of the device.
  Lane(const Driver& driver, const Device& device, std::uint32_t number)
      : driver_(driver), device_(device), number_(number) {}
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane();

  // After an error nothing is in flight.
  Status begin(std::span<const Copy> copies);
  // After an error the device does not touch the copies' memory any more, as far as it answers.
  Status poll(bool& done);
  Status wait();

  // Whether it can be used again: not after an error, which may have left its list half recorded.
  bool usable() const noexcept { return usable_; }

 private:
  enum class Way { idle, immediate, list };

  Status begin_immediate(const Copy& copy);
  Status begin_list(std::span<const Copy> copies);
  Status record(std::span<const Copy> copies);
  Status make_immediate();
  Status make_list();
  ze_command_queue_desc_t queue_description() const;
  Status finish();
  Status give_up(Status status);

  const Driver& driver_;
  const Device& device_;
  const std::uint32_t number_;
  Way way_ = Way::idle;
  bool usable_ = true;
  ze_command_list_handle_t immediate_ = nullptr;  // with the event that its copies signal
  ze_event_pool_handle_t event_pool_ = nullptr;
  ze_event_handle_t event_ = nullptr;
  ze_command_queue_handle_t queue_ = nullptr;  // with the list it executes and that one's fence
  ze_command_list_handle_t list_ = nullptr;
  ze_fence_handle_t fence_ = nullptr;
};

// The lanes of one device. Thread-safe.
class Lanes {
 public:
  std::unique_ptr<Lane> borrow(const Driver& driver, const Device& device);
  void give_back(std::unique_ptr<Lane> lane);

 private:
  static constexpr std::size_t kIdleMax = 32;

  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Lane>> idle_;
  std::uint32_t made_ = 0;
};

}  // namespace accord::device::level_zero

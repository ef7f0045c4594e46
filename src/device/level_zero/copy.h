// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Copies and kernels by command lists, in lanes of our own: a batch is one list, executed once and
// awaited once, then reset and used again; a single copy goes by an immediate list, which spares it
// two calls. Objects of Level Zero are for one thread at a time, so a lane is lent to one batch.
// Called by level_zero/runtime.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "device/device_runtime.h"
#include "device/level_zero/devices.h"

namespace accord::device::level_zero {

struct Kernel;

struct Launch {
  Kernel* kernel = nullptr;
  std::uint32_t groups = 0;
  std::size_t offset_bytes = 0;  // of its parameter among those of the batch
};

// A batch of copies and kernels, in any order. What the kernels are told goes to the device ahead
// of them.
struct Work {
  std::vector<Copy> copies;
  std::vector<Launch> launches;
  std::vector<std::byte> parameters;

  // Where the parameter is, for its launch; then more of it.
  std::size_t add_parameters(const void* bytes, std::size_t size_bytes);
  void extend_parameters(const void* bytes, std::size_t size_bytes);
};

class Lane {
 public:
  // The `number` spreads lanes over the engines.
  Lane(const Driver& driver, const Device& device, Engines engines, std::uint32_t number)
      : driver_(driver), device_(device), engines_(engines), number_(number) {}
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane();

  // After an error nothing is in flight.
  Status begin(std::span<const Copy> copies);
  Status begin(const Work& work);
  // After an error the device does not touch the copies' memory any more, as far as it answers.
  Status poll(bool& done);
  Status wait();

  // Whether it can be used again: not after an error, which may have left its list half recorded.
  bool usable() const noexcept { return usable_; }

 private:
  enum class Way { idle, immediate, list };

  Status begin_immediate(const Copy& copy);
  template <class Record>
  Status begin_list(const Record& record);
  Status record(const Work& work);
  Status record(const Launch& launch);
  Status place_parameters(const std::vector<std::byte>& parameters);
  void free_parameters();
  Status make_immediate();
  Status make_list();
  Status finish();
  Status give_up(Status status);

  const Driver& driver_;
  const Device& device_;
  const Engines engines_;
  const std::uint32_t number_;
  Way way_ = Way::idle;
  bool usable_ = true;
  ze_command_list_handle_t immediate_ = nullptr;  // with the event that its copies signal
  ze_event_pool_handle_t event_pool_ = nullptr;
  ze_event_handle_t event_ = nullptr;
  ze_command_queue_handle_t queue_ = nullptr;  // with the list it executes and that one's fence
  ze_command_list_handle_t list_ = nullptr;
  ze_fence_handle_t fence_ = nullptr;
  std::size_t parameter_bytes_ =
      0;  // of memory for kernels' parameters: the host's and the device's
  void* host_parameters_ = nullptr;
  void* device_parameters_ = nullptr;
};

// The lanes of some engines of a device. Thread-safe.
class Lanes {
 public:
  std::unique_ptr<Lane> borrow(const Driver& driver, const Device& device, Engines engines);
  void give_back(std::unique_ptr<Lane> lane);

 private:
  static constexpr std::size_t kIdleMax = 32;

  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Lane>> idle_;
  std::uint32_t made_ = 0;
};

struct DeviceLanes {
  Lanes copy;
  Lanes compute;
};

}  // namespace accord::device::level_zero

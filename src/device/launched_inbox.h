// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Inbox exchanges by kernels that are launched for each of them: one that sends, and behind it one
// that receives (launched_inbox*.clcpp). They stay no longer than their exchange: neither waits
// without end, nor does what is sent wait for a kernel that receives. So ranks may share a device,
// and what comes late is found by the next launch, wherever a device keeps what it has read. A
// runtime says how its kernels are launched: a Lane. Called by level_zero/inbox.cpp and
// cuda/launched_inbox.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "device/device_runtime.h"
#include "device/inbox_server.h"
#include "device/launched_inbox_kernels.h"

namespace accord::device::launched {

constexpr const char* kSend = "accord_inbox_send";

// Of the kernel that receives what this exchange receives.
struct KernelName {
  const char* kernel;
  const char* element;  // as in the kernel's name, where it combines
};
KernelName receiving_kernel(const InboxExchange& exchange);

// The parameter of both kernels.
void write_parameters(const InboxTicket& ticket, InboxParameters& parameters);
// Work-groups for it: one for what that can take at once, since others would have nothing to do.
std::uint32_t groups_of(const InboxCall& call);

// What runs one exchange at a time, with a parameter of its own.
class Lane {
 public:
  Lane() = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  virtual ~Lane() = default;

  // Makes what it is of no use without. Once.
  virtual Status open() = 0;
  // Launches the kernels. After an error nothing is in flight; unsupported where the device does
  // not run that one which combines, and others can be begun.
  virtual Status begin(const InboxTicket& ticket) = 0;
  // `ended`: the kernels have; `complete`: and all had come. After an error the device does not
  // touch the exchange's memory any more, as far as it answers.
  virtual Status poll(bool& ended, bool& complete) = 0;
  // Whether it can be used again: not after another error.
  virtual bool usable() const noexcept = 0;
};

class Server final : public InboxServer {
 public:
  using MakeLane = std::function<std::unique_ptr<Lane>(std::uint32_t number)>;

  // Of device `index` of the runtime, whose kernels reach memory of `context`. open() must succeed.
  Server(DeviceRuntime& runtime, int index, const void* context, MakeLane make_lane)
      : runtime_(runtime), index_(index), context_(context), make_lane_(std::move(make_lane)) {}
  Status open();

  // No kernel keeps others from running for longer than it looks for its data.
  KernelPlace kernel_place() const override { return {}; }
  bool reaches(const PointerInfo& memory) const override {
    return memory.context == nullptr || memory.context == context_;
  }

  Status begin(InboxTicket& ticket) override;
  Status poll(InboxTicket& ticket, bool& done) override;
  void stop(InboxTicket& ticket, bool& done) override;

 private:
  static constexpr std::size_t kIdleMax = 32;

  // An exchange on its way.
  struct Running {
    std::unique_ptr<Lane> lane;
    // Where the device does not run the kernel that would combine what comes: it is received here,
    // and combined by the CPU.
    std::byte* apart = nullptr;
  };

  Status borrow(std::unique_ptr<Lane>& lane);
  void give_back(std::unique_ptr<Lane> lane);
  Status launch(const InboxTicket& ticket, Running& running);
  Status launch_apart(const InboxTicket& ticket, Running& running);
  Status combine(const InboxExchange& exchange, const std::byte* apart);
  Status ask(InboxTicket& ticket, bool& ended, bool& complete);

  DeviceRuntime& runtime_;
  const int index_;
  const void* const context_;
  const MakeLane make_lane_;
  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Lane>> idle_;
  std::uint32_t lanes_made_ = 0;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, Running> running_;  // by the number of the ticket; they stay in place
};

}  // namespace accord::device::launched

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What copies of the host runtime take: latency + bytes / rate of a machine of machines.def, so
// that a test bed on CPUs does not have copies between devices and host memory for nothing. Links
// of a device take one copy after the other, whichever process of this machine makes it. With
// ACCORD_HOST_SLOWDOWN all of it is as many times slower, so that the cores here are fast beside
// it. Kernels take no time. Called by host/runtime.cpp only.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "device/adapter_model.h"

namespace accord::device {

// Of a device, one way.
enum class Link : unsigned { to_device, to_host, on_device, peer, adapter_reads, adapter_writes };
inline constexpr unsigned kLinks = 6;

struct LinkCost {
  std::int64_t latency_ns = 0;
  double bytes_per_ns = 0;
};

struct HostMachine {
  std::array<LinkCost, kLinks> links;
  double network_bytes_per_ns = 0;

  const LinkCost& operator[](Link link) const { return links[static_cast<unsigned>(link)]; }
};

// False where no machine has that name.
bool find_machine(const std::string& name, std::int64_t slowdown, HostMachine& machine);

// The copies of a batch, added up by link.
class Traffic {
 public:
  static constexpr int kHost = -1;  // instead of a device
  void add(int to_device, int from_device, std::size_t size_bytes);

 private:
  friend class CostModel;
  struct Part {
    int device;
    Link link;
    std::size_t size_bytes;
  };
  static constexpr std::size_t kPartsMax = 8;  // the rest counts with the last one
  std::array<Part, kPartsMax> parts_{};
  std::size_t count_ = 0;
};

class CostModel final : public AdapterModel {
 public:
  // What the settings name; null: copies cost nothing.
  static std::unique_ptr<CostModel> of_settings();
  explicit CostModel(const HostMachine& machine) : machine_(machine) {}

  // Takes the links, from now on, and says when the last of these copies has ended.
  Moment begin(const Traffic& traffic);
  // Sleeps, but for the last moments.
  static void wait_until(Moment moment);
  // Whether it has come. A thread that asks again and again sleeps in between: others need the
  // core.
  static bool has_come(Moment moment);

  Moment begin_read(int device, std::size_t size_bytes) override;
  Moment end_write(int device, std::size_t size_bytes, From from) override;
  Moment end_write_at_peer(Moment& free, std::size_t size_bytes) override;
  AdapterReach reach() const noexcept override {
    const double share = machine_[Link::adapter_reads].bytes_per_ns / machine_.network_bytes_per_ns;
    if (share >= 1. / 2) return AdapterReach::fast;
    return share >= 1. / 3 ? AdapterReach::half : AdapterReach::slow;
  }

 private:
  using Nanoseconds = std::int64_t;
  // When what begins at `earliest`, or once the link is free, leaves it free again.
  Nanoseconds take(int device, Link link, std::size_t size_bytes, Nanoseconds earliest);
  Nanoseconds duration(Link link, std::size_t size_bytes) const;
  Nanoseconds on_wire(std::size_t size_bytes) const;

  const HostMachine machine_;
};

}  // namespace accord::device

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The carrying end of a message of freight.h: puts what its landing grants, straight out of its
// memory or chunk by chunk by way of page-locked memory, so that the copies out of a device and the
// network are at work at the same time. It ends only once nothing of it is under way any more.
#pragma once

#include <deque>

#include "net/copying.h"
#include "net/design.h"
#include "net/freight.h"

namespace accord::net {

class Carriage final : public Transfer, public FreightEnd {
 public:
  // Where it is to go.
  struct Target {
    std::vector<std::byte> worker;
    std::uint64_t landing = 0;
    std::string name;  // whose, for errors
  };
  enum class Way { straight, by_chunks };
  Carriage(Freight& freight, const Memory& from, Target target, Way way);
  ~Carriage() override;
  Carriage(const Carriage&) = delete;
  Carriage& operator=(const Carriage&) = delete;

  // unsupported: it can not land there, and nothing has been put.
  Status advance(bool& done) override;
  void stop() noexcept override;
  bool must_be_polled() const noexcept override;

  void hear(const FreightNote& note, Bytes bytes) override;

 private:
  struct Grant {
    std::size_t offset_bytes = 0;  // of what is yet to be put
    std::size_t size_bytes = 0;
    std::uint64_t address = 0;
    std::shared_ptr<RemoteRegion> region;
  };
  struct Part {
    Grant of;
    device::StagingBuffer chunk;
    bool is_copying = false;
    Copying copying;
    Ticket putting;
  };
  Status begin();
  Status understand(const FreightNote& note, Bytes bytes);
  void go_on();
  Status begin_parts();
  Status begin_part(std::size_t size_bytes, device::StagingBuffer chunk);
  Status advance(Part& part, bool& is_over);
  void put(Part& part);
  Status named(const Status& status) const;

  Freight& freight_;
  const std::uint64_t number_;
  const Memory from_;
  const Target target_;
  const Way way_;
  Peer* peer_ = nullptr;
  std::vector<std::byte> key_;  // of the region that was granted last
  std::shared_ptr<RemoteRegion> region_;
  std::deque<Grant> grants_;
  std::deque<Part> parts_;
  std::size_t granted_bytes_ = 0;
  std::size_t put_bytes_ = 0;
  Status failed_;
};

}  // namespace accord::net

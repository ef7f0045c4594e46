// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One collective within a node, a state machine polled by its operation: straight between the
// users' buffers where all ranks can (direct_exchange.h), else through the exchange regions. There
// each chunk is copied from the user's buffer into the own region, reduced there by shares where
// the call reduces, and fetched from the peers' regions into the user's buffer. A host buffer, a
// derived type, memory that cannot be exported: all enter through the region. No step waits for a
// peer; a kernel or copy is started only once what it reads is there. Regions in host memory are
// the same, but that the CPU reduces, and nothing goes within the device: no kernel has to have a
// turn.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "coll/coll_args.h"
#include "coll/exchange.h"
#include "coll/intra/direct_exchange.h"
#include "node/group.h"
#include "node/plan.h"

namespace accord::coll {

class NodeExchange final : public Exchange {
 public:
  // The ends outlive the exchange. `regions`: of the group, its own or those in host memory.
  NodeExchange(const std::shared_ptr<node::Group>& group, const CollArgs& args)
      : NodeExchange(group, group->regions(), args) {}
  NodeExchange(std::shared_ptr<node::Group> group, node::Regions regions, const CollArgs& args);

  Status advance(bool& done) override;
  void stop(bool& done) override;
  // What this process's exchanges came to, for people.
  static void report();

  const char* path() const noexcept override {
    return regions_.on_host ? nullptr : direct_ ? "node-direct" : "node";
  }

 private:
  enum class State { empty, filling, filled, reducing, reduced, pulling, pulled };
  struct Flight {
    State state = State::empty;
    std::size_t chunk = 0;
    bool own_skipped = false;   // the block for this rank itself is not in its region
    bool result_there = false;  // the result is in the user's buffer already
    device::CopyTicket ticket;
  };

  void enter_regions();
  Status move(Flight& flight, bool& moved);
  Status begin_fill(Flight& flight);
  Status begin_reduce(Flight& flight, bool& begun);
  Status begin_pull(Flight& flight, bool& begun);
  Status begin(const core::CallEnd& end, const core::CopyBatch& batch, device::CopyTicket& ticket);
  void add_copies(const core::CallEnd& end, const std::vector<node::Move>& moves,
                  std::uint64_t sequence, bool to_region, core::CopyBatch& batch) const;
  void put_together(std::uint64_t sequence, std::vector<node::Move>& moves) const;
  bool usable_by_kernels(const core::CallEnd& end) const;
  Status reduce(Flight& flight, const node::Share& share, void* dst,
                const std::vector<const void*>& sources);
  std::vector<const void*> sources_of(const Flight& flight, const node::Share& share) const;
  Status poll(Flight& flight, bool& done);
  stages::Stage stage() const;
  bool publish(std::atomic<std::uint64_t>& counter, std::uint64_t sequence) const;
  bool slot_is_free(std::uint64_t sequence) const;
  std::uint64_t sequence(const Flight& flight) const { return base_ + flight.chunk; }

  std::shared_ptr<node::Group> group_;
  node::Regions regions_;
  const CollArgs& args_;
  node::Plan plan_;
  // While it is not known whether all buffers can be reached directly, and where they can.
  std::optional<DirectExchange> direct_;
  std::uint64_t base_ = 0;  // number of the first chunk in the group's life
  std::vector<Flight> flights_;
  // The block for this rank itself goes from one user buffer to the other, without the region.
  // Local: nobody else reads it.
  bool own_direct_ = false;
  // Results that only this rank needs are reduced into its user's buffer.
  bool result_direct_ = false;
  std::size_t next_ = 0;      // chunk to be filled next
  std::size_t finished_ = 0;  // chunks of which this rank has everything
};

}  // namespace accord::coll

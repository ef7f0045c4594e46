// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One collective of a communicator that spans nodes, a state machine polled by its operation. Each
// chunk goes up to the leaders of its node and down from them through the exchange regions, and
// between the nodes (plan.h): from host memory to host memory by messages of the host MPI, or by a
// transport (transport.h) from device memory to device memory. Several chunks are on their way at
// once, so that the next one is reduced and copied while one is between the nodes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/stages.h"
#include "coll/coll_args.h"
#include "coll/exchange.h"
#include "coll/inter/parcel.h"
#include "coll/inter/plan.h"
#include "coll/transport.h"
#include "node/group.h"

namespace accord::coll {

class TwoLevelExchange final : public Exchange {
 public:
  // They outlive the exchange. The queue has all that it takes: a group on each node, and a wire.
  TwoLevelExchange(core::Team& team, const CollArgs& args);

  Status advance(bool& done) override;
  void stop(bool& done) override;
  const char* path() const noexcept override;

  // Says how many of this process have ended; info.
  static void report();

 private:
  enum class State { empty, up, between, ready, down };
  // A message that is under way, of what is in the parcel or of the name of an offer of it. 0 as a
  // name: the sender does not reach this rank, and what it stands for comes by a message behind.
  struct Pending {
    int peer = 0;
    int tag = 0;
    core::HostRequest request = 0;
    std::size_t expected_bytes = 0;  // of receives
    bool has_passed = false;
    std::unique_ptr<Transport::Name> name{};
    net::Memory place{};  // of what is to be fetched
    std::unique_ptr<Transport::End> end{};
    device::StagingBuffer bounce{};  // of what lies on a device, and goes by messages all the same
  };
  struct Flight {
    State state = State::empty;
    std::size_t number = 0;
    TwoLevelPlan::Chunk chunk;
    Parcel parcel;
    CollArgs local;  // what goes on within the node, as a call of its ranks
    std::unique_ptr<Exchange> exchange;
    std::size_t round = 0;
    std::size_t begun = 0;  // of its messages, which are gone through twice: receives, sends
    std::vector<Pending> messages;  // of the round
    std::size_t reduced = 0;        // of its reductions
    bool is_reducing = false;       // the next one
    device::CopyTicket reducing;
  };

  bool down_is_next() const noexcept;
  Flight& flight_of(std::size_t number) { return flights_[number % flights_.size()]; }
  Status begin_steps(bool& moved);
  Status begin_up(Flight& flight);
  void begin_own(Flight& flight);
  Status begin_down(Flight& flight);
  void begin_local(Flight& flight, const TwoLevelPlan::Local& local, core::CallEnd in,
                   core::CallEnd out, core::CallEnd::Direction direction);
  Status move(Flight& flight, bool& moved);
  Status advance_local(Flight& flight, bool& done);
  Status begin_round(Flight& flight);
  static void next_round(Flight& flight);
  Status begin_message(Flight& flight, const TwoLevelPlan::Message& message, int tag);
  bool drain(Flight& flight);
  bool has_reduced(Flight& flight) const;
  bool begin_drain(Flight& flight);
  void begin_what_can(Flight& flight);
  bool is_offered(const TwoLevelPlan::Message& message) const;
  Status begin_name(Flight& flight, const TwoLevelPlan::Message& message, Pending pending);
  Status begin_send(Flight& flight, Pending pending);
  Status begin_receive(Pending& pending);
  Status end_receive(Pending& pending);
  Status poll(Pending& pending, bool& ended);
  Status take_name(Pending& pending);
  Status poll_messages(Flight& flight, bool& done);
  Status reduce(Flight& flight, bool& done);
  Status reduce_on_host(Flight& flight, const TwoLevelPlan::Reduction& reduction);
  Status begin_reduction(Flight& flight, const TwoLevelPlan::Reduction& reduction);
  stages::Stage stage() const;

  std::shared_ptr<node::Group> group_;
  std::shared_ptr<core::Wire> wire_;
  const NetWay between_;
  std::unique_ptr<Transport> transport_;
  const CollArgs& args_;
  TwoLevelPlan plan_;
  Parcel::Leases& spare_;
  std::uint64_t base_;  // number of the first chunk in the life of the lane
  unsigned lane_;
  std::vector<Flight> flights_;
  std::size_t next_up_ = 0;    // chunk to begin next
  std::size_t next_down_ = 0;  // chunk to bring down next
  std::size_t finished_ = 0;
  bool stopping_ = false;  // what is sent from now on is empty
};

}  // namespace accord::coll

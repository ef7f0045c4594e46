// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One-sided operations by messages: between nodes, and where memory cannot be exported or its kind
// is known to the target alone. An origin asks, the target does it in any MPI call or by the
// progress thread, and replies when it is done. Requests of one origin are carried out in their
// order, so that its accumulates are; those of different origins do not wait for each other. A put
// or get by a transport is begun in that order, and its bytes come while others are carried out.
// Active from the creation of the window to its end.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/silence.h"
#include "base/status.h"
#include "core/engine.h"
#include "core/wire.h"
#include "node/descriptor_port.h"
#include "node/life_line.h"
#include "rma/messages.h"
#include "rma/target.h"
#include "rma/transports.h"

namespace accord::rma {

// An operation of the user's that is not through: `status` is valid once nothing is left.
struct Progress {
  std::atomic<int> left{0};
  Status status;

  bool is_done() const noexcept { return left.load(std::memory_order_acquire) == 0; }
};

// Where a reply's bytes go.
struct Result {
  Place place;
  Pieces pieces;
};

class Service final : public core::Operation {
 public:
  // `own`: this rank's memory. It outlives the service, as do the transports; null: there are none.
  Service(std::unique_ptr<core::Wire> wire, int rank, int size, const Target& own,
          const LifeLines& lines, Transports* transports = nullptr)
      : wire_(std::move(wire)),
        rank_(rank),
        own_(own),
        lines_(lines),
        transports_(transports),
        peers_(static_cast<std::size_t>(size)) {
    is_standing_ = true;
  }

  // Of that rank, which is on another node: cut once it gives no sign of life. Before open.
  void watch(int rank, std::shared_ptr<node::LifeLine> line) {
    peers_[static_cast<std::size_t>(rank)].far = std::move(line);
  }
  // Peers send parcels there at any time, and wait for room: the service makes it, in any MPI call
  // of this rank. Before open; the port outlives the service.
  void makes_room_in(node::DescriptorPort& port) noexcept { port_ = &port; }
  Status open();
  // No peer is asked for a sign of life any more: what comes once its receiver has closed would be
  // taken for another communicator's. Whether all have answered, or are gone.
  bool ends_asking() noexcept;
  // All peers have stopped asking: ends the service.
  void close() noexcept;

  struct Question {
    message::Header header;
    std::span<const Piece> pieces;
    std::span<const std::byte> data;     // packed
    std::span<const std::byte> compare;  // after it
    // By the transport that the header names: what a put reads, and where a get writes.
    net::Memory memory = {};
  };
  // Its error is told by `progress`; null: by take_error.
  Status ask(int target, const Question& question, Result result,
             const std::shared_ptr<Progress>& progress);

  // Nothing that this rank has asked that target is under way.
  bool is_quiet(int target) const noexcept {
    return peers_[static_cast<std::size_t>(target)].asked.load(std::memory_order_acquire) == 0;
  }
  // Somebody of this process waits for that rank, or with -1 for any: to be called again and again
  // meanwhile. Its life line tells what comes of it.
  void await(int rank) noexcept {
    if (rank >= 0) peers_[static_cast<std::size_t>(rank)].is_awaited.store(true);
    if (rank < 0) any_is_awaited_.store(true);
  }
  // Peers that it has looked at for what has come: for tests.
  std::size_t looks() const noexcept { return looks_; }
  // The first error of what it has asked there since the last time.
  Status take_error(int target);

  Phase advance(core::HostPort& port) override;

 private:
  using Packet = message::Packet;
  using Header = message::Header;
  using Bytes = std::vector<std::byte>;

  // A message that has come, or whose body has yet to.
  struct Incoming {
    Header header;
    Bytes body;
    core::HostRequest request = 0;
    bool is_there = true;
  };
  struct Outgoing {
    int to = -1;
    std::unique_ptr<Packet> packet;
    Bytes body;
    core::HostRequest requests[2] = {};
    int left = 0;
  };
  struct Asked {
    int target = -1;
    Result result;
    std::shared_ptr<Progress> progress;
    // By a transport: where it brings what is got.
    bool gets = false;
    std::int32_t transport = Transports::kNone;
    net::Memory memory;
    int left = 1;  // its reply, and what goes by the transport
    bool is_replied = false;
    Status status;
  };
  // This rank's end of what goes by a transport.
  struct Moving {
    std::unique_ptr<net::Transport::End> end;
    std::uint64_t asked = 0;  // what this rank has asked for; 0: a peer has
    bool is_answered = true;  // else the peer's question is, once it has ended
    Header question;
  };
  struct Peer {
    std::atomic<std::uint64_t> asked{0};
    Status error;
    std::list<Incoming> incoming;  // which is small where it is empty
    // Of this rank's window that it holds by messages.
    std::uint32_t shared_locks = 0;
    bool has_exclusive_lock = false;
    std::shared_ptr<node::LifeLine> far;  // null: it is on this node
    std::atomic<bool> is_awaited{false};
    Silence silence;
    unsigned unanswered = 0;  // questions for a sign of life
  };

  Status send(int to, Header header, Bytes body);
  Status receive_next();
  Status receive();
  Status accept(std::size_t received_bytes);
  Status turn_down(const Header& header, const Status& why);
  Status look_at_sends();
  Status serve();
  Status handle(Incoming& incoming);
  Status answer(const Header& question, const Status& outcome, Bytes body = {},
                net::Transport::Name offer = 0);
  void offer(int target, Header& header, const net::Memory& from);
  Status move_for_peer(const Header& question, const Piece& run);
  Status look_at_moving();
  void stop_moving(std::uint64_t number) noexcept;
  Status do_update(const Header& header, std::span<const Piece> pieces, const std::byte* data,
                   Bytes& result);
  void end(const Header& reply, const Bytes& body);
  Status take_reply(const Header& reply, const Bytes& body, Asked& asked);
  void end_part(std::uint64_t number, const Status& status);
  void give_up(std::uint64_t number, const Status& why);
  Status grant_locks();
  Status give_back_lock(const Header& question);
  Status look_at_lives();
  void fail_what_the_dead_were_asked();
  void fail(const Status& status);
  Phase end_all();

  std::unique_ptr<core::Wire> wire_;
  const int rank_;
  const Target& own_;
  const LifeLines& lines_;
  Transports* const transports_;

  mutable std::mutex mutex_;  // guards what follows, but for what only advance touches
  std::vector<Peer> peers_;   // by rank
  std::vector<int> senders_;  // peers of which something has come that is not done
  std::size_t looks_ = 0;
  std::unordered_map<std::uint64_t, Asked> asked_;
  std::uint64_t numbers_ = 0;
  std::deque<Outgoing> sends_;
  std::list<Moving> moving_;
  Status broken_;

  node::DescriptorPort* port_ = nullptr;
  LifeChecks parcel_checks_;
  Silence::Clock::time_point looked_at_{};  // at lives
  std::atomic<bool> any_is_awaited_{false};
  bool asks_for_life_ = true;
  std::vector<Header> waiting_locks_;
  Packet packet_;  // that comes next
  core::HostRequest next_ = 0;
  std::atomic<bool> is_closed_{false};
};

}  // namespace accord::rma

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What ranks send each other by messages in a collective that goes pair by pair (pair.h): chunk by
// chunk through page-locked host memory, copies and messages of several chunks at once. The first
// chunk of a pair says how much comes; it is short unless all blocks are equal. Short pairs are
// copied together, in one batch from the device and in one to it, since a copy takes longer to
// begin and to await than to run, and a device that processes share takes turns. The shortest of
// these have no messages of their own, but travel with those of the other ranks of their node
// (bundles.h). Long pairs may go by a transport (coll/transport.h): then messages only name what
// their receiver fetches, from user memory to user memory where either end has its block in one
// run, else through page-locked memory. A rank that expects something else than it is sent gets an
// error, and does its other pairs all the same.
//
// Each rank goes through its peers by rounds, in each of which any two ranks are each other's peer,
// and begins its chunks in that order, those of short pairs and those of long ones, but for a few
// that leave room for those before them: so the first one of all that is not done is under way on
// both its ranks, however few may be at a time. Both directions of a pair go side by side.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "coll/coll_args.h"
#include "coll/pairs/bundles.h"
#include "coll/pairs/pair.h"
#include "coll/transport.h"
#include "core/placement.h"
#include "core/wire.h"
#include "device/staging_pool.h"

namespace accord::coll {

class FarPairs {
 public:
  // Of the wire's messages, this call's alone.
  struct Tags {
    int pieces;
    Bundles::Tags bundles;
  };

  // What a call goes by between nodes; no transport: by the wire alone, on all ranks.
  struct Links {
    core::Wire& wire;
    Transport* transport;
  };

  // All but the runtime, whose page-locked memory is used, outlive it. Pairs within the node of
  // `near_bytes` or more go another way.
  FarPairs(Links links, const core::Placement& placement, device::DeviceRuntime& runtime,
           const CollArgs& args, Tags tags, std::size_t near_bytes);

  // Whether a pair of this rank's goes this way; the others go within the node.
  bool takes(int peer, std::size_t size_bytes) const {
    return !is_near(peer) || size_bytes < near_bytes_;
  }
  // Up to which pairs are copied together; equal on all ranks.
  static std::size_t short_bytes_max(const CollArgs& args) noexcept;

  // With an error beside `done` that is a mistake of the program.
  Status advance(bool& done);
  // After another error: sends messages without bytes of the pairs in place of those that peers
  // wait for, and receives theirs.
  void stop(bool& done);

  bool has_block_of(int peer) const;

  // Of this process, in either direction.
  struct Counters {
    std::uint64_t messages = 0;  // of one pair
    std::uint64_t offers = 0;    // those of them that named one
    std::uint64_t copies = 0;    // to or from their memory, each of one or several
    // Tries to begin something, and pairs looked at for that.
    std::uint64_t tries = 0;
    std::uint64_t looks = 0;
  };
  static Counters counters() noexcept;

 private:
  using Direction = core::CallEnd::Direction;

  // Of long pairs under way in either direction: enough short ones for a network's latency.
  static constexpr std::size_t kPiecesUnderWayMax = 32;

  using Size = std::uint64_t;
  // In that of a pair.
  static constexpr Size kOffered = Size{1} << 63;

  struct Pair : coll::Pair {
    bool is_short = false;         // copied together with others,
    bool is_bundled = false;       // and in no message of its own
    bool is_offered = false;       // by the transport; its sender alone decides
    std::size_t begun_bytes = 0;   // of pieces that have been begun
    std::size_t copied_bytes = 0;  // out of the user's buffer
    bool is_known = false;         // incoming: its first piece has told its size
    bool is_refused = false;       // incoming: it is another one; what comes is for nobody
  };
  // Of one pair, in a message of its own unless it is bundled.
  struct Piece {
    Pair* pair;
    std::size_t first_bytes;
    std::size_t length_bytes;
    bool is_bundled;
    std::byte* bytes = nullptr;    // in the parcel
    std::byte* message = nullptr;  // these, or the name of an offer; of the first, behind its size
    core::HostRequest request = 0;
    bool is_posted = false;                 // its message has begun,
    bool has_passed = false;                // and is there,
    bool has_ended = false;                 // and so is all that it stands for
    std::unique_ptr<Transport::End> end{};  // of an offer
    bool is_run = false;                    // which lies in the user's memory

    std::size_t prefix_bytes() const noexcept { return first_bytes == 0 ? sizeof(Size) : 0; }
  };
  // The message of a piece that is offered, of its first one with the size.
  struct OfferNote {
    Size size = 0;
    Transport::Name name = 0;
  };
  // What is copied at once: a piece of a long pair, or all there is of short ones.
  struct Chunk {
    enum class State { begun, copying, in_wire, landed };
    State state = State::begun;
    bool is_of_short = false;
    std::vector<Piece> pieces;
    OfferNote note;  // where the piece is offered
    device::StagingBuffer parcel;
    device::CopyTicket ticket;
  };
  using Chunks = std::list<Chunk>;
  // Places among the pairs of a direction before which all short and all long ones are begun.
  struct Left {
    std::size_t of_short = 0;
    std::size_t of_long = 0;
    bool has_bundled = true;  // some may not be begun
  };

  Status find_pairs();
  int round_with(int peer) const { return (peer + args_.rank) % placement_.ranks(); }
  bool is_near(int peer) const { return placement_.node(peer) == placement_.node(args_.rank); }
  std::vector<Pair> pairs_of(const core::CallEnd& end, bool sends) const;
  std::size_t first_bytes_max() const noexcept;
  std::size_t bytes_to_come(const Piece& piece) const noexcept;
  std::size_t piece_bytes_max() const noexcept;
  std::size_t piece_bytes(const Pair& pair) const noexcept;
  Piece begin_piece(Pair& pair) const noexcept;
  std::span<Pair> left(bool sends, bool is_short) noexcept;
  Pair* next(bool sends) noexcept;
  void begin_again(const Pair& pair) noexcept;
  const Pair* find(const std::vector<Pair>& pairs, int peer) const noexcept;
  bool next_chunk(bool sends);
  void begin_short(bool sends, Chunk& chunk);
  Pair* next_long_pair(bool sends);
  bool may_go_on(const Pair& pair, bool sends) const;
  static std::size_t ended_bytes_of(const Pair& pair, const Chunks& chunks) noexcept;
  std::size_t bytes_under_way_max() const noexcept;
  Status make_parcel(Chunk& chunk, bool receives);
  Status copy(Direction direction, Chunk& chunk);
  Status begin_sends(bool& moved);
  Status begin_receives(bool& moved);
  Status poll_sends(bool& moved);
  Status poll_receives(bool& moved);
  Status post_sends(Chunk& chunk);
  Status post_receives(Chunk& chunk);
  Status poll_messages(Chunk& chunk, bool receives, bool& moved);
  Status land(Chunk& chunk, Piece& piece, std::size_t received_bytes);
  Status learn_size(Piece& piece);
  Status poll_end(Piece& piece, bool& moved);
  bool is_to_offer(const Pair& pair) const;
  net::Memory run_of(const core::CallEnd& end, const Piece& piece) const;
  void find_place(const core::CallEnd& end, Chunk& chunk, Piece& piece) const;
  Status post_offer(Chunk& chunk);
  Status fetch_offer(Chunk& chunk, Piece& piece, std::size_t received_bytes);
  Transport::Name name_in(const Piece& piece, std::size_t received_bytes) const noexcept;
  void refuse(Pair& pair, std::size_t sent_bytes, bool comes_by_itself);
  Status advance_bundles(bool& moved);
  Status look_at_bundles();
  Status look_at(Pair& pair, const Bundles::Block& block);
  void withdraw(const Pair& pair);
  bool is_turn(const Chunk& chunk) const;
  bool may_unpack(const Chunk& chunk) const;
  void take_back(Chunk& chunk);
  bool drain(Chunk& chunk, bool receives);
  void drain_message(Piece& piece, bool receives);
  void drain_sends();
  bool drain_receives();
  bool drain_bundles();

  static inline std::atomic<std::uint64_t> tries_{0};
  static inline std::atomic<std::uint64_t> looks_{0};
  static inline std::atomic<std::uint64_t> offers_{0};

  core::Wire& wire_;
  Transport* const transport_;
  const core::Placement& placement_;
  device::DeviceRuntime& runtime_;
  const CollArgs& args_;
  const Tags tags_;
  const std::size_t parcel_bytes_;
  const std::size_t offer_bytes_;  // of a piece that is offered, at most
  const std::size_t near_bytes_;
  const bool knows_sizes_;  // equal blocks: of every pair, on both its ranks
  bool began_ = false;
  std::vector<Pair> outgoing_;  // by round
  std::vector<Pair> incoming_;
  Left outgoing_left_;
  Left incoming_left_;
  Chunks sending_;
  Chunks receiving_;
  std::optional<Bundles> bundles_;
  bool has_looked_ = false;  // at what they tell of each pair
  Status mistake_;           // of the program
};

}  // namespace accord::coll

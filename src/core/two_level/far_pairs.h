// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the ranks of different nodes send each other in a collective in which every pair of ranks
// has a size of its own: chunk by chunk through page-locked host memory, copies and messages of
// several chunks at once. The first chunk of a pair is short and says how much comes. A rank that
// expects something else than it is sent gets an error, and does its other pairs all the same; that
// nothing comes from whom something is expected, or the reverse, nobody notices, as with the host
// MPI.
//
// Each rank goes through its peers by rounds, in each of which any two ranks are each other's peer,
// and begins its chunks in that order: so the first chunk of all that is not done is under way on
// both its ranks, however few may be at a time, and in place both directions of a pair go together.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "core/collective.h"
#include "core/two_level/placement.h"
#include "core/wire.h"
#include "device/staging_pool.h"

namespace accord::core {

class FarPairs {
 public:
  // All but the runtime, whose page-locked memory is used, outlive it. `tag`: of the wire's
  // messages, this call's alone.
  FarPairs(Wire& wire, const Placement& placement, device::DeviceRuntime& runtime,
           const Pipeline& pipeline, int tag);

  // With an error beside `done` that is a mistake of the program.
  Status advance(bool& done);
  // After another error: sends empty messages in place of those that peers wait for, and receives
  // theirs.
  void stop(bool& done);

  bool has_block_of(int peer) const;

 private:
  using Direction = PipelineEnd::Direction;

  // What this rank sends one peer, or receives from it.
  struct Pair {
    int peer = 0;
    PipelineEnd block;
    std::size_t size_bytes = 0;
    std::size_t begun_bytes = 0;   // of chunks that have been begun
    std::size_t copied_bytes = 0;  // out of the user's buffer
    bool is_known = false;         // incoming: its first chunk has told its size
    bool is_refused = false;       // incoming: it is another one; what comes is for nobody
  };
  struct Chunk {
    enum class State { copying, in_wire, landed };
    State state;
    Pair* pair;
    std::size_t first_bytes;
    std::size_t length_bytes;
    device::StagingBuffer parcel = {};
    device::CopyTicket ticket = {};
    HostRequest request = 0;

    // The size of the pair, before the bytes of its first chunk.
    std::size_t prefix_bytes() const noexcept { return first_bytes == 0 ? sizeof(Size) : 0; }
    std::byte* bytes() const noexcept {
      return static_cast<std::byte*>(parcel.data()) + prefix_bytes();
    }
  };
  using Size = std::uint64_t;

  void find_pairs();
  std::size_t chunk_bytes(const Pair& pair) const noexcept;
  static Pair* next(std::vector<Pair>& pairs) noexcept;
  static bool has_room(const std::list<Chunk>& chunks) noexcept;
  Status begin_sends(bool& moved);
  Status begin_receives(bool& moved);
  Status poll_sends(bool& moved);
  Status poll_receives(bool& moved);
  Status give_to_wire(Chunk& chunk);
  Status land(Chunk& chunk, std::size_t received_bytes);
  void learn_size(Chunk& chunk);
  bool may_unpack(const Chunk& chunk) const;
  void drain_sends();
  bool drain_receives();

  Wire& wire_;
  const Placement& placement_;
  device::DeviceRuntime& runtime_;
  const Pipeline& pipeline_;
  const int tag_;
  bool began_ = false;
  std::vector<Pair> outgoing_;  // by round
  std::vector<Pair> incoming_;
  std::list<Chunk> sending_;
  std::list<Chunk> receiving_;
  Status mistake_;  // of the program
};

}  // namespace accord::core

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A partitioned collective that kernels do among the ranks of a node, with no host in between
// (device/partition_reduction.h): any that has a device::PartitionShape. The ranks find out by
// messages whether they can: each says where it is and what it has (meet), lends the others its
// buffers (lend), and says from which round on it has theirs open (vote). All come to the same
// answer. From the last of these rounds on all go by kernels; in those before, some rank has not
// voted, or for a later one, as it begins the round: it says so, and all go by messages. Nothing
// here waits for a peer. Protected by the lock of PartitionedTable.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "accord/partitioned_layout.h"
#include "core/device_scrap.h"
#include "device/partition_reducer.h"
#include "device/partition_shape.h"
#include "partitioned/table.h"

namespace accord::partitioned {

class NodeReduction {
 public:
  // Memory without gaps, a partition behind the other; null: there is none.
  struct Block {
    std::byte* start = nullptr;
    std::size_t count = 0;  // elements of a partition
  };
  // What this rank brings.
  struct Terms {
    bool able = false;  // its buffers are on one device, and it is asked for
    CollectiveName name;
    std::uint64_t fingerprint = 0;  // what must be equal on all ranks
    int rank = 0;
    device::PartitionShape shape;
    std::vector<int> processes;  // by rank; at least two
    std::int32_t partitions = 0;
    device::ReduceOp op = device::ReduceOp::none;
    device::Element element = device::Element::none;
    device::DeviceRuntime* runtime = nullptr;
    int device = -1;
    // By rank: what that rank reads of this one's contribution, or, in pairs, gets of it; and where
    // it stores in this one's result.
    std::vector<Block> sources;
    std::vector<Block> targets;
  };

  // `arrived` are the partition_host_words of the reducer.
  NodeReduction(PartitionedTable& table, Terms terms, std::uint32_t* arrived);
  ~NodeReduction();
  NodeReduction(const NodeReduction&) = delete;
  NodeReduction& operator=(const NodeReduction&) = delete;

  // Tells the others that there is this rank.
  Status open();
  // By the table: what another process says.
  void take(int process, wire::Kind kind, std::span<const std::byte> body);
  // That the process goes by messages in a round.
  void note_messages(int process, std::uint32_t round);
  using Opening = node::Opening;
  // Goes on as far as it can. `round`: the first one of this rank whose way is still open.
  Status join(std::uint32_t round, Opening opening);
  // Of the first round whose way is open, after join. Unknown: the other ranks have yet to say.
  enum class Way { unknown, kernels, messages };
  Way way(std::uint32_t round, Opening opening) const;

  // The same for all rounds to come.
  bool is_settled() const noexcept { return phase_ == Phase::used || phase_ == Phase::declined; }
  bool is_used() const noexcept { return phase_ == Phase::used; }
  device::PartitionReducer& reducer() const noexcept { return *reducer_; }
  // For kernels that mark partitions.
  void describe(accord_prequest::accord_partition_node& node) const;

 private:
  enum class Phase { meeting, lending, opening, voting, used, declined };
  // What is known of a rank.
  struct Rank {
    std::optional<wire::NodeMeet> meet;
    std::optional<wire::NodeLend> lend;
    std::optional<std::uint32_t> vote;
    std::uint32_t by_messages = 0;  // the last round in which it went that way
    bool sent = false;              // its descriptors
    bool parted = false;            // no kernel of its writes here any more
    std::vector<node::PeerMemory> opened;
  };

  std::size_t size() const noexcept { return ranks_.size(); }
  Rank* find(int process);
  Rank& own() noexcept { return ranks_[static_cast<std::size_t>(terms_.rank)]; }
  const Rank& own() const noexcept { return ranks_[static_cast<std::size_t>(terms_.rank)]; }
  bool is_own(std::size_t rank) const noexcept {
    return rank == static_cast<std::size_t>(terms_.rank);
  }
  device::DeviceRuntime& runtime() const noexcept { return *terms_.runtime; }
  template <class Record>
  Status tell(int process, wire::Kind kind, const Record& record);
  template <class Record>
  Status tell_all(wire::Kind kind, const Record& record);
  template <class Record>
  bool all(std::optional<Record> Rank::*what) const;
  std::size_t bytes_of(std::size_t count) const noexcept {
    return count * device::element_bytes(terms_.element);
  }
  std::size_t own_count() const;
  Status try_alone();
  wire::NodeMeet own_meet();
  bool can_be() const;
  void lend_own();
  Status prepare();
  void list_own_places();
  Status lend(const std::vector<Block>& blocks, wire::NodeMemory& memory);
  Status lend(const void* first, std::size_t size_bytes, wire::NodeMemory& memory);
  Status tell_lend();
  Status send_descriptors(bool& done);
  Status open_all();
  Status open_rank(std::size_t rank);
  Status open_block(std::size_t rank, const wire::NodeMemory& memory,
                    const node::Descriptor& descriptor, std::size_t count, std::byte*& address);
  Status open_memory(std::size_t rank, const wire::NodeMemory& memory,
                     const node::Descriptor& descriptor, bool keep, std::byte*& address);
  void vote(std::uint32_t round, Opening opening);
  void drop_parcels();
  void close() noexcept;
  void part();

  PartitionedTable& table_;
  const Terms terms_;
  std::uint32_t* const arrived_;
  const std::int32_t item_;  // of parcels to this rank
  Phase phase_ = Phase::meeting;
  bool has_lent_ = false;  // the others know its memory
  std::vector<Rank> ranks_;
  core::DeviceScrap words_;
  std::size_t words_bytes_ = 0;
  std::vector<node::Descriptor> descriptors_;
  device::PartitionPlaces places_;
  device::PartitionReduction reduction_;
  std::unique_ptr<device::PartitionReducer> reducer_;
};

}  // namespace accord::partitioned

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the two ends of a partitioned request tell each other through the host MPI: plain bytes, a
// header and, by its kind, a record or data behind it. Known to the files of this folder only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/kernel_place.h"
#include "node/descriptor_port.h"
#include "node/registration.h"

namespace accord::partitioned::wire {

enum class Kind : std::uint32_t {
  hello = 1,  // sender to receiver: a Hello; at MPI_Psend_init
  welcome,    // receiver to sender: a Welcome; once it is started and has the hello
  decline,    // sender to receiver: it cannot use the board
  ready,      // receiver to sender, where there is no board: it has started this round
  data,       // sender to receiver: bytes of a transfer, where they are not written into its memory
  failed,     // either way, where there is no board: this round has been given up
  // Of collectives, whose requests are known by the communicator and their number on it.
  collective_ready,   // to whom data is given or from whom it is taken: this round has been started
  collective_data,    // bytes that a step gives
  collective_failed,  // to all who are told of a start: this round has been given up
  node_meet,          // to all other ranks: a NodeMeet, at the initialisation
  node_lend,          // the same: a NodeLend, where all might take part
  node_vote,          // the same: a word, the first round in which this rank can, 0: none
  node_part,  // the same, by who has lent: it has freed the request, no kernel of its writes
};

// Aligned, since what follows is worked on where it has arrived.
struct alignas(16) Header {
  Kind kind{};
  std::uint32_t to = 0;  // number of the request at its owner, of a collective on its communicator
  std::uint32_t round = 0;
  std::int32_t transfer = 0;  // of a collective: partition
  // Of a collective: how many partitions from that one on it is about, in equal parts.
  std::int32_t partitions = 1;
  // Of data: where it lies in the packed form of the whole message; of a collective's: of what the
  // step gives. Of collective_ready: what has to be equal on all ranks, hashed.
  std::uint64_t first_bytes = 0;
  std::uint64_t length_bytes = 0;  // of what follows
  std::uint64_t lineage = 0;       // of a collective: of its communicator
};

struct Hello {
  std::uint64_t lineage = 0;  // of the communicator
  std::int32_t tag = 0;
  std::uint32_t sender = 0;  // number of the request there
  std::int32_t transfers = 0;
  std::uint32_t dense = 0;  // the send buffer has no gaps
  std::uint64_t transfer_bytes = 0;
  std::uint64_t total_bytes = 0;
  std::uint64_t node = 0;
  std::uint64_t network = 0;  // node::DescriptorPort::network
  node::PortAddress port;
};

struct Welcome {
  std::uint32_t receiver = 0;   // number of the request there
  std::uint32_t truncated = 0;  // there is no room for the message: nothing shall be sent
  std::uint32_t has_board = 0;  // at this place of these pages of the receiver's
  std::uint32_t pages = 0;
  std::uint32_t with_pages = 0;  // their descriptor is the parcel's first: the first time that they
                                 // are named to this process
  std::uint32_t has_memory = 0;
  std::uint64_t board_bytes = 0;   // from the start of the pages
  std::uint64_t offset_bytes = 0;  // of the first byte received, in the allocation
  node::MemoryHandle memory;       // whose descriptor is the parcel's last
};

// Of a collective that kernels may do within a node (partitioned/node.h): what a rank is.
struct NodeMeet {
  std::uint64_t fingerprint = 0;  // what must be equal on all ranks
  std::uint64_t node = 0;
  std::uint64_t network = 0;
  node::PortAddress port;
  device::KernelPlace kernels{};  // which take no turns
  std::int32_t item = 0;          // of the parcel that it gets
  std::uint32_t able = 0;
};

// Memory of a rank for the others.
struct NodeMemory {
  node::MemoryHandle memory;  // whose descriptor is the next one of the parcel
  // What is lent to this rank: where it begins, and how much of it each partition has.
  static constexpr std::uint64_t kNothing = ~std::uint64_t{0};
  std::uint64_t offset_bytes = 0;
  std::uint64_t partition_bytes = kNothing;
};

// To each rank one of its own.
struct NodeLend {
  std::uint32_t ok = 0;
  std::uint32_t unused = 0;
  NodeMemory source;
  NodeMemory target;
  NodeMemory words;
};

}  // namespace accord::partitioned::wire

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The partitioned requests of this process: which send request of another process a receive request
// belongs to, and whose a message is. Requests of one pair of processes, communicator and tag match
// in the order of their *_init calls, as MPI has it; collectives of a communicator by their order
// on it. Knows no mpi.h.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/device_scrap.h"
#include "node/descriptor_port.h"
#include "node/shared_pages.h"
#include "partitioned/channel.h"

namespace accord::partitioned {

class Partitioned;
class PartitionedCollective;
class PartitionedReceive;

// Where a message belongs: equal on both ends.
struct Envelope {
  int process = -1;  // the other end, a rank of MPI_COMM_WORLD; -1: there is none
  std::uint64_t lineage = 0;
  std::int32_t tag = 0;
};

// A partitioned collective, the same on all ranks of a communicator, which make them in one order.
struct CollectiveName {
  std::uint64_t lineage = 0;
  std::uint32_t number = 0;

  auto operator<=>(const CollectiveName&) const = default;
};

class PartitionedTable {
 public:
  PartitionedTable(MessagePort& messages, core::HostPort& host, int own_process);
  PartitionedTable(const PartitionedTable&) = delete;
  PartitionedTable& operator=(const PartitionedTable&) = delete;

  // Protects the table and everything of its requests but what is atomic there.
  std::mutex& mutex() noexcept { return mutex_; }

  // What follows is for whoever holds the lock.
  std::uint32_t enter(Partitioned& request);
  // One that still waits for its sender keeps its place: that sender shall not get the next one.
  void leave(const Partitioned& request, const Envelope& envelope);
  // Until PartitionedReceive::meet, which may be at once.
  void expect(PartitionedReceive& request, const Envelope& envelope);
  // The name of the next collective of this communicator, whatever becomes of it.
  CollectiveName next_collective(std::uint64_t lineage);
  // Hands over what has come for it before.
  void enter(PartitionedCollective& request);
  void leave(const PartitionedCollective& request);
  Status poll();
  // Messages are received from here on, but nobody gets them, and none are sent.
  void close() noexcept { closed_ = true; }
  bool is_closed() const noexcept { return closed_; }
  // Words of a collective that has been freed here, which kernels of these processes may still
  // write: nobody gets them again before all of these have freed it, too.
  void keep_until_parted(const CollectiveName& name, std::set<int> writers,
                         core::DeviceScrap words);

  // Pages of another process, which names them to this one: by the descriptor the first time.
  Status pages_of(int process, std::uint32_t number, const node::Descriptor* descriptor,
                  std::shared_ptr<node::SharedPages>& pages);
  // Whether pages of `boards` have been named to a process, and that they have.
  bool knows_pages(int process, std::uint32_t number) const {
    return named_.contains({process, number});
  }
  void note_pages(int process, std::uint32_t number) { named_.insert({process, number}); }
  // Of what this side alone, and of what a sender may look at too.
  node::PageShelf& words() noexcept { return words_; }
  node::PageShelf& boards() noexcept { return boards_; }

  // Transfers that have been sent, by who has moved them.
  struct Moved {
    std::uint64_t kernel = 0;
    std::uint64_t engine = 0;
    std::uint64_t messages = 0;
  };
  void note_moved(const Moved& round);
  // Says how many, for people.
  void report();

  PartitionedChannel& channel() noexcept { return channel_; }
  node::DescriptorPort& port() noexcept { return port_; }
  bool has_port() const noexcept { return has_port_; }
  bool declines() const noexcept { return declines_; }
  int own_process() const noexcept { return own_process_; }
  std::uint64_t node() const noexcept { return node_; }
  std::uint64_t network() const noexcept { return network_; }

  // By the address that kernels know it by.
  void note_prequest(const void* prequest, Partitioned* request);
  Partitioned* owner_of(const void* prequest);
  // Else no kernel can wait for a round.
  bool has_prequests() const noexcept { return !prequests_.empty(); }

 private:
  using Key = std::tuple<int, std::uint64_t, std::int32_t>;
  static Key key_of(const Envelope& envelope) {
    return {envelope.process, envelope.lineage, envelope.tag};
  }

  Status answer_for_nobody(int process, const wire::Header& header,
                           std::span<const std::byte> body);
  Status deliver(int process, const wire::Header& header, std::span<const std::byte> body,
                 PartitionedChannel::Letter& letter);
  void meet(int process, const wire::Hello& hello);
  void forget_prequests_of(const Partitioned& request);
  void note_parted(int process, const CollectiveName& name);
  void deliver_to_collective(int process, const wire::Header& header,
                             std::span<const std::byte> body, PartitionedChannel::Letter& letter);

  std::mutex mutex_;
  const int own_process_;
  PartitionedChannel channel_;
  node::DescriptorPort port_;
  bool has_port_ = false;
  bool declines_ = false;
  bool closed_ = false;
  Moved moved_;
  node::PageShelf words_;
  node::PageShelf boards_;
  std::map<std::pair<int, std::uint32_t>, std::shared_ptr<node::SharedPages>> pages_;
  std::set<std::pair<int, std::uint32_t>> named_;
  std::uint64_t node_ = 0;
  std::uint64_t network_ = 0;
  std::uint32_t last_number_ = 0;
  std::unordered_map<std::uint32_t, Partitioned*> requests_;
  // Of each key one of the two is empty. A null pointer is a request that has been freed.
  std::map<Key, std::deque<PartitionedReceive*>> waiting_;
  std::map<Key, std::deque<wire::Hello>> hellos_;
  std::map<std::uint64_t, std::uint32_t> collectives_made_;  // by lineage
  std::map<CollectiveName, PartitionedCollective*> collectives_;
  struct Early {
    int process;
    wire::Header header;
    std::vector<std::byte> body;
  };
  // For collectives that this process has yet to make. Data waits for them with its owner.
  std::map<CollectiveName, std::vector<Early>> early_;
  struct Parting {
    std::set<int> writers;
    core::DeviceScrap words;
  };
  std::map<CollectiveName, Parting> parting_;
  std::unordered_map<const void*, Partitioned*> prequests_;
};

}  // namespace accord::partitioned

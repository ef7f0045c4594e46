// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A partitioned collective on one rank: each partition, once it is marked ready here, goes through
// the schedule by itself, by messages of the host MPI between the ranks. Neighbours that are found
// at one step go on together, in one message, copy or reduction, as far as they do. Nothing is sent
// to a rank that has not started the round, so none has to keep what comes early; who gives or gets
// says so to those it does that with. What goes from rank to rank is in host memory, from and to
// which the user's buffers are copied where they are on a device. Where it has a shape for them,
// and buffers are on devices of one node, it is left to kernels instead (partitioned/node.h).
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "partitioned/channel.h"
#include "partitioned/node.h"
#include "partitioned/request.h"
#include "partitioned/work.h"

namespace accord::partitioned {

struct CollectivePlan {
  CollectiveName name;
  std::uint64_t fingerprint = 0;  // of what has to be equal on all ranks
  int rank = 0;
  std::vector<int> processes;  // by rank
  bool gives = false;          // this rank marks partitions ready
  bool gets = false;           // and sees them arrive
  PartitionArea contribution;
  PartitionArea result;
  PartitionReduction reduction;
  Schedule schedule;
  // What kernels may do within a node, alike on all ranks; and whether this rank's buffers let
  // them.
  std::optional<device::PartitionShape> by_kernels;
  bool kernels_may = true;
};

class PartitionedCollective final : public Partitioned {
 public:
  PartitionedCollective(PartitionedTable& table, PartitionedCall call, CollectivePlan plan);
  ~PartitionedCollective() override;

  Status open();
  const CollectiveName& name() const noexcept { return plan_.name; }

  Status pready(std::int32_t low, std::int32_t high) override;
  Status parrived(std::int32_t partition, bool& arrived) override;

  // By the table, under its lock.
  void note(int process, const wire::Header& header, std::span<const std::byte> body);
  void take(int process, const wire::Header& header, std::span<const std::byte> body,
            PartitionedChannel::Letter& letter);

 private:
  // Neighbouring partitions that are at one step.
  struct Run {
    std::int32_t first = 0;
    std::int32_t count = 0;
    std::int32_t end() const noexcept { return first + count; }
  };
  // What has come for a partition and no step has taken yet.
  struct Arrived {
    std::shared_ptr<PartitionedChannel::Letter> letter;  // that it lies in, with what came along
    std::byte* bytes = nullptr;
    std::uint64_t first_bytes = 0;
    std::uint64_t length_bytes = 0;
  };
  // A partition on its way.
  struct Track {
    enum class Stage {
      unmarked,
      between,  // steps
      giving,   // what goes out is on its way to the host MPI, and in the way of what is taken
      taking,   // as it comes
      done
    };
    Stage stage = Stage::unmarked;
    std::size_t step = 0;
    bool gathered = false;           // counted among those that wait for one another
    std::size_t unsent = 0;          // messages of the step
    std::uint64_t wanted_bytes = 0;  // that the step takes
    std::uint64_t begun_bytes = 0;   // of these: on their way into their place
    std::uint64_t taken_bytes = 0;   // and there
  };
  // What partitions take at a step, on its way into its place.
  struct Move {
    enum class Stage {
      landing,  // into host memory, or it waits there
      lifting,  // to the device that combines it
      moving    // into its place
    };
    Run run;
    const Step* step = nullptr;
    std::uint64_t first_bytes = 0;  // of what the first one takes
    std::uint64_t each_bytes = 0;   // of each partition
    std::vector<Arrived> pieces;    // one after the other
    Stage stage = Stage::landing;
    core::DeviceScrap lifted;
    device::DeviceRuntime* mover = nullptr;
    device::CopyTicket ticket;
  };
  struct Message {
    Run run;
    int peer = 0;
    std::uint64_t first_bytes = 0;  // of what the step gives
    std::uint64_t length_bytes = 0;
    core::CallEnd end;
    PartitionedChannel::Letter letter;
    device::CopyTicket packing;
    bool sent = false;
    core::HostRequest request = 0;
  };

  Status step(core::HostPort& host, bool& done) override;
  bool drained(core::HostPort& host) override;
  void begin_round() override;
  Status reserve() override;
  void describe(accord_prequest& prequest) const override;
  std::size_t transfers() const noexcept override { return partitions(); }
  Status pin_board() override { return {}; }
  const char* call_name() const override { return "pcollective"; }
  std::string path() const override;
  stages::Stage stage() const override;
  void tell_failure(std::uint32_t round) override;

  std::size_t partitions() const noexcept { return static_cast<std::size_t>(call_.partitions); }
  std::atomic<std::uint32_t>& arrival(std::int32_t partition) const noexcept {
    return word(partitions() + static_cast<std::size_t>(partition));
  }
  int process_of(int rank) const { return plan_.processes[static_cast<std::size_t>(rank)]; }
  device::DeviceRuntime& staging_runtime() const;
  core::CallEnd part(const Place& place, Run run) const;
  core::CallEnd part(const Place& place, std::int32_t partition) const {
    return part(place, {partition, 1});
  }
  std::span<Track> tracks_of(Run run) {
    return std::span(tracks_).subspan(static_cast<std::size_t>(run.first),
                                      static_cast<std::size_t>(run.count));
  }
  bool is_ready(int process) const;
  std::uint64_t find_longest_message() const;
  // Of what a step gives or takes with places like this one.
  std::uint64_t round_bytes(std::uint64_t each_bytes) const noexcept {
    return each_bytes * partitions();
  }

  // About the other ranks, where the round cannot end because of them.
  Status complaint() const;
  Status open_work();
  NodeReduction::Terms terms_on_node() const;
  void meet_on_node();
  NodeReduction::Opening opening() const noexcept {
    return may_open() ? NodeReduction::Opening::allowed : NodeReduction::Opening::no;
  }
  Status choose_way(NodeReduction::Opening opening);
  Status start_reducer();
  Status step_on_node(bool& done);
  Status step_by_messages(core::HostPort& host, bool& done);

  void note_ready(int process, const wire::Header& header);
  Status tell_peers(wire::Kind kind, std::uint32_t round);
  // Goes on with all partitions as far as they can.
  Status advance();
  // Calls visit(run) for the partitions of which may(partition) says yes, neighbours together.
  template <class May, class Visit>
  Status for_each_run(May may, Visit visit);
  bool may_begin(std::int32_t partition);
  bool all_gathered(Track& track);
  void begin_step(Run run, bool& any);
  bool waits_for_company(const Step& step, Run run) const;
  void queue(Run run, const Outgoing& outgoing);
  bool overwrites_what_goes_out(const Step& step) const;
  void end_steps(bool& any);

  // collective_moves.cpp
  bool may_take(std::int32_t partition) const;
  Status begin_moves(Run run);
  bool lifts(const Step& step) const;
  std::int32_t together(const Step& step, std::uint64_t each_bytes) const;
  Status take_arrived(Move& move, Run rest);
  Status take_own(Move& move, Run rest);
  Status advance_moves(bool& any);
  Status advance(Move& move, bool& done);
  Status put(Move& move);
  bool take_scrap(core::DeviceScrap& scrap);
  void end(Move& move);

  Status send(core::HostPort& host);
  Status pack(Message& message);
  Status post(Message& message);

  CollectivePlan plan_;
  PartitionWork work_;
  std::uint64_t longest_message_ = 0;
  std::unique_ptr<NodeReduction> node_;  // null: not by kernels, or of too many ranks
  std::map<int, std::uint32_t> peers_;   // by process: the last round it has started
  bool mismatch_ = false;

  // For what comes while kernels may run: more might have to wait for them.
  std::vector<core::DeviceScrap> scraps_;
  bool kernels_told_ = false;  // that they tell the ranks of the node themselves
  unsigned steps_on_node_ = 0;
  bool is_reducer_due_ = false;  // to be started for the round under way

  // Of the round under way.
  NodeReduction::Way way_ = NodeReduction::Way::messages;
  std::uint32_t told_round_ = 0;
  std::vector<Track> tracks_;
  std::vector<std::int32_t> open_;      // partitions that are not through, in order
  std::vector<std::int32_t> unmarked_;  // on a node: that the host has not marked
  std::size_t marked_ = 0;
  std::size_t gathered_ = 0;
  std::map<std::pair<std::int32_t, int>, std::deque<Arrived>> arrived_;  // by partition and process
  std::list<Message> queued_;
  std::list<Message> messages_;  // on their way
  std::list<Move> moves_;
};

}  // namespace accord::partitioned

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The ranks of one communicator that share a node: device memory a rank, opened by all others (an
// exchange region, or an inbox for small messages), and a mailbox a rank in shared memory. No host
// MPI call once the group is joined. Joining takes several steps; what goes from rank to rank
// between them is carried by the caller (core, over the host MPI), but for file descriptors. Knows
// no MPI and no vendor. Not thread-safe: the engine's lock protects it.
//
// A rank that leaves a call halfway has given the group up: its peers see so, and it puts nothing
// more where they look for it. What peers may have opened is freed only once all have closed it:
// their mailboxes tell, or, of a group that could not be joined, one more vote.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "device/adapter_reach.h"
#include "device/device_runtime.h"
#include "device/inbox_server.h"
#include "node/bell.h"
#include "node/call_board.h"
#include "node/descriptor_port.h"
#include "node/device_pool.h"
#include "node/life_line.h"
#include "node/node_number.h"
#include "node/offers.h"
#include "node/outbox.h"
#include "node/pairs.h"
#include "node/plan.h"
#include "node/registration.h"
#include "node/trial.h"

namespace accord::node {

// What a rank tells the others when a group is joined: plain bytes.
struct Record {
  std::uint64_t node = 0;             // equal on ranks that can share memory
  device::KernelPlace inbox_kernels;  // of its server; inboxes only
  device::PacketReach packet_reach;   // the same
  device::KernelPlace kernels;
  PortAddress port;
  std::uint64_t network = 0;                   // DescriptorPort::network
  std::array<std::uint64_t, 2> directories{};  // where ports may meet, each equal where the same
  std::int32_t ok = 0;                         // this rank can take part
  std::int32_t without_device = 0;             // but not yet: it uses no device so far
  std::int32_t reduces = 0;
  std::int32_t has_rdma = 0;  // its node, an adapter that does
  device::AdapterReach adapters = device::AdapterReach::none;
  // The allocation that its memory is a part of, from where on, and how much of a region or lane it
  // has.
  MemoryHandle memory;
  std::uint64_t offset_bytes = 0;
  std::uint64_t granted_bytes = 0;
};

// One a rank, written by it alone. Counts chunks since the group was made; never reset.
struct alignas(128) Mailbox {
  std::atomic<std::uint64_t> filled{0};   // what it puts into regions lies there
  std::atomic<std::uint64_t> reduced{0};  // its share's result lies in its region, or is delivered
  std::atomic<std::uint64_t> drained{0};  // it reads no more from anybody's region
  std::atomic<std::uint32_t> failed{0};   // it has given up; nobody shall wait for it
  std::atomic<std::uint32_t> closed{0};   // it has unmapped its peers' regions
  // Rank 0's is everybody's: calls of the communicator << 16 | ranks that rest after so many.
  std::atomic<std::uint64_t> resting{0};
  // What it tells its peers for a call (coll/library/turn.h), of two calls in turn.
  std::atomic<std::uint64_t> told[2] = {};
};

// Why a rank has given up: the first error, and the rank that had it. Written before
// Mailbox::failed.
struct Cause {
  std::int32_t rank = -1;
  char text[236] = "";
};

// What a rank sends each of the others through their inboxes where only the two ranks of a pair
// know how much: one a rank, written by it alone, of two calls in turn as lanes are. An entry is
// written again once its reader is through with the call that it is of.
struct alignas(128) Manifest {
  // By receiver: epoch of the call << 32 | bytes.
  std::atomic<std::uint64_t> entries[device::kInboxLanesPerRank][device::kInboxRanksMax] = {};
};

// What the device memory of a group is for.
struct Use {
  // At most; all ranks have as much as the one that has least room.
  std::size_t region_bytes = 0;  // an exchange region of this size a rank; else
  std::size_t lane_bytes = 0;    // an inbox with lanes of this size; else there are mailboxes alone
  bool of_one_request = false;   // of a persistent one, instead of a communicator
  bool of_messages = false;      // of processes that send each other messages (outbox.h)

  bool of_memory() const noexcept { return region_bytes != 0 || lane_bytes != 0; }
};

// Memory of all ranks through which chunks go from one to another. Each rank's has kSlots slots.
struct Regions {
  // Chunks a region has room for.
  static constexpr std::size_t kSlots = 4;

  std::span<std::byte* const> of_ranks;
  std::size_t slot_bytes = 0;
  // In host memory. There each rank has as much again, for itself.
  bool on_host = false;

  // Where chunk number `sequence` lies in the region of `peer`.
  std::byte* slot(int peer, std::uint64_t sequence) const noexcept {
    return of_ranks[static_cast<std::size_t>(peer)] + sequence % kSlots * slot_bytes;
  }
  std::byte* own_room(int rank, std::uint64_t sequence) const noexcept {
    return slot(rank, sequence) + kSlots * slot_bytes;
  }
};

class Group {
 public:
  static constexpr std::size_t kSlots = Regions::kSlots;
  // Sizes of regions below that of ACCORD_REGION_BYTES, each with its scratch in whole segments of
  // the pool: of short calls, of longer ones, and of all but those of more than 64 MiB.
  static constexpr std::size_t kRegionSizes[] = {std::size_t{252} << 10, std::size_t{8128} << 10,
                                                 std::size_t{34752} << 10};

  // What a region for `call` should have, of these; SIZE_MAX: as much as may be.
  static std::size_t region_bytes_for(const Call& call) noexcept;
  // Lanes of inboxes where there is little room, or calls are short; 0: no shorter ones.
  static constexpr std::size_t short_lane_bytes(std::size_t lane_bytes) noexcept {
    constexpr std::size_t kPart = 24;
    return lane_bytes / kPart / device::kInboxUnitBytes * device::kInboxUnitBytes;
  }

  // Groups of one request that a process is in at a time: each takes memory of the device.
  static constexpr int kOfOneRequestMax = 64;

  // How long a rank waits for room in the sockets of others.
  static constexpr std::chrono::seconds kPatience{10};

  // Step 1: makes this rank's region on `device` (-1: this rank uses none yet); `mine` then goes to
  // all ranks. On an error the group cannot be, but `mine` says so and must go to all ranks all the
  // same.
  Status prepare(int rank, int size, device::DeviceRuntime& runtime, int device, Use use,
                 Record& mine);
  // Step 2: whether these ranks can be a group. The answer is the same on all of them.
  Status accept(std::span<const Record> records);
  // Where they cannot although they share a node: whether they might be another time, since only
  // devices are missing.
  static bool too_early(std::span<const Record> records) noexcept;
  // Step 3: sends the peers what their processes need to open this rank's memory. Does not wait:
  // to be called until `done`, or an error.
  Status send(bool& done);
  // Makes room for what peers send; to be called while waiting for them.
  void receive() { port_.receive(); }
  // Step 4, once all ranks have sent: opens what the peers have made. Where all could, the group
  // can be used.
  Status open();
  // Step 5, where one could not: closes what is open; once all have, the region may go. What a
  // trial's kernel may yet read is kept until that has run.
  // An error where this rank may still read them.
  Status close_peers() noexcept;
  void parted() noexcept { shown_ = false; }
  // No peer uses this rank's memory any more, nor is anything of its own under way.
  bool abandoned() noexcept;

  ~Group();
  Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  // All ranks can reduce on their device.
  bool reduces() const noexcept { return reduces_; }
  // Two ranks' memory is on one device, on which only one of them can be at work at a time.
  bool shares_device() const noexcept { return shares_device_; }
  // And to wait for the other takes long (device::KernelPlace).
  bool takes_long_turns() const noexcept { return takes_long_turns_; }
  device::DeviceRuntime& runtime() const noexcept { return *runtime_; }
  int device() const noexcept { return device_; }
  std::size_t slot_bytes() const noexcept { return use_.region_bytes / kSlots; }
  bool has_more_memory_than(const Group& other) const noexcept {
    return use_.region_bytes > other.use_.region_bytes || use_.lane_bytes > other.use_.lane_bytes;
  }
  std::size_t lane_bytes() const noexcept { return use_.lane_bytes; }

  // Groups of inboxes: who runs exchanges, and what all of this rank's have in common.
  device::InboxServer& inbox_server() const noexcept { return *inbox_server_; }
  device::InboxExchange inbox_exchange() const noexcept {
    return {.inbox = regions_[static_cast<std::size_t>(rank_)],
            .inbox_number = inbox_number_,
            .lane_bytes = use_.lane_bytes,
            .rank = rank_};
  }

  // What goes through inboxes may go in packets.
  bool takes_packets() const noexcept { return takes_packets_; }

  // Memory for one exchange at a time: what kernels cannot use themselves passes through it. It is
  // of the device if `on_device` and the pool has room, else page-locked. Kept, and made anew where
  // it is too small.
  Status bounce_memory(std::size_t size_bytes, bool on_device, std::byte*& memory);

  Regions regions() const noexcept { return {.of_ranks = regions_, .slot_bytes = slot_bytes()}; }
  std::byte* slot(int peer, std::uint64_t sequence) const noexcept {
    return regions().slot(peer, sequence);
  }
  // The same in host memory, where the ranks may have so much of it, which is equal on all of them.
  // Page-locked when it is first asked for, if it can be: to copy from other memory takes longer.
  bool has_host_regions() const noexcept { return spill_bytes_ != 0 && use_.region_bytes != 0; }
  Regions host_regions();
  Mailbox& mailbox(int peer) const noexcept { return mailboxes_[peer]; }
  Mailbox& own_mailbox() const noexcept { return mailboxes_[rank_]; }
  // Groups of inboxes: up to which call this rank knows `peer` to be through with all before it,
  // without a look at its mailbox, which takes a tenth of a microsecond.
  std::uint64_t& known_begun(int peer) noexcept {
    return known_begun_[static_cast<std::size_t>(peer)];
  }

  Manifest& manifest(int sender) const noexcept { return manifests_[sender]; }

  // What one rank sends another in calls that go pair by pair; groups of regions.
  Parcel& parcel(int sender, int receiver) const noexcept {
    return parcels_[sender * size_ + receiver];
  }

  // Users' own memory that the ranks lend each other; groups of regions. Of messages: the memory of
  // their outboxes, once this rank has said on which device.
  Offers& offers() noexcept { return offers_; }

  // Groups of messages. A rank may join before it uses a device: it lends and opens memory of this
  // one from now on.
  void attach(device::DeviceRuntime& runtime, int device);
  OutboxBoard& outbox(int rank) const noexcept { return outboxes_[rank]; }
  // Host memory of a rank that all of them reach: address space, whose pages are made where
  // something is written. None where the process may not have so much of it.
  std::span<std::byte> spill(int rank) const noexcept;
  CallBoard& calls(int rank) const noexcept { return calls_[rank]; }
  // Whether the process of that rank has ended. A system call.
  bool is_gone(int rank) const noexcept {
    const auto& line = life_lines_[static_cast<std::size_t>(rank)];
    return line != nullptr && line->is_cut();
  }

  // This rank has made so many calls of the communicator, and may do without the group until it
  // makes another one, which takes that back by wake. False where others have made more.
  bool rest(std::uint64_t calls) noexcept;
  bool someone_rests(std::uint64_t calls) const noexcept;
  // All have said so after so many calls: nobody uses the group any more.
  bool all_rest(std::uint64_t calls) const noexcept;
  // False where all had said so before.
  bool wake(std::uint64_t calls) noexcept;

  // Numbers the chunks of a call; calls of a communicator come in the same order on all ranks.
  std::uint64_t take(std::size_t chunks) noexcept;

  // After an error in a call: peers see it, and wait for this rank no more.
  void explain(const Status& status) noexcept;  // why it will; before
  void give_up() noexcept { own_mailbox().failed.store(1, std::memory_order_release); }
  bool has_given_up() const noexcept {
    return own_mailbox().failed.load(std::memory_order_relaxed) != 0;
  }
  // An error from then on, or once the program has reset the device and with it the group's memory.
  // To be asked before anything is put where peers look for it: they may be in the call that this
  // rank has left halfway, and would take what is of a later one for a part of it.
  Status check_self() const;
  // An error once a peer has given up or its process is gone. Now and then a system call.
  Status check_peers();
  // Whether a peer has given up. Its program may have changed buffers since that this rank reads.
  Status check_buffers() const;
  // The same of one, as to its process alone.
  Status check_peer(int peer);

  // Closes the peers' regions; frees the own one once all peers have closed it (at once where they
  // cannot have opened it), until then it is kept for a later call of retire or bury.
  static void retire(Group* group);
  // Frees what retired groups have left and nobody uses any more.
  static void bury() noexcept;
  // The same, and has all other groups of this process look after what they lend and have open.
  // Called by keep_house (housekeeping.h).
  static void tidy() noexcept;

 private:
  Status make_mailboxes();
  void* offers_memory() const noexcept { return parcels_ + size_ * size_; }
  // With what it takes for what follows to be aligned.
  std::size_t offers_bytes() const noexcept {
    constexpr std::size_t kAlignment = alignof(OutboxBoard);
    return (Offers::shared_bytes(size_) + kAlignment - 1) / kAlignment * kAlignment;
  }
  Status lease_region();
  Status lease_inbox();
  Status share_memory(Record& mine);
  Status prepare_inbox(Record& mine);
  Status address_inboxes();
  Status try_to_reduce();
  bool is_sound(const Record& record) const noexcept;
  void look_for_turns(std::span<const Record> records);
  Status find_meeting_place();
  std::vector<int> descriptors_to_send();
  Status make_mailbox_file();
  Status map_mailboxes(const Descriptor& descriptor);
  Status open_peer(std::size_t peer);
  std::size_t shared_bytes() const noexcept {
    const auto ranks = static_cast<std::size_t>(size_);
    return (sizeof(Mailbox) + sizeof(Manifest) + sizeof(Cause)) * ranks +
           sizeof(Parcel) * ranks * ranks + offers_bytes() +
           (use_.of_messages ? (sizeof(OutboxBoard) + sizeof(CallBoard)) * ranks : 0);
  }
  // What spills should have, of each rank; 0: there are none.
  std::size_t wanted_spill_bytes() const noexcept;
  // Where the spills begin, behind all else.
  std::size_t spills_begin_bytes() const noexcept {
    constexpr std::size_t kAlignment = std::size_t{64} << 10;  // of pages, wherever
    return (shared_bytes() + kAlignment - 1) / kAlignment * kAlignment;
  }
  Status given_up_by(int peer) const;
  bool was_reset() const noexcept {
    return use_.of_memory() && runtime_->context_life(device_) != life_;
  }
  bool is_time_to_look() noexcept;
  void enter() noexcept;

  int rank_ = 0;
  int size_ = 0;
  device::DeviceRuntime* runtime_ = nullptr;
  int device_ = -1;
  Use use_;
  device::InboxServer* inbox_server_ = nullptr;
  std::uint32_t inbox_number_ = 0;
  DeviceLease memory_;           // its region or inbox
  std::uint64_t life_ = 0;       // of the context that it was made in
  std::byte* bounce_ = nullptr;  // page-locked
  std::size_t bounce_bytes_ = 0;
  DeviceLease device_bounce_;
  bool reduces_ = false;
  bool shares_device_ = false;
  bool takes_long_turns_ = false;
  bool takes_packets_ = false;
  bool shown_ = false;                                       // peers may have opened the region
  std::vector<Record> records_;                              // by rank, until all is open
  std::vector<std::byte*> regions_;                          // by rank
  std::vector<PeerMemory> opened_;                           // by rank
  std::vector<std::shared_ptr<const LifeLine>> life_lines_;  // by rank, null: not known yet
  std::vector<std::shared_ptr<const Bell>> bells_;           // by rank, the same
  Mailbox* mailboxes_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::size_t spill_bytes_ = 0;             // of each rank
  std::vector<std::byte*> host_regions_;    // by rank, once they are asked for
  bool has_pinned_ = false;                 // these
  std::vector<std::uint64_t> known_begun_;  // by rank
  Manifest* manifests_ = nullptr;           // behind the mailboxes, by sender
  Parcel* parcels_ = nullptr;               // behind these, by sender and receiver
  OutboxBoard* outboxes_ = nullptr;         // behind the offers, by rank
  CallBoard* calls_ = nullptr;              // behind these
  Cause* causes_ = nullptr;                 // at the end, by rank
  DescriptorPort port_;
  std::vector<PortAddress> ports_;  // by rank; groups of messages
  Offers offers_;                   // its boards lie behind the parcels
  Trial trial_;
  Registration registration_;  // of the own memory
  Descriptor mailbox_descriptor_;
  int sent_to_ = 0;  // peers, from the next rank on
  std::chrono::steady_clock::time_point give_up_;
  std::uint64_t next_ = 0;
  unsigned checks_ = 0;
  std::chrono::steady_clock::time_point next_look_;
};

}  // namespace accord::node

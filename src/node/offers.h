// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Users' own memory that the ranks of a group lend each other for zero-copy. A rank offers an
// allocation of its own once calls have used it repeatedly, the peers open it at their next call
// and answer, and from then on the rank may say in the record of a call: reach into my buffer
// directly. All is in the owner's hand: it alone decides how its buffers are reached, withdraws
// what has been freed or is long unused, and lends no more while much of that is still open; peers
// close what was withdrawn at their next MPI call of any kind (housekeeping.h). Nobody waits for an
// answer: until it is there, calls go through the regions. The engine's lock protects its calls;
// what comes from housekeeping may come from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/status.h"
#include "device/device_runtime.h"
#include "node/bell.h"
#include "node/descriptor_port.h"
#include "node/registration.h"
#include "node/trial.h"

namespace accord::node {

// Who reaches into a rank's buffer during a call: one rank by its number, or these.
inline constexpr int kNobody = -2;
inline constexpr int kEveryone = -1;

// An allocation on offer, written by its owner only while `generation` is 0 and nobody reads it.
struct Offer {
  std::atomic<std::uint32_t> generation{0};  // of this slot, never the same again; 0: withdrawn
  std::atomic<std::int32_t> readers{kNobody};
  std::atomic<std::uint32_t> withdrawn{0};  // the last generation that was
  MemoryHandle memory;
};

// Where a buffer begins: in which of its owner's offers, how far from the allocation's start.
struct Place {
  std::int32_t offer = -1;
  std::uint64_t offset_bytes = 0;
};

// What a rank says of its two buffers in one call.
struct Arrival {
  std::uint32_t direct = 0;  // peers shall reach into them; else the call goes through regions
  std::uint32_t form = 0;    // how it goes (DirectForm), which all must do alike
  Place in;
  Place out;
};

// One a rank, written by it alone. Counters count the calls that bring a record, since the group
// was made; never reset.
struct alignas(128) Board {
  static constexpr std::size_t kArrivals = 4;  // calls that a rank may be ahead of another
  static constexpr std::size_t kOffers = 32;
  std::atomic<std::uint64_t> arrived{0};  // its record of the call is there
  std::atomic<std::uint64_t> settled{0};  // it reads no record and reaches into nobody's buffer
  std::atomic<std::uint64_t> posted{0};   // changes of its offers
  Arrival arrivals[kArrivals];
  Offer offers[kOffers];
};

// What one rank has done about another's offers; written by the former alone. Zeros before.
struct Answers {
  std::atomic<std::uint64_t> followed{0};                  // Board::posted that it has acted upon
  std::atomic<std::uint64_t> closed{0};                    // the same of what was withdrawn alone
  std::atomic<std::uint32_t> opened[Board::kOffers] = {};  // generations that it can reach
};

class Offers {
 public:
  // Of the own region, for trying kernels out.
  static constexpr std::size_t kScratchBytes = 256;
  // Calls that use an allocation before it is lent: opening it costs each peer milliseconds.
  static constexpr unsigned kUsesBeforeOffer = 2;
  // The same of one that is a large part of the device: a program that makes such memory again and
  // again could not have it back before its peers have called. One that lasts, as a pool that other
  // buffers are cut from, is lent all the same.
  static constexpr unsigned kUsesBeforeLargeOffer = 8;
  // Calls without use after which an offer gives way to another allocation.
  static constexpr std::uint64_t kIdleCalls = 256;
  // Calls from one look at an own offer, and for descriptors, to the next: each takes half a
  // microsecond.
  static constexpr unsigned kCallsPerLook = 8;

  static std::size_t shared_bytes(int size) noexcept;

  // One rank readies the shared memory before the others see it: zeros so far.
  static void make(void* shared, int size) noexcept;
  // `scratch`: device memory where kernels may leave a byte; null where the group has no kernels.
  // `port` is of this rank, `ports` and `bells` of all; the own bell is null.
  void attach(void* shared, int rank, device::DeviceRuntime& runtime, int device, void* scratch,
              DescriptorPort& port, std::vector<PortAddress> ports,
              std::vector<std::shared_ptr<const Bell>> bells);
  // Closes all that is open here. Nothing can be reached any more.
  void close() noexcept;
  Offers() = default;
  ~Offers();
  Offers(const Offers&) = delete;
  Offers& operator=(const Offers&) = delete;

  // At the start of every call, of short ones now and then: opens what peers offer and closes what
  // they have withdrawn, and now and then looks whether the next of the own offers still exists.
  void tend();
  // The same without what peers offer: nothing is opened.
  void tend_own();
  // Outside of calls: closes what peers have withdrawn, withdraws what was freed.
  void tidy();

  // This call uses an allocation of this rank, which `readers` would reach into. True when
  // kernels are known to reach it and `readers` do too: `offer` then is its number.
  bool use(const device::PointerInfo& memory, int readers, std::int32_t& offer);

  // Whether a reader has opened an allocation of this rank: this asks for no use of it.
  bool is_open(const device::PointerInfo& memory, int reader) const;

  // Of an allocation of this rank that is to go: true once no peer has it open any more. Does
  // nothing while it is held.
  bool retract(const device::PointerInfo& memory);

  // No kernel is under way that shall tell whether memory can be reached.
  bool trial_ended() noexcept;

  Board& board(int rank) const noexcept { return boards_[rank]; }
  // Where a place of a peer lies here. Only of a record that says direct.
  std::byte* address(int owner, const Place& place) const noexcept;

  // For what lasts longer than a call. While an own offer is held, it gives way to no other; which
  // one it is its generation says, and where that lies with a reader, or null where it is not open.
  void hold(std::int32_t offer) noexcept { ++slots_[static_cast<std::size_t>(offer)].holders; }
  void let_go(std::int32_t offer) noexcept { --slots_[static_cast<std::size_t>(offer)].holders; }
  std::uint32_t generation(std::int32_t offer) const noexcept {
    return slots_[static_cast<std::size_t>(offer)].generation;
  }
  const std::byte* find(int owner, const Place& place, std::uint32_t generation);

  // Numbers the calls that bring a record; they come in the same order on all ranks.
  std::uint64_t take_call() noexcept { return calls_++; }

 private:
  // An allocation of this rank that calls have used.
  struct Own {
    void* base = nullptr;
    std::uint64_t buffer_id = 0;
    std::uint64_t size_bytes = 0;
    unsigned uses = 0;
    std::uint64_t last_call = 0;
    bool tried = false;  // whether kernels reach it is known:
    bool reachable = false;
    bool refused = false;  // it cannot be exported
    std::int32_t offer = -1;
    bool is_of(const device::PointerInfo& memory) const noexcept {
      return base == memory.base && buffer_id == memory.buffer_id;
    }
  };
  // The owner's side of one of its offers. Registered from the offer on until all peers have closed
  // what was withdrawn.
  struct Slot {
    std::uint32_t generation = 0;  // the last one given
    bool live = false;             // not withdrawn
    int holders = 0;
    std::uint64_t withdrawn = 0;  // Board::posted then
    bool is_kept = false;         // freed, but open still
    Registration registration;
    std::vector<bool> sent;  // its descriptor, to these ranks
  };
  // A peer's offer that was looked at: not open where it could not be, or is on trial.
  struct Import {
    std::uint32_t generation = 0;
    std::uint32_t withdrawn = 0;  // no parcel up to this generation is kept
    PeerMemory memory;
    bool is_refused = false;  // by the runtime, or since too much is open
    Descriptor descriptor;    // kept for another try
  };
  using Imports = std::array<Import, Board::kOffers>;
  // An import whose trial was given up on, open for as long as that goes on.
  struct Tried {
    int owner = -1;
    std::size_t number = 0;
    std::uint32_t generation = 0;
    PeerMemory memory;
  };

  Answers& answers(int reader, int owner) const noexcept {
    return answers_[reader * size_ + owner];
  }
  Own& known(const device::PointerInfo& memory);
  bool is_freed(const Own& own) const noexcept;
  void look_for_reset();
  void withdraw_freed();
  void withdraw(Own& own) noexcept;
  void look_at_own();
  void look_at_next();
  void reclaim() noexcept;
  void release(Slot& slot) noexcept;
  Status try_kernels(const void* memory, bool& known);
  Status lend(Own& own, const device::PointerInfo& memory);
  Status show(const Own& own, int readers);
  Status send_descriptor(std::int32_t offer, int readers, bool& sent);
  int find_place();
  void keep_account(Slot& slot);
  bool is_free(const Slot& slot) const noexcept;
  bool opened_by(std::int32_t offer, int readers) const noexcept;
  void post() noexcept;
  void follow(int owner, bool again);
  bool is_worth_another_try() noexcept;
  Imports& imports_of(int owner);
  void close_withdrawn(int owner);
  void drop_withdrawn(int owner, std::size_t number, Import& import);
  Status open(int owner, std::size_t number, Import& import);
  bool is_trial_ended() noexcept;
  void end_tried() noexcept;
  void close(Import& import) noexcept;

  mutable std::mutex mutex_;  // guards what follows, but for the numbers of calls and holders
  int rank_ = 0;
  int size_ = 0;
  device::DeviceRuntime* runtime_ = nullptr;
  int device_ = -1;
  std::uint64_t life_ = 0;  // of the device's context
  void* scratch_ = nullptr;
  DescriptorPort* port_ = nullptr;
  std::vector<PortAddress> ports_;                  // by rank
  std::vector<std::shared_ptr<const Bell>> bells_;  // by rank
  Board* boards_ = nullptr;
  Answers* answers_ = nullptr;
  std::uint64_t kept_bytes_max_ = 0;  // freed but open, of all communicators together
  std::vector<Own> own_;
  std::array<Slot, Board::kOffers> slots_;
  std::size_t next_look_ = 0;
  unsigned calls_since_look_ = 0;
  // By owner; null: it has offered nothing yet.
  std::vector<std::unique_ptr<Imports>> imports_;
  bool has_refused_ = false;             // some of them could not be opened
  std::uint64_t closes_at_refusal_ = 0;  // of the handle cache
  Trial trial_;
  Tried tried_;
  std::uint64_t calls_ = 0;
};

}  // namespace accord::node

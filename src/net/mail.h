// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages between ranks of different nodes that wait in memory of their sender until their
// receiver fetches them. Who is to receive which is told by others (the host MPI carries a header
// in a message's stead); here a message is its sender's rank and a number. A design (design.h)
// moves it. Its sender has the buffer back once it is fetched, or once it has been kept: copied
// into page-locked memory. A receiver need not fetch before its program completes the receive,
// which may wait for what the sender does next: so keeping is never refused, and takes no more than
// staging the message would have. Only once so much is kept, which its senders' programs have long
// forgotten, no more messages are taken. A thread answers receivers while their sender's program
// computes. Knows no MPI. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "device/staging_pool.h"
#include "net/attendant.h"
#include "net/design.h"
#include "net/freight.h"
#include "net/host_channel.h"

namespace accord::net {

class Mail {
 public:
  struct Options {
    std::uint32_t rank = 0;
    std::size_t kept_bytes_max = 0;
    // The adapters that messages in host memory leave by, where these are others than the worker's,
    // as UCX_NET_DEVICES and UCX_TLS mean it.
    std::string host_devices = {};
    std::string transports = {};
    JobKey key = {};  // as the worker has it
  };
  // `attendant`: that worker's. `addresses`: of the workers of all ranks.
  Mail(std::unique_ptr<Worker> worker, std::unique_ptr<Attendant> attendant,
       std::vector<std::vector<std::byte>> addresses, const Options& options);
  // Once no peer fetches anything any more.
  ~Mail();
  Mail(const Mail&) = delete;
  Mail& operator=(const Mail&) = delete;

  // A rank gets no messages before it has said that it looks for them. Whether `rank` has, and is
  // still there; asks it to, if not.
  bool may_send_to(std::uint32_t rank);
  // Whether anybody has asked this rank, ever, and since it has answered last. Cost a load.
  bool was_invited() const noexcept { return was_invited_.load(std::memory_order_acquire); }
  bool is_invited() const noexcept { return is_invited_.load(std::memory_order_acquire); }
  void accept_invitations();

  // The sender's side.

  // What a message in such memory goes by that is to go by `wanted`: where that cannot be now, or
  // has failed with this receiver, another one; null: none does.
  const Design* usable(std::uint32_t receiver, const Design& wanted,
                       const device::PointerInfo& where);
  // Whether UCX itself reads such memory, and whether one may lie in it.
  bool reaches(const device::PointerInfo& where) const { return worker_->reaches(where); }
  bool takes(const Design& design, const device::PointerInfo& where) const {
    return design.takes(*worker_, where);
  }
  // Host memory for a message that does not, page-locked where it has a runtime; empty where too
  // much is kept.
  Status take_room(device::DeviceRuntime* runtime, std::size_t size_bytes,
                   device::StagingBuffer& room);
  // A message for `receiver`: in the user's memory, or nothing where too much is kept; or in
  // `kept`, room as above.
  std::optional<std::uint32_t> post(std::uint32_t receiver, const Design& design,
                                    const Memory& from);
  std::uint32_t post_kept(std::uint32_t receiver, const Design& design, device::StagingBuffer kept);
  // Whether that rank has answered a greeting; greets it, if not. Who answers is its process,
  // wherever its program is. One that is gone since has, too: what it is offered is an error then,
  // and the host MPI might wait for it for ever.
  bool is_met(std::uint32_t rank);
  // A message for a rank that has been met, which looks for it in any case: in the user's memory,
  // and never kept. It goes by the fallback where it cannot go by that design now.
  std::uint32_t offer(std::uint32_t receiver, const Design& design, const Memory& from);
  // What was to be copied into its room is not there: its receiver shall learn of an error.
  void fail(std::uint32_t number) noexcept;
  // Nobody will fetch it.
  void withdraw(std::uint32_t number) noexcept;
  bool is_kept(std::uint32_t number);
  // is_next: its receiver is fetching others of this rank, and is taken to come to it.
  enum class Stage { waiting, is_next, being_read, ended };
  // Of one in the user's memory: that is the user's again once it has ended. An error where the
  // receiver is gone, or the transfer has failed.
  Status look(std::uint32_t number, Stage& stage);
  // Copies one that waits to memory of its own.
  Status keep(std::uint32_t number);

  // The receiver's side.

  // The design that its sender has chosen; null: that is none of its messages.
  static const Design* design_of(std::uint32_t number) { return design_at(number >> kNumberBits); }
  struct Fetch;
  std::shared_ptr<Fetch> begin_fetch(std::uint32_t sender, std::uint32_t number, const Memory& to);
  Status poll(Fetch& fetch, bool& done);
  // These wait: for the sender's attendant, never for its program.
  Status wait(Fetch& fetch);
  Status fetch(std::uint32_t sender, std::uint32_t number, const Memory& to);
  // It is not wanted.
  void dismiss(std::uint32_t sender, std::uint32_t number) noexcept;

  // Goes on with all that is under way. Whether something has to be polled.
  bool progress();

  struct Counters {
    std::uint64_t sent = 0;
    std::uint64_t kept = 0;  // of these, copied to page-locked memory
    std::uint64_t fetched = 0;
    std::uint64_t by_host_devices = 0;  // of those sent
  };
  Counters counters();

 private:
  // The design's number lies above.
  static constexpr unsigned kNumberBits = 24;
  enum class What : std::uint32_t;
  struct Note;
  struct Outgoing;
  enum class Invitation : std::uint8_t { none, sent, accepted };
  enum class Greeting : std::uint8_t { none, sent, answered };

  Status peer_of(std::uint32_t rank, Peer*& peer);
  Status write(std::uint32_t rank, What what, std::uint32_t number, Bytes bytes = {});
  void write_dismissal(std::uint32_t sender, std::uint32_t number, bool has_failed) noexcept;
  void read(Bytes message);
  void read_as_sender(const Note& note, Bytes bytes);
  void read_as_receiver(const Note& note, Bytes bytes);
  Line line_of(std::uint32_t other, std::uint32_t sender, std::uint32_t number, Peer& peer,
               What told_as);
  std::uint32_t add(Outgoing outgoing);
  void begin_sending(std::uint32_t number, Outgoing& outgoing, Bytes ask);
  void end_sending(std::uint32_t number, Outgoing& outgoing, Status status);
  void read_dismissal(Outgoing& outgoing, Bytes bytes);
  Status ask_for(Fetch& fetch, const Design& design);
  void begin_fetching(Fetch& fetch, const Design& design);
  void advance_outgoing();
  void advance_incoming();
  void remove(std::map<std::uint32_t, Outgoing>::iterator at) noexcept;
  bool has_gone(std::uint32_t rank);
  Status await(std::uint32_t rank);
  bool is_next(const Outgoing& outgoing) const;
  void attach(const device::PointerInfo& where);
  Freight& host_freight();

  const std::unique_ptr<Worker> worker_;
  const std::vector<std::vector<std::byte>> addresses_;
  const std::uint32_t rank_;
  const std::size_t kept_bytes_max_;
  std::atomic<bool> was_invited_{false};
  std::atomic<bool> is_invited_{false};

  // All under the worker's lock.
  std::optional<Freight> freight_;
  HostChannel host_channel_;
  std::vector<Peer*> peers_;             // by rank; null: nothing has been sent there
  std::vector<Invitation> invitations_;  // by rank
  std::vector<Greeting> greetings_;      // by rank
  std::vector<std::uint32_t> sending_;   // by rank: how many it is fetching
  std::vector<std::uint32_t> failed_;    // by rank: a bit for each design that has, with it
  std::vector<std::uint32_t> invited_by_;
  std::map<std::uint32_t, Outgoing> outgoing_;  // by number
  std::vector<std::shared_ptr<Fetch>> incoming_;
  std::uint32_t last_number_ = 0;
  std::size_t kept_bytes_ = 0;                // or about to be
  device::DeviceRuntime* runtime_ = nullptr;  // whose device UCX may work for
  int device_ = -1;
  Counters counters_;
  std::unique_ptr<Attendant> attendant_;
};

}  // namespace accord::net

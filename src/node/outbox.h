// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages between two ranks of a node that wait in device memory of their sender. What goes by the
// host MPI is a header of 32 bytes, or its first 8 for a message that is shorter than that, and the
// receiver fetches the message whenever it has matched that. A message is packed into the sender's
// outbox before anybody is told of it, or, where it is one run of bytes, or runs in equal steps, in
// memory that the receiver has opened, lies in the user's buffer: it is moved once its sender wants
// the buffer back and nobody has begun to fetch it, to the outbox where there is room, else to host
// memory, where it has room from the beginning. So neither side ever needs the other to go on. An
// outbox has areas of the device pool: another one where there is no room, and none any more that
// has long been empty. Each is lent once to each receiver (offers.h); until a receiver has opened
// it, it gets no header for a message there. Knows no MPI and no vendor. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/status.h"
#include "device/device_runtime.h"
#include "device/direct_work.h"
#include "device/layout_copy.h"
#include "device/runs.h"
#include "node/device_pool.h"
#include "node/offers.h"

namespace accord::node {

class Group;

// How its receiver is to get a message: by what its size suggests, or by a copy engine.
enum class Fetch : std::uint8_t { by_size, by_engine };

// Goes in the message's stead. Random numbers tell it from a message of the same length.
struct MessageHeader {
  // Which message it is, hidden by a cookie: enough for one that is shorter than a header, and to
  // give one up where no more has arrived.
  std::uint64_t ticket = 0;
  std::uint64_t cookie = 0;
  std::uint32_t generation = 0;
  std::uint8_t sender = 0;
  Fetch fetch = Fetch::by_size;
  std::uint16_t slot = 0;
  std::uint64_t size_bytes = 0;  // of the message

  static constexpr std::size_t kTicketBytes = sizeof(ticket);
  // How much of it goes in the stead of a message of that length, which is no less.
  static constexpr std::size_t sent_bytes(std::size_t message_bytes) noexcept {
    return message_bytes < sizeof(MessageHeader) ? kTicketBytes : sizeof(MessageHeader);
  }
  std::size_t sent_bytes() const noexcept { return sent_bytes(size_bytes); }
  static constexpr bool may_be(std::size_t received_bytes) noexcept {
    return received_bytes == kTicketBytes || received_bytes == sizeof(MessageHeader);
  }
};
static_assert(sizeof(MessageHeader) == 32);

// Who keeps messages until their receivers fetch them: the outbox for those of the node, p2p's
// NetMessages for those of others. A message is named by its header.
class Lender {
 public:
  virtual ~Lender() = default;

  // Whether this is the header of a message that waits for this rank.
  virtual bool recognises(const MessageHeader& header) const noexcept = 0;
  // The same of one of which only the ticket has come: the rest of it is filled in.
  virtual bool completes(MessageHeader& /*header*/) const noexcept { return false; }
  // The header was not sent after all, or has been taken back.
  virtual void withdraw(const MessageHeader& header) noexcept = 0;

  // Whether a message of this rank lies in the user's buffer.
  virtual bool is_lent(const MessageHeader& header) const = 0;
  // being_read: or its receiver is reading others, and has yet to come to it.
  enum class Loan { ended, untouched, being_read };
  // Whether the buffer that a header stands for is its user's again; an error where the receiver
  // could not read it, or is gone.
  virtual Status look(const MessageHeader& header, Loan& loan) = 0;
  // Whether the receiver of a message whose header it has been given has received it: a probe may
  // have read the header before. An error where the receiver is gone.
  virtual Status look_for_receive(const MessageHeader& /*header*/, bool& received) {
    received = true;
    return {};
  }
  // Ends an untouched loan: moves the message out of the user's buffer, where there is memory. No
  // effect where it is being read.
  virtual Status move(const MessageHeader& header) = 0;
  // How long the receiver of one is given to begin to read it before it is moved.
  virtual std::chrono::nanoseconds patience(const MessageHeader& header) const noexcept = 0;
  using Clock = std::chrono::steady_clock;
  // Which rank gets a message, as those functions below know it that tell how that one is.
  virtual int receiver_of(const MessageHeader& /*header*/) const noexcept { return -1; }
  // When one that somebody begins to wait for is to be moved, if it takes that long after all
  // others that are waited for. `takes`: its patience; the same is to be told once nobody waits for
  // it.
  virtual Clock::time_point begin_wait(int /*receiver*/, Clock::duration takes) noexcept {
    return Clock::now() + takes;
  }
  virtual void end_wait(int /*receiver*/, Clock::duration /*takes*/) noexcept {}
  // Whether a receiver waits in a call that looks at its posted receives while somebody waits for
  // it, and how often it has looked.
  struct Attention {
    bool is_looking = false;
    std::uint64_t looks = 0;
  };
  virtual Attention attention_of(int /*receiver*/) const noexcept { return {}; }
  // Sends of this rank wait for nobody any more who has not taken their headers.
  virtual bool is_leaving() const noexcept { return false; }
};

// What has become of a message.
enum class Stage : std::uint8_t {
  none,
  lent,      // in the user's buffer
  moving,    // its sender moves it from there
  waiting,   // in the outbox, or in host memory
  broken,    // its sender could not copy it there, as its receiver has yet to learn
  fetching,  // its receiver copies it
  taken,     // nobody will fetch it any more
  failed,    // nor this one: its receiver could not copy it
};

// A message that waits. Written by its sender while nobody knows of it, or while it moves it.
struct OutboxSlot {
  // Generation of the message, never the same again, and its stage.
  std::atomic<std::uint64_t> state{0};
  std::int32_t receiver = -1;
  std::uint32_t offer_generation = 0;
  Place place;
  device::Steps runs;  // of what is lent, from `place` on; no bytes: it is one run
  // The generation whose header a probe of the receiver has read, until it is received.
  std::atomic<std::uint32_t> probed{0};
  std::uint64_t size_bytes = 0;
  Fetch fetch = Fetch::by_size;
  // A message as long as what goes in a message's stead, where `place` says that it is here.
  std::array<std::byte, sizeof(MessageHeader)> bytes{};
  static constexpr std::int32_t kHere = -2;
  static constexpr std::int32_t kSpilled = -3;  // in host memory of its sender (Group::spill)

  static constexpr std::uint64_t state_of(std::uint32_t generation, Stage stage) noexcept {
    return std::uint64_t{generation} << 8 | static_cast<std::uint64_t>(stage);
  }
};

// What the ranks of a group share of their outboxes: one a rank.
struct alignas(128) OutboxBoard {
  static constexpr std::size_t kSlots = 512;
  // A header has a byte for it. Each rank keeps two descriptors of each other one, of which a
  // process has a thousand as a rule.
  static constexpr std::size_t kRanksMax = 128;
  std::array<std::uint64_t, 2> cookie{};  // rank 0's is everybody's
  // Rank 0's counts what all ranks have changed of what they lend.
  alignas(64) std::atomic<std::uint64_t> news{0};
  // Rank 0's: how many ranks are attached.
  std::atomic<std::uint32_t> attached{0};
  alignas(64) OutboxSlot slots[kSlots];
  // By receiver: this rank sends it headers.
  alignas(64) std::atomic<bool> sends_headers[kRanksMax] = {};
  // By sender: how many messages of its, which may be headers, probes of this rank are reading.
  alignas(64) std::atomic<std::uint32_t> readings[kRanksMax] = {};
  // How many sends wait for this rank to fetch what they lend.
  alignas(64) std::atomic<std::uint32_t> awaited{0};
  // Threads of this rank that wait in calls, its receives that are posted into device memory, and
  // how often it has looked what has come for these.
  alignas(64) std::atomic<std::uint32_t> waits{0};
  std::atomic<std::uint32_t> posted{0};
  std::atomic<std::uint64_t> looks{0};
  // Where its kernels run (device::KernelPlace), once it is attached.
  std::atomic<std::uint64_t> kernel_device{0};
  std::atomic<std::uint64_t> kernel_server{0};
  std::atomic<std::uint64_t> kernel_turn_us{0};
};

class Outbox final : public Lender {
 public:
  // `size_bytes`: of the device memory that messages wait in, at most, made when they shall.
  Outbox(std::shared_ptr<Group> group, std::size_t size_bytes);
  // Once no peer reads there any more: see close().
  ~Outbox() override;
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // This rank uses `device` for its messages from the first call on; what others lend is opened
  // there. False where it uses another one for them already.
  bool attach(device::DeviceRuntime& runtime, int device);
  bool is_attached() const noexcept { return attached_.load(std::memory_order_acquire); }
  // Of an attached rank: tells the runtime where its kernels take turns with those of a rank that
  // has attached since. Costs a load where none has.
  void look_for_turns() noexcept;
  device::DeviceRuntime& runtime() const noexcept;
  int device() const noexcept;

  // Whether peers lend something new, or no longer what they did. Costs a load.
  bool has_news() const noexcept;
  // Opens what peers lend, so that they may send headers: not to be called by a rank that has
  // receives under way which nobody would look for a header in.
  void follow();
  // Whether a message of `sender` may be a header.
  bool may_hear_from(int sender) const noexcept;

  // The sender's side.

  // A message in a user's buffer: one run of bytes, or runs in steps, all within `span_bytes`;
  // `memory` is what classify says of it. No start: neither.
  struct Source {
    std::byte* start = nullptr;
    std::size_t span_bytes = 0;
    device::Steps runs;
    device::PointerInfo memory;
  };
  // Device memory for a message to `receiver`, to be filled before the header is sent; null where
  // `source` is lent instead (`is_lent`), which takes none, where there is none, or the receiver
  // does not reach it yet; `is_full` where there may be soon, and it may be called `again`.
  struct Room {
    std::byte* start = nullptr;
    bool is_lent = false;
    bool is_full = false;
  };
  Room reserve(int receiver, std::size_t size_bytes, const Source& source, MessageHeader& header,
               bool again = false);
  // A message that is not yet sent.
  void fetch_by_engine(MessageHeader& header) noexcept;
  // It is not full any more in that sense, until a receiver has fetched something.
  void give_up() noexcept;
  void withdraw(const MessageHeader& header) noexcept override;
  // The room could not be filled: the receiver shall find an error in the message's stead.
  void fail(const MessageHeader& header) noexcept;

  bool is_lent(const MessageHeader& header) const override;
  Status look(const MessageHeader& header, Loan& loan) override;
  Status move(const MessageHeader& header) override;
  std::chrono::nanoseconds patience(const MessageHeader& header) const noexcept override;
  int receiver_of(const MessageHeader& header) const noexcept override;
  Clock::time_point begin_wait(int receiver, Clock::duration takes) noexcept override;
  void end_wait(int receiver, Clock::duration takes) noexcept override;
  Attention attention_of(int receiver) const noexcept override;

  // A synchronous message that may be a header must not be read by a probe, which completes it.
  // `receiver` does not read what cannot be a header: so it goes as it is where none has been sent
  // there, and none is until `end_plain`; else, where begin_plain says no, it is kept for the
  // receiver, who gets a header. There may be no room to keep it.
  bool begin_plain(int receiver);
  void end_plain(int receiver);
  bool keep(int receiver, std::span<const std::byte> message, MessageHeader& header);
  Status look_for_receive(const MessageHeader& header, bool& received) override;

  // From now on no send waits for a receiver that has not taken its header.
  void leave() noexcept { is_leaving_.store(true, std::memory_order_release); }
  bool is_leaving() const noexcept override { return is_leaving_.load(std::memory_order_acquire); }

  // The receiver's side.

  bool recognises(const MessageHeader& header) const noexcept override;
  bool completes(MessageHeader& header) const noexcept override;
  // Whether senders wait for this rank; what they want to know of it is in its board.
  bool is_awaited() const noexcept;
  // Whether this rank waits for receivers of what it lends.
  bool waits() const noexcept { return waits_.load(std::memory_order_relaxed) != 0; }
  OutboxBoard& own_board() const noexcept;
  // Around what a probe does to read a message of `sender` that may be a header; meanwhile it says
  // so of one that is, and whoever receives that then does.
  void begin_reading(int sender) noexcept;
  void end_reading(int sender) noexcept;
  void is_probed(const MessageHeader& header) noexcept;
  void is_received(const MessageHeader& header) noexcept;
  // Whether it lies in host memory: it is kept (see keep), or has been moved there. After
  // begin_fetch.
  bool is_on_host(const MessageHeader& header) const noexcept;
  // Where that lies, until `end_fetch`, and then in which steps, if it is not one run of bytes.
  // Waits while its sender moves it.
  Status begin_fetch(const MessageHeader& header, const std::byte*& start);
  const device::Steps& runs_of(const MessageHeader& header) const noexcept {
    return slot(header).runs;
  }
  enum class Fetched { yes, no };
  void end_fetch(const MessageHeader& header, Fetched fetched) noexcept;
  // Within the device of this rank or from a peer's, each one run of bytes. Waits for that.
  Status copy(std::span<const device::Copy> copies, Fetch how = Fetch::by_size);
  // The same without waiting, of some messages: the ticket is polled with the runtime's copy_done.
  Status begin_copies(const device::CopyBatch& copies, std::size_t messages, Fetch how,
                      device::CopyTicket& ticket);
  // It is not wanted.
  void dismiss(const MessageHeader& header) noexcept;
  // The same of one of whose header only this has arrived; no effect where it is no ticket.
  void dismiss(std::uint64_t ticket) noexcept;

  // Messages that went this way.
  struct Counters {
    std::uint64_t sent = 0;
    std::uint64_t lent = 0;     // of these, from the user's buffer
    std::uint64_t moved = 0;    // of these, out of it after all
    std::uint64_t spilled = 0;  // of these, to host memory
    std::uint64_t fetched = 0;
    std::uint64_t quick = 0;  // of these, by a kernel
  };
  Counters counters() const noexcept;

  // Closes what peers lend. Once all have, the memory may go.
  void close() noexcept;
  // Gives back what no message has waited in for so long.
  void tidy(Clock::duration idle);
  // The same of all outboxes of this process.
  static void tidy_all(Clock::duration idle) noexcept;

 private:
  struct Waiting {
    std::uint16_t slot;
    std::size_t size_bytes;
  };
  // By where they begin.
  using WaitingByPlace = std::map<std::size_t, Waiting>;
  struct Area {
    DeviceLease memory;
    std::uint64_t life = 0;  // of the context that it was made in
    WaitingByPlace waiting;
    Clock::time_point last_use{};

    bool find_room(std::size_t size_bytes, std::size_t& first_bytes) const;
  };
  // Of this rank's own messages, by slot.
  struct Own {
    std::byte* room = nullptr;  // in an area
    std::size_t size_bytes = 0;
    Place home{};  // of its room, in the offer of that area; or where it has been spilled
    std::uint32_t home_generation = 0;
    std::byte* source = nullptr;  // not null while it is lent, or its end is yet to be told
    std::size_t spill_bytes = 0;  // of what is lent: where in the spill it has room
  };

  static bool find_gap(const WaitingByPlace& waiting, std::size_t room_bytes,
                       std::size_t alignment_bytes, std::size_t size_bytes,
                       std::size_t& first_bytes);
  bool use_area(int receiver, Area*& area, Own& own);
  bool has_room_near(const MessageHeader& header) const;
  void settle_in(Area& area, std::uint16_t number, const Own& own);
  bool find_spill(std::size_t size_bytes, std::size_t& first_bytes);
  Status copy_lent(const Own& own, const device::Steps& runs, std::size_t first_bytes,
                   std::size_t length_bytes, std::byte* to);
  Status copy_to_spill(const Own& own, const device::Steps& runs);
  void clear_spill(const Own& own) noexcept;
  Area* find_area(std::size_t size_bytes, std::size_t& first_bytes);
  Area* grow(std::size_t size_bytes);
  void retire_empty(Clock::time_point unused_since);
  void free_retired();
  void announce() noexcept;
  bool is_within(const Source& source) const noexcept;
  bool is_reached_well(const Source& source, int receiver) const noexcept;
  void end_loan(Own& own, const OutboxSlot& slot) noexcept;
  bool change(const MessageHeader& header, Stage from, Stage to) noexcept;
  Stage stage(const MessageHeader& header) const noexcept;
  MessageHeader named_by(std::uint64_t ticket) const noexcept;
  std::uint64_t ticket_of(const MessageHeader& header) const noexcept;
  bool waits_for_us(const MessageHeader& header) const noexcept;
  bool is_window() const noexcept;
  bool kernel_is_worth_it(std::size_t size_bytes) noexcept;
  bool is_better_together(std::size_t size_bytes) const noexcept;
  Status copy_quickly(std::span<const device::Copy> copies, std::size_t messages, Fetch how,
                      bool& done);
  void attach_first(device::DeviceRuntime& runtime, int device);
  MessageHeader begin_message(std::uint16_t number, int receiver, std::size_t size_bytes) noexcept;
  bool is_over(std::uint16_t number);
  void reclaim_for(bool is_lent);
  void reclaim();
  OutboxSlot& slot(const MessageHeader& header) const noexcept;

  std::shared_ptr<Group> group_;
  const std::size_t size_bytes_;
  mutable std::mutex mutex_;
  std::atomic<bool> attached_{false};
  std::atomic<bool> is_leaving_{false};
  std::atomic<std::uint64_t> known_news_{0};
  std::uint64_t announced_ = 0;                 // changes of the own offers
  std::vector<std::unique_ptr<Area>> areas_;    // in the order in which they were made
  std::vector<std::unique_ptr<Area>> retired_;  // until no peer has them open
  unsigned calls_to_growth_ = 0;                // there was no memory to be had
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<std::uint64_t> lent_{0};
  std::atomic<std::uint64_t> moved_{0};
  std::atomic<std::uint64_t> spilled_{0};
  std::atomic<std::uint64_t> fetched_{0};
  std::atomic<std::uint64_t> quick_{0};
  bool has_given_up_ = false;
  unsigned calls_ = 0;
  std::atomic<std::uint32_t> waits_{0};
  Clock::duration awaited_moves_{};  // all of them together
  std::vector<Own> own_;
  WaitingByPlace lent_out_;  // or spilled: each has room in the spill
  std::size_t next_spill_bytes_ = 0;
  unsigned lent_since_look_ = 0;            // whether those before are over
  device::DirectWorker* worker_ = nullptr;  // of its device, once it is attached
  std::atomic<std::uint32_t> known_attached_{0};
  std::atomic<bool> takes_turns_{false};  // on its device, with another rank of the node
  std::atomic<Clock::rep> last_wish_{0};  // for a quick copy
  std::vector<std::uint16_t> kept_;       // in their slots
  std::vector<std::uint16_t> free_slots_;
  std::vector<int> plain_;  // by receiver: messages under way that are no headers, see begin_plain
};

}  // namespace accord::node

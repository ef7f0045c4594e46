// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "net/mail.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/config.h"
#include "base/log.h"
#include "net/mail_parts.h"

namespace accord::net {

namespace {

constexpr unsigned kKind = 0;
constexpr std::size_t kReasonBytesMax = 1024;

Status acquire(device::DeviceRuntime* runtime, std::size_t size_bytes,
               device::StagingBuffer& room) {
  device::StagingPool& pool = device::staging_pool();
  return runtime != nullptr ? pool.acquire(runtime, size_bytes, room)
                            : pool.acquire_sparse(size_bytes, room);
}

}  // namespace

Mail::Mail(std::unique_ptr<Worker> worker, std::unique_ptr<Attendant> attendant,
           std::vector<std::vector<std::byte>> addresses, const Options& options)
    : worker_(std::move(worker)),
      addresses_(std::move(addresses)),
      rank_(options.rank),
      kept_bytes_max_(options.kept_bytes_max),
      host_channel_(options.host_devices, options.transports, options.key),
      peers_(addresses_.size()),
      invitations_(addresses_.size()),
      greetings_(addresses_.size()),
      sending_(addresses_.size()),
      failed_(addresses_.size()),
      attendant_(std::move(attendant)) {
  freight_.emplace(*worker_,
                   Freight::Bounds{.piece_bytes = config().proxy_chunk_bytes,
                                   .pieces_of_one = static_cast<std::size_t>(config().proxy_chunks),
                                   .bytes_max = config().proxy_chunk_bytes *
                                                static_cast<std::size_t>(config().proxy_chunks)},
                   "rank " + std::to_string(rank_));
  worker_->listen(kKind, [this](Bytes message) { read(message); });
  attendant_->attend([this] { return progress(); });
}

Mail::~Mail() {
  attendant_.reset();
  const auto locked = worker_->lock();
  outgoing_.clear();
  incoming_.clear();
  freight_.reset();
  worker_->close();
}

Status Mail::peer_of(std::uint32_t rank, Peer*& peer) {
  peer = peers_[rank];
  if (peer == nullptr) ACCORD_TRY(worker_->connect(addresses_[rank], peer));
  peers_[rank] = peer;
  return worker_->check(*peer);
}

bool Mail::has_gone(std::uint32_t rank) {
  return peers_[rank] != nullptr && !worker_->check(*peers_[rank]).ok();
}

// Something is waited for of that rank: names it where it is gone.
Status Mail::await(std::uint32_t rank) {
  const Status alive = peers_[rank] != nullptr ? worker_->await(*peers_[rank]) : Status();
  return alive.ok() ? Status()
                    : Status(alive.code(), fmt::format("rank {}: {}", rank, alive.message()));
}

Status Mail::write(std::uint32_t rank, What what, std::uint32_t number, Bytes bytes) {
  Peer* peer = nullptr;
  ACCORD_TRY(peer_of(rank, peer));
  const Note note{.what = what, .from = rank_, .number = number};
  const Bytes head = bytes_of(note);
  std::vector<std::byte> message(head.begin(), head.end());
  message.insert(message.end(), bytes.begin(), bytes.end());
  return worker_->post(*peer, kKind, message);
}

void Mail::read(Bytes message) {
  Note note{};
  if (message.size() < sizeof note) return;
  std::memcpy(&note, message.data(), sizeof note);
  if (note.from >= addresses_.size()) return;
  const Bytes rest = message.subspan(sizeof note);
  switch (note.what) {
    case What::invitation:
      invited_by_.push_back(note.from);
      was_invited_.store(true, std::memory_order_release);
      is_invited_.store(true, std::memory_order_release);
      break;
    case What::greeting:
      (void)write(note.from, What::answer, 0);
      break;
    case What::answer:
      greetings_[note.from] = Greeting::answered;
      break;
    case What::acceptance:
      invitations_[note.from] = Invitation::accepted;
      break;
    case What::ask:
    case What::dismissal:
    case What::to_sender:
      read_as_sender(note, rest);
      break;
    case What::refusal:
    case What::otherwise:
    case What::to_receiver:
      read_as_receiver(note, rest);
      break;
  }
}

bool Mail::may_send_to(std::uint32_t rank) {
  const auto locked = worker_->lock();
  Invitation& invitation = invitations_[rank];
  if (invitation == Invitation::none) {
    invitation = Invitation::sent;
    (void)write(rank, What::invitation, 0);
  }
  return invitation == Invitation::accepted && !has_gone(rank);
}

void Mail::accept_invitations() {
  const auto locked = worker_->lock();
  is_invited_.store(false, std::memory_order_release);
  for (const std::uint32_t rank : std::exchange(invited_by_, {}))
    (void)write(rank, What::acceptance, 0);
}

// Adapters and pipelines for device memory want that device current to the thread that is at it.
void Mail::attach(const device::PointerInfo& where) {
  if (runtime_ != nullptr || where.runtime == nullptr || !device::needs_staging(where)) return;
  runtime_ = where.runtime;
  device_ = where.device;
}

Freight& Mail::host_freight() {
  Freight& freight = host_channel_.freight(*freight_);
  if (&freight == &*freight_) return freight;
  ++counters_.by_host_devices;
  attendant_->also(freight.worker());
  return freight;
}

Line Mail::line_of(std::uint32_t other, std::uint32_t sender, std::uint32_t number, Peer& peer,
                   What told_as) {
  return {.worker = *worker_,
          .freight = *freight_,
          .host_freight = [this]() -> Freight& { return host_freight(); },
          .peer = peer,
          .self = rank_,
          .other = other,
          .tag = std::uint64_t{sender} << 32 | number,
          .tell = [this, other, number,
                   told_as](Bytes bytes) { return write(other, told_as, number, bytes); }};
}

// The sender's side.

namespace {

std::uint32_t bit_of(const Design& design) { return 1U << number_of(design); }

}  // namespace

// What no active proxy carries a passive one holds. What neither does goes straight where UCX reads
// it, else the usual way: to copy it for UCX is no better than to copy it for the host MPI.
const Design* Mail::usable(std::uint32_t receiver, const Design& wanted,
                           const device::PointerInfo& where) {
  const auto locked = worker_->lock();
  const auto may_be = [&](const Design& design) {
    return (failed_[receiver] & bit_of(design)) == 0 && design.is_ready(where);
  };
  if (may_be(wanted)) return &wanted;
  for (const Design* other = next_best(wanted); other != nullptr; other = next_best(*other))
    if (other->takes(*worker_, where) && may_be(*other)) return other;
  return nullptr;
}

Status Mail::take_room(device::DeviceRuntime* runtime, std::size_t size_bytes,
                       device::StagingBuffer& room) {
  {
    const auto locked = worker_->lock();
    if (kept_bytes_ >= kept_bytes_max_) return {};
    kept_bytes_ += size_bytes;
  }
  const Status taken = acquire(runtime, size_bytes, room);
  if (taken.ok()) return {};
  const auto locked = worker_->lock();
  kept_bytes_ -= size_bytes;
  return taken;
}

std::uint32_t Mail::add(Outgoing outgoing) {
  const auto locked = worker_->lock();
  attach(outgoing.from.where);
  std::uint32_t number = 0;
  do {
    last_number_ = (last_number_ + 1) % (1U << kNumberBits);
    number = number_of(*outgoing.design) << kNumberBits | last_number_;
  } while (outgoing_.contains(number));
  outgoing_.emplace(number, std::move(outgoing));
  ++counters_.sent;
  return number;
}

std::optional<std::uint32_t> Mail::post(std::uint32_t receiver, const Design& design,
                                        const Memory& from) {
  {
    const auto locked = worker_->lock();
    if (kept_bytes_ >= kept_bytes_max_) return std::nullopt;
  }
  Outgoing outgoing;
  outgoing.receiver = receiver;
  outgoing.design = &design;
  outgoing.from = from;
  outgoing.is_in_users = true;
  return add(std::move(outgoing));
}

bool Mail::is_met(std::uint32_t rank) {
  const auto locked = worker_->lock();
  Greeting& greeting = greetings_[rank];
  if (greeting == Greeting::none) {
    greeting = Greeting::sent;
    (void)write(rank, What::greeting, 0);
  }
  return greeting == Greeting::answered;
}

std::uint32_t Mail::offer(std::uint32_t receiver, const Design& wanted, const Memory& from) {
  const Design* const design = usable(receiver, wanted, from.where);
  Outgoing outgoing;
  outgoing.receiver = receiver;
  outgoing.design = design != nullptr ? design : &fallback_design();
  outgoing.from = from;
  outgoing.is_in_users = true;
  return add(std::move(outgoing));
}

std::uint32_t Mail::post_kept(std::uint32_t receiver, const Design& design,
                              device::StagingBuffer kept) {
  Outgoing outgoing;
  outgoing.receiver = receiver;
  outgoing.design = &design;
  outgoing.from = {.start = kept.data(), .size_bytes = kept.size_bytes(), .where = {}};
  outgoing.kept = std::move(kept);
  return add(std::move(outgoing));
}

void Mail::remove(std::map<std::uint32_t, Outgoing>::iterator at) noexcept {
  if (!at->second.kept.empty()) kept_bytes_ -= at->second.kept.size_bytes();
  outgoing_.erase(at);
}

void Mail::fail(std::uint32_t number) noexcept {
  const auto locked = worker_->lock();
  outgoing_.at(number).state = Outgoing::State::broken;
}

void Mail::withdraw(std::uint32_t number) noexcept {
  const auto locked = worker_->lock();
  const auto found = outgoing_.find(number);
  if (found != outgoing_.end() && found->second.state != Outgoing::State::sending) remove(found);
}

bool Mail::is_kept(std::uint32_t number) {
  const auto locked = worker_->lock();
  const auto found = outgoing_.find(number);
  return found != outgoing_.end() && !found->second.is_in_users;
}

// Not for ever: another thread of its program may be at the others, and nobody at this one.
bool Mail::is_next(const Outgoing& outgoing) const {
  constexpr std::chrono::seconds kAtMost{60};
  return sending_[outgoing.receiver] != 0 &&
         std::chrono::steady_clock::now() - outgoing.posted_at < kAtMost;
}

Status Mail::look(std::uint32_t number, Stage& stage) {
  (void)progress();
  const auto locked = worker_->lock();
  stage = Stage::ended;
  const auto found = outgoing_.find(number);
  if (found == outgoing_.end() || !found->second.is_in_users) return {};
  Outgoing& outgoing = found->second;
  using State = Outgoing::State;
  if (outgoing.state == State::sending || outgoing.state == State::being_kept) {
    stage = Stage::being_read;
    return {};
  }
  if (outgoing.state == State::waiting) {
    stage = is_next(outgoing) ? Stage::is_next : Stage::waiting;
    outgoing.status = await(outgoing.receiver);
    if (outgoing.status.ok()) return {};
    stage = Stage::ended;
  }
  const Status status = std::move(outgoing.status);
  remove(found);
  return status;
}

Status Mail::keep(std::uint32_t number) {
  Memory from;
  {
    const auto locked = worker_->lock();
    const auto found = outgoing_.find(number);
    if (found == outgoing_.end() || !found->second.is_in_users ||
        found->second.state != Outgoing::State::waiting)
      return {};
    from = found->second.from;
  }
  device::StagingBuffer room;
  Status taken = acquire(from.where.runtime, from.size_bytes, room);
  if (!taken.ok()) taken = device::staging_pool().acquire_sparse(from.size_bytes, room);
  {
    const auto locked = worker_->lock();
    Outgoing& outgoing = outgoing_.at(number);  // only its owner takes it away, who is here
    if (outgoing.state != Outgoing::State::waiting) return {};
    if (!taken.ok()) {
      // Its buffer is the user's again: the receiver shall find an error.
      outgoing.state = Outgoing::State::broken;
      outgoing.is_in_users = false;
      return taken;
    }
    outgoing.state = Outgoing::State::being_kept;
    kept_bytes_ += from.size_bytes;
  }
  Status copied;
  if (from.where.runtime != nullptr) {
    const device::Copy copy{.dst = room.data(), .src = from.start, .row_bytes = from.size_bytes};
    copied = from.where.runtime->copy(from.where.device, {&copy, 1});
  } else {
    std::memcpy(room.data(), from.start, from.size_bytes);
  }
  const auto locked = worker_->lock();
  Outgoing& outgoing = outgoing_.at(number);
  outgoing.kept = std::move(room);
  outgoing.from = {.start = outgoing.kept.data(), .size_bytes = from.size_bytes, .where = {}};
  outgoing.is_in_users = false;
  outgoing.state = outgoing.is_dismissed ? Outgoing::State::ended
                   : copied.ok()         ? Outgoing::State::waiting
                                         : Outgoing::State::broken;
  ++counters_.kept;
  if (const auto ask = std::exchange(outgoing.asked, std::nullopt); ask && !outgoing.is_dismissed)
    begin_sending(number, outgoing, *ask);
  // Who sleeps until something comes by the network has to go on with this.
  worker_->wake();
  return copied;
}

// `ask`: the design's number, and what that wants to know.
void Mail::begin_sending(std::uint32_t number, Outgoing& outgoing, Bytes ask) {
  Peer* peer = nullptr;
  Status status = peer_of(outgoing.receiver, peer);
  std::uint32_t asked_design = 0;
  if (ask.size() < sizeof asked_design) ask = {};
  if (!ask.empty()) std::memcpy(&asked_design, ask.data(), sizeof asked_design);
  outgoing.design = ask.empty() ? nullptr : design_at(asked_design);
  if (status.ok() && outgoing.design == nullptr)
    status = {StatusCode::network, "net: a message is asked for by a design that is not known"};
  if (status.ok() && outgoing.state == Outgoing::State::broken)
    status = {StatusCode::device_error, "net: the message could not be read"};
  if (status.ok())
    status =
        outgoing.design->send(line_of(outgoing.receiver, rank_, number, *peer, What::to_receiver),
                              outgoing.from, ask.subspan(sizeof asked_design), outgoing.transfer);
  outgoing.state = Outgoing::State::sending;
  ++sending_[outgoing.receiver];
  if (!status.ok()) end_sending(number, outgoing, std::move(status));
}

// What cannot go by its design waits to be asked for by the fallback.
void Mail::end_sending(std::uint32_t number, Outgoing& outgoing, Status status) {
  outgoing.transfer.reset();
  --sending_[outgoing.receiver];
  const bool can_go_otherwise =
      status.code() == StatusCode::unsupported && outgoing.design != &fallback_design();
  if (can_go_otherwise && write(outgoing.receiver, What::otherwise, number).ok()) {
    log::info("net: rank {}: {}; the message goes {} instead", outgoing.receiver, status.message(),
              fallback_design().name());
    outgoing.state = Outgoing::State::waiting;
    return;
  }
  if (!status.ok()) {
    const Bytes why = bytes_of(status.message());
    (void)write(outgoing.receiver, What::refusal, number,
                why.first(std::min(why.size(), kReasonBytesMax)));
    if (outgoing.design != nullptr) failed_[outgoing.receiver] |= bit_of(*outgoing.design);
  }
  outgoing.status = std::move(status);
  outgoing.state = Outgoing::State::ended;
}

void Mail::read_as_sender(const Note& note, Bytes bytes) {
  const auto found = outgoing_.find(note.number);
  if (found == outgoing_.end() || found->second.receiver != note.from) {
    if (note.what == What::ask)
      (void)write(note.from, What::refusal, note.number, bytes_of(std::string("it has none")));
    return;
  }
  Outgoing& outgoing = found->second;
  using State = Outgoing::State;
  if (note.what == What::to_sender) {
    if (outgoing.transfer) outgoing.transfer->hear(bytes);
  } else if (note.what == What::ask && outgoing.state == State::being_kept) {
    outgoing.asked.emplace(bytes.begin(), bytes.end());
  } else if (note.what == What::ask) {
    // Whoever asks again for one that is on its way gets that.
    if (outgoing.state == State::waiting || outgoing.state == State::broken)
      begin_sending(note.number, outgoing, bytes);
    else if (outgoing.state == State::ended)
      (void)write(note.from, What::refusal, note.number, bytes_of(std::string("it has ended")));
  } else {
    read_dismissal(outgoing, bytes);
  }
}

// Its one byte says whether the receiver could not fetch it.
void Mail::read_dismissal(Outgoing& outgoing, Bytes bytes) {
  const bool has_failed = !bytes.empty() && bytes[0] != std::byte{0};
  // One that has not asked has tried both.
  if (has_failed && !outgoing.transfer) failed_[outgoing.receiver] |= bit_of(fallback_design());
  if (has_failed && outgoing.design != nullptr)
    failed_[outgoing.receiver] |= bit_of(*outgoing.design);
  if (outgoing.transfer) {
    outgoing.transfer->stop();
  } else if (outgoing.state == Outgoing::State::being_kept) {
    outgoing.is_dismissed = true;
  } else {
    outgoing.state = Outgoing::State::ended;
  }
}

void Mail::advance_outgoing() {
  for (auto at = outgoing_.begin(); at != outgoing_.end();) {
    const auto next = std::next(at);
    auto& [number, outgoing] = *at;
    if (outgoing.state == Outgoing::State::sending) {
      const Status alive = await(outgoing.receiver);
      if (!alive.ok()) outgoing.transfer->stop();
      bool done = false;
      Status status = outgoing.transfer->advance(done);
      if (!status.ok() && !alive.ok()) status = alive;
      if (done || !status.ok()) end_sending(number, outgoing, std::move(status));
    }
    if (outgoing.state == Outgoing::State::ended && !outgoing.is_in_users) remove(at);
    at = next;
  }
}

bool Mail::progress() {
  const auto locked = worker_->try_lock();
  if (!locked.owns_lock()) return false;  // another thread does it
  const auto go_on = [this] {
    worker_->progress();
    if (host_channel_.worker() != nullptr) host_channel_.worker()->progress();
    freight_->refuse_strangers();
    advance_outgoing();
    advance_incoming();
    return Status();
  };
  if (runtime_ == nullptr || !runtime_->run_on(device_, go_on).ok()) (void)go_on();
  const auto is_busy = [](const std::unique_ptr<Transfer>& transfer) {
    return transfer && transfer->must_be_polled();
  };
  for (const auto& [number, outgoing] : outgoing_)
    if (is_busy(outgoing.transfer)) return true;
  for (const auto& fetch : incoming_)
    if (is_busy(fetch->transfer)) return true;
  return false;
}

Mail::Counters Mail::counters() {
  const auto locked = worker_->lock();
  return counters_;
}

}  // namespace accord::net

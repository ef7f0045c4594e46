// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "rma/service.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/config.h"
#include "base/log.h"
#include "base/peer_status.h"
#include "rma/arrivals.h"

namespace accord::rma {

using message::Kind;

Status Service::open() { return receive_next(); }

bool Service::ends_asking() noexcept {
  const std::lock_guard<std::mutex> locked(mutex_);
  asks_for_life_ = false;
  return !broken_.ok() || std::ranges::all_of(peers_, [](const Peer& peer) {
    return peer.unanswered == 0 || peer.far->is_cut();
  });
}

void Service::close() noexcept { is_closed_.store(true, std::memory_order_release); }

Status Service::ask(int target, const Question& question, Result result,
                    const std::shared_ptr<Progress>& progress) {
  Header header = question.header;
  header.pieces = question.pieces.size();
  const auto pieces = std::as_bytes(question.pieces);
  Bytes body;
  body.reserve(pieces.size() + question.data.size() + question.compare.size());
  body.insert(body.end(), pieces.begin(), pieces.end());
  body.insert(body.end(), question.data.begin(), question.data.end());
  body.insert(body.end(), question.compare.begin(), question.compare.end());
  const std::lock_guard<std::mutex> locked(mutex_);
  ACCORD_TRY(broken_);
  ACCORD_TRY(check_peer(lines_, target));
  header.number = ++numbers_;
  if (progress != nullptr) progress->left.fetch_add(1, std::memory_order_relaxed);
  peers_[static_cast<std::size_t>(target)].asked.fetch_add(1, std::memory_order_relaxed);
  Asked& asked = asked_[header.number];
  asked.target = target;
  asked.result = std::move(result);
  asked.progress = progress;
  asked.transport = header.transport;
  asked.memory = question.memory;
  const bool is_transported = header.transport != Transports::kNone;
  const bool offers = is_transported && header.kind == Kind::put;
  asked.gets = is_transported && header.kind == Kind::get;
  if (offers) offer(target, header, question.memory);
  const Status sent = send(target, header, std::move(body));
  if (sent.ok()) return {};
  if (offers) moving_.pop_back();  // which takes it back
  asked_.erase(header.number);
  if (progress != nullptr) progress->left.fetch_sub(1, std::memory_order_relaxed);
  peers_[static_cast<std::size_t>(target)].asked.fetch_sub(1, std::memory_order_relaxed);
  return sent;
}

Status Service::take_error(int target) {
  const std::lock_guard<std::mutex> locked(mutex_);
  return std::exchange(peers_[static_cast<std::size_t>(target)].error, Status());
}

// What follows works with the lock held.

Status Service::send(int to, Header header, Bytes body) {
  header.from = rank_;
  header.body_bytes = body.size();
  Outgoing& out = sends_.emplace_back();
  out.to = to;
  out.packet = std::make_unique<Packet>();
  out.packet->header = header;
  const bool is_short = body.size() <= Packet::kShortBytes;
  if (is_short && !body.empty()) std::memcpy(out.packet->body, body.data(), body.size());
  if (!is_short) out.body = std::move(body);
  const Status sent = wire_->send(to, message::kPacketTag, out.packet.get(),
                                  out.packet->size_bytes(), out.requests[out.left]);
  if (!sent.ok()) {
    sends_.pop_back();
    return sent;
  }
  ++out.left;
  if (is_short) return {};
  // Its receiver waits for this one: after an error all is lost.
  broken_ = wire_->send(to, message::kBodyTag, out.body.data(), out.body.size(), out.requests[1]);
  if (broken_.ok()) ++out.left;
  return broken_;
}

Status Service::receive_next() {
  return wire_->receive(core::Wire::kAnyRank, message::kPacketTag, &packet_, sizeof packet_, next_);
}

core::Operation::Phase Service::advance(core::HostPort&) {
  const std::lock_guard<std::mutex> locked(mutex_);
  if (is_closed_.load(std::memory_order_acquire)) return end_all();
  if (port_ != nullptr && parcel_checks_.is_due()) port_->receive();
  Status status = look_at_moving();
  if (!broken_.ok()) return Phase::issued;
  if (status.ok()) status = receive();
  if (status.ok()) status = look_at_sends();
  if (status.ok()) status = serve();
  if (status.ok()) status = grant_locks();
  if (status.ok()) status = look_at_lives();
  if (!status.ok()) fail(status);
  return Phase::issued;
}

// What has been sent is there: its receivers have said so, or live no more. Then the host MPI may
// keep what it was to send for good. What goes by a transport ends soon.
core::Operation::Phase Service::end_all() {
  for (const Moving& moving : moving_) moving.end->stop();
  (void)look_at_moving();
  if (broken_.ok()) keep_first(broken_, look_at_sends());
  std::erase_if(sends_, [&](Outgoing& out) {
    if (check_peer(lines_, out.to).ok()) return false;
    (void)new Outgoing(std::move(out));
    return true;
  });
  if ((broken_.ok() && !sends_.empty()) || !moving_.empty()) return Phase::issued;
  wire_->cancel_named(next_);
  return Phase::done;
}

// Nothing can be expected any more.
void Service::fail(const Status& status) {
  broken_ = status;
  for (Peer& peer : peers_) peer.error = status;
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, asked] : asked_) numbers.push_back(number);
  for (const std::uint64_t number : numbers) give_up(number, status);
}

Status Service::receive() {
  constexpr int kPacketsPerPass = 64;
  for (int i = 0; i < kPacketsPerPass; ++i) {
    bool done = false;
    core::Completion completion;
    ACCORD_TRY(wire_->test(next_, done, completion));
    if (!done) return {};
    ACCORD_TRY(accept(completion.received_bytes));
    ACCORD_TRY(receive_next());
  }
  return {};
}

Status Service::accept(std::size_t received_bytes) {
  const Header& header = packet_.header;
  const Status believed = check_packet(packet_, received_bytes, static_cast<int>(peers_.size()));
  if (!believed.ok()) return turn_down(header, believed);
  Peer& peer = peers_[static_cast<std::size_t>(header.from)];
  peer.silence.hear(Silence::Clock::now());
  if (header.kind == Kind::alive) {
    peer.unanswered -= peer.unanswered != 0 ? 1 : 0;
    return {};
  }
  if (header.kind == Kind::life) {
    Header sign;
    sign.kind = Kind::alive;
    return send(header.from, sign, {});
  }
  if (peer.incoming.empty()) senders_.push_back(header.from);
  Incoming& incoming = peer.incoming.emplace_back();
  incoming.header = header;
  incoming.body.resize(header.body_bytes);
  if (header.body_bytes == 0) return {};
  if (header.body_bytes <= Packet::kShortBytes) {
    std::memcpy(incoming.body.data(), packet_.body, header.body_bytes);
    return {};
  }
  incoming.is_there = false;
  return wire_->receive(header.from, message::kBodyTag, incoming.body.data(), header.body_bytes,
                        incoming.request);
}

// It may be of no rank, or about nothing that was asked.
Status Service::turn_down(const Header& header, const Status& why) {
  log::warn("{}", why.message());
  const bool is_of_rank = header.from >= 0 && static_cast<std::size_t>(header.from) < peers_.size();
  return is_of_rank && header.kind < Kind::reply ? answer(header, why) : Status();
}

Status Service::look_at_sends() {
  for (auto out = sends_.begin(); out != sends_.end();) {
    while (out->left > 0) {
      bool done = false;
      core::Completion completion;
      ACCORD_TRY(wire_->test(out->requests[out->left - 1], done, completion));
      if (!done) break;
      --out->left;
    }
    out = out->left == 0 ? sends_.erase(out) : std::next(out);
  }
  return {};
}

// A peer's requests in their order, and no look at those that have asked for nothing.
Status Service::serve() {
  for (auto next = senders_.begin(); next != senders_.end();) {
    std::list<Incoming>& incoming = peers_[static_cast<std::size_t>(*next)].incoming;
    ++looks_;
    while (!incoming.empty()) {
      Incoming& first = incoming.front();
      if (!first.is_there) {
        core::Completion completion;
        ACCORD_TRY(wire_->test(first.request, first.is_there, completion));
        if (!first.is_there) break;
      }
      ACCORD_TRY(handle(first));
      incoming.pop_front();
    }
    next = incoming.empty() ? senders_.erase(next) : std::next(next);
  }
  return {};
}

Status Service::answer(const Header& question, const Status& outcome, Bytes body,
                       net::Transport::Name offer) {
  Header reply;
  reply.number = question.number;
  reply.offer = offer;
  reply.code = static_cast<std::uint32_t>(outcome.code());
  const std::size_t length = std::min(outcome.message().size(), sizeof reply.text - 1);
  std::memcpy(reply.text, outcome.message().data(), length);
  return send(question.from, reply, std::move(body));
}

Status Service::do_update(const Header& header, std::span<const Piece> pieces,
                          const std::byte* data, Bytes& result) {
  const std::uint64_t size_bytes = size_of(pieces);
  if (header.kind == Kind::fetch) result.resize(size_bytes);
  return own_.update(header.update, pieces, data, result.empty() ? nullptr : result.data());
}

Status Service::handle(Incoming& incoming) {
  const Header& header = incoming.header;
  if (header.kind == Kind::reply) {
    end(header, incoming.body);
    return {};
  }
  if (const Status right = check_question(header, incoming.body); !right.ok())
    return turn_down(header, right);
  Pieces pieces(header.pieces);
  const std::size_t pieces_bytes = pieces.size() * sizeof(Piece);
  if (pieces_bytes != 0) std::memcpy(pieces.data(), incoming.body.data(), pieces_bytes);
  if (header.transport != Transports::kNone) return move_for_peer(header, pieces.front());
  std::byte* const data = incoming.body.data() + pieces_bytes;
  const Pieces whole{{0, size_of(pieces)}};
  Bytes result;
  Status outcome;
  switch (header.kind) {
    case Kind::put:
      outcome = own_.put(pieces, Place::host(data), whole);
      break;
    case Kind::get:
      result.resize(size_of(pieces));
      outcome = own_.get(pieces, Place::host(result.data()), whole);
      break;
    case Kind::update:
    case Kind::fetch:
      outcome = do_update(header, pieces, data, result);
      break;
    case Kind::compare:
      result.resize(header.update.element_bytes);
      outcome = own_.compare_and_swap(pieces.front(), data, data + result.size(), result.data());
      break;
    case Kind::lock:
      waiting_locks_.push_back(header);
      return {};
    case Kind::unlock:
      outcome = give_back_lock(header);
      break;
    default:
      break;
  }
  if (!outcome.ok()) result.clear();
  return answer(header, outcome, std::move(result));
}

void Service::end(const Header& reply, const Bytes& body) {
  const auto found = asked_.find(reply.number);
  if (found == asked_.end() || found->second.target != reply.from || found->second.is_replied)
    return;
  found->second.is_replied = true;
  stop_moving(reply.number);
  end_part(reply.number, take_reply(reply, body, found->second));
}

Status Service::take_reply(const Header& reply, const Bytes& body, Asked& asked) {
  if (reply.code != 0)
    return {status_code_of_peer(reply.code),
            std::string(reply.text, ::strnlen(reply.text, sizeof reply.text))};
  if (body.size() != size_of(asked.result.pieces))
    return {StatusCode::mismatch, "a reply of another length than was asked for"};
  if (!body.empty()) return unpack(asked.result.place, asked.result.pieces, body.data());
  if (asked.gets == (reply.offer == 0))
    return {StatusCode::mismatch, "a reply that offers what was not asked for"};
  if (!asked.gets) return {};
  Moving& moving = moving_.emplace_back();
  moving.end = transports_->find(asked.transport)->fetch(asked.target, reply.offer, asked.memory);
  moving.asked = reply.number;
  ++asked.left;
  return {};
}

// An operation is done with the last of its parts.
void Service::end_part(std::uint64_t number, const Status& status) {
  const auto found = asked_.find(number);
  if (found == asked_.end()) return;
  keep_first(found->second.status, status);
  if (--found->second.left > 0) return;
  const Asked asked = std::move(found->second);
  asked_.erase(found);
  Peer& peer = peers_[static_cast<std::size_t>(asked.target)];
  keep_first(asked.progress != nullptr ? asked.progress->status : peer.error, asked.status);
  if (asked.progress != nullptr) asked.progress->left.fetch_sub(1, std::memory_order_release);
  peer.asked.fetch_sub(1, std::memory_order_release);
}

// There will be no reply. What is under way by a transport has the user's memory until it ends.
void Service::give_up(std::uint64_t number, const Status& why) {
  Asked& asked = asked_.at(number);
  if (std::exchange(asked.is_replied, true)) return;
  stop_moving(number);
  end_part(number, why);
}

// In the order in which they were asked for, but for those that may be shared.
Status Service::grant_locks() {
  for (auto next = waiting_locks_.begin(); next != waiting_locks_.end();) {
    Status outcome;
    if (!check_peer(lines_, next->from).ok()) {
      next = waiting_locks_.erase(next);
      continue;
    }
    Peer& peer = peers_[static_cast<std::size_t>(next->from)];
    if (try_lock(own_.words(), next->lock, next->from)) {
      if (next->lock == LockKind::shared) ++peer.shared_locks;
      if (next->lock == LockKind::exclusive) peer.has_exclusive_lock = true;
    } else {
      outcome = check_lock(own_.words(), lines_);
      if (outcome.ok()) {
        ++next;
        continue;
      }
    }
    const Header question = *next;
    next = waiting_locks_.erase(next);
    ACCORD_TRY(answer(question, outcome));
  }
  return {};
}

Status Service::give_back_lock(const Header& question) {
  Peer& peer = peers_[static_cast<std::size_t>(question.from)];
  const bool is_shared = question.lock == LockKind::shared;
  if (is_shared ? peer.shared_locks == 0 : !peer.has_exclusive_lock)
    return {StatusCode::no_epoch, "a lock is given back that is not held"};
  if (is_shared) --peer.shared_locks;
  if (!is_shared) peer.has_exclusive_lock = false;
  unlock(own_.words(), question.lock);
  return {};
}

// Of ranks of other nodes that have something to answer, or a lock that others may wait for.
Status Service::look_at_lives() {
  constexpr std::chrono::milliseconds kEach{100};
  const auto now = Silence::Clock::now();
  if (now - looked_at_ < kEach) return {};
  looked_at_ = now;
  const std::chrono::seconds patience(config().peer_timeout_s);
  const bool any = any_is_awaited_.exchange(false);
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    Peer& peer = peers_[rank];
    const bool is_waited_for = peer.is_awaited.exchange(false) || any ||
                               peer.asked.load(std::memory_order_relaxed) != 0 ||
                               peer.shared_locks != 0 || peer.has_exclusive_lock;
    const bool is_awaited = peer.unanswered != 0 || (asks_for_life_ && is_waited_for);
    if (peer.far == nullptr || !is_awaited || peer.far->is_cut()) continue;
    const auto next = peer.silence.look(now, patience);
    Header question;
    question.kind = Kind::life;
    if (next == Silence::Next::ask && asks_for_life_) {
      ACCORD_TRY(send(static_cast<int>(rank), question, {}));
      ++peer.unanswered;
    }
    if (next == Silence::Next::give_up) peer.far->cut();
  }
  fail_what_the_dead_were_asked();
  return {};
}

void Service::fail_what_the_dead_were_asked() {
  std::vector<std::uint64_t> lost;
  for (const auto& [number, asked] : asked_)
    if (!check_peer(lines_, asked.target).ok()) lost.push_back(number);
  for (const std::uint64_t number : lost)
    give_up(number, check_peer(lines_, asked_.at(number).target));
}

}  // namespace accord::rma

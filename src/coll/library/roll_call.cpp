// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/library/roll_call.h"

#include <fmt/format.h>

#include <new>
#include <set>
#include <utility>

#include "coll/tags.h"

namespace accord::coll {
namespace {

// A channel that far from another one is not in use with it.
constexpr int kChannels = kAlarmTag - 1;

// Of a call that has ended early there may be a receive that nobody looks for any more.
template <class Letter>
void withdraw(core::Wire& wire, Letter& letter) {
  if (letter.under_way) wire.cancel(letter.request);
  letter.under_way = false;
}

}  // namespace

// Never destroyed: communicators may be freed when static objects are gone.
struct CclAlarm::All {
  std::mutex mutex;
  std::set<CclAlarm*> alarms;
};
CclAlarm::All& CclAlarm::all() {
  static All& instance = *new All;
  return instance;
}

CclAlarm::CclAlarm(std::shared_ptr<core::Wire> wire, int rank, int size)
    : wire_(std::move(wire)), rank_(rank), size_(size) {
  listen();
  const std::lock_guard locked(all().mutex);
  all().alarms.insert(this);
}

CclAlarm::~CclAlarm() {
  {
    const std::lock_guard locked(all().mutex);
    all().alarms.erase(this);
  }
  stop();
}

void CclAlarm::stop() {
  const std::lock_guard locked(mutex_);
  if (std::exchange(listens_, false)) wire_->cancel_named(request_);
  if (broken_.ok()) broken_ = {StatusCode::unsupported, "nobody listens to alarms any more"};
}

void CclAlarm::stop_all() {
  const std::lock_guard locked(all().mutex);
  for (CclAlarm* const alarm : all().alarms) alarm->stop();
}

void CclAlarm::listen() {
  broken_ = wire_->receive(core::Wire::kAnyRank, kAlarmTag, &heard_, sizeof heard_, request_);
  listens_ = broken_.ok();
}

// A message that short is gone at once, or its receiver is. Nobody waits for that, so what is sent
// stays for good.
void CclAlarm::ring() noexcept {
  const std::lock_guard locked(mutex_);
  if (!check().ok()) return;
  broken_ = {StatusCode::device_error, "this rank has given up this communicator of the library"};
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    const auto* const alarm = new (std::nothrow) Alarm{rank_, wire_->name_at(peer)};
    core::HostRequest request = 0;
    if (alarm != nullptr) (void)wire_->send(peer, kAlarmTag, alarm, sizeof *alarm, request);
  }
}

Status CclAlarm::check() {
  const std::lock_guard locked(mutex_);
  if (!broken_.ok()) return broken_;
  bool done = false;
  core::Completion completion;
  const Status status = wire_->test(request_, done, completion);
  if (status.ok() && !done) return {};
  listens_ = false;  // the request is complete
  if (!status.ok()) {
    broken_ = status;
  } else if (heard_.name != wire_->name_at(rank_)) {
    listen();  // that of a wire which had these tags before, and nobody heard it there
  } else {
    broken_ = {StatusCode::device_error,
               fmt::format("rank {} has given up this communicator", heard_.rank)};
  }
  return broken_;
}

CclRollCall::CclRollCall(std::shared_ptr<core::Wire> wire, int rank, int size, int channel)
    : wire_(std::move(wire)),
      rank_(rank),
      size_(size),
      channel_((channel - 1) % kChannels + 1),
      distance_(size),
      told_(static_cast<std::size_t>(size)) {}

CclRollCall::~CclRollCall() {
  withdraw(*wire_, incoming_);
  for (Letter& letter : told_) withdraw(*wire_, letter);
  forget_sent();
  // After an error its receiver may never come, and the host MPI still refers to it.
  if (!sent_.empty()) (void)new std::list<Letter>(std::move(sent_));
}

void CclRollCall::ask(CclWords mine) {
  common_ = mine;
  distance_ = 1;
  if (distance_ < size_) exchange();
}

// In each step a rank knows of twice as many as before, those up to itself. What it knows of twice
// at the end makes no difference.
bool CclRollCall::answered() {
  while (distance_ < size_) {
    if (!has_come(incoming_)) return false;
    for (std::size_t i = 0; i < common_.size(); ++i) common_[i] &= incoming_.words[i];
    distance_ *= 2;
    if (distance_ < size_) exchange();
  }
  return true;
}

void CclRollCall::exchange() {
  receive((rank_ + size_ - distance_) % size_, incoming_);
  send((rank_ + distance_) % size_, common_);
}

void CclRollCall::tell(int peer, CclWords words) {
  Letter& letter = told_[static_cast<std::size_t>(peer)];
  if (peer == rank_) {
    letter.words = words;
    return;
  }
  receive(peer, letter);
  send(peer, words);
}

bool CclRollCall::all_told() {
  bool all = true;
  for (Letter& letter : told_) all = has_come(letter) && all;
  return all;
}

void CclRollCall::send(int to, const CclWords& words) {
  forget_sent();
  Letter& letter = sent_.emplace_back(Letter{.words = words});
  const Status sent =
      wire_->send(to, channel_, letter.words.data(), sizeof letter.words, letter.request);
  letter.under_way = sent.ok();
  keep_first(status_, sent);
}

void CclRollCall::receive(int from, Letter& letter) {
  withdraw(*wire_, letter);
  const Status posted =
      wire_->receive(from, channel_, letter.words.data(), sizeof letter.words, letter.request);
  letter.under_way = posted.ok();
  keep_first(status_, posted);
}

bool CclRollCall::has_come(Letter& letter) {
  if (!letter.under_way) return status_.ok();
  bool done = false;
  core::Completion completion;
  keep_first(status_, wire_->test(letter.request, done, completion));
  if (done) letter.under_way = false;
  return done && status_.ok();
}

void CclRollCall::forget_sent() {
  std::erase_if(sent_, [this](Letter& letter) {
    bool done = !letter.under_way;
    core::Completion completion;
    return done || !wire_->test(letter.request, done, completion).ok() || done;
  });
}

}  // namespace accord::coll

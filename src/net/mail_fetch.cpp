// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The receiver's side of net/mail.h.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "net/mail_parts.h"

namespace accord::net {

std::shared_ptr<Mail::Fetch> Mail::begin_fetch(std::uint32_t sender, std::uint32_t number,
                                               const Memory& to) {
  const auto locked = worker_->lock();
  attach(to.where);
  ++counters_.fetched;
  auto fetch = std::make_shared<Fetch>();
  fetch->sender = sender;
  fetch->number = number;
  fetch->to = to;
  const Design* const design = design_of(number);
  begin_fetching(*fetch, design != nullptr ? *design : fallback_design());
  if (!fetch->is_done) incoming_.push_back(fetch);
  return fetch;
}

// Where this end cannot go by the design, it asks for the message by the fallback.
void Mail::begin_fetching(Fetch& fetch, const Design& design) {
  Status begun = ask_for(fetch, design);
  if (!begun.ok() && &design != &fallback_design()) begun = ask_for(fetch, fallback_design());
  if (begun.ok()) return;
  fetch.transfer.reset();
  fetch.status = std::move(begun);
  fetch.is_done = true;
  write_dismissal(fetch.sender, fetch.number, true);
}

Status Mail::ask_for(Fetch& fetch, const Design& design) {
  Peer* peer = nullptr;
  ACCORD_TRY(peer_of(fetch.sender, peer));
  const std::uint32_t design_number = number_of(design);
  std::vector<std::byte> wants;
  ACCORD_TRY(
      design.receive(line_of(fetch.sender, fetch.sender, fetch.number, *peer, What::to_sender),
                     fetch.to, wants, fetch.transfer));
  const Bytes head = bytes_of(design_number);
  std::vector<std::byte> ask(head.begin(), head.end());
  ask.insert(ask.end(), wants.begin(), wants.end());
  return write(fetch.sender, What::ask, fetch.number, ask);
}

void Mail::read_as_receiver(const Note& note, Bytes bytes) {
  for (const auto& fetch : incoming_) {
    if (fetch->sender != note.from || fetch->number != note.number) continue;
    if (fetch->is_done) return;
    if (note.what == What::to_receiver) {
      fetch->transfer->hear(bytes);
    } else if (note.what == What::otherwise) {
      // Nothing has moved.
      fetch->transfer.reset();
      begin_fetching(*fetch, fallback_design());
    } else {
      keep_first(fetch->status,
                 {StatusCode::network, fmt::format("net: rank {} could not send the message: {}",
                                                   note.from, text_of(bytes))});
      fetch->transfer->stop();
    }
    return;
  }
}

void Mail::advance_incoming() {
  std::erase_if(incoming_, [this](const std::shared_ptr<Fetch>& fetch) {
    if (fetch->is_done) return true;
    Status alive = await(fetch->sender);
    if (!alive.ok()) fetch->transfer->stop();
    bool done = false;
    Status status = fetch->transfer->advance(done);
    if (!done && status.ok()) return false;
    if (!status.ok()) keep_first(fetch->status, std::move(alive));
    if (!status.ok() && fetch->status.ok()) write_dismissal(fetch->sender, fetch->number, true);
    keep_first(fetch->status, std::move(status));
    fetch->transfer.reset();
    fetch->is_done = true;
    return true;
  });
}

Status Mail::poll(Fetch& fetch, bool& done) {
  (void)progress();
  const auto locked = worker_->lock();
  done = fetch.is_done;
  return done ? fetch.status : Status();
}

Status Mail::fetch(std::uint32_t sender, std::uint32_t number, const Memory& to) {
  return wait(*begin_fetch(sender, number, to));
}

Status Mail::wait(Fetch& fetch) {
  const Attendant::Relief relief(*attendant_);
  for (;;) {
    bool done = false;
    const Status status = poll(fetch, done);
    if (done) return status;
    ::sched_yield();
  }
}

void Mail::dismiss(std::uint32_t sender, std::uint32_t number) noexcept {
  write_dismissal(sender, number, false);
}

void Mail::write_dismissal(std::uint32_t sender, std::uint32_t number, bool has_failed) noexcept {
  const auto locked = worker_->lock();
  const auto failed = std::byte{has_failed};
  (void)write(sender, What::dismissal, number, {&failed, 1});
}

}  // namespace accord::net

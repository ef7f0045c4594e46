// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "net/landing.h"

#include <fmt/format.h>

#include <algorithm>

namespace accord::net {

using What = FreightNote::What;

Landing::Landing(Freight& freight, std::uint64_t number, const Memory& to, Way way)
    : freight_(freight), number_(number), to_(to), way_(way) {
  freight_.add_landing(number_, *this);
}

Landing::~Landing() {
  freight_.remove_landing(number_);
  if (peer_ != nullptr) note_coming(granted_bytes_ - filled_bytes_, 0);
  for (Piece& piece : pieces_) {
    piece.copying.finish();
    freight_.give_back(std::move(piece.room));
  }
}

void Landing::hear(const FreightNote& note, Bytes bytes) {
  if (note.what == What::begin) return meet(note, bytes);
  if (note.what == What::filled) return keep_first(failed_, fill(note));
  has_ended_ = true;
  if (filled_bytes_ == to_.size_bytes) return;
  keep_first(failed_,
             {StatusCode::network, fmt::format("{} has given up: {}", carrier_, text_of(bytes))});
}

void Landing::meet(const FreightNote& note, Bytes bytes) {
  const Carrier carrier = carrier_of(note, bytes);
  Peer* peer = nullptr;
  if (peer_ == nullptr) keep_first(failed_, freight_.worker().connect(carrier.worker, peer));
  if (peer == nullptr) return;
  peer_ = peer;
  carriage_ = note.from;
  carrier_ = carrier.name;
  if (note.size_bytes != to_.size_bytes)
    keep_first(failed_, {StatusCode::network, "net: a message of another length"});
}

// Pieces lie in the order of the message, and no two of them overlap.
Status Landing::fill(const FreightNote& note) {
  const Status wrong(StatusCode::network, "net: more has been put than was granted");
  if (peer_ == nullptr || note.size_bytes > granted_bytes_ - filled_bytes_) return wrong;
  filled_bytes_ += note.size_bytes;
  note_coming(note.size_bytes, 0);
  if (way_ == Way::straight) {
    landed_bytes_ += note.size_bytes;
    return {};
  }
  const auto found = std::ranges::find_if(pieces_, [&](const Piece& piece) {
    return note.offset_bytes >= piece.offset_bytes &&
           note.offset_bytes - piece.offset_bytes < piece.size_bytes;
  });
  // A piece that is full is being copied already.
  if (found == pieces_.end() || note.size_bytes == 0 ||
      note.size_bytes > found->size_bytes - found->filled_bytes)
    return wrong;
  found->filled_bytes += note.size_bytes;
  if (found->filled_bytes < found->size_bytes || !failed_.ok()) return {};
  found->is_copying = true;
  return found->copying.begin(to_.where, static_cast<std::byte*>(to_.start) + found->offset_bytes,
                              found->room->memory.data(), found->size_bytes);
}

void Landing::note_coming(std::size_t less_bytes, std::size_t more_bytes) const {
  freight_.worker().note_coming(
      *peer_, static_cast<std::ptrdiff_t>(more_bytes) - static_cast<std::ptrdiff_t>(less_bytes));
}

Status Landing::end_copies() {
  Status first;
  std::erase_if(pieces_, [&](Piece& piece) {
    bool done = false;
    if (!piece.is_copying) return false;
    keep_first(first, piece.copying.poll(done));
    if (!done) return false;
    landed_bytes_ += piece.size_bytes;
    freight_.give_back(std::move(piece.room));
    return true;
  });
  return first;
}

Status Landing::grant(std::size_t offset_bytes, std::size_t size_bytes, void* place,
                      const Region& region) {
  granted_bytes_ += size_bytes;
  note_coming(0, size_bytes);
  return named(freight_.tell(*peer_,
                             {.what = What::grant,
                              .to = carriage_,
                              .offset_bytes = offset_bytes,
                              .size_bytes = size_bytes,
                              .address = reinterpret_cast<std::uintptr_t>(place)},
                             region.key()));
}

Status Landing::grant() {
  if (way_ == Way::straight) {
    if (region_ != nullptr) return {};
    ACCORD_TRY(freight_.worker().share(to_.address(), to_.size_bytes, region_, to_.where));
    return grant(0, to_.size_bytes, to_.address(), *region_);
  }
  while (granted_bytes_ < to_.size_bytes && pieces_.size() < freight_.bounds().pieces_of_one) {
    std::unique_ptr<Freight::Room> room;
    ACCORD_TRY(freight_.take_room(to_.where.runtime, room));
    if (room == nullptr) return {};
    Piece& piece = pieces_.emplace_back();
    piece.room = std::move(room);
    piece.offset_bytes = granted_bytes_;
    piece.size_bytes = std::min(freight_.bounds().piece_bytes, to_.size_bytes - granted_bytes_);
    ACCORD_TRY(grant(piece.offset_bytes, piece.size_bytes, piece.room->memory.data(),
                     *piece.room->region));
  }
  return {};
}

Status Landing::named(const Status& status) const {
  return status.ok() ? status
                     : Status(status.code(), fmt::format("{}: {}", carrier_, status.message()));
}

Status Landing::check_carrier() const {
  const Status alive = named(freight_.worker().await(*peer_));
  return filled_bytes_ == to_.size_bytes ? Status() : alive;
}

Status Landing::go_on() {
  if (peer_ == nullptr) return {};
  ACCORD_TRY(end_copies());
  ACCORD_TRY(check_carrier());
  return grant();
}

void Landing::refuse() {
  if (has_refused_ || peer_ == nullptr) return;
  has_refused_ = freight_.tell_error(*peer_, What::refusal, carriage_,
                                     {StatusCode::network, failed_.message()});
}

// What has not been granted, or has been announced, is not on its way.
bool Landing::is_let_go() const {
  return granted_bytes_ == filled_bytes_ || has_ended_ || !freight_.worker().await(*peer_).ok();
}

Status Landing::advance(bool& done) {
  if (failed_.ok()) failed_ = go_on();
  done = landed_bytes_ == to_.size_bytes;
  if (failed_.ok()) return {};
  refuse();
  (void)end_copies();
  done = (has_refused_ || peer_ == nullptr) && is_let_go() &&
         std::ranges::none_of(pieces_, [](const Piece& piece) { return piece.is_copying; });
  return done ? failed_ : Status();
}

void Landing::stop() noexcept {
  keep_first(failed_, {StatusCode::network, "net: the other end has given up"});
}

// Also while it waits for memory that others have. All else comes by the network.
bool Landing::must_be_polled() const noexcept {
  const bool is_starved = way_ == Way::by_pieces && peer_ != nullptr && failed_.ok() &&
                          pieces_.empty() && granted_bytes_ < to_.size_bytes;
  return is_starved ||
         std::ranges::any_of(pieces_, [](const Piece& piece) { return piece.is_copying; });
}

}  // namespace accord::net

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "net/carriage.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/peer_status.h"

namespace accord::net {

using What = FreightNote::What;

Carriage::Carriage(Freight& freight, const Memory& from, Target target, Way way)
    : freight_(freight),
      number_(freight.next_number()),
      from_(from),
      target_(std::move(target)),
      way_(way) {
  freight_.add_carriage(number_, *this);
}

// What UCX still reads is left to it for a moment, the same for all that go at once.
Carriage::~Carriage() {
  freight_.remove_carriage(number_);
  for (Part& part : parts_) {
    part.copying.finish();
    freight_.worker().cancel(part.putting);
    for (bool done = part.is_copying; !done;) {
      freight_.worker().progress();
      (void)freight_.worker().poll(part.putting, done);
      if (std::chrono::steady_clock::now() >= freight_.farewell()) break;
    }
    freight_.give_back(std::move(part.chunk));
  }
}

Status Carriage::named(const Status& status) const {
  return status.ok() ? Status()
                     : Status(status.code(), fmt::format("{}: {}", target_.name, status.message()));
}

Status Carriage::begin() {
  Peer* peer = nullptr;
  ACCORD_TRY(freight_.worker().connect(target_.worker, peer));
  peer_ = peer;
  return named(freight_.tell(*peer_,
                             {.what = What::begin,
                              .to = target_.landing,
                              .from = number_,
                              .size_bytes = from_.size_bytes,
                              .name_bytes = freight_.name().size()},
                             bytes_of(freight_.name()), freight_.worker().address()));
}

void Carriage::hear(const FreightNote& note, Bytes bytes) {
  if (failed_.ok()) failed_ = understand(note, bytes);
}

Status Carriage::understand(const FreightNote& note, Bytes bytes) {
  if (note.what == What::refusal)
    return {status_code_of_peer(note.code),
            fmt::format("{} does not take it: {}", target_.name, text_of(bytes))};
  if (peer_ == nullptr)
    return {StatusCode::network, "net: a grant to a message that has not been announced"};
  if (note.offset_bytes > from_.size_bytes ||
      note.size_bytes > from_.size_bytes - note.offset_bytes ||
      note.size_bytes > from_.size_bytes - granted_bytes_)
    return {StatusCode::network, "net: a grant beyond the message"};
  if (region_ == nullptr || !std::ranges::equal(key_, bytes)) {
    std::unique_ptr<RemoteRegion> region;
    ACCORD_TRY(freight_.worker().reach(*peer_, bytes, region));
    region_ = std::move(region);
    key_.assign(bytes.begin(), bytes.end());
  }
  granted_bytes_ += note.size_bytes;
  grants_.push_back({.offset_bytes = note.offset_bytes,
                     .size_bytes = note.size_bytes,
                     .address = note.address,
                     .region = region_});
  return {};
}

void Carriage::put(Part& part) {
  const bool is_in_chunk = way_ == Way::by_chunks;
  const void* const start = is_in_chunk
                                ? part.chunk.data()
                                : static_cast<std::byte*>(from_.address()) + part.of.offset_bytes;
  part.putting =
      freight_.worker().put(*peer_, start, part.of.size_bytes, part.of.address, *part.of.region,
                            is_in_chunk ? Worker::Where() : from_.where);
}

// Of the first grant.
Status Carriage::begin_part(std::size_t size_bytes, device::StagingBuffer chunk) {
  Part& part = parts_.emplace_back();
  Grant& grant = grants_.front();
  part.of = grant;
  part.of.size_bytes = size_bytes;
  part.chunk = std::move(chunk);
  grant.offset_bytes += size_bytes;
  grant.address += size_bytes;
  grant.size_bytes -= size_bytes;
  if (grant.size_bytes == 0) grants_.pop_front();
  if (way_ == Way::straight) {
    put(part);
    return {};
  }
  part.is_copying = true;
  return part.copying.begin(from_.where, part.chunk.data(),
                            static_cast<const std::byte*>(from_.start) + part.of.offset_bytes,
                            size_bytes);
}

Status Carriage::begin_parts() {
  while (!grants_.empty() && parts_.size() < freight_.bounds().pieces_of_one) {
    std::size_t size_bytes = grants_.front().size_bytes;
    device::StagingBuffer chunk;
    if (way_ == Way::by_chunks) {
      size_bytes = std::min(size_bytes, freight_.bounds().piece_bytes);
      ACCORD_TRY(freight_.take_chunk(from_.where.runtime, chunk));
      if (chunk.empty()) return {};
    }
    ACCORD_TRY(begin_part(size_bytes, std::move(chunk)));
  }
  return {};
}

Status Carriage::advance(Part& part, bool& is_over) {
  is_over = false;
  if (part.is_copying) {
    bool is_copied = false;
    Status copied = part.copying.poll(is_copied);
    if (copied.ok() && !is_copied) return {};
    part.is_copying = false;
    is_over = !copied.ok() || !failed_.ok();
    if (is_over) return copied;
    put(part);
  }
  ACCORD_TRY(named(freight_.worker().poll(part.putting, is_over)));
  if (!is_over || !failed_.ok()) return {};
  put_bytes_ += part.of.size_bytes;
  return named(freight_.tell(*peer_, {.what = What::filled,
                                      .to = target_.landing,
                                      .offset_bytes = part.of.offset_bytes,
                                      .size_bytes = part.of.size_bytes}));
}

// After an error, too: until nothing is under way any more.
void Carriage::go_on() {
  if (failed_.ok()) failed_ = begin_parts();
  std::erase_if(parts_, [&](Part& part) {
    bool is_over = false;
    Status status = advance(part, is_over);
    is_over = is_over || !status.ok();
    keep_first(failed_, std::move(status));
    if (is_over) freight_.give_back(std::move(part.chunk));
    return is_over;
  });
  if (failed_.ok()) failed_ = begin_parts();
}

Status Carriage::advance(bool& done) {
  if (peer_ == nullptr && failed_.ok()) failed_ = named(begin());
  if (peer_ != nullptr) keep_first(failed_, named(freight_.worker().await(*peer_)));
  go_on();
  done = failed_.ok() ? put_bytes_ == from_.size_bytes : parts_.empty();
  if (failed_.ok() || !done) return {};
  done = peer_ == nullptr || freight_.tell_error(*peer_, What::end, target_.landing, failed_);
  return done ? failed_ : Status();
}

void Carriage::stop() noexcept {
  keep_first(failed_, {StatusCode::network, "net: the other end has given up"});
}

// Also while it waits for memory that others have. All else comes by the network.
bool Carriage::must_be_polled() const noexcept {
  return (parts_.empty() && !grants_.empty()) ||
         std::ranges::any_of(parts_, [](const Part& part) { return part.is_copying; });
}

}  // namespace accord::net

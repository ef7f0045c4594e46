// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "p2p/net_messages.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/config.h"

namespace accord::p2p {
namespace {

using node::MessageHeader;
using Direction = core::LayoutCopy::Direction;

bool has_runtime(const core::StagedBuffer& buffer) {
  return buffer.is_staged() && buffer.where().runtime != nullptr;
}

Status unpack(const core::Segment& segment, core::StagedBuffer& buffer, void* packed,
              std::size_t size_bytes) {
  if (has_runtime(buffer))
    return buffer.where().runtime->copy_batch(
        buffer.where().device,
        core::packed_copies(segment, buffer.user(), size_bytes, packed, Direction::unpack));
  device::copy_on_host(
      core::packed_copies(segment, buffer.host(), size_bytes, packed, Direction::unpack));
  return buffer.copy_out(size_bytes);
}

}  // namespace

void NetBatch::add(std::shared_ptr<net::Mail::Fetch> fetch, const core::Segment& segment,
                   void* host) {
  begun_.push_back({std::move(fetch), segment, host});
}

bool NetBatch::poll() {
  return std::ranges::all_of(begun_, [&](const Begun& one) {
    bool done = false;
    (void)mail_.poll(*one.fetch, done);
    return done;
  });
}

std::vector<Status> NetBatch::run() {
  std::vector<Status> outcomes;
  for (const Begun& one : begun_) {
    const Status& status = outcomes.emplace_back(mail_.wait(*one.fetch));
    if (!status.ok() && one.host != nullptr) wipe_header(one.segment, one.host);
  }
  begun_.clear();
  return outcomes;
}

Status NetMessages::post(const core::Segment& segment, const core::StagedBuffer& buffer,
                         std::uint32_t receiver, const net::Design& wanted, MessageHeader& header,
                         Posted& posted) {
  posted = Posted::no;
  if (!has_runtime(buffer) || !mail_.may_send_to(receiver)) return {};
  const device::PointerInfo& where = buffer.where();
  const std::size_t size_bytes = segment.size_bytes();
  const net::Design* const usable = mail_.usable(receiver, wanted, where);
  if (usable == nullptr) return {};
  const net::Design& design = *usable;
  header = {.cookie = cookie_[1], .size_bytes = size_bytes};
  if (void* const run = core::run_of(segment, buffer.user(), size_bytes);
      run != nullptr && mail_.takes(design, where)) {
    const auto number = mail_.post(receiver, design, {run, size_bytes, where});
    put_ticket(number.value_or(0), header);
    posted = number ? Posted::yes : Posted::no;
    return {};
  }
  device::StagingBuffer room;
  ACCORD_TRY(mail_.take_room(where.runtime, size_bytes, room));
  if (room.empty()) return {};
  const Status packed = where.runtime->copy_batch(
      where.device,
      core::packed_copies(segment, buffer.user(), size_bytes, room.data(), Direction::pack));
  const std::uint32_t number = mail_.post_kept(receiver, design, std::move(room));
  put_ticket(number, header);
  if (!packed.ok()) mail_.fail(number);
  posted = Posted::yes;
  return packed;
}

Status NetMessages::receive(const core::Segment& segment, core::StagedBuffer& buffer,
                            const MessageHeader& header, NetBatch* batch) {
  const std::uint32_t sender = sender_of(header.ticket);
  const std::uint32_t number = number_of(header.ticket);
  const std::size_t size_bytes = header.size_bytes;
  const net::Design& design = *net::Mail::design_of(number);
  const device::PointerInfo where = has_runtime(buffer) ? buffer.where() : device::PointerInfo();
  const bool is_host_or_device = has_runtime(buffer) || !buffer.is_staged();
  if (void* const run = core::run_of(segment, buffer.user(), size_bytes);
      run != nullptr && is_host_or_device && mail_.takes(design, where)) {
    const net::Memory to{run, size_bytes, where};
    if (batch == nullptr) return mail_.fetch(sender, number, to);
    batch->add(mail_.begin_fetch(sender, number, to), segment,
               buffer.is_staged() ? nullptr : buffer.host());
    return {};
  }
  device::StagingBuffer whole;
  device::StagingPool& pool = device::staging_pool();
  const Status taken = where.runtime != nullptr ? pool.acquire(where.runtime, size_bytes, whole)
                                                : pool.acquire_sparse(size_bytes, whole);
  if (!taken.ok()) {
    mail_.dismiss(sender, number);
    return taken;
  }
  ACCORD_TRY(mail_.fetch(sender, number, {whole.data(), size_bytes, {}}));
  return unpack(segment, buffer, whole.data(), size_bytes);
}

Status NetMessages::fetch(const core::Segment& segment, core::StagedBuffer& buffer,
                          const MessageHeader& header, NetBatch* batch) {
  Status status;
  if (header.size_bytes <= segment.size_bytes()) {
    status = receive(segment, buffer, header, batch);
  } else {
    dismiss(header.ticket);
    status = {StatusCode::truncated,
              fmt::format("a message of {} bytes is longer than the {} bytes to receive",
                          header.size_bytes, segment.size_bytes())};
  }
  if (!status.ok()) wipe_header(segment, buffer.host());
  return status;
}

const char* NetMessages::path_of(const MessageHeader& header) const {
  return net::Mail::design_of(number_of(header.ticket))->path();
}

bool NetMessages::is_of_peer(std::uint64_t ticket) const noexcept {
  const std::uint32_t sender = sender_of(ticket);
  return sender < ranks_ && sender != rank_ && net::Mail::design_of(number_of(ticket)) != nullptr;
}

bool NetMessages::recognises(const MessageHeader& header) const noexcept {
  return is_own(header) && is_of_peer(header.ticket);
}

void NetMessages::dismiss(std::uint64_t ticket) noexcept {
  if (is_of_peer(ticket)) mail_.dismiss(sender_of(ticket), number_of(ticket));
}

void NetMessages::withdraw(const MessageHeader& header) noexcept {
  mail_.withdraw(number_of(header.ticket));
}

bool NetMessages::is_lent(const MessageHeader& header) const {
  return !mail_.is_kept(number_of(header.ticket));
}

Status NetMessages::look(const MessageHeader& header, Loan& loan) {
  auto stage = net::Mail::Stage::ended;
  const Status status = mail_.look(number_of(header.ticket), stage);
  loan = stage == net::Mail::Stage::waiting ? Loan::untouched
         : stage == net::Mail::Stage::ended ? Loan::ended
                                            : Loan::being_read;
  return status;
}

namespace {

// A receiver that is ready takes a journey there and back to begin; for one that is not, the host
// MPI's own long messages would wait, too.
std::chrono::milliseconds journey() { return std::chrono::milliseconds(config().net_patience_ms); }

}  // namespace

std::chrono::nanoseconds NetMessages::patience(const MessageHeader& header) const noexcept {
  constexpr std::size_t kMovedBytesPerNanosecond = 4;
  return journey() + std::chrono::nanoseconds(header.size_bytes / kMovedBytesPerNanosecond);
}

// The journeys are made at once, and the link carries one after the other.
NetMessages::Clock::time_point NetMessages::begin_wait(int /*receiver*/,
                                                       Clock::duration takes) noexcept {
  const Clock::rep own = (takes - journey()).count();
  return Clock::now() + journey() + Clock::duration(awaited_.fetch_add(own) + own);
}

void NetMessages::end_wait(int /*receiver*/, Clock::duration takes) noexcept {
  awaited_.fetch_sub((takes - journey()).count());
}

Status NetMessages::move(const MessageHeader& header) {
  return mail_.keep(number_of(header.ticket));
}

}  // namespace accord::p2p

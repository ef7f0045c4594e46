// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "p2p/device_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "device/staging_pool.h"

namespace accord::p2p {
namespace {

using node::MessageHeader;
using Direction = core::LayoutCopy::Direction;

bool is_on(const node::Outbox& outbox, const core::StagedBuffer& buffer) {
  return buffer.is_staged() && buffer.where().kind == device::MemoryKind::device &&
         buffer.where().runtime == &outbox.runtime() && buffer.where().device == outbox.device();
}

// One that lies in host memory.
Status unpack_from_host(const core::Segment& segment, core::StagedBuffer& buffer,
                        const std::byte* packed, std::size_t size_bytes) {
  device::copy_on_host(core::packed_copies(segment, buffer.host(), size_bytes,
                                           const_cast<std::byte*>(packed), Direction::unpack));
  return buffer.copy_out(size_bytes);
}

// The first bytes of what a receive has got in host memory. A few, for each receive that is
// complete.
void read_first(const core::Segment& segment, void* host, std::size_t size_bytes, void* to) {
  device::for_each_piece(*segment.type, 0, size_bytes,
                         [&](std::ptrdiff_t offset, std::size_t packed, std::size_t length) {
                           std::memcpy(core::at(to, static_cast<std::ptrdiff_t>(packed)),
                                       core::at(host, segment.offset_bytes + offset), length);
                         });
}

bool is_one_run(const core::CopyBatch& batch) {
  return batch.laid_out.empty() && batch.plain.copies().size() == 1 &&
         batch.plain.copies()[0].rows == 1;
}

// Where it lies on a device.
struct Lying {
  std::byte* start;
  device::Steps runs;  // no bytes: one
};

core::CopyBatch fetching(const core::Segment& segment, void* user, const Lying& message,
                         std::size_t size_bytes) {
  core::CopyBatch batch;
  batch.append(core::copy_from_steps(segment, user, size_bytes, message.start, message.runs));
  return batch;
}

// A scattered buffer that no kernel reaches: by way of host memory in one piece, since copies of
// its rows take a microsecond each.
Status scatter(node::Outbox& outbox, const core::Segment& segment, void* host, const Lying& message,
               std::size_t size_bytes) {
  device::StagingBuffer whole;
  ACCORD_TRY(device::staging_pool().acquire(&outbox.runtime(), size_bytes, whole));
  const core::Segment packed{core::Typemap::contiguous(size_bytes), 1, 0};
  ACCORD_TRY(outbox.runtime().copy_batch(outbox.device(),
                                         fetching(packed, whole.data(), message, size_bytes)));
  device::copy_on_host(
      core::packed_copies(segment, host, size_bytes, whole.data(), Direction::unpack));
  return {};
}

Status unpack(node::Outbox& outbox, const core::Segment& segment, core::StagedBuffer& buffer,
              const Lying& message, const MessageHeader& header) {
  const std::size_t size_bytes = header.size_bytes;
  if (is_on(outbox, buffer)) {
    const core::CopyBatch batch = fetching(segment, buffer.user(), message, size_bytes);
    return is_one_run(batch) ? outbox.copy(batch.plain.copies(), header.fetch)
                             : outbox.runtime().copy_batch(outbox.device(), batch);
  }
  const core::CopyBatch batch = fetching(segment, buffer.host(), message, size_bytes);
  if (is_one_run(batch))
    ACCORD_TRY(outbox.runtime().copy_batch(outbox.device(), batch));
  else
    ACCORD_TRY(scatter(outbox, segment, buffer.host(), message, size_bytes));
  return buffer.copy_out(size_bytes);
}

node::Outbox::Source source_of(const core::Segment& segment, const core::StagedBuffer& buffer) {
  node::Outbox::Source source{.start = core::run_of(segment, buffer.user(), segment.size_bytes()),
                              .span_bytes = segment.size_bytes(),
                              .runs = {},
                              .memory = buffer.where()};
  if (source.start == nullptr && core::find_steps(segment, source.runs)) {
    source.start = core::at(buffer.user(), segment.low_bytes());
    source.span_bytes = static_cast<std::size_t>(segment.high_bytes() - segment.low_bytes());
  }
  return source;
}

}  // namespace

Status post_message(node::Outbox& outbox, const core::Segment& segment,
                    const core::StagedBuffer& buffer, int receiver, MessageHeader& header,
                    Posted& posted, bool again) {
  posted = Posted::no;
  const device::PointerInfo& where = buffer.where();
  if (!buffer.is_staged() || where.kind != device::MemoryKind::device || where.runtime == nullptr ||
      !outbox.attach(*where.runtime, where.device))
    return {};
  const std::size_t size_bytes = segment.size_bytes();
  const node::Outbox::Room room =
      outbox.reserve(receiver, size_bytes, source_of(segment, buffer), header, again);
  if (room.is_full) posted = Posted::later;
  if (room.start == nullptr && !room.is_lent) return {};
  posted = Posted::yes;
  if (room.is_lent) return {};
  const core::CopyBatch batch =
      core::packed_copies(segment, buffer.user(), size_bytes, room.start, Direction::pack);
  const Status copied = outbox.runtime().copy_batch(outbox.device(), batch);
  if (!copied.ok()) outbox.fail(header);
  return copied;
}

bool find_header(const node::Lender& lender, const core::Segment& segment, void* host,
                 std::size_t received_bytes, MessageHeader& header) {
  constexpr std::size_t kUnknown = std::numeric_limits<std::size_t>::max();
  const auto has_come = [&](std::size_t sent_bytes) {
    if ((received_bytes != sent_bytes && received_bytes != kUnknown) ||
        segment.size_bytes() < sent_bytes)
      return false;
    read_first(segment, host, sent_bytes, &header);
    return true;
  };
  return (has_come(sizeof header) && lender.recognises(header)) ||
         (has_come(MessageHeader::kTicketBytes) && lender.completes(header));
}

bool find_header(const node::Lender& lender, std::span<const std::byte> message,
                 MessageHeader& header) {
  if (!MessageHeader::may_be(message.size())) return false;
  std::memcpy(&header, message.data(), message.size());
  return message.size() == sizeof header ? lender.recognises(header) : lender.completes(header);
}

std::optional<std::uint64_t> cut_off_ticket(const core::Segment& segment, void* host) {
  std::uint64_t ticket = 0;
  const std::size_t room_bytes = segment.size_bytes();
  if (room_bytes < sizeof ticket || room_bytes >= sizeof(MessageHeader)) return std::nullopt;
  read_first(segment, host, sizeof ticket, &ticket);
  return ticket;
}

void wipe_header(const core::Segment& segment, void* host) {
  MessageHeader nothing;
  const std::size_t size_bytes = std::min(segment.size_bytes(), sizeof nothing);
  device::copy_on_host(core::packed_copies(segment, host, size_bytes, &nothing, Direction::unpack));
}

void FetchBatch::add(const MessageHeader& header, core::CopyBatch&& copies) {
  headers_.push_back(header);
  size_bytes_ += header.size_bytes;
  copies_.add(std::move(copies));
}

// One H200 under MPS: a launch takes 5 to 10 us of its rank, a look one or two, and of a few
// messages the first look found half.
bool FetchBatch::may_grow(std::size_t seen) const noexcept {
  constexpr std::size_t kMessages = 8;
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  return size() != seen && size() < kMessages && size_bytes_ < kBytes;
}

void FetchBatch::begin() {
  const bool by_engine = std::ranges::any_of(
      headers_, [](const MessageHeader& header) { return header.fetch == node::Fetch::by_engine; });
  status_ = outbox_.begin_copies(
      copies_, headers_.size(), by_engine ? node::Fetch::by_engine : node::Fetch::by_size, ticket_);
}

Status FetchBatch::poll(bool& done) {
  done = !status_.ok();
  if (!done) status_ = outbox_.runtime().copy_done(ticket_, done);
  done = done || !status_.ok();
  if (!done) return {};
  using Fetched = node::Outbox::Fetched;
  for (const MessageHeader& header : headers_)
    outbox_.end_fetch(header, status_.ok() ? Fetched::yes : Fetched::no);
  return status_;
}

void SharedBatch::begin() {
  const std::lock_guard locked(mutex_);
  has_begun_ = true;
  fetches.begin();
}

bool SharedBatch::poll() {
  const std::lock_guard locked(mutex_);
  if (has_begun_ && !is_done_) status_ = fetches.poll(is_done_);
  return is_done_;
}

Status fetch_message(node::Outbox& outbox, const core::Segment& segment, core::StagedBuffer& buffer,
                     const MessageHeader& header, FetchBatch* batch) {
  Status status;
  if (header.size_bytes <= segment.size_bytes()) {
    const std::byte* packed = nullptr;
    status = outbox.begin_fetch(header, packed);
    if (status.ok()) {
      const bool is_on_host = outbox.is_on_host(header);
      const Lying message{const_cast<std::byte*>(packed), outbox.runs_of(header)};
      if (!is_on_host && is_on(outbox, buffer) && batch != nullptr) {
        batch->add(header, fetching(segment, buffer.user(), message, header.size_bytes));
        return {};
      }
      status = is_on_host ? unpack_from_host(segment, buffer, packed, header.size_bytes)
                          : unpack(outbox, segment, buffer, message, header);
      using Fetched = node::Outbox::Fetched;
      outbox.end_fetch(header, status.ok() ? Fetched::yes : Fetched::no);
    }
  } else {
    outbox.dismiss(header);
    status = {StatusCode::truncated,
              fmt::format("a message of {} bytes is longer than the {} bytes to receive",
                          header.size_bytes, segment.size_bytes())};
  }
  if (!status.ok()) wipe_header(segment, buffer.host());
  return status;
}

}  // namespace accord::p2p

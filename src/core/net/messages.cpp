// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/net/messages.h"

#include <fmt/format.h>

#include "base/config.h"

namespace accord::core {
namespace {

using node::MessageHeader;
using Direction = LayoutCopy::Direction;

// A header's fields: a message of the net is a number of its sender's, whose rank is in the ticket.
std::uint32_t number_of(const MessageHeader& header) noexcept { return header.generation; }

CopyBatch copies(const Segment& segment, void* user, std::size_t size_bytes, void* packed,
                 Direction direction) {
  CopyBatch batch;
  batch.append(packed_copy(segment, user, 0, size_bytes, packed, direction));
  return batch;
}

// Where the first bytes of a segment lie, where they are one run; else null.
void* run_of(const Segment& segment, void* user, std::size_t size_bytes) {
  const CopyBatch batch = copies(segment, user, size_bytes, nullptr, Direction::pack);
  if (!batch.laid_out.empty() || batch.plain.copies().size() != 1) return nullptr;
  const device::Copy& run = batch.plain.copies()[0];
  return run.rows == 1 ? const_cast<void*>(run.src) : nullptr;
}

bool has_runtime(const StagedBuffer& buffer) {
  return buffer.is_staged() && buffer.where().runtime != nullptr;
}

Status unpack(const Segment& segment, StagedBuffer& buffer, void* packed, std::size_t size_bytes) {
  if (has_runtime(buffer))
    return buffer.where().runtime->copy_batch(
        buffer.where().device,
        copies(segment, buffer.user(), size_bytes, packed, Direction::unpack));
  device::copy_on_host(copies(segment, buffer.host(), size_bytes, packed, Direction::unpack));
  return buffer.copy_out(size_bytes);
}

}  // namespace

Status NetMessages::post(const Segment& segment, const StagedBuffer& buffer, std::uint32_t receiver,
                         MessageHeader& header, Posted& posted) {
  posted = Posted::no;
  if (!has_runtime(buffer) || !mail_.may_send_to(receiver)) return {};
  const device::PointerInfo& where = buffer.where();
  const std::size_t size_bytes = segment.size_bytes();
  const net::Design& design = mail_.design_for(size_bytes);
  header = {.ticket = cookie_[0] ^ rank_, .cookie = cookie_[1], .size_bytes = size_bytes};
  if (void* const run = run_of(segment, buffer.user(), size_bytes);
      run != nullptr && mail_.takes(design, where)) {
    const auto number = mail_.post(receiver, design, {run, size_bytes, where});
    header.generation = number.value_or(0);
    posted = number ? Posted::yes : Posted::no;
    return {};
  }
  device::StagingBuffer room;
  ACCORD_TRY(mail_.take_room(where.runtime, size_bytes, room));
  if (room.empty()) return {};
  const Status packed = where.runtime->copy_batch(
      where.device, copies(segment, buffer.user(), size_bytes, room.data(), Direction::pack));
  header.generation = mail_.post_kept(receiver, design, std::move(room));
  if (!packed.ok()) mail_.fail(header.generation);
  posted = Posted::yes;
  return packed;
}

Status NetMessages::receive(const Segment& segment, StagedBuffer& buffer,
                            const MessageHeader& header) {
  const std::uint32_t sender = sender_of(header);
  const std::uint32_t number = number_of(header);
  const std::size_t size_bytes = header.size_bytes;
  const net::Design& design = *net::Mail::design_of(number);
  const device::PointerInfo where = has_runtime(buffer) ? buffer.where() : device::PointerInfo();
  const bool is_host_or_device = has_runtime(buffer) || !buffer.is_staged();
  if (void* const run = run_of(segment, buffer.user(), size_bytes);
      run != nullptr && is_host_or_device && mail_.takes(design, where))
    return mail_.fetch(sender, number, {run, size_bytes, where});
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

Status NetMessages::fetch(const Segment& segment, StagedBuffer& buffer,
                          const MessageHeader& header) {
  Status status;
  if (header.size_bytes <= segment.size_bytes()) {
    status = receive(segment, buffer, header);
  } else {
    mail_.dismiss(sender_of(header), number_of(header));
    status = {StatusCode::truncated,
              fmt::format("a message of {} bytes is longer than the {} bytes to receive",
                          header.size_bytes, segment.size_bytes())};
  }
  // No header stays behind in the user's memory, where it might be taken for one anew.
  if (!status.ok()) {
    MessageHeader nothing;
    device::copy_on_host(
        copies(segment, buffer.host(), sizeof nothing, &nothing, Direction::unpack));
  }
  return status;
}

const char* NetMessages::path_of(const MessageHeader& header) {
  return net::Mail::design_of(number_of(header))->path();
}

bool NetMessages::recognises(const MessageHeader& header) const noexcept {
  return is_own(header) && sender_of(header) < ranks_ && sender_of(header) != rank_ &&
         net::Mail::design_of(number_of(header)) != nullptr;
}

void NetMessages::withdraw(const MessageHeader& header) noexcept {
  mail_.withdraw(number_of(header));
}

bool NetMessages::is_lent(const MessageHeader& header) const {
  return !mail_.is_kept(number_of(header));
}

Status NetMessages::look(const MessageHeader& header, Loan& loan) {
  auto stage = net::Mail::Stage::ended;
  const Status status = mail_.look(number_of(header), stage);
  loan = stage == net::Mail::Stage::waiting      ? Loan::untouched
         : stage == net::Mail::Stage::being_read ? Loan::being_read
                                                 : Loan::ended;
  return status;
}

// A receiver that is ready takes a journey there and back to begin; for one that is not, the host
// MPI's own long messages would wait, too.
std::chrono::nanoseconds NetMessages::patience(std::size_t size_bytes) const noexcept {
  constexpr std::size_t kMovedBytesPerNanosecond = 4;
  return std::chrono::milliseconds(config().net_patience_ms) +
         std::chrono::nanoseconds(size_bytes / kMovedBytesPerNanosecond);
}

Status NetMessages::move(const MessageHeader& header) { return mail_.keep(number_of(header)); }

}  // namespace accord::core

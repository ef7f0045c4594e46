// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/device_message.h"

#include <fmt/format.h>

#include <limits>

namespace accord::core {
namespace {

using node::MessageHeader;
using Direction = LayoutCopy::Direction;

CopyBatch copies(const Segment& segment, void* user, std::size_t length_bytes, void* packed,
                 Direction direction) {
  CopyBatch batch;
  batch.append(packed_copy(segment, user, 0, length_bytes, packed, direction));
  return batch;
}

bool is_on(const node::Outbox& outbox, const StagedBuffer& buffer) {
  return buffer.is_staged() && buffer.where().kind == device::MemoryKind::device &&
         buffer.where().runtime == &outbox.runtime() && buffer.where().device == outbox.device();
}

Status unpack(node::Outbox& outbox, const Segment& segment, StagedBuffer& buffer,
              const MessageHeader& header) {
  const bool direct = is_on(outbox, buffer);
  auto* const packed = const_cast<std::byte*>(outbox.find(header));
  const CopyBatch batch = copies(segment, direct ? buffer.user() : buffer.host(), header.size_bytes,
                                 packed, Direction::unpack);
  ACCORD_TRY(outbox.runtime().copy_batch(outbox.device(), batch));
  return direct ? Status() : buffer.copy_out(header.size_bytes);
}

}  // namespace

Status post_message(node::Outbox& outbox, const Segment& segment, const StagedBuffer& buffer,
                    int receiver, MessageHeader& header, Posted& posted) {
  posted = Posted::no;
  const device::PointerInfo& where = buffer.where();
  if (!buffer.is_staged() || where.kind != device::MemoryKind::device || where.runtime == nullptr ||
      !outbox.attach(*where.runtime, where.device))
    return {};
  const std::size_t size_bytes = segment.size_bytes();
  bool is_full = false;
  std::byte* const packed = outbox.reserve(receiver, size_bytes, header, is_full);
  if (is_full) posted = Posted::later;
  if (packed == nullptr) return {};
  const CopyBatch batch = copies(segment, buffer.user(), size_bytes, packed, Direction::pack);
  const Status copied = outbox.runtime().copy_batch(outbox.device(), batch);
  if (copied.ok()) {
    posted = Posted::yes;
  } else {
    outbox.withdraw(header);
  }
  return copied;
}

bool find_header(const node::Outbox& outbox, const Segment& segment, void* host,
                 std::size_t received_bytes, MessageHeader& header) {
  constexpr std::size_t kUnknown = std::numeric_limits<std::size_t>::max();
  if ((received_bytes != sizeof header && received_bytes != kUnknown) ||
      segment.size_bytes() < sizeof header)
    return false;
  device::copy_on_host(copies(segment, host, sizeof header, &header, Direction::pack));
  return outbox.recognises(header);
}

Status fetch_message(node::Outbox& outbox, const Segment& segment, StagedBuffer& buffer,
                     const MessageHeader& header) {
  Status status;
  if (header.size_bytes <= segment.size_bytes()) {
    status = unpack(outbox, segment, buffer, header);
  } else {
    // No header stays behind in the user's memory, where it might be taken for one anew.
    MessageHeader nothing;
    device::copy_on_host(
        copies(segment, buffer.host(), sizeof nothing, &nothing, Direction::unpack));
    status = {StatusCode::truncated,
              fmt::format("a message of {} bytes is longer than the {} bytes to receive",
                          header.size_bytes, segment.size_bytes())};
  }
  outbox.took(header);
  return status;
}

}  // namespace accord::core

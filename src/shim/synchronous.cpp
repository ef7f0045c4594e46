// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/synchronous.h"

#include <cstring>

namespace accord::shim {
namespace {

using Bytes = std::array<std::byte, sizeof(node::MessageHeader)>;

// The message, at the beginning of these.
std::span<const std::byte> pack(const core::StagedBuffer& buffer, const core::Segment& segment,
                                Bytes& bytes) {
  const std::size_t size_bytes = segment.size_bytes();
  device::copy_on_host(core::packed_copies(segment, buffer.host(), size_bytes, bytes.data(),
                                           core::LayoutCopy::Direction::pack));
  return {bytes.data(), size_bytes};
}

}  // namespace

Status post_or_mark(core::StagedBuffer& buffer, const core::Segment& segment, int receiver,
                    node::MessageHeader& header, bool& posted, PlainMessage& plain) {
  if (segment.type == nullptr) return {};
  if (outbox().begin_plain(receiver)) {
    plain = std::make_shared<MarkedMessage>(receiver);
    return {};
  }
  ACCORD_TRY(buffer.open());
  ACCORD_TRY(buffer.copy_in());
  Bytes bytes;
  posted = outbox().keep(receiver, pack(buffer, segment, bytes), header);
  return {};
}

}  // namespace accord::shim

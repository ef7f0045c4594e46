// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Whether what has come from another rank of a window can be believed: lengths, counts, ranks and
// elements, before any of them is used. What fails here is an error of that rank's own. Called by
// the service.
#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"
#include "rma/messages.h"

namespace accord::rma {

// The most that one question moves, either way: longer operations are more than one.
inline constexpr std::uint64_t kQuestionBytesMax = std::uint64_t{8} << 20;
inline constexpr std::uint64_t kRunsMax = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kElementBytesMax = 32;  // of a compare-and-swap

// Of a packet of so many bytes, in a window of so many ranks. Then the header may be answered.
Status check_packet(const message::Packet& packet, std::size_t received_bytes, int ranks);

// A question, whose body is here.
Status check_question(const message::Header& header, std::span<const std::byte> body);

}  // namespace accord::rma

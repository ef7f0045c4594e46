// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Inbox exchanges by the CPU, on memory it can touch: what the host runtime does in place of a
// kernel. Knows nothing of allocations; the caller says where the other inboxes are.
#pragma once

#include <cstddef>
#include <span>

#include "device/inbox.h"

namespace accord::device {

// Whether packets can be sent and received here: 16 bytes at an aligned address are accessed at
// once by CPUs with AVX (said by Intel, AMD and Zhaoxin).
bool cpu_keeps_packets_whole() noexcept;

// Writes this rank's blocks into the inboxes, by rank; only those it sends to are looked at.
void inbox_send(const InboxExchange& exchange, std::span<std::byte* const> inboxes);

// Takes what has arrived, once all of it has: false, and nothing done, before.
bool inbox_receive(const InboxExchange& exchange);

}  // namespace accord::device

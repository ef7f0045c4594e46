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

// Writes this rank's blocks into the inboxes, by rank; only those it sends to are looked at.
void inbox_send(const InboxExchange& exchange, std::span<std::byte* const> inboxes);

// Takes what has arrived, once all of it has: false, and nothing done, before.
bool inbox_receive(const InboxExchange& exchange);

}  // namespace accord::device

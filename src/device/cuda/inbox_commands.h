// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the resident kernels of cuda/inbox.cpp are told: tickets as commands, and the pieces that
// belong to them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/cuda/inbox_kernel.h"
#include "device/inbox_server.h"

namespace accord::device::cuda {

// What one block moves at once.
constexpr std::size_t kNarrowBytes = std::size_t{kInboxThreads} * kInboxUnitBytes;

// What decides how many blocks it takes, and how long.
std::size_t width_bytes(const InboxTicket& ticket);

InboxCommand command_of(const InboxTicket& ticket, std::uint16_t linger_us);

// How many there are, before the command is told.
std::size_t write_pieces(const InboxTicket& ticket, InboxPiece* pieces);

}  // namespace accord::device::cuda

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A message within a node that waits in device memory of its sender, while the host MPI carries its
// header (node/outbox.h). Both functions wait for copies of this rank alone. Knows no mpi.h.
#pragma once

#include <functional>

#include "core/layout.h"
#include "core/staged_buffer.h"
#include "node/outbox.h"

namespace accord::core {

// Readies `segment` of a buffer in device memory for `receiver`: lends it or packs it. Unless
// `posted` says yes the message cannot go that way, or not yet, and there is no header. After an
// error there is one all the same, which brings the receiver an error, too.
enum class Posted { yes, no, later };
Status post_message(node::Outbox& outbox, const Segment& segment, const StagedBuffer& buffer,
                    int receiver, node::MessageHeader& header, Posted& posted);

// Whether what the host MPI has received is a header for this rank. `host`: the pointer that it was
// given for `segment`.
bool find_header(const node::Lender& lender, const Segment& segment, void* host,
                 std::size_t received_bytes, node::MessageHeader& header);

// Puts the message where the user wants it; truncated where it does not fit. The sender has its
// memory back whatever comes of it. Where that is one piece of device memory, `bring` may do it,
// unless it says no.
Status fetch_message(node::Outbox& outbox, const Segment& segment, StagedBuffer& buffer,
                     const node::MessageHeader& header,
                     const std::function<bool(void* to)>& bring = nullptr);

}  // namespace accord::core

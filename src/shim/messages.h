// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages from a device to a rank of the same node: the host MPI matches a header in their stead,
// and the receiver fetches them from device memory of the sender (core/device_message.h). Who may
// send headers is agreed at MPI_Init, so that every receive is looked after, of host memory too.
// That costs each receive something, so no job does it that has not asked for it
// (ACCORD_P2P_BYTES); a rank gets no headers until it uses a device.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <atomic>

#include "core/device_message.h"
#include "shim/describe.h"

namespace accord::shim {

// The ranks of this node can send each other headers.
inline bool messages_joined = false;
// A receive may be under way in which nobody would look for a header: then this rank gets none.
inline std::atomic<bool> has_blind_receives{false};

// Together with all ranks of MPI_COMM_WORLD; the second waits for those of this node.
void join_messages();
void leave_messages() noexcept;

// Only where messages_joined.
node::Outbox& outbox() noexcept;

// Receives that begin now may get headers.
inline bool listens() noexcept { return messages_joined && device::any_active(); }

template <class C>
bool has_room_for_header(C count, MPI_Datatype datatype) noexcept {
  constexpr auto kSize = static_cast<MPI_Count>(sizeof(node::MessageHeader));
  MPI_Count size = 0;
  return count > 0 && datatype != MPI_DATATYPE_NULL &&
         host::Type_size_x(datatype, &size) == MPI_SUCCESS && size > 0 &&
         static_cast<MPI_Count>(count) >= (kSize + size - 1) / size;
}

// Whether a receive that begins now may get a header; remembers one that nobody looks after.
template <class C>
bool listens_for(C count, MPI_Datatype datatype, Lasts lasts) noexcept {
  if (!messages_joined || device::any_active()) return messages_joined;
  if ((lasts == Lasts::request || program_has_threads) && has_room_for_header(count, datatype))
    has_blind_receives.store(true);
  return false;
}

// Lets this rank take part, on the device of `buffer` or else the one that it uses: opens what its
// peers lend it.
void attend(const core::StagedBuffer& buffer) noexcept;

// The number of a rank of `comm` (of the remote group: none) among those of this node, or -1.
int node_rank(MPI_Comm comm, int rank) noexcept;

// Whether a message of this length from that rank may be a header.
bool may_be_header(MPI_Comm comm, int source, MPI_Count size_bytes) noexcept;

// Whether the header's last byte is the last one of some element of the type's signature: the host
// MPI puts whole elements into a receive buffer, whatever its layout.
bool takes_header(MPI_Datatype datatype) noexcept;

template <class C>
Landing landing_of(const core::StagedBuffer& buffer, C count, MPI_Datatype datatype, Lasts lasts) {
  if (!listens_for(count, datatype, lasts)) return {};
  attend(buffer);
  return has_room_for_header(count, datatype) ? Landing(count, datatype, lasts) : Landing();
}

// Packs `segment` of a buffer for a rank of this node. Where there is no room, it waits for
// receivers to make some, but no longer than staging takes.
Status post_message(const core::StagedBuffer& buffer, const core::Segment& segment, int receiver,
                    node::MessageHeader& header, bool& posted);

// The same for rank `dest`. `posted` says no where the message goes the usual way.
template <class C>
Status post_message(const core::StagedBuffer& buffer, C count, MPI_Datatype datatype, int dest,
                    MPI_Comm comm, node::MessageHeader& header, bool& posted) {
  posted = false;
  if (!messages_joined || !buffer.is_staged()) return {};
  const core::Segment segment = segment_of(count, datatype);
  if (segment.size_bytes() < std::max(config().p2p_bytes, sizeof header)) return {};
  const int receiver = node_rank(comm, dest);
  if (receiver < 0 || !takes_header(datatype)) return {};
  return post_message(buffer, segment, receiver, header, posted);
}

}  // namespace accord::shim

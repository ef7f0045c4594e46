// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages from a device to a rank of the same node: the host MPI matches a header in their stead,
// and the receiver fetches them from device memory of the sender (p2p/device_message.h). Who may
// send headers is agreed at MPI_Init. A rank gets none before it uses a device and has opened what
// a peer lends. From its first use of a device on it looks after receives that may last until then,
// and once it has opened something after all that a header fits into, of host memory too.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <atomic>

#include "coll/select/names.h"
#include "p2p/device_message.h"
#include "shim/describe.h"
#include "shim/held_messages.h"
#include "shim/messaging.h"
#include "shim/net_messages.h"

namespace accord::shim {

// Together with all ranks of MPI_COMM_WORLD; the last waits for those of this node.
void join_messages();
// MPI_Finalize has been called: nothing of this rank waits for a receiver that may never come.
void stop_messages();
void leave_messages();

// Only where messaging.node_joined.
node::Outbox& outbox();

// Who keeps a message of this rank.
node::Lender& lender_of(const node::MessageHeader& header);
// Who recognises a header that has come, or null; `host`: the pointer that the host MPI was given
// for `segment`.
node::Lender* find_lender(const core::Segment& segment, void* host, std::size_t received_bytes,
                          node::MessageHeader& header);
bool find_header(std::span<const std::byte> message, node::MessageHeader& header);
// The way a message takes, for people.
const char* path_of(const node::MessageHeader& header);

// Messages that come may be headers.
inline bool listens() {
  return messaging.joined && messaging.hears_headers.load(std::memory_order_acquire);
}
// Or may before the call is through, since another thread opens something.
inline bool may_listen() { return messaging.joined && (job.has_threads || listens()); }

// Whether anybody could send headers here, if this rank looked for them.
inline bool may_be_sent_headers() {
  return device::any_active() || (messaging.net_joined && net_mail().was_invited());
}

// Opens what peers lend since this rank has looked last. Costs a look at memory where there is
// nothing new.
void attend();
// The same, on the device of `buffer` where this rank has used none for messages so far.
void attend(const core::StagedBuffer& buffer);

// Of a message that is shorter than a header the ticket comes.
template <class C>
bool has_room_for_header(C count, MPI_Datatype datatype) {
  constexpr MPI_Count kSize = node::MessageHeader::kTicketBytes;
  MPI_Count size = 0;
  return count > 0 && datatype != MPI_DATATYPE_NULL &&
         host::Type_size_x(datatype, &size) == MPI_SUCCESS && size > 0 &&
         static_cast<MPI_Count>(count) >= (kSize + size - 1) / size;
}

// Whether a receive that begins now must be looked after, since it may get a header or what it is
// for is held. Remembers one that would have to be, had this process used a device already.
template <class C>
bool must_look_after(C count, MPI_Datatype datatype, Lasts lasts) {
  if (!messaging.joined) return false;
  if (!may_be_sent_headers()) {
    if (lasts == Lasts::call || !has_room_for_header(count, datatype)) return false;
    messaging.has_blind_requests.store(true);
    // Pairs with the one in attend(): the other thread sees this receive, or this one its device.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return may_be_sent_headers();
  }
  attend();
  if (job.has_threads || holds_messages()) return true;
  return (lasts == Lasts::request || listens()) && has_room_for_header(count, datatype);
}

// Has the ranks of this node look which calls the others make on `comm`.
void watch_calls(MPI_Comm comm, CommState& state);

// The number of a rank of `comm` (of the remote group: none) among those of this node, or -1.
int node_rank(MPI_Comm comm, int rank);

// Whether a message of this length from that rank may be a header.
bool may_be_header(MPI_Comm comm, int source, MPI_Count size_bytes);

// Whether the last byte of what goes in the stead of a message of that length is the last one of
// some element of the type's signature: the host MPI puts whole elements into a receive buffer,
// whatever its layout.
bool takes_header(MPI_Datatype datatype, std::size_t size_bytes);
// Whether every byte of a type's elements is moved.
bool moves_whole(MPI_Datatype datatype);

template <class C>
Landing landing_of(const core::StagedBuffer& buffer, C count, MPI_Datatype datatype, Lasts lasts) {
  if (!messaging.joined) return {};
  if (may_be_sent_headers()) attend(buffer);
  if (!has_room_for_header(count, datatype)) return {};
  return {count, datatype, lasts};
}

// After a receive of less than a header that has failed: the message may have been too long for it.
inline void give_up_cut_off(Landing landing, void* host) {
  if (!messaging.joined || !landing.is_present()) return;
  const core::Segment segment = landing.segment();
  if (segment.type == nullptr) return;
  const auto ticket = p2p::cut_off_ticket(segment, host);
  if (ticket && messaging.node_joined) outbox().dismiss(*ticket);
  if (ticket && messaging.net_joined) net_messages().dismiss(*ticket);
}

// A message whose header is sent next. It is taken back unless that is so: also where the program's
// error handler throws.
class Unsent {
 public:
  explicit Unsent(const node::MessageHeader& header) : header_(&header) {}
  ~Unsent() {
    if (header_ != nullptr) lender_of(*header_).withdraw(*header_);
  }
  Unsent(const Unsent&) = delete;
  Unsent& operator=(const Unsent&) = delete;
  void is_sent() noexcept { header_ = nullptr; }

 private:
  const node::MessageHeader* header_ = nullptr;
};

// Which way a message of that communicator goes.
coll::MessageWay way_of_message(MPI_Comm comm, std::size_t size_bytes);
// The same to a rank of another node; null: in messages of the host MPI.
const net::Design* design_of_message(MPI_Comm comm, const core::StagedBuffer& buffer,
                                     std::size_t size_bytes);
// The same of bytes in such memory, by a communicator's info or null.
const net::Design* design_of_bytes(const coll::AlgorithmChoice* info,
                                   const device::PointerInfo& where, std::size_t size_bytes);

// Packs `segment` of a buffer for a rank of this node, which is to get it that way. Where there is
// no room, it waits for receivers to make some, but no longer than staging takes.
Status post_message(const core::StagedBuffer& buffer, const core::Segment& segment, int receiver,
                    coll::MessageWay way, node::MessageHeader& header, bool& posted);

// The same for a rank of another node.
Status post_net_message(const core::StagedBuffer& buffer, const core::Segment& segment,
                        int receiver, const net::Design& design, node::MessageHeader& header,
                        bool& posted);

// Whether a send is complete only once it is received.
enum class Synchronous { no, yes };

// The same for rank `dest`. `posted` says no where the message goes the usual way.
template <class C>
Status post_message(const core::StagedBuffer& buffer, C count, MPI_Datatype datatype, int dest,
                    MPI_Comm comm, node::MessageHeader& header, bool& posted,
                    Synchronous synchronous = Synchronous::no) {
  posted = false;
  if (!messaging.joined || !buffer.is_staged() || messaging.open_sessions.load() != 0) return {};
  const core::Segment segment = segment_of(count, datatype);
  const coll::MessageWay way = way_of_message(comm, segment.size_bytes());
  const bool can_be_near = way != coll::MessageWay::staged;
  if (const int near = can_be_near ? node_rank(comm, dest) : -1; near >= 0)
    return takes_header(datatype, segment.size_bytes())
               ? post_message(buffer, segment, near, way, header, posted)
               : Status();
  // Between nodes no sender knows whether its header has been probed only.
  const bool may_be_far = messaging.net_joined && synchronous == Synchronous::no;
  const net::Design* const design =
      may_be_far ? design_of_message(comm, buffer, segment.size_bytes()) : nullptr;
  const int far = design != nullptr ? net_rank(comm, dest) : -1;
  if (far < 0 || !takes_header(datatype, segment.size_bytes())) return {};
  attend(buffer);
  return post_net_message(buffer, segment, far, *design, header, posted);
}

// Once its header is sent: returns when the buffer is the user's again, and where it is synchronous
// the message is received, with the error of before, if there was one, or that of the receiver.
Status end_message(const node::MessageHeader& header, const Status& posted,
                   Synchronous synchronous = Synchronous::no);

}  // namespace accord::shim

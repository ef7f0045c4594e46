// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a partitioned collective gives to other ranks: packed, and sent in the order in which the
// steps give it.
#include <algorithm>
#include <cstring>
#include <utility>

#include "partitioned/collective.h"

namespace accord::partitioned {
namespace {

// Messages on their way by the host MPI at once, each with staging memory of its own.
constexpr std::size_t kMessagesOnTheirWay = 16;
// Of them for ranks that have not started the round: packed meanwhile, and sent then.
constexpr std::size_t kMessagesAhead = 4;

}  // namespace

Status PartitionedCollective::send(core::HostPort& host) {
  for (auto next = queued_.begin();
       next != queued_.end() && messages_.size() < kMessagesOnTheirWay;) {
    const auto message = next++;
    if (messages_.size() >= kMessagesAhead && !is_ready(process_of(message->peer))) continue;
    ACCORD_TRY(pack(*message));
    messages_.splice(messages_.end(), queued_, message);
  }
  std::vector<int> late;  // peers for whom an earlier message waits
  for (auto next = messages_.begin(); next != messages_.end();) {
    const auto message = next++;
    if (!message->sent) {
      bool packed = is_ready(process_of(message->peer)) &&
                    std::ranges::find(late, message->peer) == late.end();
      if (packed) ACCORD_TRY(message->end.copied(message->packing, packed));
      if (!packed) {
        late.push_back(message->peer);
        continue;
      }
      ACCORD_TRY(post(*message));
    }
    bool done = false;
    ACCORD_TRY(host.test(message->request, done));
    if (done) messages_.erase(message);
  }
  return {};
}

Status PartitionedCollective::pack(Message& message) {
  const wire::Header header{.kind = wire::Kind::collective_data,
                            .to = plan_.name.number,
                            .round = round(),
                            .transfer = message.run.first,
                            .partitions = message.run.count,
                            .first_bytes = message.first_bytes,
                            .length_bytes = message.length_bytes,
                            .lineage = plan_.name.lineage};
  ACCORD_TRY(table_.channel().take_memory(&staging_runtime(), sizeof header + message.length_bytes,
                                          message.letter));
  std::byte* const bytes = message.letter.data();
  std::memcpy(bytes, &header, sizeof header);
  return message.end.copy(core::CallEnd::Direction::pack, message.first_bytes, message.length_bytes,
                          bytes + sizeof header, message.packing);
}

Status PartitionedCollective::post(Message& message) {
  ACCORD_TRY(table_.channel().post_data(
      process_of(message.peer),
      {message.letter.data(), sizeof(wire::Header) + message.length_bytes}, message.request));
  message.sent = true;
  for (Track& track : tracks_of(message.run)) --track.unsent;
  return {};
}

// What has been handed to a device ends by itself, but its memory is in use.
bool PartitionedCollective::drained(core::HostPort&) {
  queued_.clear();
  std::erase_if(moves_, [&](Move& move) {
    bool done = move.ticket.handle == nullptr;
    return done || !move.mover->copy_done(move.ticket, done).ok() || done;
  });
  std::erase_if(messages_, [&](Message& message) {
    bool done = message.sent;
    if (!message.sent) return !message.end.copied(message.packing, done).ok() || done;
    table_.channel().keep(std::move(message.letter), message.request);
    return true;
  });
  return moves_.empty() && messages_.empty();
}

}  // namespace accord::partitioned

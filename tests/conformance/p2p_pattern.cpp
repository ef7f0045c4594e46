// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include <algorithm>

#include "case_p2p.h"
#include "exclusions.h"

namespace accord::conformance {
namespace {

// Tags by how a message is received, so that receives posted early never take a message meant for a
// late one.
constexpr int kPostedTag = 0;
constexpr int kLateTag = 100;
constexpr int kPersistentTag = 200;
constexpr int kCommonTag = 7;
constexpr int kMessagesMax = 10;
constexpr int kGroups = 2;

// How one destination receives.
struct Receiver {
  Wild wild = Wild::none;
  bool posted = true;
};

int group_size(const Comm& comm, int group) {
  return comm.inter && group != comm.group ? comm.remote_size : comm.size;
}

ReceiveForm draw_form(Rng& rng, bool posted, Wild wild) {
  if (posted)
    return rng.chance(35) && wild != Wild::any_tag ? ReceiveForm::persistent : ReceiveForm::irecv;
  return static_cast<ReceiveForm>(static_cast<int>(ReceiveForm::recv) + rng.below(5));
}

int draw_tag(Rng& rng, const Message& message, int index) {
  const int drawn = rng.below(3);
  if (message.wild == Wild::any_source) return kCommonTag;
  if (message.wild != Wild::none) return drawn;
  if (message.receive_form == ReceiveForm::persistent) return kPersistentTag + index;
  return (is_posted(message.receive_form) ? kPostedTag : kLateTag) + drawn;
}

void draw_send(Rng& rng, Message& message) {
  const bool posted = is_posted(message.receive_form);
  const int mode = rng.below(posted ? 4 : 3);
  message.mode = static_cast<Mode>(mode);
  message.send_form = static_cast<SendForm>(rng.below(3));
  // A blocking receive comes after the rank's own sends, so at least one end must not block. A
  // buffered send never does.
  if (!posted && message.send_form == SendForm::blocking && message.mode != Mode::buffered)
    message.send_form = SendForm::nonblocking;
  const bool freed = rng.chance(20);
  message.freed = freed && message.send_form == SendForm::nonblocking;
}

void draw_size(Run& run, const Pattern& pattern, Message& message) {
  message.units = random_units(run, pattern.payload, 2);
  const bool same =
      std::all_of(pattern.payload.signature.begin(), pattern.payload.signature.end(),
                  [&](const Element* e) { return e == pattern.payload.signature.front(); });
  const int length = static_cast<int>(pattern.payload.signature.size());
  const int loose = run.global.below(length);
  const bool partial = run.global.chance(20);
  if (same && partial) message.loose_elements = loose;
  static constexpr std::array<int, 6> kExtra = {0, 0, 0, 1, 2, 7};
  message.capacity = message.units + (message.loose_elements > 0 ? 1 : 0) + run.global.pick(kExtra);
}

// A wild destination's buffers must fit each other's messages.
void even_out(Pattern& pattern) {
  for (Message& message : pattern.messages) {
    if (!is_unordered(message.wild)) continue;
    for (const Message& other : pattern.messages)
      if (other.destination == message.destination)
        message.capacity = std::max(message.capacity, other.capacity);
  }
}

}  // namespace

Pattern draw_pattern(Run& run, const Comm& comm) {
  Rng& rng = run.global;
  Pattern pattern;
  pattern.payload = random_payload(run);
  pattern.rounds = rng.chance(25) ? 2 : 1;
  Receiver receivers[kGroups][64];
  for (auto& group : receivers) {
    for (Receiver& receiver : group) {
      const int wild = rng.below(10);
      receiver.wild = wild < 6 ? Wild::none : static_cast<Wild>(std::min(wild - 5, 3));
      receiver.posted = rng.chance(50);
    }
  }
  const int number = rng.between(1, kMessagesMax);
  for (int i = 0; i < number; ++i) {
    Message message;
    const int group = rng.below(kGroups);
    const int source = rng.below(1 << 16);
    const int destination = rng.below(1 << 16);
    message.source.group = comm.inter ? group : 0;
    message.destination.group = comm.inter ? 1 - group : 0;
    message.source.rank = source % group_size(comm, message.source.group);
    message.destination.rank = destination % group_size(comm, message.destination.group);
    const Receiver& receiver = receivers[message.destination.group][message.destination.rank % 64];
    const bool own_way = rng.chance(50);
    message.wild = receiver.wild;
    message.receive_form =
        draw_form(rng, message.wild == Wild::none ? own_way : receiver.posted, message.wild);
    message.tag = draw_tag(rng, message, i);
    message.large = rng.chance(30) && run.oracle_api().Send.large != nullptr;
    message.message_request = rng.chance(50);
    draw_send(rng, message);
    if (message.mode == Mode::buffered && message.send_form == SendForm::persistent &&
        !works(run, "persistent buffered sends"))
      message.send_form = SendForm::nonblocking;
    draw_size(run, pattern, message);
    pattern.wild = pattern.wild || message.wild != Wild::none;
    pattern.ready = pattern.ready || message.mode == Mode::ready;
    pattern.freed = pattern.freed || message.freed;
    pattern.messages.push_back(message);
  }
  even_out(pattern);
  return pattern;
}

}  // namespace accord::conformance

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The messages of a point-to-point case: who sends what to whom, in which mode, and how it is
// received. Drawn the same on all ranks; case_p2p.cpp carries it out.
#pragma once

#include <vector>

#include "collectives.h"
#include "run.h"

namespace accord::conformance {

struct Endpoint {
  int group = 0;  // of an inter-communicator; else 0
  int rank = 0;
  bool operator==(const Endpoint&) const = default;
};

enum class Mode { standard, buffered, synchronous, ready };
enum class SendForm { blocking, nonblocking, persistent };
// The first two are posted before anything is sent, the others receive afterwards.
enum class ReceiveForm { irecv, persistent, recv, probe, iprobe, mprobe, improbe };
enum class Wild { none, any_source_any_tag, any_source, any_tag };

struct Message {
  Endpoint source;
  Endpoint destination;
  int tag = 0;
  Mode mode = Mode::standard;
  SendForm send_form = SendForm::blocking;
  ReceiveForm receive_form = ReceiveForm::irecv;
  Wild wild = Wild::none;
  bool large = false;
  bool freed = false;               // the send request is freed while active
  bool message_request = false;     // a matched message is received by Imrecv
  std::int64_t units = 0;           // sent
  std::int64_t loose_elements = 0;  // sent beyond whole units
  std::int64_t capacity = 0;        // units the receive has room for
};

struct Pattern {
  Payload payload;
  int rounds = 1;
  bool wild = false;   // some receive is wild: nobody may run ahead into the next case
  bool ready = false;  // some send is a ready send
  bool freed = false;
  std::vector<Message> messages;
};

Pattern draw_pattern(Run& run, const Comm& comm);

inline bool is_posted(ReceiveForm form) { return form <= ReceiveForm::persistent; }
// Receives whose order of completion is free, so that any of the group's buffers may get any
// message.
inline bool is_unordered(Wild wild) {
  return wild == Wild::any_source || wild == Wild::any_source_any_tag;
}

}  // namespace accord::conformance

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the fake MPI keeps between calls. Included by its own sources only.
#pragma once

#include "fake_mpi.h"

namespace accord::model {

struct Signature {
  Form form = Form::blocking;
  Collective kind = Collective::barrier;
  Op op = Op::none;
  int root = 0;
  std::size_t size_bytes = 0;
  bool operator==(const Signature&) const = default;
  std::string text() const;
};

// A message lives in outgoing_ of its sender until its bytes are on the receiver's side, and in
// arriving_, then perhaps unexpected_, of its receiver until it is matched.
struct FakeMpi::Message {
  int src = 0;  // world ranks
  int dst = 0;
  int src_in_comm = 0;
  Comm comm = kWorld;
  int tag = 0;
  std::size_t size_bytes = 0;
  bool eager = false;
  Buffer buffer;                   // rendezvous: read when the receiver has answered
  std::vector<std::byte> payload;  // eager, or transferred
  RequestState* sender = nullptr;
  RequestState* receiver = nullptr;
  bool visible = false;
  bool transferred = false;
  std::uint64_t visible_at = 0;   // in the sender's pokes
  std::uint64_t arrive_at = 0;    // in the receiver's
  std::uint64_t transfer_at = 0;  // in the sender's
};

struct FakeMpi::RequestState {
  enum class Kind { send, recv, collective, generalized };
  Kind kind = Kind::send;
  bool persistent = false;
  bool active = true;
  bool due = false;       // complete in truth, which the rank learns when it has poked due_at times
  bool complete = false;  // as the rank may learn
  bool freed = false;
  bool cancelled = false;
  std::uint64_t due_at = 0;
  Request handle = kNoRequest;
  Comm comm = kWorld;
  int peer = 0;  // in the communicator
  int tag = 0;
  FakeRank::Send mode = FakeRank::Send::standard;
  Buffer buffer;
  MessageStatus status;
  std::shared_ptr<Message> message;
  CollectiveArgs args;
  std::shared_ptr<PersistentGroup> group;
};

// One collective call of a communicator, or one round of a persistent one.
struct FakeMpi::Instance {
  struct Member {
    bool joined = false;
    int round = 0;  // how far its contribution has become visible
    bool due = false;
    bool complete = false;
    std::uint64_t at = 0;  // in the member's pokes: its next step
    CollectiveArgs args;
    std::vector<std::byte> input;
    RequestState* request = nullptr;  // none for a blocking call
  };
  Comm comm = kWorld;
  Signature signature;
  CollectiveArgs first;  // kind, op and root, the same for all
  std::vector<int> members;
  std::vector<Member> parts;
  bool synchronizing = true;  // completes nowhere before all have contributed
  int rounds = 1;
  std::map<int, Comm> children;  // by colour
  std::shared_ptr<PersistentGroup> group;
};

struct FakeMpi::PersistentGroup {
  std::vector<std::size_t> starts;  // by member
  std::vector<std::shared_ptr<Instance>> rounds;
};

struct FakeMpi::CommInfo {
  std::vector<int> members;
  std::vector<bool> freed;
  std::vector<std::size_t> calls;  // by member
  std::vector<std::shared_ptr<Instance>> instances;
};

std::vector<std::byte> pack(const Buffer& buffer);
void unpack(const Buffer& buffer, const std::byte* bytes, std::size_t size_bytes);
// Overwrites what is about to be received, as an MPI may.
void scribble(const Buffer& buffer, std::size_t size_bytes);

}  // namespace accord::model

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What net/mail keeps of its messages, and what two processes tell each other of them. For its own
// files.
#pragma once

#include <chrono>
#include <optional>
#include <span>

#include "net/mail.h"

namespace accord::net {

// What one process tells another.
enum class Mail::What : std::uint32_t {
  invitation,  // would you look for messages of mine?
  acceptance,  // from now on I do
  greeting,    // do you hear me?
  answer,      // I do
  ask,         // the receiver begins to fetch, by a design that it names
  refusal,     // the sender cannot send it
  otherwise,   // nor by that design: it is to be asked for by the fallback
  dismissal,   // the receiver does not want it, or any more of it
  to_sender,   // from the one end's transfer to the other's
  to_receiver,
};

struct Mail::Note {
  What what;
  std::uint32_t from;
  std::uint32_t number;
};

// A message of this rank.
struct Mail::Outgoing {
  std::uint32_t receiver = 0;
  const Design* design = nullptr;
  std::chrono::steady_clock::time_point posted_at = std::chrono::steady_clock::now();
  Memory from;
  device::StagingBuffer kept;  // not empty: it lies there
  bool is_in_users = false;    // somebody asks for its end
  enum class State { waiting, being_kept, broken, sending, ended } state = State::waiting;
  Status status;
  std::unique_ptr<Transfer> transfer;
  // What has come while it was being kept.
  std::optional<std::vector<std::byte>> asked;
  bool is_dismissed = false;
};

struct Mail::Fetch {
  std::uint32_t sender = 0;
  std::uint32_t number = 0;
  Memory to;
  std::unique_ptr<Transfer> transfer;
  Status status;
  bool is_done = false;
};

template <class T>
Bytes bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace accord::net

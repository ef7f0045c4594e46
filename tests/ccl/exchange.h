// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the calls of a stand-in for a collective library do: every rank sends the others what they
// need, and reduces or copies what came.
#pragma once

#include <memory>
#include <span>

#include "communicator.h"
#include "elements.h"

namespace accord::fake {

enum class Kind {
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  all_to_all,
  gather,
  scatter,
  barrier,
  send,
  receive,
};

struct Call {
  Kind kind;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;  // as the libraries count: of one block, where a rank has several
  Element element = Element::uint8;
  Reduction reduction = Reduction::sum;
  int peer = 0;            // or root
  void* stream = nullptr;  // stream.h; null: at once
};

struct Posted {
  std::shared_ptr<Communicator> communicator;
  Call call;
};

// Whether the rank may make this call.
Outcome check(const Communicator& communicator, const Call& call);
// All of them at once; done when it returns.
Outcome exchange(std::span<const Posted> calls);

}  // namespace accord::fake

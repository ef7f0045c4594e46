// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How a message gets from memory of one node to memory of another: a design is one file and one
// line of designs.def. The sender chooses; the receiver, which has matched the message, begins, and
// the sender's part begins when it is asked for it. Then both go on as state machines, moved on by
// whichever thread is at it, with the worker locked: none waits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "net/worker.h"

namespace accord::net {

class Freight;

// One end of a message: one run of bytes.
struct Memory {
  void* start = nullptr;  // as its runtime knows it, see Worker::address_of
  std::size_t size_bytes = 0;
  device::PointerInfo where;

  void* address() const noexcept { return Worker::address_of(start, where); }
};

// What a design has at hand at one end, for as long as the transfer lives.
struct Line {
  Worker& worker;
  Freight& freight;  // of that worker
  // Of what this end carries out of host memory: maybe another worker's.
  std::function<Freight&()> host_freight;
  Peer& peer;             // the process at the other end
  std::uint32_t self;     // rank of this process
  std::uint32_t other;    // and of that one
  std::uint64_t tag = 0;  // of this message alone, the same at both ends
  // To the other end's transfer, where there still is one: at most kTellBytesMax, in order.
  std::function<Status(Bytes)> tell;
  static constexpr std::size_t kTellBytesMax = 3072;
};

// One end's part. It goes before it is done only when its worker is about to close.
class Transfer {
 public:
  virtual ~Transfer() = default;
  // Goes on. After an error it is done. `unsupported` from the sender's end: nothing has moved yet,
  // and nothing will that way here.
  virtual Status advance(bool& done) = 0;
  // What the other end has told.
  virtual void hear(Bytes) {}
  // The other end has given up: it is to end soon, with an error.
  virtual void stop() noexcept {}
  // Whether advance has to be called though nothing comes by the network: it waits for copies.
  virtual bool must_be_polled() const noexcept { return false; }
};

class Design {
 public:
  virtual ~Design() = default;
  virtual const char* name() const noexcept = 0;
  virtual const char* path() const noexcept = 0;  // as traces call it
  // Whether a message may lie in such memory, or come there; else it lies in page-locked memory.
  virtual bool takes(const Worker& worker, const device::PointerInfo& where) const = 0;
  // Whether the proxy moves all of it, which takes a core that others may want.
  virtual bool spends_core() const noexcept { return false; }
  // Whether a message that lies there may go by it now, as far as this process can tell. Asks for
  // what it lacks (a proxy), which a later message may find.
  virtual bool is_ready(const device::PointerInfo&) const { return true; }
  // The receiver's end; an error: it goes by fallback_design. `ask`: what goes with its request;
  // kTellBytesMax at most.
  virtual Status receive(const Line& line, const Memory& to, std::vector<std::byte>& ask,
                         std::unique_ptr<Transfer>& made) const = 0;
  // As Transfer::advance does.
  virtual Status send(const Line& line, const Memory& from, Bytes ask,
                      std::unique_ptr<Transfer>& made) const = 0;
};

// Null where there is none of that name or number. Numbers are those of the lines of designs.def.
const Design* find_design(std::string_view name);
const Design* design_at(unsigned number);
unsigned number_of(const Design& design);
// Goes wherever the network does, from and to any memory.
const Design& fallback_design();
// What is tried where a design cannot be had, or has failed; null: `design` is the fallback.
const Design* next_best(const Design& design);

}  // namespace accord::net

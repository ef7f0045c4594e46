// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How long runs of bytes get to ranks of other nodes without a message of the host MPI, from memory
// to memory, which may be a device's at either end: their sender offers them, and tells the
// receiver the offer's name by a message of the wire (core/wire.h); the receiver fetches them where
// it wants them. Nothing is kept: a sender has its memory back once it has been fetched. Which
// memory either end uses, and whether it really goes by the design that is asked for, is that
// rank's own business. Knows no MPI.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "net/design.h"

namespace accord::net {

class Transport {
 public:
  // Of an offer, as its sender and receiver alone know it while it lasts. Never 0.
  using Name = std::uint64_t;

  // One end of what is on its way. To be polled until it has ended: its memory may go then.
  class End {
   public:
    virtual ~End() = default;
    // With an error beside `ended`, which names the other rank where that is to blame.
    virtual Status poll(bool& ended) = 0;
    // It need not go on: ends soon.
    virtual void stop() noexcept = 0;
  };

  virtual ~Transport() = default;
  // Whether it may lie in such memory, or come there; else it lies in page-locked memory.
  virtual bool takes(const device::PointerInfo& where) const = 0;
  // Ranks are those of the communicator or window. Whether that one has been met, so that what it
  // is offered gets there, or ends with an error where it is gone since; greets it, if not: later
  // calls may go so then.
  virtual bool reaches(int rank) = 0;
  virtual std::unique_ptr<End> offer(int rank, const Memory& from, Name& name) = 0;
  virtual std::unique_ptr<End> fetch(int rank, Name name, const Memory& to) = 0;
  // It is not wanted: its sender is told.
  virtual void dismiss(int rank, Name name) noexcept = 0;
};

}  // namespace accord::net

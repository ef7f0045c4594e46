// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A process's end of a network, over UCX: it reaches other workers by their addresses, sends them
// short messages, moves memory to and from them, and notices when they are gone. Several of them a
// process serve several channels (the link that reads device memory, the one that reads host
// memory: host_channel.h). Knows no MPI, no rank and no vendor. Thread-safe: one lock a worker,
// which lock() takes for several steps at once. No function waits for a peer, but for close, and
// that not for long.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/device_runtime.h"
#include "net/job_key.h"

namespace accord::net {

using Bytes = std::span<const std::byte>;

// Another worker, as this one reaches it. Owned by the worker.
class Peer;

// What moves. To be polled until it is done, by the worker that has begun it.
struct Ticket {
  void* request = nullptr;  // null: done, with that status
  Status status;
  Peer* peer = nullptr;  // whose end is its end; null: nobody's
  std::size_t moving_bytes = 0;
};

// Memory that peers may put to and get from, until this goes: before the memory, and its worker.
class Region {
 public:
  virtual ~Region() = default;
  // What a peer needs besides its address.
  Bytes key() const noexcept { return key_; }

 protected:
  std::vector<std::byte> key_;
};

// A region of a peer, as this worker reaches it. To go before the worker.
class RemoteRegion {
 public:
  virtual ~RemoteRegion() = default;
};

class Worker {
 public:
  struct Options {
    // As UCX_NET_DEVICES and UCX_TLS mean them, for this worker alone; empty: what these say.
    std::string net_devices;
    std::string transports;
    JobKey key = {};
    // How long a peer that is waited for may give no sign of life.
    std::chrono::milliseconds patience = std::chrono::minutes(2);
  };
  static Status open(const Options& options, std::unique_ptr<Worker>& made);
  // The file of the library that workers of this process go by; empty: there is none.
  static std::string library();

  virtual ~Worker() = default;  // as close does
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  std::unique_lock<std::recursive_mutex> lock() { return std::unique_lock(mutex_); }
  std::unique_lock<std::recursive_mutex> try_lock() { return {mutex_, std::try_to_lock}; }

  // What others connect to; some hundred bytes.
  virtual Bytes address() const noexcept = 0;

  // Connects when something is first sent. The same peer for the same address.
  virtual Status connect(Bytes address, Peer*& peer) = 0;
  // The error once it is known to be gone.
  virtual Status check(const Peer& peer) = 0;
  // The same, for who waits for something of this peer, and calls it again and again meanwhile: it
  // is asked for a sign of life, which its process gives whatever its program does. Without one
  // for as long as this worker's patience (and a second for each MiB that is on its way between
  // the two) it is taken to be gone, for good.
  virtual Status await(Peer& peer) { return check(peer); }
  // So many more bytes, or fewer, are on their way to this worker by what the peer puts itself.
  virtual void note_coming(Peer& peer, std::ptrdiff_t change_bytes) noexcept {
    (void)peer, (void)change_bytes;
  }

  // Short messages of up to kMessageBytesMax, in the order in which they were sent to one peer.
  // `kind` is one of kKinds. A message is copied, and its handler called by whoever calls progress,
  // with the worker locked: it may send, and must not wait. Messages do not tell who sent them.
  static constexpr std::size_t kMessageBytesMax = 4096;
  static constexpr unsigned kKinds = 15;
  using Handler = std::function<void(Bytes message)>;
  virtual Status post(Peer& peer, unsigned kind, Bytes message) = 0;
  virtual void listen(unsigned kind, Handler handler) = 0;
  // Messages that have been dropped: not of this job, not for this worker, not the first of their
  // number (seal.h), or too long.
  virtual std::uint64_t strange_messages() const noexcept { return 0; }

  // Whether UCX reads and writes this memory itself, and where it finds it. Else it has to be
  // brought to host memory. Plain host memory it always does.
  virtual bool reaches(const device::PointerInfo& where) const noexcept = 0;
  static void* address_of(void* memory, const device::PointerInfo& where) noexcept;

  // `where`: what kind of memory this process's end is, which UCX then need not find out, and old
  // ones cannot of some device memory (mapped by cuMemMap); nothing of plain host memory.
  using Where = device::PointerInfo;

  // A long message between two workers, matched by its tag: eager or by whichever pipeline UCX
  // chooses for these two memories. A receive that will get none is to be cancelled.
  virtual Ticket send(Peer& peer, std::uint64_t tag, const void* memory, std::size_t size_bytes,
                      const Where& where = {}) = 0;
  virtual Ticket receive(Peer& peer, std::uint64_t tag, void* memory, std::size_t size_bytes,
                         const Where& where = {}) = 0;

  // One-sided. A put is done when the bytes are in the peer's memory.
  virtual Status share(void* memory, std::size_t size_bytes, std::unique_ptr<Region>& made,
                       const Where& where = {}) = 0;
  virtual Status reach(Peer& peer, Bytes key, std::unique_ptr<RemoteRegion>& made) = 0;
  virtual Ticket put(Peer& peer, const void* from, std::size_t size_bytes, std::uint64_t to,
                     RemoteRegion& region, const Where& where = {}) = 0;
  virtual Ticket get(Peer& peer, void* to, std::size_t size_bytes, std::uint64_t from,
                     RemoteRegion& region, const Where& where = {}) = 0;

  // Whether it has ended, and how; the ticket is spent then. An error where the peer is gone.
  virtual Status poll(Ticket& ticket, bool& done) = 0;
  // It ends soon after, with an error unless it has ended before. To be polled all the same.
  virtual void cancel(Ticket& ticket) noexcept = 0;

  // Goes on with all that is under way, and calls handlers. Whether anything happened.
  virtual bool progress() = 0;

  // For a thread that sleeps until something happens: the descriptor becomes readable then, once
  // `arm` has said true with nothing done in between. `wake` makes it readable. UCX may leave it
  // readable for a while though nothing has come.
  virtual int descriptor() const noexcept = 0;
  virtual bool arm() = 0;
  virtual void wake() noexcept = 0;

  // Ends all connections; nothing may be under way.
  virtual void close() noexcept = 0;

 protected:
  Worker() = default;
  std::recursive_mutex mutex_;
};

}  // namespace accord::net

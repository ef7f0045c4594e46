// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Everything Accord asks of one accelerator vendor. A runtime is one file that implements this
// class and one line in runtimes.def. Knows no MPI. Called by all rooms above that touch device
// memory (core, coll, p2p, partitioned, node, net, proxy, shim), and by the public C API
// (c_api.cpp). All functions are thread-safe, restore the calling thread's current device, and
// never wait for a peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/kernel_place.h"
#include "device/packet_reach.h"
#include "device/reduction.h"

namespace accord::device {

enum class MemoryKind { host, pinned, managed, device };

class AdapterModel;
class DeviceRuntime;
class InboxServer;
class PartitionReducer;
struct PartitionReduction;
struct CopyBatch;

// What a pointer is. `runtime` is null for plain host memory.
struct PointerInfo {
  MemoryKind kind = MemoryKind::host;
  DeviceRuntime* runtime = nullptr;
  int device = -1;
  void* base = nullptr;        // start of the allocation
  std::size_t size_bytes = 0;  // of the allocation
  std::uint64_t buffer_id =
      0;  // differs for two allocations that had the same address one after the other
  // The vendor's, where the memory belongs to one: kernels of others may not reach it.
  const void* context = nullptr;
  // Made by the virtual memory API: one of several, perhaps, that make up one buffer.
  bool is_mapping = false;

  bool operator==(const PointerInfo&) const = default;
};

// True where the CPU must not touch the bytes itself: such a buffer is staged. Managed memory
// counts, since touching it from the CPU migrates its pages (and faults where concurrent access is
// not supported).
inline bool needs_staging(const PointerInfo& info) {
  return info.kind == MemoryKind::device || info.kind == MemoryKind::managed;
}

// A rectangle of bytes: `rows` rows of `row_bytes`, row starts `*_pitch_bytes` apart (ignored when
// rows is 1). One side is memory of the runtime, the other host memory, or both are the runtime's.
// No overlap.
struct Copy {
  void* dst;
  const void* src;
  std::size_t row_bytes;
  std::size_t rows = 1;
  std::size_t dst_pitch_bytes = 0;
  std::size_t src_pitch_bytes = 0;
};

// A batch of copies, or a reduction, in flight; moved into copy_done until it says true. Plain
// value, owns nothing by itself: every ticket from copy_begin or reduce_begin must be driven to
// completion.
struct CopyTicket {
  void* handle = nullptr;  // null: already complete
};

// A handle another process of this node can open; the bytes travel over any channel, the descriptor
// (if any) over a Unix domain socket.
struct ExportedMemory {
  std::vector<std::byte> bytes;
  int file_descriptor = -1;      // owned by the holder; -1: none
  std::size_t offset_bytes = 0;  // of the exported pointer in its allocation
};

struct DeviceDescription {
  std::string name;
  std::string uuid;
  std::size_t memory_bytes = 0;
  // Whether NVIDIA's Multi-Process Service runs this process' kernels beside those of others; none
  // where the device knows no such service.
  std::optional<bool> mps;
};

// How two devices of a runtime reach each other, one way.
struct DeviceLink {
  int from = -1;
  int to = -1;
  bool peer_access = false;  // kernels and copies of `from` can address the memory of `to`
  int performance_rank = 0;  // as the vendor ranks the link, 0 is the best; -1: unknown
};

// What a library puts on its stream for one call, kept to be put there again at less cost. It does
// the same to the same memory each time.
class Recording {
 public:
  virtual ~Recording() = default;
  // On a stream as LibraryStream::enqueue gives it.
  virtual Status put(void* stream) = 0;
};

// A stream for a library that brings kernels of its own. Made once and kept, since what a device
// takes to be made ready for each call is as long as a tenth of a small one. For one piece of work,
// and one thread, at a time.
class LibraryStream {
 public:
  virtual ~LibraryStream() = default;

  // Calls `work` with the device current to this thread, and with a stream of the vendor's (null:
  // there is none, and what the library does is done when it returns). Where `work` fails, what it
  // has left on the stream may wait for others: nobody waits for it here, poll() tells its end.
  virtual Status enqueue(const std::function<Status(void* stream)>& work) = 0;
  // Sets `done` once that has ended, with its error if it had one.
  virtual Status poll(bool& done) = 0;
  // With nothing under way: calls `work` as enqueue does, but has nothing done. The recording must
  // go before what `work` refers to.
  virtual Status record(const std::function<Status(void* stream)>& work,
                        std::unique_ptr<Recording>& made) = 0;
};

class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;

  virtual const char* name() const noexcept = 0;

  // Whether any pointer of this runtime can exist in this process yet; a load of an atomic. While
  // false, classify is not called. One that turns true later calls note_active (registry.h).
  virtual bool active() noexcept = 0;

  // Whether this process seems to have a device of this runtime, found without initialising the
  // driver.
  virtual bool present() noexcept = 0;

  // The same for some process of this machine: also where the environment hides the device from
  // this one.
  virtual bool on_machine() noexcept { return present(); }

  // Fills `info` and returns true when `pointer` belongs to this runtime (pinned memory included).
  virtual bool classify(const void* pointer, PointerInfo& info) noexcept = 0;

  // The hot-path form: true when classify would give a kind that needs_staging. A runtime that can
  // answer with less work than classify does so here.
  virtual bool must_stage(const void* pointer) noexcept {
    PointerInfo info;
    return classify(pointer, info) && needs_staging(info);
  }

  // What the program's synchronous calls of this vendor (cudaMemcpy, cudaMemset and their twins)
  // have put into memory is there when this returns, though such calls may return before that. By
  // a thread of the program alone, inside an MPI call, for a buffer whose PointerInfo::context this
  // is (null: of none, or any). Waits for kernels at most where the vendor offers nothing else.
  virtual void order_behind_program(const void* /*context*/) noexcept {}

  // From now on such calls return when what they do to this allocation is done, for as long as it
  // lives: it needs no order_behind_program any more. False where the vendor cannot have that.
  virtual bool keep_in_order(const PointerInfo& /*memory*/) noexcept { return false; }

  // Runs all copies as one batch on `device` and waits once, for the copies only.
  virtual Status copy(int device, std::span<const Copy> copies) = 0;

  // The same, without waiting. `done` is set when the bytes have arrived; the ticket is then spent.
  virtual Status copy_begin(int device, std::span<const Copy> copies, CopyTicket& ticket) = 0;
  // Of copies that more will follow at once: they may wait for a turn (expect_turns), since what
  // comes in the meantime then goes together.
  virtual Status copy_begin_patiently(int device, std::span<const Copy> copies,
                                      CopyTicket& ticket) {
    return copy_begin(device, copies, ticket);
  }
  // Beside kernels of the program that wait for what is copied: none of ours is loaded or started,
  // which would wait for them.
  virtual Status copy_begin_beside_kernels(int device, std::span<const Copy> copies,
                                           CopyTicket& ticket) {
    return copy_begin(device, copies, ticket);
  }
  virtual Status copy_done(CopyTicket& ticket, bool& done) = 0;

  // Copies of which some follow a layout (layout_copy.h), in the same two forms. A runtime without
  // kernels for that need not override them: what such a copy comes to goes the way of the others.
  virtual Status copy_batch(int device, const CopyBatch& batch);
  virtual Status batch_begin(int device, const CopyBatch& batch, CopyTicket& ticket);

  // Whether reduce_begin can do this here. Asked once memory of the runtime exists in this process:
  // before that a runtime may not know yet, and says no.
  virtual bool can_reduce(ReduceOp /*op*/, Element /*element*/) { return false; }

  // Reduces on `device` without waiting; the ticket is polled with copy_done. The sources and dst
  // are this runtime's memory, plain host memory is not: allocated by this process on any device
  // that `device` can address, or opened from another process. Nothing may write to them meanwhile.
  // unsupported where can_reduce says no or `device` cannot address one of them.
  virtual Status reduce_begin(int /*device*/, const Reduction& /*reduction*/,
                              CopyTicket& /*ticket*/) {
    return Status(StatusCode::unsupported, "reduce: not on this runtime");
  }

  // Who runs inbox exchanges (inbox_server.h) on `device`; unsupported where nobody can. Owned by
  // the runtime, valid for good.
  virtual Status inbox_server(int /*device*/, InboxServer*& /*server*/) {
    return Status(StatusCode::unsupported, "inbox exchanges: not on this runtime");
  }

  // What that server says of packets, told without making it.
  virtual PacketReach packet_reach(int /*device*/) { return {}; }

  // Who does this rank's part of such a reduction on `device`; unsupported where nobody can. All
  // memory that it names stays where it is as long as the reducer lives; `arrived` are
  // partition_host_words.
  virtual Status make_partition_reducer(int device, const PartitionReduction& reduction,
                                        std::uint32_t* arrived,
                                        std::unique_ptr<PartitionReducer>& reducer);

  // For libraries that bring kernels of their own: calls `work` with `device` current to this
  // thread, and makes a stream of that device.
  virtual Status run_on(int /*device*/, const std::function<Status()>& /*work*/) {
    return Status(StatusCode::unsupported, "collective libraries: not on this runtime");
  }
  virtual Status make_stream(int /*device*/, std::unique_ptr<LibraryStream>& /*stream*/) {
    return Status(StatusCode::unsupported, "collective libraries: not on this runtime");
  }
  // Where such a library finds what is at `pointer`, which is memory of this runtime.
  virtual void* address_for_library(void* pointer) noexcept { return pointer; }
  virtual KernelPlace kernel_place(int /*device*/) { return {}; }
  // Kernels of this process take long turns on `device` with those of another one, from now on:
  // copies avoid what waits for a turn, where they can.
  virtual void expect_turns(int /*device*/) noexcept {}
  virtual bool expects_turns(int /*device*/) const noexcept { return false; }

  // Host memory this runtime copies to and from fastest (page-locked). Owned by the caller, freed
  // by host_free.
  virtual Status host_allocate(std::size_t size_bytes, void*& pointer) = 0;
  virtual void host_free(void* pointer, std::size_t size_bytes) noexcept = 0;

  // Lets kernels reach whole pages of host memory that the caller has mapped, such as what it
  // shares with another process; until host_unpin of the same address.
  virtual Status host_pin(void* /*pages*/, std::size_t /*size_bytes*/) {
    return Status(StatusCode::unsupported, "host memory for kernels: not on this runtime");
  }
  virtual void host_unpin(void* /*pages*/) noexcept {}

  // For accord_malloc: memory of the given kind on `device`.
  virtual Status allocate(int device, MemoryKind kind, std::size_t size_bytes, void*& pointer) = 0;
  virtual Status free(void* pointer) = 0;

  // Lets another process of this node reach the allocation that `pointer` is in; unsupported where
  // the memory cannot be exported. open maps it here: `pointer` becomes the start of the
  // allocation, so that one opened allocation serves every pointer into it (the exported one is
  // offset_bytes further); it is usable as this runtime's memory until close_memory of the same
  // address. The descriptor stays the caller's.
  virtual Status export_memory(const void* pointer, ExportedMemory& exported) = 0;
  virtual Status open_memory(int device, const ExportedMemory& exported, void*& pointer) = 0;
  virtual Status close_memory(void* pointer) = 0;

  // Numbers the lives of the context that memory of ours is made in: once the program has reset the
  // device, which ends all that was there, it is one that was never used before. 0: none yet, or
  // the vendor knows no such thing. For each call and message: CUDA takes 0.02 us.
  virtual std::uint64_t context_life(int /*device*/) noexcept { return 0; }

  virtual int device_count() = 0;

  // Whether the default stream of the context that `memory` is used in, as far as this thread is
  // concerned, has unfinished work. For people: where it cannot be asked, as while a stream of this
  // process captures, it has none.
  virtual Status default_stream_busy(const PointerInfo& /*memory*/, bool& busy) {
    busy = false;
    return Status();
  }

  // Why it shows no device, or fewer than there are; ok where nothing is amiss, or there are none.
  virtual Status problem() { return Status(); }

  // The device that this thread has current, else one that this process uses; -1 where it uses none
  // yet. Initialises nothing.
  virtual int device_in_use() noexcept = 0;

  virtual Status describe(int device, DeviceDescription& description) = 0;

  // Where adapters are pretended, too: what it takes them to reach device memory (adapter_model.h).
  virtual AdapterModel* adapter_model() noexcept { return nullptr; }
  virtual std::vector<DeviceLink> links() { return {}; }  // none where the question makes no sense
};

// Whether that memory of a runtime is there still: once it is freed, or its device reset, its
// address may be another allocation's. Asks the driver.
inline bool exists(const PointerInfo& memory) noexcept {
  PointerInfo now;
  return memory.runtime != nullptr && memory.runtime->classify(memory.base, now) &&
         now.buffer_id == memory.buffer_id;
}

}  // namespace accord::device

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A window of which some rank's memory is on a device. The host MPI has a window beside it, for
// handle, attributes and the memory of ranks whose part is host memory. What has to do with the
// others is done here, each rank's memory by one route for all that happens to it:
// - host: the rank's part is host memory: the host MPI's own operations and locks.
// - direct: the memory is open in this process, on the target's node, and the target need not call
//   MPI. Puts and gets go in batches, updates are done when their call returns.
// - messages: the target does what it is asked for (service.h). What is long then goes by a
//   transport (transports.h), where both ends are one run.
// Locks of the window and of updates lie with the target, in words that its node shares, so that
// routes may differ from origin to origin. Knows no mpi.h: epochs of active targets are the shim's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "core/engine.h"
#include "core/wire.h"
#include "node/descriptor_port.h"
#include "node/registration.h"
#include "node/shared_pages.h"
#include "rma/batch.h"
#include "rma/service.h"
#include "rma/target.h"
#include "rma/transports.h"

namespace accord::rma {

// This rank's part.
struct Part {
  std::byte* base = nullptr;
  std::uint64_t size_bytes = 0;
  std::int64_t unit_bytes = 1;
  device::PointerInfo where;
  bool is_dynamic = false;  // memory comes and goes; offsets are addresses
};

enum class Route { host, direct, messages };

class Window {
 public:
  // Every rank tells all others: `all` has room for `size_bytes` of each. Waits, while the engine
  // makes progress, and calls receive again and again.
  using Allgather = std::function<Status(const void* mine, void* all, std::size_t size_bytes)>;

  Window(core::Engine& engine, int rank, int size, Combine combine)
      : engine_(engine), rank_(rank), size_(size), combine_(combine) {}
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  // All ranks come here together, and all succeed or none. `wire` is for messages, if some rank
  // needs them; so are the transports, if there are any.
  Status open(const Part& part, std::unique_ptr<core::Wire> wire, const Allgather& allgather,
              std::unique_ptr<Transports> transports = nullptr);
  // Makes room for what peers send; to be called while waiting for them.
  void receive() { port_.receive(); }
  // What every rank tells all others of its part. How its memory is reached it tells those of its
  // node alone, by the page of its words.
  struct Told {
    std::uint64_t node = 0;
    std::uint64_t network = 0;
    node::PortAddress port;
    std::uint64_t size_bytes = 0;
    std::int64_t unit_bytes = 1;
    std::uint8_t is_host = 0;
    std::uint8_t is_on_device = 0;  // all of it
    std::uint8_t is_dynamic = 0;
    std::uint8_t ok = 1;
  };
  // After all ranks have completed what they have begun: lets go of peers' memory. Their owners may
  // free it once all ranks have been here. `wire` is idle from then on.
  void close();

  Route route(int target) const noexcept { return rank_at(target).route; }
  // What an operation on these bytes goes by.
  Route route_to(int target, std::span<const Piece> pieces) {
    return reached(target, pieces) != nullptr ? Route::direct : route(target);
  }
  // Whether such a put or get goes by a transport now.
  bool is_transported(int target, const Extent& there, const End& here) {
    net::Memory run;
    return find_transport(target, there.pieces, here, run) != Transports::kNone;
  }
  std::int64_t unit_bytes(int target) const noexcept { return rank_at(target).unit_bytes; }
  bool has_host_memory() const noexcept { return has_host_memory_; }
  bool is_dynamic() const noexcept { return is_dynamic_; }
  // A dynamic window of one node: what is attached of the host's memory is the host MPI's, and
  // where a target's memory is of a device is asked for each operation.
  bool is_mixed() const noexcept { return is_mixed_; }
  bool has_devices_at(int target) const noexcept { return !ranges(target).empty(); }
  bool is_on_device(int target, std::span<const Piece> pieces) const noexcept {
    return ranges(target).touch(pieces);
  }
  // Memory of this rank. `is_host`: for its host MPI.
  Status attach(const void* base, std::uint64_t size_bytes, bool is_host);
  Status detach(const void* base, bool& is_host);

  // Of targets that are not of the route host. What is not done at once, `progress` counts, if
  // there is one.
  using ProgressPointer = std::shared_ptr<Progress>;
  Status put(int target, const Extent& there, const End& origin, const ProgressPointer& progress);
  Status get(int target, const Extent& there, const End& result, const ProgressPointer& progress);
  // An origin without pieces: nothing is read there. No result: null.
  Status update(int target, const Update& update, const Pieces& pieces, const End& origin,
                const End* result, const ProgressPointer& progress);
  Status compare_and_swap(int target, const Piece& element, const End& origin, const End& compare,
                          const End& result);

  // Waits until all that this rank has asked of the target is done there.
  Status flush(int target);
  Status flush_all();
  // Once all ranks have completed what they have begun, and before all come together ahead of
  // close: ranks of other nodes are not asked for signs of life any more.
  void wind_up();

  // For whoever waits, again and again: an error once the process of one of these ranks is gone; of
  // none named: of any. System calls.
  Status check_lives(std::span<const int> ranks);

  // Epochs of passive targets, of both routes. `is_checked`: other ranks may hold a lock.
  Status lock(int target, LockKind kind, bool is_checked);
  Status unlock(int target);
  // All of them shared: each is taken when the first operation needs it. Not so the own one, since
  // the program's loads are no operations, nor where the host MPI has a lock of the same rank,
  // which others would get first.
  Status lock_all(bool is_checked);
  Status unlock_all();

 private:
  struct Page;

  enum class Held : std::uint8_t { none, shared, exclusive, unchecked };
  // Of what a peer has attached.
  struct Opened {
    std::uint64_t generation = 0;
    node::PeerMemory memory;
    Target target;
  };
  struct Rank {
    Route route = Route::host;
    std::uint64_t size_bytes = 0;
    std::int64_t unit_bytes = 1;
    bool is_on_device = false;
    Target target;  // direct
    node::PeerMemory memory;
    std::unique_ptr<node::SharedPages> words;
    Held held = Held::none;
    bool is_of_all = false;  // held since lock_all
  };

  const Rank& rank_at(int rank) const noexcept { return ranks_[static_cast<std::size_t>(rank)]; }
  Rank& rank_at(int rank) noexcept { return ranks_[static_cast<std::size_t>(rank)]; }
  const DeviceRanges& ranges(int target) const noexcept {
    return rank_at(target).target.words().device_ranges;
  }
  Status hold_shared(int target);
  // The memory where these bytes are, if this process reaches it; else null.
  const Target* reached(int target, std::span<const Piece> pieces);
  void open_attached(int target, const DeviceRanges::Entry& entry, Opened& opened);
  node::MemoryHandle export_attached(const DeviceRanges::Entry& entry);
  Status begin(int target, std::span<const Piece> pieces);
  Status check_bounds(int target, std::span<const Piece> pieces) const;
  std::int32_t find_transport(int target, std::span<const Piece> there, const End& here,
                              net::Memory& run);
  Status ask_by_transport(message::Kind kind, int target, const Pieces& there,
                          std::int32_t transport, const net::Memory& run,
                          const ProgressPointer& progress);
  Status ask(int target, const Service::Question& question, Result result,
             const ProgressPointer& progress);
  Status update_by_message(int target, const Update& update, std::span<const Piece> pieces,
                           std::span<const std::byte> in, Result result, bool fetches,
                           const ProgressPointer& progress);
  Status take_lock(int target, LockKind kind);
  Status give_lock(int target, LockKind kind);

  Status prepare(const Part& part, Told& mine);
  Status send_descriptors(const std::vector<Told>& all);
  void send_to_peers(const node::ParcelLabel& label, std::span<const int> descriptors);
  void open_peer(int peer, const Told& told);
  void find_workers(const std::vector<Told>& all);
  Status find_mixed(const Allgather& allgather);
  Status open_memory(const node::MemoryHandle& handle, const node::Descriptor& descriptor,
                     node::PeerMemory& memory, device::PointerInfo& where);
  void watch_far_ranks();
  static Page& page_of(const node::SharedPages& pages) noexcept;
  static bool is_near(const Told& one, const Told& other) noexcept;

  core::Engine& engine_;
  const int rank_;
  const int size_;
  const Combine combine_;
  bool is_dynamic_ = false;
  bool is_mixed_ = false;
  bool has_host_memory_ = false;
  std::vector<Rank> ranks_;
  Batch batch_;  // of this rank's operations with direct targets
  Attached attached_;
  LifeLines lines_;
  node::DescriptorPort port_;
  std::vector<node::PortAddress> ports_;  // of the other ranks of the node, the next one first
  std::mutex attaching_mutex_;            // one attaches or detaches at a time
  bool may_use_kernels_ = false;
  std::mutex attached_mutex_;                             // guards what follows
  std::map<std::pair<int, std::size_t>, Opened> opened_;  // by target and slot
  node::Registration registration_;
  std::unique_ptr<Transports> transports_;
  std::shared_ptr<Service> service_;
  std::mutex locks_mutex_;
  bool all_locked_ = false;
  bool all_checked_ = true;
};

}  // namespace accord::rma

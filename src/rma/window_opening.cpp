// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// How the ranks of a window find out by which route each reaches the others.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "device/registry.h"
#include "node/node_number.h"
#include "rma/window.h"

namespace accord::rma {

// Shared by the ranks of a node, which learn from it how they reach its owner's memory. Plain
// bytes.
struct Window::Page {
  Words words;
  device::KernelPlace kernels;  // of the device that reaches the others' memory
  node::MemoryHandle memory;    // length 0: cannot be opened
  std::uint64_t offset_bytes = 0;
};

namespace {

constexpr std::chrono::seconds kPatience{10};

bool is_of_one_allocation(const Part& part) {
  const auto* const begin = static_cast<const std::byte*>(part.where.base);
  return part.size_bytes != 0 && part.where.kind == device::MemoryKind::device &&
         part.base >= begin && part.base + part.size_bytes <= begin + part.where.size_bytes;
}

// This rank's own runtime, or another one of this process.
device::DeviceRuntime* runtime_of(const node::MemoryHandle& handle,
                                  const device::PointerInfo& own) {
  if (own.runtime != nullptr && node::MemoryHandle::vendor_of(*own.runtime) == handle.vendor)
    return own.runtime;
  for (device::DeviceRuntime* const runtime : device::runtimes())
    if (node::MemoryHandle::vendor_of(*runtime) == handle.vendor) return runtime;
  return nullptr;
}

Status failed_elsewhere() {
  return {StatusCode::unsupported, "another rank could not make its part of the window"};
}

}  // namespace

bool Window::is_near(const Told& one, const Told& other) noexcept {
  return one.node == other.node && one.network == other.network;
}

Window::Page& Window::page_of(const node::SharedPages& pages) noexcept {
  return *reinterpret_cast<Page*>(pages.data());
}

Status Window::prepare(const Part& part, Told& mine) {
  mine.node = node::node_number();
  mine.network = node::DescriptorPort::network();
  mine.size_bytes = part.size_bytes;
  mine.unit_bytes = part.unit_bytes;
  mine.is_dynamic = part.is_dynamic ? 1 : 0;
  const bool is_on_device = device::needs_staging(part.where);
  mine.is_on_device = is_of_one_allocation(part) ? 1 : 0;
  mine.is_host = !part.is_dynamic && part.size_bytes != 0 && !is_on_device;
  Rank& own = rank_at(rank_);
  own.words = std::make_unique<node::SharedPages>();
  ACCORD_TRY(own.words->make(sizeof(Page)));
  Page& page = page_of(*own.words);
  device::DeviceRuntime& runtime = is_on_device ? *part.where.runtime : device::default_runtime();
  const int device = is_on_device ? part.where.device : runtime.device_in_use();
  if (device >= 0) page.kernels = runtime.kernel_place(device);
  ACCORD_TRY(port_.open());
  mine.port = port_.address();
  if (!is_of_one_allocation(part)) return {};
  const Status made = registration_.make(*part.where.runtime, part.where, mine.port.process);
  if (!made.ok()) {  // its peers ask by messages
    log::debug("a window's memory cannot be exported: {}", made.message());
    return {};
  }
  page.memory = registration_.handle();
  page.offset_bytes =
      static_cast<std::uint64_t>(part.base - static_cast<std::byte*>(part.where.base));
  return {};
}

// In rounds: a peer that is slow holds nobody up. One that has no room in time will ask by
// messages.
void Window::send_to_peers(const node::ParcelLabel& label, std::span<const int> descriptors) {
  std::vector<node::PortAddress> left = ports_;
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  engine_.wait_until([&] {
    std::erase_if(left, [&](const node::PortAddress& port) {
      bool sent = false;
      return !port_.send(port, label, descriptors, sent).ok() || sent;
    });
    return left.empty() || std::chrono::steady_clock::now() > give_up;
  });
}

Status Window::send_descriptors(const std::vector<Told>& all) {
  const Told& mine = all[static_cast<std::size_t>(rank_)];
  std::vector<int> descriptors{rank_at(rank_).words->descriptor().number()};
  ACCORD_TRY(node::own_life_line(descriptors.emplace_back()));
  if (registration_.descriptor().is_open())
    descriptors.push_back(registration_.descriptor().number());
  for (int step = 1; step < size_; ++step) {
    const Told& told = all[static_cast<std::size_t>((rank_ + step) % size_)];
    if (is_near(mine, told)) ports_.push_back(told.port);
  }
  send_to_peers({rank_, 0, 0}, descriptors);
  registration_.descriptor().close();
  rank_at(rank_).words->close_descriptor();  // programs may have more windows than descriptors
  return {};
}

Status Window::open_memory(const node::MemoryHandle& handle, const node::Descriptor& descriptor,
                           node::PeerMemory& memory, device::PointerInfo& where) {
  if (handle.length_bytes == 0)
    return {StatusCode::unsupported, "a peer's window memory cannot be exported"};
  const device::PointerInfo& own = rank_at(rank_).target.memory().where;
  device::DeviceRuntime* const runtime = runtime_of(handle, own);
  const int device = runtime == nullptr       ? -1
                     : own.runtime == runtime ? own.device
                                              : runtime->device_in_use();
  if (device < 0) return {StatusCode::unsupported, "this process uses no device of that runtime"};
  ACCORD_TRY(memory.open(*runtime, device, handle, descriptor));
  (void)runtime->classify(memory.start(), where);
  where.kind = device::MemoryKind::device;
  where.runtime = runtime;
  where.device = device;
  where.base = memory.start();
  where.size_bytes = static_cast<std::size_t>(handle.size_bytes);
  return {};
}

// Whatever cannot be opened goes by messages.
void Window::open_peer(int peer, const Told& told) {
  Rank& rank = rank_at(peer);
  rank.route = told.is_host != 0 ? Route::host : Route::messages;
  std::vector<node::Descriptor> descriptors;
  if (!port_.take({peer, 0, 0}, descriptors) || descriptors.size() < 2) return;
  lines_[static_cast<std::size_t>(peer)] =
      node::life_line_of(told.port.process, std::move(descriptors[1]));
  auto words = std::make_unique<node::SharedPages>();
  Status opened = words->map(descriptors[0]);
  if (opened.ok() && words->size_bytes() < sizeof(Page))
    opened = {StatusCode::unsupported, "a page of another version"};
  if (opened.ok()) rank.words = std::move(words);
  if (told.is_host != 0) return;
  if (opened.ok() && told.is_dynamic != 0) {
    rank.target = Target(Place::absolute(), &page_of(*rank.words).words, rank_, &lines_, combine_);
    return;
  }
  const node::Descriptor none;
  device::PointerInfo where;
  if (opened.ok() && told.size_bytes != 0) {
    const node::MemoryHandle handle = page_of(*rank.words).memory;
    opened =
        open_memory(handle, descriptors.size() > 2 ? descriptors[2] : none, rank.memory, where);
  }
  if (!opened.ok()) {
    log::debug("operations on the window of rank {} go by messages: {}", peer, opened.message());
    return;
  }
  Page& page = page_of(*rank.words);
  rank.target = Target(
      {.start = core::at(rank.memory.start(), static_cast<std::ptrdiff_t>(page.offset_bytes)),
       .where = where},
      &page.words, rank_, &lines_, combine_);
  rank.route = Route::direct;
}

// Kernels of ours stay on a device, so that those of other ranks there would have to wait. A rank
// of the node of which nothing is known may be one.
void Window::find_workers(const std::vector<Told>& all) {
  const Told& mine = all[static_cast<std::size_t>(rank_)];
  const device::KernelPlace own = page_of(*rank_at(rank_).words).kernels;
  int sharers = 0;
  for (int peer = 0; peer < size_; ++peer) {
    if (!is_near(mine, all[static_cast<std::size_t>(peer)])) continue;
    if (rank_at(peer).words == nullptr) return;
    const device::KernelPlace its = page_of(*rank_at(peer).words).kernels;
    if (its.device != own.device) continue;
    if (peer != rank_ && device::takes_turns(own, its)) return;
    ++sharers;
  }
  may_use_kernels_ = true;
  batch_.use_kernels(true);
  for (Rank& rank : ranks_) {
    const Place& memory = rank.target.memory();
    if (rank.route != Route::direct || memory.is_absolute ||
        memory.where.kind != device::MemoryKind::device)
      continue;
    auto& worker = device::DirectWorker::of(*memory.where.runtime, memory.where.device);
    worker.share_with(sharers);
    rank.target.use_worker(&worker);
  }
}

// Where all can look at what the others attach.
Status Window::find_mixed(const Allgather& allgather) {
  const bool mine =
      std::ranges::all_of(ranks_, [](const Rank& rank) { return rank.target.has_words(); });
  std::vector<std::int32_t> words(ranks_.size());
  const std::int32_t word = mine ? 1 : 0;
  ACCORD_TRY(allgather(&word, words.data(), sizeof word));
  is_mixed_ = std::ranges::find(words, 0) == words.end();
  has_host_memory_ = is_mixed_;
  if (is_mixed_) return {};
  for (int peer = 0; peer < size_; ++peer)
    if (peer != rank_) rank_at(peer).target = Target();
  return {};
}

Status Window::open(const Part& part, std::unique_ptr<core::Wire> wire, const Allgather& allgather,
                    std::unique_ptr<Transports> transports) {
  transports_ = std::move(transports);
  ranks_ = std::vector<Rank>(static_cast<std::size_t>(size_));
  lines_.resize(ranks_.size());
  is_dynamic_ = part.is_dynamic;
  Told mine;
  const Status prepared = prepare(part, mine);
  mine.ok = prepared.ok() ? 1 : 0;
  std::vector<Told> parts(ranks_.size());
  ACCORD_TRY(allgather(&mine, parts.data(), sizeof mine));
  ACCORD_TRY(prepared);
  if (std::ranges::find(parts, 0, &Told::ok) != parts.end()) return failed_elsewhere();
  const Status sent = send_descriptors(parts);
  std::vector<std::int32_t> told(ranks_.size());
  std::int32_t word = sent.ok() ? 1 : 0;  // then all that was sent is there
  ACCORD_TRY(allgather(&word, told.data(), sizeof word));
  ACCORD_TRY(sent);
  if (std::ranges::find(told, 0) != told.end()) return failed_elsewhere();

  Rank& own = rank_at(rank_);
  own.target =
      Target(part.is_dynamic ? Place::absolute() : Place{.start = part.base, .where = part.where},
             &page_of(*own.words).words, rank_, &lines_, combine_,
             part.is_dynamic ? &attached_ : nullptr, part.size_bytes);
  for (int peer = 0; peer < size_; ++peer) {
    const Told& one = parts[static_cast<std::size_t>(peer)];
    Rank& rank = rank_at(peer);
    rank.size_bytes = one.size_bytes;
    rank.unit_bytes = one.unit_bytes;
    rank.is_on_device = one.is_on_device != 0;
    has_host_memory_ = has_host_memory_ || one.is_host != 0;
    if (peer == rank_)
      rank.route = one.is_host != 0 ? Route::host : Route::direct;
    else
      open_peer(peer, one);
  }

  find_workers(parts);
  if (is_dynamic_) ACCORD_TRY(find_mixed(allgather));

  // What some rank needs of another, all serve: it costs nothing while nobody asks.
  word =
      std::ranges::any_of(ranks_, [](const Rank& rank) { return rank.route == Route::messages; });
  ACCORD_TRY(allgather(&word, told.data(), sizeof word));
  if (std::ranges::find(told, 1) == told.end()) return {};
  if (!engine_.threads_allowed())
    return {StatusCode::unsupported,
            "a window on device memory that some rank cannot reach itself needs a progress thread, "
            "and the MPI allows none"};
  service_ = std::make_shared<Service>(std::move(wire), rank_, size_, own.target, lines_,
                                       transports_.get());
  if (is_mixed_) service_->makes_room_in(port_);
  watch_far_ranks();
  const Status started = service_->open();
  if (started.ok())
    engine_.submit(service_, nullptr);
  else
    service_.reset();
  word = started.ok() ? 1 : 0;
  const Status told_all = allgather(&word, told.data(), sizeof word);
  const bool all = told_all.ok() && std::ranges::find(told, 0) == told.end();
  if (!all) close();
  ACCORD_TRY(started);
  ACCORD_TRY(told_all);
  return all ? Status() : failed_elsewhere();
}

// Nobody tells of a process of another node that it has ended.
void Window::watch_far_ranks() {
  for (int peer = 0; peer < size_; ++peer) {
    auto& line = lines_[static_cast<std::size_t>(peer)];
    if (peer == rank_ || line != nullptr) continue;
    auto far = std::make_shared<node::LifeLine>();
    service_->watch(peer, far);
    line = std::move(far);
  }
}

// What peers open: a handle, and a descriptor that is in their sockets before. Those without it ask
// by messages.
node::MemoryHandle Window::export_attached(const DeviceRanges::Entry& entry) {
  Part part;
  part.base = reinterpret_cast<std::byte*>(entry.base);
  part.size_bytes = entry.size_bytes;
  part.where = device::classify(part.base);
  node::Registration made;
  if (!is_of_one_allocation(part) ||
      !made.make(*part.where.runtime, part.where, port_.address().process).ok())
    return {};
  const int descriptor = made.descriptor().number();
  if (made.descriptor().is_open())
    send_to_peers({rank_, static_cast<std::int32_t>(entry.slot) + 1,
                   static_cast<std::uint32_t>(entry.generation)},
                  {&descriptor, 1});
  return made.handle();
}

void Window::open_attached(int target, const DeviceRanges::Entry& entry, Opened& opened) {
  opened = Opened{.generation = entry.generation, .memory = {}, .target = {}};
  std::vector<node::Descriptor> descriptors(1);
  const node::ParcelLabel label{target, static_cast<std::int32_t>(entry.slot) + 1,
                                static_cast<std::uint32_t>(entry.generation)};
  if (entry.memory.with_descriptor != 0 && (!port_.take(label, descriptors) || descriptors.empty()))
    return;
  device::PointerInfo where;
  if (!open_memory(entry.memory, descriptors[0], opened.memory, where).ok()) return;
  // Offsets are the addresses of its owner.
  std::byte* const start =
      core::at(opened.memory.start(), -static_cast<std::ptrdiff_t>(entry.memory.base));
  opened.target = Target({.start = start, .where = where}, &rank_at(target).target.words(), rank_,
                         &lines_, combine_);
  if (may_use_kernels_)
    opened.target.use_worker(&device::DirectWorker::of(*where.runtime, where.device));
}

const Target* Window::reached(int target, std::span<const Piece> pieces) {
  Rank& rank = rank_at(target);
  if (!is_mixed_ || target == rank_) return rank.route == Route::direct ? &rank.target : nullptr;
  DeviceRanges::Entry entry;
  if (!ranges(target).find(pieces, entry) || entry.memory.length_bytes == 0) return nullptr;
  const std::lock_guard<std::mutex> locked(attached_mutex_);
  Opened& opened = opened_[{target, entry.slot}];
  if (opened.generation != entry.generation) open_attached(target, entry, opened);
  return opened.memory.is_open() ? &opened.target : nullptr;
}

void Window::close() {
  if (service_ != nullptr) {
    service_->close();
    engine_.wait(*service_);
  }
  service_.reset();
  for (Rank& rank : ranks_) rank.memory.close();
  opened_.clear();
}

Window::~Window() { close(); }

}  // namespace accord::rma

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/offers.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/log.h"
#include "node/handle_cache.h"
#include "node/housekeeping.h"
#include "node/ledger.h"

namespace accord::node {
namespace {

// Allocations of this rank remembered, offered or not.
constexpr std::size_t kKnownMax = 128;
static_assert(kKnownMax > Board::kOffers);  // so that there is one to forget
// What peers have open stays allocated until they close it, also when its owner has freed it. While
// more than this part of the device's memory is kept so, nothing more is lent; and an allocation
// that is as large by itself is lent later than others.
constexpr std::size_t kKeptPart = 4;

}  // namespace

std::size_t Offers::shared_bytes(int size) noexcept {
  const auto ranks = static_cast<std::size_t>(size);
  return ranks * sizeof(Board) + ranks * ranks * sizeof(Answers);
}

void Offers::make(void* shared, int size) noexcept {
  auto* const boards = static_cast<Board*>(shared);
  for (int rank = 0; rank < size; ++rank) new (boards + rank) Board;
}

void Offers::attach(void* shared, int rank, device::DeviceRuntime& runtime, int device,
                    void* scratch, DescriptorPort& port, std::vector<PortAddress> ports,
                    std::vector<std::shared_ptr<const Bell>> bells) {
  const std::lock_guard lock(mutex_);
  device::DeviceDescription description;
  if (runtime.describe(device, description).ok())
    kept_bytes_max_ = description.memory_bytes / kKeptPart;
  rank_ = rank;
  size_ = static_cast<int>(ports.size());
  runtime_ = &runtime;
  device_ = device;
  life_ = runtime.context_life(device);
  scratch_ = scratch;
  port_ = &port;
  boards_ = static_cast<Board*>(shared);
  answers_ = reinterpret_cast<Answers*>(boards_ + size_);
  imports_.resize(ports.size());
  ports_ = std::move(ports);
  bells_ = std::move(bells);
}

Offers::~Offers() {
  close();
  for (Slot& slot : slots_) release(slot);
}

void Offers::close() noexcept {
  const std::lock_guard lock(mutex_);
  for (const auto& theirs : imports_) {
    if (theirs == nullptr) continue;
    for (Import& import : *theirs) close(import);
  }
}

void Offers::tend() {
  const std::lock_guard lock(mutex_);
  look_for_reset();
  const bool again = is_worth_another_try();
  for (int owner = 0; owner < size_; ++owner) {
    if (owner != rank_) follow(owner, again);
  }
  look_at_own();
}

void Offers::tend_own() {
  const std::lock_guard lock(mutex_);
  look_at_own();
}

void Offers::look_at_own() {
  if (++calls_since_look_ >= kCallsPerLook) look_at_next();
  reclaim();
  (void)is_trial_ended();
}

void Offers::tidy() {
  const std::lock_guard lock(mutex_);
  for (int owner = 0; owner < size_; ++owner) {
    if (owner != rank_) close_withdrawn(owner);
  }
  withdraw_freed();
  reclaim();
}

bool Offers::retract(const device::PointerInfo& memory) {
  const std::lock_guard lock(mutex_);
  for (const Slot& slot : slots_)
    if (slot.live && slot.registration.is_of(memory) && slot.holders != 0) return false;
  std::erase_if(own_, [&](Own& own) {
    if (!own.is_of(memory)) return false;
    if (own.offer >= 0) withdraw(own);
    return true;
  });
  reclaim();
  return std::ranges::none_of(slots_,
                              [&](const Slot& slot) { return slot.registration.is_of(memory); });
}

// Finds what was freed although nothing new is used. What peers are about to offer is taken, so
// that they have room to send more.
void Offers::look_at_next() {
  calls_since_look_ = 0;
  port_->receive();
  for (std::size_t looks = 0; looks < slots_.size(); ++looks) {
    const auto slot = static_cast<std::int32_t>(next_look_);
    next_look_ = (next_look_ + 1) % slots_.size();
    const auto own = std::ranges::find(own_, slot, &Own::offer);
    if (own == own_.end()) continue;
    if (is_freed(*own)) {
      withdraw(*own);
      keep_account(slots_[static_cast<std::size_t>(slot)]);
      own_.erase(own);
    }
    return;
  }
}

bool Offers::use(const device::PointerInfo& memory, int readers, std::int32_t& offer) {
  const std::lock_guard lock(mutex_);
  look_for_reset();
  Own& own = known(memory);
  if (own.last_call != calls_) ++own.uses;
  own.last_call = calls_;
  if (own.uses < kUsesBeforeOffer) return false;
  if (!own.tried) own.reachable = try_kernels(memory.base, own.tried).ok() && own.tried;
  if (readers == kNobody || !own.reachable) return own.reachable;
  Status lent;
  const bool lasts = own.size_bytes <= kept_bytes_max_ || own.uses >= kUsesBeforeLargeOffer;
  if (own.offer < 0 && !own.refused && lasts) lent = lend(own, memory);
  if (own.offer >= 0) {
    lent = show(own, readers);
    if (!lent.ok()) withdraw(own);  // no reader has it, so nobody holds it
  }
  if (!lent.ok()) log::info("through the exchange region: {}", lent.message());
  own.refused = own.refused || !lent.ok();
  if (own.offer < 0) return false;
  offer = own.offer;
  return opened_by(offer, readers);
}

bool Offers::is_open(const device::PointerInfo& memory, int reader) const {
  const std::lock_guard lock(mutex_);
  const auto own = std::ranges::find_if(own_, [&](const Own& one) { return one.is_of(memory); });
  return own != own_.end() && own->offer >= 0 && opened_by(own->offer, reader);
}

// A buffer not seen before: others may have been freed to make room for it.
Offers::Own& Offers::known(const device::PointerInfo& memory) {
  const auto found = std::ranges::find_if(own_, [&](const Own& own) { return own.is_of(memory); });
  if (found != own_.end()) return *found;
  withdraw_freed();
  if (own_.size() >= kKnownMax) {
    own_.erase(std::min_element(own_.begin(), own_.end(), [](const Own& a, const Own& b) {
      return std::pair(a.offer >= 0, a.last_call) < std::pair(b.offer >= 0, b.last_call);
    }));
  }
  return own_.emplace_back(
      Own{.base = memory.base, .buffer_id = memory.buffer_id, .size_bytes = memory.size_bytes});
}

// Of what is on offer alone.
bool Offers::is_freed(const Own& own) const noexcept {
  return own.offer >= 0 && !slots_[static_cast<std::size_t>(own.offer)].registration.exists();
}

// A reset takes along what was lent, what is open here, and the scratch. Messages may wait in what
// peers lend: that is opened again.
void Offers::look_for_reset() {
  const std::uint64_t now = runtime_->context_life(device_);
  if (std::exchange(life_, now) == now) return;
  scratch_ = nullptr;
  withdraw_freed();
  for (int owner = 0; owner < size_; ++owner) {
    const auto& theirs = imports_[static_cast<std::size_t>(owner)];
    for (std::size_t i = 0; theirs != nullptr && i < theirs->size(); ++i) {
      Import& import = (*theirs)[i];
      if (!import.memory.is_open() || import.memory.exists()) continue;
      import.memory.close();
      if (!open(owner, i, import).ok())
        answers(rank_, owner).opened[i].store(0, std::memory_order_relaxed);
    }
  }
}

void Offers::withdraw_freed() {
  std::erase_if(own_, [&](Own& own) {
    if (!is_freed(own)) return false;
    Slot& slot = slots_[static_cast<std::size_t>(own.offer)];
    withdraw(own);
    keep_account(slot);
    return true;
  });
}

void Offers::withdraw(Own& own) noexcept {
  Slot& slot = slots_[static_cast<std::size_t>(own.offer)];
  Offer& shown = boards_[rank_].offers[own.offer];
  shown.withdrawn.store(slot.generation, std::memory_order_relaxed);
  shown.generation.store(0, std::memory_order_release);
  post();
  if (std::exchange(slot.live, false))
    detail::things_to_look_after.fetch_sub(1, std::memory_order_relaxed);
  slot.withdrawn = boards_[rank_].posted.load(std::memory_order_relaxed);
  slot.registration.descriptor().close();  // those that shall open it have been sent it
  own.offer = -1;
  for (const auto& bell : bells_)
    if (bell != nullptr) bell->ring();
}

// The allocation of an offer that has been withdrawn is freed.
void Offers::keep_account(Slot& slot) {
  const MemoryHandle& memory = slot.registration.handle();
  slot.is_kept = true;
  ledger().enter({device_, memory.base, memory.buffer_id}, memory.size_bytes);
}

bool Offers::is_free(const Slot& slot) const noexcept {
  if (slot.live) return false;
  for (int reader = 0; reader < size_; ++reader) {
    if (reader != rank_ &&
        answers(reader, rank_).closed.load(std::memory_order_acquire) < slot.withdrawn)
      return false;
  }
  return true;
}

void Offers::reclaim() noexcept {
  for (Slot& slot : slots_) {
    if (slot.registration.is_made() && is_free(slot)) release(slot);
  }
}

// Not before all peers have closed it: what a peer has open is still lent.
void Offers::release(Slot& slot) noexcept {
  if (std::exchange(slot.live, false))
    detail::things_to_look_after.fetch_sub(1, std::memory_order_relaxed);
  const MemoryHandle& memory = slot.registration.handle();
  if (std::exchange(slot.is_kept, false)) ledger().leave({device_, memory.base, memory.buffer_id});
  slot.registration = {};
}

// What kernels cannot address (memory of another context) must show now, while the call can still
// go through the regions. Not `known` while kernels do not run.
Status Offers::try_kernels(const void* memory, bool& known) {
  known = scratch_ == nullptr;
  if (known || !is_trial_ended()) return {};
  const Status reached = trial_.run(*runtime_, device_,
                                    {.dst = scratch_,
                                     .sources = {&memory, 1},
                                     .count = 1,
                                     .op = device::ReduceOp::bxor,
                                     .element = device::Element::uint8},
                                    known);
  known = known || !reached.ok();
  return reached;
}

bool Offers::trial_ended() noexcept {
  const std::lock_guard lock(mutex_);
  return is_trial_ended();
}

bool Offers::is_trial_ended() noexcept {
  if (!trial_.ended()) return false;
  if (tried_.memory.is_open()) end_tried();
  return true;
}

// What a late trial has shown of an import counts as long as its owner offers the same.
void Offers::end_tried() noexcept {
  Tried tried = std::exchange(tried_, {});
  Import& import = (*imports_[static_cast<std::size_t>(tried.owner)])[tried.number];
  if (import.generation != tried.generation || !trial_.outcome().ok()) return;
  import.memory = std::move(tried.memory);
  answers(rank_, tried.owner)
      .opened[tried.number]
      .store(tried.generation, std::memory_order_release);
}

// Makes an offer, for show. Without a place for it nothing happens: there may be one in a later
// call.
Status Offers::lend(Own& own, const device::PointerInfo& memory) {
  const int number = find_place();
  if (number < 0) return {};
  Slot& slot = slots_[static_cast<std::size_t>(number)];
  Offer& shown = boards_[rank_].offers[number];
  ACCORD_TRY(slot.registration.make(*runtime_, memory, port_->address().process));
  shown.readers.store(kNobody, std::memory_order_relaxed);
  shown.memory = slot.registration.handle();
  slot.live = true;
  slot.sent.assign(static_cast<std::size_t>(size_), false);
  ++slot.generation;
  own.offer = number;
  detail::things_to_look_after.fetch_add(1, std::memory_order_relaxed);
  return {};
}

// Lets `readers` see it, and everyone once different ones ask for it. Where one of them has no room
// for the descriptor, a later call does it.
Status Offers::show(const Own& own, int readers) {
  const std::uint32_t generation = slots_[static_cast<std::size_t>(own.offer)].generation;
  Offer& shown = boards_[rank_].offers[own.offer];
  const int before = shown.readers.load(std::memory_order_relaxed);
  if (before == readers || before == kEveryone) return {};
  const int now = before == kNobody ? readers : kEveryone;
  bool sent = true;
  if (shown.memory.with_descriptor != 0) ACCORD_TRY(send_descriptor(own.offer, now, sent));
  if (!sent) return {};
  shown.readers.store(now, std::memory_order_relaxed);
  shown.generation.store(generation, std::memory_order_release);
  post();
  return {};
}

// A reader whose process has ended does not open it, which is no matter of the others: an error
// only where no reader can be sent it.
Status Offers::send_descriptor(std::int32_t offer, int readers, bool& sent) {
  Slot& slot = slots_[static_cast<std::size_t>(offer)];
  const int descriptor = slot.registration.descriptor().number();
  Status status;
  for (int reader = 0; reader < size_; ++reader) {
    const auto index = static_cast<std::size_t>(reader);
    if (reader == rank_ || (readers != kEveryone && readers != reader) || slot.sent[index])
      continue;
    const Status one =
        port_->send(ports_[index], {rank_, offer, slot.generation}, {&descriptor, 1}, sent);
    if (one.ok() && !sent) return {};
    slot.sent[index] = one.ok();
    keep_first(status, one);
  }
  sent = true;
  return std::ranges::find(slot.sent, true) != slot.sent.end() ? Status() : status;
}

// A free slot, or -1. Where there is none, what has long been idle gives way; its slot is
// free once the peers have closed it.
int Offers::find_place() {
  if (ledger().bytes(device_) > kept_bytes_max_) return -1;
  const auto slot = std::find_if(slots_.begin(), slots_.end(),
                                 [](const Slot& one) { return !one.registration.is_made(); });
  if (slot != slots_.end()) return static_cast<int>(slot - slots_.begin());
  Own* idle = nullptr;
  for (Own& other : own_) {
    if (other.offer < 0 || slots_[static_cast<std::size_t>(other.offer)].holders != 0) continue;
    if (idle == nullptr || other.last_call < idle->last_call) idle = &other;
  }
  if (idle != nullptr && idle->last_call + kIdleCalls <= calls_) withdraw(*idle);
  return -1;
}

bool Offers::opened_by(std::int32_t offer, int readers) const noexcept {
  const std::uint32_t generation = slots_[static_cast<std::size_t>(offer)].generation;
  for (int reader = 0; reader < size_; ++reader) {
    if (reader == rank_ || (readers != kEveryone && readers != reader)) continue;
    if (answers(reader, rank_).opened[offer].load(std::memory_order_acquire) != generation)
      return false;
  }
  return true;
}

void Offers::post() noexcept { boards_[rank_].posted.fetch_add(1, std::memory_order_release); }

// What was closed since may have been in the way: a driver may not map memory at an address where
// another communicator's is open whose owner has freed it.
bool Offers::is_worth_another_try() noexcept {
  if (!has_refused_ || handle_cache().counters().closes == closes_at_refusal_) return false;
  has_refused_ = false;
  return true;
}

Offers::Imports& Offers::imports_of(int owner) {
  auto& theirs = imports_[static_cast<std::size_t>(owner)];
  if (theirs == nullptr) theirs = std::make_unique<Imports>();
  return *theirs;
}

void Offers::close_withdrawn(int owner) {
  const Board& theirs = boards_[owner];
  Answers& mine = answers(rank_, owner);
  const std::uint64_t posted = theirs.posted.load(std::memory_order_acquire);
  if (mine.closed.load(std::memory_order_relaxed) == posted) return;
  Imports& imports = imports_of(owner);
  bool has_closed = false;
  for (std::size_t i = 0; i < imports.size(); ++i) {
    const std::uint32_t generation = theirs.offers[i].generation.load(std::memory_order_acquire);
    drop_withdrawn(owner, i, imports[i]);
    if (imports[i].generation == generation) continue;
    has_closed = has_closed || imports[i].memory.is_open();
    mine.opened[i].store(0, std::memory_order_relaxed);
    close(imports[i]);
  }
  mine.closed.store(posted, std::memory_order_release);
  if (has_closed) bells_[static_cast<std::size_t>(owner)]->ring();
}

// Closes before it opens: a runtime may not map memory again at an address whose former owner is
// still open here.
void Offers::follow(int owner, bool again) {
  const Board& theirs = boards_[owner];
  Answers& mine = answers(rank_, owner);
  const std::uint64_t posted = theirs.posted.load(std::memory_order_acquire);
  if (posted == 0 || (mine.followed.load(std::memory_order_relaxed) == posted && !again)) return;
  close_withdrawn(owner);
  Imports& imports = imports_of(owner);
  for (std::size_t i = 0; i < imports.size(); ++i) {
    // What is offered while the device runs no kernel of ours is for a later call.
    if (!is_trial_ended()) return;
    const Offer& offer = theirs.offers[i];
    const std::uint32_t generation = offer.generation.load(std::memory_order_acquire);
    const int readers = offer.readers.load(std::memory_order_relaxed);
    // Withdrawn since the loop above: closed the next time.
    if (generation == 0 || (generation == imports[i].generation && !imports[i].is_refused))
      continue;
    if (readers != kEveryone && readers != rank_) continue;
    imports[i].generation = generation;
    if (Status opened = open(owner, i, imports[i]); !opened.ok()) {
      log::info("through the exchange region: {}", opened.message());
    } else {
      mine.opened[i].store(generation, std::memory_order_release);
    }
  }
  mine.followed.store(posted, std::memory_order_release);
}

// What was withdrawn before this rank looked is asked for by nobody, and its descriptor would keep
// memory that its owner has freed.
void Offers::drop_withdrawn(int owner, std::size_t number, Import& import) {
  const std::uint32_t withdrawn =
      boards_[owner].offers[number].withdrawn.load(std::memory_order_relaxed);
  if (withdrawn == import.withdrawn) return;
  import.withdrawn = withdrawn;
  port_->drop({owner, static_cast<std::int32_t>(number), withdrawn});
}

Status Offers::open(int owner, std::size_t number, Import& import) {
  const Offer& offer = boards_[owner].offers[number];
  if (offer.memory.with_descriptor != 0 && !import.is_refused) {
    // Where none has come, the runtime refuses the handle.
    std::vector<Descriptor> descriptors;
    (void)port_->take({owner, static_cast<std::int32_t>(number), import.generation}, descriptors);
    if (!descriptors.empty()) import.descriptor = std::move(descriptors[0]);
  }
  const Status opened = import.memory.open(*runtime_, device_, offer.memory, import.descriptor);
  import.is_refused = !opened.ok();
  if (import.is_refused) {
    has_refused_ = true;
    closes_at_refusal_ = handle_cache().counters().closes;
  } else {
    import.descriptor.close();
  }
  ACCORD_TRY(opened);
  bool known = false;
  Status reached = try_kernels(import.memory.start(), known);
  if (known && reached.ok()) return {};
  PeerMemory memory = std::move(import.memory);
  if (known) return reached;
  tried_ = {owner, number, import.generation, std::move(memory)};
  return Trial::unended();
}

void Offers::close(Import& import) noexcept {
  import.memory.close();
  import.generation = 0;
  import.is_refused = false;
  import.descriptor.close();
}

const std::byte* Offers::find(int owner, const Place& place, std::uint32_t generation) {
  const std::lock_guard lock(mutex_);
  look_for_reset();
  const auto offer = static_cast<std::size_t>(place.offer);
  if (owner == rank_) {
    const Slot& slot = slots_[offer];
    if (!slot.live || slot.generation != generation) return nullptr;
    return reinterpret_cast<const std::byte*>(slot.registration.handle().base) + place.offset_bytes;
  }
  const auto& theirs = imports_[static_cast<std::size_t>(owner)];
  if (theirs == nullptr) return nullptr;
  const Import& import = (*theirs)[offer];
  if (!import.memory.is_open() || import.generation != generation) return nullptr;
  return import.memory.start() + place.offset_bytes;
}

std::byte* Offers::address(int owner, const Place& place) const noexcept {
  const Import& import =
      (*imports_[static_cast<std::size_t>(owner)])[static_cast<std::size_t>(place.offer)];
  return import.memory.start() + place.offset_bytes;
}

}  // namespace accord::node

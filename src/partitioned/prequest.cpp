// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "partitioned/prequest.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "node/shared_pages.h"

namespace accord::partitioned {
namespace {

// Places of one size on one device, cut from slabs that are never given back. A place is as good as
// new only once the device has written zeros over what its last request has left.
class Places {
 public:
  Places(device::DeviceRuntime& runtime, int device, std::size_t place_bytes)
      : runtime_(runtime), device_(device), place_bytes_(place_bytes) {}

  Status take(DevicePrequest::Place& place) {
    const std::lock_guard lock(mutex_);
    clean();
    if (idle_.empty()) ACCORD_TRY(add_slab());
    place = idle_.back();
    idle_.pop_back();
    return {};
  }
  // `ticket`: of the last copy there, which may be under way still.
  void put_back(const DevicePrequest::Place& place, device::CopyTicket ticket) {
    const std::lock_guard lock(mutex_);
    used_.push_back({place, ticket, false});
    clean();
  }

 private:
  struct Used {
    DevicePrequest::Place place;
    device::CopyTicket ticket;
    bool is_clean;
  };
  static constexpr std::size_t kSlabBytes = std::size_t{256} << 10;
  static constexpr std::size_t kKept = offsetof(accord_prequest, sides);

  // A place whose copies fail is not used again.
  void clean() {
    std::erase_if(used_, [&](Used& one) {
      bool done = one.ticket.handle == nullptr;
      if (!done && !runtime_.copy_done(one.ticket, done).ok()) return true;
      if (!done) return false;
      if (std::exchange(one.is_clean, true)) return idle_.push_back(one.place), true;
      const device::Copy zeros{.dst = one.place.memory + kKept,
                               .src = one.place.zeros,
                               .row_bytes = place_bytes_ - kKept};
      return !runtime_.copy_begin_beside_kernels(device_, {&zeros, 1}, one.ticket).ok();
    });
  }

  Status add_slab() {
    const std::size_t count = std::max<std::size_t>(kSlabBytes / place_bytes_, 1);
    auto pages = std::make_unique<node::SharedPages>();
    ACCORD_TRY(pages->make(place_bytes_ + count * sizeof(accord_prequest)));
    ACCORD_TRY(pages->pin(runtime_));
    auto* const images = reinterpret_cast<accord_prequest*>(pages->data() + place_bytes_);
    std::vector<std::byte> bytes(count * place_bytes_);
    for (std::size_t i = 0; i < count; ++i) {
      const accord_prequest* const image = images + i;
      std::memcpy(bytes.data() + i * place_bytes_, &image, sizeof image);
    }
    void* slab = nullptr;
    ACCORD_TRY(runtime_.allocate(device_, device::MemoryKind::device, bytes.size(), slab));
    const device::Copy copy{.dst = slab, .src = bytes.data(), .row_bytes = bytes.size()};
    if (const Status status = runtime_.copy(device_, {&copy, 1}); !status.ok()) {
      (void)runtime_.free(slab);
      return status;
    }
    for (std::size_t i = 0; i < count; ++i)
      idle_.push_back(
          {static_cast<std::byte*>(slab) + i * place_bytes_, images + i, pages->data()});
    pages_.push_back(std::move(pages));
    return {};
  }

  device::DeviceRuntime& runtime_;
  const int device_;
  const std::size_t place_bytes_;
  std::mutex mutex_;
  std::vector<DevicePrequest::Place> idle_;
  std::vector<Used> used_;
  std::vector<std::unique_ptr<node::SharedPages>> pages_;
};

// Never destroyed: the driver may be gone when static objects are.
Places& places(device::DeviceRuntime& runtime, int device, std::size_t place_bytes) {
  static std::mutex& mutex = *new std::mutex;
  static auto& all =
      *new std::map<std::tuple<device::DeviceRuntime*, int, std::size_t>, std::unique_ptr<Places>>;
  const std::lock_guard lock(mutex);
  auto& found = all[{&runtime, device, place_bytes}];
  if (found == nullptr) found = std::make_unique<Places>(runtime, device, place_bytes);
  return *found;
}

}  // namespace

DevicePrequest::~DevicePrequest() {
  if (place_.memory != nullptr)
    places(runtime_, device_, size_bytes_).put_back(place_, std::exchange(ticket_, {}));
}

accord_prequest* DevicePrequest::for_kernels() const noexcept {
  return static_cast<accord_prequest*>(runtime_.address_for_library(place_.memory));
}

Status DevicePrequest::create(accord_prequest shown, std::size_t transfers) {
  const std::size_t counters = (shown.sides & ACCORD_PARTITION_SENDS) != 0
                                   ? static_cast<std::size_t>(shown.partitions) + transfers
                                   : 0;
  constexpr std::size_t kLeastBytes = 1024;
  size_bytes_ =
      std::bit_ceil(std::max(sizeof shown + counters * sizeof(std::uint64_t), kLeastBytes));
  ACCORD_TRY(places(runtime_, device_, size_bytes_).take(place_));
  auto* const first = reinterpret_cast<std::uint64_t*>(for_kernels() + 1);
  shown.image = place_.image;
  shown.partition_marks = first;
  shown.transfer_marks = first + shown.partitions;
  const std::uint32_t state = std::exchange(shown.state, ACCORD_PARTITION_STATE_ELSEWHERE);
  std::memcpy(place_.image, &shown, sizeof shown);
  say(state);
  return {};
}

void DevicePrequest::say(std::uint32_t state) {
  std::atomic_ref(place_.image->state).store(state, std::memory_order_release);
  is_due_ = true;
}

// A copy that is under way reads the image, which is not changed meanwhile.
void DevicePrequest::connect(const accord_prequest& shown) {
  next_ = shown;
  progress();
}

Status DevicePrequest::forget_marks() {
  const device::Copy zeros{.dst = place_.memory + sizeof(accord_prequest),
                           .src = place_.zeros,
                           .row_bytes = size_bytes_ - sizeof(accord_prequest)};
  return runtime_.copy(device_, {&zeros, 1});
}

// The state goes last, since it says that all the rest is there.
void DevicePrequest::progress() {
  bool done = ticket_.handle == nullptr;
  if (!done && (!runtime_.copy_done(ticket_, done).ok() || done)) ticket_ = {};
  if (ticket_.handle != nullptr) return;
  if (next_) {
    place_.image->link = next_->link;
    place_.image->node = next_->node;
    say(std::exchange(next_, std::nullopt)->state);
  }
  if (!std::exchange(is_due_, false)) return;
  constexpr std::size_t kState = offsetof(accord_prequest, state);
  const device::Copy copies[] = {
      {.dst = place_.memory, .src = place_.image, .row_bytes = kState},
      {.dst = place_.memory + kState, .src = &place_.image->state, .row_bytes = sizeof(uint32_t)}};
  if (!runtime_.copy_begin_beside_kernels(device_, copies, ticket_).ok()) ticket_ = {};
}

}  // namespace accord::partitioned

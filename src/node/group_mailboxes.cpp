// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What the ranks of a group share in host memory: one file, which rank 0 makes and all map.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "device/memory_file.h"
#include "node/group.h"
#include "node/shared_mapping.h"

namespace accord::node {
namespace {

// Address space; windows of 64 messages of 64 MiB take 4 GiB.
constexpr std::size_t kSpillBytesOfMessages = std::size_t{16} << 30;

// Host regions at most: of a rank, and of all of them, since each page-locks them all. Slots of
// 512 KiB are long enough for copy engines, and four overlap.
constexpr std::size_t kHostRegionBytes = std::size_t{2} << 20;
constexpr std::size_t kHostRegionsBytes = std::size_t{64} << 20;

Status from_errno(StatusCode code, const char* what) {
  return {code, fmt::format("node: {}: {}", what, std::strerror(errno))};
}

// To make a longer file would end the process.
bool may_make_file_of(std::size_t size_bytes) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
         (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= size_bytes);
}

}  // namespace

std::size_t Group::wanted_spill_bytes() const noexcept {
  if (use_.of_messages) return kSpillBytesOfMessages;
  if (use_.region_bytes == 0) return 0;
  constexpr std::size_t kPage = 4096;
  const std::size_t share_bytes = kHostRegionsBytes / static_cast<std::size_t>(size_);
  const std::size_t most_bytes = std::min({kHostRegionBytes, share_bytes / 2, use_.region_bytes});
  const std::size_t region_bytes = most_bytes / kPage * kPage;
  return region_bytes / kSlots < Plan::slot_bytes_min(size_) ? 0 : 2 * region_bytes;
}

// With room for spills, where this process may have that.
Status Group::make_mailbox_file() {
  const std::size_t with_spills_bytes =
      spills_begin_bytes() + wanted_spill_bytes() * static_cast<std::size_t>(size_);
  Status made;
  for (const std::size_t size_bytes : {with_spills_bytes, shared_bytes()}) {
    const bool has_spills = size_bytes == with_spills_bytes;
    if (has_spills && (wanted_spill_bytes() == 0 || !may_make_file_of(size_bytes))) continue;
    mailbox_descriptor_ = Descriptor(device::make_memory_file("accord-mailboxes", size_bytes));
    made = mailbox_descriptor_.is_open() ? map_mailboxes(mailbox_descriptor_)
                                         : from_errno(StatusCode::no_memory, "memfd_create");
    if (made.ok()) break;
  }
  return made;
}

Status Group::make_mailboxes() {
  ACCORD_TRY(make_mailbox_file());
  for (int peer = 0; peer < size_; ++peer) {
    new (causes_ + peer) Cause;
    new (mailboxes_ + peer) Mailbox;
    new (manifests_ + peer) Manifest;
  }
  // What there is for each pair of ranks begins as zeros, which the file has: so pages are made for
  // those pairs alone that have something for each other.
  Offers::make(offers_memory(), size_);
  if (!use_.of_messages) return {};
  for (int peer = 0; peer < size_; ++peer) {
    new (outboxes_ + peer) OutboxBoard;
    new (calls_ + peer) CallBoard;
  }
  auto& cookie = outboxes_[0].cookie;
  if (::getentropy(cookie.data(), sizeof cookie) != 0)
    return from_errno(StatusCode::unsupported, "getentropy");
  return {};
}

Status Group::map_mailboxes(const Descriptor& descriptor) {
  struct stat of {};
  if (!device::is_memory_file(descriptor.number()) || ::fstat(descriptor.number(), &of) != 0 ||
      static_cast<std::size_t>(of.st_size) < shared_bytes())
    return {StatusCode::unsupported, "node: the mailboxes could be truncated, or are too small"};
  const auto file_bytes = static_cast<std::size_t>(of.st_size);
  void* const memory = map_shared(descriptor.number(), file_bytes);
  if (memory == nullptr) return from_errno(StatusCode::no_memory, "mmap of the mailboxes");
  mapped_bytes_ = file_bytes;
  mailboxes_ = static_cast<Mailbox*>(memory);
  manifests_ = reinterpret_cast<Manifest*>(mailboxes_ + size_);
  parcels_ = reinterpret_cast<Parcel*>(manifests_ + size_);
  causes_ = reinterpret_cast<Cause*>(reinterpret_cast<std::byte*>(mailboxes_) + shared_bytes() -
                                     sizeof(Cause) * static_cast<std::size_t>(size_));
  if (use_.of_messages) {
    outboxes_ =
        reinterpret_cast<OutboxBoard*>(static_cast<std::byte*>(offers_memory()) + offers_bytes());
    calls_ = reinterpret_cast<CallBoard*>(outboxes_ + size_);
  }
  if (file_bytes <= spills_begin_bytes()) return {};
  spill_bytes_ = (file_bytes - spills_begin_bytes()) / static_cast<std::size_t>(size_);
  // A core file would have them all.
  (void)::madvise(static_cast<std::byte*>(memory) + spills_begin_bytes(),
                  file_bytes - spills_begin_bytes(), MADV_DONTDUMP);
  return {};
}

std::span<std::byte> Group::spill(int rank) const noexcept {
  auto* const first = reinterpret_cast<std::byte*>(mailboxes_) + spills_begin_bytes();
  return {first + spill_bytes_ * static_cast<std::size_t>(rank), spill_bytes_};
}

Regions Group::host_regions() {
  if (host_regions_.empty()) {
    for (int rank = 0; rank < size_; ++rank) host_regions_.push_back(spill(rank).data());
    const std::size_t all_bytes = spill_bytes_ * static_cast<std::size_t>(size_);
    has_pinned_ = runtime_->host_pin(host_regions_[0], all_bytes).ok();
  }
  return {.of_ranks = host_regions_, .slot_bytes = spill_bytes_ / 2 / kSlots, .on_host = true};
}

}  // namespace accord::node

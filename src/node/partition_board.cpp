// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/partition_board.h"

#include <new>
#include <utility>

namespace accord::node {

// The receiver's slot is for others once the sender, which may still have something to write, has
// let go.
PartitionBoard::~PartitionBoard() {
  if (!mapped()) return;
  const bool is_receiver = slot_.pages() != nullptr;
  if (!is_receiver) head_->left.store(1, std::memory_order_release);
  if (is_receiver && shared_) slot_.hold_until(head_->left);
}

Status PartitionBoard::make(PageShelf& shelf, std::int32_t transfers) {
  if (mapped() && slot_.size_bytes() >= bytes_for(transfers)) return {};
  ACCORD_TRY(shelf.take(bytes_for(transfers), slot_));
  pages_ = slot_.pages();
  lay_out(slot_.data());
  return {};
}

Status PartitionBoard::map(std::shared_ptr<SharedPages> pages, std::uint64_t offset_bytes,
                           std::int32_t transfers) {
  if (offset_bytes > pages->size_bytes() ||
      pages->size_bytes() - offset_bytes < bytes_for(transfers))
    return {StatusCode::unsupported, "partitioned: the receiver's pages are too few"};
  pages_ = std::move(pages);
  lay_out(pages_->data() + offset_bytes);
  return {};
}

void PartitionBoard::lay_out(std::byte* at) noexcept {
  head_ = std::launder(reinterpret_cast<Head*>(at));
  words_ = reinterpret_cast<std::atomic<std::uint32_t>*>(at + sizeof(Head));
}

}  // namespace accord::node

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Slots of shared pages: apart from each other, zero when they are lent, and lent again only once
// whoever else may still write there has let go.
#include "node/shared_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>

#include "node/partition_board.h"
#include "support.h"

namespace accord::node {
namespace {

TEST(SharedPages, SlotsAreApartAndZeroWhenLentAgain) {
  PageShelf shelf;
  PageSlot first;
  PageSlot second;
  EXPECT_OK(shelf.take(100, first));
  EXPECT_OK(shelf.take(100, second));
  std::byte* const place = first.data();
  EXPECT_GE(first.size_bytes(), 100u);
  EXPECT_EQ(second.data(), place + first.size_bytes());
  std::memset(place, 7, first.size_bytes());
  first = PageSlot();
  PageSlot again;
  EXPECT_OK(shelf.take(100, again));
  EXPECT_EQ(again.data(), place);
  EXPECT_EQ(std::to_integer<int>(place[99]), 0);
  PageSlot large;  // more than one lot of pages
  EXPECT_OK(shelf.take(std::size_t{3} << 20, large));
  EXPECT_NE(large.pages_number(), second.pages_number());
  EXPECT_EQ(std::to_integer<int>(large.data()[(std::size_t{3} << 20) - 1]), 0);
}

TEST(SharedPages, AnotherMappingSeesTheSame) {
  PageShelf shelf;
  PageSlot slot;
  EXPECT_OK(shelf.take(100, slot));
  SharedPages other;
  EXPECT_OK(other.map(slot.pages()->descriptor()));
  slot.data()[5] = std::byte{9};
  EXPECT_EQ(std::to_integer<int>(other.data()[slot.offset_bytes() + 5]), 9);
}

TEST(SharedPages, NobodyTruncatesThem) {
  PageShelf shelf;
  PageSlot slot;
  EXPECT_OK(shelf.take(100, slot));
  EXPECT_NE(0, ftruncate(slot.pages()->descriptor().number(), 0));
}

TEST(SharedPages, ThoseThatTheirOwnerCouldTruncateAreRefused) {
  const Descriptor open(memfd_create("unsealed", MFD_CLOEXEC));
  ASSERT_EQ(0, ftruncate(open.number(), 4096));
  SharedPages pages;
  EXPECT_CODE(unsupported, pages.map(open));
}

TEST(SharedPages, ABoardIsForOthersOnceItsSenderHasLetGo) {
  PageShelf shelf;
  PartitionBoard sender;
  std::size_t place = 0;
  {
    PartitionBoard receiver;
    EXPECT_OK(receiver.make(shelf, 4));
    receiver.share();
    place = receiver.slot().offset_bytes();
    EXPECT_OK(sender.map(receiver.slot().pages(), place, 4));
    receiver.set_ready(3);
    EXPECT_EQ(sender.ready(), 3u);
  }
  PartitionBoard next;
  EXPECT_OK(next.make(shelf, 4));
  EXPECT_NE(next.slot().offset_bytes(), place);
  std::destroy_at(&sender);
  std::construct_at(&sender);
  PartitionBoard last;
  EXPECT_OK(last.make(shelf, 4));
  EXPECT_EQ(last.slot().offset_bytes(), place);
  EXPECT_EQ(last.ready(), 0u);
}

TEST(SharedPages, ABoardOutsideThePagesIsRefused) {
  PageShelf shelf;
  PartitionBoard receiver;
  EXPECT_OK(receiver.make(shelf, 4));
  const auto& pages = receiver.slot().pages();
  PartitionBoard sender;
  EXPECT_FALSE(sender.map(pages, pages->size_bytes() - 64, 4).ok());
  EXPECT_FALSE(sender.map(pages, pages->size_bytes() + 64, 4).ok());
  EXPECT_FALSE(sender.map(pages, 0, 1 << 30).ok());
}

}  // namespace
}  // namespace accord::node

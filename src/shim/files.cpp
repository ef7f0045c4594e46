// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/files.h"

namespace accord::shim {

void SplitTransfers::begin(MPI_File file, Description d) {
  const std::lock_guard<std::mutex> locked(mutex_);
  by_file_.insert_or_assign(to_bits(file), std::move(d));
  count_.store(by_file_.size());
}

std::optional<Description> SplitTransfers::end(MPI_File file) {
  if (count_.load() == 0) return std::nullopt;
  const std::lock_guard<std::mutex> locked(mutex_);
  const auto found = by_file_.find(to_bits(file));
  if (found == by_file_.end()) return std::nullopt;
  std::optional<Description> d = std::move(found->second);
  by_file_.erase(found);
  count_.store(by_file_.size());
  return d;
}

// Never destroyed: MPI may be called from destructors of the program.
SplitTransfers& split_transfers() {
  static SplitTransfers& instance = *new SplitTransfers;
  return instance;
}

}  // namespace accord::shim

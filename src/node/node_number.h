// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Which node this process is on. For tests one machine may be split into several: then its
// processes share memory only with those of the same part.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"

namespace accord::node {

// Equal in processes that can share memory: those of one kernel, whatever containers they are in,
// and of one part of it.
std::uint64_t node_number();

// The part that `rank` is in, as ACCORD_NODE_SPLIT says; nothing where that is "off".
Status part_of(std::string_view split, int rank, std::optional<int>& part);

// Before anybody asks for the number of this process's node.
void enter_part(int part) noexcept;
// Nothing: the machine is not split.
std::optional<int> own_part() noexcept;

}  // namespace accord::node

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/host/direct.h"

#include <array>

#include "device/host/reach.h"
#include "device/reduce_on_host.h"

namespace accord::device {

Status do_direct_work(const HostArena& arena, const DirectWork& work) {
  for (const Copy& copy : work.copies) {
    ReachableCopy reachable;
    ACCORD_TRY(reach(arena, copy, reachable));
    reachable.run();
  }
  if (work.update == nullptr) return Status();
  DirectUpdate update = *work.update;
  std::array<HostAllocationRef, 4> owners;
  const auto make_reachable = [&](auto& pointer, HostAllocationRef& owner) {
    if (pointer == nullptr) return Status();
    auto* const user = static_cast<std::byte*>(const_cast<void*>(pointer));
    std::byte* reachable = nullptr;
    ACCORD_TRY(reach(arena, {user, update.size_bytes, 1, 0}, reachable, owner));
    pointer = reachable;
    return Status();
  };
  ACCORD_TRY(make_reachable(update.target, owners[0]));
  ACCORD_TRY(make_reachable(update.operand, owners[1]));
  ACCORD_TRY(make_reachable(update.compare, owners[2]));
  ACCORD_TRY(make_reachable(update.result, owners[3]));
  update_on_host(update);
  return Status();
}

}  // namespace accord::device

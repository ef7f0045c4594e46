// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/lineage.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "shim/shim.h"
#include "shim/world_ranks.h"

namespace accord::shim {
namespace {

struct Lineage {
  std::uint64_t number = 0;
  std::uint64_t children = 0;    // made by calls of all its ranks, but for duplicates
  std::uint64_t duplicates = 0;  // which Open MPI names when MPI_Comm_idup has completed, not when
                                 // it is called
  bool has_idups = false;        // so that the order of its duplicates may differ by rank
  bool is_sure = true;
};

int lineage_keyval = MPI_KEYVAL_INVALID;

constexpr std::uint64_t kWorld = 1;
constexpr std::uint64_t kSelf = 2;

// A finaliser of 64 bits: flips half of the bits for each one that differs.
std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15ull + b;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

std::uint64_t next_child(Lineage& parent) { return mixed(parent.number, ++parent.children) | 4; }
std::uint64_t last_duplicate(const Lineage& parent) {
  return mixed(~parent.number, parent.duplicates) | 4;
}
std::uint64_t next_duplicate(Lineage& parent) {
  ++parent.duplicates;
  return last_duplicate(parent);
}

int copy_lineage(MPI_Comm, int, void*, void* given, void* copy, int* copied) {
  Lineage& parent = *static_cast<Lineage*>(given);
  auto* const made = new Lineage{.number = next_duplicate(parent)};
  made->is_sure = parent.is_sure && !parent.has_idups;
  *static_cast<void**>(copy) = made;
  *copied = 1;
  return MPI_SUCCESS;
}
int delete_lineage(MPI_Comm, int, void* value, void*) {
  delete static_cast<Lineage*>(value);
  return MPI_SUCCESS;
}

Lineage* find_lineage(MPI_Comm comm) {
  void* value = nullptr;
  int found = 0;
  if (lineage_keyval == MPI_KEYVAL_INVALID || comm == MPI_COMM_NULL ||
      host::Comm_get_attr(comm, lineage_keyval, &value, &found) != MPI_SUCCESS || found == 0)
    return nullptr;
  return static_cast<Lineage*>(value);
}

void name(MPI_Comm comm, std::uint64_t number, bool is_sure = true) {
  if (comm == MPI_COMM_NULL) return;
  auto made = std::make_unique<Lineage>(Lineage{.number = number});
  made->is_sure = is_sure;
  if (host::Comm_set_attr(comm, lineage_keyval, made.get()) == MPI_SUCCESS) (void)made.release();
}

// Open MPI copies attributes in MPI_Comm_create_group, too, on the ranks of the group alone: what
// has been counted there as a duplicate is none.
void discount(Lineage& parent, MPI_Comm child) {
  const Lineage* const copied = find_lineage(child);
  if (copied == nullptr || copied->number != last_duplicate(parent)) return;
  --parent.duplicates;
  (void)host::Comm_delete_attr(child, lineage_keyval);
}

// Of the ranks of a group in MPI_COMM_WORLD; nothing where some are not in it.
std::optional<std::uint64_t> hash_of_members(MPI_Comm comm, Side side) {
  int size = 0;
  const int code =
      side == Side::local ? host::Comm_size(comm, &size) : host::Comm_remote_size(comm, &size);
  if (code != MPI_SUCCESS) return std::nullopt;
  const std::vector<int> in_world = ranks_in_world(comm, size, side);
  if (in_world.empty() || std::ranges::count(in_world, MPI_UNDEFINED) != 0) return std::nullopt;
  return std::accumulate(in_world.begin(), in_world.end(), std::uint64_t{0},
                         [](std::uint64_t hash, int rank) {
                           return mixed(hash, static_cast<std::uint64_t>(rank) + 1);
                         });
}

// How often these members have made a communicator with this tag.
std::uint64_t count_of(std::uint64_t members_and_tag) {
  static std::mutex& mutex = *new std::mutex;
  static auto& counts = *new std::map<std::uint64_t, std::uint64_t>;
  const std::lock_guard<std::mutex> locked(mutex);
  return ++counts[members_and_tag];
}

}  // namespace

std::uint64_t lineage_of(MPI_Comm comm) {
  const Lineage* const found = find_lineage(comm);
  return found != nullptr ? found->number : 0;
}

std::uint64_t sure_lineage_of(MPI_Comm comm) {
  const Lineage* const found = find_lineage(comm);
  return found != nullptr && found->is_sure ? found->number : 0;
}

void descend(MPI_Comm parent, MPI_Comm child) {
  Lineage* const found = find_lineage(parent);
  if (found == nullptr) return;
  discount(*found, child);
  name(child, next_child(*found), found->is_sure);
}

void begin_idup(MPI_Comm parent) {
  if (Lineage* const found = find_lineage(parent)) found->has_idups = true;
}

void descend_by_members(MPI_Comm parent, std::uint64_t tag, MPI_Comm child) {
  if (lineage_keyval == MPI_KEYVAL_INVALID || child == MPI_COMM_NULL) return;
  int inter = 0;
  Lineage* const found = find_lineage(parent);
  if (found != nullptr) discount(*found, child);
  (void)host::Comm_test_inter(child, &inter);
  const auto local = hash_of_members(child, Side::local);
  const auto remote = inter != 0 ? hash_of_members(child, Side::remote) : local;
  if (!local || !remote) return;
  const std::uint64_t key = mixed(mixed(mixed(lineage_of(parent), tag), std::min(*local, *remote)),
                                  std::max(*local, *remote));
  name(child, mixed(key, count_of(key)) | 4, found == nullptr || found->is_sure);
}

void start_lineages() {
  if (lineage_keyval != MPI_KEYVAL_INVALID ||
      host::Comm_create_keyval(copy_lineage, delete_lineage, &lineage_keyval, nullptr) !=
          MPI_SUCCESS)
    return;
  name(MPI_COMM_WORLD, kWorld);
  name(MPI_COMM_SELF, kSelf);
}
void stop_lineages() {
  if (lineage_keyval != MPI_KEYVAL_INVALID) (void)host::Comm_free_keyval(&lineage_keyval);
}

}  // namespace accord::shim

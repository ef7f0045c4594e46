// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/kept_handles.h"

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "shim/canonical.h"
#include "shim/shim.h"
#include "shim/typemap.h"

namespace accord::shim {
namespace {

struct Kept {
  std::mutex mutex;
  std::vector<MPI_Datatype> datatypes;
  std::vector<MPI_Op> ops;
  std::atomic<bool> any{false};

  // Of datatypes that KeptTypes name.
  struct Use {
    int count = 0;
    bool is_freed = false;  // by the program
  };
  std::unordered_map<std::uint64_t, Use> uses;
};

// Never destroyed: MPI may be called from destructors of the program.
Kept& kept() {
  static Kept& instance = *new Kept;
  return instance;
}

std::atomic<int> handle_uses{0};

// A request of a reduction in rank order, too, has something left to do with its handles.
bool needs_no_handles() {
  return engine().idle() && handle_uses.load() == 0 &&
         (!job.wants_rank_order || requests().empty());
}

}  // namespace

HandleUse::HandleUse() { handle_uses.fetch_add(1); }
HandleUse::~HandleUse() { handle_uses.fetch_sub(1); }

void free_kept_handles() {
  if (!kept().any.load(std::memory_order_relaxed) || !needs_no_handles()) return;
  std::vector<MPI_Datatype> datatypes;
  std::vector<MPI_Op> ops;
  {
    const std::lock_guard<std::mutex> locked(kept().mutex);
    if (!needs_no_handles())
      return;  // asked again: what is kept was kept after its call had been submitted
    datatypes.swap(kept().datatypes);
    ops.swap(kept().ops);
    kept().any = false;
  }
  for (MPI_Datatype& datatype : datatypes) (void)host::Type_free(&datatype);
  for (MPI_Op& op : ops) (void)host::Op_free(&op);
}

KeptType::KeptType(MPI_Datatype datatype) : handle_(datatype) {
  const std::lock_guard<std::mutex> locked(kept().mutex);
  ++kept().uses[to_bits(datatype)].count;
}

KeptType::~KeptType() {
  bool is_freed = false;
  {
    const std::lock_guard<std::mutex> locked(kept().mutex);
    const auto use = kept().uses.find(to_bits(handle_));
    if (--use->second.count != 0) return;
    is_freed = use->second.is_freed;
    kept().uses.erase(use);
  }
  if (is_freed) (void)Type_free(&handle_);
}

int Type_free(MPI_Datatype* datatype) {
  free_kept_handles();
  // Mistakes are the host MPI's to report.
  if (datatype == nullptr || *datatype == MPI_DATATYPE_NULL || is_named(*datatype))
    return host::Type_free(datatype);
  {
    const std::lock_guard<std::mutex> locked(kept().mutex);
    if (const auto use = kept().uses.find(to_bits(*datatype)); use != kept().uses.end()) {
      use->second.is_freed = true;
      *datatype = MPI_DATATYPE_NULL;
      return MPI_SUCCESS;
    }
    if (!needs_no_handles()) {
      kept().datatypes.push_back(*datatype);
      kept().any = true;
      *datatype = MPI_DATATYPE_NULL;
      return MPI_SUCCESS;
    }
  }
  return host::Type_free(datatype);
}

int Op_free(MPI_Op* op) {
  free_kept_handles();
  if (needs_no_handles() || op == nullptr || *op == MPI_OP_NULL || canonical_op(*op) != 0 ||
      *op == MPI_REPLACE || *op == MPI_NO_OP)
    return host::Op_free(op);
  const std::lock_guard<std::mutex> locked(kept().mutex);
  kept().ops.push_back(*op);
  kept().any = true;
  *op = MPI_OP_NULL;
  return MPI_SUCCESS;
}

}  // namespace accord::shim

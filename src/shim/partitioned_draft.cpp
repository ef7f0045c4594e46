// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/partitioned_draft.h"

#include <algorithm>
#include <climits>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <string_view>
#include <utility>

#include "shim/canonical.h"
#include "shim/coll_args.h"
#include "shim/describe.h"
#include "shim/host_progress.h"
#include "shim/kept_handles.h"
#include "shim/lineage.h"
#include "shim/partitioned.h"
#include "shim/world_ranks.h"

namespace accord::shim {
namespace {

std::uint64_t hash_with(std::uint64_t hash, std::uint64_t value) {
  std::uint64_t x = (hash ^ value) * 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ull;
  return x ^ (x >> 32);
}

// Equal on all ranks, which run one program.
std::uint64_t hash_of_text(std::string_view text) {
  return std::accumulate(text.begin(), text.end(), std::uint64_t{0}, [](auto hash, char letter) {
    return hash_with(hash, static_cast<unsigned char>(letter));
  });
}

// The datatype and the operation of a reduction, for all its rounds whatever the program frees.
class LocalReduction {
 public:
  LocalReduction(MPI_Datatype datatype, MPI_Op op) : datatype_(datatype), op_(op) {}

  Status reduce(const void* in, void* inout, std::size_t count) const {
    const MPI_Aint extent = extent_of(datatype_.handle());
    const auto* from = static_cast<const std::byte*>(in);
    auto* to = static_cast<std::byte*>(inout);
    while (count > 0) {
      const int part = static_cast<int>(std::min<std::size_t>(count, INT_MAX));
      ACCORD_TRY(Status::from_host(host::Reduce_local(from, to, part, datatype_.handle(), op_)));
      from += part * extent;
      to += part * extent;
      count -= static_cast<std::size_t>(part);
    }
    return {};
  }

 private:
  KeptType datatype_;
  MPI_Op op_;
  HandleUse use_;
};

}  // namespace

PartitionedDraft::PartitionedDraft(const Frame& frame) : frame_(frame) { begin(); }

void PartitionedDraft::begin() {
  const CommState* const state = comm_state(frame_.comm);
  if (state == nullptr) {
    int size = 0;
    error_ = host::Comm_size(frame_.comm, &size);  // which raises what is wrong with it
    if (error_ == MPI_SUCCESS) error_ = MPI_ERR_COMM;
    return;
  }
  partitioned::PartitionedTable* const table = partitioned_table();
  const std::uint64_t lineage = lineage_of(frame_.comm);
  if (state->inter) return refuse(MPI_ERR_COMM);
  if (table == nullptr || lineage == 0)
    return refuse({StatusCode::unsupported,
                   std::string(frame_.name) +
                       ": Accord carries no partitioned requests, or not on this communicator"});
  {
    const std::lock_guard<std::mutex> locked(table->mutex());
    plan_.name = table->next_collective(lineage);
  }
  if (frame_.partitions < 1 || frame_.request == nullptr) return refuse(MPI_ERR_ARG);
  plan_.rank = state->rank;
  plan_.gives = plan_.gets = true;
  plan_.processes = ranks_in_world(frame_.comm, state->size);
  if (std::ranges::find(plan_.processes, MPI_UNDEFINED) != plan_.processes.end())
    return refuse({StatusCode::unsupported,
                   std::string(frame_.name) +
                       ": the host MPI does not say who the ranks are in MPI_COMM_WORLD"});
  agree(hash_of_text(frame_.name));
  agree(static_cast<std::uint64_t>(frame_.partitions));
}

Cells PartitionedDraft::one(const void* buffer, MPI_Count count, MPI_Datatype datatype) const {
  return alike(buffer, 1, count, datatype);
}

Cells PartitionedDraft::alike(const void* buffer, int blocks, MPI_Count count,
                              MPI_Datatype datatype) const {
  return consecutive(buffer, std::vector<MPI_Count>(static_cast<std::size_t>(blocks), count),
                     datatype);
}

Cells PartitionedDraft::consecutive(const void* buffer, const std::vector<MPI_Count>& counts,
                                    MPI_Datatype datatype) const {
  Cells made{buffer};
  const MPI_Aint extent = extent_of(datatype);
  MPI_Aint offset_bytes = 0;
  for (const MPI_Count count : counts) {
    made.cells.push_back({count, datatype, offset_bytes});
    offset_bytes += static_cast<MPI_Aint>(count) * frame_.partitions * extent;
  }
  return made;
}

Cells PartitionedDraft::by_counts(const void* buffer, int blocks, const int counts[],
                                  const int displacements[], MPI_Datatype datatype) const {
  Cells made{buffer};
  const MPI_Aint extent = extent_of(datatype);
  for (int i = 0; i < blocks; ++i)
    made.cells.push_back({counts[i], datatype, displacements[i] * extent});
  return made;
}

void PartitionedDraft::fill(partitioned::PartitionArea& area, const Cells& cells) {
  std::size_t total_bytes = 0;
  for (const Cell& cell : cells.cells) {
    if (cell.count < 0) return refuse(MPI_ERR_COUNT);
    const auto type = cell.datatype == MPI_DATATYPE_NULL ? nullptr : typemap(cell.datatype);
    if (!type) return refuse(MPI_ERR_TYPE);
    const core::Segment segment{type, static_cast<std::size_t>(cell.count), cell.offset_bytes};
    area.blocks.push_back(segment);
    total_bytes += segment.size_bytes();
  }
  if (cells.buffer == MPI_BOTTOM || cells.buffer == MPI_IN_PLACE) {
    if (total_bytes > 0) refuse(MPI_ERR_BUFFER);
    return;
  }
  area.end = call_end(Description::buffer(cells.buffer), 0, MPI_BYTE);
}

void PartitionedDraft::check_root(int root) {
  if (root < 0 || root >= size()) refuse(MPI_ERR_ROOT);
  agree(static_cast<std::uint64_t>(root));
}

void PartitionedDraft::agree(std::uint64_t value) {
  plan_.fingerprint = hash_with(plan_.fingerprint, value + 1);
}

void PartitionedDraft::agree_on_bytes(MPI_Count count, MPI_Datatype datatype) {
  agree(static_cast<std::uint64_t>(count) *
        static_cast<std::uint64_t>(datatype == MPI_DATATYPE_NULL ? 0 : size_of(datatype)));
}

// Of types of which nothing is known the host MPI says it when it reduces.
void PartitionedDraft::check_operation(MPI_Datatype datatype, MPI_Op op) {
  const bool predefined = op != MPI_OP_NULL && canonical_op(op) != 0;
  if (op == MPI_OP_NULL || op == MPI_REPLACE || op == MPI_NO_OP) return refuse(MPI_ERR_OP);
  if (datatype == MPI_DATATYPE_NULL || !typemap(datatype)) return refuse(MPI_ERR_TYPE);
  if (predefined &&
      (!is_named(datatype) || (canonical_type(datatype) != 0 && !takes_operation(datatype, op))))
    refuse(MPI_ERR_OP);
}

partitioned::ReductionOutline PartitionedDraft::reduces(std::size_t count, MPI_Datatype datatype,
                                                        MPI_Op op, Made made) {
  check_operation(datatype, op);
  if (!good()) return {};
  int commutes = 0;
  if (const int code = host::Op_commutative(op, &commutes); code != MPI_SUCCESS) {
    refuse(Status::from_host(code));
    return {};
  }
  const auto type = typemap(datatype);
  const bool commutative = commutes != 0 && !job.wants_rank_order;
  agree(canonical_op(op));
  const auto local = std::make_shared<LocalReduction>(datatype, op);
  plan_.reduction = {
      .type = type,
      .count = count,
      .commutative = commutative,
      .reduce = [local](const void* in, void* inout,
                        std::size_t elements) { return local->reduce(in, inout, elements); },
      .op = device_op(op),
      .element = device_element(device_op(op), datatype, type->size_bytes()),
      .in_result = made == Made::in_result};
  return {.rank = rank(),
          .size = size(),
          .count = count,
          .element_bytes = type->size_bytes(),
          .commutative = commutative,
          .in_rank_order = job.wants_rank_order};
}

int PartitionedDraft::finish(partitioned::Schedule schedule) {
  if (!good()) return fail();
  plan_.schedule = std::move(schedule);
  partitioned::PartitionedCall call;
  call.end = plan_.contribution.end.on_device ? plan_.contribution.end : plan_.result.end;
  call.partitions = frame_.partitions;
  call.peer_rank = MPI_ANY_SOURCE;
  call.envelope.tag = MPI_ANY_TAG;
  if (Status status = read_info(frame_.info, call); !status.ok()) {
    refuse(std::move(status));
    return fail();
  }
  const auto request = std::make_shared<partitioned::PartitionedCollective>(
      *partitioned_table(), std::move(call), std::move(plan_));
  progress_from_host();
  core::HostRequest held = 0;
  Status status = request->open();
  if (status.ok())
    status =
        partitioned::hold_partitioned(engine(), requests(), request, to_bits(frame_.comm), held);
  if (status.ok()) *frame_.request = from_bits<MPI_Request>(held);
  return raise(frame_.comm, status);
}

int PartitionedDraft::fail() {
  if (!status_.ok()) return raise(frame_.comm, status_);
  if (frame_.comm != MPI_COMM_NULL && comm_state(frame_.comm) != nullptr)
    raise_code(frame_.comm, error_);
  return error_;
}

}  // namespace accord::shim

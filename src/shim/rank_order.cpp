// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/rank_order.h"

#include <cstdint>
#include <cstring>
#include <new>
#include <numeric>
#include <utility>

namespace accord::shim {
namespace {

// What any predefined type is aligned to, in the memory of the contributions as in the user's.
constexpr std::size_t kAlignment = alignof(std::max_align_t);

std::ptrdiff_t aligned(std::ptrdiff_t bytes) {
  constexpr auto kStep = static_cast<std::ptrdiff_t>(kAlignment);
  return (bytes + kStep - 1) / kStep * kStep;
}

}  // namespace

RankOrderReduction::RankOrderReduction(RankOrderCall call) : call_(std::move(call)) {
  const auto count = static_cast<std::size_t>(call_.own_count());
  result_ = {count == 0 ? nullptr : typemap(call_.datatype), count, 0};
  if (call_.gathering != RankOrderCall::Gathering::blocks) return;
  send_displs_.resize(call_.counts.size());
  std::exclusive_scan(call_.counts.begin(), call_.counts.end(), send_displs_.begin(), 0);
}

RankOrderReduction::~RankOrderReduction() {
  if (contribution_type_ != MPI_DATATYPE_NULL && !is_named(contribution_type_))
    (void)host::Type_free(&contribution_type_);
}

// Contributions never overlap here, even where consecutive elements of the user's type interleave.
int RankOrderReduction::make_memory() {
  if (contribution_type_ != MPI_DATATYPE_NULL) return MPI_SUCCESS;
  const bool named = is_named(call_.datatype);
  const bool receives =
      call_.gathering != RankOrderCall::Gathering::to_root || call_.contributors > 0;
  const std::ptrdiff_t low_bytes = result_.type ? result_.low_bytes() : 0;
  const std::ptrdiff_t high_bytes = result_.type ? result_.high_bytes() : 0;
  stride_bytes_ = named ? call_.own_count() * static_cast<std::ptrdiff_t>(extent_of(call_.datatype))
                        : aligned(high_bytes - low_bytes);
  if (receives) {
    int ranks = 0;
    (void)host::Comm_size(call_.comm, &ranks);
    const std::size_t size_bytes =
        static_cast<std::size_t>(stride_bytes_) * static_cast<std::size_t>(ranks) + 2 * kAlignment;
    memory_.reset(new (std::nothrow) std::byte[size_bytes]);
    if (!memory_) return MPI_ERR_NO_MEM;
    const auto first = reinterpret_cast<std::intptr_t>(memory_.get()) - low_bytes;
    origin_ = reinterpret_cast<std::byte*>(aligned(first));
  }
  contribution_count_ = named ? call_.own_count() : 1;
  if (call_.gathering == RankOrderCall::Gathering::blocks) {
    for (std::size_t peer = 0; peer < call_.counts.size(); ++peer) {
      recv_counts_.push_back(call_.own_count() == 0 ? 0 : contribution_count_);
      recv_displs_.push_back(static_cast<int>(peer) * contribution_count_);
    }
  }
  if (named) {
    contribution_type_ = call_.datatype;
    return MPI_SUCCESS;
  }
  MPI_Datatype row = MPI_DATATYPE_NULL;
  int code = host::Type_contiguous(call_.own_count(), call_.datatype, &row);
  if (code != MPI_SUCCESS) return code;
  code = host::Type_create_resized(row, low_bytes, stride_bytes_, &contribution_type_);
  (void)host::Type_free(&row);
  return code == MPI_SUCCESS ? host::Type_commit(&contribution_type_) : code;
}

template <class Allgather, class Gather, class Alltoallv>
int RankOrderReduction::gather(const void* send, void* recv, Allgather allgather, Gather to_root,
                               Alltoallv alltoallv) {
  if (const int code = make_memory(); code != MPI_SUCCESS) return code;
  const void* const from = send == MPI_IN_PLACE ? recv : send;
  switch (call_.gathering) {
    case RankOrderCall::Gathering::all:
      return allgather(from, call_.own_count(), call_.datatype, origin_, contribution_count_,
                       contribution_type_, call_.comm);
    case RankOrderCall::Gathering::to_root:
      return to_root(from, call_.own_count(), call_.datatype, origin_, contribution_count_,
                     contribution_type_, call_.root, call_.comm);
    case RankOrderCall::Gathering::blocks:
      return alltoallv(from, call_.counts.data(), send_displs_.data(), call_.datatype, origin_,
                       recv_counts_.data(), recv_displs_.data(), contribution_type_, call_.comm);
  }
  return MPI_ERR_INTERN;
}

int RankOrderReduction::block(const void* send, void* recv) {
  return gather(
      send, recv, [](auto... arguments) { return host::Allgather(arguments...); },
      [](auto... arguments) { return host::Gather(arguments...); },
      [](auto... arguments) { return host::Alltoallv(arguments...); });
}

int RankOrderReduction::start(const void* send, void* recv, MPI_Request* request) {
  return gather(
      send, recv, [=](auto... arguments) { return host::Iallgather(arguments..., request); },
      [=](auto... arguments) { return host::Igather(arguments..., request); },
      [=](auto... arguments) { return host::Ialltoallv(arguments..., request); });
}

int RankOrderReduction::init([[maybe_unused]] const void* send, [[maybe_unused]] void* recv,
                             [[maybe_unused]] MPI_Request* request) {
#ifdef ACCORD_HAS_Allgather_init
  return gather(
      send, recv,
      [=](auto... arguments) { return host::Allgather_init(arguments..., MPI_INFO_NULL, request); },
      [=](auto... arguments) { return host::Gather_init(arguments..., MPI_INFO_NULL, request); },
      [=](auto... arguments) {
        return host::Alltoallv_init(arguments..., MPI_INFO_NULL, request);
      });
#else
  return MPI_ERR_UNSUPPORTED_OPERATION;
#endif
}

// Reduce_local puts `in op inout` into inout: the later rank's contribution, and at last the user's
// buffer, of which gaps stay what they are.
int RankOrderReduction::reduce_into(void* recv) {
  if (call_.contributors == 0 || result_.count == 0) return MPI_SUCCESS;
  const int last = call_.contributors - 1;
  for (int from = 1; from < last; ++from) {
    const int code = host::Reduce_local(contribution(from - 1), contribution(from),
                                        call_.own_count(), call_.datatype, call_.op);
    if (code != MPI_SUCCESS) return code;
  }
  copy_elements(recv, contribution(last));
  if (last == 0) return MPI_SUCCESS;
  return host::Reduce_local(contribution(last - 1), recv, call_.own_count(), call_.datatype,
                            call_.op);
}

void RankOrderReduction::copy_elements(void* dst, const void* src) const {
  core::for_each_piece(result_, 0, result_.size_bytes(),
                       [&](std::ptrdiff_t offset_bytes, std::size_t, std::size_t length_bytes) {
                         std::memcpy(static_cast<std::byte*>(dst) + offset_bytes,
                                     static_cast<const std::byte*>(src) + offset_bytes,
                                     length_bytes);
                       });
}

}  // namespace accord::shim

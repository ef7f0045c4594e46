// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/library/plan.h"

#include <algorithm>
#include <optional>

namespace accord::coll {
namespace {

using device::Element;
using device::ReduceOp;
using node::Kind;

static_assert(static_cast<int>(Element::int8) == ACCORD_CCL_INT8 &&
              static_cast<int>(Element::float64) == ACCORD_CCL_FLOAT64);
static_assert(static_cast<int>(ReduceOp::sum) == ACCORD_CCL_SUM &&
              static_cast<int>(ReduceOp::max) == ACCORD_CCL_MAX);

struct Reduced {
  accord_ccl_type type;
  accord_ccl_op op;
};

// Whether the blocks are whole numbers of `element_bytes`; nobody knows where pairs have sizes of
// their own.
bool is_whole(const node::Call& call, std::size_t element_bytes) {
  if (node::goes_by_pairs(call.kind)) return false;
  return call.block_bytes % element_bytes == 0 &&
         std::ranges::all_of(call.blocks_bytes,
                             [=](std::size_t bytes) { return bytes % element_bytes == 0; });
}

// Bytes, or for libraries that do not know bytes numbers that are copied as they are.
Reduced moved(const ccl::Library& library, const node::Call& call) {
  const bool bytes = library.supports(ACCORD_CCL_SEND, ACCORD_CCL_UINT8, ACCORD_CCL_NONE) ||
                     !is_whole(call, sizeof(float));
  return {bytes ? ACCORD_CCL_UINT8 : ACCORD_CCL_FLOAT32, ACCORD_CCL_NONE};
}

// Nothing where no library does it. The sum of complex numbers is that of their parts.
std::optional<Reduced> reduced(const ccl::Library& library, const node::Call& call) {
  if (call.op == ReduceOp::none) return moved(library, call);
  const bool sums = call.op == ReduceOp::sum;
  if (sums && call.element == Element::complex64)
    return Reduced{ACCORD_CCL_FLOAT32, ACCORD_CCL_SUM};
  if (sums && call.element == Element::complex128)
    return Reduced{ACCORD_CCL_FLOAT64, ACCORD_CCL_SUM};
  if (call.op > ReduceOp::max || call.element > Element::float64) return std::nullopt;
  return Reduced{static_cast<accord_ccl_type>(call.element), static_cast<accord_ccl_op>(call.op)};
}

// The library's call for the whole of it; nothing where it is composed.
std::optional<accord_ccl_call> whole_call(const node::Call& call) {
  const bool uneven = !call.blocks_bytes.empty();
  switch (call.kind) {
    case Kind::bcast:
      return ACCORD_CCL_BCAST;
    case Kind::reduce:
      return ACCORD_CCL_REDUCE;
    case Kind::allreduce:
      return ACCORD_CCL_ALLREDUCE;
    case Kind::allgather:
      return ACCORD_CCL_ALLGATHER;
    case Kind::alltoall:
      return ACCORD_CCL_ALLTOALL;
    case Kind::gather:
      return ACCORD_CCL_GATHER;
    case Kind::scatter:
      return ACCORD_CCL_SCATTER;
    case Kind::reduce_scatter_block:
      return ACCORD_CCL_REDUCE_SCATTER;
    case Kind::reduce_scatter:
      if (uneven) return std::nullopt;
      return ACCORD_CCL_REDUCE_SCATTER;
    case Kind::allgatherv:
      if (uneven) return std::nullopt;
      return ACCORD_CCL_ALLGATHER;
    default:
      return std::nullopt;
  }
}

}  // namespace

bool CclPlan::exists(const ccl::Library& library, const node::Call& call) {
  if (call.kind == Kind::scan || call.kind == Kind::exscan) return false;
  const auto as = reduced(library, call);
  if (!as) return false;
  const auto has = [&](accord_ccl_call one) { return library.supports(one, as->type, as->op); };
  if (const auto whole = whole_call(call); whole && has(*whole)) return true;
  if (call.kind == Kind::reduce_scatter) return has(ACCORD_CCL_REDUCE);
  return as->op == ACCORD_CCL_NONE && has(ACCORD_CCL_SEND) && has(ACCORD_CCL_RECV);
}

CclPlan::CclPlan(const ccl::Library& library, const node::Call& call, int rank, bool in_place)
    : library_(library), call_(call), geometry_(call), rank_(rank) {
  find_type();
  find_ranges(in_place);
}

void CclPlan::find_type() {
  const Reduced as = *reduced(library_, call_);
  type_ = as.type;
  op_ = as.op;
  // Those of a complex number's parts are the same.
  type_bytes_ = device::element_bytes(static_cast<Element>(type_));
  alignment_bytes_ = type_bytes_;
}

void CclPlan::find_ranges(bool in_place) {
  const node::Pattern& pattern = geometry_.pattern();
  in_ = geometry_.contribution(rank_, in_place);
  out_ = geometry_.result(rank_, in_place);
  keeps_own_ = geometry_.keeps_own_block(rank_, in_place);
  // The library's own call writes that of an allgather, too, with what is there.
  if (keeps_own_ && (pattern.to_root || (pattern.blocks_out && is_composed())))
    kept_ = geometry_.block(rank_);
  needs_apart_ = pattern.blocks_in && !pattern.from_root;
}

bool CclPlan::is_composed() const {
  const auto whole = whole_call(call_);
  return !whole || !library_.supports(*whole, type_, op_);
}

ccl::Work CclPlan::work(accord_ccl_call call, const std::byte* send, std::byte* recv,
                        std::size_t length_bytes, int peer) const {
  return {call, type_, op_, send, recv, length_bytes / type_bytes_, peer};
}

std::vector<ccl::Work> CclPlan::works(const std::byte* in, std::byte* out) const {
  if (is_composed())
    return geometry_.pattern().reduces ? block_reductions(in, out) : messages(in, out);
  if (call_.kind == Kind::bcast) {
    if (rank_ == call_.root) out = const_cast<std::byte*>(in);
    in = out;
  }
  // A root in place has its own block among the others, where it is to stay.
  if (call_.kind == Kind::gather && in == nullptr) in = out + geometry_.first(rank_);
  if (call_.kind == Kind::scatter && out == nullptr)
    out = const_cast<std::byte*>(in) + geometry_.first(rank_);
  return {work(*whole_call(call_), in, out, call_.block_bytes, call_.root)};
}

// To and from whom, block by block; what a rank sends itself comes by the same way.
std::vector<ccl::Work> CclPlan::messages(const std::byte* in, std::byte* out) const {
  std::vector<ccl::Work> made;
  for (int peer = 0; peer < call_.size; ++peer) {
    if (peer == rank_ && keeps_own_) continue;
    const std::size_t sent = geometry_.length(rank_, peer);
    const std::size_t received = geometry_.length(peer, rank_);
    if (geometry_.moves(rank_, peer) && sent != 0)
      made.push_back(work(ACCORD_CCL_SEND, in + geometry_.place_in(peer), nullptr, sent, peer));
    if (geometry_.moves(peer, rank_) && received != 0)
      made.push_back(
          work(ACCORD_CCL_RECV, nullptr, out + geometry_.place_out(peer), received, peer));
  }
  return made;
}

// Every block to its rank, all at once.
std::vector<ccl::Work> CclPlan::block_reductions(const std::byte* in, std::byte* out) const {
  std::vector<ccl::Work> made;
  for (int peer = 0; peer < call_.size; ++peer) {
    const node::Range block = geometry_.block(peer);
    if (block.length_bytes == 0) continue;
    made.push_back(work(ACCORD_CCL_REDUCE, in + block.first_bytes, peer == rank_ ? out : nullptr,
                        block.length_bytes, peer));
  }
  return made;
}

}  // namespace accord::coll

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "coll/library/plan.h"

#include <algorithm>
#include <optional>

namespace accord::core {
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

bool scatters_result(Kind kind) {
  return kind == Kind::reduce_scatter || kind == Kind::reduce_scatter_block;
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
    : library_(library), call_(call), rank_(rank) {
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
  const bool is_root = rank_ == call_.root;
  const auto whole = [this] { return Range{0, block_first(call_.size)}; };
  const auto own = [this] { return Range{block_first(rank_), block_bytes(rank_)}; };
  const Range first{0, block_bytes(rank_)};
  switch (call_.kind) {
    case Kind::bcast:
      (is_root ? in_ : out_) = first;
      break;
    case Kind::reduce:
      in_ = first;
      if (is_root) out_ = first;
      break;
    case Kind::allreduce:
      in_ = out_ = first;
      break;
    case Kind::allgather:
    case Kind::allgatherv:
      in_ = in_place ? own() : first;
      out_ = whole();
      // The library's own call writes that too, with what is there.
      if (in_place && !whole_call(call_)) kept_ = own();
      break;
    case Kind::alltoall:
      in_ = out_ = whole();
      needs_apart_ = true;
      break;
    case Kind::gather:
      if (!(is_root && in_place)) in_ = first;
      if (is_root) out_ = whole();
      if (is_root && in_place) kept_ = own();
      break;
    case Kind::scatter:
      if (is_root) in_ = whole();
      if (!(is_root && in_place)) out_ = first;
      break;
    default:  // reduce_scatter, reduce_scatter_block
      in_ = whole();
      out_ = first;
      needs_apart_ = true;
  }
}

// Of the packed whole, where there are blocks; else of every rank.
std::size_t CclPlan::block_bytes(int rank) const {
  return call_.blocks_bytes.empty() ? call_.block_bytes
                                    : call_.blocks_bytes[static_cast<std::size_t>(rank)];
}

std::size_t CclPlan::block_first(int rank) const {
  std::size_t first = 0;
  for (int before = 0; before < rank; ++before) first += block_bytes(before);
  return first;
}

ccl::Work CclPlan::work(accord_ccl_call call, const std::byte* send, std::byte* recv,
                        std::size_t length_bytes, int peer) const {
  return {call, type_, op_, send, recv, length_bytes / type_bytes_, peer};
}

std::vector<ccl::Work> CclPlan::works(const std::byte* in, std::byte* out) const {
  const auto whole = whole_call(call_);
  const bool composed = !whole || !library_.supports(*whole, type_, op_);
  if (composed && scatters_result(call_.kind)) return block_reductions(in, out);
  if (composed) return messages(in, out);
  if (call_.kind == Kind::bcast) {
    if (rank_ == call_.root) out = const_cast<std::byte*>(in);
    in = out;
  }
  // A root in place has its own block among the others, where it is to stay.
  if (call_.kind == Kind::gather && in == nullptr) in = out + block_first(rank_);
  if (call_.kind == Kind::scatter && out == nullptr)
    out = const_cast<std::byte*>(in) + block_first(rank_);
  return {work(*whole, in, out, call_.block_bytes, call_.root)};
}

// To and from whom, block by block; what a rank sends itself comes by the same way.
std::vector<ccl::Work> CclPlan::messages(const std::byte* in, std::byte* out) const {
  const Kind kind = call_.kind;
  const bool blocks_in = kind == Kind::alltoall || kind == Kind::scatter;
  const bool blocks_out = kind != Kind::scatter;
  std::vector<ccl::Work> made;
  for (int peer = 0; peer < call_.size; ++peer) {
    const bool to = kind != Kind::gather || peer == call_.root;
    const bool from = kind != Kind::scatter || peer == call_.root;
    const bool keeps =
        peer == rank_ && (kept_.length_bytes != 0 || in == nullptr || out == nullptr);
    const std::size_t sent = block_bytes(blocks_in ? peer : rank_);
    const std::size_t received = block_bytes(blocks_out ? peer : rank_);
    if (to && !keeps && in != nullptr && sent != 0)
      made.push_back(
          work(ACCORD_CCL_SEND, in + (blocks_in ? block_first(peer) : 0), nullptr, sent, peer));
    if (from && !keeps && out != nullptr && received != 0)
      made.push_back(work(ACCORD_CCL_RECV, nullptr, out + (blocks_out ? block_first(peer) : 0),
                          received, peer));
  }
  return made;
}

// Every block to its rank, all at once.
std::vector<ccl::Work> CclPlan::block_reductions(const std::byte* in, std::byte* out) const {
  std::vector<ccl::Work> made;
  for (int peer = 0; peer < call_.size; ++peer) {
    if (block_bytes(peer) == 0) continue;
    made.push_back(work(ACCORD_CCL_REDUCE, in + block_first(peer), peer == rank_ ? out : nullptr,
                        block_bytes(peer), peer));
  }
  return made;
}

}  // namespace accord::core

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include <algorithm>
#include <limits>

#include "bench/operation.h"

namespace accord::bench {
namespace {

constexpr std::size_t kIntMax = std::numeric_limits<int>::max();

// Elements of the block of `rank`.
std::size_t block_count(Blocks blocks, std::size_t elements, std::size_t ranks, std::size_t rank) {
  switch (blocks) {
    case Blocks::per_rank:
      return elements;
    case Blocks::split_equal:
      return std::max<std::size_t>(elements / ranks, 1);
    case Blocks::split:
      return elements / ranks + (rank < elements % ranks ? 1 : 0);
  }
  return 0;
}

}  // namespace

std::optional<Shape> make_shape(const Operation& operation, const ShapeRequest& request) {
  constexpr std::size_t kWindowBytes = std::size_t{256} << 20;
  Shape shape;
  shape.rank = request.rank;
  shape.ranks = request.ranks;
  shape.elements = request.size_bytes / request.element_bytes;
  shape.window = static_cast<int>(std::clamp<std::size_t>(
      kWindowBytes / std::max<std::size_t>(request.size_bytes, 1), 1, request.window));
  const auto ranks = static_cast<std::size_t>(request.ranks);
  std::size_t displ = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::size_t count = block_count(operation.blocks, shape.elements, ranks, rank);
    const std::size_t unit =
        operation.displacements == Displacements::bytes ? request.element_bytes : 1;
    const bool displ_fits =
        operation.displacements == Displacements::none || displ * unit <= kIntMax;
    if (count > kIntMax || !displ_fits) return std::nullopt;
    shape.counts.push_back(static_cast<int>(count));
    shape.displs.push_back(displ);
    displ += count;
  }
  return shape;
}

std::unique_ptr<Call> make_call(const Operation& operation, const CallRequest& request) {
  auto call = std::make_unique<Call>();
  call->shape = *request.shape;
  call->send = request.send;
  call->recv = request.recv;
  call->type = request.type;
  call->element_bytes = request.element_bytes;
  call->op = request.op;
  call->comm = request.comm;
  if (operation.displacements == Displacements::none) return call;
  call->types.assign(call->shape.counts.size(), request.type);
  for (const std::size_t displ : call->shape.displs) {
    if (operation.displacements == Displacements::elements) {
      call->displs.push_back(static_cast<int>(displ));
    } else {
      call->displs_bytes.push_back(static_cast<int>(displ * request.element_bytes));
    }
  }
  return call;
}

double bandwidth_bytes(const Operation& operation, const Shape& shape, std::size_t element_bytes) {
  const double ranks = shape.ranks;
  const double block_bytes = static_cast<double>(shape.count() * element_bytes);
  const double total_bytes = static_cast<double>(shape.total() * element_bytes);
  const double others = (ranks - 1) / ranks;
  switch (operation.bandwidth) {
    case Bandwidth::none:
      return 0;
    case Bandwidth::whole:
      return block_bytes;
    case Bandwidth::allreduce:
      return block_bytes * 2 * others;
    case Bandwidth::per_rank:
    case Bandwidth::scattered:
      return total_bytes * others;
    case Bandwidth::both_directions:
      return block_bytes * 2;
  }
  return 0;
}

}  // namespace accord::bench

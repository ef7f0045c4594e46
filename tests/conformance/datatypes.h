// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Random derived datatypes, each with its own list of where its elements lie, worked out here and
// not by the MPI, so that gap bytes are known independently. Knows no buffers and no communicators.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "api.h"
#include "elements.h"
#include "random.h"

namespace accord::conformance {

struct Piece {
  std::ptrdiff_t offset_bytes;
  const Element* element;
};

struct TypeModel {
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  bool owned = false;         // made here, to be freed
  std::string text;           // "vector(3,1,4) of MPI_INT"
  std::vector<Piece> pieces;  // in type-map order
  std::ptrdiff_t lb_bytes = 0;
  std::ptrdiff_t extent_bytes = 0;
  std::ptrdiff_t true_lb_bytes = 0;
  std::ptrdiff_t true_ub_bytes = 0;
  std::size_t size_bytes = 0;
  std::size_t align_bytes =
      1;  // every piece is aligned to its element when the origin is aligned to this
};

// The bytes that `count` elements of the type cover, relative to the origin: low <= 0 <= high.
struct Span {
  std::ptrdiff_t low_bytes = 0;
  std::ptrdiff_t high_bytes = 0;
};
Span footprint(const TypeModel& type, std::int64_t count);

// Makes types through one MPI table and frees them all at the end of the case, or earlier.
class TypeFactory {
 public:
  explicit TypeFactory(const Api& api) : api_(api) {}
  ~TypeFactory() { free_all(); }
  TypeFactory(const TypeFactory&) = delete;
  TypeFactory& operator=(const TypeFactory&) = delete;

  const TypeModel* predefined(const Element& element);

  // A type whose signature is exactly `signature`, laid out at random. Up to `repeat` consecutive
  // elements of it never overlap.
  const TypeModel* random_layout(std::span<const Element* const> signature, std::int64_t repeat,
                                 Rng& rng);

  // `count` times `unit` as one element of a new type, perhaps with room around it.
  const TypeModel* composite(const TypeModel& unit, std::int64_t count, Rng& rng);

  // One column of a row-major table of `columns` columns, resized so that consecutive elements are
  // consecutive columns: two of them interleave.
  const TypeModel* column(const Element& element, int rows, int columns, bool large);

  // Two integers with a gap of `gap` integers between them and one of `trailing` behind, for
  // user-defined operations.
  const TypeModel* gapped_pair(const Element& element, int gap, int trailing, bool large);

  // Legal while calls that use them are in progress.
  void free_all();

  // The model of a handle made here, or null: what a user-defined operation needs to know.
  const TypeModel* find(MPI_Datatype handle) const;

 private:
  TypeModel* adopt(MPI_Datatype handle, std::string text, std::vector<Piece> pieces);
  void check_model(const TypeModel& model) const;
  const TypeModel* homogeneous(const Element& element, int count, std::int64_t repeat, Rng& rng);
  const TypeModel* heterogeneous(std::span<const Element* const> signature, Rng& rng);
  const TypeModel* blocks(const TypeModel& old, int count, Rng& rng);
  const TypeModel* strided(const TypeModel& old, int count, Rng& rng);
  const TypeModel* subarray(const TypeModel& old, int count, Rng& rng);
  const TypeModel* darray(const TypeModel& old, int count, Rng& rng);
  const TypeModel* resized(const TypeModel& old, std::ptrdiff_t lb_bytes,
                           std::ptrdiff_t extent_bytes, bool large);
  bool large(Rng& rng) const;

  const Api& api_;
  std::deque<TypeModel> models_;
};

}  // namespace accord::conformance

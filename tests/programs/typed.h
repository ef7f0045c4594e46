// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A buffer of a program as arguments of MPI calls: datatypes made by one constructor or another
// that come to the same.
#pragma once

#include <mpi.h>

#include <cstddef>

#include "calls.h"
#include "random.h"

namespace accord::programs {

// `count_of` blocks of the buffer in elements of `type`, which lives as long as this.
class Typed {
 public:
  // What the type may be. same: as drawn, of one block, so alike on all ranks that draw alike; with
  // one number an element where blocks lie close together; or one block.
  enum class Choice { any, same, numbers, blocks };

  // Blocks are passed in portions of `portion` (0: one by one), which an element may cover.
  Typed(const model::Buffer& buffer, std::size_t portion, Choice choice, model::Random& random);
  ~Typed();
  Typed(const Typed&) = delete;
  Typed& operator=(const Typed&) = delete;

  void* data() const { return data_; }
  MPI_Datatype type() const { return type_; }
  int count() const { return count_of(blocks_); }
  int count_of(std::size_t blocks) const {
    return static_cast<int>(blocks * numerator_ / denominator_);
  }
  std::size_t blocks() const { return blocks_; }
  int bytes_before(std::size_t blocks) const { return static_cast<int>(blocks * stride_bytes_); }
  std::size_t block_bytes() const { return block_bytes_; }

 private:
  void make_block(int block, int stride, model::Random& random);
  void make_portion(int portion, int block, int stride, model::Random& random);
  void resize(MPI_Aint extent);
  void decorate(model::Random& random);
  void replace(MPI_Datatype made);

  void* data_ = nullptr;
  MPI_Datatype type_ = MPI_INT64_T;
  std::size_t blocks_ = 0;
  std::size_t block_bytes_ = 8;
  std::size_t stride_bytes_ = 8;
  std::size_t numerator_ = 1;  // elements: blocks * numerator / denominator
  std::size_t denominator_ = 1;
};

}  // namespace accord::programs

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "typed.h"

#include <algorithm>
#include <vector>

#include "callbacks.h"
#include "job.h"
#include "named_reach.h"

namespace accord::programs {
namespace {

constexpr int kNumberBytes = 8;

}  // namespace

Typed::Typed(const model::Buffer& buffer, std::size_t portion, Choice choice, model::Random& random)
    : data_(buffer.data),
      blocks_(buffer.data == nullptr ? 0 : buffer.count),
      block_bytes_(buffer.type.block_bytes),
      stride_bytes_(buffer.type.stride_bytes) {
  const auto block = static_cast<int>(block_bytes_ / kNumberBytes);
  const auto stride = static_cast<int>(stride_bytes_ / kNumberBytes);
  const bool by_numbers =
      choice == Choice::numbers || (choice != Choice::blocks && random.percent(60));
  const bool is_empty = blocks_ == 0 && choice != Choice::blocks;
  if (is_empty || (block == stride && by_numbers)) {
    numerator_ = static_cast<std::size_t>(block);
    return;
  }
  if (choice == Choice::any && portion > 0 && blocks_ % portion == 0 && random.percent(50)) {
    denominator_ = portion;
    make_portion(static_cast<int>(portion), block, stride, random);
  } else {
    make_block(block, stride, random);
  }
  decorate(random);
  check(MPI_Type_commit(&type_), "MPI_Type_commit");
}

Typed::~Typed() {
  if (type_ != MPI_INT64_T) check(MPI_Type_free(&type_), "MPI_Type_free");
}

void Typed::replace(MPI_Datatype made) {
  if (type_ != MPI_INT64_T) check(MPI_Type_free(&type_), "MPI_Type_free");
  type_ = made;
}

void Typed::resize(MPI_Aint extent) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  check(MPI_Type_create_resized(type_, 0, extent, &made), "MPI_Type_create_resized");
  replace(made);
}

// One block with the gap behind it.
void Typed::make_block(int block, int stride, model::Random& random) {
  static const char* const names[] = {"contiguous", "vector", "indexed", "subarray", "struct"};
  const auto constructor = random.below(std::size(names));
  model::reached("datatype", names[constructor]);
  MPI_Datatype made = MPI_DATATYPE_NULL;
  const int half = block / 2;
  const int lengths[] = {half, block - half};
  switch (constructor) {
    case 0:
      check(MPI_Type_contiguous(block, MPI_INT64_T, &made), "MPI_Type_contiguous");
      break;
    case 1:
      check(MPI_Type_vector(block, 1, 1, MPI_INT64_T, &made), "MPI_Type_vector");
      break;
    case 2: {
      const int places[] = {0, half};
      check(MPI_Type_indexed(2, lengths, places, MPI_INT64_T, &made), "MPI_Type_indexed");
      break;
    }
    case 3: {
      const int first = 0;
      check(MPI_Type_create_subarray(1, &stride, &block, &first, MPI_ORDER_C, MPI_INT64_T, &made),
            "MPI_Type_create_subarray");
      break;
    }
    default: {
      const MPI_Aint places[] = {0, MPI_Aint{half} * kNumberBytes};
      const MPI_Datatype types[] = {MPI_INT64_T, MPI_INT64_T};
      check(MPI_Type_create_struct(2, lengths, places, types, &made), "MPI_Type_create_struct");
    }
  }
  replace(made);
  resize(MPI_Aint{stride} * kNumberBytes);
}

// So many blocks as one element.
void Typed::make_portion(int portion, int block, int stride, model::Random& random) {
  static const char* const names[] = {"vector of blocks", "hvector", "indexed blocks",
                                      "subarray of rows"};
  const auto constructor = random.below(std::size(names));
  model::reached("datatype", names[constructor]);
  MPI_Datatype made = MPI_DATATYPE_NULL;
  switch (constructor) {
    case 0:
      check(MPI_Type_vector(portion, block, stride, MPI_INT64_T, &made), "MPI_Type_vector");
      break;
    case 1:
      check(MPI_Type_create_hvector(portion, block, MPI_Aint{stride} * kNumberBytes, MPI_INT64_T,
                                    &made),
            "MPI_Type_create_hvector");
      break;
    case 2: {
      std::vector<int> places(static_cast<std::size_t>(portion));
      for (int i = 0; i < portion; ++i) places[static_cast<std::size_t>(i)] = i * stride;
      check(MPI_Type_create_indexed_block(portion, block, places.data(), MPI_INT64_T, &made),
            "MPI_Type_create_indexed_block");
      break;
    }
    default: {
      const int sizes[] = {portion, stride};
      const int parts[] = {portion, block};
      const int firsts[] = {0, 0};
      check(MPI_Type_create_subarray(2, sizes, parts, firsts, MPI_ORDER_C, MPI_INT64_T, &made),
            "MPI_Type_create_subarray");
    }
  }
  replace(made);
  resize(MPI_Aint{stride} * portion * kNumberBytes);
}

// Now and then with an attribute, or as a copy of a type that had one.
void Typed::decorate(model::Random& random) {
  if (!random.percent(15)) return;
  set_attribute_of_type(type_);
  if (random.percent(50)) return;
  MPI_Datatype made = MPI_DATATYPE_NULL;
  check(MPI_Type_dup(type_, &made), "MPI_Type_dup");
  replace(made);
}

}  // namespace accord::programs

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The numbers of NCCL's ABI, as its documentation has them, for all who call it without its header.
#pragma once

namespace accord::ccl {

enum class NcclType : int {
  none = -1,  // not one of NCCL's
  int8 = 0,
  uint8 = 1,
  int32 = 2,
  uint32 = 3,
  int64 = 4,
  uint64 = 5,
  float16 = 6,
  float32 = 7,
  float64 = 8,
  bfloat16 = 9,
};

enum class NcclOp : int { sum = 0, prod = 1, max = 2, min = 3 };

}  // namespace accord::ccl

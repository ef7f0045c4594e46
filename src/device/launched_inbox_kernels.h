// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What launched_inbox.cpp and the kernels of launched_inbox*.clcpp agree on: a kernel that sends,
// and behind it one that receives, launched for each exchange. One source for Intel's GPUs, as
// SPIR-V, and for AMD's (hip/inbox_kernels.cu): C++ for OpenCL, as far as hip/opencl.h has its
// words.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/inbox.h"

namespace accord::device::launched {

constexpr std::uint32_t kInboxGroupThreads = 256;  // of a work-group

// This rank's part of an InboxExchange (inbox.h), as kernels read it.
struct InboxCall {
  std::uint64_t inbox;
  std::uint64_t src;
  std::uint64_t dst;
  std::uint64_t send_to;  // 0: nothing, or all has been sent already
  std::uint64_t receive_from;
  std::uint64_t lane_bytes;
  std::uint64_t block_bytes;
  std::uint64_t send_stride_bytes;
  std::uint64_t receive_stride_bytes;
  std::uint32_t epoch;
  std::uint32_t rank;
  std::uint32_t turn;
  std::uint32_t ranks;     // up to the last one that is sent to or received from
  std::uint32_t units;     // of the longest block
  std::uint32_t polls;     // for all that a work-item receives; then it says that some is missing
  std::uint32_t in_parts;  // 1: lengths differ by pair
  std::uint32_t unused;
};

// An InboxPart.
struct InboxCallPart {
  std::uint64_t src;
  std::uint64_t dst;
  std::uint64_t send_bytes;
  std::uint64_t receive_bytes;
};

// The parameter of accord_inbox_send, accord_inbox_receive and accord_inbox_<element>_<op>, in host
// memory.
struct InboxParameters {
  InboxCall call;
  std::uint64_t late;                   // by the kernel: not all has come
  InboxCallPart parts[kInboxRanksMax];  // by rank, where call.in_parts
};

}  // namespace accord::device::launched

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The kernels of launched inboxes for AMD's GPUs, from the source that Intel's have.
#include <cstdint>
#include <cstring>
#include <span>

#include "device/hip/opencl.h"
#include "device/inbox.h"
#include "device/launched_inbox_kernels.h"
#include "device/reduce_functions.h"

// There every function is one of kernels.
#pragma clang force_cuda_host_device begin
#define ACCORD_INBOX_KERNELS(X) ACCORD_REDUCTIONS(X)
#include "device/launched_inbox_kernels.clcpp"
#include "device/launched_inbox_reduce_kernels.clcpp"
#pragma clang force_cuda_host_device end

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What tests have the embedded host runtime do, by variables of the environment. Called by
// host/runtime.cpp only.
#pragma once

#include "base/status.h"
#include "device/kernel_place.h"

namespace accord::device {

// ACCORD_TEST_COPY_POLLS: how often copy_done must be asked before copy_begin and reduce_begin
// take effect. 0, the default: at once; tests set it to catch those who look before the batch is
// done.
long copy_polls();

// ACCORD_TEST_EXCLUSIVE_DEVICE=1: as where kernels of ranks that share a device must not wait;
// ACCORD_TEST_KERNEL_SERVER=N: for any but those of the same server; ACCORD_TEST_TURN_US=N: what a
// turn takes.
KernelPlace host_place();

// ACCORD_TEST_KERNEL_FILE: while this file exists, a kernel of this process runs for which a driver
// makes those wait that allocate, page-lock, export or open memory; another one tells that some had
// to. Also ACCORD_TEST_PIN=none: no memory can be page-locked.
void wait_for_kernel();
Status pin_pages();

// ACCORD_TEST_DEFAULT_STREAM=busy: as where the program has work in the default stream.
bool default_stream_is_busy();

// ACCORD_TEST_TOUCHABLE=1: CPU code may touch device memory, so that a program which knows nothing
// of devices may have all of its memory there.
bool device_memory_is_touchable();

}  // namespace accord::device

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Several copies within one device by one launch of a kernel of our own. The driver, too, makes
// such copies by kernels, but launches one for each: 16 copies of 1 MiB take 81 us one after the
// other and 16 us together, of 1 KiB 78 and 11 (H100; cuda_copy_measure). So go copies between
// devices, if there are several and all are short (ACCORD_COPY_KERNEL_BYTES). Called by
// cuda/runtime.cpp only.
#pragma once

#include <cstdint>
#include <span>

#include "device/cuda/copy.h"

namespace accord::device::cuda {

// As copy and copy_begin (cuda/copy.h), which make all other copies.
Status copy_list(const Driver& driver, Device device, std::span<const Copy> copies);
Status copy_list_begin(const Driver& driver, Device device, std::span<const Copy> copies,
                       CopyTicket& ticket);

// How many launches have made copies, for tests.
std::uint64_t copy_list_launches() noexcept;

}  // namespace accord::device::cuda

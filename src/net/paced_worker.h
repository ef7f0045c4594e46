// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// A worker on a test bed that has neither devices nor adapters (device/adapter_model.h): what it
// moves from or to "device" memory takes as long as an adapter would need to reach that. Called by
// worker.cpp only.
#pragma once

#include <memory>

#include "device/adapter_model.h"
#include "net/worker.h"

namespace accord::net {

std::unique_ptr<Worker> make_paced(std::unique_ptr<Worker> worker, device::AdapterModel& model);

}  // namespace accord::net

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The library of UCX, found at run time: building takes its headers alone, and a job that sends
// nothing by it loads nothing. Called by worker.cpp only.
#pragma once

#include <ucp/api/ucp.h>

#include "base/status.h"

namespace accord::net {

struct Ucx {
#define UCX_FUNCTION(member, symbol) decltype(&::symbol) member = nullptr;
#include "net/ucx.def"
#undef UCX_FUNCTION
  const char* (*status_string)(ucs_status_t) = nullptr;
};

// Loads it once, for good. `ucx` is null after an error.
Status load_ucx(const Ucx*& ucx);

}  // namespace accord::net

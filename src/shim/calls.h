// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Every intercepted function of this ABI, in namespace accord::shim under its name without MPI_.
// Included by the generated bindings.cpp only, which hands their addresses to the preload layer.
#pragma once

#include <mpi.h>

#include "shim/collectives.h"
#include "shim/comm_info.h"
#include "shim/environment.h"
#include "shim/error_handlers.h"
#include "shim/files.h"
#include "shim/kept_handles.h"
#include "shim/lineage.h"
#include "shim/local_calls.h"
#include "shim/partitioned.h"
#include "shim/partitioned_collectives.h"
#include "shim/point_to_point.h"
#include "shim/receives.h"
#include "shim/request_calls.h"
#include "shim/sendrecv.h"
#include "shim/windows.h"

namespace accord::shim {
// A wrapper's lambdas name the pointers they are given as the call names its buffers.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#include "wrappers.inc"
#pragma GCC diagnostic pop
}  // namespace accord::shim

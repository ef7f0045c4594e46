// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Has the host MPI go on with our operations while it blocks, where it can and no thread does. Open
// MPI's libraries have each other progress so.
#pragma once

namespace accord::shim {

// With the first operation that may outlive its call without threads; later calls do nothing.
void progress_from_host();
void stop_progress_from_host();

}  // namespace accord::shim

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One call of the host MPI on whole buffers in host memory: what is left where nothing better
// applies. It takes every call.
#include "coll/algorithm.h"

namespace accord::coll {
namespace {

constexpr NamedVariant kVariants[] = {{"staged", {.algorithm = &algorithms::staged}}};

}  // namespace

constinit const Algorithm algorithms::staged{
    .name = "staged",
    .variants = kVariants,
    .by_host = true,
    .has = [](node::Kind) { return true; },
    .takes = [](const Situation&) { return true; },
    .what =
        "Copies each device buffer to host memory, lets the host MPI do the call there, and "
        "copies the result back.",
    .steps = "copy in; one call of the host MPI; copy out",
    .bytes = "all of this rank's buffers, once over PCIe each way",
    .where = "everywhere: any collective, datatype, operation, communicator"};

}  // namespace accord::coll

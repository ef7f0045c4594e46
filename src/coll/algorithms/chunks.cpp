// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// The host MPI's call cut into chunks, so that copies of one overlap with messages of another.
#include "coll/algorithm.h"
#include "coll/select/selection.h"

namespace accord::coll {
namespace {

constexpr NamedVariant kVariants[] = {{"staged-pipelined", {.algorithm = &algorithms::chunks}}};

}  // namespace

constinit const Algorithm algorithms::chunks{
    .name = "staged-pipelined",
    .variants = kVariants,
    .by_host = true,
    .has = can_be_cut,
    .takes = [](const Situation& s) { return s.chunks && !s.all_short; },
    .what =
        "Cuts a long call into chunks of ACCORD_CHUNK_BYTES and gives them to the host MPI one by "
        "one, while the chunks before and after are copied.",
    .steps =
        "for each chunk: copy in; one non-blocking call of the host MPI; copy out; four chunks "
        "are under way",
    .bytes = "as staged",
    .where =
        "everywhere; reductions only on predefined types, and not with ACCORD_DETERMINISTIC=1; "
        "from ACCORD_PIPELINE_BYTES on"};

}  // namespace accord::coll

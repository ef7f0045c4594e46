// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What calls say of the inter-node step as a whole is the same on all ranks: whether it goes by a
// transport (net/transport.h), and by which design.
#pragma once

#include "net/transport.h"

namespace accord::coll {

using net::Transport;

}  // namespace accord::coll

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "core/call_site.h"

namespace accord::core {

thread_local CallSite call_site;

}  // namespace accord::core

// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// libstdc++ includes a header of this name where there is one. That of zig refuses C libraries
// before 2.32.
#pragma once

#ifdef __cplusplus
extern "C"
#else
extern
#endif
    __attribute__((visibility("hidden"))) char __libc_single_threaded;

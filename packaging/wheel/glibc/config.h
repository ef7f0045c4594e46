// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Before each C++ file of a wheel: this machine's libstdc++ as it would be with glibc 2.28, which
// has no waiting by a clock of one's choice yet.
#pragma once
#include <bits/c++config.h>
#undef _GLIBCXX_USE_PTHREAD_COND_CLOCKWAIT
#undef _GLIBCXX_USE_PTHREAD_MUTEX_CLOCKLOCK
#undef _GLIBCXX_USE_PTHREAD_RWLOCK_CLOCKLOCK

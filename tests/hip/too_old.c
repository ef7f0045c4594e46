/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * A libamdhip64.so that has hardly any function.
 */
int hipInit(unsigned flags);
int hipInit(unsigned flags) { return (int)flags; }

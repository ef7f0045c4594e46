# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The checks of `accord doctor`, one subject a file; each yields findings."""

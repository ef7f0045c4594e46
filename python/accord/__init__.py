# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The `accord` command: runs MPI programs under Accord, shows settings, checks and measures a machine."""

__version__ = "0.1.0"

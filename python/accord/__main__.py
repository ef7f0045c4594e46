# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""`python -m accord` is the same as `accord`."""

from accord.cli import main

if __name__ == "__main__":
    main()

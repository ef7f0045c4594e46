# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The one exception that a person sees."""

# Exit status of `accord` for what the user can mend (as the shell's and click's usage errors).
USAGE_EXIT_CODE = 2


class UserError(Exception):
    """What went wrong and how to mend it, in one sentence; printed without a trace, exit status 2."""

# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""What `accord report` is made of: records read and compared, figures, the page. Called by the verb alone."""

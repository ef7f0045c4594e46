# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# What the scripts here share. Sourced by them, with the repository root as the current directory.
root=$(pwd)
deps="$root/.deps"
build="$root/build"
PYTHON=${PYTHON:-python3}
JOBS=${JOBS:-$(nproc 2>/dev/null || echo 2)}

say() { printf 'accord: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# The cmake and ninja of the tools environment come first when it has them; where it does not, because the
# machine's own are new enough, the machine's are found.
export PATH="$deps/tools/bin:$PATH"
# Each start of Python compiles all that it imports where it may not keep that: 1.3 s of each rank that imports PyTorch.
unset PYTHONDONTWRITEBYTECODE

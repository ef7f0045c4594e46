# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""`accord preload`: for launchers that accord run does not start."""

from __future__ import annotations

from accord.paths import find_home


def preload() -> None:
    """Print the library to preload, for srun and other launchers.

    [bold]LD_PRELOAD="$(accord preload)" srun -n 4 ./app[/bold]

    One library serves every MPI: it finds the program's MPI when it is loaded.
    """
    print(find_home().library)

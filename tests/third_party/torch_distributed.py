# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""PyTorch's own tests of torch.distributed, which come with its wheel, over the backend `accord`.

mpiexec -n 3 python tests/third_party/torch_distributed.py [--backend gloo] [NAME...]

Needs PyTorch 2 or newer with expecttest and hypothesis. Each test has a process group of its own. Rank 0
prints a line for each test, and at the end how many passed. `--backend gloo` shows which tests pass at all
where they run one after the other in the same processes: PyTorch starts processes for each.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import tempfile
import traceback
import unittest
import warnings
from datetime import timedelta
from pathlib import Path
from unittest import mock

parser = argparse.ArgumentParser()
parser.add_argument("--backend", default="accord")
parser.add_argument("--limit", type=int, default=20, help="seconds a test")
parser.add_argument("--from", dest="first", default="", help="leave out what sorts before")
parser.add_argument("--without", default="$^", help="a regular expression of names")
parser.add_argument("names", nargs="*")
chosen = parser.parse_args()
os.environ["BACKEND"] = chosen.backend
sys.argv = sys.argv[:1]

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from mpi4py import MPI  # noqa: E402
from torch.testing._internal import common_distributed  # noqa: E402

import accord.torch  # noqa: E402, F401  registers the backend

for feature in ("ddp", "subgroup"):
    common_distributed.DistTestCases.backend_feature[feature].add("accord")

from torch.testing._internal.distributed import distributed_test  # noqa: E402

WORLD = MPI.COMM_WORLD
SKIPS = {skip.exit_code for skip in common_distributed.TEST_SKIPS.values()}


from torch.testing._internal.common_utils import TestCase  # noqa: E402

# Where these tests meet, and keep their files.
os.environ["TEMP_DIR"] = WORLD.bcast(tempfile.mkdtemp() if WORLD.rank == 0 else None)
for folder in ("barrier", "test_dir", "init_dir"):
    (Path(os.environ["TEMP_DIR"]) / folder).mkdir(exist_ok=True)


def _store() -> dist.TCPStore:
    """One for all groups: a store of each group would begin where the last one has not ended. MASTER_PORT is
    left to the tests that make a group by the environment."""
    address = os.environ["MASTER_ADDR"]
    first = (
        dist.TCPStore(address, 0, WORLD.size, True, wait_for_workers=False)
        if WORLD.rank == 0
        else None
    )
    port = WORLD.bcast(first.port if first else None)
    return first or dist.TCPStore(address, port, WORLD.size, False)


STORE = _store()


class Tests(distributed_test.DistributedTest._DistTestBase, TestCase):
    """In the place of PyTorch's own class, which starts the ranks."""

    rank = WORLD.rank
    world_size = WORLD.size
    file_name = "unused"
    init_method = "env://"


# These choose their nets by the backend's name, and have none for one that PyTorch does not know.
BY_NAME = re.compile("accumulate_gradients")


def _too_long(*_: object) -> None:
    raise TimeoutError(f"more than {chosen.limit} s")


def outcome(name: str) -> str:
    """What this rank says of the test: "", "skipped", or the last line of what went wrong."""
    test = Tests(name)
    try:
        # A test that hangs inside of C++ ends by the operation's own time-out.
        signal.alarm(chosen.limit)
        test.setUp()  # seeds the generators, the same on all ranks
        known = "mpi" if chosen.backend == "accord" and BY_NAME.search(name) else chosen.backend
        with mock.patch.object(distributed_test, "BACKEND", known):
            getattr(test, name)()
        return ""
    except unittest.SkipTest:
        return "skipped"
    except SystemExit as end:
        return "skipped" if end.code in SKIPS else f"exit {end.code}"
    except BaseException as error:
        if os.environ.get("VERBOSE"):
            traceback.print_exc()
        return " ".join(f"{type(error).__name__}: {error}".split())[:160]
    finally:
        signal.alarm(0)


def run(name: str) -> str:
    warnings.simplefilter("ignore")
    dist.init_process_group(
        chosen.backend,
        store=dist.PrefixStore(name, STORE),
        rank=WORLD.rank,
        world_size=WORLD.size,
        timeout=timedelta(seconds=chosen.limit - 5),
    )
    WORLD.Barrier()
    distributed_test.Barrier.barrier_id = 0
    if WORLD.rank == 0:
        distributed_test.Barrier.init()  # removes the files of all
    WORLD.Barrier()
    said = WORLD.allgather(outcome(name))
    if dist.is_initialized():
        if chosen.backend == "accord" and any(one not in ("", "skipped") for one in said):
            _disown()
        dist.destroy_process_group()
    wrong = [f"[{rank}] {one}" for rank, one in enumerate(said) if one not in ("", "skipped")]
    if wrong:
        return " ".join(wrong)
    return "skipped" if all(one == "skipped" for one in said) else ""


def _disown() -> None:
    """Ranks that left a test at different places cannot free its communicator together."""
    group = dist.distributed_c10d._get_default_group()
    group._members.failure = RuntimeError("a test failed")


def main() -> None:
    signal.signal(signal.SIGALRM, _too_long)
    torch.set_num_threads(1)
    names = chosen.names or unittest.TestLoader().getTestCaseNames(Tests)
    names = [each for each in names if each >= chosen.first and not re.search(chosen.without, each)]
    counts = {"passed": 0, "skipped": 0, "failed": 0}
    for name in names:
        result = run(name)
        kind = {"": "passed", "skipped": "skipped"}.get(result, "failed")
        counts[kind] += 1
        if WORLD.rank == 0:
            print(f"{kind} {name} {result if kind == 'failed' else ''}", flush=True)
    if WORLD.rank == 0:
        print(", ".join(f"{count} {kind}" for kind, count in counts.items()), flush=True)
    sys.stdout.flush()
    os._exit(0 if counts["failed"] == 0 else 1)


main()

# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Programs that know nothing of devices, as Debian packages them, with all that they allocate in device
memory of the host runtime (device_heap.cpp): what they print is what they print alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ACCORD_TEST_BUILD", REPOSITORY / "build"))
HEAP = BUILD / "lib" / "libaccord_device_heap.so"
ACCORD = BUILD / "lib" / "libaccord.so"

NIGHTLY = "ACCORD_TEST_NIGHTLY" in os.environ

# Each goes another way through Accord, and some calls by the path of its name.
_SHORT_REGIONS = {
    "ACCORD_NODE_BYTES": "1",
    "ACCORD_REGION_BYTES": "64K",
    "ACCORD_TEST_COPY_POLLS": "3",
}
SETTINGS = {
    "node-p2p": {},
    "node": _SHORT_REGIONS,
    "node-direct": {**_SHORT_REGIONS, "ACCORD_ALGORITHM": "node-direct"},
    "inbox": {"ACCORD_ALGORITHM": "inbox"},
    "two-level": {
        "ACCORD_NODE_SPLIT": "1",
        "ACCORD_ALGORITHM": "two-level",
        "ACCORD_REGION_BYTES": "64K",
    },
    "net-direct": {
        "ACCORD_NODE_SPLIT": "1",
        "ACCORD_NET_DESIGN": "direct",
        "ACCORD_NET_BYTES": "64",
    },
}

_LIQUID = """\
units lj
atom_style atomic
{before}
lattice fcc 0.8442
region box block 0 8 0 6 0 6
region part block 0 {part} 0 6 0 6
create_box 1 box
create_atoms 1 region part
mass 1 1.0
velocity all create 1.44 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
fix 1 all nve
{behind}
thermo 20
run 60
"""
_SALT = """\
units lj
atom_style charge
lattice sc 0.6
region box block 0 8 0 8 0 8
create_box 2 box
create_atoms 1 box
set group all type/fraction 2 0.5 4711
mass * 1.0
set type 1 charge 1.0
set type 2 charge -1.0
velocity all create 1.0 4711
pair_style lj/cut/coul/long 2.5 3.0
pair_coeff * * 1.0 1.0
kspace_style pppm 1.0e-4
fix 1 all nve
timestep 0.002
thermo 10
run 20
"""
_DOMAINS = {"before": "comm_style tiled", "part": 5, "behind": "fix 2 all balance 10 1.0 rcb"}
# Neighbours on a grid; domains that move, with neighbours of their own; Fourier transforms. And the
# settings that `make test` has time for.
LAMMPS = {
    "grid": (_LIQUID.format(before="", part=8, behind=""), ("node-p2p", "two-level")),
    "domains": (_LIQUID.format(**_DOMAINS), ("node", "net-direct")),
    "transforms": (_SALT, ("inbox", "node-direct")),
}

SILICON = """\
&control
 calculation='scf', prefix='si', outdir='./out', pseudo_dir='/usr/share/espresso/pseudo',
 tprnfor=.true., tstress=.true.
/
&system
 ibrav=2, celldm(1)=10.20, nat=2, ntyp=1, ecutwfc=18.0
/
&electrons
 conv_thr=1.0d-9
/
ATOMIC_SPECIES
 Si 28.086 Si.pz-vbc.UPF
ATOMIC_POSITIONS alat
 Si 0.00 0.00 0.00
 Si 0.26 0.25 0.25
K_POINTS automatic
 4 4 4 1 1 1
"""


def run(folder: Path, ranks: int, *command: str, **settings: str) -> tuple[str, str]:
    """What it prints, and apart from that what Accord tells: lines of both could mix."""
    launcher = shutil.which("mpiexec.openmpi")
    assert launcher is not None
    environment = {
        **os.environ,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "ACCORD_YIELD": "on",
        **settings,
    }
    preload = environment.pop("LD_PRELOAD", "")
    begin = [launcher, "--oversubscribe", "-n", str(ranks), "env", f"LD_PRELOAD={preload}"]
    done = subprocess.run(
        [*begin, *command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, done.stderr


def run_on_device(path: str, folder: Path, ranks: int, *command: str, **settings: str) -> str:
    """Its output, with some calls on device memory by that path."""
    log = folder / "heap"
    output, told = run(
        folder,
        ranks,
        *command,
        LD_PRELOAD=f"{HEAP}:{ACCORD}",
        ACCORD_RUNTIME="host",
        ACCORD_TEST_TOUCHABLE="1",
        ACCORD_TRACE="1",
        DEVICE_HEAP_LOG=str(log),
        **settings,
        **SETTINGS[path],
    )
    blocks = [int(line.split()[0]) for line in log.read_text().splitlines()]
    log.unlink()
    assert len(blocks) == ranks and min(blocks) > 500, blocks
    calls = re.findall(r"^accord: info: .* device\b.* -> (\S+) ", told, re.MULTILINE)
    assert calls.count(path) > 20, Counter(calls)
    return output


@pytest.fixture(scope="module")
def lammps() -> str:
    found = shutil.which("lmp")
    if found is None or shutil.which("mpiexec.openmpi") is None:
        pytest.skip("no LAMMPS with Debian's Open MPI")
    return found


@pytest.mark.parametrize("name", LAMMPS)
def test_lammps(lammps: str, name: str, tmp_path: Path) -> None:
    script, chosen = LAMMPS[name]
    (tmp_path / "in").write_text(script)
    command = (lammps, "-in", "in", "-log", "none")

    def rows(output: str) -> list[str]:
        return re.findall(r"^ +\d+(?: +[-+.\de]+){4,} *$", output, re.MULTILINE)

    alone = rows(run(tmp_path, 2, *command)[0])
    assert len(alone) >= 3
    for path in SETTINGS if NIGHTLY else chosen:
        output = run_on_device(path, tmp_path, 2, *command, DEVICE_HEAP_OF="liblammps")
        assert rows(output) == alone, path


@pytest.mark.skipif(not NIGHTLY, reason="takes minutes: make nightly")
@pytest.mark.parametrize("pools", [1, 2])
def test_quantum_espresso(pools: int, tmp_path: Path) -> None:
    found = shutil.which("pw.x")
    if found is None or shutil.which("mpiexec.openmpi") is None:
        pytest.skip("no Quantum ESPRESSO with Debian's Open MPI")
    (tmp_path / "in").write_text(SILICON)
    command = (found, "-nk", str(pools), "-in", "in")
    settings = {"DEVICE_HEAP_OF": "libscalapack,libfftw3", "OMP_NUM_THREADS": "1"}

    def results(output: str) -> list[str]:
        return re.findall(r"^(?:!.*| *atom .* force =.*|.*P=.*)$", output, re.MULTILINE)

    alone = results(run(tmp_path, 2 * pools, *command, OMP_NUM_THREADS="1")[0])
    assert len(alone) >= 4
    for path in SETTINGS:
        if path == "net-direct" and pools == 1:
            continue  # which sends next to no messages, but for collectives
        output = run_on_device(path, tmp_path, 2 * pools, *command, **settings)
        assert results(output) == alone, path

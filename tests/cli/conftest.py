# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""What the tests of the command share: the MPIs of this machine, programs built with each, the command.

The MPIs are those of the checkout's .deps, of ACCORD_TEST_MPI_ROOTS (prefixes, separated by colons), and
Debian's. A test that needs something this machine lacks is skipped with the reason.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PYTHON = REPOSITORY / "python"
sys.path.insert(0, str(PYTHON))

from accord.errors import UserError  # noqa: E402
from accord.mpi import Abi, Vendor  # noqa: E402
from accord.paths import Home, find_home  # noqa: E402

TIMEOUT_S = 120
NIGHTLY = os.environ.get("ACCORD_TEST_NIGHTLY") == "1"
RESULTS = sorted((REPOSITORY / "bench" / "results").glob("*.jsonl"))

# Open MPI as root, in a container, with more ranks than cores, and without libfabric, of which one provider sleeps for a
# second in each start.
_OPENMPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "OMPI_MCA_btl": "^ofi",
    "OMPI_MCA_mtl": "^ofi",
}

_PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  char line[4096];
  snprintf(line, sizeof line, "rank %d of %d", rank, size);
  for (int i = 1; i < argc; i++) {
    const char* value = strncmp(argv[i], "$", 1) == 0 ? getenv(argv[i] + 1) : argv[i];
    snprintf(line + strlen(line), sizeof line - strlen(line), " [%s]", value ? value : "unset");
  }
  puts(line);
  fflush(stdout);
  MPI_Finalize();
  return argc > 2 && strcmp(argv[1], "exit") == 0 ? atoi(argv[2]) : 0;
}
"""

# Stands in for libaccord.so where only the launching is tested: names the programs it was loaded into.
_TRACER = r"""
#include <stdlib.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void tell(void) {
  char line[4096];
  const char* path = getenv("ACCORD_TEST_TRACE");
  ssize_t length = readlink("/proc/self/exe", line, sizeof line - 1);
  if (!path || length < 0) return;
  line[length] = '\n';
  int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (write(file, line, length + 1) < 0) _exit(99);
  close(file);
}
"""


@dataclass(frozen=True)
class Mpi:
    """One ABI of one MPI, with the compiler for it."""

    name: str
    compiler: Path
    abi: Abi
    vendor: Vendor
    python: Path | None = None  # an interpreter whose mpi4py uses it


def _mpi_roots() -> list[Path]:
    named = [
        Path(entry) for entry in os.environ.get("ACCORD_TEST_MPI_ROOTS", "").split(":") if entry
    ]
    return [*named, REPOSITORY / ".deps" / "mpich", REPOSITORY / ".deps" / "openmpi"]


def _python_of(root: Path) -> Path | None:
    python = root / "bin" / "python"
    return python if list(root.glob("lib/python3*/site-packages/mpi4py")) else None


def _find_mpis() -> list[Mpi]:
    found: dict[str, Mpi] = {}

    def add(mpi: Mpi) -> None:
        if mpi.compiler.is_file():
            found.setdefault(mpi.name, mpi)

    for root in _mpi_roots():
        if list(root.glob("lib/libmpi.so.12*")):
            add(Mpi("mpich", root / "bin/mpicc", Abi.MPICH, Vendor.MPICH, _python_of(root)))
            add(Mpi("mpich-abi", root / "bin/mpicc_abi", Abi.STANDARD, Vendor.MPICH))
        if list(root.glob("lib/libmpi.so.40*")):
            add(Mpi("openmpi", root / "bin/mpicc", Abi.OPENMPI, Vendor.OPENMPI, _python_of(root)))
    add(Mpi("debian-mpich", Path("/usr/bin/mpicc.mpich"), Abi.MPICH, Vendor.MPICH))
    add(Mpi("debian-openmpi", Path("/usr/bin/mpicc.openmpi"), Abi.OPENMPI, Vendor.OPENMPI))
    return list(found.values())


MPIS = _find_mpis()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "one_mpi: over one of the MPIs; every night over all")


def _mpis_of(metafunc: pytest.Metafunc) -> list[Mpi]:
    """All, or of a test that is marked one_mpi a single one: the tests of a file take turns."""
    if NIGHTLY or not MPIS or metafunc.definition.get_closest_marker("one_mpi") is None:
        return MPIS
    tests = [name for name in vars(metafunc.module) if name.startswith("test_")]
    return [MPIS[tests.index(metafunc.function.__name__) % len(MPIS)]]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "mpi" in metafunc.fixturenames:
        none = [pytest.param(None, marks=pytest.mark.skip(reason="no MPI with a compiler here"))]
        values = [pytest.param(mpi, id=mpi.name) for mpi in _mpis_of(metafunc)] or none
        metafunc.parametrize("mpi", values)


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """build(compiler, source, *options) -> the program (or library) it makes, once per session."""
    folder = tmp_path_factory.mktemp("programs")
    made: dict[tuple[str, ...], Path] = {}

    def compile_source(compiler: Path | str, source: str, *options: str) -> Path:
        key = (str(compiler), source, *options)
        if key not in made:
            if not shutil.which(str(compiler)):
                pytest.skip(f"no {compiler} on this machine")
            file = folder / f"program{len(made)}.c"
            file.write_text(source)
            command = [str(compiler), str(file), *options]
            made[key] = file.with_suffix("")
            if "-o" not in options:
                command += ["-o", str(made[key])]
            subprocess.run(command, check=True, timeout=TIMEOUT_S)
        return made[key]

    return compile_source


@pytest.fixture(scope="session")
def mpi_program(build: Callable[..., Path]) -> Callable[[Mpi], Path]:
    """A program that prints `rank R of N [argument]...`; `exit CODE` sets its exit status."""

    def make(mpi: Mpi) -> Path:
        prefix = mpi.compiler.parent.parent
        rpath = [] if str(prefix) == "/usr" else [f"-Wl,-rpath,{prefix}/lib"]
        return build(mpi.compiler, _PROGRAM, *rpath)

    return make


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    return tmp_path / "trace"


@pytest.fixture
def tracer_home(build: Callable[..., Path], tmp_path: Path) -> Path:
    """An ACCORD_HOME whose libaccord.so only writes down where it was loaded."""
    library = build("cc", _TRACER, "-shared", "-fPIC")
    home = tmp_path / "home"
    (home / "lib").mkdir(parents=True)
    shutil.copy(library, home / "lib" / "libaccord.so")
    return home


Accord = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def accord(tmp_path: Path) -> Accord:
    """accord(word, ..., NAME=value) runs the command in an empty folder; a value of None unsets NAME."""

    def run(*words: object, **variables: object) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **_OPENMPI, "COLUMNS": "200"}
        # No table of whoever runs the tests.
        environment["XDG_CONFIG_HOME"] = str(tmp_path / "config")
        environment.pop("ACCORD_TABLE", None)
        environment["PYTHONPATH"] = f"{PYTHON}:{os.environ.get('PYTHONPATH', '')}".rstrip(":")
        for name, value in variables.items():
            environment.pop(name, None)
            if value is not None:
                environment[name] = str(value)
        return subprocess.run(
            [sys.executable, "-m", "accord", *map(str, words)],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=3 * TIMEOUT_S,
            check=False,
        )

    return run


@pytest.fixture
def launched(accord: Accord, tracer_home: Path, trace_file: Path) -> Accord:
    """accord with the tracing library in the place of libaccord.so."""

    def run(*words: object, **variables: object) -> subprocess.CompletedProcess[str]:
        settings = {"ACCORD_HOME": tracer_home, "ACCORD_TEST_TRACE": trace_file, **variables}
        return accord(*words, **settings)

    return run


@pytest.fixture
def home() -> Home:
    """The real Accord of this checkout."""
    try:
        return find_home()
    except UserError as error:
        pytest.skip(str(error))


@pytest.fixture
def fake_nccl(home: Home) -> Path:
    """A collective library that works on the CPU."""
    library = home.library.parent.parent / "tests" / "ccl" / "libfake_nccl.so"
    if not library.is_file():
        pytest.skip("no stand-in for NCCL in this build")
    return library


@pytest.fixture(scope="session")
def libraries() -> None:
    """What `accord report` needs."""
    for module in ("matplotlib", "jinja2"):
        pytest.importorskip(module, reason=f"no {module} in this Python environment")


@pytest.fixture(scope="session")
def results_page(libraries: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of `accord report` from all of bench/results."""
    from accord.report import report

    page = tmp_path_factory.mktemp("report") / "page.html"
    report(RESULTS, output=page)
    return page

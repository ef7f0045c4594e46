# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""An installed prefix that was moved: programs build against it and run, and the command works."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import BUILD, CMAKE, MPI, PYTHON, REPOSITORY, Run, finished, plain_environment, tool

_PROGRAM = Path(__file__).with_name("program.c")
_MPICC = MPI / "bin" / "mpicc"
_LINKED_MPI = re.compile(r"NEEDED.*\[libmpi(ch)?\.so")
_PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES C)
add_link_options(-Wl,--as-needed)
find_package(Accord {version} REQUIRED CONFIG)
add_executable(app program.c)
add_executable(barrier barrier.c)
foreach(program app barrier)
  target_link_libraries(${{program}} PRIVATE Accord::accord ${{CMAKE_DL_LIBS}})
endforeach()
"""


def _dynamic(file: Path) -> str:
    return finished(tool("readelf"), "-d", file)


# Calls nothing that libaccord does not define.
_ONLY_INTERCEPTED = """
#include <mpi.h>
int main(void) { MPI_Init(0, 0); MPI_Barrier(MPI_COMM_WORLD); return MPI_Finalize(); }
"""


def _build_by_pkg_config(prefix: Path, source: Path, program: Path) -> None:
    """With --as-needed, as compilers of Ubuntu link: a library that nothing refers to is left out."""
    pkgconfig = prefix / "lib" / "pkgconfig"
    flags = finished(tool("pkg-config"), "--cflags", "--libs", "accord", PKG_CONFIG_PATH=pkgconfig)
    options = [*flags.split(), "-ldl", "-o", program]
    finished(_MPICC, "-Wl,--as-needed", source, *options)


def _expect_two_ranks(prefix: Path, stdout: str) -> None:
    """The sum went by an algorithm of Accord, and by the library of this prefix."""
    told = re.search(r"^2 ranks, (\S+), (.*)$", stdout, re.MULTILINE)
    assert told, stdout
    assert told[1] != "-"
    assert Path(told[2]).resolve() == (prefix / "lib" / "libaccord.so").resolve()


@pytest.fixture(scope="session")
def program(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("program") / "app"
    _build_by_pkg_config(prefix, _PROGRAM, file)
    return file


def test_library_has_a_version_in_its_name(prefix: Path, program: Path) -> None:
    name = prefix / "lib" / "libaccord.so"
    version = re.search(r'ACCORD_VERSION "(.*)"', (prefix / "include/accord/accord.h").read_text())
    assert version is not None
    major = version[1].split(".")[0]
    assert name.readlink() == Path(f"libaccord.so.{major}")
    assert name.with_name(f"libaccord.so.{major}").readlink() == Path(f"libaccord.so.{version[1]}")
    assert f"SONAME) Library soname: [libaccord.so.{major}]" in re.sub(r" +", " ", _dynamic(name))
    assert f"[libaccord.so.{major}]" in _dynamic(program)


def test_nothing_leads_back_to_where_it_was_made(made: Path, prefix: Path) -> None:
    for file in [*prefix.glob("bin/*"), *prefix.glob("lib/*")]:
        if file.is_file() and file.read_bytes()[:4] == b"\x7fELF":
            paths = re.findall(r"(?:RPATH|RUNPATH).*\[(.*)\]", _dynamic(file))
            assert paths in ([], ["$ORIGIN"]), file
    for folder in ("bin", "lib/pkgconfig", "lib/cmake", "share/modulefiles", "share/accord"):
        for file in (prefix / folder).rglob("*"):
            if file.is_file() and (text := file.read_bytes())[:4] != b"\x7fELF":
                assert str(made).encode() not in text, file
                assert str(REPOSITORY).encode() not in text, file


def test_accord_run_of_a_program_built_by_pkg_config(
    prefix: Path, program: Path, accord: Run
) -> None:
    done = accord("run", "-n", 2, program, ACCORD_RUNTIME="host")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    _expect_two_ranks(prefix, done.stdout)


def test_a_linked_program_runs_without_the_command(prefix: Path, program: Path) -> None:
    settings = {"ACCORD_RUNTIME": "host", "LD_LIBRARY_PATH": prefix / "lib"}
    _expect_two_ranks(prefix, finished(MPI / "bin" / "mpiexec", "-n", 2, program, **settings))


def test_linker_does_not_leave_the_mpi_out(prefix: Path, tmp_path: Path) -> None:
    source = tmp_path / "barrier.c"
    source.write_text(_ONLY_INTERCEPTED)
    _build_by_pkg_config(prefix, source, tmp_path / "barrier")
    assert _LINKED_MPI.search(_dynamic(tmp_path / "barrier"))


def test_cmake_project_finds_it(prefix: Path, tmp_path: Path, accord: Run) -> None:
    shutil.copy(_PROGRAM, tmp_path)
    (tmp_path / "barrier.c").write_text(_ONLY_INTERCEPTED)
    (tmp_path / "CMakeLists.txt").write_text(_PROJECT.format(version="0.1"))
    configure = [CMAKE, "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_C_COMPILER={_MPICC}"]
    finished(*configure, f"-DCMAKE_PREFIX_PATH={prefix}")
    finished(CMAKE, "--build", tmp_path / "build")
    assert _LINKED_MPI.search(_dynamic(tmp_path / "build" / "barrier"))
    done = accord("run", "-n", 2, tmp_path / "build" / "app", ACCORD_RUNTIME="host")
    assert done.returncode == 0, done.stderr
    _expect_two_ranks(prefix, done.stdout)


def test_cmake_project_that_wants_another_version_is_refused(prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(app LANGUAGES NONE)\n"
        "find_package(Accord 9.0 CONFIG)\n"
        'if(Accord_FOUND)\n  message(FATAL_ERROR "found")\nendif()\n'
        "find_package(Accord 0.1 REQUIRED CONFIG)\n"
    )
    finished(CMAKE, "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")


def test_command_uses_its_own_prefix(prefix: Path, accord: Run) -> None:
    done = accord("info", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["library"] == str(prefix / "lib" / "libaccord.so")
    assert told["found_by"] == "installation"
    # Asks the library in a process of its own, as accord explain does.
    done = accord("explain", "allreduce", "--bytes", "1M", "-n", 2, ACCORD_RUNTIME="host")
    assert done.returncode == 0, done.stderr


def test_command_works_through_a_link_and_in_any_folder(prefix: Path, tmp_path: Path) -> None:
    link = tmp_path / "accord"
    link.symlink_to(prefix / "bin" / "accord")
    # A module of the user's own that has the name of one that Python or the command imports.
    for name in ("typing.py", "accord.py"):
        (tmp_path / name).write_text("raise SystemExit('the wrong module')\n")
    assert str(prefix) in finished(link, "preload", cwd=tmp_path)
    assert str(prefix) in finished(link, "info", "--json", cwd=tmp_path)


@pytest.mark.parametrize("folder", ["lib64", "lib/x86_64-linux-gnu"])
def test_command_finds_libraries_where_a_distribution_has_them(
    folder: str, prefix: Path, tmp_path: Path
) -> None:
    other = tmp_path / "prefix"
    shutil.copytree(prefix, other, symlinks=True)
    (other / "lib").rename(other / "moved")
    (other / folder).parent.mkdir(exist_ok=True)
    (other / "moved").rename(other / folder)
    library = f"{other}/{folder}/libaccord.so\n"
    assert finished(other / "bin" / "accord", "preload") == library
    assert finished(prefix / "bin" / "accord", "preload", ACCORD_HOME=other) == library


@pytest.fixture
def bare(prefix: Path, tmp_path: Path) -> Path:
    """The command without the packages that came with it."""
    (tmp_path / "bin").mkdir()
    shutil.copy(prefix / "bin" / "accord", tmp_path / "bin")
    shutil.copytree(
        prefix / "share" / "accord" / "python", tmp_path / "share" / "accord" / "python"
    )
    return tmp_path


def refused(home: Path, **variables: object) -> str:
    """What the command says that can't start."""
    done = subprocess.run(
        [home / "bin" / "accord", "info"],
        env=plain_environment(**variables),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("accord: ") and done.stderr.count("\n") == 1
    assert "ACCORD_PYTHON=" in done.stderr
    return done.stderr


def test_command_says_which_python_packages_it_lacks(bare: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare / "venv"], check=True)
    empty = bare / "venv" / "bin" / "python3"
    for python, words in (
        (empty, f"{empty} -m pip install 'typer"),
        (bare / "no-python", f"found no {bare}/no-python"),
    ):
        assert words in refused(bare, ACCORD_PYTHON=python)


def test_command_prefers_the_packages_that_came_with_it(bare: Path) -> None:
    packages = bare / "share" / "accord" / "packages"
    packages.mkdir()
    (packages / "typer.py").write_text("import sys\nprint('own typer')\nsys.exit(0)\n")
    about = packages / "typer-0.7.0.dist-info" / "METADATA"
    about.parent.mkdir()
    about.write_text("Metadata-Version: 2.1\nName: typer\nVersion: 0.7.0\n")
    assert "older typer" in refused(bare)
    about.write_text("Metadata-Version: 2.1\nName: typer\nVersion: 0.20.0\n")
    assert finished(bare / "bin" / "accord", "info") == "own typer\n"


@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_bench_takes_the_mpi_that_is_first_on_path(name: str, accord: Run) -> None:
    """Whatever the benchmark program was built with, and whichever suits the number of ranks."""
    folder = MPI.parent / name / "bin"
    if not (folder / "mpiexec").is_file():
        pytest.skip(f"no {name} in {MPI.parent}")
    path = f"{folder}:{plain_environment()['PATH']}"
    for ranks in (1, 64):
        words = ("bench", "allreduce", "-n", ranks, "--dry-run")
        done = accord(*words, PATH=path, ACCORD_PYTHON=PYTHON)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"{folder}/mpiexec"), done.stdout


def test_bench_runs(accord: Run) -> None:
    words = ("bench", "allreduce", "-n", 2, "--memory", "device", "--max", "8")
    path = f"{MPI}/bin:{plain_environment()['PATH']}"
    done = accord(*words, PATH=path, ACCORD_PYTHON=PYTHON, ACCORD_RUNTIME="host")
    assert done.returncode == 0 and " ok " in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("linked", ["nothing", "file", "folder"])
def test_module_file_names_the_prefix(linked: str, prefix: Path, tmp_path: Path) -> None:
    (file,) = (prefix / "share" / "modulefiles" / "accord").iterdir()
    if linked == "file":
        (tmp_path / "accord").mkdir()
        (tmp_path / "accord" / "newest").symlink_to(file)
        file = tmp_path / "accord" / "newest"
    elif linked == "folder":
        (tmp_path / "accord").symlink_to(file.parent)
        file = tmp_path / "accord" / file.name
    script = (
        "proc prepend-path {name value} { puts $name=$value }\n"
        "proc module-whatis {text} {}\nproc conflict {name} {}\n"
        f"set ModulesCurrentModulefile {{{file}}}\nsource {{{file}}}\n"
    )
    done = subprocess.run(
        [tool("tclsh")], input=script, capture_output=True, text=True, timeout=30, check=True
    )
    told = dict(line.split("=", 1) for line in done.stdout.splitlines())
    places = {
        "PATH": "accord",
        "LD_LIBRARY_PATH": "libaccord.so",
        "LIBRARY_PATH": "libaccord.so",
        "CPATH": "accord/accord.h",
        "PKG_CONFIG_PATH": "accord.pc",
        "CMAKE_PREFIX_PATH": "lib/cmake/Accord/AccordConfig.cmake",
    }
    assert set(told) == set(places)
    for name, place in places.items():
        file = Path(told[name]) / place
        assert file.is_file() and file.is_relative_to(prefix), name


@pytest.fixture
def verbs(accord: Run) -> set[str]:
    done = accord("--help", COLUMNS="200", TERM="dumb")
    found = set(re.findall(r"^[^\w-]*([a-z]+)  +[A-Z]", done.stdout, re.MULTILINE))
    assert {"run", "bench"} <= found, done.stdout
    return found


def test_manual_page_has_every_verb(prefix: Path, verbs: set[str]) -> None:
    page = (prefix / "share" / "man" / "man1" / "accord.1").read_text()
    assert set(re.findall(r"^\.SS accord (\w+)$", page, re.MULTILINE)) == verbs
    assert "\\fB\\-\\-bind\\-gpu\\fR" in page


def test_bash_completes_verbs(prefix: Path, verbs: set[str]) -> None:
    file = prefix / "share" / "bash-completion" / "completions" / "accord"
    script = f'. {file}; COMP_WORDS=(accord ""); COMP_CWORD=1; _accord_completion accord'
    script += '; echo "${COMPREPLY[@]}"'
    path = f"{prefix}/bin:{plain_environment()['PATH']}"
    assert set(finished(tool("bash"), "-c", script, PATH=path).split()) == verbs


def test_documents_are_there(prefix: Path) -> None:
    folder = prefix / "share" / "doc" / "accord"
    for name in ("README.md", "LICENSE", "docs/install.md", "examples/allreduce_device.c"):
        assert (folder / name).is_file()


def test_what_the_document_says_removes_all(prefix: Path, tmp_path: Path) -> None:
    shutil.copytree(prefix, tmp_path / "prefix", symlinks=True)
    text = (REPOSITORY / "docs" / "install.md").read_text()
    (block,) = re.findall(r"^```sh\n(cd \$PREFIX\n.*?)^```$", text, re.MULTILINE | re.DOTALL)
    finished(tool("bash"), "-ec", block, PREFIX=tmp_path / "prefix")
    assert [file for file in (tmp_path / "prefix").rglob("*") if not file.is_dir()] == []


def test_all_name_the_same_version(prefix: Path) -> None:
    texts = {
        "include/accord/accord.h": r'ACCORD_VERSION "([\d.]+)"',
        "lib/pkgconfig/accord.pc": r"Version: ([\d.]+)",
        "lib/cmake/Accord/AccordConfigVersion.cmake": r'set\(PACKAGE_VERSION "([\d.]+)"\)',
        "share/accord/python/accord/__init__.py": r'__version__ = "([\d.]+)"',
        "share/man/man1/accord.1": r'"Accord ([\d.]+)"',
    }
    found = {name: re.findall(text, (prefix / name).read_text()) for name, text in texts.items()}
    assert len({tuple(versions) for versions in found.values()}) == 1, found
    (version,) = found["lib/pkgconfig/accord.pc"]
    assert (prefix / "share" / "modulefiles" / "accord" / version).is_file()


def test_fortran_module_says_what_the_header_says(prefix: Path) -> None:
    folder = prefix / "include" / "accord"
    header = (folder / "accord.h").read_text()
    module = (folder / "accord.f90").read_text()
    constant = r"(ACCORD_(?:OK|ERROR_\w+|MEMORY_\w+)) (?:= )?(\d+)"
    assert re.findall(constant, header) == re.findall(constant, module)
    functions = set(re.findall(r"\b(accord_\w+)\([^)]*\);", header))
    public = re.findall(r"^  public :: (.*)$", module, re.MULTILINE)
    shown = {name for line in public for name in line.split(", ")}
    assert shown == {name for name in functions if not name.endswith("_json")}


def test_fortran_module_is_standard_fortran(prefix: Path, tmp_path: Path) -> None:
    source = prefix / "include" / "accord" / "accord.f90"
    finished(tool("gfortran"), "-std=f2003", "-Wall", "-Werror", "-c", source, cwd=tmp_path)


def test_debian_package_unpacks_and_runs(tmp_path: Path, program: Path) -> None:
    """The package of the same files; cpack needs nothing of a machine but dpkg."""
    tool("dpkg-deb")
    cpack = Path(CMAKE).with_name("cpack")
    config = BUILD / "CPackConfig.cmake"
    # Compressed as little as may be: this is about what is inside.
    quick = "CPACK_DEBIAN_COMPRESSION_TYPE=gzip"
    finished(cpack, "-G", "DEB", "-B", tmp_path, "-D", quick, "--config", config)
    (package,) = tmp_path.glob("accord_*.deb")
    fields = finished("dpkg-deb", "-f", package)
    assert re.search(r"^Depends: .*python3.*libc6 \(>= 2\.\d+\)", fields, re.MULTILINE), fields
    assert "ldconfig" in finished("dpkg-deb", "-I", package, "triggers")
    finished("dpkg-deb", "-x", package, tmp_path / "root")
    prefix = tmp_path / "root" / "usr"
    words = (prefix / "bin" / "accord", "run", "-n", 2, program)
    _expect_two_ranks(prefix, finished(*words, ACCORD_RUNTIME="host", XDG_CONFIG_HOME=tmp_path))

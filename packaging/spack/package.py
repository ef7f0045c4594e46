# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Recipe for Spack; docs/install.md says how to use it."""

from spack.package import *


class Accord(CMakePackage):
    """Makes the MPI you have accelerator-aware: a library to preload into MPI programs or to link them with, and a
    command that runs, checks, measures and tunes them."""

    license("Apache-2.0")

    # Built from a checkout: spack dev-build accord@main.
    version("main")

    variant(
        "mpi",
        default="mpich",
        values=("mpich", "openmpi"),
        multi=False,
        description="Whose headers a shim is built with: it serves every MPI of that ABI; that of MPICH 5 also the MPI 5 standard ABI",
    )
    variant("bench", default=True, description="Build the programs behind accord bench")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("fmt@9:12", type="build")
    depends_on("nlohmann-json", type="build")
    depends_on("cli11", type="build", when="+bench")
    depends_on("python@3.10:", type=("build", "run"))
    depends_on("py-typer@0.15.4:", type=("build", "run"))
    depends_on("py-rich@13:", type=("build", "run"))
    depends_on("mpich", when="mpi=mpich")
    depends_on("openmpi@4.1:", when="mpi=openmpi")

    conflicts("%gcc@:10", msg="Accord is C++20")

    def cmake_args(self):
        mpi = self.spec.variants["mpi"].value
        other = {"mpich": "OPENMPI", "openmpi": "MPICH"}[mpi]
        return [
            self.define(f"ACCORD_{mpi.upper()}_ROOT", self.spec[mpi].prefix),
            self.define(f"ACCORD_{other}_ROOT", ""),
            self.define("ACCORD_SYSTEM_MPI", False),
            self.define("ACCORD_TESTS", False),
            self.define_from_variant("ACCORD_BENCH", "bench"),
            self.define("Python3_EXECUTABLE", python.path),
        ]

    def setup_run_environment(self, env):
        # The Python that has the packages the command needs, whichever the user's environment has.
        env.set("ACCORD_PYTHON", self.spec["python"].command.path)

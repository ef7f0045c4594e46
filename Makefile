# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
#
# make bench   sets everything up, builds, runs four collectives on 2 ranks with verified results
# make test    the same for the tests
# make build   libraries, benchmark and tests in build/
# make install PREFIX=FOLDER   libraries, command and documents below FOLDER (/usr/local), which may be moved
# make package the same as a Debian package in build/
# make wheel   the same as a wheel for pip in dist/, which any x86 Linux of the last years takes, and its sources
# make nightly what takes too long for each change: runs whole what make test runs in part, all blocks of the documents
#              and tests of others, fuzzes each target of tests/fuzz for a minute, soaks for SOAK_HOURS, tests a wheel,
#              and records all in tests/nightly.jsonl
# make format  formats the C++ and Python files
# make tables  makes the tables of the documents anew from the records in bench/results
# make clean   removes build/;  make distclean also .deps/
#
# PYTHON: the Python 3 that the environments in .deps are made from. JOBS: parallel compilations and tests.
PYTHON ?= python3
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
export PYTHON JOBS

PREFIX ?= /usr/local
SOAK_HOURS ?= 1
BENCH ?= bcast allreduce allgather alltoall -n 2 --memory device --peer staged --max 1M

.PHONY: all build bench install package wheel test nightly format tables clean distclean
all: build

build:
	@scripts/setup build
	@scripts/build

bench:
	@scripts/setup build
	@scripts/build bench
	@.deps/tools/bin/accord bench $(BENCH)

install:
	@scripts/setup build
	@scripts/build bench
	@scripts/install "$(PREFIX)"

package:
	@scripts/setup build
	@scripts/build bench
	@scripts/install --package

wheel:
	@scripts/setup wheel
	@.deps/wheel/bin/python -m build --sdist --wheel --outdir dist .

test:
	@scripts/setup test
	@scripts/build all
	@scripts/test

nightly:
	@scripts/setup test
	@scripts/build all
	@scripts/nightly $(SOAK_HOURS)

format:
	@scripts/format

tables:
	@scripts/setup build
	@.deps/tools/bin/python scripts/tables.py

clean:
	rm -rf build dist

distclean: clean
	rm -rf .deps

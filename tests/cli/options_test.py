# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Where the program begins on a launcher's command line."""

from __future__ import annotations

import pytest

from accord.options import Segment, join_segments, split_command_line, take_options

OWN = {"--mpi": 1, "--bind-gpu": 0, "-n": 1, "-np": 1}
RUN = {"--mpi": 1, "--bind-gpu": 0}


def split(text: str) -> tuple[list[str], list[tuple[str, str]]]:
    own, segments = split_command_line(text.split(), RUN)
    return own, [(" ".join(part.options), " ".join(part.program)) for part in segments]


@pytest.mark.parametrize(
    ("options", "program"),
    [
        ("-n 4", "./app"),
        ("-np 4 -host node", "./app -n 3"),
        ("-genv NAME value -bind-to core", "./app"),
        ("--mca pml ob1 --oversubscribe", "./app --mpi mpich"),
        ("-x NAME=value --map-by=ppr:1:node", "sh -c true"),
        ("-unknown-to-us some-value -l", "sh"),
        ("-unknown-flag", "sh -c true"),
        ("", "./app"),
    ],
)
def test_program_begins_after_the_launchers_options(options: str, program: str) -> None:
    assert split(f"{options} {program}") == ([], [(options, program)])


def test_own_options_are_taken_out_before_the_program_only() -> None:
    own, segments = split("-n 2 --mpi abi -l --bind-gpu --mpi=mpich ./app --bind-gpu --mpi x")
    assert own == ["--mpi", "abi", "--bind-gpu", "--mpi=mpich"]
    assert segments == [("-n 2 -l", "./app --bind-gpu --mpi x")]


def test_double_dash_settles_where_the_program_begins() -> None:
    own, segments = split_command_line(["-n", "2", "-strange", "--", "./app", "--", "x"], RUN)
    assert (own, segments) == ([], [Segment(["-n", "2", "-strange"], ["./app", "--", "x"])])


def test_colon_separates_programs() -> None:
    _, segments = split("-n 1 ./a x : -n 2 -wdir /tmp ./b : sh")
    assert segments == [("-n 1", "./a x"), ("-n 2 -wdir /tmp", "./b"), ("", "sh")]


def test_options_without_program() -> None:
    assert split("-n 2 -genv A") == ([], [("-n 2 -genv A", "")])
    assert split("") == ([], [("", "")])
    assert split("-n") == ([], [("-n", "")])


def test_joining_is_the_inverse_of_splitting() -> None:
    words = "-n 1 -strange ./a x : -n 2 ./b -- y".split()
    _, segments = split_command_line(["-n", "1", "-strange", "--", *words[3:]], RUN)
    assert split_command_line(join_segments(segments), {}) == ([], segments)


@pytest.mark.parametrize("option", ["-configfile hosts.cfg", "--app=jobs"])
def test_programs_named_in_a_file_are_noticed(option: str) -> None:
    _, segments = split_command_line(option.split(), RUN)
    assert segments[0].file_option() == option.split()[0]


def test_take_options_anywhere() -> None:
    own, rest = take_options("allreduce --min 8 -n 2 --mpi=abi bcast -np 4 --json".split(), OWN)
    assert own == "-n 2 --mpi=abi -np 4".split()
    assert rest == "allreduce --min 8 bcast --json".split()

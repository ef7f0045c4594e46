# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Takes a launcher's command line apart: our own options, the launcher's, the program and its arguments.

Everything before the program that is not ours goes to the launcher unchanged, so the one question is
where the program begins. Known options say how many words follow them; after an unknown one, a word
that is no executable is its value. `--` before the program settles it.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from typer.core import TyperCommand

# Words that follow an option of MPICH's or Open MPI's mpiexec (leading dashes dropped).
_VALUES_OF = {
    **dict.fromkeys(
        """
        n np c N ppn perhost host hosts H hostfile f machinefile default-hostfile rankfile rf map-by
        rank-by bind-to membind wdir wd dir path prefix envlist genvlist x launcher launcher-exec
        launch-agent rmk iface arch usize demux topolib nameserver s outfile-pattern errfile-pattern
        npernode npersocket cpu-set cpu-list cpus-per-proc cpus-per-rank gpus-per-proc output
        output-filename display tune am timeout stdin personality dvm-uri hnp ompi-server
        runtime-options max-restarts preload-files report-events report-uri report-pid
        memory-alloc-kinds initial-errhandler app configfile
        """.split(),
        1,
    ),
    **dict.fromkeys("env genv mca gmca omca pmixmca gpmixmca prtemca".split(), 2),
    **dict.fromkeys(
        """
        oversubscribe nooversubscribe overcommit allow-run-as-root report-bindings tag-output
        timestamp-output display-map display-allocation display-topo use-hwthread-cpus do-not-launch
        do-not-resolve verbose v V d debug debug-devel q quiet bynode byslot bycore bysocket
        bind-to-core bind-to-socket bind-to-none nolocal pernode merge-stderr-to-stdout
        index-argv-by-rank preload-binary genvall genvnone envall envnone l prepend-rank
        print-all-exitcodes print-rank-map disable-auto-cleanup disable-x enable-x order-nodes
        disable-hostname-propagation skip-launch-node info enable-recovery disable-recovery
        get-stack-traces report-state-on-timeout
        """.split(),
        0,
    ),
}
_FILE_OPTIONS = ("app", "configfile")


def launcher_options() -> frozenset[str]:
    """The options of MPICH's and Open MPI's mpiexec that are known, with one dash and with two."""
    return frozenset(f"{dashes}{name}" for name in _VALUES_OF for dashes in ("-", "--"))


@dataclass
class Segment:
    """One program of the command (an MPMD command has several, separated by `:`)."""

    options: list[str] = field(default_factory=list)
    program: list[str] = field(default_factory=list)

    def file_option(self) -> str | None:
        """An option that names the programs in a file, where we cannot see them."""
        for word in self.options:
            if word.startswith("-") and word.lstrip("-").split("=", 1)[0] in _FILE_OPTIONS:
                return word
        return None

    def values_of(self, names: Collection[str]) -> list[str]:
        """What follows the options of these names, without their dashes."""
        values = []
        for word, following in zip(self.options, [*self.options[1:], ""], strict=False):
            name, equals, value = word.lstrip("-").partition("=")
            if word.startswith("-") and name in names:
                values.append(value if equals else following)
        return values


def _value_count(word: str, following: list[str]) -> int:
    name = word.lstrip("-")
    if "=" in name:
        return 0
    if (count := _VALUES_OF.get(name)) is not None:
        return min(count, len(following))
    # An unknown option: what follows is its value unless it can be the program.
    if following and not following[0].startswith("-") and following[0] != ":":
        return 0 if shutil.which(following[0]) else 1
    return 0


def split_command_line(
    args: list[str], own_options: Mapping[str, int]
) -> tuple[list[str], list[Segment]]:
    """Our own options among `args`, and the programs; own_options says how many words follow each."""
    own: list[str] = []
    segments = [Segment()]
    at = 0
    while at < len(args):
        word, segment = args[at], segments[-1]
        at += 1
        name = word.split("=", 1)[0]
        if segment.program:
            if word == ":":
                segments.append(Segment())
            else:
                segment.program.append(word)
        elif word == "--" and at < len(args):
            segment.program.append(args[at])
            at += 1
        elif name in own_options:
            count = 0 if "=" in word else own_options[name]
            own += [word, *args[at : at + count]]
            at += count
        elif word.startswith("-"):
            count = _value_count(word, args[at:])
            segment.options += [word, *args[at : at + count]]
            at += count
        else:
            segment.program.append(word)
    return own, segments


def join_segments(segments: list[Segment]) -> list[str]:
    """The inverse of split_command_line, with `--` before each program."""
    words: list[str] = []
    for position, segment in enumerate(segments):
        words += [":"] if position else []
        words += segment.options
        words += ["--", *segment.program] if segment.program else []
    return words


def take_options(args: list[str], own_options: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """Our own options, wherever they stand in `args`, and the rest."""
    own: list[str] = []
    rest: list[str] = []
    at = 0
    while at < len(args):
        word = args[at]
        count = own_options.get(word.split("=", 1)[0], -1)
        taken = 1 if count <= 0 or "=" in word else 1 + count
        (rest if count < 0 else own).extend(args[at : at + taken])
        at += taken
    return own, rest


class _OwnOptionsFirst(TyperCommand):
    """A verb that passes words on: sorts its own options out before they are parsed."""

    usage = ""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [self.usage]

    def own_options(self, ctx: Any) -> dict[str, int]:
        options: dict[str, int] = {}
        for parameter in self.get_params(ctx):
            if parameter.param_type_name == "option":
                count = 0 if getattr(parameter, "is_flag", False) else parameter.nargs
                names = [*parameter.opts, *parameter.secondary_opts]
                options.update(dict.fromkeys(names, count))
        return options


class LaunchCommand(_OwnOptionsFirst):
    """Own options stand anywhere before the program; what follows the program is the program's."""

    usage = "-n RANKS [OPTIONS] [LAUNCHER OPTIONS] PROGRAM [ARGUMENTS]"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        own, segments = split_command_line(args, self.own_options(ctx))
        return super().parse_args(ctx, [*own, "--", *join_segments(segments)])


class PassOnCommand(_OwnOptionsFirst):
    """Own options stand anywhere; all other words are passed on."""

    usage = "OPERATION... [OPTIONS] [OPTIONS OF THE BENCHMARK]"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        own, rest = take_options(args, self.own_options(ctx))
        return super().parse_args(ctx, [*own, "--", *rest])

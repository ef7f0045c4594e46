# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The hosts of hosts.py: their links have the rates that were asked for, and nothing outlives them."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import designs
import pytest

HOSTS = Path(__file__).with_name("hosts.py")
MPIEXEC = os.environ.get("ACCORD_TEST_MPIEXEC", "")
FLAVOUR = os.environ.get("ACCORD_TEST_FLAVOUR", "mpich")
BENCH = os.environ.get("ACCORD_TEST_BENCH", "")
LIBRARY = os.environ.get("ACCORD_TEST_LIBRARY", "")
SKIPPED = 77
# The rates of links have nothing to do with the MPI that starts the two ends: measured by one of them.
MEASURES_LINKS = not os.environ.get("ACCORD_TEST_NO_LINKS")
of_links = pytest.mark.skipif(not MEASURES_LINKS, reason="the other MPI measures links")
BYTES = 2_000_000

# Rank 1 listens on its host; rank 0 sends it something, and gets as much back.
EXCHANGE = f"""
import os, socket, time
rank = int(os.environ.get("PMI_RANK", os.environ.get("PMIX_RANK", "0")))
data = bytes({BYTES})
def take(link):
    left = {BYTES}
    while left:
        left -= len(link.recv(min(left, 65536)))
if rank == 1:
    with socket.create_server(("10.77.0.2", 7777)) as server:
        link = server.accept()[0]
        take(link)
        link.sendall(b"x")
        link.sendall(data)
        link.recv(1)
else:
    while True:
        try:
            link = socket.create_connection(("10.77.0.2", 7777))
            break
        except OSError:
            time.sleep(0.05)
    start = time.monotonic()
    link.sendall(data)
    link.recv(1)
    middle = time.monotonic()
    take(link)
    end = time.monotonic()
    link.sendall(b"x")
    print("seconds", middle - start, end - middle)
"""


def command(*options: str) -> list[str]:
    return [
        sys.executable,
        str(HOSTS),
        "--flavour",
        FLAVOUR,
        "--mpiexec",
        MPIEXEC,
        *options,
    ]


@pytest.fixture(scope="module", autouse=True)
def permitted() -> None:
    if not MPIEXEC:
        pytest.skip("no MPI to start ranks with: ACCORD_TEST_MPIEXEC is not set")
    done = subprocess.run(
        command("--", "true"), capture_output=True, text=True, timeout=60
    )
    if done.returncode == SKIPPED:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stderr


def seconds(*options: str, program: str = EXCHANGE) -> tuple[float, float]:
    done = subprocess.run(
        command(*options, "--", sys.executable, "-c", program),
        capture_output=True,
        text=True,
        timeout=60,
    )
    if done.returncode == SKIPPED:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("seconds"))
    there, back = line.split()[1:]
    return float(there), float(back)


def in_one_of_a_few_tries(test: Callable[..., None]) -> Callable[..., None]:
    """Where other programs take the processors, what is measured takes longer, and what is measured late less."""

    @functools.wraps(test)
    def again(*words: object, **named: object) -> None:
        for _ in range(4):
            with contextlib.suppress(AssertionError):
                return test(*words, **named)
        return test(*words, **named)

    return again


@of_links
@in_one_of_a_few_tries
def test_a_link_is_as_fast_as_it_was_made() -> None:
    at_40_mbit = BYTES / 5e6
    for options in (["--out", "40mbit"], ["--in", "40mbit"]):
        for took in seconds(*options):
            assert at_40_mbit * 0.7 < took < at_40_mbit * 4
    for took in seconds():
        assert took < at_40_mbit / 2


@of_links
@in_one_of_a_few_tries
def test_each_direction_has_a_rate_of_its_own() -> None:
    """Of one host: what it sends is slow, what it gets is not."""
    there, back = seconds("--out", "40mbit,10gbit")
    assert there > BYTES / 5e6 * 0.7 and back < there / 2


@of_links
@in_one_of_a_few_tries
def test_each_link_has_a_rate_of_its_own() -> None:
    second = EXCHANGE.replace("10.77.0.2", "10.77.1.2")
    assert second != EXCHANGE
    for took in seconds("--links", "2", "--out", "40mbit", program=second):
        assert BYTES / 5e6 * 0.7 < took < BYTES / 5e6 * 4


@of_links
def test_what_is_for_a_link_comes_by_it() -> None:
    second = (
        EXCHANGE.replace("10.77.0.2", "10.77.1.2")
        + """
if rank == 1:
    lines = [line.split() for line in open("/proc/net/dev")]
    print("received", *(int(line[1]) for line in lines if line[0] == "eth1:"))
"""
    )
    words: list[str] = []
    for _ in range(3):
        done = subprocess.run(
            command("--links", "2", "--", sys.executable, "-c", second),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        words = done.stdout.split()
        # What a rank has printed last a launcher has lost, where others took the processors.
        if "received" in words:
            break
    assert int(words[words.index("received") + 1]) > BYTES


HOST_LINKS, DEVICE_LINKS = ("10.77.0.1", "10.77.0.2"), ("10.77.0.101", "10.77.0.102")


def between(here: str, there: str) -> str:
    """EXCHANGE from an address of the first host to one of the second."""
    return EXCHANGE.replace("10.77.0.2", there).replace(
        "7777))\n            break", f"7777), None, ('{here}', 0))\n            break"
    )


@of_links
@pytest.mark.parametrize(
    ("here", "there", "mbit_there", "mbit_back"),
    [
        (HOST_LINKS[0], HOST_LINKS[1], 160, 160),
        (DEVICE_LINKS[0], DEVICE_LINKS[1], 40, 40),
        # Out of a host link into a device link, as a proxy's data goes, and the other way round.
        (HOST_LINKS[0], DEVICE_LINKS[1], 80, 40),
        (DEVICE_LINKS[0], HOST_LINKS[1], 40, 80),
    ],
)
@in_one_of_a_few_tries
def test_a_device_link_has_rates_of_its_own(
    here: str, there: str, mbit_there: int, mbit_back: int
) -> None:
    rates = ["--out", "160mbit", "--in", "160mbit"]
    rates += ["--device-out", "40mbit", "--device-in", "80mbit"]
    took = seconds(*rates, program=between(here, there))
    for one, mbit in zip(took, (mbit_there, mbit_back), strict=True):
        at_that = BYTES / (mbit * 125e3)
        assert at_that * 0.8 < one < at_that * 1.7


# What waits too long for its receiver is copied to host memory, from where its rank sends it: by the device link unless an active
# design has chosen where it goes.
PATIENT = "10000"
HASTY = "0"
# Runs a benchmark, and says by which links its host has sent how many bytes.
COUNTED = """
"$@" || exit
awk '$1 ~ /^(eth0|device0):/ { print "sent", $1, $10 }' /proc/net/dev
"""


@pytest.mark.skipif(not BENCH, reason="no benchmark, or no UCX: ACCORD_TEST_BENCH")
@pytest.mark.parametrize(
    ("design", "link", "other", "patience_ms"),
    [
        ("direct", "device0:", "eth0:", PATIENT),
        ("passive", "eth0:", "device0:", PATIENT),
        ("active1", "eth0:", "device0:", PATIENT),
        ("active1", "eth0:", "device0:", HASTY),
        ("active2", "eth0:", "device0:", PATIENT),
        ("active2", "eth0:", "device0:", HASTY),
    ],
)
@in_one_of_a_few_tries
def test_ranks_send_by_the_device_link_and_proxies_by_the_host_link(
    design: str, link: str, other: str, patience_ms: str
) -> None:
    if patience_ms == HASTY and not MEASURES_LINKS:
        pytest.skip("the other MPI sends where the receiver is late")
    settings = {"ACCORD_NET_DESIGN": design, "ACCORD_NET_PATIENCE_MS": patience_ms}
    bench = [BENCH, "latency", "--memory", "device", "--min", "256K", "--max", "256K"]
    # Enough that what goes before the proxies are there, straight, counts little.
    bench += ["--warmup", "100", "--iterations", "800"]
    done = subprocess.run(
        command(
            *["--device-out", "2gbit", "--preload", LIBRARY, "--"],
            *["sh", "-c", COUNTED, "counted", *bench],
        ),
        env={**os.environ, "ACCORD_RUNTIME": "host", **settings},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert f"net-{design}" in done.stdout
    sent = {}
    for line in done.stdout.splitlines():
        if line.startswith("sent "):
            _, name, count = line.split()
            sent[name] = sent.get(name, 0) + int(count)
    assert sent[link] > 8 * 256 * 1024
    assert sent[link] > 2 * sent[other]


def test_ranks_of_a_host_use_its_links_in_turn() -> None:
    done = subprocess.run(
        command(
            *["--ranks", "3,1", "--links", "2", "--"],
            *["sh", "-c", "echo $(hostname) $FI_TCP_IFACE"],
        ),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert sorted(done.stdout.split("\n")) == [
        "",
        "host0 eth0",
        "host0 eth0",
        "host0 eth1",
        "host1 eth0",
    ]


@of_links
def test_a_delay_is_one_of_each_link_and_direction() -> None:
    there, _ = seconds("--delay-us", "20000")
    assert there > 0.08  # two links there and two back


def test_ranks_are_told_which_node_they_are_on() -> None:
    done = subprocess.run(
        command(
            "--ranks", "2,1", "--", "sh", "-c", "echo $(hostname) $ACCORD_NODE_SPLIT"
        ),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert sorted(done.stdout.split("\n")) == [
        "",
        "host0 0,0,1",
        "host0 0,0,1",
        "host1 0,0,1",
    ]


def test_each_rank_sees_one_gpu_of_its_host() -> None:
    done = subprocess.run(
        command(
            "--ranks",
            "2,1",
            "--gpus",
            "0,1:7",
            "--",
            "sh",
            "-c",
            "echo $CUDA_VISIBLE_DEVICES",
        ),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert sorted(done.stdout.split()) == ["0", "1", "7"]


def with_marker(marker: str) -> Iterator[int]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (folder / "environ").read_bytes():
                yield int(folder.name)
        except OSError:
            continue


def test_nothing_stays_when_it_is_killed(tmp_path: Path) -> None:
    marker = f"ACCORD_TEST_MARKER={tmp_path}"
    name, value = marker.split("=", 1)
    started = tmp_path / "started"
    process = subprocess.Popen(
        command("--", "sh", "-c", f"touch {started}; sleep 600"),
        env={**os.environ, name: value},
    )
    end = time.monotonic() + 30
    while not started.exists() and time.monotonic() < end:
        time.sleep(0.1)
    assert started.exists() and len(list(with_marker(marker))) > 3
    process.send_signal(signal.SIGKILL)
    process.wait()
    while list(with_marker(marker)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not list(with_marker(marker))


def test_designs_know_the_machines() -> None:
    machines = designs.networks()
    lines = designs.MACHINES.read_text().splitlines()
    assert len(machines) == sum(
        line.startswith("MACHINE(") and "," in line for line in lines
    )
    assert machines["mic"] == 6800
    settings = (designs.MACHINES.parents[2] / "base/config.def").read_text()
    assert f'"none|{"|".join(machines)}: ' in settings


BED = Path(__file__).with_name("bed.py")
NAPS = os.environ.get("ACCORD_TEST_NAPS", "")
of_bench = pytest.mark.skipif(
    not (BENCH and NAPS and MEASURES_LINKS),
    reason="no UCX, or the other MPI measures it",
)


def bed(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *[sys.executable, str(BED), "--flavour", FLAVOUR, "--mpiexec", MPIEXEC],
            *["--preload", f"{NAPS}:{LIBRARY}", "--bench", BENCH, "--jobs", "1"],
            *["--machines", "nvlink", "--network", "100"],
            *["--directory", str(directory), *options],
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )


@of_bench
def test_the_bed_records_every_way_of_a_machine(tmp_path: Path) -> None:
    what = ["collectives-1+1", "messages"]
    short = ["--most", "32", "--seconds", "0.01", "--minutes", "1.5"]
    done = bed(tmp_path, "--what", *what, *short)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in what:
        lines = (tmp_path / f"{name}-nvlink.jsonl").read_text().splitlines()
        records = [json.loads(line) for line in lines]
        assert {one["way"] for one in records} >= {"auto", "host", "direct"}
        assert all(one["correct"] for one in records)
        assert {one["machine"]["name"] for one in records} == {
            "2 hosts of one machine, as nvlink, 500 times slower"
        }


@of_bench
def test_the_bed_ends_in_time_and_says_what_is_missing(tmp_path: Path) -> None:
    start = time.monotonic()
    done = bed(tmp_path, "--what", "messages", "--minutes", "0.001")
    assert done.returncode == 1
    assert "nothing measured: messages-nvlink" in done.stdout
    assert time.monotonic() - start < 30

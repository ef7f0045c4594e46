#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Runs an MPI program over several hosts that are one machine.

Each host is a network namespace with a name, an address and a /dev/shm of its own, and a link to a switch, or several,
whose rate and delay can be set for either direction. With several, ranks of a host use them in turn. With a device link
Accord's own messages from rank to rank go by that one, and those of proxies and of the host MPI by the other, the host
link; both end at one switch, so that a proxy's data may leave by a host link and arrive by a device link. All of it lives
in one PID namespace, whose processes the kernel ends with the first of them, and namespaces go with their last process:
nothing stays behind, however the run ends.

Ranks go to the hosts in blocks, and Accord is told so (ACCORD_NODE_SPLIT), since hosts of one kernel look like one node
to it. Ends with 77, and says why, where such namespaces or the Python package pyroute2 are not to be had.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SKIPPED = 77
# Says that namespaces are made already, and which process stands for which host.
INSIDE = "ACCORD_TEST_HOSTS_INSIDE"
PROCESSES = "ACCORD_TEST_HOSTS_PROCESSES"
NAMESPACES = ["--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--net"]
PR_SET_PDEATHSIG = 1
MEMORY = Path("/dev/shm")
BIND_GPU = Path(__file__).resolve().parents[2] / "python/accord/bind_gpu.sh"
SEGMENT_BYTES = 16 * 1024  # the longest packet of a connection over a link with a rate
CONGESTION_CONTROL = "/proc/sys/net/ipv4/tcp_congestion_control"
# 1: only the link that has an address says so; else any link to the switch may, and gets what is for another.
ARP_IGNORE = "/proc/sys/net/ipv4/conf/all/arp_ignore"
DEVICE_LINK = "device0"
DEVICE_TABLE = 100  # of routes


@dataclass
class Host:
    number: int
    ranks: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def name(self) -> str:
        return f"host{self.number}"

    @property
    def folder(self) -> Path:
        """What is its /dev/shm."""
        return MEMORY / "hosts" / self.address

    @property
    def address(self) -> str:
        return self.address_of(0)

    def address_of(self, link: int) -> str:
        return f"10.77.{link}.{self.number + 1}"

    @property
    def device_address(self) -> str:
        """In the subnet of the first link."""
        return f"10.77.0.{self.number + 101}"

    def hardware_address(self, name: str) -> str:
        return f"02:00:00:00:{int(name == DEVICE_LINK):02x}:{self.number + 1:02x}"


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--ranks", default="1,1", help="ranks of each host, as in 2,1 (default: 1,1)"
    )
    parser.add_argument("--flavour", choices=["mpich", "openmpi"], required=True)
    parser.add_argument("--mpiexec", type=Path, required=True)
    parser.add_argument(
        "--out",
        help="rate of what leaves each host, as in 200mbit or, by host, 200mbit,1gbit",
    )
    parser.add_argument(
        "--in", dest="into", help="rate of what enters it (default of both: no limit)"
    )
    parser.add_argument(
        "--device-out",
        help="gives each host a device link, and says the rate of what leaves by it",
    )
    parser.add_argument("--device-in", help="rate of what enters by the device link")
    parser.add_argument(
        "--delay-us",
        type=int,
        default=0,
        help="of each direction of a link, in microseconds",
    )
    parser.add_argument(
        "--links", type=int, default=1, help="links of each host (default: 1)"
    )
    parser.add_argument(
        "--gpus", help="GPUs of each host, of which each rank sees one, as in 0,1:2,3"
    )
    parser.add_argument("--preload", help="LD_PRELOAD of the ranks")
    parser.add_argument("program", nargs="+")
    return parser.parse_args(words)


def skip(why: str) -> None:
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def enter_namespaces() -> None:
    """Becomes the same command in namespaces of its own, which end when this process does."""
    for tool in ("unshare", "nsenter", "mount", "hostname"):
        if shutil.which(tool) is None:
            skip(f"no {tool} on this machine")
    if importlib.util.find_spec("pyroute2") is None:
        skip("the Python package pyroute2 is not installed")
    unshare = [
        "unshare",
        *([] if os.geteuid() == 0 else ["--map-root-user"]),
        *NAMESPACES,
    ]
    tried = subprocess.run([*unshare, "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        skip(f"namespaces are not permitted: {tried.stderr.strip()}")
    os.environ[INSIDE] = "1"
    os.execvp("unshare", [*unshare, sys.executable, *sys.argv])


def start(host: Host) -> None:
    """Makes the host's namespaces, held by a process that does nothing."""
    (host.folder / "tmp").mkdir(parents=True)
    script = f"hostname {host.name} && mount --bind {host.folder} {MEMORY}"
    # UCX looks for interfaces in /sys; without this it sees those of the machine.
    script += " && { mount -t sysfs sysfs /sys || true; }"
    # Of connections that share a link while all wait for the slowest: 94 % of it in use by Reno, 70 % by CUBIC and BBR.
    script += f" && {{ echo reno >{CONGESTION_CONTROL} || true; }}"
    script += f" && {{ echo 1 >{ARP_IGNORE} || true; }} && exec sleep infinity"
    host.process = subprocess.Popen(
        ["unshare", "--net", "--uts", "--mount", "sh", "-c", script]
    )
    comm = Path(f"/proc/{host.process.pid}/comm")
    end = time.monotonic() + 10
    while time.monotonic() < end and host.process.poll() is None:
        if comm.read_text().strip() == "sleep":
            return
        time.sleep(0.02)
    sys.exit(f"{host.name} did not start")


def entering(process: int) -> list[str]:
    return ["nsenter", "--target", str(process), "--net", "--uts", "--mount"]


@dataclass(frozen=True)
class Link:
    """An interface of each host, and the switch that it is connected to."""

    name: str
    switch: str
    out: str | None
    into: str | None


def has_device_link(options: argparse.Namespace) -> bool:
    return options.device_out is not None or options.device_in is not None


def links_of(options: argparse.Namespace) -> Iterator[Link]:
    for number in range(options.links):
        yield Link(f"eth{number}", f"switch{number}", options.out, options.into)
    if has_device_link(options):
        yield Link(DEVICE_LINK, "switch0", options.device_out, options.device_in)


def address_on(host: Host, link: Link) -> str:
    if link.name == DEVICE_LINK:
        return host.device_address
    return host.address_of(int(link.name.removeprefix("eth")))


def connect(hosts: list[Host], options: argparse.Namespace) -> None:
    """A pair of interfaces for each link of each host: what it sends is shaped on its end, what it gets on ours.

    Links of one kind have a bridge of their own, since a host answers for all its addresses on any of its interfaces. What
    a rank sends to another link's rank leaves by the own link there.
    """
    from pyroute2 import IPRoute

    with IPRoute() as network:
        for link in links_of(options):
            if not network.link_lookup(ifname=link.switch):
                network.link("add", ifname=link.switch, kind="bridge")
            bridge = network.link_lookup(ifname=link.switch)[0]
            network.link("set", index=bridge, state="up")
            for host in hosts:
                connect_host(network, bridge, host, link, options.delay_us)
    if has_device_link(options):
        for host in hosts:
            keep_apart(host, hosts)


def connect_host(network, bridge: int, host: Host, link: Link, delay_us: int) -> None:
    from pyroute2 import NetNS

    near = f"{host.name}-{link.name}"
    network.link(
        "add",
        ifname=near,
        kind="veth",
        peer={
            "ifname": link.name,
            "address": host.hardware_address(link.name),
            "net_ns_pid": host.process.pid,
        },
    )
    index = network.link_lookup(ifname=near)[0]
    network.link("set", index=index, master=bridge, state="up")
    shape(network, index, rate_of(link.into, host), delay_us)
    with NetNS(f"/proc/{host.process.pid}/ns/net") as inside:
        far = inside.link_lookup(ifname=link.name)[0]
        inside.addr("add", index=far, address=address_on(host, link), prefixlen=24)
        for one in (far, inside.link_lookup(ifname="lo")[0]):
            inside.link("set", index=one, state="up")
        shape(inside, far, rate_of(link.out, host), delay_us)


def keep_apart(host: Host, hosts: list[Host]) -> None:
    """What is sent from the address of one of two links in one subnet leaves by it, and comes by that of its destination."""
    from pyroute2 import NetNS

    with NetNS(f"/proc/{host.process.pid}/ns/net") as inside:
        device = inside.link_lookup(ifname=DEVICE_LINK)[0]
        inside.route("add", dst="10.77.0.0/24", oif=device, table=DEVICE_TABLE)
        inside.rule("add", src=host.device_address, table=DEVICE_TABLE)
        for name in ("eth0", DEVICE_LINK):
            index = inside.link_lookup(ifname=name)[0]
            for other in hosts:
                if other is host:
                    continue
                for address, at in (
                    (other.address, "eth0"),
                    (other.device_address, DEVICE_LINK),
                ):
                    inside.neigh(
                        "replace",
                        ifindex=index,
                        dst=address,
                        lladdr=other.hardware_address(at),
                        state="permanent",
                    )


def rate_of(rates: str | None, host: Host) -> str | None:
    if rates is None:
        return None
    words = rates.split(",")
    return words[host.number % len(words)]


def bits_a_second(rate: str) -> float:
    number, unit = re.fullmatch(r"([0-9.]+)([kmg]?)bit", rate).groups()
    return float(number) * {"": 1, "k": 1e3, "m": 1e6, "g": 1e9}[unit]


def shape(network, index: int, rate: str | None, delay_us: int) -> None:
    """What the interface sends."""
    from pyroute2.netlink.exceptions import NetlinkError

    root, below = 0x10000, 0x10001
    if rate is not None:
        # What may leave at once, after a pause: a millisecond's bytes, so that short messages are not faster than the link,
        # but two packets. The queue of half a second drops none.
        burst = int(max(bits_a_second(rate) / 8e3, 2 * SEGMENT_BYTES))
        network.link("set", index=index, gso_max_size=SEGMENT_BYTES)
        network.tc("add", "tbf", index, root, rate=rate, burst=burst, latency="500ms")
    if delay_us == 0:
        return
    place = {"handle": root} if rate is None else {"handle": 0x20000, "parent": below}
    try:
        network.tc("add", "netem", index, delay=delay_us, limit=100000, **place)
    except NetlinkError as error:
        skip(f"no delays on this kernel (netem): {error}")


def write_launcher(host: Host) -> str:
    """What mpiexec calls in place of ssh: options, a host's address, a command for its shell.

    It starts from the first host, but daemons of Open MPI look for it, too.
    """
    path = host.folder / "enter_host"
    path.write_text(f"""#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
for pair in ${PROCESSES}; do
  if [ "${{pair%%=*}}" = "$1" ]; then
    shift
    exec nsenter --target "${{pair#*=}}" --net --uts --mount -- sh -c "$*"
  fi
done
echo "no host $1" >&2
exit 1
""")
    path.chmod(0o755)
    return str(MEMORY / path.name)


def write_starter(host: Host, options: argparse.Namespace) -> str:
    """What becomes a rank of the program there, with one of the host's GPUs, and links."""
    path = host.folder / "start_rank"
    words = ["env", f"LD_PRELOAD={options.preload}"] if options.preload else []
    lines = ["#!/bin/sh"]
    if options.links > 1:
        rank = "${OMPI_COMM_WORLD_LOCAL_RANK:-$MPI_LOCALRANKID}"
        lines.append(f"link=eth$(({rank} % {options.links}))")
        lines.append("export OMPI_MCA_btl_tcp_if_include=$link FI_TCP_IFACE=$link")
        lines.append("export UCX_NET_DEVICES=$link")  # MPICH's way
    if options.gpus is not None:
        gpus = options.gpus.split(":")
        lines.append(f"export CUDA_VISIBLE_DEVICES={gpus[host.number % len(gpus)]}")
        words = ["sh", str(BIND_GPU), "1", *words]
    path.write_text("\n".join([*lines, f'exec {shlex.join(words)} "$@"', ""]))
    path.chmod(0o755)
    return str(MEMORY / path.name)


def command(
    hosts: list[Host], options: argparse.Namespace, environment: dict[str, str]
) -> list[str]:
    launcher = [write_launcher(host) for host in hosts][0]
    starter = [write_starter(host, options) for host in hosts][0]
    names = ",".join(f"{host.address}:{host.ranks}" for host in hosts)
    start_by = [str(options.mpiexec.absolute())]
    if options.flavour == "mpich":
        start_by += ["-launcher", "ssh", "-launcher-exec", launcher]
        start_by += ["-iface", "eth0", "-hosts", names]
    else:
        start_by += ["--prtemca", "plm_ssh_agent", launcher, "--map-by", "slot"]
        start_by += ["--prtemca", "prte_if_include", "eth0", "--host", names]
        start_by += [word for name in forwarded(environment) for word in ("-x", name)]
    start_by += ["-n", str(sum(host.ranks for host in hosts))]
    return [*entering(hosts[0].process.pid), "--", *start_by, starter, *options.program]


def forwarded(environment: dict[str, str]) -> Iterator[str]:
    """Of its settings Open MPI passes on its own alone."""
    yield from (
        name
        for name in environment
        if name.startswith("ACCORD_") and name not in (INSIDE, PROCESSES)
    )


def settings(hosts: list[Host], options: argparse.Namespace) -> dict[str, str]:
    """Messages between hosts go over the links; within one they may take any way."""
    adapters = {
        "ACCORD_UCX_DEVICE_NET": DEVICE_LINK,
        "ACCORD_UCX_HOST_NET": "eth0",
    }
    return {
        **os.environ,
        **(adapters if has_device_link(options) else {}),
        PROCESSES: " ".join(f"{host.address}={host.process.pid}" for host in hosts),
        "ACCORD_NODE_SPLIT": ",".join(
            str(host.number) for host in hosts for _ in range(host.ranks)
        ),
        "TMPDIR": str(MEMORY / "tmp"),
        "UCX_TLS": "tcp,self",
        "UCX_NET_DEVICES": "eth0",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl": "tcp,sm,self",
        "OMPI_MCA_btl_tcp_if_include": "eth0",
        # Neither knows of the ranks of other hosts that share the machine's cores.
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "ACCORD_YIELD": os.environ.get("ACCORD_YIELD", "on"),
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }


def make(options: argparse.Namespace) -> list[Host]:
    hosts = [
        Host(number, int(ranks))
        for number, ranks in enumerate(options.ranks.split(","))
    ]
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(MEMORY)], check=True)
    for host in hosts:
        start(host)
    connect(hosts, options)
    return hosts


def run(options: argparse.Namespace) -> int:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    hosts = make(options)
    environment = settings(hosts, options)
    return subprocess.run(
        command(hosts, options, environment), env=environment
    ).returncode


def main() -> int:
    options = arguments()
    if INSIDE not in os.environ:
        enter_namespaces()
    return run(options)


if __name__ == "__main__":
    sys.exit(main())

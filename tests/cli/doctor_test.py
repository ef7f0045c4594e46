# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""`accord doctor` and `accord bench`: their parts on made-up machines, then both on two real ranks."""

from __future__ import annotations

import ctypes
import errno
import getpass
import json
import re
import resource
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from accord import benchmark
from accord.benchmark import targets
from accord.checks import devices, machine, ranks
from accord.checks.finding import Finding, State
from accord.checks.report import write_report
from accord.errors import UserError
from accord.launch import preload_value
from accord.mpi import Abi, Installation, Launcher, Vendor
from accord.paths import Home

from conftest import _OPENMPI, REPOSITORY, Accord


def test_small_shared_memory_is_slow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    full = SimpleNamespace(f_bavail=16, f_frsize=4096)
    monkeypatch.setattr(machine.os, "statvfs", lambda path: full)
    finding = machine._check_shared_memory(tmp_path)
    assert finding.state is State.SLOW and "--shm-size" in finding.mend
    full.f_bavail = 1 << 20
    assert machine._check_shared_memory(tmp_path).state is State.OK


def test_missing_shared_memory_is_broken(tmp_path: Path) -> None:
    assert machine._check_shared_memory(tmp_path / "none").state is State.BROKEN


def test_locked_memory_matters_with_an_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.resource, "getrlimit", lambda which: (1 << 20, 1 << 20))
    assert machine._check_locked_memory(has_accelerator=True).state is State.SLOW
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    monkeypatch.setattr(machine.resource, "getrlimit", lambda which: unlimited)
    assert machine._check_locked_memory(has_accelerator=True).state is State.OK


def test_peer_reads_are_really_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = (0, errno.EPERM, errno.ENOSYS)
    assert machine._sibling_read_errno() in allowed
    gone = subprocess.Popen(["true"])
    gone.wait()
    buffer = ctypes.create_string_buffer(8)
    assert machine._read_from(gone.pid, buffer) in (errno.ESRCH, errno.ENOSYS)
    monkeypatch.setattr(machine, "_sibling_read_errno", lambda: 1)
    finding = machine._check_peer_reads()
    assert finding.state is State.SLOW and "ptrace_scope" in finding.mend


def runtimes(name: str, *found: dict[str, Any]) -> dict[str, Any]:
    return {"runtimes": [{"name": name, "devices": list(found)}]}


def test_gpus_that_accord_does_not_see_are_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    host = runtimes("host", {"name": "host memory"})
    monkeypatch.setattr(devices, "nvidia_gpu_count", lambda: 0)
    assert devices._check_presence(host).state is State.OK
    monkeypatch.setattr(devices, "nvidia_gpu_count", lambda: 2)
    monkeypatch.setattr(devices, "_loads", lambda library: True)
    assert devices._check_presence(host).state is State.BROKEN
    monkeypatch.setattr(devices, "_loads", lambda library: False)
    assert "libcuda.so.1" in devices._check_presence(host).text
    seen = runtimes("cuda", {"name": "GPU"}, {"name": "GPU"})
    assert devices.accelerators(seen) == ["GPU (cuda)"] * 2
    assert devices._check_presence(seen).state is State.OK


def test_devices_that_fail_or_stand_apart_are_said() -> None:
    told = runtimes("cuda", {"name": "GPU"}, {"error": "fell off the bus"})
    told["links"] = [
        {"from": 0, "to": 1, "peer_access": False},
        {"from": 1, "to": 0, "peer_access": True},
    ]
    states = {finding.text: finding.state for finding in devices.check_devices(told)}
    assert states["device 1 of cuda does not answer: fell off the bus"] is State.BROKEN
    apart = [state for text, state in states.items() if "between devices 0-1:" in text]
    assert apart == [State.SLOW]


def test_a_runtime_that_leaves_devices_out_says_why() -> None:
    told = runtimes("level_zero", {"name": "GPU"}, {"error": "hangs"})
    told["runtimes"][0]["problem"] = "level_zero zeInit: no"
    findings = {finding.text: finding for finding in devices.check_devices(told)}
    assert findings["accelerators: 1 x GPU (level_zero)"].state is State.OK
    left_out = findings["devices are left out: level_zero zeInit: no"]
    assert left_out.state is State.SLOW and "renderD" in left_out.mend
    assert "renderD" in findings["device 1 of level_zero does not answer: hangs"].mend


def records(**changes: Any) -> list[dict[str, Any]]:
    row = {
        "operation": "allreduce",
        "ours": True,
        "way": "accord",
        "median_us": 10.0,
        "accord": {"intercepts": True},
        **changes,
    }
    return [{**row, "size_bytes": size} for size in ranks._SIZES.values()]


def test_host_memory_must_not_cost_more_with_accord() -> None:
    target: Any = SimpleNamespace(title="an MPI", launcher=SimpleNamespace(vendor=Vendor.MPICH))
    device = ranks.Outcome(records())
    peer = records(ours=False, way="mpi", median_us=9.5)
    good = ranks._compare(target, "allreduce", device, ranks.Outcome(records() + peer))
    assert good.state is State.OK and "10.0 us" in good.text and "9.5" in good.text
    bad = ranks.Outcome(records(median_us=30.0) + peer)
    assert ranks._compare(target, "allreduce", device, bad).state is State.SLOW
    peer = records(ours=False, way="mpi", median_us=9000.0)
    crowded = ranks._compare(target, "allreduce", device, ranks.Outcome(records() + peer))
    assert crowded.state is State.SLOW and "wait for a core" in crowded.mend
    none = ranks._compare(target, "allreduce", device, ranks.Outcome([]))
    assert none.state is State.BROKEN and "not measured" in none.text


def test_ranks_without_accord_are_noticed() -> None:
    assert ranks.Outcome(records()).accord_at_work()
    assert not ranks.Outcome(records(accord={"intercepts": False})).accord_at_work()


def test_hanging_job_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ranks, "_TIMEOUT_S", 1)
    file = tmp_path / "pid"
    script = f"echo $$ > {file}; trap '' TERM; while :; do sleep 0.1; done"
    code, _ = ranks._run_bounded(["sh", "-c", script], {"PATH": "/usr/bin:/bin"})
    assert code is None
    assert not Path(f"/proc/{file.read_text().strip()}").exists(), "the job still runs"


def test_a_busy_machine_keeps_nobody_for_long(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clock_s = [0.0]

    def slow_check(home: Home, target: Any) -> Iterator[Finding]:
        clock_s[0] += ranks._BEGIN_WITHIN_S * 0.7
        yield Finding(State.SLOW, target.title)

    launcher = SimpleNamespace(path=Path("mpiexec"), vendor=Vendor.MPICH)
    found = [SimpleNamespace(title=title, abi=Abi.MPICH, launcher=launcher) for title in "abcd"]
    file = tmp_path / "file"
    file.touch()
    home: Any = SimpleNamespace(shim=lambda abi: file, bench=lambda abi: file)
    monkeypatch.setattr(ranks, "targets", lambda: found)
    monkeypatch.setattr(ranks, "_check_target", slow_check)
    monkeypatch.setattr(ranks, "time", SimpleNamespace(monotonic=lambda: clock_s[0]))
    findings = list(ranks.check_ranks(home, lambda text: None))
    assert [finding.text.partition(": ")[0] for finding in findings] == list("abcd")
    late = [finding.text[0] for finding in findings if "not measured" in finding.text]
    assert late == ["c", "d"] and {finding.state for finding in findings} == {State.SLOW}


def test_last_line_of_a_failed_run() -> None:
    output = "=====\nhello\n[rank 0] accord: bad setting\nExit code: 1\n"
    assert ranks._last_line(output) == "[rank 0] accord: bad setting"
    assert ranks._last_line("") == "no output"


def test_paths_that_cannot_be_preloaded(tmp_path: Path) -> None:
    spaced = Home(tmp_path / "my lib", tmp_path, "test")
    with pytest.raises(UserError, match="space or a colon"):
        preload_value(spaced, {})
    plain = Home(tmp_path, tmp_path, "test")
    library = str(plain.library)
    assert preload_value(plain, {"LD_PRELOAD": f"a.so:{library}"}) == f"a.so:{library}"


def test_doctor_without_a_library(accord: Accord, tmp_path: Path) -> None:
    done = accord("doctor", ACCORD_HOME=tmp_path)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0].startswith("broken  ACCORD_HOME is") and lines[1].strip().startswith("mend:")
    assert any("/dev/shm" in line for line in lines), "the machine is checked all the same"


def test_doctor_end_to_end(home: Home, accord: Accord) -> None:
    found = targets()
    if not found:
        pytest.skip("no MPI on PATH or in .deps")
    done = accord("doctor")
    lines = done.stdout.splitlines()
    assert re.fullmatch(r"\d+ ok, \d+ slow, \d+ broken", lines[-1]), done.stdout + done.stderr
    if "busy with other programs" in done.stdout or "took too long" in done.stdout:
        pytest.skip("this machine is too busy to measure")
    unserved = [target for target in found if not home.shim(target.abi).is_file()]
    if unserved:
        assert done.returncode == 1, "an MPI without a shim is broken"
    else:
        assert done.returncode == 0, done.stdout
    for target in found:
        if target not in unserved:
            assert f"ok      {target.title}: 2 ranks, device memory, results verified" in lines
            timed = rf"{re.escape(target.title)}: allreduce: device memory 8 B \d+\.\d us .*1 MiB"
            assert any(re.search(timed, line) for line in lines), done.stdout


def test_doctor_finds_a_bad_setting(home: Home, accord: Accord) -> None:
    done = accord("doctor", "--quick", ACCORD_LOGG="debug")
    assert done.returncode == 1 and "ACCORD_LOGG" in done.stdout
    done = accord("doctor", "--quick", ACCORD_CHUNK_BYTES="many")
    assert done.returncode == 1 and "ACCORD_CHUNK_BYTES" in done.stdout


def test_doctor_says_which_table_counts(home: Home, accord: Accord, tmp_path: Path) -> None:
    def said(**variables: object) -> str:
        return accord("doctor", "--quick", ACCORD_RUNTIME="host", **variables).stdout

    assert "ok      no table for this machine: the built-in rule" in said()
    mine = tmp_path / "config" / "accord" / "tables" / "here.json"
    mine.parent.mkdir(parents=True)
    shutil.copy(REPOSITORY / "tests" / "mpi" / "table.json", mine)
    assert f"ok      table {mine} (host)" in said()
    assert "ok      ACCORD_TABLE=off: the built-in rule" in said(ACCORD_TABLE="off")
    text = said(ACCORD_TABLE="nowhere.json")
    assert "slow    nowhere.json is no table" in text and "ok      table" not in text


def test_doctor_says_which_table_counts_where_ranks_share_devices(
    home: Home, accord: Accord, tmp_path: Path
) -> None:
    def said(**variables: object) -> str:
        settings = {"ACCORD_RUNTIME": "host", "ACCORD_TEST_EXCLUSIVE_DEVICE": "1", **variables}
        return accord("doctor", "--quick", **settings).stdout

    under_mps = {"ACCORD_TEST_KERNEL_SERVER": "7"}
    mine = tmp_path / "config" / "accord" / "tables" / "here.json"
    mine.parent.mkdir(parents=True)
    text = (REPOSITORY / "tests" / "mpi" / "table.json").read_text()
    mine.write_text(text.replace('"signature": "host"', '"signature": "host, shared"'))
    shared = f"ok      where ranks share devices: table {mine} (host, shared)"
    assert "ok      no table for this machine: the built-in rule" in said() and shared in said()
    assert "take turns on it" in said()
    text = said(**under_mps)
    assert "devices: no table for this machine, shared under MPS: the built-in rule" in text
    assert "ranks that share a GPU run side by side" in text
    # Named: of one kind of jobs that there may be, or of none.
    text = said(ACCORD_TABLE=mine)
    assert (
        shared in text
        and f'ok      {mine} was measured on "host, shared", and this is "host"' in text
    )
    text = said(ACCORD_TABLE=mine, **under_mps)
    assert f"slow    {mine} was measured on" in text and "ok      table" not in text
    assert said(ACCORD_TABLE="off").count("ACCORD_TABLE=off") == 1


@pytest.mark.parametrize("abi", list(Abi), ids=lambda abi: abi.value)
def test_bench_end_to_end(abi: Abi, home: Home, accord: Accord, tmp_path: Path) -> None:
    if not any(target.abi is abi for target in targets()) or not home.bench(abi).is_file():
        pytest.skip(f"no MPI with the {abi.label}, or no benchmark for it")
    words = ["allreduce", "--min", "8", "--max", "64", "--seconds", "0.1", "--memory", "device"]
    done = accord("bench", *words, "--mpi", abi.value, "-n", 2, "--json", "out.json")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in (tmp_path / "out.json").read_text().splitlines()]
    assert [row["size_bytes"] for row in rows] == [8, 16, 32, 64]
    assert all(row["ranks"] == 2 and row["accord"]["intercepts"] for row in rows)


def test_bench_passes_failure_on(home: Home, accord: Accord) -> None:
    if not targets():
        pytest.skip("no MPI on PATH or in .deps")
    done = accord("bench", "no-such-operation")
    assert done.returncode not in (0, None) and "no-such-operation" in done.stdout + done.stderr
    assert accord("bench").returncode == 2


def test_crowded_openmpi_yields(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMPI_MCA_mpi_yield_when_idle", raising=False)
    launcher = Launcher(Path(sys.executable), Vendor.OPENMPI, "5.0")
    target = benchmark.Target(Installation(launcher, {}), Abi.OPENMPI)
    monkeypatch.setattr(benchmark, "core_count", lambda: 2)
    assert "OMPI_MCA_mpi_yield_when_idle" not in benchmark.environment_for(target, 2)
    assert benchmark.environment_for(target, 3)["OMPI_MCA_mpi_yield_when_idle"] == "1"


def test_nvshmem_of_a_wheel_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    launcher = Launcher(Path("/usr/bin/mpiexec"), Vendor.MPICH, "4.2")
    target = benchmark.Target(Installation(launcher, {}), Abi.MPICH)
    monkeypatch.delenv("ACCORD_NVSHMEM_LIBRARY", raising=False)
    library = tmp_path / "nvidia" / "nvshmem" / "lib" / "libnvshmem_host.so.3"
    library.parent.mkdir(parents=True)
    library.touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)
    assert benchmark.environment_for(target, 2)["ACCORD_NVSHMEM_LIBRARY"] == str(library)
    monkeypatch.setenv("ACCORD_NVSHMEM_LIBRARY", "/mine.so")
    assert benchmark.environment_for(target, 2)["ACCORD_NVSHMEM_LIBRARY"] == "/mine.so"
    library.unlink()
    assert benchmark.nvshmem_of_wheel() is None


# What tasks of Slurm and of PBS find in their environment; launchers would follow it elsewhere, or hang.
_OF_JOBS = {
    "SLURM_JOB_ID": "17",
    "SLURM_JOB_NODELIST": "node7",
    "SLURM_NODELIST": "node7",
    "SLURM_NNODES": "1",
    "SLURM_TASKS_PER_NODE": "1",
    "SLURM_PROCID": "0",
    "PMI_RANK": "0",
    "PMI_SIZE": "1",
    "PMI_FD": "9",
    "PMIX_RANK": "0",
    "PMIX_NAMESPACE": "slurm.pmix.17.0",
    "PBS_JOBID": "17",
    "PBS_NODEFILE": "nodes",
    "PBS_ENVIRONMENT": "PBS_BATCH",
}


def test_doctor_stays_on_its_machine(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(ranks, "_TIMEOUT_S", 30)
    # Whether ranks start, and where: what calls take is measured by test_doctor_end_to_end.
    monkeypatch.setattr(ranks, "_OPERATIONS", ["allreduce"])
    monkeypatch.setattr(ranks, "_SIZES", {"8 B": 8})
    monkeypatch.setattr(ranks, "_OPTIONS", "--min 8 --max 8 --iterations 5 --warmup 1".split())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nodes").write_text("node9\n")
    for name, value in {**_OPENMPI, **_OF_JOBS}.items():
        monkeypatch.setenv(name, value)
    found = list(ranks.check_ranks(home, lambda text: None))
    if not found:
        pytest.skip("no MPI on PATH or in .deps")
    assert [each for each in found if each.state is State.BROKEN] == []


def test_a_report_is_one_file(home: Home, accord: Accord, tmp_path: Path) -> None:
    variables = {
        "ACCORD_LOG": "info",
        "OMPI_MCA_some": f"{tmp_path}/there",
        "SLURM_JOB_ID": "17",
        "CUDA_VISIBLE_DEVICES": "3",
        "HOME": tmp_path,
        "SLURM_JWT": "hush1",
        "UCX_API_KEY": "hush2",
        "MY_PASSWORD": "hush3",
        "SLURM_JOB_USER": "hush4",
        "PMIX_SERVER_URI": "hush5",
        "OTHER": "hush6",
        "OMPI_MCA_orte_hnp_uri": "hush7",
    }
    done = accord("doctor", "--quick", "--report", "report.json", **variables)
    assert done.returncode == 0 and "report: report.json" in done.stdout, done.stdout
    text = (tmp_path / "report.json").read_text()
    report = json.loads(text)
    assert report["format"] == "accord-report" and report["accord"]["version"]
    assert report["machine"]["kernel"] and report["machine"]["cores"] >= 1
    assert [row["name"] for row in report["settings_that_differ"]] == ["ACCORD_LOG"]
    lines = [line for line in done.stdout.splitlines() if line.startswith("ok ")]
    assert len(lines) == sum(each["state"] == "ok" for each in report["findings"])
    assert {row["mpi"] for row in report["mpis"]} == {each.installation.title for each in targets()}
    told = report["environment"]
    assert (told["ACCORD_LOG"], told["SLURM_JOB_ID"]) == ("info", "17")
    assert (told["CUDA_VISIBLE_DEVICES"], told["OMPI_MCA_some"]) == ("3", "~/there")
    assert "hush" not in text and str(tmp_path) not in text and "uuid" not in text
    names = {socket.gethostname(), getpass.getuser()} - {"root", "localhost"}
    assert [name for name in names if re.search(rf"\b{re.escape(name)}\b", text)] == []


def test_a_report_has_the_output_of_what_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    target: Any = SimpleNamespace(
        title="an MPI", abi=Abi.MPICH, launcher=SimpleNamespace(path="x", vendor=Vendor.MPICH)
    )
    failed = ranks.Outcome([], "exit status 1: no", output="first\nno\n")
    monkeypatch.setattr(ranks, "_run", lambda *words: failed)
    (finding,) = ranks._check_target(Home(tmp_path, tmp_path, "test"), target)
    assert finding.state is State.BROKEN and finding.output == "first\nno\n"
    write_report(tmp_path / "report.json", None, {}, [finding])
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["findings"][0]["output"] == "first\nno\n"


def test_a_report_of_an_accord_that_does_not_load(accord: Accord, tmp_path: Path) -> None:
    done = accord("doctor", "--quick", "--report", "report.json", ACCORD_HOME=tmp_path)
    assert done.returncode == 1
    findings = json.loads((tmp_path / "report.json").read_text())["findings"]
    assert findings[0]["state"] == "broken" and "ACCORD_HOME is" in findings[0]["text"]
    for place in (tmp_path, "/nowhere/report.json"):
        done = accord("doctor", "--report", place)
        assert done.returncode == 2 and f"cannot write {place}" in done.stderr

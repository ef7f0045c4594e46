# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Starts operations and sees to their completion: one engine a process.

All calls of MPI are non-blocking (`MPI_Iallreduce` and its like). Those of a group start in the program's
order, which is the same on all ranks. Groups do not wait for each other: had each call blocked one thread
until it was over, two ranks that use two groups in different orders would wait for each other for ever.

An operation starts in the caller's thread if its tensors are written. On a device it else waits in its
group's queue until the stream has written them. What is under way is polled by whoever waits for a Work,
since nothing is quicker. A thread of the engine polls where nobody waits: it completes the futures behind
which DDP overlaps with the backward pass, and lets late operations fail.

That thread must not cost the others much: while it holds Python's lock (the GIL) they wait. MPI's calls
release the lock, so does a nap. MPI moves data only while it is polled, so the naps are short.

A call whose caller waits anyway has none of this, if nothing else is under way: `run_here`.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from queue import Empty, SimpleQueue

import torch
from mpi4py import MPI

from accord.torch.device import work_on
from accord.torch.ending import end_job
from accord.torch.members import Members
from accord.torch.operation import Operation

_SPINS = 1000  # polls, 1 to 2 ms, before a thread that polls begins to sleep in between
_SPINS_ASIDE = 20  # of the engine's thread
_SHORT_NAP_S = 10e-6
_SHORT_NAPS_ASIDE = 1000  # some 30 ms
_NAP_S = 50e-6
_LONGEST_NAP_S = 200e-6
_DOZE_S = 1e-3
_DOZES = 500  # before the thread sleeps until it is woken
_POLLS_PER_LOOK = 64  # at what is late
_PR_SET_TIMERSLACK = 29


def _pause(idle_polls: int) -> None:
    """Of a thread that waits for a Work, between two polls of which the first found nothing."""
    if idle_polls > _SPINS:
        time.sleep(min(_LONGEST_NAP_S, 1e-6 * (idle_polls - _SPINS)))
    elif idle_polls & 31 == 31:
        os.sched_yield()  # more ranks than cores


def _pause_aside(idle_polls: int, on_device: bool) -> None:
    """The same of the engine's thread. On the CPU it takes a core from the backward pass."""
    naps = idle_polls - _SPINS_ASIDE
    if naps <= 0:
        return
    if on_device and naps < _SHORT_NAPS_ASIDE:
        time.sleep(_SHORT_NAP_S)
    else:
        time.sleep(min(_LONGEST_NAP_S, _NAP_S + 1e-6 * naps))


def _wake_in_time() -> None:
    """Linux lets a sleeping thread sleep 50 us longer than it asked for, unless the thread forbids it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(1), 0, 0, 0)


class Rest(Enum):
    """How the engine's thread waits for work."""

    NONE = 0
    DOZE = 1  # it soon looks by itself
    SLEEP = 2


class Engine:
    """`lock` guards the lists, the queues of all groups, and the calls of MPI for what is in these."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Members] = []  # groups whose queue is not empty
        self._under_way: list[Operation] = []
        self._abandoned: list[Operation] = []  # late ones, whose tensors MPI may still use
        self._pollers = 0  # threads that wait for a Work
        self._rest = Rest.NONE  # the thread's
        self._bell: SimpleQueue[None] = SimpleQueue()  # wakes it
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._device: torch.device | None = None  # of the latest operation on one
        if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
            raise RuntimeError(
                "accord.torch makes MPI calls from several threads, but MPI was started without "
                "MPI_THREAD_MULTIPLE; leave mpi4py.rc.thread_level as it is"
            )
        atexit.register(self._stop)

    def is_busy(self) -> bool:
        return bool(self._under_way or self._waiting)

    def run_here(self, operation: Operation) -> bool:
        """For a caller that waits: does it, unless it takes long or something else is under way.

        If this returns False, `submit` takes the operation, which may have begun.
        """
        self._must_be_usable(operation)
        if self.is_busy():
            return False
        idle = 0
        while not operation.is_ready():
            if (idle := idle + 1) > _SPINS:
                return False
            _pause(idle)
        if operation.members.queue:  # another thread's
            return False
        operation.begin()
        idle = 0
        while not operation.is_complete():
            if (idle := idle + 1) > _SPINS:
                return False
            _pause(idle)
        operation.complete_here()
        if operation.error is not None:
            raise operation.error
        return True

    def submit(self, operation: Operation, is_async: bool) -> None:
        """Raises what MPI has against the operation, if it starts here."""
        self._must_be_usable(operation)
        members = operation.members
        if operation.device is not None:
            self._device = operation.device.device
        with self._lock:
            if operation.requests:
                self._under_way.append(operation)
            elif not members.queue and operation.is_ready():
                operation.begin()
                if operation.error is not None:
                    raise operation.error
                self._under_way.append(operation)
            else:
                if not members.queue:
                    self._waiting.append(members)
                members.queue.append(operation)
        # A thread that wakes takes the GIL from the caller, who then waits for it to ask for the future.
        if is_async and not (members.takes_futures and self._rest is Rest.DOZE):
            self._rouse()

    def _must_be_usable(self, operation: Operation) -> None:
        failure = operation.members.failure
        if failure is not None:
            operation.fail(f"the group cannot be used any more: {failure}")
            raise operation.error  # type: ignore[misc]

    def wait(self, operation: Operation, timeout_s: float) -> bool:
        """Until it is done; False if it is not so in the time (0: in its own, after which it fails)."""
        if operation.done:
            return True
        end = time.monotonic() + timeout_s if timeout_s > 0 else float("inf")
        with self._lock:
            self._pollers += 1
        idle = 0
        try:
            while not operation.done:
                if self.poll(idle):
                    idle = 0
                elif idle > _SPINS and time.monotonic() > end:
                    return False
                else:
                    idle += 1
                    _pause(idle)
        finally:
            with self._lock:
                self._pollers -= 1
            if not self._nothing_to_do():
                self._rouse()
        return True

    def poll(self, idle: int = 0) -> bool:
        """One look at all; whether any operation was started or completed."""
        if not self._lock.acquire(blocking=False):
            return False
        started = False
        try:
            if self._waiting:
                started = self._start_what_is_ready()
            completed = [each for each in self._under_way if each.is_complete()]
            if idle % _POLLS_PER_LOOK == _POLLS_PER_LOOK - 1:
                completed += self._late()
            if completed:
                self._under_way = [each for each in self._under_way if each not in completed]
        finally:
            self._lock.release()
        for each in completed:
            self._complete(each)
        return started or bool(completed)

    def on_done(self, operation: Operation, call: Callable[[], None]) -> None:
        """Calls it once the operation is done, which may be now."""
        operation.callbacks.append(call)
        if operation.done:
            self._call_back(operation)
        else:
            self._rouse()

    def _complete(self, operation: Operation) -> None:
        operation.complete()
        operation.done = True
        self._call_back(operation)

    def _call_back(self, operation: Operation) -> None:
        """Whoever takes a callback off the list calls it."""
        while operation.callbacks:
            try:
                call = operation.callbacks.pop(0)
            except IndexError:  # another thread was quicker
                return
            call()

    def _start_what_is_ready(self) -> bool:
        started = False
        for members in self._waiting:
            queue = members.queue
            while queue and queue[0].is_ready():
                queue[0].begin()
                self._under_way.append(queue.popleft())
                started = True
        self._waiting = [members for members in self._waiting if members.queue]
        return started

    def _late(self) -> list[Operation]:
        """Makes what is past its time fail, with all that its group would start later."""
        now = time.monotonic()
        late = [each for each in self._under_way if now > each.deadline and each.error is None]
        for members in self._waiting:
            if members.queue[0].deadline < now:
                late.append(members.queue[0])
        for operation in late:
            self._give_up(operation)
        failed = [each for each in self._under_way if each in late]
        for members in self._waiting:
            if members.failure is not None:
                failed += members.queue
                for operation in members.queue:
                    if operation.error is None:
                        operation.fail(f"not started, since its group failed: {members.failure}")
                members.queue.clear()
        self._waiting = [members for members in self._waiting if members.queue]
        return failed

    def _give_up(self, operation: Operation) -> None:
        state = "has not completed" if operation.requests else "could not start"
        operation.fail(
            f"Timed out after {operation.limit_s:g} s: it {state}; a rank may have died, be late, or "
            "have made other calls"
        )
        operation.members.failure = operation.error
        self._abandoned.append(operation)

    def _nothing_to_do(self) -> bool:
        """For the thread."""
        return self._pollers > 0 or not self.is_busy()

    def _rouse(self) -> None:
        if self._thread is None:
            with _making:
                if self._thread is None:
                    thread = threading.Thread(target=self._run, name="accord.torch", daemon=True)
                    thread.start()
                    self._thread = thread
        if self._rest is not Rest.NONE:
            self._rest = Rest.NONE
            self._bell.put(None)

    def _run(self) -> None:
        _wake_in_time()
        idle, rests, device = 0, 0, None
        while not self._stopping:
            if self._nothing_to_do():
                self._take_rest(rests)
                idle, rests = 0, rests + 1
                continue
            if self._device is not None and device != self._device:
                device = self._device
                work_on(device)
            rests = 0
            if self.poll(idle):
                idle = 0
            else:
                idle += 1
                _pause_aside(idle, device is not None)

    def _take_rest(self, rests: int) -> None:
        dozes = rests < _DOZES
        self._rest = Rest.DOZE if dozes else Rest.SLEEP
        # Looked at once more: what comes from now on rings the bell.
        if self._nothing_to_do() and not self._stopping:
            with suppress(Empty):
                self._bell.get(timeout=_DOZE_S if dozes else None)
        self._rest = Rest.NONE

    def forget(self, members: Members) -> None:
        """Of a group that ends: completes what it has under way, as far as that is possible in its time."""
        mine = [each for each in [*self._under_way, *members.queue] if each.members is members]
        for operation in mine:
            self.wait(operation, 0)

    def _stop(self) -> None:
        """As the process ends, before mpi4py ends MPI."""
        self._stopping = True
        self._bell.put(None)
        if self._thread is not None:
            self._thread.join()
        if self._abandoned:
            end_job(str(self._abandoned[0].error))


_engine: Engine | None = None
_making = threading.Lock()


def engine() -> Engine:
    global _engine
    if _engine is None:
        with _making:
            _engine = _engine or Engine()
            os.register_at_fork(after_in_child=_lose)
    return _engine


def _lose() -> None:
    """A child of fork has neither MPI nor the thread: a data loader's worker, say."""
    if _engine is not None:
        atexit.unregister(_engine._stop)

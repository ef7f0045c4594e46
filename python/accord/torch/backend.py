# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""The process group of c10d whose calls go through MPI.

Each method has the name and the arguments that PyTorch calls it with, from Python and from C++ (DDP's
reducer, functional collectives). PyTorch has renamed some of them, so they have two names here.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from mpi4py import MPI
from torch._C import _distributed_c10d as c10d

from accord.torch import checks, collectives, exchanges
from accord.torch.barrier import store_barrier
from accord.torch.collectives import Plan
from accord.torch.device import DeviceSide, used_on_side_stream
from accord.torch.ending import end_job_after_exceptions
from accord.torch.engine import engine
from accord.torch.errors import DistBackendError, text_of
from accord.torch.members import Members
from accord.torch.operation import Operation
from accord.torch.quick import is_soon_complete, started_sum
from accord.torch.work import AccordWork, DoneWork, ManyWorks

BACKEND_NAME = "accord"
# PyTorch in C++ lets go of a Python Work before it waits for it, which then never ends: 2.5 does, 2.11 not.
_PYTORCH_HOLDS_WORKS = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 11)
_HELD = 16
_Lists = Sequence[Sequence[torch.Tensor]]


AnyWork = AccordWork | DoneWork

# PyTorch's types of these methods are others in each of its versions, and not those that it calls them with.
_ProcessGroup: Any = dist.ProcessGroup


class AccordGroup(_ProcessGroup):  # type: ignore[misc]
    """One process group, over a communicator of its own."""

    def __init__(self, members: Members) -> None:
        super().__init__(members.rank, members.size)
        self._members = members
        self._engine = engine()
        self._done = DoneWork()
        self._gathered: list[AccordWork] | None = None  # between the ends of a coalescing manager
        self._recent = None if _PYTORCH_HOLDS_WORKS else deque[AccordWork](maxlen=_HELD)
        self._name = members.name
        self._description = "undefined"

    # ---- how an operation begins

    def _go(
        self,
        name: str,
        plan: Callable[[], Plan],
        options: Any = None,
        *,
        status: MPI.Status | None = None,
        device: DeviceSide | None = None,
        begun: MPI.Request | None = None,
    ) -> AnyWork:
        """Plans it, then does it if the caller waits, or hands it to the engine."""
        members = self._members
        try:
            planned = plan()
            side = device or checks.side_of(planned.tensors)
        except (ValueError, RuntimeError) as error:
            raise type(error)(f"{members.where(name)}: {error}") from error
        operation = Operation(name, members, planned, side, status)
        is_async = options is None or getattr(
            options, "asyncOp", True
        )  # since PyTorch 2.0 or later
        if begun is not None:
            operation.requests = [begun]
        elif not is_async and self._engine.run_here(operation):
            return self._done
        operation.let_it_take(options.timeout.total_seconds() if options is not None else 0.0)
        if side is not None and planned.finish is not None:
            used_on_side_stream(side.device, [*planned.temporary, *planned.tensors])
        self._engine.submit(operation, is_async)
        work = AccordWork(self._engine, operation)
        if self._gathered is not None:
            self._gathered.append(work)
        if self._recent is not None:
            self._recent.append(work)
        return work

    # ---- reductions

    def allreduce(self, tensors: Any, opts: Any = None) -> AnyWork:
        opts = _options(opts, c10d.AllreduceOptions)
        tensors = _list(tensors)
        request = None
        if not getattr(opts, "asyncOp", True):
            members = self._members
            try:
                request = started_sum(self._engine, members, tensors, opts.reduceOp)
                if request is not None and is_soon_complete(request):
                    members.calls += 1
                    return self._done
            except (MPI.Exception, RuntimeError) as error:
                raise DistBackendError(f"{members.where('allreduce')}: {text_of(error)}") from error
        plan = lambda: collectives.allreduce(  # noqa: E731
            self._members, [checks.one(tensors)], opts.reduceOp
        )
        return self._go("allreduce", plan, opts, begun=request)

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> AnyWork:
        opts = _options(opts, c10d.AllreduceCoalescedOptions)
        return self._go(
            "allreduce_coalesced",
            lambda: collectives.allreduce(self._members, tensors, opts.reduceOp),
            opts,
        )

    def reduce(self, tensors: Any, opts: Any) -> AnyWork:
        return self._go(
            "reduce",
            lambda: collectives.reduce(
                self._members, checks.one(tensors), opts.rootRank, opts.reduceOp
            ),
            opts,
        )

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> AnyWork:
        opts = _options(opts, c10d.ReduceScatterOptions)
        return self._go(
            "reduce_scatter",
            lambda: collectives.reduce_scatter(
                self._members, checks.one(outputs), checks.one(inputs), opts.reduceOp
            ),
            opts,
        )

    def reduce_scatter_single(self, output: Any, tensor: Any, opts: Any = None) -> AnyWork:
        return self.reduce_scatter_single_coalesced([output], [tensor], opts)

    def reduce_scatter_single_coalesced(
        self, outputs: Any, inputs: Any, opts: Any = None
    ) -> AnyWork:
        opts = _options(opts, c10d.ReduceScatterOptions)
        return self._go(
            "reduce_scatter_tensor",
            lambda: collectives.reduce_scatter_from(self._members, outputs, inputs, opts.reduceOp),
            opts,
        )

    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    # ---- what moves

    def broadcast(self, tensors: Any, opts: Any) -> AnyWork:
        return self._go(
            "broadcast",
            lambda: collectives.broadcast(self._members, tensors, opts.rootRank),
            opts,
        )

    def allgather(self, outputs: Any, tensors: Any, opts: Any = None) -> AnyWork:
        opts = _options(opts, c10d.AllgatherOptions)
        return self._go(
            "all_gather",
            lambda: collectives.allgather(self._members, checks.one(outputs), checks.one(tensors)),
            opts,
        )

    def all_gather_single(self, output: Any, tensor: Any, opts: Any = None) -> AnyWork:
        return self.all_gather_single_coalesced([output], [tensor], opts)

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> AnyWork:
        opts = _options(opts, c10d.AllgatherOptions)
        return self._go(
            "all_gather_into_tensor",
            lambda: collectives.allgather_into(self._members, outputs, inputs),
            opts,
        )

    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def allgather_coalesced(self, output_lists: _Lists, inputs: Any, opts: Any = None) -> ManyWorks:
        """The outer list of outputs is that of the ranks, each inner one that of the inputs."""
        opts = _options(opts, c10d.AllgatherOptions)
        return ManyWorks(
            [
                self.allgather([outputs], [tensor], opts)
                for outputs, tensor in zip(zip(*output_lists, strict=True), inputs, strict=True)
            ]
        )

    def gather(self, outputs: _Lists, tensors: Any, opts: Any) -> AnyWork:
        return self._go(
            "gather",
            lambda: exchanges.gather(
                self._members, outputs[0] if outputs else [], checks.one(tensors), opts.rootRank
            ),
            opts,
        )

    def scatter(self, outputs: Any, inputs: _Lists, opts: Any) -> AnyWork:
        return self._go(
            "scatter",
            lambda: exchanges.scatter(
                self._members, checks.one(outputs), inputs[0] if inputs else [], opts.rootRank
            ),
            opts,
        )

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> AnyWork:
        return self._go(
            "all_to_all",
            lambda: exchanges.alltoall(self._members, outputs, inputs),
            _options(opts, c10d.AllToAllOptions),
        )

    def all_to_all_single(
        self,
        output: torch.Tensor,
        tensor: torch.Tensor,
        output_splits: Sequence[int],
        input_splits: Sequence[int],
        opts: Any = None,
    ) -> AnyWork:
        return self._go(
            "all_to_all_single",
            lambda: exchanges.alltoall_single(
                self._members, output, tensor, output_splits, input_splits
            ),
            _options(opts, c10d.AllToAllOptions),
        )

    alltoall_base = all_to_all_single

    # ---- messages

    def send(self, tensors: Any, to: int, tag: int = 0) -> AnyWork:
        return self._go(
            f"send to {to}",
            lambda: exchanges.send(self._members, checks.one(tensors), to, tag),
        )

    def recv(self, tensors: Any, source: int, tag: int = 0) -> AnyWork:
        return self._go(
            f"recv from {source}",
            lambda: exchanges.receive(self._members, checks.one(tensors), source, tag),
            status=MPI.Status(),
        )

    def recv_anysource(self, tensors: Any, tag: int = 0) -> AnyWork:
        return self._go(
            "recv from any rank",
            lambda: exchanges.receive(self._members, checks.one(tensors), MPI.ANY_SOURCE, tag),
            status=MPI.Status(),
        )

    recvAnysource = recv_anysource  # noqa: N815

    # ---- barriers

    def barrier(self, opts: Any = None) -> AnyWork:
        opts = _options(opts, c10d.BarrierOptions)
        device = None
        if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            # As the nccl backend's: what was launched before has been done on all ranks.
            device = DeviceSide(torch.device("cuda", torch.cuda.current_device()))
        return self._go("barrier", lambda: collectives.barrier(self._members), opts, device=device)

    def monitored_barrier(
        self, timeout: timedelta | None = None, wait_all_ranks: bool = False
    ) -> None:
        members = self._members
        timeout_s = members.timeout_s if timeout is None else timeout.total_seconds()
        store_barrier(members, timeout_s, wait_all_ranks)

    # ---- coalescing: all is started at once, so only the Work is one

    def _start_coalescing(self, device: Any = None) -> None:
        self._gathered = []

    def _end_coalescing(self, device: Any = None) -> ManyWorks:
        works, self._gathered = self._gathered or [], None
        return ManyWorks(works)

    start_coalescing = _start_coalescing
    end_coalescing = _end_coalescing

    # ---- what PyTorch asks of a group

    def getBackendName(self) -> str:  # noqa: N802
        return BACKEND_NAME

    def name(self) -> str:
        return BACKEND_NAME

    def _get_backend_name(self) -> str:
        return BACKEND_NAME

    def getRank(self) -> int:  # noqa: N802
        return self._members.rank

    def getSize(self) -> int:  # noqa: N802
        return self._members.size

    def rank(self) -> int:
        return self._members.rank

    def size(self) -> int:
        return self._members.size

    def get_group_store(self) -> Any:
        return self._members.store

    def _set_group_name(self, name: str) -> None:
        self._name = self._members.name = str(name)

    def _set_group_desc(self, description: str) -> None:
        self._description = str(description)

    @property
    def group_name(self) -> str:
        return self._name

    @property
    def group_desc(self) -> str:
        return self._description

    def getGroupName(self) -> str:  # noqa: N802
        return self._name

    def getGroupDesc(self) -> str:  # noqa: N802
        return self._description

    @property
    def _device_types(self) -> list[torch.device]:
        # PyTorch's flight recorder asks before the group is known, and finds no C++ backend to hook into.
        if self not in dist.distributed_c10d._world.pg_map:
            return []
        return [torch.device("cpu"), torch.device("cuda")]

    def _get_backend(self, device: Any = None) -> AccordGroup:
        return self

    get_backend = _get_backend
    supports_coalescing = False  # batch_isend_irecv starts each message itself
    supports_splitting = False

    def _set_sequence_number_for_group(self) -> None:
        pass

    def _get_sequence_number_for_group(self) -> int:
        return self._members.calls

    def set_timeout(self, timeout: timedelta) -> None:
        self._members.timeout_s = timeout.total_seconds()

    _set_default_timeout = set_timeout

    # ---- its end

    def shutdown(self) -> None:
        """Of `destroy_process_group`: all ranks call it. What is under way completes first."""
        self._engine.forget(self._members)
        self._members.free()

    def abort(self) -> None:
        self.shutdown()

    def __repr__(self) -> str:
        return f"AccordGroup({self._name!r}, rank {self.rank()} of {self.size()})"


def _options(given: Any, kind: type) -> Any:
    """PyTorch gives options, but for calls of a group's methods by hand."""
    if given is None:
        return kind()
    if isinstance(given, (dist.ReduceOp, dist.ReduceOp.RedOpType)):
        options = kind()
        options.reduceOp = given
        return options
    return given


def _list(tensors: Any) -> Sequence[torch.Tensor]:
    return [tensors] if isinstance(tensors, torch.Tensor) else tensors


def create_group(options: Any, backend_options: Any = None) -> AccordGroup:
    """What `init_process_group` and `new_group` call, on the ranks of the new group."""
    members = Members(
        options.store,
        options.group_rank,
        options.group_size,
        str(options.group_id),
        options.timeout,
    )
    end_job_after_exceptions()
    return AccordGroup(members)


def register() -> None:
    """Once a process; PyTorch knows backends of devices since 2.0."""
    if hasattr(dist.Backend, BACKEND_NAME.upper()):
        return
    words = inspect.signature(dist.Backend.register_backend).parameters
    devices = {"devices": ["cpu", "cuda"]} if "devices" in words else {}
    dist.Backend.register_backend(BACKEND_NAME, create_group, extended_api=True, **devices)

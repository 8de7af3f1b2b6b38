"""What runs the blocks of jobs in this process, on one device or several, and says what is kept where that ends early.

The loop over blocks is in :mod:`.running`.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from ..device.fingerprint import device_key
from ..errors import DeviceMemoryError, InputError, Interrupted, warn
from ..kernels import spec
from ..tuning.parameters import expect
from ..tuning.parameters import record as recorded
from .blocks import Problem, Record
from .provenance import entries_by_kind, provenance
from .running import Run, like
from .sinks import Sink

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..device.info import DeviceInfo


P = ParamSpec("P")
R = TypeVar("R")


class Runner(Protocol):
    """Runs the blocks of a job, on one device of this process, on several, or in other processes.

    Attributes
    ----------
    devices : int
        How many devices work at the same time, as far as that is known. Jobs are cut into blocks for this number.
    infos : sequence of DeviceInfo
        The devices that have worked on jobs or will do so; at least one.
    executor : Executor
        A device of this process, for work that is not cut into blocks.
    tuning : mapping
        Kernel to the parameters that it was given; see :meth:`pyedmcl.tuning.parameters.ParameterSource.record`.
    """

    @property
    def devices(self) -> int: ...

    @property
    def infos(self) -> Sequence[DeviceInfo]: ...

    @property
    def executor(self) -> Executor: ...

    @property
    def tuning(self) -> dict[str, list[dict[str, Any]]]: ...

    def alike(self, kernels: Iterable[str]) -> DeviceInfo:
        """What a store of the runner's blocks says of its devices; see :func:`of_one_kind`."""

    def provenance(self, kernels: Iterable[str], record: Record, **more: Any) -> dict[str, Any]:
        """Where a result that was made here comes from; see :func:`pyedmcl.jobs.provenance.provenance`.

        Parameters
        ----------
        kernels : iterable of str
            The kernels to name where no record tells which were used.
        record : Record
            Record of all blocks: tuned parameters, their grade, and which search found the neighbours.
        **more
            Further entries that the method adds.
        """

    def run(self, problem: Problem, sink: Sink) -> Record:
        """Compute all blocks that the sink lacks.

        Returns
        -------
        Record
            How they came about.

        Raises
        ------
        DeviceMemoryError
            A block does not fit on the device, not even when it is planned with an eighth of the memory.
        Interrupted
            Ctrl-C, where the sink outlives the process; a plain KeyboardInterrupt where it does not.
        """


class LocalRunner:
    """Runs jobs in this process: on one device block by block, on several each in a thread of its own.

    Parameters
    ----------
    executors : sequence of Executor
    """

    def __init__(self, executors: Sequence[Executor]) -> None:
        self.executors = tuple(executors)
        self._begun = time.perf_counter()
        self._places: list[dict[str, Any]] = []

    @property
    def devices(self) -> int:
        return len(self.executors)

    @property
    def infos(self) -> list[DeviceInfo]:
        return [executor.info for executor in self.executors]

    @property
    def executor(self) -> Executor:
        return self.executors[0]

    @property
    def tuning(self) -> dict[str, list[dict[str, Any]]]:
        return recorded()

    def alike(self, kernels: Iterable[str]) -> DeviceInfo:
        """What a store of the runner's blocks says of its devices; see :func:`of_one_kind`."""
        return of_one_kind(self.infos, kernels)

    def provenance(self, kernels: Iterable[str], record: Record, **more: Any) -> dict[str, Any]:
        """Where a result that was made here comes from; see :meth:`Runner.provenance`."""
        return of_job(self, self._places, kernels, record, seconds=time.perf_counter() - self._begun, **more)

    def run(self, problem: Problem, sink: Sink) -> Record:
        """Compute all blocks that the sink lacks; see :meth:`Runner.run`."""
        expect(problem.operations, self.executors[0].info)
        run = Run(problem, sink)
        with kept_told(sink):
            if len(self.executors) == 1:
                run.work(self.executors[0])
            else:
                self._share_out(run)
        self._places = run.places
        return run.record

    def _share_out(self, run: Run) -> None:
        """Work on several devices. A device that fails is left out, and the others compute the blocks that it had."""
        working = list(self.executors)
        while working:
            with ThreadPoolExecutor(len(working)) as pool:
                futures = [pool.submit(in_context(run.work), executor, spare=True) for executor in working]
                try:
                    for future in futures:
                        future.result()
                finally:
                    run.stop()
            lost = run.resume()
            if not lost:
                return
            working = [executor for executor in working if executor.info.id not in lost]
            for device, error in lost.items():
                if not working:
                    raise error
                warn(f"device {device} is left out, and the others do its part: {error}")


def of_one_kind(infos: Sequence[DeviceInfo], kernels: Iterable[str]) -> DeviceInfo:
    """The first of some devices.

    Parameters
    ----------
    infos : sequence of DeviceInfo
    kernels : iterable of str
        Kernels of the job. Where one of them does not give the same bits on all devices, these must be of one kind.

    Raises
    ------
    InputError
        The devices differ, so that blocks of one map might differ in their last digits.
    """
    first, *others = infos
    same_bits = _same_bits(kernels)
    for info in others:
        if device_key(info) != device_key(first) and not same_bits:
            raise InputError(
                f"out= needs devices of one kind: {first.id} is {first.name} ({first.driver}), {info.id} is "
                f"{info.name} ({info.driver}). Name devices that are alike, or call without out="
            )
    return first


def of_job(
    runner: Runner, places: Sequence[Mapping[str, Any]], kernels: Iterable[str], record: Record, **more: Any
) -> dict[str, Any]:
    """Where the result of a runner's job comes from; ``places`` says where each block was computed."""
    kernels = tuple(kernels)
    if len({device_key(info) for info in runner.infos}) > 1 and not _same_bits(kernels):
        more["blocks"] = list(places)  # their last digits may differ
    return provenance(
        runner.infos, kernels, runner.tuning, parameters=dict(record.parameters), grade=record.grade,
        **entries_by_kind(record.searched), **more,
    )  # fmt: skip


def _same_bits(kernels: Iterable[str]) -> bool:
    """Whether a block that these kernels compute has the same bits on every device."""
    return all(spec(name).same_bits for name in kernels)


def in_context(function: Callable[P, R]) -> Callable[P, R]:
    """``function`` for another thread, where the caller's choices for this call, such as a mode of tuning, hold too."""
    return functools.partial(contextvars.copy_context().run, function)


@contextlib.contextmanager
def kept_told(sink: Sink) -> Iterator[None]:
    """Where Ctrl-C or lack of memory ends a job, say in the error what the sink has kept and how the job continues."""
    try:
        yield
    except Interrupted:
        raise
    except KeyboardInterrupt as stop:
        kept = sink.kept()
        if kept is None:
            raise
        raise Interrupted(f"stopped: {kept}") from stop
    except DeviceMemoryError as error:
        kept = sink.kept()
        if kept is None:
            raise
        raise like(error, f"{error} Of the job, {kept}.") from error

"""The one loop that runs the blocks of jobs: progress, Ctrl-C, devices that run out of memory, several devices."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from ..device.fingerprint import DeviceKey, device_key
from ..device.memory import host_refusal, memory_share
from ..errors import DeviceMemoryError, InputError, Interrupted, LaunchError, warn
from ..kernels import spec
from ..launch.progress import told
from ..tuning.parameters import expect, keeping
from ..tuning.parameters import record as recorded
from .blocks import Arrays, Block, BlockResult, Engine, Problem, Record, Report, Wait
from .manifest import same_kind
from .provenance import provenance
from .sinks import Sink

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..device.info import DeviceInfo

log = logging.getLogger(__name__)
P = ParamSpec("P")
R = TypeVar("R")

# After a refusal, half as much memory is planned with, three times: what does not help then is not the plan.
_LEAST_SHARE = 1 / 8


class Runner(Protocol):
    """What runs the blocks of a job: on this device, on several, in other processes.

    Attributes
    ----------
    devices : int
        How many work at the same time, as far as that is known: jobs are cut for so many.
    infos : sequence of DeviceInfo
        Those that have worked, or will. There is one at least.
    executor : Executor
        A device of this process, for what is no job.
    tuning : mapping
        Kernel to the parameters that it was given, see :meth:`pyedmcl.tuning.parameters.ParameterSource.record`.
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
            Those used, where nothing tells which were.
        record : Record
            Of all its blocks: its tuned parameters, their grade, and what searched for neighbours.
        **more
            What the method adds.
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
            A block does not fit, not even with a fraction of the memory planned with.
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
        run = _Run(problem, sink)
        with kept_told(sink):
            if len(self.executors) == 1:
                run.work(self.executors[0])
            else:
                self._share_out(run)
        self._places = run.places
        return run.record

    def _share_out(self, run: _Run) -> None:
        """Work on several devices. One that fails is left out, and what it had goes to the others."""
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
        Those of the job. Where one of them does not give the same bits everywhere, devices must be of one kind.

    Raises
    ------
    InputError
        They differ, so that blocks of one map might differ in their last digits.
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
        neighbors=[dict(entry) for entry in record.searched], **more,
    )  # fmt: skip


def _same_bits(kernels: Iterable[str]) -> bool:
    """Whether a block that these kernels compute has the same bits on every device."""
    return all(spec(name).same_bits for name in kernels)


def in_context(function: Callable[P, R]) -> Callable[P, R]:
    """``function`` for another thread, with what the caller has chosen for this call (tuning) in force there, too."""
    return functools.partial(contextvars.copy_context().run, function)


@contextlib.contextmanager
def kept_told(sink: Sink) -> Iterator[None]:
    """Say what the sink has kept, and how to go on, where Ctrl-C or lack of memory ends a job."""
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


class _Run:
    """One job at work: what the devices that work on it share.

    Attributes
    ----------
    record : Record
        Of the blocks that were computed.
    """

    def __init__(self, problem: Problem, sink: Sink) -> None:
        self.record = Record()
        self._problem, self._sink = problem, sink
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        #: Where blocks were computed: first row, end, and id of the device.
        self.places: list[dict[str, Any]] = []
        self._lost: dict[str, DeviceMemoryError | LaunchError] = {}  # devices that failed, by their ids
        self._own: dict[DeviceKey, dict[str, dict[str, Any]]] = {}  # tuned parameters of other kinds than the job's
        self._done = problem.total - sum(problem.size(block) for block in sink.pending())
        self._parts: dict[int, int] = {}  # of blocks that are being computed
        self._reported = -1
        self._report()

    def work(self, executor: Executor, *, spare: bool = False) -> None:
        """Compute blocks on a device until none is left. A failure of one that can be spared is noted, not raised."""
        worker = OpenProblem(self._problem, executor)
        block: Block | None = None
        try:
            with self._keeping(executor.info):
                while (block := self._claim()) is not None:
                    result = worker.block(block, self._sink.room(block), functools.partial(self._part, block))
                    self._finish(block, result, executor.info.id)
        except (DeviceMemoryError, LaunchError) as error:
            # What names a kernel may be the fault of its parameters: tuning.retry calls again with others.
            if not spare or error.kernel or block is None:
                self.stop()
                raise
            with self._lock:
                self._lost[executor.info.id] = error
                self._parts.pop(block.number, None)
                self._sink.give_back(block)
        except BaseException:
            self.stop()
            raise
        finally:
            worker.release()

    def _keeping(self, info: DeviceInfo) -> AbstractContextManager[None]:
        """The job's tuned parameters, on devices of its kind; others have their own, since these decide speed only."""
        answers, key = self._sink.answers, device_key(info)
        if answers is None:
            return contextlib.nullcontext()
        if not same_kind(self._sink.device, key.as_dict()):
            answers = self._own.setdefault(key, {})
        return keeping(answers)

    def stop(self) -> None:
        """Have no further block begun."""
        self._stopped.set()

    def resume(self) -> dict[str, DeviceMemoryError | LaunchError]:
        """Have blocks begun again; returns which devices failed, and how, since the run began or was resumed."""
        lost, self._lost = self._lost, {}
        self._stopped.clear()
        return lost

    def _claim(self) -> Block | None:
        while True:
            with self._lock:
                claimed = None if self._stopped.is_set() else self._sink.claim()
                elsewhere = sum(self._problem.size(block) for block in self._sink.elsewhere())
                if elsewhere:
                    self._done += elsewhere
                    self._report()
            if not isinstance(claimed, Wait):
                return claimed
            self._stopped.wait(claimed.seconds)

    def _part(self, block: Block, done: int) -> None:
        # The end of a block is told once it is written: whoever stops then, stops behind it.
        if done < self._problem.size(block):
            with self._lock:
                self._parts[block.number] = done
                self._report()

    def _finish(self, block: Block, result: BlockResult, device: str) -> None:
        with self._lock:
            self.places.append({"begin": block.begin, "end": block.end, "device_id": device})
            self._sink.write(block, result)
            self.record = self.record.joined(result.record)
            self._parts.pop(block.number, None)
            self._done += self._problem.size(block)
            self._report()

    def _report(self) -> None:
        # What is computed here and elsewhere, too, does not count twice.
        done = min(self._done + sum(self._parts.values()), self._problem.total)
        if self._problem.unit and done != self._reported:
            self._reported = done
            told(done, self._problem.total, self._problem.unit)


class OpenProblem:
    """A device and the engine open on it, which gets less memory where the device refuses what was planned."""

    def __init__(self, problem: Problem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor
        self._engine: Engine | None = None
        self._share = 1.0

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        refusals: list[str] = []
        while True:
            try:
                with memory_share(self._share):
                    if self._engine is None:
                        self._engine = self._problem.open(self._executor)
                    return self._engine.block(block, into, report)
            except MemoryError as found:
                error = found if isinstance(found, DeviceMemoryError) else host_refusal(found)
                refusals.append(str(error))
                # A launch may have been refused for its work-group. Where half of the memory does not help, smaller
                # ones are tried by tuning.retry.
                least = 1 / 2 if error.kernel else _LEAST_SHARE
                if not error.refused or self._share <= least:
                    if len(refusals) == 1 and error is found:
                        raise
                    share = f"{self._share:.3g} of the memory that may be used"
                    more = f" (That was with {share}; at first: {refusals[0]})" if len(refusals) > 1 else ""
                    raise like(error, f"{error}{more}") from found
                del error
            # Here, where no traceback keeps the engine's buffers alive.
            self.release()
            self._share /= 2
            log.warning("%s Trying again with %g of the memory.", refusals[-1], self._share)

    def release(self) -> None:
        if self._engine is not None:
            engine, self._engine = self._engine, None
            engine.release()


def like(error: DeviceMemoryError, message: str) -> DeviceMemoryError:
    """The same error with another message, of a job that got as little memory as is tried."""
    other = type(error)(message)
    other.refused, other.kernel, other.work_group = error.refused, error.kernel, error.work_group
    other.last = True
    return other

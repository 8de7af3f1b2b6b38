"""Run the blocks of jobs in this process, on one device or several, and hand their results to sinks."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import precision
from ..call import recorded as call_recorded
from ..device.info import DeviceKey, device_key
from ..device.memory import host_refusal, memory_share
from ..device.select import DeviceNames, ForeignArray, described, open_devices
from ..errors import DeviceMemoryError, InputError, Interrupted, LaunchError, shown, warn
from ..kernels import spec
from ..launch.progress import report_progress, reporting
from ..launch.staging import DeviceRows
from ..parameters import checked
from ..series.regular import SETTLE, regular_times
from ..tuning.parameters import expect, keeping, tunable
from ..tuning.parameters import record as recorded
from .blocks import (
    Arrays,
    Block,
    BlockResult,
    Engine,
    Problem,
    Record,
    Report,
    Wait,
    entries_by_kind,
    provenance,
    same_kind,
)
from .store import XmapStore

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..device.info import DeviceInfo


# Sinks take the blocks of a job, into arrays or into stores that outlive the process, and hand out what they lack.


Answers = MutableMapping[str, dict[str, Any]]


class Sink(Protocol):
    """Takes the blocks of a job, and hands out those that it lacks."""

    @property
    def record(self) -> Record:
        """How the blocks that the sink holds came about, as far as the sink keeps that."""

    @property
    def answers(self) -> Answers | None:
        """Tuned parameters of the job, see :func:`pyedmcl.tuning.parameters.keeping`; None where none are kept."""

    @property
    def device(self) -> Mapping[str, Any]:
        """Key of the kind of device that these parameters are for; empty where none are kept."""

    @property
    def folder(self) -> Path | None:
        """Where the job keeps its blocks; None where it keeps none."""

    def pending(self) -> Sequence[Block]:
        """Blocks that are still to be computed, claimed ones included. A sink may hand out such a block in pieces."""

    def claim(self) -> Block | Wait | None:
        """A block that nobody has claimed yet.

        A :class:`.blocks.Wait` says that other processes compute all that is left, which comes back if they are lost.
        None says that nothing is left.
        """

    def elsewhere(self) -> Sequence[Block]:
        """Blocks that other processes have finished since the last call of this method."""

    def give_back(self, block: Block) -> None:
        """Take back a block that was claimed but not computed, so that another device or process can claim it."""

    def room(self, block: Block) -> Arrays | None:
        """Arrays into which an engine may write a block directly; None where it must return arrays of its own."""

    def write(self, block: Block, result: BlockResult) -> None:
        """Take a block. It counts as done when this method returns."""

    def kept(self) -> str | None:
        """A sentence on what outlives this process and how the job continues; None where nothing outlives it."""


class PairsSink(Sink, Protocol):
    """Takes the blocks of a map of all pairs, and the embedding dimensions of its series, which a first stage finds."""

    @property
    def E(self) -> NDArray[np.int_] | None:
        """Embedding dimensions of the series, where the job has found them."""

    def set_E(self, E: ArrayLike, record: Record) -> None:
        """Keep the embedding dimensions and the record of how they were found, unless the sink has them already."""

    def stage(self, name: str, n: int, blocks: Sequence[Block]) -> ResultsSink:
        """The sink of a stage that the job runs before its own blocks, such as the search for E.

        Parameters
        ----------
        name : str
            Name of the stage.
        n : int
            Rows of the stage.
        blocks : sequence of Block
            Blocks as this process would cut them if it worked alone.
        """


class ResultsSink(Sink, Protocol):
    """A sink that gives the results of its blocks back."""

    def results(self) -> list[Any]:
        """Results of all blocks in their order; to be asked for once none is pending."""


class ListSink:
    """Keeps the results of blocks in memory as they come.

    Parameters
    ----------
    job : Sink, optional
        The sink of a job whose first stage goes here. Its tuned parameters are used, and messages say what it keeps.
    """

    def __init__(self, blocks: Sequence[Block], job: Sink | None = None) -> None:
        self._job = job
        self._pending = {block.number: block for block in blocks}
        self._unclaimed = deque(blocks)
        self._results: dict[int, Any] = {}
        self.record = Record()
        self.answers = None if job is None else job.answers
        self.device: Mapping[str, Any] = {} if job is None else job.device
        self.folder: Path | None = None if job is None else job.folder

    def results(self) -> list[Any]:
        """Results of the blocks in their order."""
        return [self._results[number] for number in sorted(self._results)]

    def pending(self) -> list[Block]:
        return list(self._pending.values())

    def claim(self) -> Block | None:
        return self._unclaimed.popleft() if self._unclaimed else None

    def give_back(self, block: Block) -> None:
        self._unclaimed.append(block)

    def elsewhere(self) -> Sequence[Block]:
        return ()

    def room(self, block: Block) -> Arrays | None:
        return None

    def write(self, block: Block, result: BlockResult) -> None:
        self._take(block, result.arrays)
        self.record = self.record.joined(result.record)
        del self._pending[block.number]

    def _take(self, block: Block, arrays: Any) -> None:
        self._results[block.number] = arrays

    def kept(self) -> str | None:
        return None if self._job is None else self._job.kept()


class ArraySink(ListSink):
    """Writes blocks into arrays in memory.

    Parameters
    ----------
    layers : sequence of ndarray
        Rows first.
    job : Sink, optional
        As for :class:`ListSink`.
    """

    def __init__(self, blocks: Sequence[Block], layers: Arrays, job: Sink | None = None) -> None:
        super().__init__(blocks, job)
        self._layers = layers
        self.E: NDArray[np.int_] | None = None

    def set_E(self, E: ArrayLike, record: Record) -> None:
        self.E = np.asarray(E, int)
        self.record = self.record.joined(Record(searched=record.searched))

    def stage(self, name: str, n: int, blocks: Sequence[Block]) -> ListSink:
        return ListSink(blocks, self)

    def room(self, block: Block) -> list[NDArray[Any]]:
        return [self._layers[layer][block.begin : block.end] for layer in block.layers]

    def _take(self, block: Block, arrays: Arrays) -> None:
        for place, rows in zip(self.room(block), arrays, strict=True):
            if not np.may_share_memory(place, rows):  # else the engine has written there itself
                place[...] = rows


class StoreSink:
    """Writes blocks of library rows to stores, one for each layer of the result, all of which are cut alike.

    What :mod:`.sharing` makes of it, for one process or several, is a :class:`PairsSink`: it knows where stages go,
    too.

    Parameters
    ----------
    where : path-like
        The folder, as messages name it.
    """

    def __init__(self, stores: Sequence[XmapStore], where: Any) -> None:
        self.stores = stores
        self._where = where
        self.device: Mapping[str, Any] = stores[0].manifest.device
        self.folder = Path(where)
        self._searched = [store.searched for store in stores]
        self.record = Record()
        for records in self._searched:
            self.record = self.record.joined(Record(searched=tuple(records)))
        # A job that is continued computes its blocks with the parameters of those that are there.
        self.answers: Answers = {}
        for store in stores:
            self.answers |= store.parameters
        self._kept_answers = [store.parameters for store in stores]
        self._unclaimed = deque(self.pending())

    @property
    def E(self) -> NDArray[np.int_] | None:
        kept = next((E for store in self.stores if (E := store.E) is not None), None)
        return None if kept is None else np.asarray(kept, int)

    def set_E(self, E: ArrayLike, record: Record) -> None:
        self.record = self.record.joined(Record(searched=record.searched))
        for place, store in enumerate(self.stores):
            if store.E is None:
                # The record goes first: a run that continues finds E there and does not search for it again.
                self._set_searched(place)
                store.set_E(E)

    def pending(self) -> list[Block]:
        first = self.stores[0]
        lacking = [set(store.pending()) for store in self.stores]
        return [
            Block(number, *first.rows(number), tuple(place for place, own in enumerate(lacking) if number in own))
            for number in sorted(set().union(*lacking))
        ]

    def claim(self) -> Block | Wait | None:
        return self._unclaimed.popleft() if self._unclaimed else None

    def give_back(self, block: Block) -> None:
        self._unclaimed.append(block)

    def elsewhere(self) -> Sequence[Block]:
        return ()

    def room(self, block: Block) -> None:
        return None

    def write(self, block: Block, result: BlockResult) -> None:
        self.record = self.record.joined(result.record)
        for place, rows in zip(block.layers, result.arrays, strict=True):
            self._keep_answers(place)  # before the block, since a run that continues must know its parameters
            self._set_searched(place)
            self.stores[place].write(block.number, rows)

    def _keep_answers(self, place: int) -> None:
        if self.answers != self._kept_answers[place]:
            self.stores[place].set_parameters(self.answers)
            self._kept_answers[place] = dict(self.answers)

    def _set_searched(self, place: int) -> None:
        records = [dict(entry) for entry in self.record.searched]
        if records != self._searched[place]:
            self.stores[place].set_searched(records)
            self._searched[place] = records

    def kept(self) -> str:
        total = sum(store.n_blocks for store in self.stores)  # in the unit of ``pyedmcl status``
        done = total - sum(len(store.pending()) for store in self.stores)
        return (
            f"{done:,} of {total:,} blocks of {self._where} are finished and kept; the same call (or "
            "command) continues there"
        )


# A job at work: devices claim its blocks and compute them, with less memory where they refuse what was planned.


log = logging.getLogger(__name__)

# After each refusal the plan gets half of the memory, down to an eighth. Where that is refused, too, memory is not the
# cause.
_LEAST_SHARE = 1 / 8


class Run:
    """One job at work: the state that is shared by the devices which compute its blocks.

    Attributes
    ----------
    record : Record
        How the blocks that were computed here came about.
    """

    def __init__(self, problem: Problem, sink: Sink) -> None:
        self.record = Record()
        self._problem, self._sink = problem, sink
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        #: Where blocks were computed: first row, end, and id of the device.
        self.places: list[dict[str, Any]] = []
        self._lost: dict[str, DeviceMemoryError | LaunchError] = {}  # how devices failed, by their ids
        # Tuned parameters of devices that are of another kind than those of the job.
        self._other_answers: dict[DeviceKey, dict[str, dict[str, Any]]] = {}
        self._done = problem.total - sum(problem.size(block) for block in sink.pending())
        self._parts: dict[int, int] = {}  # how much is done of each block that is being computed, by its number
        self._reported = -1
        self._report()

    def work(self, executor: Executor, *, spare: bool = False) -> None:
        """Compute blocks on a device until none is left.

        Where the job can ``spare`` the device, since others work on it too, a failure is noted and not raised.
        """
        worker = OpenProblem(self._problem, executor)
        block: Block | None = None
        try:
            with self._keeping(executor.info):
                while (block := self._claim()) is not None:
                    result = worker.block(block, self._sink.room(block), functools.partial(self._part, block))
                    self._finish(block, result, executor.info.id)
        except (DeviceMemoryError, LaunchError) as error:
            # An error that names a kernel may be the fault of its tuned parameters. It is raised, so that tuning.retry
            # can call the function again with other ones.
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
        """Inside this ``with``, kernels take the tuned parameters of the job.

        A device of another kind than the job's has parameters of its own, since they decide only how fast it computes.
        """
        answers, key = self._sink.answers, device_key(info)
        if answers is None:
            return contextlib.nullcontext()
        if not same_kind(self._sink.device, key.as_dict()):
            answers = self._other_answers.setdefault(key, {})
        return keeping(answers)

    def stop(self) -> None:
        """Let no device begin another block."""
        self._stopped.set()

    def resume(self) -> dict[str, DeviceMemoryError | LaunchError]:
        """Let devices begin blocks again; returns which ones failed since the run began or was resumed, and how."""
        lost, self._lost = self._lost, {}
        self._stopped.clear()
        return lost

    def _claim(self) -> Block | None:
        """The next block to compute, for which this may have to wait; None where none is left or the run is stopped."""
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
        # Only _finish reports a block as done, once it is written: who presses Ctrl-C at that report must not lose it.
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
        # A block may be computed both here and by another process; the sum must not exceed the total then.
        done = min(self._done + sum(self._parts.values()), self._problem.total)
        if self._problem.unit and done != self._reported:
            self._reported = done
            report_progress(done, self._problem.total, self._problem.unit)


class OpenProblem:
    """A device with the engine of a problem. Where the device refuses memory, the engine is opened again with less."""

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
            except MemoryError as caught:
                error = caught if isinstance(caught, DeviceMemoryError) else host_refusal(caught)
                refusals.append(str(error))
                # An error that names a kernel may mean that its work-group is too large for the device. Half of the
                # memory is tried once; if that does not help, tuning.retry tries smaller work-groups.
                least = 1 / 2 if error.kernel else _LEAST_SHARE
                if not error.refused or self._share <= least:
                    if len(refusals) == 1 and error is caught and self._share == 1.0:
                        raise
                    share = f"This was with {100 * self._share:.3g} % of the memory that may be used"
                    first = f"; the first refusal was: {refusals[0]}" if len(refusals) > 1 else "."
                    more = f" ({share}{first})" if self._share < 1.0 else ""
                    raise like(error, f"{error}{more}") from caught
                del error
            # The engine is released only here, outside of the handler, where no traceback keeps its buffers alive.
            self.release()
            self._share /= 2
            log.warning("%s Trying again with %g of the memory.", refusals[-1], self._share)

    def release(self) -> None:
        if self._engine is not None:
            engine, self._engine = self._engine, None
            engine.release()


def like(error: DeviceMemoryError, message: str) -> DeviceMemoryError:
    """The same error with another message, marked as the last one: the job got the least memory that is tried."""
    other = type(error)(message)
    other.refused, other.kernel, other.work_group = error.refused, error.kernel, error.work_group
    other.last = True
    return other


# The loop over blocks is in this module.


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
        """Where a result that was made here comes from; see :func:`pyedmcl.jobs.blocks.provenance`.

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
        """


class LocalRunner:
    """Runs jobs in this process: on one device block by block, on several each in a thread of its own."""

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
    kernels : iterable of str
        Kernels of the job. Where one of them does not give the same bits on all devices, these must be of one kind.
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


# Results in arrays of the caller on a device (``out=``): which they are, who computes them, how blocks get there.


#: Kernel that writes them.
KERNEL = "deliver"


def arrays_of(out: Any, wanted: Mapping[str, tuple[tuple[int, ...], Any]]) -> list[ForeignArray]:
    """``out=`` as arrays on a device.

    Parameters
    ----------
    wanted : mapping
        What each array holds: its shape and number type.
    """
    arrays = list(out) if isinstance(out, (list, tuple)) else [out]
    if len(arrays) != len(wanted):
        raise InputError(f"out=: arrays on the device are needed for {', '.join(wanted)}, and {len(arrays)} were given")
    foreign = []
    for array, (name, (shape, dtype)) in zip(arrays, wanted.items(), strict=True):
        held = described(array, f"out= ({name})")
        held.require(shape, dtype)
        foreign.append(held)
    return foreign


def runner_at(arrays: Sequence[ForeignArray], device: DeviceNames, dtype: str) -> LocalRunner:
    """What runs a job whose result goes to these arrays: after the queue of the first where no device is named."""
    executors = open_devices(arrays[0].queue if device is None else device)
    if len(executors) > 1:
        raise InputError(f"device={shown(device)}: results in arrays on a device are computed by that device alone")
    precision(dtype, executors[0].info.fp64, executors[0].info.name)
    return LocalRunner(executors)


class DeviceSink(ArraySink):
    """Blocks that a single device writes into arrays of the caller.

    Parameters
    ----------
    layers : sequence of DeviceRows
        Rows first.
    """

    def __init__(self, blocks: Sequence[Block], layers: Sequence[DeviceRows]) -> None:
        super().__init__(blocks, ())
        self._rows = layers

    def room(self, block: Block) -> Any:
        return [self._rows[layer][block.begin : block.end] for layer in block.layers]

    def _take(self, block: Block, arrays: Any) -> None:
        """Nothing is left to do: the engine has written it."""


# What every public function that computes has in common, in one decorator.


def public_function(function: Callable[P, R]) -> Callable[P, R]:
    """Check the arguments of a public function, and give ``progress``, ``tune`` and ``regular`` their meaning.

    Arguments are checked by their rows in :mod:`pyedmcl.parameters`. What loops within report goes to ``progress``,
    see :func:`pyedmcl.launch.progress.reporting`. ``tune`` says which parameters kernels take, and a device that
    refuses what it was given gets less, see :func:`pyedmcl.tuning.parameters.tunable`: so the function must be one that
    can be called again. What it is called with is kept for provenance, see :mod:`pyedmcl.call`. What ``regular`` says
    of times is done before it begins, see :mod:`pyedmcl.series.regular`.
    """
    called = checked(tunable(reporting(call_recorded(regular_times(function)))))

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return called(*args, **kwargs)
        except Exception as found:
            error = found
        try:  # in a traceback the function follows the caller's line, not what was wrapped around it
            unfit = isinstance(error, TypeError) and not _fits(function, args, kwargs)
            raise error.with_traceback(None if unfit else _below(error.__traceback__, function))
        finally:
            del error  # which holds this frame

    return call


def _fits(function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> bool:
    """Whether a function can be called so; else an argument is misspelt, say, and the caller's line is all there is."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _below(traceback: TracebackType | None, function: Callable[..., object]) -> TracebackType | None:
    """The traceback from ``function``, or the look at its times, on; all of it where neither is in it."""
    place = traceback
    while place is not None:
        if place.tb_frame.f_code in (function.__code__, SETTLE):
            return place
        place = place.tb_next
    return traceback

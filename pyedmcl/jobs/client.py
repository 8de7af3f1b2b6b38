"""Jobs on the workers of a cluster: the runner behind ``client=``."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .. import config
from ..device.fingerprint import device_key
from ..device.select import DeviceNames
from ..device.session import open_device
from ..errors import ClientError, DeviceMemoryError, LaunchError, PyedmclError, warn
from ..launch.progress import told
from ..tuning.parameters import source
from .blocks import Block, BlockResult, Problem, Record, Wait
from .manifest import same_kind
from .pools import Pool, likely_workers, pool_of
from .runner import kept_told, of_job, of_one_kind
from .sinks import Sink
from .spool import Spooled, spooled
from .worker import Message, identity, kind_of

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..device.info import DeviceInfo

log = logging.getLogger(__name__)
E = TypeVar("E", bound=PyedmclError)

# A task is made of as many blocks as take about so long: its way to a worker and back takes some 10 ms.
_TASK_SECONDS = 0.5
# After how many losses (workers that died, lost their connection or their device) the run gives a block up. An engine
# may have tried it several times itself before it calls it lost: Dask does so four times.
_MOST_LOSSES = 5
_LOOK_SECONDS = 1.0  # between two looks at workers that come and go
_TELL_SECONDS = 10.0  # of silence, after which a warning says what is waited for


class ClientRunner:
    """Runs jobs on the workers of a cluster engine: each computes blocks, and this process writes what they give.

    Parameters
    ----------
    client : object
        With ``submit``, see :func:`pyedmcl.jobs.pools.pool_of`.
    device : str or sequence of str, optional
        What each worker opens, by the names that hold where it runs.

    Raises
    ------
    InputError
        ``client`` is something else.
    ClientError
        No worker answers, or the first that does has another pyedmcl.
    """

    def __init__(self, client: Any, device: DeviceNames = None) -> None:
        self._pool, self._device = pool_of(client), device
        self._begun = time.perf_counter()
        self._infos: dict[tuple[str, str], DeviceInfo] = {}  # by worker and device
        self._tuning: dict[str, list[dict[str, Any]]] = {}
        self._places: list[dict[str, Any]] = []
        self._kernels: tuple[str, ...] = ()  # of a job that is stored
        first = _Hello(self._pool, {"identity": identity(), "device": device}).answer()
        for info in first["devices"]:
            self._infos[first["worker"], info.id] = info
        self._devices = max(self._pool.workers() or likely_workers(client), 1)

    @property
    def devices(self) -> int:
        return self._devices

    @property
    def infos(self) -> list[DeviceInfo]:
        return list(self._infos.values())

    @property
    def executor(self) -> Executor:
        name = self._device
        return open_device(name if name is None or isinstance(name, str) else name[0])

    @property
    def tuning(self) -> dict[str, list[dict[str, Any]]]:
        return self._tuning

    def alike(self, kernels: Iterable[str]) -> DeviceInfo:
        """What a store says of the devices: the first worker's; see :func:`.runner.of_one_kind`."""
        self._kernels = tuple(kernels)
        return of_one_kind(self.infos, self._kernels)

    def provenance(self, kernels: Iterable[str], record: Record, **more: Any) -> dict[str, Any]:
        """Where a result comes from; see :meth:`.runner.Runner.provenance`. ``workers`` says which worked on it."""
        workers = sorted({worker for worker, _ in self._infos})
        seconds = time.perf_counter() - self._begun
        return of_job(self, self._places, kernels, record, workers=workers, seconds=seconds, **more)

    def run(self, problem: Problem, sink: Sink) -> Record:
        """Compute all blocks that the sink lacks; see :meth:`.runner.Runner.run`."""
        with kept_told(sink), spooled(problem, sink.folder) as file:
            common = {"identity": identity(), "device": self._device}
            job = _Job(self._pool, problem, sink, file, self.infos[0], common, self._kernels)
            with _cancelled(job.futures):
                job.work()
        for key, info in job.infos.items():
            self._infos.setdefault(key, info)
        _add(self._tuning, job.tuning)
        self._places = job.places
        return job.record


@contextlib.contextmanager
def _cancelled(futures: dict[Any, Any]) -> Iterator[None]:
    """Have what is outstanding at the end not be computed."""
    try:
        yield
    finally:
        for future in futures.values():
            with contextlib.suppress(Exception):
                future.cancel()


class _Answers:
    """Futures as they are finished, whether they call back or have to be asked."""

    def __init__(self) -> None:
        self.futures: dict[int, Any] = {}  # outstanding, by a number of ours
        self._asked: set[int] = set()
        self._finished: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._count = 0

    def add(self, future: Any) -> int:
        self._count += 1
        number = self._count
        self.futures[number] = future
        if hasattr(future, "add_done_callback"):
            future.add_done_callback(lambda _: self._finished.put(number))
        else:
            self._asked.add(number)
        return number

    def running(self) -> int:
        """How many are known to be with a worker."""
        return sum(bool(getattr(future, "running", bool)()) for future in self.futures.values())

    def next(self, seconds: float) -> tuple[int, Any] | None:
        """The number of one that is finished, and the future; None where none is within this time."""
        end, pause = time.monotonic() + seconds, 0.001
        while True:
            left = end - time.monotonic()
            with contextlib.suppress(queue.Empty):
                number = self._finished.get(timeout=max(min(left, pause if self._asked else left), 0))
                return number, self.futures.pop(number)
            number = next((asked for asked in self._asked if self.futures[asked].done()), 0)
            if number:
                self._asked.discard(number)
                return number, self.futures.pop(number)
            if left <= 0:
                return None
            pause = min(2 * pause, 0.1)


class _Waiting:
    """How long nothing has been heard: a warning says so, and in the end an error."""

    def __init__(self, what: str) -> None:
        self._what, self._limit = what, config.current().client_timeout
        self.heard()

    def heard(self) -> None:
        self._since, self._told = time.monotonic(), False

    def look(self) -> None:
        silent = time.monotonic() - self._since
        if silent > min(_TELL_SECONDS, self._limit / 2) and not self._told:
            self._told = True
            warn(f"{self._what} for {silent:.0f} s; waiting up to {self._limit:.0f} s (PYEDMCL_CLIENT_TIMEOUT)")
        if silent > self._limit:
            raise ClientError(
                f"{self._what} for {silent:.0f} s (PYEDMCL_CLIENT_TIMEOUT): see whether the cluster has started "
                "workers, and whether they can be reached"
            )


class _Hello:
    """The first task: is there a worker, is its pyedmcl this one, and which devices has it?"""

    def __init__(self, pool: Pool, task: Message) -> None:
        self._pool, self._task = pool, task
        self._answers = _Answers()

    def answer(self) -> Message:
        """What the first worker says."""
        waiting, lost = _Waiting("no worker of client= has answered"), 0
        with _cancelled(self._answers.futures):
            self._submit()
            while True:
                found = self._answers.next(_LOOK_SECONDS)
                if found is None:
                    waiting.look()
                    continue
                try:
                    return _checked(_result(found[1], str))
                except _LostError as error:
                    lost += 1
                    if lost >= _MOST_LOSSES:
                        raise ClientError(f"workers of client= are lost as soon as they begin: {error}") from error
                    self._submit()

    def _submit(self) -> None:
        self._answers.add(_submitted(self._pool, self._task, f"hello-0{secrets.token_hex(4)}", None, str))


class _LostError(Exception):
    """A task did not come back."""


def _submitted(pool: Pool, task: Message, name: str, handed: Any, kept: Callable[[], str]) -> Any:
    try:
        return pool.submit(task, name, handed)
    except BrokenExecutor as error:
        raise _broken(error, kept) from error
    except Exception as error:
        raise ClientError(f"client= takes no more tasks: {error or type(error).__name__}{kept()}") from error


def _result(future: Any, kept: Callable[[], str]) -> Message:
    """What a worker answered.

    Raises
    ------
    _LostError
        The task may be done by another one.
    ClientError
        No worker is left, or one has no pyedmcl.
    """
    try:
        answer: Message = future.result()
        return answer
    except BrokenExecutor as error:
        raise _broken(error, kept) from error
    except (Exception, asyncio.CancelledError) as error:
        cause: BaseException | None = error
        while cause is not None:
            if "No module named 'pyedmcl" in str(cause):
                raise ClientError(f"a worker of client= has no pyedmcl; install it there ({cause}){kept()}") from error
            cause = cause.__cause__ or cause.__context__
        raise _LostError(f"{type(error).__name__}: {error}") from error


def _broken(error: BrokenExecutor, kept: Callable[[], str]) -> ClientError:
    return ClientError(f"the pool of client= is broken, since a process of it ended: make a new one ({error}){kept()}")


def _checked(answer: Message) -> Message:
    """The answer of a worker that has our pyedmcl.

    Raises
    ------
    ClientError
        It has another one.
    PyedmclError
        It failed, and says how.
    """
    other, worker = answer.get("refused"), answer["worker"]
    if other is not None:
        mine = identity()
        differ = "; ".join(
            f"{what} is {other.get(what)} there and {mine[what]} here" for what in mine if other.get(what) != mine[what]
        )
        raise ClientError(f"worker {worker} of client= would compute something else: {differ}. Install the same there")
    if "failure" in answer:
        error = answer["failure"]
        raise _with(error, f"{error} (on worker {worker})") if isinstance(error, PyedmclError) else error
    return answer


def _with(error: E, message: str) -> E:
    """The same error with another message."""
    other = type(error)(message)
    other.__dict__.update(error.__dict__)
    return other


def _add(known: dict[str, list[dict[str, Any]]], more: dict[str, list[dict[str, Any]]]) -> None:
    """Add parameters that kernels were given to those that are known."""
    for kernel, entries in more.items():
        mine = known.setdefault(kernel, [])
        for entry in entries:
            # What a worker is told of the job's parameters is "recorded" there; how good they are was said before.
            same = entry["grade"] == "recorded" and any(entry["parameters"] == one["parameters"] for one in mine)
            if entry not in mine and not same:
                mine.append(entry)


class _Job:
    """One job at work on a cluster.

    Attributes
    ----------
    record : Record
        Of the blocks that were computed.
    infos : dict
        Devices, by worker and id.
    tuning : dict
        Kernel to the parameters that it was given.
    places : list of dict
        Where blocks were computed.
    """

    def __init__(
        self, pool: Pool, problem: Problem, sink: Sink, file: Spooled, first: DeviceInfo, common: Message,
        kernels: Sequence[str],
    ) -> None:  # fmt: skip
        self.record, self.places = Record(), list[dict[str, Any]]()
        self.infos: dict[tuple[str, str], DeviceInfo] = {}
        self.tuning: dict[str, list[dict[str, Any]]] = {}
        self._pool, self._problem, self._sink, self._file, self._kernels = pool, problem, sink, file, kernels
        #: Tuned parameters that the job has settled on for each kind of device: the first that came. A store keeps
        #: those of the kind that it names.
        named = sink.answers is not None and same_kind(sink.device, device_key(first).as_dict())
        self._settled: dict[str, Any] = {kind_of(first): sink.answers if named else {}}
        self._common: Message = {
            **common, "problem": file.digest, "path": str(file.path), "job": secrets.token_hex(4),
            "tune": source.asked(),
        }  # fmt: skip
        self._name = f"{type(problem).__name__.removesuffix('Problem').lower()}-0{self._common['job']}"
        self._handed: Any = None
        self._answers = _Answers()
        self._given: dict[int, list[Block]] = {}  # blocks of outstanding tasks
        self._again: deque[list[Block]] = deque()  # blocks whose task was lost
        self._losses: Counter[int] = Counter()
        self._tasks = 0
        self._workers = pool.workers()
        self._looked = time.monotonic()
        self._seen: set[str] = set()
        self._speed = 0.0  # of a worker: units of the problem a second
        self._done = problem.total - sum(problem.size(block) for block in sink.pending())
        self._pause = 0.0  # seconds after which there may be blocks again, while there are none
        self._out = 0  # units of outstanding tasks

    @property
    def futures(self) -> dict[int, Any]:
        """Tasks that are outstanding."""
        return self._answers.futures

    def work(self) -> None:
        """Compute all blocks."""
        self._report()
        waiting = _Waiting("there has been no worker of client=")
        while True:
            self._fill()
            if not self.futures and not self._pause:
                return
            if not self.futures:
                time.sleep(self._pause)  # others who share the store compute what is left
                continue
            found = self._answers.next(_LOOK_SECONDS if self._seen else 0.05)
            if found is not None:
                self._take(*found)
            if time.monotonic() - self._looked > _LOOK_SECONDS:
                self._workers, self._looked = self._pool.workers(), time.monotonic()
            if found is not None or self._workers != 0:
                waiting.heard()
            else:
                waiting.look()

    # Handing out

    def _fill(self) -> None:
        """Have some tasks with each worker, so that none waits, but no more, so that the last ones are shared."""
        while len(self.futures) < 2 + 2 * self._known():
            blocks = self._again.popleft() if self._again else self._claimed()
            if not blocks:
                return
            self._tasks += 1
            task = {
                **self._common, "answers": {kind: dict(answers) for kind, answers in self._settled.items()},
                "blocks": [(block.number, block.begin, block.end, block.layers) for block in blocks],
            }  # fmt: skip
            future = _submitted(self._pool, task, f"{self._name}-{self._tasks}", self._handed, self._kept)
            self._given[self._answers.add(future)] = blocks
            self._out += self._units(blocks)

    def _known(self) -> int:
        """Workers, or as many as show themselves: their number at least doubles with each round of answers."""
        if self._workers is not None:
            return max(self._workers, 1)
        return max(len(self._seen), self._answers.running(), 1)

    def _claimed(self) -> list[Block]:
        """Blocks for a task that is neither too short nor, towards the end, too long; some only once speed is known."""
        if self._unsettled() and self.futures:
            return []
        left = self._problem.total - self._done - self._out
        most = min(self._speed * _TASK_SECONDS, left / (2 * self._known()))
        blocks: list[Block] = []
        while not blocks or self._units(blocks) < most:
            block = self._sink.claim()
            if block is None or isinstance(block, Wait):
                self._pause = 0.0 if block is None else block.seconds
                break
            blocks.append(block)
        elsewhere = self._units(self._sink.elsewhere())
        if elsewhere:
            self._done += elsewhere
            self._report()
        return blocks

    def _unsettled(self) -> bool:
        """Whether workers would now tune, each for itself; the first one does it for all."""
        return not any(self._settled.values()) and self._common["tune"] in ("auto", "force")

    def _units(self, blocks: Sequence[Block]) -> int:
        return sum(self._problem.size(block) for block in blocks)

    # Taking back

    def _take(self, number: int, future: Any) -> None:
        blocks = self._given.pop(number)
        self._out -= self._units(blocks)
        try:
            answer = _result(future, self._kept)
            if "unseen" in answer:
                self._hand_out(answer)
                self._again.append(blocks)
                return
            answer = _checked(answer)
        except (_LostError, DeviceMemoryError, LaunchError) as error:
            self._lose(blocks, error)
            return
        settled = self._settled.setdefault(kind_of(answer["device"]), {})
        for question, parameters in answer["answers"].items():
            if question not in settled:
                settled[question] = parameters
            if settled[question] != parameters:
                self._again.append(blocks)  # computed with others than the job's: other last digits are possible
                return
        self._seen.add(answer["worker"])
        self._keep(blocks, answer)

    def _keep(self, blocks: Sequence[Block], answer: Message) -> None:
        info = answer["device"]
        known = next(iter(self.infos.values()), info)
        of_one_kind([known, info], self._kernels)
        self.infos.setdefault((answer["worker"], info.id), info)
        _add(self.tuning, answer["tuning"])
        self._speed = self._units(blocks) / max(answer["seconds"], 1e-6)
        results: list[BlockResult] = answer["results"]
        for block, result in zip(blocks, results, strict=True):
            place = {"begin": block.begin, "end": block.end, "device_id": info.id, "worker": answer["worker"]}
            self.places.append(place)
            self._sink.write(block, result)
            self.record = self.record.joined(result.record)
            self._done += self._problem.size(block)
            self._report()

    def _lose(self, blocks: Sequence[Block], error: Exception) -> None:
        """Have blocks computed again, each in a task of its own; give up where one is lost again and again."""
        for block in blocks:
            self._losses[block.number] += 1
            if self._losses[block.number] >= _MOST_LOSSES:
                if isinstance(error, PyedmclError):
                    raise error
                raise ClientError(
                    f"block {block.number} (rows {block.begin} to {block.end}) was lost {_MOST_LOSSES} times, at last "
                    f"by {error}{self._kept()}"
                ) from error
            self._again.append([block])
        log.warning("A task of %d blocks from block %d was lost and is given out again: %s",
                    len(blocks), blocks[0].number, error)  # fmt: skip

    def _hand_out(self, answer: Message) -> None:
        if self._handed is None:
            log.info("Worker %s does not see %s, so tasks bring the problem", answer["worker"], self._file.path)
            self._handed = self._pool.hand_out(Path(self._file.path))

    def _kept(self) -> str:
        kept = self._sink.kept()
        return "" if kept is None else f". Of the job, {kept}"

    def _report(self) -> None:
        if self._problem.unit:
            told(self._done, self._problem.total, self._problem.unit)

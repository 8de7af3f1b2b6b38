"""Jobs on the workers of a cluster: the runner behind client=, its tasks and their answers."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from .. import config
from ..device.info import device_key
from ..device.select import DeviceNames, is_handle, open_device
from ..errors import ClientError, DeviceMemoryError, InputError, LaunchError, PyedmclError, shown, warn
from ..launch.progress import report_progress
from ..tuning.parameters import source
from .blocks import Block, BlockResult, Problem, Record, Wait, same_kind
from .runner import Sink, kept_told, of_job, of_one_kind
from .worker import Message, Spooled, compute, identity, kind_of, spooled

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..device.info import DeviceInfo


# What pyedmcl asks of a cluster engine: ``submit``, and futures. What one of them offers beyond that is used here.


class Pool(Protocol):
    """Workers to which tasks can be given."""

    def submit(self, task: Message, name: str, handed: Any = None) -> Any:
        """Have a worker do a task; gives a future. ``name`` is shown where people look on."""

    def result(self, future: Any, seconds: float) -> Any:
        """What a task gave whose future is finished; TimeoutError where it is not here within this time."""

    def workers(self) -> int | None:
        """How many tasks can be done at the same time now; None where nothing tells."""

    def hand_out(self, file: Path) -> Any:
        """What has to go with each task so that its worker gets the content of a file."""


def pool_of(client: Any) -> Pool:
    """The workers of a ``client``."""
    if not callable(getattr(client, "submit", None)) or isinstance(client, type):
        raise InputError(
            f"client={shown(client)}: a dask.distributed.Client, an Executor of concurrent.futures, or another object "
            "whose submit(function, *arguments) gives a future is needed"
        )
    if type(client).__module__.partition(".")[0] == "distributed" and hasattr(client, "nthreads"):
        return DaskPool(client)
    return SubmitPool(client)


def likely_workers(client: Any) -> int:
    """How many workers a client may have, where it does not tell: this only decides how finely a job is cut."""
    for name in ("num_workers", "_max_workers"):  # mpi4py; concurrent.futures and loky
        with contextlib.suppress(Exception):
            count = getattr(client, name)
            if isinstance(count, int) and count > 0:
                return count
    return os.cpu_count() or 1


class SubmitPool:
    """Whatever has ``submit``."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def submit(self, task: Message, name: str, handed: Any = None) -> Any:
        return self._client.submit(compute, task, *([] if handed is None else [handed]))

    def result(self, future: Any, seconds: float) -> Any:
        return future.result()  # it lies here

    def workers(self) -> int | None:
        return None

    def hand_out(self, file: Path) -> Any:
        raise ClientError(
            f"the workers of client= do not see {file}: name a folder that they see, by PYEDMCL_SPOOL_DIR or as out="
        )


class DaskPool:
    """A client of dask.distributed: tasks get names for its dashboard and ask for a GPU where workers offer some."""

    def __init__(self, client: Any) -> None:
        if getattr(client, "asynchronous", False):
            raise InputError("client=: this Client is asynchronous; one whose results are waited for is needed")
        self._client = client
        self._gpus = 0

    def submit(self, task: Message, name: str, handed: Any = None) -> Any:
        more: dict[str, Any] = {"resources": {"GPU": 1}} if self._gpus else {}
        passed = [task] if handed is None else [task, handed]
        return self._client.submit(compute, *passed, key=f"pyedmcl-{name}", pure=False, **more)

    def result(self, future: Any, seconds: float) -> Any:
        return future.result(timeout=seconds)  # it may lie with a worker, and die with it

    def workers(self) -> int:
        """GPUs that workers offer as the resource of this name, else threads."""
        ask: Callable[..., Any] = self._client.scheduler_info
        try:
            workers = ask(n_workers=-1)["workers"]  # since 2025 it tells of a few otherwise
        except TypeError:
            workers = ask()["workers"]
        self._gpus = int(sum(worker.get("resources", {}).get("GPU", 0) for worker in workers.values()))
        return self._gpus or sum(worker["nthreads"] for worker in workers.values())

    def hand_out(self, file: Path) -> Any:
        """Dask takes the content to each worker once, from one to the other, and keeps it there for the job."""
        (handed,) = self._client.scatter([file.read_bytes()])
        return handed


# Tasks on the workers of a cluster: futures as they end, what their answers mean, and how long silence may last.


E = TypeVar("E", bound=PyedmclError)

#: After how many losses (workers that died, lost their connection or their device) the run gives a block up. An engine
#: may have tried it several times itself before it calls it lost: Dask does so four times.
MOST_LOSSES = 5
#: Seconds between two looks at workers that come and go.
LOOK_SECONDS = 1.0
_TELL_SECONDS = 10.0  # of silence, after which a warning says what is waited for
_FETCH_SECONDS = 10.0  # after which it is asked whether a result is still there


@contextlib.contextmanager
def cancelled(futures: dict[Any, Any]) -> Iterator[None]:
    """Have what is outstanding at the end not be computed."""
    try:
        yield
    finally:
        for future in futures.values():
            with contextlib.suppress(Exception):
                future.cancel()


class Answers:
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


class Waiting:
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


class Hello:
    """The first task: is there a worker, is its pyedmcl this one, and which devices has it?"""

    def __init__(self, pool: Pool, task: Message) -> None:
        self._pool, self._task = pool, task
        self._answers = Answers()

    def answer(self) -> Message:
        """What the first worker says."""
        waiting, lost = Waiting("no worker of client= has answered"), 0
        with cancelled(self._answers.futures):
            self._submit()
            while True:
                answered = self._answers.next(LOOK_SECONDS)
                if answered is None:
                    waiting.look()
                    continue
                try:
                    return checked(result_of(self._pool, answered[1], str))
                except UnfinishedError:
                    self._answers.add(answered[1])
                except LostError as error:
                    lost += 1
                    if lost >= MOST_LOSSES:
                        raise ClientError(f"workers of client= are lost as soon as they begin: {error}") from error
                    self._submit()

    def _submit(self) -> None:
        self._answers.add(submitted(self._pool, self._task, task_name("hello", secrets.token_hex(4)), None, str))


class LostError(Exception):
    """A task did not come back."""


class UnfinishedError(Exception):
    """A task that was finished is so no more."""


def task_name(kind: str, token: str) -> str:
    """A name for tasks, which no other job has, with a hexadecimal token.

    Dask's dashboard shows tasks as one whose names begin with the same words. The 0 keeps it from taking a token for a
    word that happens to have letters only.
    """
    return f"{kind}-0{token}"


def submitted(pool: Pool, task: Message, name: str, handed: Any, kept: Callable[[], str]) -> Any:
    try:
        return pool.submit(task, name, handed)
    except BrokenExecutor as error:
        raise _broken(error, kept) from error
    except Exception as error:
        raise ClientError(f"client= takes no more tasks: {error or type(error).__name__}{kept()}") from error


def result_of(pool: Pool, future: Any, kept: Callable[[], str]) -> Message:
    """What a worker answered."""
    seconds = _FETCH_SECONDS
    try:
        while True:
            try:
                answer: Message = pool.result(future, seconds)
                return answer
            except TimeoutError as error:
                if not future.done():
                    raise UnfinishedError from error
                seconds *= 2  # it is on its way
    except UnfinishedError:
        raise
    except BrokenExecutor as error:
        raise _broken(error, kept) from error
    except BaseException as error:
        import asyncio  # takes longer than any other import of this package, which mostly does without

        if not isinstance(error, (Exception, asyncio.CancelledError)):
            raise
        cause: BaseException | None = error
        while cause is not None:
            if "No module named 'pyedmcl" in str(cause):
                raise ClientError(f"a worker of client= has no pyedmcl; install it there ({cause}){kept()}") from error
            cause = cause.__cause__ or cause.__context__
        raise LostError(f"{type(error).__name__}: {error}") from error


def _broken(error: BrokenExecutor, kept: Callable[[], str]) -> ClientError:
    return ClientError(f"the pool of client= is broken, since a process of it ended: make a new one ({error}){kept()}")


def checked(answer: Message) -> Message:
    """The answer of a worker that has our pyedmcl."""
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


# A job at work on a cluster: which blocks its tasks get, and what becomes of the answers.


log = logging.getLogger(__name__)

# A task is made of as many blocks as take about so long: its way to a worker and back takes some 10 ms.
_TASK_SECONDS = 0.5


def add_tuning(known: dict[str, list[dict[str, Any]]], more: dict[str, list[dict[str, Any]]]) -> None:
    """Add parameters that kernels were given to those that are known."""
    for kernel, entries in more.items():
        mine = known.setdefault(kernel, [])
        for entry in entries:
            # What a worker is told of the job's parameters is "recorded" there; how good they are was said before.
            same = entry["grade"] == "recorded" and any(entry["parameters"] == one["parameters"] for one in mine)
            if entry not in mine and not same:
                mine.append(entry)


class Job:
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
            "tune": source.mode_in_force(),
        }  # fmt: skip
        self._name = task_name(type(problem).__name__.removesuffix("Problem").lower(), self._common["job"])
        self._handed: Any = None
        self._answers = Answers()
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
        waiting = Waiting("there has been no worker of client=")
        while True:
            self._fill()
            if not self.futures and not self._pause:
                return
            if not self.futures:
                time.sleep(self._pause)  # others who share the store compute what is left
                continue
            answered = self._answers.next(LOOK_SECONDS if self._seen else 0.05)
            if answered is not None:
                self._take(*answered)
            if time.monotonic() - self._looked > LOOK_SECONDS:
                self._workers, self._looked = self._pool.workers(), time.monotonic()
            if answered is not None or self._workers != 0:
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
            future = submitted(self._pool, task, f"{self._name}-{self._tasks}", self._handed, self._kept)
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
            answer = result_of(self._pool, future, self._kept)
            if "unseen" in answer:
                self._hand_out(answer)
                self._again.append(blocks)
                return
            answer = checked(answer)
        except UnfinishedError:
            self._given[self._answers.add(future)] = blocks
            self._out += self._units(blocks)
            return
        except (LostError, DeviceMemoryError, LaunchError) as error:
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
        first_info = next(iter(self.infos.values()), info)
        of_one_kind([first_info, info], self._kernels)
        self.infos.setdefault((answer["worker"], info.id), info)
        add_tuning(self.tuning, answer["tuning"])
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
            if self._losses[block.number] >= MOST_LOSSES:
                if isinstance(error, PyedmclError):
                    raise error
                raise ClientError(
                    f"block {block.number} (rows {block.begin} to {block.end}) was lost {MOST_LOSSES} times, at last "
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
            report_progress(self._done, self._problem.total, self._problem.unit)


class ClientRunner:
    """Runs jobs on the workers of a cluster engine: each computes blocks, and this process writes what they give.

    Parameters
    ----------
    client : object
        With ``submit``, see :func:`pyedmcl.jobs.client.pool_of`.
    device : str or sequence of str, optional
        What each worker opens, by the names that hold where it runs.
    """

    def __init__(self, client: Any, device: DeviceNames = None) -> None:
        if is_handle(device) or (isinstance(device, (list, tuple)) and any(map(is_handle, device))):
            raise InputError(f"device={shown(device)}: workers of client= open devices by name, such as 'gpu'")
        self._pool, self._device = pool_of(client), device
        self._begun = time.perf_counter()
        self._infos: dict[tuple[str, str], DeviceInfo] = {}  # by worker and device
        self._tuning: dict[str, list[dict[str, Any]]] = {}
        self._places: list[dict[str, Any]] = []
        self._kernels: tuple[str, ...] = ()  # of a job that is stored
        first = Hello(self._pool, {"identity": identity(), "device": device}).answer()
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
        return open_device(name[0] if isinstance(name, (list, tuple)) else name)

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
            job = Job(self._pool, problem, sink, file, self.infos[0], common, self._kernels)
            with cancelled(job.futures):
                job.work()
        for key, info in job.infos.items():
            self._infos.setdefault(key, info)
        add_tuning(self._tuning, job.tuning)
        self._places = job.places
        return job.record

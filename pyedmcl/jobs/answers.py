"""Tasks on the workers of a cluster: futures as they end, what their answers mean, and how long silence may last."""

from __future__ import annotations

import contextlib
import queue
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from typing import Any, TypeVar

from .. import config
from ..errors import ClientError, PyedmclError, warn
from .pools import Pool
from .worker import Message, identity

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
    """What a worker answered.

    Raises
    ------
    UnfinishedError
        It was lost with its worker, and the engine has the task done again: to be waited for.
    LostError
        The task may be done by another one.
    ClientError
        No worker is left, or one has no pyedmcl.
    """
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

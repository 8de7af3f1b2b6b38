"""The work of a cluster's worker: it reads a problem once, opens a device once, and computes blocks."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import pickle
import platform
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from .. import config
from ..atomic_files import PRIVATE_PREFIX, draft, temporary_name, write_failure
from ..device.info import device_key
from ..device.select import open_devices
from ..kernels.texts import sources
from ..tuning.parameters import expect, keeping, record, tunable
from .blocks import Block, BlockResult, Problem
from .runner import OpenProblem

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..device.info import DeviceInfo


# A problem as a file, from which workers of a cluster read it.


@dataclass(frozen=True)
class Spooled:
    """A file, and the SHA-256 of what it holds."""

    path: Path
    digest: str


@contextmanager
def spooled(problem: Problem, beside: Path | None) -> Iterator[Spooled]:
    """The problem in a file while the block lasts.

    Parameters
    ----------
    beside : Path or None
        A folder that workers see, such as that of the result; ``PYEDMCL_SPOOL_DIR`` comes first, and where there is
        neither, this machine's folder for temporary files.
    """
    named = config.current().spool_dir
    private = None
    try:
        if named is not None or beside is None:
            private = Path(tempfile.mkdtemp(prefix=f"{PRIVATE_PREFIX}spool-", dir=named))
        folder = beside if private is None else private
        assert folder is not None
        written = _write(problem, folder)
    except OSError as error:
        _remove(private, None)
        place = named or beside or tempfile.gettempdir()
        raise write_failure(
            f"the problem for the workers of client= cannot be written to {place}", ", or set PYEDMCL_SPOOL_DIR", error
        ) from error
    try:
        yield written
    finally:
        _remove(private, written.path)


def _write(problem: Problem, folder: Path) -> Spooled:
    # A name of its own: each of several who share the folder removes what it has written, and nothing else. What a
    # killed run has left is removed with other temporary files.
    path = folder / temporary_name("spool")
    with draft(path) as handle:
        summed = _Summed(handle)
        pickle.Pickler(summed, protocol=5).dump(problem)
    return Spooled(path.absolute(), summed.digest.hexdigest())


class _Summed:
    """A file that is summed while it is written."""

    def __init__(self, handle: IO[bytes]) -> None:
        self._handle, self.digest = handle, hashlib.sha256()

    def write(self, data: Any) -> int:
        self.digest.update(data)
        return self._handle.write(data)


def _remove(own: Path | None, file: Path | None) -> None:
    with contextlib.suppress(OSError):
        if own is not None:
            shutil.rmtree(own)
        elif file is not None:
            file.unlink()


# What is sent to and fro is made of plain containers, so that a worker with another pyedmcl can still say so. Only
# results are objects.


Message = dict[str, Any]

# An idle worker gives its device's memory back: other programs may want it.
_IDLE_SECONDS = 60.0


class _UnseenError(Exception):
    """The file of a problem is not to be seen from here."""


@functools.cache
def identity() -> dict[str, str]:
    """What must be the same where a job is cut and where its blocks are computed."""
    from .. import __version__

    digest = hashlib.sha256()
    for file in sources():
        digest.update(file.name.encode() + hashlib.sha256(file.read_bytes()).digest())
    return {
        "version of pyedmcl": __version__,
        "source of pyedmcl": digest.hexdigest()[:16],
        "version of Python": ".".join(platform.python_version_tuple()[:2]),
        "major version of NumPy": np.__version__.partition(".")[0],
    }


def kind_of(info: DeviceInfo) -> str:
    """What is equal for devices that take the same tuned parameters."""
    return hashlib.sha256(json.dumps(device_key(info).as_dict(), sort_keys=True).encode()).hexdigest()[:16]


def compute(task: Message, handed: bytes | None = None) -> Message:
    """Do what a task says; nothing is raised, so that whatever an engine of clusters raises is its own trouble.

    Parameters
    ----------
    task : dict
        ``identity`` of the sender and ``device``. With ``problem`` (a digest) also ``path``, ``job``, ``blocks``,
        ``tune`` and ``answers`` (tuned parameters of the job, by the kind of device); without it, only the device is
        opened.
    handed : bytes, optional
        The problem itself, where the file at ``path`` may not be visible.

    Returns
    -------
    dict
        ``worker``, and one of

        * ``refused``: this worker's identity, which is another one,
        * ``unseen``: why the problem cannot be read,
        * ``failure``: an exception,
        * ``devices``: those that were opened,
        * ``results`` of the blocks, ``seconds`` that they took, ``device``, new ``answers`` for its kind, ``tuning``.
    """
    sender: Message = {"worker": f"{socket.gethostname()}:{os.getpid()}"}
    if task["identity"] != identity():
        return {**sender, "refused": identity()}
    try:
        executors = open_devices(task["device"])
        if "problem" not in task:
            return {**sender, "devices": [executor.info for executor in executors]}
        problem = _process.problems.get(task["problem"], task["path"], handed)
        with _process.places.borrowed(executors, task["job"], problem) as place:
            return {**sender, **place.work(task)}
    except _UnseenError as error:
        return {**sender, "unseen": str(error)}
    except Exception as error:
        return {**sender, "failure": _portable(error)}


def _portable(error: Exception) -> Exception:
    """The same error if it can be pickled, else one that says it."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


class _Problems:
    """The problem that this process works on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._digest, self._problem = "", None

    def get(self, digest: str, path: str, handed: bytes | None) -> Problem:
        """The problem whose pickle has this digest."""
        with self._lock:
            if self._digest != digest:
                held = _read(path) if handed is None else handed
                if hashlib.sha256(held).hexdigest() != digest:
                    raise _UnseenError(f"{path} holds something else")
                self._problem, self._digest = pickle.loads(held), digest
            problem: Any = self._problem
            return problem  # type: ignore[no-any-return]


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise _UnseenError(f"{path}: {error.strerror or error}") from error


class _Answers(dict[str, dict[str, Any]]):
    """Tuned parameters that a job has settled on. What is answered beyond them is kept apart, with its own grade."""

    def __init__(self, settled: Message) -> None:
        super().__init__(settled)
        self.new: dict[str, dict[str, Any]] = {}

    def __setitem__(self, question: str, answer: dict[str, Any]) -> None:
        if question not in self:
            self.new[question] = answer


class _Place:
    """A device of this process, and the problem that is open on it for a job."""

    def __init__(self, executor: Executor, job: str, problem: Problem) -> None:
        self.executor, self.job = executor, job
        self._problem = problem
        self._opened = OpenProblem(problem, executor)
        self._answers = _Answers({})

    def work(self, task: Message) -> Message:
        """Compute the blocks of a task."""
        settled: dict[str, dict[str, Any]] = task["answers"].get(kind_of(self.executor.info), {})
        answers = {**self._answers, **self._answers.new}
        if any(answers.get(question, answer) != answer for question, answer in settled.items()):
            self.release()  # the job has settled on others than this engine was opened with
            answers = {}
        self._answers = _Answers({**answers, **settled})
        begun = time.perf_counter()
        results, tuning = _blocks(self._problem, self, [Block(*block) for block in task["blocks"]], tune=task["tune"])
        every = {**self._answers, **self._answers.new}
        new = {question: dict(answer) for question, answer in every.items() if question not in settled}
        return {
            "results": results, "seconds": time.perf_counter() - begun, "device": self.executor.info, "answers": new,
            "tuning": tuning,
        }  # fmt: skip

    def compute(self, blocks: list[Block]) -> list[BlockResult]:
        try:
            with keeping(self._answers):
                return [self._opened.block(block, None, lambda done: None) for block in blocks]
        except BaseException:
            self.release()  # for the next trial, which may have other parameters
            raise

    def release(self) -> None:
        """Give the device memory back; the next block opens the problem again."""
        self._opened.release()


@tunable
def _blocks(problem: Problem, place: _Place, blocks: list[Block], *, tune: str) -> tuple[list[BlockResult], Message]:
    """What blocks give, and the parameters that kernels were given."""
    expect(problem.operations, place.executor.info)
    return place.compute(blocks), record()


class _Places:
    """The devices of this process; each is used by one thread at a time."""

    def __init__(self) -> None:
        self._free = threading.Condition()
        self._busy: set[str] = set()
        self._places: dict[str, _Place] = {}
        self._timers: dict[str, threading.Timer] = {}

    @contextmanager
    def borrowed(self, executors: list[Executor], job: str, problem: Problem) -> Iterator[_Place]:
        """A device that is free now, or the first that becomes free, with the problem open on it."""
        with self._free:
            while not (free := [executor for executor in executors if executor.info.id not in self._busy]):
                self._free.wait()
            executor = free[0]
            device = executor.info.id
            self._busy.add(device)
            timer = self._timers.pop(device, None)
            if timer is not None:
                timer.cancel()
        try:
            place = self._places.get(device)
            if place is None or place.job != job:
                if place is not None:
                    place.release()
                place = self._places[device] = _Place(executor, job, problem)
            yield place
        finally:
            with self._free:
                self._busy.discard(device)
                timer = self._timers[device] = threading.Timer(_IDLE_SECONDS, self._rest, [device])
                timer.daemon = True
                timer.start()
                self._free.notify()

    def _rest(self, device: str) -> None:
        """Give back what nobody has used for a while."""
        with self._free:
            if device not in self._busy and device in self._places:
                self._places.pop(device).release()


class _Process:
    """What this process holds between tasks."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Forget what a forked process has from its parent: locks that nobody would give back, and devices that it must
        not use."""
        self.problems, self.places = _Problems(), _Places()


_process = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.begin)

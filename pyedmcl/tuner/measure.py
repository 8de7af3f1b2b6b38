"""One configuration on one device, in a process of its own: compile it, run it, time it, verify it."""

from __future__ import annotations

import faulthandler
import hashlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .. import config
from ..errors import DeviceMemoryError, MissingExtraError, PyedmclError
from ..tuning.parameters import source
from ..tuning.records import TuningKey, canonical
from .problem import Answer, TuningCase, TuningProblem, WrongAnswerError, require_same
from .problems import problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..device.executor import Argument, Buffer, Event, Executor, Kernel


# Executors for a tuner: one that keeps the events of launches, one that only compiles.


class Recorder:
    """Passes everything on and keeps the events of launches."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.events: list[tuple[str, Event]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.executor, name)

    def launch(
        self, kernel: Kernel, global_size: Sequence[int], local_size: Sequence[int] | None, /, **arguments: Argument
    ) -> Event:
        event = self.executor.launch(kernel, global_size, local_size, **arguments)
        self.events.append((kernel.name, event))
        return event

    def seconds(self, entries: Sequence[str]) -> float:
        """Time on the device of the launches of these kernels; waits for them."""
        return sum(event.seconds for name, event in self.events if name in entries)


class _NoEvent:
    """Stands for a launch that did not take place."""

    seconds = 0.0

    def wait(self) -> None:
        pass


class Dry(Recorder):
    """Compiles but launches nothing; downloads give zeros."""

    def download(self, buffer: Buffer, into: np.ndarray[Any, Any], offset: int = 0) -> np.ndarray[Any, Any]:
        into[...] = np.zeros((), into.dtype)
        return into

    def launch(
        self, kernel: Kernel, global_size: Sequence[int], local_size: Sequence[int] | None, /, **arguments: Argument
    ) -> Event:
        return _NoEvent()


# A figure is made of this many seconds on the device, or of this many runs.
_SECONDS_ENOUGH = 0.02
_RUNS_MOST = 5
_NOTE_MOST = 2000

Parameters = Mapping[str, Any] | None


@dataclass(frozen=True)
class TrialQuestion:
    """What an engine asked for, in types that can be sent to another process."""

    specialisation: Mapping[str, Any]
    sizes: Mapping[str, int]
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Reply:
    """How a request about one configuration ended."""

    # "ok", "wrong", "failed" or "hung"; "stopped" where time was up through no fault of the configuration.
    status: str
    # On the device.
    seconds: tuple[float, ...] = ()
    # Seconds that the whole request took.
    wall: float = 0.0
    note: str = ""
    # What the engine asked for the kernel's parameters.
    asked: tuple[TrialQuestion, ...] = ()


class Bench:
    """A :class:`~pyedmcl.tuner.measure.Backend` on an executor of this process, over which nothing watches.

    Parameters
    ----------
    folder : pathlib.Path, optional
        Where verified answers are kept for other processes on the same device.
    """

    def __init__(self, executor: Executor, folder: Path | None = None) -> None:
        self.executor = executor
        self._folder = folder
        self._references: dict[str, Answer] = {}
        self._answers: dict[tuple[str, str], Answer] = {}

    def describe(self, case: TuningCase, parameters: Parameters) -> Reply:
        def dry(tuned: TuningProblem) -> Reply:
            with source.watching() as questions, tuned.open(Dry(self.executor), case) as go:
                go()
            asked = tuple(
                TrialQuestion(dict(q.specialisation), dict(q.sizes), dict(q.choice.parameters))
                for q in questions.values()
                if q.spec.name == case.kernel
            )
            return Reply("ok", asked=asked)

        return self._guarded(case, parameters, dry)

    def prepare(self, case: TuningCase, configurations: Sequence[Parameters]) -> list[Reply]:
        return [self.describe(case, parameters) for parameters in configurations]

    def attempt(self, case: TuningCase, parameters: Parameters) -> Reply:
        def first(tuned: TuningProblem) -> Reply:
            recorder = Recorder(self.executor)
            with tuned.open(recorder, case) as go:
                answer = {name: np.array(values) for name, values in go().items()}
                seconds = recorder.seconds(tuned.timed())
            reference = self._reference(case)
            if reference is None:
                self._answers = {_place(case, parameters): answer}
            else:
                require_same(answer, reference, tuned.tolerance)
            return Reply("ok", (seconds,))

        return self._guarded(case, parameters, first)

    def sample(self, case: TuningCase, parameters: Parameters, *, together: bool = False) -> Reply:
        return self._guarded(case, parameters, lambda tuned: Reply("ok", (figure(self.executor, tuned, case),)))

    def verify(self, case: TuningCase, parameters: Parameters) -> Reply:
        def check(tuned: TuningProblem) -> Reply:
            tuned.verify(self.executor, case)
            answer = self._answers.pop(_place(case, parameters), None)
            if answer is not None and self._reference(case) is None:
                self._keep(case, answer)
            return Reply("ok")

        return self._guarded(case, parameters, check)

    def _guarded(self, case: TuningCase, parameters: Parameters, work: Callable[[TuningProblem], Reply]) -> Reply:
        begun = time.perf_counter()
        try:
            with chosen(case.kernel, parameters):
                reply = work(problem(case.kernel))
        except WrongAnswerError as error:
            reply = Reply("wrong", note=_note(error))
        except (MissingExtraError, DeviceMemoryError) as error:  # nothing is wrong with the configuration
            reply = Reply("stopped", note=_note(error))
        except Exception as error:  # whatever a configuration does must not end the tuning
            reply = Reply("failed", note=_note(error))
        return replace(reply, wall=time.perf_counter() - begun)

    def _reference(self, case: TuningCase) -> Answer | None:
        text = case.text()
        if text not in self._references and self._folder is not None:
            path = self._folder / _file(text)
            if path.exists():
                with np.load(path, allow_pickle=False) as stored:
                    self._references[text] = {name: stored[name] for name in stored.files}
        return self._references.get(text)

    def _keep(self, case: TuningCase, answer: Answer) -> None:
        text = case.text()
        self._references[text] = answer
        if self._folder is not None:
            path = self._folder / _file(text)
            unfinished = path.with_suffix(".tmp.npz")
            arrays: Any = dict(answer)
            np.savez(unfinished, **arrays)
            unfinished.replace(path)


def figure(executor: Executor, tuned: TuningProblem, case: TuningCase) -> float:
    """Seconds on the device of a kernel's launches: the mean of some runs after one that does not count."""
    recorder = Recorder(executor)
    total, runs = 0.0, 0
    with tuned.open(recorder, case) as go:
        go()
        executor.finish()
        while total < _SECONDS_ENOUGH and runs < _RUNS_MOST:
            recorder.events.clear()
            begun = time.perf_counter()
            go()
            executor.finish()
            wall = time.perf_counter() - begun
            # Some drivers report no time.
            total += recorder.seconds(tuned.timed()) or wall
            runs += 1
    return total / runs


@contextmanager
def chosen(kernel: str, parameters: Parameters) -> Iterator[None]:
    """Within the block, a kernel takes these parameters, or the defaults for None; others take their defaults."""
    forced = {} if parameters is None else {kernel: parameters}
    with source.mode("never"), source.using(**forced):
        yield


def _place(case: TuningCase, parameters: Parameters) -> tuple[str, str]:
    return case.text(), repr(None if parameters is None else sorted(parameters.items()))


def _file(text: str) -> str:
    return f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.npz"


def _note(error: Exception) -> str:
    text = str(error) if str(error) else repr(error)
    return f"{type(error).__name__}: {text}"[:_NOTE_MOST]


# What goes into a tuning and what comes out of it.


class Backend(Protocol):
    """Who tries configurations; None stands for the defaults."""

    def describe(self, case: TuningCase, parameters: Parameters) -> Reply:
        """What the engine asks for in this case; compiles it, and launches nothing."""

    def prepare(self, case: TuningCase, configurations: Sequence[Parameters]) -> list[Reply]:
        """Compile all that the case needs, for each configuration."""

    def attempt(self, case: TuningCase, parameters: Parameters) -> Reply:
        """The first run, whose answer is compared with that of a verified configuration where there is one."""

    def verify(self, case: TuningCase, parameters: Parameters) -> Reply:
        """Ragged problems against the oracle; the first that passes gives the answer that others must give too."""

    def sample(self, case: TuningCase, parameters: Parameters, *, together: bool = False) -> Reply:
        """One figure: the mean of some runs after one that does not count; ``together``: all in one process."""


@dataclass(frozen=True)
class Settings:
    """How to search."""

    # One of :data:`pyedmcl.tuner.search.STRATEGIES`.
    strategy: str = "greedy"
    seed: int = 0
    # Figures per configuration that is not given up.
    rounds: int = 3
    # Figures each when the best ones are compared with the defaults at the end.
    duel: int = 7
    # Configurations compiled at the same time and timed in the same rounds.
    batch: int = 8
    # Whether times of earlier tunings on the same problem count.
    resume: bool = True


@dataclass
class Standing:
    """How the tuning of a case stands; once its phase is "done", how it ended."""

    case: TuningCase
    phase: str = "starting"
    # By status: "ok", "slow", "failed", "wrong", "hung", and "known" for those of earlier tunings.
    counts: Counter[str] = field(default_factory=Counter)
    # list of (mapping, str, str). Parameters, status and reason of what cannot be used.
    trouble: list[tuple[Mapping[str, Any], str, str]] = field(default_factory=list)
    # default_seconds, seconds: Of the defaults and of the best, at the end medians of the last comparison; 0 while
    # unknown.
    default_seconds: float = 0.0
    seconds: float = 0.0
    # What is used from now on.
    parameters: Mapping[str, Any] = field(default_factory=dict)
    # Whether these beat the defaults. Else they are the defaults.
    kept: bool = False
    # Under which the outcome is stored; None where nothing was decided, so that nothing is stored.
    key: TuningKey | None = None
    note: str = ""

    @property
    def tried(self) -> int:
        return sum(count for status, count in self.counts.items() if status != "known")

    @property
    def done(self) -> bool:
        return self.phase == "done"

    @property
    def gain(self) -> float:
        """How many times faster than the defaults what is kept is; before the end, what is best so far."""
        return self.default_seconds / self.seconds if self.seconds > 0 and (self.kept or not self.done) else 1.0


# Configurations are tried in processes of their own, so that one that crashes or hangs takes nothing with it.
#
# Several processes compile at the same time; only one is asked to run something at any moment. The parent watches: who
# does not answer in time is killed and replaced.


START_SECONDS = 60.0
_ORPHAN_SECONDS = 30.0
_POLL_SECONDS = 0.2
_TAIL = 600


class _Worker:
    """One child process. Requests and replies are pickled, one after the other."""

    def __init__(self, command: Sequence[str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed with the worker
        # In a session of its own, Ctrl-C reaches the parent only, which then ends the children in order.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, start_new_session=True,
            env=config.child_environment(),
        )  # fmt: skip
        self._replies: queue.Queue[Reply | None] = queue.Queue()
        self.prepared: set[str] = set()
        self.answered = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            while True:
                self._replies.put(pickle.load(self._process.stdout))
        except (EOFError, pickle.UnpicklingError):  # it ended, perhaps within an answer
            self._replies.put(None)

    def send(self, request: dict[str, Any] | None) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(pickle.dumps(request))
            self._process.stdin.flush()
        except OSError:
            pass  # it is gone: the reply will say so

    def reply(self, seconds: float) -> Reply | None:
        """The reply to the request, a "failed" one if the process ended; None after ``seconds``."""
        try:
            reply = self._replies.get(timeout=max(seconds, 0.0))
        except queue.Empty:
            return None
        self.answered = self.answered or reply is not None
        return reply or Reply("failed", note=self._obituary())

    @property
    def gone(self) -> bool:
        return self._process.poll() is not None

    def _obituary(self) -> str:
        code = self._process.wait()
        try:
            how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        except ValueError:
            how = f"ended with code {code}"
        try:
            size = self._errors.seek(0, os.SEEK_END)
            self._errors.seek(max(size - _TAIL, 0))
            said = self._errors.read().decode(errors="replace").strip()
        except (OSError, ValueError):
            said = ""
        return f"the process {how}" + (f": {said}" if said else "")

    def end(self, *, kill: bool = False) -> None:
        """Let the process end, or end it."""
        assert self._process.stdin is not None
        if not kill:
            self.send(None)  # else it would think that we were killed
            try:
                self._process.stdin.close()
                self._process.wait(2.0)
            except (OSError, subprocess.TimeoutExpired):
                pass
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._errors.close()


class Workers:
    """A :class:`~pyedmcl.tuner.measure.Backend` of several processes on one device, for the length of a ``with`` block.

    Parameters
    ----------
    command : sequence of str
        What to start; it must call :func:`serve`. The device and a folder are added as arguments.
    device : str
        Which device, as for :func:`pyedmcl.device.select.select`.
    count : int
        Processes.
    compile_seconds, run_seconds : float
        Who takes longer is hanging.

    Attributes
    ----------
    until : float
        Moment (of ``time.monotonic``) from which on requests are stopped.
    """

    def __init__(
        self, command: Sequence[str], device: str, *, count: int, compile_seconds: float, run_seconds: float
    ) -> None:
        self.compile_seconds, self.run_seconds, self.until = compile_seconds, run_seconds, float("inf")
        self._folder = tempfile.TemporaryDirectory(prefix="pyedmcl-tune-")
        self._command = [*command, device, self._folder.name]
        self._workers: list[_Worker | None] = [None] * max(count, 1)
        self._home: dict[str, int] = {}  # configuration to the process that has compiled it

    def __enter__(self) -> Workers:
        for place in range(len(self._workers)):  # the later ones get ready while the first works
            self._ready(place)
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """End all processes; after an error at once, whatever they do."""
        for worker in self._workers:
            if worker is not None:
                worker.end(kill=kind is not None)
        self._folder.cleanup()

    def describe(self, case: TuningCase, parameters: Parameters) -> Reply:
        return self._one("describe", case, parameters)

    def prepare(self, case: TuningCase, configurations: Sequence[Parameters]) -> list[Reply]:
        return self._ask("prepare", case, configurations, range(len(self._workers)))

    def attempt(self, case: TuningCase, parameters: Parameters) -> Reply:
        return self._one("attempt", case, parameters)

    def verify(self, case: TuningCase, parameters: Parameters) -> Reply:
        return self._one("verify", case, parameters)

    def sample(self, case: TuningCase, parameters: Parameters, *, together: bool = False) -> Reply:
        return self._ask("sample", case, [parameters], [0])[0] if together else self._one("sample", case, parameters)

    def _one(self, do: str, case: TuningCase, parameters: Parameters) -> Reply:
        return self._ask(do, case, [parameters], [self._home.get(_name(case, parameters), 0)])[0]

    def _ask(
        self, do: str, case: TuningCase, configurations: Sequence[Parameters], places: Sequence[int]
    ) -> list[Reply]:
        """Replies to a request about each configuration, from whichever of the processes at ``places`` is free."""
        waiting = deque(enumerate(configurations))
        replies: dict[int, Reply] = {}
        busy: dict[int, tuple[int, float]] = {}
        while waiting or busy:
            for place in places:
                if waiting and place not in busy:
                    number, parameters = waiting.popleft()
                    if do == "prepare":
                        self._home[_name(case, parameters)] = place
                    busy[place] = number, self._send(place, do, case, parameters)
            for place, (number, limit) in list(busy.items()):
                pause = 0.0 if len(busy) > 1 else _POLL_SECONDS
                reply = self._take(place, limit, min(pause, max(limit - time.monotonic(), 0.0)))
                if reply is not None:
                    replies[number] = reply
                    del busy[place]
                    if reply.status == "ok":
                        self._ready(place).prepared.add(_name(case, configurations[number]))
            if len(busy) > 1:
                time.sleep(0.005)
        return [replies[number] for number in range(len(configurations))]

    def _ready(self, place: int) -> _Worker:
        worker = self._workers[place]
        if worker is None or worker.gone:
            if worker is not None:
                worker.end(kill=True)
            worker = self._workers[place] = _Worker(self._command)
        return worker

    def _send(self, place: int, do: str, case: TuningCase, parameters: Parameters) -> float:
        """Send a request; returns the moment at which its process is hanging."""
        worker = self._ready(place)
        seconds = self.run_seconds if do in ("attempt", "sample", "verify") else 0.0
        # Who has not compiled it yet (a replaced process, other shapes) does so first.
        if do in ("prepare", "describe", "verify") or _name(case, parameters) not in worker.prepared:
            seconds += self.compile_seconds
        if do == "verify":  # it compiles and runs several problems
            seconds *= 3.0
        seconds += 0.0 if worker.answered else START_SECONDS
        worker.send({"do": do, "case": case, "parameters": parameters, "seconds": seconds + _ORPHAN_SECONDS})
        return time.monotonic() + seconds

    def _take(self, place: int, limit: float, seconds: float) -> Reply | None:
        """A reply that is there within ``seconds``; a killed one's where it is late; else None."""
        worker = self._workers[place]
        assert worker is not None
        reply = worker.reply(seconds)
        if reply is None:
            now = time.monotonic()
            if now < min(limit, self.until):
                return None
            hung = Reply("hung", note="no answer in time: its process was ended")
            reply = hung if now >= limit else Reply("stopped", note="the time was up")
            worker.end(kill=True)
            self._workers[place] = None
        elif worker.gone:
            self._workers[place] = None
        return reply


def _name(case: TuningCase, parameters: Parameters) -> str:
    return f"{case.text()} {'default' if parameters is None else canonical(parameters)}"


def serve(make: Callable[[], Bench]) -> bool:
    """Answer requests until there are no more; what a child process does. Whether it was told that this is the end.

    Whatever else is written to standard output goes to standard error.

    Parameters
    ----------
    make : Callable
        Opens the device; called before the first request is answered.
    """
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # drivers print
    bench: Bench | None = None
    failure = ""
    while True:
        try:
            request = pickle.load(sys.stdin.buffer)
        except (EOFError, pickle.UnpicklingError):
            return False
        if request is None:
            return True
        # Should the parent be gone, nobody else would end a process that hangs.
        faulthandler.dump_traceback_later(request["seconds"], exit=True)
        if bench is None and not failure:
            try:
                bench = make()
            except PyedmclError as error:
                failure = str(error)
        if bench is None:
            reply = Reply("failed", note=failure)
        else:
            do, case, parameters = request["do"], request["case"], request["parameters"]
            reply = bench.prepare(case, [parameters])[0] if do == "prepare" else getattr(bench, do)(case, parameters)
        faulthandler.cancel_dump_traceback_later()
        replies.write(pickle.dumps(reply))
        replies.flush()


# The last comparison of a tuning: the best configurations and the defaults, in one process, round by round.


_ROUNDS_LEAST = 3
#: Part of a time that is noise: so much of the defaults' time must be gained at least.
MARGIN = 0.01


def compare(
    figure: Callable[[str], Reply], names: Sequence[str], rounds: int, late: Callable[[], bool]
) -> dict[str, list[float]]:
    """Seconds of each in the same rounds, each of which begins with another one; who fails is out.

    Parameters
    ----------
    figure : callable
        Runs the configuration of a name.
    late : callable
        Whether the time is up; some rounds are run all the same.
    """
    times: dict[str, list[float]] = {name: [] for name in names}
    for number in range(max(rounds, _ROUNDS_LEAST)):
        if not times or (number >= _ROUNDS_LEAST and late()):
            break
        left = list(times)
        first = number % len(left)
        for name in left[first:] + left[:first]:
            reply = figure(name)
            if reply.status == "ok":
                times[name] += reply.seconds
            else:
                del times[name]
    return times


def winner(
    times: Mapping[str, Sequence[float]], default: str, margin: float = MARGIN, changes: Mapping[str, int] | None = None
) -> str | None:
    """The first of :func:`by_speed` that beats the defaults by more than noise, or None: the defaults stay.

    Parameters
    ----------
    times : mapping
        Name to the seconds of each round.
    default : str
        Which are the defaults' times.
    margin : float
        Part of the defaults' time that must be gained, in the median; three rounds of four must be won, too.
    changes : mapping, optional
        Name to the number of parameters that are not the defaults.
    """
    if not times.get(default):
        return None
    faster: dict[str, float] = {}
    for name in times:
        ratios = sorted(mine / other for mine, other in zip(times[name], times[default], strict=False))
        if name != default and ratios and median(ratios) < 1.0 - margin and ratios[3 * len(ratios) // 4] < 1.0:
            faster[name] = median(times[name])
    return next(iter(by_speed(faster, changes or {}, margin)), None)


def by_speed(seconds: Mapping[str, float], changes: Mapping[str, int], margin: float = MARGIN) -> list[str]:
    """Names, the fastest first; those that are as fast as the fastest one, but for noise, by how little they change.

    A parameter that makes no difference here may make one for a problem of another size, which gets the same
    parameters.

    Parameters
    ----------
    changes : mapping
        Name to the number of parameters that are not the defaults.
    margin : float
        Part of a time that is noise.
    """
    as_fast = (1.0 + margin) * min(seconds.values(), default=0.0)
    return sorted(seconds, key=lambda name: (max(seconds[name], as_fast), changes.get(name, 0), seconds[name]))

"""One configuration on one device of this process: compile it, run it, time it, verify it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DeviceMemoryError, MissingExtraError
from ..tuning.parameters import source
from .executors import Dry, Recorder
from .problem import Answer, TuningCase, TuningProblem
from .problems import problem
from .verify import WrongAnswerError, require_same

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..device.executor import Executor

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
    """How a request about one configuration ended.

    Attributes
    ----------
    status : str
        "ok", "wrong", "failed" or "hung"; "stopped" where time was up through no fault of the configuration.
    seconds : tuple of float
        On the device.
    wall : float
        Seconds that the whole request took.
    note : str
    asked : tuple of TrialQuestion
        What the engine asked for the kernel's parameters.
    """

    status: str
    seconds: tuple[float, ...] = ()
    wall: float = 0.0
    note: str = ""
    asked: tuple[TrialQuestion, ...] = ()


class Bench:
    """A :class:`~pyedmcl.tuner.outcome.Backend` on an executor of this process, over which nothing watches.

    Parameters
    ----------
    executor : Executor
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

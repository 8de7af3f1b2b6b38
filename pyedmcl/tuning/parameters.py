"""Which parameters a launch uses and how well they are known; tuning within a call, and a second chance where a device
refuses.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import logging
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, MutableMapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, ParamSpec, TypeVar

from .. import config
from ..device.info import DeviceInfo
from ..device.memory import host_refusal, memory_share
from ..device.quirks import quirks_for
from ..errors import (
    BuildError,
    DeviceMemoryError,
    InputError,
    Interrupted,
    LaunchError,
    PyedmclError,
    StoreError,
    shown,
)
from ..kernels.kernel_spec import KernelSpec
from . import defaults
from .knowledge import Knowledge
from .records import Entry, TuningKey, canonical, tuning_key

# A question for a kernel's parameters, and its answer.


#: A question as text (kernel, specialisation, sizes) to the parameters that answered it; JSON can hold it.
Answers = MutableMapping[str, dict[str, Any]]


@dataclass(frozen=True)
class ParameterChoice:
    """Tuned parameters."""

    parameters: Mapping[str, Any]
    # How well they are known: one of :data:`pyedmcl.tuning.records.GRADES`.
    grade: str
    # Which question they answer, and in which way it was asked, for
    # :meth:`pyedmcl.tuning.parameters.ParameterSource.adjusted`.
    cache_key: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class ParameterQuestion:
    """What was asked for, and the answer."""

    spec: KernelSpec
    # specialisation, sizes: See :meth:`pyedmcl.tuning.parameters.ParameterSource.parameters`.
    specialisation: Mapping[str, Any]
    info: DeviceInfo
    sizes: Mapping[str, int]
    choice: ParameterChoice
    # What engines changed of the answer: ``{"why": ..., "parameters": {...}}``, those that differ.
    adjusted: tuple[Mapping[str, Any], ...] = ()

    def key(self) -> TuningKey:
        """What the answer was looked up by."""
        return tuning_key(self.spec, self.specialisation, self.info, self.sizes)

    def text(self) -> str:
        """The question for :data:`Answers`."""
        return canonical({"kernel": self.spec.name, "specialisation": self.specialisation, "sizes": self.sizes})

    def answered(self, parameters: Mapping[str, Any], grade: str) -> ParameterQuestion:
        """The same question with this answer."""
        return replace(self, choice=ParameterChoice(parameters, grade, self.choice.cache_key))

    def record(self) -> dict[str, Any]:
        """The answer as plain data: its grade, its parameters and, where an engine adjusted them, what and why."""
        record: dict[str, Any] = {"grade": self.choice.grade, "parameters": dict(self.choice.parameters)}
        if self.adjusted:
            record["adjusted"] = [dict(change) for change in self.adjusted]
        return record


def checked_mode(tune: object) -> str:
    """``tune`` if it is a mode. Raises InputError."""
    if not isinstance(tune, str) or tune not in config.TUNE_MODES:
        modes = ", ".join(map(repr, config.TUNE_MODES))
        raise InputError(f"tune={shown(tune)}: {modes} or None (PYEDMCL_TUNE) is needed")
    return tune


def frozen(values: Mapping[str, Any]) -> Any:
    """Values as a key."""
    items = tuple(values.items())
    try:
        hash(items)
    except TypeError:
        return tuple((name, repr(value)) for name, value in items)
    return items


# Tuning and verifying kernels within a public function at work: whether it pays, and who does it.
#
# The tuner lies above this package, so that it is found by name.


#: Tunes a kernel within this process: gets spec, specialisation, device, sizes and a budget in seconds, and records
#: trials in the database.
Tuner = Callable[[KernelSpec, Mapping[str, Any], DeviceInfo, Mapping[str, int], float], None]
#: Verifies parameters of a kernel: gets spec, specialisation, device, sizes and the parameters, and gives how it ended
#: and why, as :meth:`.knowledge.Knowledge.check` wants it.
Verifier = Callable[[KernelSpec, Mapping[str, Any], DeviceInfo, Mapping[str, int], Mapping[str, Any]], tuple[str, str]]
#: Says something once in a process: a level of ``logging`` and the words.
Tell = Callable[[int, str], None]

_TUNING = "pyedmcl.tuner.campaign"
_AUTO_LEAST_SECONDS = 60.0  # a gain of a third pays for a budget of a tenth many times over
_AUTO_SHARE = 0.1
_AUTO_MOST_SECONDS = 60.0
_FORCE_SECONDS = 10.0
_LEAST_SECONDS = 1.0
_KNOWN_WELL = ("exact", "other driver", "shipped")
_NOT_POSSIBLE = (PyedmclError, OSError, ImportError, AttributeError)


@dataclass
class Call:
    """A public function at work: its mode, the seconds it is expected to take, those spent on tuning."""

    mode: str
    expected: float = 0.0
    spent: float = 0.0

    def budget(self) -> float:
        """Seconds for one more tuning: half of what is left, since other kernels follow."""
        if self.mode == "force":
            return _FORCE_SECONDS
        return (min(_AUTO_SHARE * self.expected, _AUTO_MOST_SECONDS) - self.spent) / 2

    def repays(self, question: ParameterQuestion) -> bool:
        """Whether to tune for a question before it is answered."""
        if self.mode not in ("auto", "force") or not question.spec.tunables:
            return False
        if self.mode == "force":
            return True
        return (
            question.choice.grade not in _KNOWN_WELL
            and self.expected >= _AUTO_LEAST_SECONDS
            and self.budget() >= _LEAST_SECONDS
        )


def tune(question: ParameterQuestion, call: Call, tuner: Tuner | None, tell: Tell) -> None:
    """Tune for a question; where that fails, it is told, and the work goes on with what is known."""
    spec, budget, begun = question.spec, call.budget(), time.monotonic()
    tell(logging.INFO, f"tuning {spec.name} on {question.info.name} for at most {budget:.0f} s")
    try:
        (tuner or _tuning("tune_at_work"))(spec, question.specialisation, question.info, question.sizes, budget)
    except Interrupted:
        raise
    except _NOT_POSSIBLE as error:
        tell(logging.WARNING, f"{spec.name} could not be tuned: {error}")
    finally:
        call.spent += time.monotonic() - begun


def verified(
    question: ParameterQuestion, entry: Entry, knowledge: Knowledge, verifier: Verifier | None, tell: Tell
) -> bool:
    """Whether parameters that were found elsewhere give right answers on the question's device."""

    def verify() -> tuple[str, str]:
        problem = question.spec, question.specialisation, question.info, question.sizes
        status, why = (verifier or _tuning("verify_at_work"))(*problem, entry.parameters)
        return status, why

    name = f"parameters of {question.spec.name} that were found with another driver or device"
    tell(logging.INFO, f"{name} are verified on {question.info.name} before their first use")
    try:
        return knowledge.check(question.key(), entry.parameters, verify)
    except _NOT_POSSIBLE as error:
        tell(logging.WARNING, f"{name} could not be verified: {error}")
        return False


def _tuning(name: str) -> Any:
    return getattr(importlib.import_module(_TUNING), name)


# Engines ask :func:`parameters` for every kernel they build, and say by :func:`adjusted` where they change the answer.
# Public functions get their ``tune=`` from :func:`pyedmcl.tuning.parameters.tunable`. The functions of this module are
# those of :data:`source`.


__all__ = [
    "Answers", "ParameterChoice", "ParameterQuestion", "ParameterSource", "adjusted", "expect", "keeping", "mode",
    "parameters", "record", "source", "using", "watching",
]  # fmt: skip

log = logging.getLogger(__name__)

_KEPT_MOST = 8192
# Counts how often all answers were dropped, and never begins again. It is part of a footing, since the version of the
# knowledge may be the same as before, or begin at 0 again.
_generations = itertools.count()


@dataclass(frozen=True)
class _Surroundings:
    """What the ``with`` statements around a question have set."""

    call: Call | None = None
    forced: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    watchers: tuple[dict[Any, ParameterQuestion], ...] = ()
    answers: Answers | None = None


class ParameterSource:
    """Answers which parameters a launch uses: forced, recorded, known, or the defaults, in this order.

    Attributes
    ----------
    knowledge : Knowledge
        What this process has read, and learnt itself.
    tuner, verifier : callable or None
        A :data:`Tuner` and a :data:`Verifier`; None: those of :mod:`pyedmcl.tuner.campaign`.
    """

    def __init__(self) -> None:
        self._around: ContextVar[_Surroundings] = ContextVar("around", default=_Surroundings())  # noqa: B039
        self.tuner: Tuner | None = None
        self.verifier: Verifier | None = None
        self.forget()

    def forget(self) -> None:
        """Drop all that this process has learnt, so that the database and the wisdom are read anew."""
        self.knowledge = Knowledge()
        self._answered: dict[Any, ParameterQuestion] = {}
        self._answered_by = 0  # version of the knowledge
        self._generation = next(_generations)
        self._told: set[str] = set()
        self._tuned: set[TuningKey] = set()

    def ask_anew(self) -> None:
        """Answer every question anew, by what is known now."""
        self._answered.clear()
        self._answered_by = self.knowledge.version
        self._generation = next(_generations)

    # What holds around questions

    @contextlib.contextmanager
    def _within(self, **changes: Any) -> Iterator[None]:
        token = self._around.set(_Surroundings(**(vars(self._around.get()) | changes)))
        try:
            yield
        finally:
            self._around.reset(token)

    @contextlib.contextmanager
    def mode(self, tune: str | None = None) -> Iterator[None]:
        """Inside this ``with``, parameters are chosen by this mode.

        Parameters
        ----------
        tune : {"never", "cached", "auto", "force"}, optional
            None: as outside of it, else ``PYEDMCL_TUNE``, else "cached".
        """
        with config.read_once():
            chosen = self.mode_in_force() if tune is None else checked_mode(tune)
            self.knowledge.refresh()
            if self.knowledge.version != self._answered_by:
                self.ask_anew()
            with self._within(call=Call(chosen)):
                yield

    def mode_in_force(self) -> str:
        """The mode of the ``with`` around, else that of ``PYEDMCL_TUNE``."""
        call = self._around.get().call
        return call.mode if call is not None else config.current().tune

    @contextlib.contextmanager
    def using(self, **kernels: Mapping[str, Any]) -> Iterator[None]:
        """Inside this ``with``, kernels named here take these parameters (others stay as chosen), with grade "forced".

        How a tuner tries parameters: whole functions then run with them, through the same launches as ever. What is
        left out is the default's.

        Parameters
        ----------
        **kernels : mapping
            Kernel name to some or all of its tuned parameters.
        """
        with self._within(forced={**self._around.get().forced, **kernels}):
            yield

    @contextlib.contextmanager
    def keeping(self, answers: Answers) -> Iterator[None]:
        """Inside this ``with``, a question that ``answers`` knows is answered from there; new answers are added to it.

        A job that is continued gets the parameters that it began with: its provenance names one set, and sums of
        S-map are split as they say.
        """
        with self._within(answers=answers):
            yield

    @contextlib.contextmanager
    def watching(self) -> Iterator[dict[Any, ParameterQuestion]]:
        """Collect what is asked within the block, each question once: the values of the mapping, in order."""
        seen: dict[Any, ParameterQuestion] = {}
        with self._within(watchers=(*self._around.get().watchers, seen)):
            yield seen

    def expect(self, operations: float, info: DeviceInfo) -> None:
        """Say how much work lies ahead: "auto" tunes only where that repays it. Without effect outside :meth:`mode`.

        Parameters
        ----------
        operations : float
            Arithmetic operations of all work-items together, roughly.
        """
        call = self._around.get().call
        if call is not None:
            call.expected = operations / defaults.operations_per_second(info)

    def record(self) -> dict[str, list[dict[str, Any]]]:
        """Kernel to the parameters it was given in the public function at work, for provenance.

        Each with its grade and, where an engine adjusted it, with what it changed and why.
        """
        used: dict[str, list[dict[str, Any]]] = {}
        for question in (self._around.get().watchers or ({},))[-1].values():
            of_kernel = used.setdefault(question.spec.name, [])
            if question.record() not in of_kernel:
                of_kernel.append(question.record())
        return used

    def footing(self) -> Hashable | None:
        """What the answers to all questions follow from: while two footings are equal, so is every answer.

        None where that cannot be said: a tuner forces parameters, a job has answers of its own, or the mode may tune.
        """
        around, mode = self._around.get(), self.mode_in_force()
        if around.forced or around.answers is not None or mode not in ("never", "cached"):
            return None
        return mode, self.knowledge.version, self._generation

    def ask_again(self, questions: Iterable[tuple[Any, ParameterQuestion]]) -> None:
        """Count questions as asked, whose answers stand: what :meth:`watching` has collected on the same footing."""
        for seen in self._around.get().watchers:
            for cache_key, question in questions:
                seen.pop(cache_key, None)
                seen[cache_key] = question

    # Questions

    def parameters(
        self, spec: KernelSpec, specialisation: Mapping[str, Any], info: DeviceInfo,
        sizes: Mapping[str, int] | None = None,
    ) -> ParameterChoice:  # fmt: skip
        """Parameters for a kernel, its specialisation, a device and the size of the problem.

        Parameters
        ----------
        specialisation : mapping
            What the kernel's source is specialised by, as far as it is known.
        sizes : mapping, optional
            What the best parameters may depend on beside the source, such as rows and libraries.
        """
        around, mode = self._around.get(), self.mode_in_force()
        forced = around.forced.get(spec.name)
        question = self._answered_once(spec, specialisation, info, sizes or {}, mode, forced)
        if not forced:
            question = self._tuned_or_recorded(question, mode, around)
            if around.answers is not None:
                question = self._recorded_first(question, around.answers)
        self._show(question, around.watchers)
        return question.choice

    def _answered_once(
        self, spec: KernelSpec, specialisation: Mapping[str, Any], info: DeviceInfo, sizes: Mapping[str, int],
        mode: str, forced: Mapping[str, Any] | None,
    ) -> ParameterQuestion:  # fmt: skip
        """The question with its answer, which is kept for the next time that it is asked in the same way."""
        how = str(sorted(forced.items())) if forced else mode
        cache_key = (id(spec), how, info, frozen(specialisation), frozen(sizes))
        question = self._answered.get(cache_key)
        if question is None or question.spec is not spec:  # a spec that is gone may have had the same id
            unanswered = ParameterChoice({}, "", cache_key)
            question = ParameterQuestion(spec, dict(specialisation), info, dict(sizes), unanswered)
            question = self._keep(self._answer(question, mode, forced))
        return question

    def _tuned_or_recorded(self, question: ParameterQuestion, mode: str, around: _Surroundings) -> ParameterQuestion:
        """The question with the answer that its job began with, else with one that is tuned now if that repays."""
        recorded, call = self._recorded(question, around.answers), around.call or Call(mode)
        if recorded is not None:
            return question.answered(recorded, "recorded")
        if not call.repays(question) or question.key() in self._tuned:
            return question
        self._tune(question, call)
        self.ask_anew()  # what was found may suit other questions, too
        return self._keep(self._answer(question, mode, None))

    def _recorded_first(self, question: ParameterQuestion, answers: Answers) -> ParameterQuestion:
        """The question with the answer that its job keeps: this one, unless another process was quicker."""
        answers[question.text()] = dict(question.choice.parameters)
        kept = self._recorded(question, answers)
        if kept is None or kept == question.choice.parameters:
            return question
        return question.answered(kept, "recorded")

    @staticmethod
    def _show(question: ParameterQuestion, watchers: Iterable[dict[Any, ParameterQuestion]]) -> None:
        """Let watchers see a question. What was asked last stands last, where this module looks for a culprit."""
        cache_key = question.choice.cache_key
        for seen in watchers:
            before = seen.pop(cache_key, None)
            # Of the same answer, what engines adjusted is kept.
            same = before is not None and before.choice == question.choice
            seen[cache_key] = before if before is not None and same else question

    def adjusted(self, choice: ParameterChoice, parameters: Mapping[str, Any], why: str) -> Mapping[str, Any]:
        """What an engine makes of an answer: told where it differs, and kept for provenance.

        Parameters
        ----------
        choice : ParameterChoice
            From :meth:`parameters`.
        parameters : mapping
            What the kernel is given.

        Returns
        -------
        mapping
            ``parameters``.
        """
        changes = {name: value for name, value in parameters.items() if choice.parameters.get(name) != value}
        note = {"why": why, "parameters": changes}
        for seen in self._around.get().watchers if changes else ():
            question = seen.get(choice.cache_key)
            if question is not None and note not in question.adjusted:
                seen[choice.cache_key] = replace(question, adjusted=(*question.adjusted, note))
                self._tell(logging.INFO, f"parameters of {question.spec.name} are adjusted: {why}")
        return parameters

    def _keep(self, question: ParameterQuestion) -> ParameterQuestion:
        if len(self._answered) > _KEPT_MOST:
            self._answered.clear()
        self._answered[question.choice.cache_key] = question
        return question

    def _answer(self, question: ParameterQuestion, mode: str, forced: Mapping[str, Any] | None) -> ParameterQuestion:
        """The question with its answer: forced parameters, else the best known ones that fit, else the defaults."""
        spec, specialisation, info, sizes = question.spec, question.specialisation, question.info, question.sizes
        key, most = question.key(), self._most(question, mode)
        base = defaults.defaults(spec, specialisation, info, most, sizes)
        if forced:
            return question.answered({**base, **forced}, "forced")
        answer = question.answered(base, "default")
        for grade, entry in self.knowledge.suitable(key) if mode != "never" else ():
            why = defaults.unfit(spec, entry.parameters, specialisation, info, most, sizes)
            if why is None and not self._trusted_or_verified(question, entry):
                why = "they were found elsewhere, and could not be verified here"
            if why is None:
                answer = question.answered(dict(entry.parameters), grade)
                break
            self._tell(logging.INFO, f"parameters of {spec.name} ({grade}) do not fit {info.name}: {why}")
        self._tell(logging.INFO, f"parameters of {spec.name} on {info.name}: {answer.choice.grade}")
        return answer

    def _trusted_or_verified(self, question: ParameterQuestion, entry: Entry) -> bool:
        """Whether parameters may be used: those of this very device and driver are trusted; others, shipped ones too,
        must give right answers here, once."""
        key = question.key()
        if entry.key.device == key.device or self.knowledge.is_checked(key, entry.parameters):
            return True
        with self._apart():
            return verified(question, entry, self.knowledge, self.verifier, self._tell)

    def _most(self, question: ParameterQuestion, mode: str) -> int:
        """Work-items of a group that the device takes, as far as that is known and asked for."""
        limit = self.knowledge.limit(question.key()) if mode != "never" else question.info.max_work_group
        return min(quirks_for(question.info).max_work_group, limit)

    def _recorded(self, question: ParameterQuestion, answers: Answers | None) -> Mapping[str, Any] | None:
        """What a job that is continued was given before, unless it failed in this process."""
        before = None if answers is None else answers.get(question.text())
        if before is None or self.knowledge.distrusts(question.key(), before):
            return None
        if before == question.choice.parameters:
            return question.choice.parameters
        bar = self.knowledge.kept_away(question.key(), before)
        why = f"'pyedmcl db bar' keeps {bar} away" if bar else defaults.unfit_recorded(
            question.spec, before, question.specialisation, question.info, quirks_for(question.info).max_work_group,
            question.sizes,
        )  # fmt: skip
        if why is not None:
            raise StoreError(
                f"the parameters of {question.spec.name} that this job began with cannot be used on "
                f"{question.info.name} ({why}): start again with resume=False, or choose another output "
                "path"
            )
        return before

    def _tell(self, level: int, text: str) -> None:
        """Once per process."""
        if text not in self._told:
            self._told.add(text)
            log.log(level, "%s", text)

    def _tune(self, question: ParameterQuestion, call: Call) -> None:
        self._tuned.add(question.key())
        try:
            with self._apart():
                tune(question, call, self.tuner, self._tell)
        finally:
            self.knowledge.refresh()

    def _apart(self) -> contextlib.AbstractContextManager[None]:
        """Inside this ``with``, whatever is asked is no part of the function at work."""
        return self._within(call=Call("never"), forced={}, watchers=(), answers=None)


#: The source of this process.
source = ParameterSource()
parameters, adjusted, using = source.parameters, source.adjusted, source.using
mode, expect, keeping = source.mode, source.expect, source.keeping
watching, record = source.watching, source.record


# Public functions with ``tune=``, and their second chance: a device that refuses what it was given gets less.
#
# A driver may promise work-groups that it then refuses, and a compiler may fail on parameters that another version of
# it took. What helped is recorded, so that the next process begins with it.


P = ParamSpec("P")
R = TypeVar("R")

# A group of 1024 is halved to 4 in this many steps. Where the driver may have meant memory, fewer are tried.
_MOST_LESSONS = 8
_MOST_DOUBTFUL = 3
# The whole call is repeated, so it is halved less often than within the blocks of a job.
_LEAST_SHARE = 1 / 4


def tunable(function: Callable[P, R]) -> Callable[P, R]:
    """Give the keyword ``tune`` of a public function its meaning; see :meth:`ParameterSource.mode`.

    The function must be one that can be called again: that is done where a kernel's tuned parameters or a work-group
    were refused.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        tune: Any = kwargs.get("tune")
        with source.mode(tune):
            return _with_chances(lambda: function(*args, **kwargs))

    return call


@dataclass(frozen=True)
class _Lesson:
    """What a refusal taught: parameters to avoid, or (``work_group`` above 0) groups to keep to.

    ``doubtful``: the driver may have been short of memory instead.
    """

    question: ParameterQuestion
    why: str
    work_group: int = 0
    doubtful: bool = False

    def heed(self) -> None:
        """Keep to it in this process."""
        if self.work_group:
            source.knowledge.set_limit(self.question.key(), self.work_group)
        else:
            source.knowledge.distrust(self.question.key(), self.question.choice.parameters)

    def unlearn(self) -> None:
        """It was no help: the reason must be another one."""
        if self.work_group:
            source.knowledge.set_limit(self.question.key(), None)
        else:
            source.knowledge.trust(self.question.key(), self.question.choice.parameters)

    def record(self) -> None:
        """Keep to it from now on."""
        name, info = self.question.spec.name, self.question.info.name
        if self.work_group:
            log.warning("%s refused %s in the work-groups it promised; it gets at most %d work-items from now on",
                        info, name, self.work_group)  # fmt: skip
            source.knowledge.record_limit(self.question.key(), self.work_group, self.why)
        else:
            log.warning("tuned parameters of %s (%s) do not work on %s and will not be used again: %s",
                        name, self.question.choice.grade, info, self.why.partition("\n")[0])  # fmt: skip
            source.knowledge.record_failure(self.question.key(), self.question.choice.parameters, self.why)


def _with_chances(work: Callable[[], R]) -> R:
    lessons: list[_Lesson] = []
    while True:
        with source.watching() as questions:
            try:
                result = _with_less_memory(work)
            except (BuildError, LaunchError, DeviceMemoryError) as error:
                lesson = _lesson(error, questions)
                if lesson is None or len(lessons) >= (_MOST_DOUBTFUL if lesson.doubtful else _MOST_LESSONS):
                    for learnt in lessons:
                        learnt.unlearn()
                    source.ask_anew()
                    raise
                lesson.heed()
                lessons.append(lesson)
                source.ask_anew()
                continue
        _conclude(lessons)
        return result


def _with_less_memory(work: Callable[[], R]) -> R:
    """What is computed outside of the blocks of a job, too, is tried again with less memory where that is refused."""
    share = 1.0
    while True:
        try:
            with memory_share(share):
                return work()
        except MemoryError as found:
            error = found if isinstance(found, DeviceMemoryError) else host_refusal(found)
            if not error.refused or error.last or error.kernel or share <= _LEAST_SHARE:
                if error is found:
                    raise
                raise error from found
            log.warning("%s Trying again with %g of the memory.", error, share / 2)
            del error  # whose traceback keeps buffers alive
        share /= 2


def _lesson(
    error: BuildError | LaunchError | DeviceMemoryError, questions: Mapping[Any, ParameterQuestion]
) -> _Lesson | None:
    """What to do differently, or None where nothing can be."""
    concerned = [question for question in questions.values() if question.spec.name == error.kernel]
    tuned = [question for question in concerned if question.choice.grade not in ("default", "forced")]
    question = next(iter(reversed(tuned or concerned)), None)
    if question is None or question.choice.grade == "forced":
        return None
    doubtful = isinstance(error, DeviceMemoryError)
    if question.choice.grade != "default":
        return _Lesson(question, str(error), doubtful=doubtful)
    if isinstance(error, BuildError) or error.work_group < 2:
        return None
    return _Lesson(question, str(error), error.work_group // 2, doubtful)


def _conclude(lessons: list[_Lesson]) -> None:
    """After a success, record what helped and no more: parameters that met the same refusal may be good ones."""
    limits = {lesson.question.spec.name: lesson for lesson in lessons if lesson.work_group}  # the last one of each
    for lesson in lessons:
        if lesson.work_group:
            continue
        if lesson.question.spec.name in limits:
            lesson.unlearn()  # the defaults were refused, too, until groups became smaller
            source.ask_anew()
        elif not lesson.doubtful:  # else it holds for this process only
            lesson.record()
    for lesson in limits.values():
        lesson.record()

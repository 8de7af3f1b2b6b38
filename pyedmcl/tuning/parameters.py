"""Which parameters a launch uses, and how well they are known: one class answers, one object serves a process.

Engines ask :func:`parameters` for every kernel they build, and say by :func:`adjusted` where they change the answer.
Public functions get their ``tune=`` from :func:`pyedmcl.tuning.retry.tunable`. The functions of this module are those
of :data:`source`.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from .. import config
from ..codegen.spec import KernelSpec
from ..device.info import DeviceInfo
from ..device.quirks import quirks_for
from ..errors import StoreError
from . import defaults, within
from .grades import Entry
from .key import TuningKey
from .knowledge import Knowledge
from .question import Answers, ParameterChoice, ParameterQuestion, checked_mode, frozen
from .within import Call

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
        A :data:`.within.Tuner` and a :data:`.within.Verifier`; None: those of :mod:`pyedmcl.tuner.auto`.
    """

    def __init__(self) -> None:
        self._around: ContextVar[_Surroundings] = ContextVar("around", default=_Surroundings())  # noqa: B039
        self.tuner: within.Tuner | None = None
        self.verifier: within.Verifier | None = None
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

        Raises
        ------
        InputError
            Another mode.
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

        Parameters
        ----------
        answers : mutable mapping
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
        info : DeviceInfo
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
        spec : KernelSpec
        specialisation : mapping
            What the kernel's source is specialised by, as far as it is known.
        info : DeviceInfo
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
        """Let watchers see a question. What was asked last stands last, where :mod:`.retry` looks for a culprit."""
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
        why : str

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
            return within.verified(question, entry, self.knowledge, self.verifier, self._tell)

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
                within.tune(question, call, self.tuner, self._tell)
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

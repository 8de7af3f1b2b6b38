"""Public functions with ``tune=``, and their second chance: a device that refuses what it was given gets less.

A driver may promise work-groups that it then refuses, and a compiler may fail on parameters that another version of it
took. What helped is recorded, so that the next process begins with it.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from ..device.memory import host_refusal, memory_share
from ..errors import BuildError, DeviceMemoryError, LaunchError
from .parameters import ParameterQuestion, source

log = logging.getLogger(__name__)
P = ParamSpec("P")
R = TypeVar("R")

# A group of 1024 is halved to 4 in this many steps. Where the driver may have meant memory, fewer are tried.
_MOST_LESSONS = 8
_MOST_DOUBTFUL = 3
# The whole call is repeated, so it is halved less often than within the blocks of a job.
_LEAST_SHARE = 1 / 4


def tunable(function: Callable[P, R]) -> Callable[P, R]:
    """Give the keyword ``tune`` of a public function its meaning; see :meth:`.parameters.ParameterSource.mode`.

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

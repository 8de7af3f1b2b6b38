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

from ..errors import BuildError, DeviceMemoryError, LaunchError
from . import policy
from .key import canonical

log = logging.getLogger(__name__)
P = ParamSpec("P")
R = TypeVar("R")

# A group of 1024 is halved to 4 in so many steps. Where the driver may have meant memory, fewer are tried.
_MOST_LESSONS = 8
_MOST_DOUBTFUL = 3


def tunable(function: Callable[P, R]) -> Callable[P, R]:
    """Give the keyword ``tune`` of a public function its meaning; see :func:`pyedmcl.tuning.policy.mode`.

    The function must be one that can be called again: that is done where a kernel's tuned parameters or a work-group
    were refused.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        tune: Any = kwargs.get("tune")
        with policy.mode(tune):
            return _with_chances(lambda: function(*args, **kwargs))

    return call


@dataclass(frozen=True)
class _Lesson:
    """What a refusal taught: parameters to avoid, or (``work_group`` above 0) groups to keep to."""

    asked: policy.Asked
    why: str
    work_group: int = 0
    doubtful: bool = False

    def heed(self) -> None:
        """Keep to it in this process."""
        key = self.asked.key()
        device = key.device.digest()
        if self.work_group:
            policy.knowledge.limits[device, key.kernel] = self.work_group
        else:
            policy.knowledge.distrusted.add((device, key.kernel, key.specialisation, self._parameters()))

    def unlearn(self) -> None:
        """It was no help: the reason must be another one."""
        key = self.asked.key()
        device = key.device.digest()
        policy.knowledge.limits.pop((device, key.kernel), None)
        policy.knowledge.distrusted.discard((device, key.kernel, key.specialisation, self._parameters()))

    def record(self) -> None:
        """Keep to it from now on."""
        name, info = self.asked.spec.name, self.asked.info.name
        if self.work_group:
            log.warning("%s refused %s in the work-groups it promised; it gets at most %d work-items from now on",
                        info, name, self.work_group)  # fmt: skip
            policy.knowledge.record_limit(self.asked.key(), self.work_group, self.why)
        else:
            log.warning("tuned parameters of %s (%s) do not work on %s and will not be used again: %s",
                        name, self.asked.choice.grade, info, self.why.partition("\n")[0])  # fmt: skip
            policy.knowledge.record_failure(self.asked.key(), self.asked.choice.parameters, self.why)

    def _parameters(self) -> str:
        return canonical(self.asked.choice.parameters)


def _with_chances(work: Callable[[], R]) -> R:
    lessons: list[_Lesson] = []
    while True:
        with policy.watching() as seen:
            try:
                result = work()
            except (BuildError, LaunchError, DeviceMemoryError) as error:
                lesson = _lesson(error, seen)
                if lesson is None or len(lessons) >= (_MOST_DOUBTFUL if lesson.doubtful else _MOST_LESSONS):
                    for learnt in lessons:
                        learnt.unlearn()
                    policy.drop_kept()
                    raise
                lesson.heed()
                lessons.append(lesson)
                policy.drop_kept()
                continue
        for lesson in _last_of_each(lessons):
            lesson.record()
        return result


def _lesson(error: BuildError | LaunchError | DeviceMemoryError, seen: Mapping[Any, policy.Asked]) -> _Lesson | None:
    """What to do differently, or None where nothing can be."""
    concerned = [asked for asked in seen.values() if asked.spec.name == error.kernel]
    tuned = [asked for asked in concerned if asked.choice.grade not in ("default", "forced")]
    asked = next(iter(reversed(tuned or concerned)), None)
    if asked is None or asked.choice.grade == "forced":
        return None
    doubtful = isinstance(error, DeviceMemoryError)
    if asked.choice.grade != "default":
        return _Lesson(asked, str(error), doubtful=doubtful)
    if isinstance(error, BuildError) or error.work_group < 2:
        return None
    return _Lesson(asked, str(error), error.work_group // 2, doubtful)


def _last_of_each(lessons: list[_Lesson]) -> list[_Lesson]:
    """Of the limits of a kernel only the last one counts."""
    limits = {lesson.asked.spec.name: lesson for lesson in lessons if lesson.work_group}
    return [lesson for lesson in lessons if not lesson.work_group] + list(limits.values())

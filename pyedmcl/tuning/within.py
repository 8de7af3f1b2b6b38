"""Tuning and verifying kernels within a public function at work: whether it pays, and who does it.

The tuner lies above this room, so that it is found by name.
"""

from __future__ import annotations

import importlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..codegen.spec import KernelSpec
from ..device.info import DeviceInfo
from ..errors import Interrupted, PyedmclError
from .grades import Entry
from .knowledge import Knowledge
from .question import ParameterQuestion

#: Tunes a kernel within this process: gets spec, specialisation, device, sizes and a budget in seconds, and records
#: trials in the database.
Tuner = Callable[[KernelSpec, Mapping[str, Any], DeviceInfo, Mapping[str, int], float], None]
#: Verifies parameters of a kernel: gets spec, specialisation, device, sizes and the parameters, and gives how it ended
#: and why, as :meth:`.knowledge.Knowledge.check` wants it.
Verifier = Callable[[KernelSpec, Mapping[str, Any], DeviceInfo, Mapping[str, int], Mapping[str, Any]], tuple[str, str]]
#: Says something once in a process: a level of ``logging`` and the words.
Tell = Callable[[int, str], None]

_TUNING = "pyedmcl.tuner.auto"
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
        (tuner or _tuning("tune"))(spec, question.specialisation, question.info, question.sizes, budget)
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
        status, why = (verifier or _tuning("verify"))(*problem, entry.parameters)
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

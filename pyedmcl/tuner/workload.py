"""What a tuner must know of a kernel: problems to run, how to run them, and how to tell a wrong answer.

The workloads themselves lie in :mod:`pyedmcl.tuner.problems`, above the engines that they run.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from ..codegen.spec import Constraint
from ..device.executor import Executor
from ..device.info import DeviceInfo
from ..errors import InputError
from ..tuning.key import canonical

#: What a run computed, by name; a sample is enough where the whole would be large.
Answer = Mapping[str, NDArray[Any]]

MODES = ("rapid", "normal", "exhaustive")


class WrongAnswerError(Exception):
    """A configuration gave another answer than the oracle; the message says where."""


@dataclass(frozen=True)
class Case:
    """One problem that a kernel is tuned on.

    Attributes
    ----------
    kernel : str
    name : str
        For people.
    numbers : mapping
        All that defines the problem, in types of JSON.
    """

    kernel: str
    name: str
    numbers: Mapping[str, Any]

    def text(self) -> str:
        """One line of JSON, equal for equal problems: what trials are filed under."""
        return canonical({"kernel": self.kernel, "name": self.name, **self.numbers})

    @classmethod
    def parse(cls, text: str) -> Case:
        """The reverse of :meth:`text`. Raises InputError."""
        try:
            numbers = json.loads(text)
            return cls(numbers.pop("kernel"), numbers.pop("name"), numbers)
        except (ValueError, KeyError, AttributeError) as error:
            raise InputError(f"{text[:100]!r} does not describe a case: {error!r}") from error


class Workload(ABC):
    """How to run and verify one kernel.

    Attributes
    ----------
    kernel : str
        Name of its spec.
    entries : tuple of str
        Entry points of the program whose launches are timed; the spec's name where left out.
    tolerance : (float, float)
        Largest relative and absolute difference between answers of two configurations; (0, 0) demands equal bits.
    constraints : tuple of Constraint
        What a tuner must not try, beside what the spec forbids.
    """

    kernel: ClassVar[str]
    entries: ClassVar[tuple[str, ...]] = ()
    tolerance: ClassVar[tuple[float, float]] = (0.0, 0.0)
    constraints: ClassVar[tuple[Constraint, ...]] = ()

    @abstractmethod
    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        """Problems worth tuning, the most common first; one or two for "rapid"."""

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> Case | None:
        """A small problem for which an engine asks for these parameters; None where there is no such."""
        return None

    @abstractmethod
    def open(self, executor: Executor, case: Case) -> AbstractContextManager[Callable[[], Answer]]:
        """Prepare a case through the usual engine; what is given runs it, as often as it is called.

        Parameters are chosen while it is prepared, buffers are kept between runs.
        """

    @abstractmethod
    def verify(self, executor: Executor, case: Case) -> None:
        """Run ragged problems of the case's specialisation against the oracle. Raises WrongAnswerError."""

    def timed(self) -> tuple[str, ...]:
        """Entry points whose launches a tuner times."""
        return self.entries or (self.kernel,)

    def run(self, executor: Executor, case: Case) -> Answer:
        """The whole of a case, once."""
        with self.open(executor, case) as go:
            return go()

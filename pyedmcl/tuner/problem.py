"""What a tuner must know of a kernel: cases to run, how to run them, and how to tell a wrong answer.

The problems themselves lie in :mod:`pyedmcl.tuner.problems`, above the engines that they run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from numpy.typing import NDArray

from ..codegen.spec import Constraint
from ..device.executor import Executor
from ..device.info import DeviceInfo
from ..tuning.key import canonical
from .verify import Close, require

#: What a run computed, by name; a sample is enough where the whole would be large.
Answer = Mapping[str, NDArray[Any]]

T = TypeVar("T")
_KEPT_MOST = 256


@dataclass(frozen=True)
class TuningCase:
    """One problem that a kernel is tuned on.

    Attributes
    ----------
    kernel : str
    name : str
        For people.
    numbers : mapping
        All that defines the problem, in types of JSON; the specialisation under "given".
    """

    kernel: str
    name: str
    numbers: Mapping[str, Any]

    @property
    def given(self) -> Mapping[str, Any]:
        """The specialisation, by the names that the spec's constraints use."""
        given: Mapping[str, Any] = self.numbers.get("given", {})
        return given

    def text(self) -> str:
        """One line of JSON, equal for equal problems: what trials are filed under."""
        return canonical({"kernel": self.kernel, "name": self.name, **self.numbers})


def up_to(mode: str, rapid: Sequence[T], normal: Sequence[T] = (), exhaustive: Sequence[T] = ()) -> list[T]:
    """What a mode goes through: a more thorough one adds its own to what less thorough ones have."""
    return [*rapid, *(normal if mode != "rapid" else ()), *(exhaustive if mode == "exhaustive" else ())]


class TuningProblem(ABC):
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
    usual_dtypes : tuple of str
        Those that need not be told in the name of a case.
    rapid, normal, exhaustive : sequence of mapping
        What :meth:`case` is given for each of the problems worth tuning, the most common first; a more thorough mode
        adds its own. The other arguments keep their defaults.
    """

    kernel: str
    entries: tuple[str, ...] = ()
    tolerance: ClassVar[tuple[float, float]] = (0.0, 0.0)
    constraints: ClassVar[tuple[Constraint, ...]] = ()
    usual_dtypes: ClassVar[tuple[str, ...]] = ("float32",)
    rapid: Sequence[Mapping[str, Any]] = ({},)
    normal: Sequence[Mapping[str, Any]] = ()
    exhaustive: Sequence[Mapping[str, Any]] = ()

    def __init__(self) -> None:
        self._right: dict[tuple[str, str], Mapping[str, NDArray[Any] | Close]] = {}

    @abstractmethod
    def case(self, info: DeviceInfo, *sizes: Any, **numbers: Any) -> TuningCase:
        """A case of a size that suits the device; which one else, the numbers say."""

    def cases(self, mode: str, info: DeviceInfo) -> list[TuningCase]:
        """Problems worth tuning, the most common first; one or two for "rapid"."""
        all_numbers = self.wanted(mode, info)
        return [self.case(info, **numbers) for numbers in all_numbers if info.fp64 or numbers.get("dtype") != "float64"]

    def wanted(self, mode: str, info: DeviceInfo) -> list[Mapping[str, Any]]:
        """What :meth:`case` is given for each of :meth:`cases`."""
        return up_to(mode, self.rapid, self.normal, self.exhaustive)

    def named(self, *words: str, given: Mapping[str, Any], **numbers: Any) -> TuningCase:
        """A case with these numbers, named by those words that are not empty, and by its dtype if it is a rare one."""
        dtype = given.get("dtype", "float32")
        name = ", ".join(word for word in (*words, "" if dtype in self.usual_dtypes else dtype) if word)
        return TuningCase(self.kernel, name, {**numbers, "given": given})

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> TuningCase | None:
        """A small problem for which an engine asks for these parameters; None where there is no such."""
        return None

    @abstractmethod
    def open(self, executor: Executor, case: TuningCase) -> AbstractContextManager[Callable[[], Answer]]:
        """Prepare a case through the usual engine; what is given runs it, as often as it is called.

        Parameters are chosen while it is prepared, buffers are kept between runs.
        """

    @abstractmethod
    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        """Small problems of the case's specialisation that fill no work-group: each in words, and its numbers."""

    @abstractmethod
    def computed(self, executor: Executor, case: TuningCase, small: Any) -> Answer:
        """What the device makes of one of the :meth:`ragged` problems."""

    @abstractmethod
    def expected(self, case: TuningCase, small: Any) -> Mapping[str, NDArray[Any] | Close]:
        """What the oracle makes of it, by the same names (it may know more); plain arrays demand the same bits."""

    def verify(self, executor: Executor, case: TuningCase) -> None:
        """Compare the device with the oracle on all :meth:`ragged` problems. Raises WrongAnswerError.

        The oracle's answers are kept, since every good configuration is compared with the same ones.
        """
        for words, small in self.ragged(case):
            place = (canonical(case.given), words)
            if place not in self._right:
                if len(self._right) >= _KEPT_MOST:
                    self._right.clear()
                self._right[place] = self.expected(case, small)
            for name, got in self.computed(executor, case, small).items():
                require(f"{name} of {words}", got, self._right[place][name])

    def timed(self) -> tuple[str, ...]:
        """Entry points whose launches a tuner times."""
        return self.entries or (self.kernel,)

    def run(self, executor: Executor, case: TuningCase) -> Answer:
        """The whole of a case, once."""
        with self.open(executor, case) as go:
            return go()


class OneWayProblem(TuningProblem):
    """A problem whose case is run in the same way as the small problems that are verified."""

    @abstractmethod
    def usual(self, case: TuningCase) -> Any:
        """What the case is run on, in the form of the :meth:`ragged` problems."""

    @abstractmethod
    def session(self, executor: Executor, case: TuningCase, small: Any) -> AbstractContextManager[Callable[[], Answer]]:
        """As :meth:`open`, for the case or one of the small problems."""

    def open(self, executor: Executor, case: TuningCase) -> AbstractContextManager[Callable[[], Answer]]:
        return self.session(executor, case, self.usual(case))

    def computed(self, executor: Executor, case: TuningCase, small: Any) -> Answer:
        with self.session(executor, case, small) as go:
            return go()

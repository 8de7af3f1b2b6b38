"""What a tuner must know of a kernel, how answers are compared, and what several tuning problems share."""

from __future__ import annotations

import contextlib
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..device.executor import Executor
from ..device.info import DeviceInfo
from ..device.quirks import quirks_for
from ..kernels.kernel_spec import Constraint
from ..reference import knn_float32_exact, knn_float64_exact
from ..tuning.records import canonical

# Whether two answers are the same, and if not, where they differ.


_SHOWN = 3


class WrongAnswerError(Exception):
    """A configuration gave another answer than the oracle; the message says where."""


@dataclass(frozen=True)
class Close:
    """Floats that an answer may miss by ``atol + rtol * |value|``; ``atol`` may be an array for all of them."""

    values: NDArray[Any]
    rtol: float
    atol: float | NDArray[Any] = 0.0


def require(what: str, answer: NDArray[Any], expected: NDArray[Any] | Close) -> None:
    """Demand the same bits, or floats within a tolerance and gaps in the same places.

    NaN equals NaN, and a zero equals a zero of either sign.
    """
    got, right = np.asarray(answer), np.asarray(expected.values if isinstance(expected, Close) else expected)
    if got.shape != right.shape:
        raise WrongAnswerError(f"{what}: shape {got.shape} instead of {right.shape}")
    if isinstance(expected, Close):
        with np.errstate(invalid="ignore", over="ignore"):
            same = np.isclose(got.astype(np.float64), right.astype(np.float64), expected.rtol, expected.atol,
                              equal_nan=True)  # fmt: skip
    else:
        same = (got == right) | ((got != got) & (right != right))
    if same.all():
        return
    places = np.argwhere(~np.atleast_1d(same))
    got, right = np.atleast_1d(got), np.atleast_1d(right)
    shown = "; ".join(
        f"[{', '.join(map(str, at))}] {got[tuple(at)]!r} instead of {right[tuple(at)]!r}" for at in places[:_SHOWN]
    )
    raise WrongAnswerError(f"{what}: {len(places):,} of {same.size:,} values differ, {shown}")


def require_same(
    answer: Mapping[str, NDArray[Any]], expected: Mapping[str, NDArray[Any]], tolerance: tuple[float, float]
) -> None:
    """Demand that one run's answer is another's: integers always to the last bit, floats within the tolerance."""
    if set(answer) != set(expected):
        raise WrongAnswerError(f"the answer holds {sorted(answer)}, not {sorted(expected)}")
    for name, values in expected.items():
        exact = tolerance == (0.0, 0.0) or np.asarray(values).dtype.kind != "f"
        require(name, answer[name], values if exact else Close(values, *tolerance))


# The problems themselves lie in :mod:`pyedmcl.tuner.problems`, above the engines that they run.


#: What a run computed, by name; a sample is enough where the whole would be large.
Answer = Mapping[str, NDArray[Any]]

T = TypeVar("T")
_KEPT_MOST = 256


@dataclass(frozen=True)
class TuningCase:
    """One problem that a kernel is tuned on."""

    kernel: str
    # For people.
    name: str
    # All that defines the problem, in types of JSON; the specialisation under "given".
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
    """How to run and verify one kernel."""

    # Name of its spec.
    kernel: str
    # Entry points of the program whose launches are timed; the spec's name where left out.
    entries: tuple[str, ...] = ()
    # (float, float). Largest relative and absolute difference between answers of two configurations; (0, 0) demands
    # equal bits.
    tolerance: ClassVar[tuple[float, float]] = (0.0, 0.0)
    # What a tuner must not try, beside what the spec forbids.
    constraints: ClassVar[tuple[Constraint, ...]] = ()
    # Those that need not be told in the name of a case.
    usual_dtypes: ClassVar[tuple[str, ...]] = ("float32",)
    # rapid, normal, exhaustive: What :meth:`case` is given for each of the problems worth tuning, the most common
    # first; a more thorough mode adds its own. The other arguments keep their defaults.
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


# What several tuning problems share: series to run on, ragged problems, and sizes that suit a device.


Floats = NDArray[np.floating[Any]]


@functools.lru_cache(maxsize=16)
def maps(n_steps: int, n_series: int, dtype: str = "float32", seed: int = 1) -> Floats:
    """Noisy logistic maps (n_steps, n_series): chaotic, and the same on every machine. Not to be written to."""
    rng = np.random.default_rng(seed)
    growth = rng.uniform(3.65, 3.85, n_series)
    x = rng.uniform(0.2, 0.8, n_series)
    noise = rng.normal(0.0, 0.01, (n_steps + 50, n_series))
    out = np.empty((n_steps + 50, n_series))
    for t in range(len(out)):
        x = np.clip(x * (growth * (1.0 - x)) + noise[t], 1e-3, 1.0 - 1e-3)
        out[t] = x
    values = out[50:].astype(dtype)
    values.flags.writeable = False
    return values


@functools.lru_cache(maxsize=8)
def flow(n_steps: int, dtype: str = "float32", noise: float = 0.02) -> Floats:
    """x of Lorenz' system (1963) in steps of 0.01 with some noise (n_steps,): smooth, as the pruned search needs it.

    Pieces of 2,048 steps begin at places of their own, so that they can be made side by side. The same on every machine
    but for the last digits. Not to be written to.
    """
    rng, piece, dt = np.random.default_rng(5), 2048, 0.01
    state = rng.uniform(-10.0, 10.0, (3, -(-n_steps // piece))) + np.array([[0.0], [0.0], [25.0]])

    def slope(s: NDArray[np.float64]) -> NDArray[np.float64]:
        x, y, z = s
        return np.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])

    out = np.empty((piece, state.shape[1]))
    for step in range(-500, piece):  # Runge & Kutta's fourth-order steps
        a = slope(state)
        b = slope(state + dt / 2 * a)
        c = slope(state + dt / 2 * b)
        d = slope(state + dt * c)
        state = state + dt / 6 * (a + 2 * b + 2 * c + d)
        if step >= 0:
            out[step] = state[0]
    x = out.T.reshape(-1)[:n_steps]
    values: Floats = (x + noise * x.std() * rng.standard_normal(n_steps)).astype(dtype)
    values.flags.writeable = False
    return values


def units(info: DeviceInfo, vector: int, scalar: int, most: int = 4096) -> int:
    """``vector`` or ``scalar`` things per compute unit, at least one and at most ``most``: enough for a while.

    ``vector`` where a work-item fills SIMD registers, ``scalar`` where thousands of scalar work-items run at once.
    """
    per = scalar if quirks_for(info).scalar_work_items else vector
    return max(min(max(info.compute_units, 1) * per, most), 1)


def scalar(info: DeviceInfo) -> bool:
    """Whether the device wants the problems of one with scalar work-items, thousands at once, as GPUs do."""
    return quirks_for(info).scalar_work_items


def exact_knn(dtype: str) -> Any:
    """The oracle of neighbours in these numbers."""
    return knn_float32_exact if dtype == "float32" else knn_float64_exact


@contextlib.contextmanager
def releasing(*held: Any) -> Iterator[None]:
    """Release all that is not None, the last first, at the end of the block."""
    with contextlib.ExitStack() as stack:
        for item in held:
            if item is not None:
                stack.callback(item.release)
        yield


@dataclass(frozen=True)
class SmallSearch:
    """A search, mostly of sizes that fit no work-group, leaf or node."""

    # ndarray (n_library,) or (n_library, n_series). Of several series the gaps are at the same places.
    library: Floats
    # Other series, for a cross search.
    query: Floats | None = None
    # Tp, radius: Steps ahead that a neighbour must exist, and the exclusion radius.
    Tp: int = 0
    radius: int = 0
    # library_mask, query_mask: Rows that may be neighbours, and those that are asked for.
    library_mask: NDArray[np.bool_] | None = None
    query_mask: NDArray[np.bool_] | None = None
    # Rows of an answer; 0 for all.
    shown: int = 0

    @property
    def asked(self) -> Floats:
        """The series that asks."""
        return self.library if self.query is None else self.query


def ragged(front: int, dtype: str) -> Iterator[SmallSearch]:
    """Searches in two series that are longer than ``front``, the steps that the oldest lag reaches back."""
    rng = np.random.default_rng(7)
    yield SmallSearch(rng.standard_normal((front + 47, 2)).astype(dtype))
    gappy = rng.standard_normal((front + 259, 2)).astype(dtype)
    gappy[[front + 5, front + 90, front + 91, front + 92]] = np.nan
    yield SmallSearch(gappy, None, 1, 3)
    # Equal values by the dozen: ties go to the smaller row.
    ties = rng.integers(0, 4, (front + 131, 2)).astype(dtype)
    yield SmallSearch(ties, rng.integers(0, 4, (front + 77, 2)).astype(dtype), -2, -1)

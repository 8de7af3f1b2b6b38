"""Times of kernels and whole calls on a device, beside what the device can do at most and what peers take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from calls import WholeCall, call_names, whole_calls
from ceilings import Ceiling
from common import clock
from counts import counted, own_entries
from untuned import every_problem

from pyedmcl.device.executor import Executor
from pyedmcl.device.info import DeviceInfo
from pyedmcl.tuner.measure import Recorder
from pyedmcl.tuner.problem import TuningCase, TuningProblem
from pyedmcl.tuning.parameters import source

_SECONDS_ENOUGH = 0.02  # of a round, on the device
_RUNS_MOST = 5
_PEER_SECONDS = 2.0  # a peer that takes longer is timed once


@dataclass(frozen=True)
class Figure:
    """What was measured of one problem.

    Attributes
    ----------
    kind : {"kernel", "call"}
        Of a kernel the time of its launches on the device counts, of a call all from host array to host result.
    name, problem, unit : str
    count : float
        How many ``unit`` one run goes through.
    seconds : tuple of float
        Of each round.
    shares : mapping
        Name of a ceiling to the share of it that was reached; what is not counted is left out.
    peer : str
        Name and version; empty where there is none.
    peer_seconds : tuple of float
    grades : mapping
        Kernel to the grades of the parameters it ran with (see docs/tuning.md).
    note : str
        Why there is no peer, where one is installed and failed.
    """

    kind: str
    name: str
    problem: str
    unit: str
    count: float
    seconds: tuple[float, ...]
    shares: Mapping[str, float] = field(default_factory=dict)
    peer: str = ""
    peer_seconds: tuple[float, ...] = ()
    grades: Mapping[str, Sequence[str]] = field(default_factory=dict)
    note: str = ""

    @property
    def median(self) -> float:
        """Seconds."""
        return median(self.seconds)

    @property
    def spread(self) -> float:
        """Mean absolute deviation from the median, in seconds."""
        return sum(abs(seconds - self.median) for seconds in self.seconds) / len(self.seconds)

    @property
    def rate(self) -> float:
        """``unit`` per second."""
        return self.count / self.median

    @property
    def ratio(self) -> float | None:
        """The peer's median over ours."""
        return median(self.peer_seconds) / self.median if self.peer_seconds else None

    def as_dict(self) -> dict[str, Any]:
        """In types of JSON."""
        record: dict[str, Any] = {
            "kind": self.kind, "name": self.name, "problem": self.problem, "median_s": self.median,
            "spread_s": self.spread, "rounds_s": list(self.seconds), "unit": self.unit, "count": self.count,
            "per_second": self.rate, "shares": dict(self.shares),
            "grades": {name: list(grades) for name, grades in self.grades.items()}, "note": self.note,
        }  # fmt: skip
        if self.peer_seconds:
            record |= {"peer": self.peer, "peer_median_s": median(self.peer_seconds),
                       "peer_rounds_s": list(self.peer_seconds), "ratio": self.ratio}  # fmt: skip
        return record


def known_names() -> tuple[str, ...]:
    """What may be named: kernels and calls; a name that is both stands for both."""
    return tuple(dict.fromkeys((*call_names(), *every_problem())))


def problems(requested: Sequence[str], info: DeviceInfo, quick: bool = False) -> list[TuningCase | WholeCall]:
    """What is measured: whole calls, then kernels; all of them where none is named."""
    chosen = tuple(dict.fromkeys(requested)) or known_names()
    todo: list[TuningCase | WholeCall] = [call for call in whole_calls(info, quick) if call.name in chosen]
    for name in chosen:
        if name in every_problem():
            cases = every_problem()[name].cases("rapid", info)
            todo += cases[:1] if quick else cases
    return todo


def figures(
    executor: Executor, todo: Sequence[TuningCase | WholeCall], ceilings: Mapping[str, Ceiling], *, rounds: int,
    with_peers: bool = True,
) -> Iterator[Figure]:  # fmt: skip
    """Measure one problem after the other.

    Parameters
    ----------
    executor : Executor
    todo : sequence
        From :func:`problems`.
    ceilings : mapping
        From :func:`ceilings.ceilings`.
    rounds : int
    with_peers : bool
    """
    for work in todo:
        if isinstance(work, WholeCall):
            yield of_call(work, ceilings, rounds, with_peers)
        else:
            yield of_kernel(executor, every_problem()[work.kernel], work, ceilings, rounds)


def of_kernel(
    executor: Executor, work: TuningProblem, case: TuningCase, ceilings: Mapping[str, Ceiling], rounds: int
) -> Figure:
    """The time on the device of the kernel's own launches in a case."""
    recorder, entries = Recorder(executor), own_entries(case.kernel, work.timed())
    seconds: list[float] = []
    with source.watching() as questions, work.open(recorder, case) as go:

        def run() -> None:
            go()
            executor.finish()

        run()
        for _ in range(rounds):
            total, runs = 0.0, 0
            while total < _SECONDS_ENOUGH and runs < _RUNS_MOST:
                recorder.events.clear()
                wall = clock(run)
                total += recorder.seconds(entries) or wall  # some drivers report no time
                runs += 1
            seconds.append(total / runs)
    count = counted(case)
    return Figure(
        "kernel", case.kernel, case.name, count.unit, count.amount, tuple(seconds),
        shares(count.work, median(seconds), ceilings), grades=_grades(questions.values()),
    )  # fmt: skip


def of_call(call: WholeCall, ceilings: Mapping[str, Ceiling], rounds: int, with_peers: bool) -> Figure:
    """The time of a whole call, and of the peer's in turn with it."""
    ours: list[float] = []
    theirs: list[float] = []
    with source.watching() as questions:
        call.ours()  # the first one compiles and opens what it needs, on either side
    peer, once, note = None, 0.0, ""
    try:
        peer = call.peer() if with_peers else None
        if peer is not None:
            once = clock(peer.call)
    except Exception as error:  # a peer's trouble must not end the benchmark
        peer, note = None, f"the peer failed: {type(error).__name__}: {error}"
    for number in range(rounds):
        ours.append(clock(call.ours))
        if peer is not None and (number == 0 or once < _PEER_SECONDS):
            theirs.append(clock(peer.call))
    return Figure(
        "call", call.name, call.problem, call.unit, call.count, tuple(ours),
        shares({"float32": call.operations}, median(ours), ceilings), peer.label if peer is not None else "",
        tuple(theirs), _grades(questions.values()), note,
    )  # fmt: skip


def shares(work: Mapping[str, float], seconds: float, ceilings: Mapping[str, Ceiling]) -> dict[str, float]:
    """The share of each ceiling that was reached; what was not counted or not measured is left out."""
    return {
        name: count / seconds / ceilings[name].rate
        for name, count in work.items()
        if count and name in ceilings and ceilings[name].rate > 0
    }


def _grades(questions: Any) -> dict[str, list[str]]:
    grades: dict[str, list[str]] = {}
    for question in questions:
        of_kernel = grades.setdefault(question.spec.name, [])
        if question.choice.grade not in of_kernel:
            of_kernel.append(question.choice.grade)
    return grades

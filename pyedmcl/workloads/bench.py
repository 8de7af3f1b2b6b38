"""Times of kernels and whole calls on a device, beside what the device can do at most and what peers take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..device.executor import Executor
from ..device.info import DeviceInfo
from ..errors import InputError
from ..tuner.measure import Recorder
from ..tuner.problems import names, workload
from ..tuner.workload import Case, Workload
from ..tuning import policy
from ..tuning.journal import centre
from .calls import WholeCall, call_names, whole_calls
from .ceilings import Ceiling

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
        return centre(self.seconds)[0]

    @property
    def spread(self) -> float:
        """Mean absolute deviation from the median, in seconds."""
        return centre(self.seconds)[1]

    @property
    def rate(self) -> float:
        """``unit`` per second."""
        return self.count / self.median

    @property
    def ratio(self) -> float | None:
        """The peer's median over ours."""
        return centre(self.peer_seconds)[0] / self.median if self.peer_seconds else None

    def as_dict(self) -> dict[str, Any]:
        """In types of JSON."""
        record: dict[str, Any] = {
            "kind": self.kind, "name": self.name, "problem": self.problem, "median_s": self.median,
            "spread_s": self.spread, "rounds_s": list(self.seconds), "unit": self.unit, "count": self.count,
            "per_second": self.rate, "shares": dict(self.shares),
            "grades": {name: list(grades) for name, grades in self.grades.items()}, "note": self.note,
        }  # fmt: skip
        if self.peer_seconds:
            record |= {"peer": self.peer, "peer_median_s": centre(self.peer_seconds)[0],
                       "peer_rounds_s": list(self.peer_seconds), "ratio": self.ratio}  # fmt: skip
        return record


def known_names() -> tuple[str, ...]:
    """What may be asked for: kernels and calls; a name that is both stands for both."""
    return tuple(dict.fromkeys((*call_names(), *names())))


def chosen(wanted: Sequence[str]) -> tuple[str, ...]:
    """The names that were asked for, all where there are none. Raises InputError."""
    known = known_names()
    for name in wanted:
        if name not in known:
            raise InputError(f"KERNEL={name!r}: one of {', '.join(known)} is needed")
    return tuple(dict.fromkeys(wanted)) or known


def problems(wanted: Sequence[str], info: DeviceInfo, quick: bool = False) -> list[Case | WholeCall]:
    """What a bench goes through: whole calls, then kernels. Raises InputError."""
    asked = chosen(wanted)
    found: list[Case | WholeCall] = [call for call in whole_calls(info, quick) if call.name in asked]
    for name in asked:
        if name in names():
            cases = workload(name).cases("rapid", info)
            found += cases[:1] if quick else cases
    return found


def figures(
    executor: Executor, todo: Sequence[Case | WholeCall], ceilings: Mapping[str, Ceiling], *, rounds: int,
    with_peers: bool = True,
) -> Iterator[Figure]:  # fmt: skip
    """Measure one problem after the other.

    Parameters
    ----------
    executor : Executor
    todo : sequence
        From :func:`problems`.
    ceilings : mapping
        From :func:`pyedmcl.workloads.ceilings.ceilings`.
    rounds : int
    with_peers : bool
    """
    for one in todo:
        if isinstance(one, WholeCall):
            yield _of_call(one, ceilings, rounds, with_peers)
        else:
            yield _of_kernel(executor, workload(one.kernel), one, ceilings, rounds)


def _of_kernel(executor: Executor, work: Workload, case: Case, ceilings: Mapping[str, Ceiling], rounds: int) -> Figure:
    recorder = Recorder(executor)
    seconds: list[float] = []
    with policy.watching() as seen, work.open(recorder, case) as go:
        go()
        executor.finish()
        for _ in range(rounds):
            total, runs = 0.0, 0
            while total < _SECONDS_ENOUGH and runs < _RUNS_MOST:
                recorder.events.clear()
                wall = _clock(lambda: _whole(executor, go))
                total += recorder.seconds(work.shown()) or wall  # some drivers report no time
                runs += 1
            seconds.append(total / runs)
    taken = centre(seconds)[0]
    done = {work.arithmetic(case): work.operations(case), work.memory: work.bytes(case)}
    return Figure(
        "kernel", case.kernel, case.name, work.unit, work.pairs(case), tuple(seconds), _shares(done, taken, ceilings),
        grades=_grades(seen.values()),
    )  # fmt: skip


def _of_call(call: WholeCall, ceilings: Mapping[str, Ceiling], rounds: int, with_peers: bool) -> Figure:
    seconds: list[float] = []
    others: list[float] = []
    with policy.watching() as seen:
        call.ours()  # the first one compiles and opens what it needs, on either side
    peer, theirs, once, note = "", call.ours, 0.0, ""
    try:
        found = call.peer() if with_peers else None
        if found is not None:
            peer, theirs = found
            once = _clock(theirs)
    except Exception as error:  # a peer's trouble must not end the bench
        peer, note = "", f"the peer failed: {type(error).__name__}: {error}"
    for number in range(rounds):
        seconds.append(_clock(call.ours))
        if peer and (number == 0 or once < _PEER_SECONDS):
            others.append(_clock(theirs))
    return Figure(
        "call", call.name, call.problem, call.unit, call.count, tuple(seconds),
        _shares({"float32": call.operations}, centre(seconds)[0], ceilings), peer, tuple(others),
        _grades(seen.values()), note,
    )  # fmt: skip


def _whole(executor: Executor, go: Callable[[], object]) -> None:
    go()
    executor.finish()


def _clock(function: Callable[[], object]) -> float:
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


def _shares(done: Mapping[str, float], seconds: float, ceilings: Mapping[str, Ceiling]) -> dict[str, float]:
    return {
        name: count / seconds / ceilings[name].rate
        for name, count in done.items()
        if count and name in ceilings and ceilings[name].rate > 0
    }


def _grades(asked: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in asked:
        grades = found.setdefault(one.spec.name, [])
        if one.choice.grade not in grades:
            grades.append(one.choice.grade)
    return found

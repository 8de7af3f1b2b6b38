"""Whether a device computes rightly, and how fast: the oracles of all kernels, whole calls, and a report of it.

For the first person who has a device that nobody has tried: what is found goes into a text to attach to an issue.
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import __version__
from ..device.doctor import Finding, diagnose
from ..device.executor import Executor
from ..device.fingerprint import device_key
from ..device.quirks import quirks_for
from ..edm.forecasts.simplex import simplex
from ..edm.maps.xmap import xmap
from ..errors import MissingExtraError
from ..recurrence.rqa import rqa
from .problem import TuningCase
from .problems import names, problem
from .problems.common import maps

_SAID_MOST = 2000
_NO_TIME = "the time was over"
Clock = Callable[[], float]


@dataclass(frozen=True)
class Outcome:
    """How one step ended.

    Attributes
    ----------
    step : str
        "kernel" or "call".
    name, case : str
    ended : str
        "passed", "failed", or "skipped" where there was no time or something optional is not installed.
    seconds : float
        Of a run, compiled before; NaN where none ended.
    said : str
        Why it did not pass.
    """

    step: str
    name: str
    case: str
    ended: str
    seconds: float = float("nan")
    said: str = ""


#: Whole calls: name, and what is computed on a device. Each is made twice and must give the same bits.
CALLS: dict[str, Callable[[str], Any]] = {
    "simplex, 1 x 200": lambda device: simplex(maps(200, 1)[:, 0], E=2, device=device).predicted,
    "xmap, 100 x 500, E=3": lambda device: xmap(maps(500, 100), E=3, device=device).rho,
    "xmap, 300 x 1,000, E=3": lambda device: xmap(maps(1000, 300), E=3, device=device).rho,
    "rqa, 5,000 points, m=3": lambda device: _determinism(5000, device),
    "rqa, 20,000 points, m=3": lambda device: _determinism(20_000, device),
}  # fmt: skip


def self_test(executor: Executor, seconds: float, clock: Clock = time.monotonic) -> Iterator[Outcome]:
    """Verify each kernel against its oracle, make whole calls, then verify more of each kernel until time is over.

    Parameters
    ----------
    executor : Executor
    seconds : float
        No step begins later; what is left out is told as skipped, but for the last part.
    clock : callable
    """
    end = clock() + seconds
    first = {name: problem(name).cases("rapid", executor.info)[0] for name in names()}
    for name, case in first.items():
        yield _skipped("kernel", name, case.name) if clock() >= end else _kernel(executor, case)
    for name, call in CALLS.items():
        yield _skipped("call", name, "") if clock() >= end else _call(name, call, executor)
    for name in names():
        for case in problem(name).cases("exhaustive", executor.info):
            if clock() >= end:
                return
            if case.given != first[name].given:
                yield _kernel(executor, case)


def _determinism(n: int, device: str) -> Any:
    measured: Any = rqa(maps(n, 1)[:, 0], m=3, radius=0.1, device=device)
    return measured.determinism


def _skipped(step: str, name: str, case: str) -> Outcome:
    return Outcome(step, name, case, "skipped", said=_NO_TIME)


def _kernel(executor: Executor, case: TuningCase) -> Outcome:
    def run() -> float:
        tuned = problem(case.kernel)
        tuned.verify(executor, case)
        with tuned.open(executor, case) as go:
            go()
            begun = time.perf_counter()
            go()
            return time.perf_counter() - begun

    return _outcome("kernel", case.kernel, case.name, run)


def _call(name: str, call: Callable[[Any], Any], executor: Executor) -> Outcome:
    def run() -> float:
        once = np.asarray(call(executor.info.id))
        begun = time.perf_counter()
        again = np.asarray(call(executor.info.id))
        seconds = time.perf_counter() - begun
        if not np.array_equal(once, again, equal_nan=True):
            raise ValueError("a second call gave other bits than the first")
        return seconds

    return _outcome("call", name, "", run)


def _outcome(step: str, name: str, case: str, run: Callable[[], float]) -> Outcome:
    try:
        return Outcome(step, name, case, "passed", run())
    except MissingExtraError as error:
        return Outcome(step, name, case, "skipped", said=str(error))
    except Exception as error:  # whatever a driver that nobody has tried does: it goes into the report
        return Outcome(step, name, case, "failed", said=f"{type(error).__name__}: {error}"[:_SAID_MOST])


def summary(outcomes: Sequence[Outcome]) -> str:
    """How many steps ended in which way, and what to do where time was short."""
    counts = {ended: sum(outcome.ended == ended for outcome in outcomes) for ended in ("passed", "failed", "skipped")}
    said = ", ".join(f"{number} {ended}" for ended, number in counts.items())
    late = sum(outcome.said == _NO_TIME for outcome in outcomes)
    return f"{said}; {late} had no time, which a larger --seconds gives them" if late else said


def report(executor: Executor, outcomes: Sequence[Outcome], findings: Sequence[Finding] | None = None) -> str:
    """The report as Markdown, of what has ended so far."""
    info = executor.info
    all_findings = diagnose() if findings is None else findings
    lines = [
        f"# Self-test of pyedmcl on {info.name}", "", f"{summary(outcomes)}.", "", "## System", "",
        f"* pyedmcl {__version__}, Python {sys.version.split()[0]}, NumPy {np.__version__}, "
        f"{platform.system()} {platform.release()} {platform.machine()}",
        *(f"* {finding.level}: {finding.what}" for finding in all_findings), "", "## Device", "",
        *(f"* {name}: {value}" for name, value in info.as_dict().items()), f"* key: {device_key(info).digest()}",
        *(f"* treated so: {reason}" for reason in quirks_for(info).reasons), "", "## Steps", "",
        "| step | name | case | ended | milliseconds |", "| --- | --- | --- | --- | --- |",
        *(f"| {o.step} | {o.name} | {o.case} | {o.ended} | {_milliseconds(o.seconds)} |" for o in outcomes), "",
    ]  # fmt: skip
    for outcome in outcomes:
        if outcome.said and outcome.said != _NO_TIME:
            lines += [f"### {outcome.name} {outcome.case}: {outcome.ended}", "", "```", outcome.said, "```", ""]
    return "\n".join(lines)


def _milliseconds(seconds: float) -> str:
    return "" if np.isnan(seconds) else f"{seconds * 1e3:.1f}"

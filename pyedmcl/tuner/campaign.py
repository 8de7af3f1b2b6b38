"""The tuning of several kernels on a device, also within a process at work, and a test of the device itself."""

from __future__ import annotations

import logging
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import __version__
from ..crossmap.xmap import xmap
from ..device.doctor import Finding, diagnose
from ..device.executor import Executor
from ..device.info import DeviceInfo, device_key
from ..device.quirks import quirks_for
from ..device.select import executor_for
from ..errors import InputError, MissingExtraError
from ..forecast.simplex import simplex
from ..kernels import NAMES
from ..kernels.kernel_spec import KernelSpec
from ..recurrence.rqa import rqa
from ..tuning.database import Database
from ..tuning.records import tuning_key
from .measure import Bench, Settings, Standing, Workers
from .problem import TuningCase, maps
from .problems import names, problem, tuned_spec
from .search import Space, Tuning, TuningSession

WORKER = (sys.executable, "-m", "pyedmcl.tuner.worker")
_WORKERS_MOST = 8
# What a case may take beyond its time: the last comparison is estimated.
_GRACE = 10.0
# What a problem takes beside the search (compiling and verifying the defaults, the last comparison), in the unit of
# weights.
_FIXED = 6.0


@dataclass(frozen=True)
class Mode:
    """How thorough a tuning is."""

    # For each case, where no budget is given; infinite for as long as there is something left to try.
    seconds: float
    settings: Settings
    # compile_seconds, run_seconds: After which a configuration counts as hanging.
    compile_seconds: float
    run_seconds: float
    # Seconds that a case must get to be worth while: with a smaller budget the less common cases are left out.
    least: float = 8.0


DEPTH = {
    "rapid": Mode(20.0, Settings("greedy", rounds=3, duel=7, batch=8), 15.0, 10.0),
    "normal": Mode(60.0, Settings("greedy", rounds=5, duel=11, batch=8), 60.0, 20.0, 12.0),
    "exhaustive": Mode(math.inf, Settings("exhaustive", rounds=5, duel=11, batch=16), 60.0, 20.0),
}


@dataclass(frozen=True)
class Plan:
    """A case and its share of the time, relative to others.

    It is the logarithm of the number of combinations, and something for what every problem takes.
    """

    case: TuningCase
    weight: float


def plan(kernels: Sequence[str], mode: str, info: DeviceInfo, budget: float | None = None) -> list[Plan]:
    """What a tuning will go through, in order.

    Parameters
    ----------
    kernels : sequence of str
        All that have something to tune, where empty.
    budget : float, optional
        Seconds for all; where they are few, the less common cases are left out.
    """
    if mode not in DEPTH:
        raise InputError(f"mode={mode!r}: one of {', '.join(DEPTH)} is needed")
    if budget is not None and not budget > 0:
        raise InputError(f"budget={budget!r}: seconds above 0 are needed")
    for name in kernels:
        if name not in names():
            why = "there is nothing to tune; " if name in NAMES else ""
            raise InputError(f"KERNEL={name!r}: {why}one of {', '.join(names())} is needed")
    cases = {name: problem(name).cases(mode, info) for name in (dict.fromkeys(kernels) or names())}
    weights = {name: math.log2(Space(tuned_spec(name), info).raw_count()) + _FIXED for name in cases}
    while budget is not None and sum(map(len, cases.values())) * DEPTH[mode].least > budget:
        # Kernels with much to tune keep more of their cases.
        longest = max((name for name in cases if len(cases[name]) > 1), default=None,
                      key=lambda name: len(cases[name]) / weights[name])  # fmt: skip
        if longest is None:
            break
        cases[longest].pop()
    return [Plan(case, weights[name]) for name, some in cases.items() for case in some]


def tune(
    kernels: Sequence[str], info: DeviceInfo, *, mode: str = "normal", budget: float | None = None, seed: int = 0,
    fresh: bool = False, database: Database | None = None,
    report: Callable[[Standing], None] | None = None, command: Sequence[str] = WORKER,
) -> Iterator[Standing]:  # fmt: skip
    """Tune kernels on a device, in processes of their own; outcomes come as cases end.

    Parameters
    ----------
    kernels, info, mode, budget
        See :func:`plan`. Without a budget each case takes what the mode gives it.
    fresh : bool
        Do not reuse the times of earlier tunings. What was wrong, failed or hung is never tried again.
    report : callable, optional
        Called with the standing of the case at hand whenever it changes.
    command : sequence of str, optional
        What to start as a worker.
    """
    plans = plan(kernels, mode, info, budget)
    depth = DEPTH[mode]
    settings = replace(depth.settings, seed=seed, resume=not fresh)
    session = TuningSession(info, database or Database(), settings, report)
    end = time.monotonic() + budget if budget is not None else math.inf
    cores = os.cpu_count() or 1
    # More processes than cores compile no faster, and each holds a context on the device.
    count = min(cores, _WORKERS_MOST, info.compute_units if quirks_for(info).on_host else cores)
    with Workers(command, info.id, count=count, compile_seconds=depth.compile_seconds,
                 run_seconds=depth.run_seconds) as workers:  # fmt: skip
        for number, one in enumerate(plans):
            now = time.monotonic()
            if budget is None:
                until = now + depth.seconds
            else:
                if number and now > end - depth.least / 2:
                    return
                until = now + (end - now) * one.weight / sum(p.weight for p in plans[number:])
            workers.until = until + _GRACE
            kernel = tuned_spec(one.case.kernel)
            yield Tuning(workers, kernel, one.case, session, until).run()


# Tuning, and verifying what was tuned elsewhere, within the process that is about to run a job.


log = logging.getLogger(__name__)

_AT_WORK = Settings("greedy", rounds=2, duel=5, batch=4)


def verify_at_work(
    spec: KernelSpec, specialisation: Mapping[str, Any], info: DeviceInfo, sizes: Mapping[str, int],
    parameters: Mapping[str, Any],
) -> tuple[str, str]:  # fmt: skip
    """Compare what a configuration computes with the oracle, on ragged problems like the one at hand.

    Parameters
    ----------
    specialisation, sizes : mapping
        What the engine gives :func:`pyedmcl.tuning.parameters.parameters`.

    Returns
    -------
    status : str
        "ok", "wrong", "failed", or "stopped" where nothing can be said.
    why : str
    """
    case = problem(spec.name).like(specialisation, sizes, info) if spec.name in names() else None
    if case is None:
        return "stopped", "there is no tuning problem like it"
    reply = Bench(executor_for(info)).verify(case, parameters)
    return reply.status, reply.note


def tune_at_work(
    spec: KernelSpec, specialisation: Mapping[str, Any], info: DeviceInfo, sizes: Mapping[str, int], budget: float
) -> None:
    """Tune one kernel for what an engine is about to ask for, and record it in the database.

    Parameters
    ----------
    specialisation, sizes : mapping
        What the engine gives :func:`pyedmcl.tuning.parameters.parameters`.
    budget : float
        Seconds.
    """
    if spec.name not in names():
        log.info("the kernel %s has no tuning problem, so it cannot be tuned", spec.name)
        return
    case = problem(spec.name).like(specialisation, sizes, info)
    if case is None:
        log.info("the kernel %s has no tuning problem like %s of %s", spec.name, dict(specialisation), dict(sizes))
        return
    database = Database()
    session = TuningSession(info, database, _AT_WORK)
    backend = Bench(executor_for(info))
    until = time.monotonic() + budget
    outcome = Tuning(backend, tuned_spec(spec.name), case, session, until).run()
    own_key = tuning_key(spec, specialisation, info, sizes)
    if outcome.key is None:
        log.warning("%s could not be tuned: %s", spec.name, outcome.note)
    elif outcome.key != own_key:
        # The case is a little different, or its engine asks for several things: what was asked for is answered too.
        trial = database.start(own_key, outcome.parameters, session=session.name, case=case.text(), final=True)
        database.finish(trial, status="ok", seconds=[outcome.seconds], note="from a case like it")


# Whether a device computes rightly, and how fast: the oracles of all kernels, whole calls, and a report of it.
#
# For the first person who has a device that nobody has tried: what is found goes into a text to attach to an issue.


_SAID_MOST = 2000
_NO_TIME = "the time was over"
Clock = Callable[[], float]


@dataclass(frozen=True)
class Outcome:
    """How one step ended."""

    # "kernel" or "call".
    step: str
    name: str
    case: str
    # "passed", "failed", or "skipped" where there was no time or something optional is not installed.
    ended: str
    # Of a run, compiled before; NaN where none ended.
    seconds: float = float("nan")
    # Why it did not pass.
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
    seconds : float
        No step begins later; what is left out is told as skipped, but for the last part.
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

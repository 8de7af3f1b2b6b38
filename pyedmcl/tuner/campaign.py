"""The tuning of several kernels on a device: which cases, how long each, in which processes."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..device.info import DeviceInfo
from ..device.quirks import quirks_for
from ..errors import InputError
from ..kernels import NAMES
from ..tuning.database import Database
from .isolate import Workers
from .outcome import Settings, Standing
from .problem import TuningCase
from .problems import names, problem, tuned_spec
from .search import Tuning, TuningSession
from .space import Space

WORKER = (sys.executable, "-m", "pyedmcl.tuner.worker")
_WORKERS_MOST = 8
# What a case may take beyond its time: the last comparison is estimated.
_GRACE = 10.0
# What a problem takes beside the search (compiling and verifying the defaults, the last comparison), in the unit of
# weights.
_FIXED = 6.0


@dataclass(frozen=True)
class Mode:
    """How thorough a tuning is.

    Attributes
    ----------
    seconds : float
        For each case, where no budget is given; infinite for as long as there is something left to try.
    settings : Settings
    compile_seconds, run_seconds : float
        After which a configuration counts as hanging.
    least : float
        Seconds that a case must get to be worth while: with a smaller budget the less common cases are left out.
    """

    seconds: float
    settings: Settings
    compile_seconds: float
    run_seconds: float
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
    mode : str
    info : DeviceInfo
    budget : float, optional
        Seconds for all; where they are few, the less common cases are left out.

    Raises
    ------
    InputError
        An unknown kernel, or one without anything to tune; another mode; a budget that is not positive.
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
    seed : int
    fresh : bool
        Do not reuse the times of earlier tunings. What was wrong, failed or hung is never tried again.
    database : Database, optional
    report : callable, optional
        Called with the standing of the case at hand whenever it changes.
    command : sequence of str, optional
        What to start as a worker.

    Raises
    ------
    InputError
        See :func:`plan`.
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

"""``pyedmcl tune neighbors``: measure what the searches for neighbours cost here, for ``neighbors="exact"``."""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING, Any

from ..errors import InputError, Interrupted
from .talk import Talk
from .tune_table import seconds_text, told_place

if TYPE_CHECKING:
    from ..device.info import DeviceInfo
    from ..neighbors.rates_fit import Timing

#: What stands beside the names of kernels.
NAME = "neighbors"
_TIMED = ("exact", "order", "pruned", "build", "tree")
_HEADER = ("series", "states", "E", "computed", *_TIMED)


def seconds_for(mode: str, budget: float | None) -> float:
    """The budget, or what the mode gives. Raises InputError for another mode."""
    from ..tuner.neighbor_rates import SECONDS

    if mode not in SECONDS:
        raise InputError(f"mode={mode!r}: one of {', '.join(SECONDS)} is needed")
    return SECONDS[mode] if budget is None else budget


def explain(talk: Talk, info: DeviceInfo, seconds: float) -> dict[str, Any]:
    """What would be timed, and the rates that hold now."""
    from ..neighbors.rates import rates_of
    from ..tuner.neighbor_rates import cases
    from ..tuner.problems.common import scalar

    problems, rates_in_use = cases(scalar(info)), rates_of(info)
    talk.summary(f"\n{NAME}: what the exhaustive search, the pruned one and a k-d tree cost on {info.name}")
    for problem in problems:
        talk.summary(f"  problem: {problem.name}")
    talk.summary(f"  {seconds:g} s; what would not fit into them is left out. Rates now: {rates_in_use.source}")
    return {
        "problems": [vars(problem) for problem in problems], "seconds": seconds, "source": rates_in_use.source,
        "rates": rates_in_use.rates.as_dict(),
    }  # fmt: skip


def measure(talk: Talk, info: DeviceInfo, seconds: float) -> dict[str, Any]:
    """Measure, show, and keep the rates; for the JSON document.

    Raises
    ------
    Interrupted
        After Ctrl-C; what had been timed is kept where it suffices.
    InputError
        Too little could be timed within the budget.
    """
    from ..device.session import open_device
    from ..neighbors.rates import rates_of
    from ..tuner.neighbor_rates import DeviceRunner
    from ..tuner.neighbor_rates import measure as timings_of

    runner = DeviceRunner(open_device(info.id))
    talk.remark(f"{info.name} ({info.platform}, driver {info.driver}): searches for neighbours, {seconds:g} s")
    if "tree" not in runner.searches:
        talk.remark("scipy is not installed, so the k-d tree is left out: pip install 'pyedmcl[approximate]'")
    before = rates_of(info)
    timings: list[Timing] = []
    stopped: KeyboardInterrupt | None = None
    try:
        for timing in timings_of(runner, runner.problems, seconds):
            timings.append(timing)
            talk.remark(_line(timing))
    except KeyboardInterrupt as stop:
        stopped = stop
    kept = _keep(talk, info, timings, before)
    if stopped is not None:
        what = "rates from these are kept in the database" if kept else "too few for rates, so nothing is kept"
        raise Interrupted(f"stopped after {len(timings)} problems: {what}") from stopped
    if kept is None:
        raise InputError(
            f"--budget {seconds:g}s: {len(timings)} problems were timed, too few for rates. Give a larger --budget"
        )
    return kept


def _keep(talk: Talk, info: DeviceInfo, timings: list[Timing], before: Any) -> dict[str, Any] | None:
    """Rates of what was timed, shown and stored; None where the timings do not tell the most important ones."""
    from ..device.fingerprint import device_key
    from ..neighbors.rates import Rates
    from ..neighbors.rates_fit import errors, fit, suffices
    from ..tuning.database import Database, new_session
    from ..tuning.journal import Trial
    from ..tuning.key import canonical, model_key

    if not suffices(timings):
        return None
    rates: Rates = fit(timings, before.rates)
    problems = [timing.record(rates) for timing in timings]
    database = Database()
    database.add([Trial(
        model_key(NAME, device_key(info)), rates.as_dict(), "ok", note=canonical({"problems": problems}),
        when=time.time(), session=new_session(), final=True,
    )])  # fmt: skip
    wrong = errors(timings, rates)
    if not talk.quiet:
        talk.table(_HEADER, [_row(timing, rates) for timing in timings], right=_HEADER[1:])
        rows = [(name, f"{value:.3g}", f"{getattr(before.rates, name):.3g}") for name, value in rates.as_dict().items()]
        talk.table(("rate", "seconds", f"before ({before.source})"), rows, right=("seconds",))
    talk.summary(
        "estimates, in brackets, and measured times differ by a factor of "
        f"{median(wrong):.2f} in the median, {max(wrong):.2f} at most"
    )
    return {
        "device": info.as_dict(), "database": told_place(talk, database),
        "rates": rates.as_dict(), "before": {"source": before.source, "rates": before.rates.as_dict()},
        "problems": problems, "error": {"median": median(wrong), "most": max(wrong)},
    }  # fmt: skip


def _line(timing: Timing) -> str:
    parts = [f"{name} {seconds_text(getattr(timing, name))}" for name in _TIMED if getattr(timing, name) is not None]
    return f"{timing.series}, {timing.n:,} states, E={timing.E}: {', '.join(parts)}"


def _row(timing: Timing, rates: Any) -> tuple[str, ...]:
    predicted = timing.predicted(rates)
    cells: list[str] = [timing.series, f"{timing.n:,}", str(timing.E), f"{timing.share:.2%}" if timing.pruned else ""]
    for name in _TIMED:
        measured = getattr(timing, name)
        cells.append("" if measured is None else f"{seconds_text(measured)} ({seconds_text(predicted[name])})")
    return tuple(cells)

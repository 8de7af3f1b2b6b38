"""``pyedmcl tune``: find fast parameters for this device, and remember them."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError, Interrupted
from . import options, tune_neighbors
from .talk import Talk
from .tune_table import NUMBERS, first_line, seconds_text, told_place, trouble_text, watched

if TYPE_CHECKING:
    from ..device.info import DeviceInfo
    from ..tuner.outcome import Standing

_HEADER = ("kernel", "case", "default", "best", "gain", "tried", "bad", "note")
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_SHOWN = 5


def tune(
    kernels: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KERNEL]...", show_default=False,
                       help="Default: all kernels. 'neighbors' measures what the searches for neighbours cost."),
    ] = None,
    mode: Annotated[
        str, typer.Option("--mode", metavar="rapid|normal|exhaustive", help="How many problems, and how thoroughly.")
    ] = "normal",
    budget: Annotated[
        str | None,
        typer.Option("--budget", metavar="60s|5m|1h", show_default=False,
                     help="Time for everything together. Default: rapid 20 s and normal 60 s for each problem."),
    ] = None,
    device: options.Device = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the search.")] = 0,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Time again what earlier tunings have timed; bad ones stay barred.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what would be searched, with reasons, and run nothing.")
    ] = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:  # fmt: skip
    """Tune kernels on a device: try configurations, verify them, and remember the fastest.

    Answers never change. Everything that has ended is kept: after Ctrl-C the same command goes on where it was.
    """
    talk = Talk(quiet=quiet, as_json=json)
    seconds = _seconds(budget)
    from ..device.select import select

    info = select(device).device
    names = list(dict.fromkeys(kernels or []))
    searches = tune_neighbors.NAME in names
    only = [name for name in names if name != tune_neighbors.NAME]
    # Of a budget for everything the searches get as much as a kernel.
    share = None if seconds is None else seconds / len(names) if searches else 0.0
    document: dict[str, Any] = {}
    if only or not searches:
        rest = None if seconds is None else seconds - (share or 0.0)
        if explain:
            document = _explain(talk, only, mode, rest, info)
        else:
            document = _tune(talk, only, info, mode=mode, budget=rest, seed=seed, fresh=fresh)
    if searches:
        search_seconds = tune_neighbors.seconds_for(mode, share)
        if explain:
            document[tune_neighbors.NAME] = tune_neighbors.explain(talk, info, search_seconds)
        else:
            with _ended_in_order():
                document[tune_neighbors.NAME] = tune_neighbors.measure(talk, info, search_seconds)
    talk.document(document)


def _tune(talk: Talk, kernels: list[str], info: DeviceInfo, **wanted: Any) -> dict[str, Any]:
    from ..tuner import campaign
    from ..tuning.database import Database

    plans = campaign.plan(kernels, wanted["mode"], info, wanted["budget"])
    database = Database()
    talk.remark(f"{info.name} ({info.platform}, driver {info.driver}): {len(plans)} problems")
    outcomes: list[Standing] = []
    with _ended_in_order(), watched(talk, len(plans)) as report:
        try:
            for outcome in campaign.tune(kernels, info, database=database, report=report, **wanted):
                outcomes.append(outcome)
        except KeyboardInterrupt as stop:
            raise Interrupted(
                f"stopped: {len(outcomes)} of {len(plans)} problems are tuned. Every trial that had ended is kept in "
                f"{database.path}; the same command goes on there"
            ) from stop
    rows = [
        (o.case.kernel, o.case.name, seconds_text(o.default_seconds), seconds_text(o.seconds), f"{o.gain:.2f}x",
         o.tried, len(o.trouble), first_line(o.note))
        for o in outcomes
    ]  # fmt: skip
    if not talk.quiet:
        talk.table(_HEADER, rows, right=NUMBERS)
    for outcome in outcomes:
        for trouble in outcome.trouble[:_SHOWN]:
            talk.remark(f"{outcome.case.kernel}: {trouble_text(trouble)}")
        if len(outcome.trouble) > _SHOWN:
            talk.remark(f"{outcome.case.kernel}: {len(outcome.trouble) - _SHOWN} more that cannot be used")
    if len(outcomes) < len(plans):
        talk.remark(f"the time was up before {len(plans) - len(outcomes)} more problems: give a larger --budget")
    return {
        "device": info.as_dict(), "database": told_place(talk, database),
        "cases": [
            {
                "kernel": o.case.kernel, "case": o.case.name, "parameters": o.parameters, "kept": o.kept,
                "seconds": o.seconds, "default_seconds": o.default_seconds, "gain": o.gain,
                "counts": dict(o.counts), "note": o.note,
                "trouble": [{"parameters": p, "status": s, "why": w} for p, s, w in o.trouble],
            }
            for o in outcomes
        ],
    }  # fmt: skip


def _explain(talk: Talk, kernels: list[str], mode: str, seconds: float | None, info: DeviceInfo) -> dict[str, Any]:
    from ..tuner import campaign
    from ..tuner.problems import tuned_spec
    from ..tuner.space import Space

    plans = campaign.plan(kernels, mode, info, seconds)
    depth = campaign.DEPTH[mode]
    told: list[dict[str, Any]] = []
    for name in dict.fromkeys(one.case.kernel for one in plans):
        cases = [one.case for one in plans if one.case.kernel == name]
        kernel = tuned_spec(name)
        space = Space(kernel, info, cases[0].numbers.get("given"))
        defaults = space.defaults()
        count = space.count()
        talk.summary(
            f"\n{name}: {space.raw_count():,} combinations, {count:,} of them valid for {cases[0].name} on {info.name}"
        )
        rows = [(t.name, t.values, defaults[t.name], t.why) for t in kernel.tunables]
        shown = [(tunable, ", ".join(map(str, values)), *more) for tunable, values, *more in rows]
        talk.table(("tunable", "values", "default", "what it does"), shown)
        for constraint in space.constraints:
            talk.summary(f"  must hold: {constraint.reason}")
        exact = "to the last bit" if kernel.exact else "within a stated tolerance"
        talk.summary(f"  verified against {kernel.oracle} {exact}")
        for case in cases:
            talk.summary(f"  problem: {case.name}")
        told.append({
            "kernel": name, "combinations": space.raw_count(), "valid": count,
            "tunables": [dict(zip(("name", "values", "default", "why"), row, strict=True)) for row in rows],
            "constraints": [constraint.reason for constraint in space.constraints],
            "oracle": kernel.oracle, "exact": kernel.exact, "cases": [dict(c.numbers, name=c.name) for c in cases],
        })  # fmt: skip
    share = "no limit" if seconds is None and depth.seconds == float("inf") else (
        f"{seconds:g} s for all" if seconds is not None else f"{depth.seconds:g} s for each problem"
    )
    settings = depth.settings
    talk.summary(f"\nmode {mode}: {settings.strategy} search, {settings.rounds} rounds, {share}")
    return {"device": info.as_dict(), "mode": mode, "strategy": settings.strategy, "kernels": told}


def _seconds(text: str | None) -> float | None:
    """``60s``, ``5m``, ``1h`` or plain seconds."""
    if text is None:
        return None
    number = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = text.strip()[len(number) :]
    try:
        seconds = float(number) * _UNITS[unit]
    except (ValueError, KeyError):
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise InputError(f"--budget {text}: a time such as 60s, 5m or 1h is needed")
    return seconds


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Whoever ends this process politely gets what Ctrl-C gets: what is under way is forgotten, the rest kept."""

    def stop(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before: Callable[..., Any] | int | None = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

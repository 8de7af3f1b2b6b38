"""``pyedmcl tune`` and ``db``: find fast parameters for this device, remember them, and pass them on."""

from __future__ import annotations

import json as json_lines
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError, Interrupted, StoreWriteError
from . import options
from .output import HELP, Command, Talk

if TYPE_CHECKING:
    from ..device.info import DeviceInfo
    from ..search.rates import Timing
    from ..tuner.measure import Standing
    from ..tuning.database import Database
    from ..tuning.records import Trial


# How a tuning is watched: a live table on a terminal, a line for each problem in a log.


_NOTE_WIDTH = 60
_COLUMNS = ("kernel", "problem", "tried", "bad", "default", "best", "gain", "")
#: Columns of numbers.
NUMBERS = ("default", "best", "gain", "tried", "bad")


def seconds_text(seconds: float) -> str:
    """``12.3 ms``; empty where nothing is known."""
    if not 0 < seconds < float("inf"):
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def first_line(text: str) -> str:
    """The beginning of a reason."""
    line = text.strip().splitlines()[0] if text.strip() else ""
    return line if len(line) <= _NOTE_WIDTH * 2 else f"{line[: _NOTE_WIDTH * 2]}..."


class Table:
    """A live table on stderr.

    Parameters
    ----------
    total : int
        Problems that are planned.
    """

    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.live import Live

        self._total = total
        self._standings: dict[str, Standing] = {}
        self.live = Live(console=Console(stderr=True), refresh_per_second=4, transient=True,
                         get_renderable=self._render)  # fmt: skip

    def show(self, standing: Standing) -> None:
        """Take note; what is shown is drawn a few times in a second."""
        self._standings[standing.case.text()] = standing

    def _render(self) -> Any:
        from rich import box
        from rich.table import Table as Grid

        grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, caption=self._caption(), caption_justify="left")
        for name in _COLUMNS:
            grid.add_column(name, justify="right" if name in NUMBERS else "left")
        for standing in list(self._standings.values()):
            grid.add_row(
                standing.case.kernel, standing.case.name, str(standing.tried), str(len(standing.trouble)),
                seconds_text(standing.default_seconds), seconds_text(standing.seconds), f"{standing.gain:.2f}x",
                first_line(standing.note) if standing.done else standing.phase,
            )  # fmt: skip
        return grid

    def _caption(self) -> str:
        progress = f"{sum(standing.done for standing in self._standings.values())} of {self._total} problems"
        for standing in reversed(list(self._standings.values())):
            if standing.trouble:
                return f"{progress}; last bad one: {trouble_text(standing.trouble[-1])}"
        return progress


@contextmanager
def watched(talk: Talk, total: int) -> Iterator[Callable[[Standing], None]]:
    """What to call with each change while ``total`` problems are tuned: a table on a terminal, else a log."""
    if sys.stderr.isatty() and not talk.quiet:
        table = Table(total)
        with table.live:
            yield table.show
    else:  # a log need not grow with every trial
        yield lambda standing: talk.remark(line(standing)) if standing.done else None


def told_place(talk: Talk, database: Database) -> str | None:
    """Say where the outcome is kept, and what is wrong with that; returns the path of a file."""
    for problem in database.problems:
        talk.remark(problem)
    place = None if database.in_memory else str(database.path)
    talk.summary(f"kept in {place or 'memory only'}")
    return place


def line(standing: Standing) -> str:
    """How a problem ended, for a log."""
    parts = [f"{standing.case.kernel}, {standing.case.name}: {standing.tried} tried"]
    if standing.trouble:
        parts.append(f"{len(standing.trouble)} cannot be used")
    if standing.seconds:
        parts.append(f"{seconds_text(standing.default_seconds)} -> {seconds_text(standing.seconds)}")
        parts.append(f"{standing.gain:.2f}x")
    if standing.note:
        parts.append(first_line(standing.note))
    return ", ".join(parts)


def trouble_text(trouble: tuple[Mapping[str, Any], str, str]) -> str:
    """What cannot be used, how it ended, and the beginning of the reason."""
    parameters, status, why = trouble
    words = ", ".join(f"{name}={value}" for name, value in parameters.items())
    return f"{status}: {words}: {first_line(why)}"


# ``pyedmcl tune neighbors``: measure what the searches for neighbours cost here, for ``neighbors="exact"``.


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


def explain_neighbors(talk: Talk, info: DeviceInfo, seconds: float) -> dict[str, Any]:
    """What would be timed, and the rates that hold now."""
    from ..search.rates import rates_of
    from ..tuner.neighbor_rates import cases
    from ..tuner.problem import scalar

    problems, rates_in_use = cases(scalar(info)), rates_of(info)
    talk.summary(f"\n{NAME}: what the exhaustive search, the pruned one and a k-d tree cost on {info.name}")
    for problem in problems:
        talk.summary(f"  problem: {problem.name}")
    talk.summary(f"  {seconds:g} s; what would not fit into them is left out. Rates now: {rates_in_use.source}")
    return {
        "problems": [vars(problem) for problem in problems], "seconds": seconds, "source": rates_in_use.source,
        "rates": rates_in_use.rates.as_dict(),
    }  # fmt: skip


def measure_neighbors(talk: Talk, info: DeviceInfo, seconds: float) -> dict[str, Any]:
    """Measure, show, and keep the rates; for the JSON document.

    Raises
    ------
    Interrupted
        After Ctrl-C; what had been timed is kept where it suffices.
    InputError
        Too little could be timed within the budget.
    """
    from ..device.select import open_device
    from ..search.rates import rates_of
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
    from ..device.info import device_key
    from ..search.rates import Rates, errors, fit, suffices
    from ..tuning.database import Database, new_session
    from ..tuning.records import Trial, canonical, model_key

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


_TUNE_HEADER = ("kernel", "case", "default", "best", "gain", "tried", "bad", "note")
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
    searches = NAME in names
    only = [name for name in names if name != NAME]
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
        search_seconds = seconds_for(mode, share)
        if explain:
            document[NAME] = explain_neighbors(talk, info, search_seconds)
        else:
            with _ended_in_order():
                document[NAME] = measure_neighbors(talk, info, search_seconds)
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
        talk.table(_TUNE_HEADER, rows, right=NUMBERS)
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
    from ..tuner.search import Space

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


# ``pyedmcl db``: what was tuned, which parameters are best, and how to pass them on.


app = typer.Typer(
    name="db",
    help="Look into the database of tuned parameters, and pass them on.",
    epilog=HELP,
    no_args_is_help=True,
    add_completion=False,  # the group above completes
    context_settings={"help_option_names": ["-h", "--help"]},
)

Kernels = Annotated[
    list[str] | None, typer.Argument(metavar="[KERNEL]...", help="Only these kernels.", show_default=False)
]
OfDevice = Annotated[
    str | None,
    typer.Option("--device", metavar="NAME", help="Only devices whose name or runtime contains this.",
                 show_default=False),
]  # fmt: skip
_STATES = ("ok", "slow", "wrong", "failed", "hung", "started")


def own_database() -> Database:
    """The database of this user."""
    from ..tuning.database import Database

    return Database()


def _named(names: Sequence[str] | None) -> tuple[str, ...]:
    """Kernels, and what else is measured; all of both where nothing is named."""
    from ..kernels import NAMES
    from ..tuning.records import MODELS

    for name in names or ():
        if name not in NAMES and name not in MODELS:
            raise InputError(f"KERNEL={name!r}: there is no such kernel; there are {', '.join((*NAMES, *MODELS))}")
    return tuple(names or (*NAMES, *MODELS))


def require_kept(database: Database, what: str) -> None:
    """Raise StoreWriteError where changes would end with this process."""
    if database.in_memory:
        raise StoreWriteError(
            f"{database.path} cannot be written: {what}. Set PYEDMCL_DATA_DIR to a folder that can be written."
        )


def _is_of(trial: Trial, device: str | None) -> bool:
    return device is None or trial.key.device.is_called(device)


@app.command("show", cls=Command, epilog=HELP)
def show(
    kernels: Kernels = None, device: OfDevice = None, json: options.Json = False, debug: options.Debug = False
) -> None:
    """Count the trials of each device and kernel, by how they ended; measured rates count as one trial a set."""
    talk = Talk(as_json=json)
    from ..tuning.records import digest_of

    chosen, database = _named(kernels), own_database()
    counts: dict[tuple[str, str, str, bool], Counter[str]] = defaultdict(Counter)
    newest: dict[tuple[str, str, str, bool], float] = {}
    for trial in database.trials():
        if _is_of(trial, device) and (not kernels or trial.key.kernel in chosen):
            key = trial.key
            place = (key.device.name, key.device.driver, key.kernel, digest_of(key.kernel) == key.digest)
            counts[place][trial.status] += 1
            newest[place] = max(trial.when, newest.get(place, 0.0))
    records: list[dict[str, Any]] = [
        {"device": place[0], "driver": place[1], "kernel": place[2], "current": place[3], "newest": newest[place],
         **{state: counts[place][state] for state in _STATES}}
        for place in sorted(counts)
    ]  # fmt: skip
    rows = [
        (r["kernel"], r["device"], r["driver"], "yes" if r["current"] else "no", *(r[state] for state in _STATES),
         time.strftime("%Y-%m-%d", time.localtime(r["newest"])) if r["newest"] else "imported")
        for r in records
    ]  # fmt: skip
    if rows:
        talk.table(("kernel", "device", "driver", "current", *_STATES, "newest"), rows, right=_STATES)
    else:
        talk.summary("no trials" + (" of these" if kernels or device else "; 'pyedmcl tune' makes some"))
    talk.summary(f"{database.path}")
    talk.document({"path": str(database.path), "problems": database.problems, "trials": records})


@app.command("best", cls=Command, epilog=HELP)
def best(
    kernels: Kernels = None, device: OfDevice = None, json: options.Json = False, debug: options.Debug = False
) -> None:
    """Show the best parameters of each kernel, device and size that was tuned; rates where they are named."""
    talk = Talk(as_json=json)
    from ..kernels import NAMES
    from ..tuning import knowledge
    from ..tuning.records import key_as_dict

    chosen = _named(kernels) if kernels else NAMES
    entries = knowledge.export(own_database(), chosen, device=device)
    rates = [entry for entry in entries if entry.key.kernel not in NAMES]
    rows = [
        (e.key.kernel, e.key.device.name, _words(e.key.specialisation), _words(e.key.size),
         "" if e.seconds is None else f"{e.seconds * 1e3:.4g}",
         ", ".join(f"{name}={value}" for name, value in e.parameters.items()))
        for e in entries
        if e not in rates
    ]  # fmt: skip
    if rows:
        talk.table(("kernel", "device", "specialised", "size", "ms", "parameters"), rows, right=("ms",))
    elif not rates:
        talk.summary("nothing was tuned for these kernels as they are now; 'pyedmcl tune' does it")
    for entry in rates:
        values = [(name, f"{value:.3g}") for name, value in entry.parameters.items()]
        talk.table((f"{entry.key.kernel} on {entry.key.device.name}", "seconds"), values, right=("seconds",))
    talk.document([{**key_as_dict(e.key), "parameters": e.parameters, "seconds": e.seconds} for e in entries])


def _words(text: str) -> str:
    """Canonical JSON as ``name=value`` for people."""

    def word(value: Any) -> str:
        return f"{value['count']} to {value['most']}" if isinstance(value, dict) else str(value)

    return ", ".join(f"{name}={word(value)}" for name, value in json_lines.loads(text).items())


@app.command("export", cls=Command, epilog=HELP)
def export(
    kernels: Kernels = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.jsonl", help="Default: stdout.", show_default=False),
    ] = None,
    device: OfDevice = None,
    trials: Annotated[
        bool, typer.Option("--trials", help="All trials, not only the best.")
    ] = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Write the best parameters and measured rates as JSON lines, for 'pyedmcl db import' on another machine."""
    talk = Talk(quiet=quiet)
    from ..tuning import knowledge
    from ..tuning.records import trial_line

    chosen, database = _named(kernels), own_database()
    if trials:
        chosen_trials = [t for t in database.trials() if _is_of(t, device) and (not kernels or t.key.kernel in chosen)]
        lines = [trial_line(trial) for trial in chosen_trials]
    else:
        lines = [knowledge.line(entry) for entry in knowledge.export(database, chosen, device=device)]
    if output is None:
        for line in lines:
            typer.echo(line)
        return
    from .output import check_place, write_bytes

    check_place(output)
    write_bytes(output, "".join(f"{line}\n" for line in lines).encode())
    talk.summary(f"{output}: {len(lines):,} {'trials' if trials else 'entries'}")


@app.command("import", cls=Command, epilog=HELP)
def take_in(
    files: Annotated[list[Path], typer.Argument(metavar="FILE.jsonl...", help="What 'pyedmcl db export' wrote.")],
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Add parameters that were tuned elsewhere; what was measured on this machine goes before them."""
    talk = Talk(quiet=quiet, as_json=json)
    from ..tuning import knowledge

    database = own_database()
    readings = [(file, knowledge.read(file)) for file in files]  # all of them before any is taken in
    records = []
    for file, reading in readings:
        new = knowledge.take_in(database, reading.entries)
        require_kept(database, f"{file} was not taken in")
        problems = reading.problems(str(file))
        for problem in problems:
            talk.remark(problem)
        talk.summary(f"{file}: {new:,} new of {len(reading.entries):,} entries that can be used")
        records.append({"file": str(file), "new": new, "usable": len(reading.entries), "problems": problems})
    talk.document({"path": str(database.path), "files": records})


@app.command("prune", cls=Command, epilog=HELP)
def prune(
    older_than: Annotated[
        float | None,
        typer.Option("--older-than", metavar="DAYS", min=0, help="Also trials older than this.", show_default=False),
    ] = None,
    imported: Annotated[bool, typer.Option("--imported", help="Also what came from files.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="All trials.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say how many, remove none.")] = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Remove what is never looked up again: trials of kernels that have changed since, and rates measured anew."""
    talk = Talk(quiet=quiet, as_json=json)
    from ..tuning.records import IMPORTED

    database = own_database()
    before = None if older_than is None else time.time() - older_than * 86400
    all_trials = database.trials()
    idle = database.idle(all_trials)
    chosen = [
        trial.id
        for trial in all_trials
        if everything
        or trial.id in idle
        or (before is not None and trial.when < before)
        or (imported and trial.session == IMPORTED)
    ]
    if chosen and not dry_run:
        database.remove(chosen)
        require_kept(database, "no trials were removed")
    would = "would be " if dry_run else ""
    talk.summary(f"{len(chosen):,} of {len(all_trials):,} trials {would}removed")
    counts = {"trials": len(all_trials), "chosen": len(chosen), "removed": not dry_run}
    talk.document({"path": str(database.path), **counts})


@app.command("doctor", cls=Command, epilog=HELP)
def doctor(json: options.Json = False, debug: options.Debug = False) -> None:
    """Check the database and the shipped parameters, and say what is in the way and how to mend it."""
    talk = Talk(as_json=json)
    from ..tuning.knowledge import diagnose

    findings = diagnose()
    for finding in findings:
        mend = f"\n         to mend it: {finding.how_to_mend}" if finding.how_to_mend else ""
        talk.summary(f"{finding.level:<7}  {finding.what}{mend}")
    talk.document([vars(finding) for finding in findings])


# ``pyedmcl db bar`` and ``unbar``: configurations that are kept away by hand.


__all__ = ["app", "bar", "unbar"]


@app.command("bar", cls=Command, epilog=HELP)
def bar(
    kernel: Annotated[str | None, typer.Argument(help="None: list what is kept away.", show_default=False)] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME=VALUE...", help="Every configuration with these values.", show_default=False),
    ] = None,
    device: Annotated[
        str, typer.Option("--device", metavar="NAME", help="Only on devices whose name or runtime contains this.")
    ] = "",
    why: Annotated[str, typer.Option("--why", help="A note for whoever finds it.")] = "",
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Keep tuned parameters of a kernel away, wherever they come from; a kernel's defaults are always there."""
    talk = Talk(quiet=quiet, as_json=json)
    from ..kernels import NAMES, spec
    from ..tuning import database

    where = own_database()
    if kernel is not None:
        if kernel not in NAMES:
            raise InputError(f"KERNEL={kernel!r}: there is no such kernel; there are {', '.join(NAMES)}")
        new_bar = database.Bar(kernel, database.parse(spec(kernel), parameters or ()), device, why)
        number = database.add(where, new_bar)
        require_kept(where, "nothing was barred")
        talk.summary(f"{number}: {new_bar} is kept away; 'pyedmcl db unbar {number}' takes that back")
    barred = database.stored(where)
    if kernel is None:
        rows = [(str(one.id), str(one), one.why) for one in barred]
        if rows:
            talk.table(("number", "kept away", "why"), rows, right=("number",))
        else:
            talk.summary("nothing is kept away by hand")
    talk.document([{"number": one.id, "kernel": one.kernel, "parameters": dict(one.parameters), "device": one.device,
                    "why": one.why} for one in barred])  # fmt: skip


@app.command("unbar", cls=Command, epilog=HELP)
def unbar(
    numbers: Annotated[list[int], typer.Argument(metavar="NUMBER...", help="As 'pyedmcl db bar' lists them.")],
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Let configurations be used again that were kept away by hand."""
    talk = Talk(quiet=quiet, as_json=json)
    from ..tuning import database

    where = own_database()
    stored_bars = {one.id: one for one in database.stored(where)}
    for number in numbers:
        if number not in stored_bars:
            raise InputError(f"NUMBER={number}: no such bar; 'pyedmcl db bar' lists them")
    database.remove(where, numbers)
    require_kept(where, "nothing was changed")
    for number in numbers:
        talk.summary(f"{number}: {stored_bars[number]} may be used again")
    talk.document({"removed": sorted(set(numbers))})

"""``pyedmcl db``: what was tuned, which parameters are best, and how to pass them on."""

from __future__ import annotations

import json as json_lines
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError, StoreWriteError
from . import options
from .exits import HELP, Command
from .talk import Talk

if TYPE_CHECKING:
    from ..tuning.database import Database
    from ..tuning.journal import Trial

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
    from ..tuning.key import MODELS

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
    from ..tuning.key import digest_of

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
    from ..tuning import wisdom
    from ..tuning.key import key_as_dict

    chosen = _named(kernels) if kernels else NAMES
    entries = wisdom.export(own_database(), chosen, device=device)
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
    from ..tuning import wisdom
    from ..tuning.journal import trial_line

    chosen, database = _named(kernels), own_database()
    if trials:
        chosen_trials = [t for t in database.trials() if _is_of(t, device) and (not kernels or t.key.kernel in chosen)]
        lines = [trial_line(trial) for trial in chosen_trials]
    else:
        lines = [wisdom.line(entry) for entry in wisdom.export(database, chosen, device=device)]
    if output is None:
        for line in lines:
            typer.echo(line)
        return
    from .files import check_place, write_bytes

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
    from ..tuning import wisdom

    database = own_database()
    readings = [(file, wisdom.read(file)) for file in files]  # all of them before any is taken in
    records = []
    for file, reading in readings:
        new = wisdom.take_in(database, reading.entries)
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
    from ..tuning.journal import IMPORTED

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
    from ..tuning.doctor import diagnose

    findings = diagnose()
    for finding in findings:
        mend = f"\n         to mend it: {finding.how_to_mend}" if finding.how_to_mend else ""
        talk.summary(f"{finding.level:<7}  {finding.what}{mend}")
    talk.document([vars(finding) for finding in findings])

"""``pyedmcl status``: how far a map or another run in a folder is, who computes it, and how long it will take."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .talk import Talk

if TYPE_CHECKING:
    from ..jobs.status import Status

_HEADER = ("process", "device", "state", "blocks done", "computing")
_SECONDS = 5.0  # between two looks


def status(
    result: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="The folder that xmap, ccm-matrix, network or 'rqa --join' writes."),
    ],
    watch: Annotated[
        bool, typer.Option("--watch", help="Look again every few seconds, until all is done.")
    ] = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Say how far a result is: what is done and claimed, by whom, how fast, and how long it will take.

    Processes that have joined (--join) are listed one by one, also those that were lost.
    """
    talk = Talk(as_json=json)
    from ..files import path_of
    from ..jobs.status import Observer

    observer = Observer(path_of(result, "OUT"))
    while True:
        found = observer.look()
        _tell(talk, found)
        if not watch or found.complete:
            return
        time.sleep(_SECONDS)


def _tell(talk: Talk, found: Status) -> None:
    for line in _lines(found):
        talk.summary(line)
    if found.processes:
        rows = [(str(one.holder), one.holder.device, one.state, f"{one.done:,}", ", ".join(one.computing))
                for one in found.processes]  # fmt: skip
        talk.table(_HEADER, rows, right=("blocks done",))
    talk.document(
        {
            "output": str(found.path),
            "done": found.done,
            "total": found.total,
            "E_done": found.E_done,
            "E_total": found.E_total,
            "step": found.step,
            "claimed": found.claimed,
            "stale": found.stale,
            "blocks_per_second": found.rate,
            "seconds_left": found.seconds_left,
            "processes": [
                {
                    "host": one.holder.host,
                    "pid": one.holder.pid,
                    "device": one.holder.device,
                    "state": one.state,
                    "done": one.done,
                    "computing": one.computing,
                }
                for one in found.processes
            ],
        }
    )


def _lines(found: Status) -> list[str]:
    if found.complete:
        return [f"{found.path}: all {found.total:,} blocks are done"]
    if found.total is None:
        return [
            f"{found.path}: not finished; {found.done:,} blocks are done and kept, and the same command continues "
            "there; how many are left shows only as it goes on",
            *([found.step] if found.step else []),
        ]
    line = f"{found.path}: {found.done:,} of {found.total:,} blocks are done ({100 * found.done / found.total:.1f} %)"
    if found.claimed:
        line += f", {found.claimed:,} claimed"
    if found.stale:
        line += f" ({found.stale:,} by processes that are lost)"
    lines = [line]
    if found.E_total:
        lines.append(f"E is searched: {found.E_done:,} of {found.E_total:,} blocks are done")
    if found.rate is not None and found.seconds_left is not None:
        lines.append(f"{found.rate:.3g} blocks a second lately, about {_duration(found.seconds_left)} left")
    return lines


def _duration(seconds: float) -> str:
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"

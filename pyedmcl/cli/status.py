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
        state = observer.look()
        _tell(talk, state)
        if not watch or state.complete:
            return
        time.sleep(_SECONDS)


def _tell(talk: Talk, state: Status) -> None:
    for line in _lines(state):
        talk.summary(line)
    if state.processes:
        rows = [(str(one.holder), one.holder.device, one.state, f"{one.done:,}", ", ".join(one.computing))
                for one in state.processes]  # fmt: skip
        talk.table(_HEADER, rows, right=("blocks done",))
    talk.document(
        {
            "output": str(state.path),
            "done": state.done,
            "total": state.total,
            "E_done": state.E_done,
            "E_total": state.E_total,
            "step": state.step,
            "claimed": state.claimed,
            "stale": state.stale,
            "blocks_per_second": state.rate,
            "seconds_left": state.seconds_left,
            "processes": [
                {
                    "host": one.holder.host,
                    "pid": one.holder.pid,
                    "device": one.holder.device,
                    "state": one.state,
                    "done": one.done,
                    "computing": one.computing,
                }
                for one in state.processes
            ],
        }
    )


def _lines(state: Status) -> list[str]:
    if state.complete:
        return [f"{state.path}: all {state.total:,} blocks are done"]
    if state.total is None:
        return [
            f"{state.path}: not finished; {state.done:,} blocks are done and kept, and the same command continues "
            "there; how many are left shows only as it goes on",
            *([state.step] if state.step else []),
        ]
    line = f"{state.path}: {state.done:,} of {state.total:,} blocks are done ({100 * state.done / state.total:.1f} %)"
    if state.claimed:
        line += f", {state.claimed:,} claimed"
    if state.stale:
        line += f" ({state.stale:,} by processes that are lost)"
    lines = [line]
    if state.E_total:
        lines.append(f"E is searched: {state.E_done:,} of {state.E_total:,} blocks are done")
    if state.rate is not None and state.seconds_left is not None:
        lines.append(f"{state.rate:.3g} blocks a second lately, about {_duration(state.seconds_left)} left")
    return lines


def _duration(seconds: float) -> str:
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"

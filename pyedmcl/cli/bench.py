"""``pyedmcl bench``: times on this device, beside its limits and other packages."""

from __future__ import annotations

import json as json_text
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError, Interrupted
from . import options
from .talk import Talk, plain
from .tune_table import seconds_text

if TYPE_CHECKING:
    from ..device.info import DeviceInfo
    from ..workloads.bench import Figure
    from ..workloads.ceilings import Ceiling

_HEADER = ("what", "problem", "time", "spread", "rate", "arithmetic", "memory", "peer", "ratio", "parameters")
_NUMBERS = ("time", "spread", "rate", "arithmetic", "memory", "ratio")
_ROUNDS, _ROUNDS_QUICK = 7, 3
_MEMORIES = ("device", "local")


def bench(
    kernels: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KERNEL]...", help="Kernels, or functions such as xmap. Default: all.",
                       show_default=False),
    ] = None,
    device: options.Device = None,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller and fewer problems, 3 rounds.")] = False,
    rounds: Annotated[
        int | None, typer.Option("--rounds", min=1, help="Of each problem. Default: 7.", show_default=False)
    ] = None,
    no_peer: Annotated[bool, typer.Option("--no-peer", help="Do not run kEDM and PyRQA.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.jsonl", show_default=False,
                     help="Also append a JSON line for each figure."),
    ] = None,
    quiet: options.Quiet = False,
    json: Annotated[bool, typer.Option("--json", help="JSON lines on stdout in place of the table.")] = False,
    debug: options.Debug = False,
) -> None:  # fmt: skip
    """Time kernels and whole calls on a device: how fast, what share of its limits, how fast other packages are.

    Limits (arithmetic and memory) are measured first. Parameters are those that a job would get: see 'pyedmcl tune'.
    """
    talk = Talk(quiet=quiet, as_json=json)
    from ..device.session import open_device
    from ..workloads import bench as work
    from ..workloads.ceilings import ceilings

    work.chosen(kernels or [])
    executor = open_device(device)
    info = executor.info
    todo = work.problems(kernels or [], info, quick)
    found: list[Figure] = []
    limits: Mapping[str, Ceiling] = {}
    with ExitStack() as stack:
        say = _lines(stack, output, json)
        talk.remark(f"{info.name} ({info.platform}, driver {info.driver}): {len(todo)} problems")
        try:
            limits = ceilings(executor)
            _begin(say, info, limits)
            with talk.progress("bench") as report:
                for figure in work.figures(
                    executor, todo, limits, rounds=rounds or (_ROUNDS_QUICK if quick else _ROUNDS),
                    with_peers=not no_peer,
                ):  # fmt: skip
                    found.append(figure)
                    say({**figure.as_dict(), **_place(info)})
                    if report is not None:
                        report(len(found), len(todo), "problems")
        except KeyboardInterrupt as stop:
            _show(talk, found, limits)
            kept = f"; the figures up to here are in {output}" if output is not None else ""
            raise Interrupted(f"stopped: {len(found)} of {len(todo)} problems were timed{kept}") from stop
    _show(talk, found, limits)


def _lines(stack: ExitStack, output: Path | None, as_json: bool) -> Callable[[Mapping[str, Any]], None]:
    """Where JSON lines go, one at a time: what is there after Ctrl-C is whole."""
    file = None
    if output is not None:
        try:
            file = stack.enter_context(output.open("a", encoding="utf-8"))
        except OSError as error:
            raise InputError(f"--output {output}: cannot be written ({error.strerror})") from error

    def say(record: Mapping[str, Any]) -> None:
        line = json_text.dumps(plain(dict(record)), allow_nan=False)
        if file is not None:
            file.write(line + "\n")
            file.flush()
        if as_json:
            typer.echo(line)

    return say


def _place(info: DeviceInfo) -> dict[str, str]:
    from .. import __version__

    return {"device": info.name, "runtime": info.runtime, "driver": info.driver, "version": __version__}


def _begin(say: Callable[[Mapping[str, Any]], None], info: DeviceInfo, limits: Mapping[str, Ceiling]) -> None:
    for limit in limits.values():
        say({"kind": "ceiling", "name": limit.name, "per_second": limit.rate, "unit": limit.unit, **_place(info)})


def _show(talk: Talk, found: Sequence[Figure], limits: Mapping[str, Ceiling]) -> None:
    if talk.quiet or talk.as_json:
        return
    talk.table(_HEADER, [_row(figure) for figure in found], right=_NUMBERS)
    notes = [f"{figure.name}, {figure.problem}: {figure.note}" for figure in found if figure.note]
    for note in notes:
        talk.remark(note)
    if limits:
        measured = ", ".join(f"{limit.name} {rate_text(limit.rate, limit.unit)}" for limit in limits.values())
        talk.summary(f"limits measured: {measured}")


def _row(figure: Figure) -> tuple[str, ...]:
    arithmetic = [f"{share:.0%}" for name, share in figure.shares.items() if name not in _MEMORIES]
    memory = [f"{share:.0%} {name}" for name, share in figure.shares.items() if name in _MEMORIES]
    ratio = figure.ratio
    return (
        figure.name if figure.kind == "kernel" else f"{figure.name}()", figure.problem, seconds_text(figure.median),
        f"{figure.spread / figure.median:.1%}", rate_text(figure.rate, f"{figure.unit}/s"), *(arithmetic or [""]),
        *(memory or [""]), figure.peer, "" if ratio is None else f"{ratio:.1f}x", _grades(figure),
    )  # fmt: skip


def _grades(figure: Figure) -> str:
    """How well the parameters are known: of the kernel itself, or of all kernels of a whole call."""
    known = figure.grades
    told = [known.get(figure.name, ())] if figure.kind == "kernel" else known.values()
    return ", ".join(dict.fromkeys(grade for grades in told for grade in grades))


def rate_text(rate: float, unit: str) -> str:
    """``12.3 Gpairs/s``."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if rate >= size:
            return f"{rate / size:.3g} {prefix}{unit}"
    return f"{rate:.3g} {unit}"

"""``pyedmcl db bar`` and ``unbar``: configurations that are kept away by hand."""

from __future__ import annotations

from typing import Annotated

import typer

from ..errors import InputError
from . import options
from .db import app, own_database, require_kept
from .exits import HELP, Command
from .talk import Talk

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
    from ..tuning import bars

    where = own_database()
    if kernel is not None:
        if kernel not in NAMES:
            raise InputError(f"KERNEL={kernel!r}: there is no such kernel; there are {', '.join(NAMES)}")
        new_bar = bars.Bar(kernel, bars.parse(spec(kernel), parameters or ()), device, why)
        number = bars.add(where, new_bar)
        require_kept(where, "nothing was barred")
        talk.summary(f"{number}: {new_bar} is kept away; 'pyedmcl db unbar {number}' takes that back")
    barred = bars.stored(where)
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
    from ..tuning import bars

    where = own_database()
    stored_bars = {one.id: one for one in bars.stored(where)}
    for number in numbers:
        if number not in stored_bars:
            raise InputError(f"NUMBER={number}: no such bar; 'pyedmcl db bar' lists them")
    bars.remove(where, numbers)
    require_kept(where, "nothing was changed")
    for number in numbers:
        talk.summary(f"{number}: {stored_bars[number]} may be used again")
    talk.document({"removed": sorted(set(numbers))})

"""``--plot show``: a picture in the system's viewer instead of a file that the user names."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from ..errors import OutputError

#: What stands for a window in place of the name of a picture.
SHOW = Path("show")
_PICTURES = {"--plot", "--plot-coefficients", "--network", "--lines"}


def has_display() -> bool:
    """Whether there is a screen that a viewer can open a window on."""
    return sys.platform in ("win32", "darwin") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


@contextmanager
def shown_pictures(ctx: Any) -> Iterator[None]:
    """Let the command draw into temporary files what is to be shown, and open these afterwards.

    Raises
    ------
    OutputError
        There is no display.
    """
    pictures = [parameter for parameter in ctx.command.params if _is_to_be_shown(ctx, parameter)]
    if not pictures:
        yield
        return
    option = pictures[0].opts[0]
    if not has_display():
        raise OutputError(f"{option} {SHOW}: there is no display; name a file, such as {option} picture.png")
    folder = Path(tempfile.mkdtemp(prefix="pyedmcl-"))  # stays: a viewer may read it at any time
    drawn = [folder / f"{parameter.name}.png" for parameter in pictures]
    for parameter, path in zip(pictures, drawn, strict=True):
        ctx.params[parameter.name] = path
    yield
    for path in drawn:
        if path.exists() and typer.launch(str(path)):
            typer.echo(f"No viewer of pictures was found; the picture is {path}", err=True)


def _is_to_be_shown(ctx: Any, parameter: Any) -> bool:
    pictures = {"--output"} if ctx.command.name == "plot" else _PICTURES
    return ctx.params.get(parameter.name) == SHOW and not pictures.isdisjoint(parameter.opts)

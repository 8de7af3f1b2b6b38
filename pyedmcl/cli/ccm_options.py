"""Options of the commands about cross mapping, and their words as numbers."""

from __future__ import annotations

from typing import Annotated

import typer

_SAMPLES = "Random libraries"

First = Annotated[
    str | None,
    typer.Option("--x", metavar="X", help="The first variable: a name, or digits for a position from 0.",
                 show_default=False),
]  # fmt: skip
Second = Annotated[str | None, typer.Option("--y", metavar="Y", help="The second one.", show_default=False)]
LibSizes = Annotated[
    str | None,
    typer.Option("--lib-sizes", metavar="L,L,...|A:B:STEP", rich_help_panel=_SAMPLES, show_default=False,
                 help="Rows of random libraries: a list, or from A up to B by STEP. Default: several up to all."),
]  # fmt: skip
Sample = Annotated[int, typer.Option("--sample", help="Random libraries of each size.", rich_help_panel=_SAMPLES)]
Seed = Annotated[
    int | None,
    typer.Option("--seed", help="Chooses what is random; the same seed gives the same result. Default: a fresh one.",
                 show_default=False, rich_help_panel=_SAMPLES),
]  # fmt: skip
Interval = Annotated[
    int, typer.Option("--Tp", help="Steps from library state to target value.", rich_help_panel="Embedding")
]


def parse_sizes(text: str | None) -> list[int] | None:
    """``20,50,100`` or ``20:980:60``."""
    if text is None:
        return None
    try:
        if ":" in text:
            first, last, step = (int(item) for item in text.split(":"))
            if step > 0 and first <= last:
                return list(range(first, last + 1, step))
            raise ValueError
        return [int(item) for item in text.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"--lib-sizes {text!r}: rows such as 20,50,100, or first:last:step such as 20:980:60, are needed"
        ) from None


def parse_pair_E(text: str) -> str | int | list[int]:
    """``auto``, one E, or one for x and one for y."""
    if text.strip().lower() == "auto":
        return "auto"
    try:
        dims = [int(item) for item in text.split(",")]
    except ValueError:
        dims = []
    if not 1 <= len(dims) <= 2:
        raise typer.BadParameter(f"--E {text!r}: 'auto', an integer, or one for x and one for y such as 2,3, is needed")
    return dims[0] if len(dims) == 1 else dims

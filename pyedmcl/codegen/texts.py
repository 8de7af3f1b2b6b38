"""Where texts of kernels and pages lie: inside the installed package, or in the checkout beside it."""

from __future__ import annotations

import functools
from importlib.resources import files
from pathlib import Path

from ..errors import BuildError


@functools.cache
def read_text(folder: str, name: str) -> str:
    """Text ``name`` of ``folder`` ("clkernels", "templates", "tuning/wisdom" or "docs").

    A wheel carries the folders under ``pyedmcl/_data``; a checkout (editable install) has them at its top level.
    """
    packed = files("pyedmcl").joinpath("_data", *folder.split("/"), name)
    if packed.is_file():
        return packed.read_text(encoding="utf-8")
    beside = Path(__file__).resolve().parents[2].joinpath(folder, name)
    if beside.is_file():
        return beside.read_text(encoding="utf-8")
    raise BuildError(f"{folder}/{name} is neither in the package nor beside it: the installation is incomplete")


@functools.cache
def names_of(folder: str, suffix: str) -> tuple[str, ...]:
    """Names of the texts in ``folder`` that end so."""
    packed = files("pyedmcl").joinpath("_data", *folder.split("/"))
    place = packed if packed.is_dir() else Path(__file__).resolve().parents[2] / folder
    return tuple(sorted(item.name for item in place.iterdir() if item.name.endswith(suffix))) if place.is_dir() else ()

"""Where texts of kernels and pages lie: inside the installed package, or in the checkout beside it."""

from __future__ import annotations

import functools
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import BuildError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_PACKAGE = Path(__file__).resolve().parents[1]
_PACKED = "_data"  # in the package, of a wheel


def _folder(folder: str) -> Traversable:
    packed = files("pyedmcl").joinpath(_PACKED, *folder.split("/"))
    return packed if packed.is_dir() else _PACKAGE.parent / folder


@functools.cache
def read_text(folder: str, name: str) -> str:
    """Text ``name`` of ``folder`` ("clkernels", "templates", "tuning/wisdom" or "docs").

    A wheel carries the folders under ``pyedmcl/_data``; a checkout (editable install) has them at its top level.
    """
    file = _folder(folder).joinpath(*name.split("/"))
    if file.is_file():
        return file.read_text(encoding="utf-8")
    raise BuildError(f"{folder}/{name} is neither in the package nor beside it: the installation is incomplete")


@functools.cache
def names_of(folder: str, suffix: str) -> tuple[str, ...]:
    """Names of the texts in ``folder`` that end so."""
    place = _folder(folder)
    return tuple(sorted(item.name for item in place.iterdir() if item.name.endswith(suffix))) if place.is_dir() else ()


def sources() -> list[Path]:
    """All files of the package's code and of its kernels, in an order that a wheel and a checkout share."""
    of_package = [file for file in _sources_in(_PACKAGE) if _PACKED not in file.relative_to(_PACKAGE).parts]
    return of_package + [file for name in ("clkernels", "templates") for file in _sources_in(Path(str(_folder(name))))]


def _sources_in(folder: Path) -> list[Path]:
    return [file for file in sorted(folder.rglob("*")) if file.suffix in (".py", ".mako", ".clh", ".cuh")]

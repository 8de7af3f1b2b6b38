"""How a picture of a result is to look: ``ax=``, ``cmap=``, ``figsize=``, ``dpi=`` and ``title=`` of every ``.plot``.

They travel beside the calls to the functions that make figures, so that each picture has them in the same way.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import Any

from ..errors import InputError, shown


@dataclass(frozen=True)
class Style:
    """What a caller asked for; None for what the picture has by itself.

    Attributes
    ----------
    ax : matplotlib.axes.Axes or None
        Draw here instead of in a new figure.
    cmap : str or matplotlib.colors.Colormap or None
    figsize : (float, float) or None
        Inches.
    dpi : int or None
        Dots per inch of the file.
    title : str or None
    units : str, mapping of str to str, or None
        Of all series, or of each by its name; by default those that the data told of.
    """

    ax: Any = None
    cmap: Any = None
    figsize: Any = None
    dpi: Any = None
    title: Any = None
    units: Any = None

    def __post_init__(self) -> None:
        if self.ax is not None and not hasattr(self.ax, "get_subplotspec"):
            raise InputError(f"ax={shown(self.ax)}: axes of matplotlib are needed, as plt.subplots() gives them")
        if self.figsize is not None:
            try:
                size = [float(side) for side in self.figsize]
            except (TypeError, ValueError):
                size = []
            if len(size) != 2 or not all(0.5 <= side <= 200 for side in size):
                raise InputError(f"figsize={shown(self.figsize)}: width and height in inches are needed, 0.5 to 200")
        if self.dpi is not None:
            good = isinstance(self.dpi, (int, float)) and not isinstance(self.dpi, bool) and 10 <= self.dpi <= 2400
            if not good:
                raise InputError(f"dpi={shown(self.dpi)}: dots per inch are needed, 10 to 2400")
        if self.title is not None and not isinstance(self.title, str):
            raise InputError(f"title={shown(self.title)}: a text is needed")
        named = self.units.items() if isinstance(self.units, Mapping) else [("", self.units or "")]
        if not all(isinstance(part, str) for pair in named for part in pair):
            raise InputError(f"units={shown(self.units)}: a text such as 'degC' is needed, or one for each name")


_NAMES = tuple(field.name for field in fields(Style))
_style: ContextVar[Style | None] = ContextVar("style", default=None)
_PLAIN = Style()


def style() -> Style:
    """Of the picture that is being drawn."""
    return _style.get() or _PLAIN


def told_units(result: Any) -> dict[str, str] | None:
    """Units of series that the data of a result told of."""
    described = getattr(result, "provenance", {}).get("data", {})
    held = described.values() if isinstance(described, Mapping) else ()
    units: dict[str, str] = {}
    for one in held:
        units |= one.get("units") or {} if isinstance(one, Mapping) else {}
    return units or None


def unit_of(name: str) -> str:
    """The unit of a series of the picture that is being drawn; empty where none is known."""
    units = style().units
    return units if isinstance(units, str) else (units or {}).get(name, "")


def titled(figure: Any) -> None:
    """Give a figure the title that was asked for, over its first axes."""
    if style().title is not None:
        (style().ax or figure.axes[0]).set_title(style().title, fontsize=11)


def styled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method that draws take the fields of :class:`Style` as keywords."""
    signature = inspect.signature(function)
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
        for name in _NAMES if name not in signature.parameters
    ]  # fmt: skip

    @functools.wraps(function)
    def draw(self: Any, *args: Any, **kwargs: Any) -> Any:
        chosen = {name: kwargs.pop(name) for name in _NAMES if name in kwargs}
        if chosen.get("units") is None:
            chosen["units"] = told_units(self)
        token = _style.set(Style(**chosen))
        try:
            kept = {name: value for name, value in chosen.items() if name in signature.parameters and value is not None}
            figure = function(self, *args, **kwargs, **kept)
            figure = getattr(figure, "whole", figure)
            titled(figure)
            return figure
        finally:
            _style.reset(token)

    draw.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *added])  # type: ignore[attr-defined]
    return draw

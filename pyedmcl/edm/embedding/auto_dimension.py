"""E="auto" of two variables: the dimension at which each predicts itself best."""

from __future__ import annotations

from typing import Any

from ...data.group_labels import take_groups
from ...data.series import as_series
from ...errors import InputError
from ..shared import arguments
from .dimension_rule import DimensionRule
from .embed_dimension import embed_dimension


def dimensions_of(x: Any, y: Any, E: Any, *, E_max: Any, E_rule: Any, groups: Any, **options: Any) -> Any:
    """``E`` as it was given; for "auto" what :func:`pyedmcl.embed_dimension` finds for x and for y.

    ``options`` are more arguments of that function.
    """
    DimensionRule.parse(E_rule)
    arguments.integer("E_max", E_max, 1)
    if not isinstance(E, str):
        return E
    if E != "auto":
        raise InputError(f"E={arguments.shown(E)}: 'auto', one integer, or one for x and one for y, is needed")
    x, of = take_groups(x, groups, "x")
    y = take_groups(y, groups, "y", required=False)[0]
    dims = []
    for what, data in (("x", x), ("y", y)):
        series = as_series(data, what=what)
        if series.n_series != 1:
            raise InputError(f"E='auto': {what} has {series.n_series} columns; give E, or one column")
        named = series.renamed((what,)) if series.names == ("x0",) else series
        dims.append(int(embed_dimension(named, E_max=E_max, E_rule=E_rule, groups=of, **options).E))
    return tuple(dims)

"""The order of a map's series in which those stand side by side that are alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..io.edges import blank_itself, own_targets
from ..io.optional import need

_ORDERED = 5_000  # series that can be put in order by likeness
_EXACT = 1_000  # series whose order in the tree is the best one

Positions = NDArray[np.int_]


def likeness_order(matrix: Any, names: Sequence[str], targets: Sequence[str] | None) -> tuple[Positions, Positions]:
    """Rows and columns in the order of the leaves of a tree in which series with like profiles are neighbours.

    Of a square map series are alike in what they drive and in what drives them, and both sides get one order. The tree
    is that of average linkage over Euclidean distances; NaN counts as no skill.

    Raises
    ------
    InputError
        There are too many series.
    MissingExtraError
        SciPy is not installed.
    """
    if max(matrix.shape) > _ORDERED:
        raise InputError(
            f"cluster: the map has {max(matrix.shape):,} series; at most {_ORDERED:,} can be put in order by likeness. "
            "Leave it out"
        )
    need("scipy.cluster.hierarchy", "putting series in order by likeness", "report")
    cells = np.array(matrix[:], np.float64)
    blank_itself(cells, own_targets(list(names), targets), 0)
    cells = np.nan_to_num(cells, nan=0.0)
    if targets is None:
        both = _leaves(np.hstack([cells, cells.T]))
        return both, both
    return _leaves(cells), _leaves(cells.T)


def _leaves(profiles: NDArray[np.float64]) -> Positions:
    from scipy.cluster.hierarchy import leaves_list, linkage

    if len(profiles) < 3:
        return np.arange(len(profiles))
    tree = linkage(profiles, "average", optimal_ordering=len(profiles) <= _EXACT)
    return np.asarray(leaves_list(tree), np.int64)

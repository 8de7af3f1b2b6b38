"""What maps of local linear fits are computed from, and which of their targets can be computed together."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class SmapMapData:
    """What a map of local linear fits is computed from.

    Attributes
    ----------
    values : ndarray (n_steps, n_targets)
        All targets, from :func:`pyedmcl.data.condition.condition` for the working precision.
    libraries : ndarray (n_steps, n_series)
        All libraries, of float64, since regressors are made in double; or of float32 where that holds them as they are.
    exponents : ndarray of int (n_series,)
        ``libraries`` are the data times ``2**-exponent``, less a shift.
    E : ndarray of int (n_targets,)
        Embedding dimension of each target.
    tau, Tp, exclusion_radius : int
    gap_pattern : ndarray of int (n_targets,)
        0 for targets without gaps, else the number of the target's gap pattern.
    library_masks : mapping
        Pattern number -> library rows (n_steps,) that may be neighbours; see :mod:`pyedmcl.edm.shared.masks`.
    gaps : bool
        Whether any prediction or observation may be missing.
    thetas : tuple of float
        Localisations; a map for each.
    ridge : float
        Penalty on the squared slopes, in units of the data.
    in_double : ndarray (n_steps, n_targets), optional
        The targets for what is done again in float64; ``libraries`` by default, and of their types.
    asked : ndarray of bool (n_steps,), optional
        Rows that are predicted; all by default. Else ``gaps`` must be True.
    slopes : ndarray of int (n_targets,), optional
        Mean slopes are wanted: ``in_double`` are the data times 2 to minus these exponents, less a shift.
    compact : bool
        Predictions may be made with less precision on matrix units, where the device has them, which changes rho by up
        to 1e-5.
    """

    values: NDArray[Any]
    libraries: NDArray[Any]
    exponents: NDArray[np.int_]
    E: NDArray[np.int_]
    tau: int
    Tp: int
    exclusion_radius: int
    gap_pattern: NDArray[np.int_]
    library_masks: Any
    gaps: bool
    thetas: tuple[float, ...]
    ridge: float = 0.0
    in_double: NDArray[Any] | None = None
    asked: NDArray[np.bool_] | None = None
    slopes: NDArray[np.int_] | None = None
    compact: bool = False

    @cached_property
    def doubles(self) -> NDArray[np.float64]:
        """The libraries in double."""
        return self.libraries.astype(np.float64, copy=False)

    @cached_property
    def targets(self) -> NDArray[np.float64]:
        """The targets in double."""
        return self.doubles if self.in_double is None else self.in_double.astype(np.float64, copy=False)

    def library_mask(self, pattern: int) -> NDArray[np.bool_]:
        """Library rows (n_steps,) that may be neighbours where a target has this pattern of gaps."""
        mask: NDArray[np.bool_] | None = self.library_masks.get(pattern)
        return np.ones(len(self.values), bool) if mask is None else mask

    @property
    def predicted(self) -> NDArray[np.bool_]:
        """Rows (n_steps,) that are predicted."""
        return np.ones(len(self.values), bool) if self.asked is None else self.asked

    def classes(self) -> tuple[NDArray[np.int_], list[tuple[int, int, int, int]]]:
        """Targets in an order in which those of one dimension and pattern of gaps are adjacent.

        And (E, pattern, begin, end) of each such class in that order: its targets share states and systems.
        """
        order = np.lexsort((np.arange(len(self.E)), self.E, self.gap_pattern))
        kinds = np.stack([self.gap_pattern[order], self.E[order]], axis=1)
        edges = [0, *(np.flatnonzero((kinds[1:] != kinds[:-1]).any(axis=1)) + 1).tolist(), len(order)]
        return order, [(int(kinds[a, 1]), int(kinds[a, 0]), a, b) for a, b in itertools.pairwise(edges)]


def left_around(members: NDArray[np.bool_], radius: int) -> NDArray[np.int32]:
    """How many members (n_libraries, n_steps) are farther than ``radius`` from each row: (n_libraries, n_steps)."""
    n = members.shape[-1]
    upto = np.zeros((len(members), n + 1), np.int32)
    np.cumsum(members, axis=1, out=upto[:, 1:])
    rows = np.arange(n)
    near = upto[:, np.minimum(rows + radius + 1, n)] - upto[:, np.maximum(rows - radius, 0)]
    out: NDArray[np.int32] = upto[:, -1:] - near
    return out

"""What convergent cross mapping of all pairs within windows returns: skill over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.grid import Grid
from ...io.fields import labelled
from ...io.optional import pandas_for
from ...io.result import Result
from ...io.roles import ROLES, roles
from ..shared.window_columns import PAIRS_SHOWN, spans


@dataclass(frozen=True, repr=False)
class WindowedCcmMatrix(Result):
    """Convergent cross mapping of all pairs within each window.

    Attributes
    ----------
    rho : ndarray (n_windows, n_sizes, n_series, n_series)
        Mean skill; row = library, column = target, as in :class:`CcmMatrixResult`. The diagonal is NaN.
    lib_sizes : ndarray of int (n_sizes,)
    E : ndarray of int (n_windows, n_series)
        Embedding dimension of each library in each window.
    names : tuple of str
    sample : int
        Random sub-libraries of each pair and size.
    seed : int
    starts, width, time
        As of :class:`WindowedMap`.
    skill : str
        What rho holds: "pearson" or "spearman".
    grid : Grid or None
        Where the series lie, if they are a field.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.ccm_matrix(
    ...     network.values, E=3, lib_sizes=[20, 150], sample=5, seed=1, windows=(200, 100)
    ... )
    >>> result.rho.shape  # window, library size, library, target
    (3, 2, 4, 4)
    >>> list(result.curves())[0]  # the strongest pair
    'x2 drives x0?'
    """

    rho: NDArray[Any]
    lib_sizes: NDArray[np.int_]
    E: NDArray[np.int_]
    names: tuple[str, ...]
    sample: int
    seed: int
    starts: NDArray[np.int_]
    width: int
    time: NDArray[Any]
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    skill: str = "pearson"
    grid: Grid | None = field(default=None, repr=False)

    @property
    def gain(self) -> NDArray[np.float64]:
        """Skill at the largest library less that at the smallest (n_windows, n_series, n_series)."""
        rho = self.rho.astype(np.float64)
        return np.asarray(rho[:, self.lib_sizes.argmax()] - rho[:, self.lib_sizes.argmin()])

    def to_xarray(self) -> Any:
        """An xarray DataArray (time, lib_size, library, target), or with the coordinates of a field for its cells."""
        cells = self.grid or self.names
        axes = [("time", self.time), ("lib_size", self.lib_sizes), ("library", cells), ("target", cells)]
        return labelled(self.rho, axes, "rho")

    def columns(self) -> dict[str, NDArray[Any]]:
        """What :meth:`to_frame` holds, by name."""
        n, sizes, names = len(self.starts), len(self.lib_sizes), np.array(self.names)
        library, target = np.nonzero(~np.eye(len(names), dtype=bool))
        pairs = roles(*(np.tile(names[place], n * sizes) for place in (library, target)))
        return spans(self, sizes * len(library)) | dict(zip(ROLES, pairs, strict=True)) | {
            "lib_size": np.tile(np.repeat(self.lib_sizes, len(library)), n),
            "rho": self.rho[..., library, target].reshape(-1),
            "E": np.repeat(self.E[:, None, library], sizes, axis=1).reshape(-1),
            "E_of": np.full(n * sizes * len(library), "effect"),
        }  # fmt: skip

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each window, size and pair of different series.

        Columns are start and end (rows begin <= t < end), time, cause, effect, library, target, lib_size, rho, E,
        E_of.
        """
        return pandas_for("to_frame()").DataFrame(self.columns())

    def curves(self) -> dict[str, NDArray[Any]]:
        """Skill over time at the largest library, of the pairs that are strongest in the mean."""
        from ...io.edges import strongest_edges

        rho = self.rho[:, self.lib_sizes.argmax()]
        mean = np.nan_to_num(rho).mean(axis=0)
        best = strongest_edges(mean, self.names, np.median(self.E, axis=0).astype(int), PAIRS_SHOWN)
        place = {name: i for i, name in enumerate(self.names)}
        return {f"{e.target} drives {e.library}?": rho[:, place[e.library], place[e.target]] for e in best}

    def plot(self, path: str | None = None) -> Any:
        """Skill of the strongest pairs over time; saved to ``path`` if given. Needs matplotlib."""
        from ...plot.windows import skill_over_time

        return skill_over_time(self, path)

"""What the search for an embedding dimension returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...data.grid import Grid
from ...io.fields import labelled
from ...io.labels import Label, common
from ...io.optional import need, pandas_for
from ...io.result import Result


@dataclass(frozen=True, repr=False)
class EmbedDimensionResult(Result):
    """Forecast skill against embedding dimension.

    Attributes
    ----------
    E : int or ndarray of int (n_series,)
        Dimension of the highest rho (the smaller one of a tie; 1 where no rho is defined).
    rho : ndarray of float64 (E_max,) or (n_series, E_max)
        Skill for E = 1, ..., E_max.
    names : tuple of str
    grid : Grid or None
        Where the series lie, if they are a field.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.embed_dimension(network.values, E_max=5)
    >>> result.E.tolist()  # of each series
    [2, 2, 2, 3]
    >>> result.rho[0].round(2).tolist()  # of the first one, for E = 1, ..., 5
    [0.97, 0.99, 0.99, 0.98, 0.97]
    """

    series_label: ClassVar = Label("1", "skill of predicting this series by itself, in E dimensions")
    column_labels: ClassVar = common("E")

    E: Any
    rho: NDArray[np.float64]
    names: tuple[str, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    grid: Grid | None = field(default=None, repr=False)

    def to_xarray(self) -> Any:
        """An xarray Dataset of E (series) and rho (series, E); the coordinates of a field take the place of its cells.

        The dimension of the tried E is called "dimension".
        """
        rho, best = np.atleast_2d(self.rho), np.atleast_1d(self.E)
        axis = "series", self.grid or self.names
        values = {"E": labelled(best, [axis], "E"),
                  "rho": labelled(rho, [axis, ("dimension", np.arange(1, rho.shape[1] + 1))], "rho")}  # fmt: skip
        return need("xarray", "to_xarray()").Dataset(values)

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row per E, a column per series."""
        table = np.atleast_2d(self.rho).T
        frame = pandas_for("to_frame()").DataFrame(table, columns=list(self.names))
        frame.index = range(1, len(table) + 1)
        frame.index.name = "E"
        return frame

    def plot(self, path: str | None = None) -> Any:
        """rho against E; saved to ``path`` if given. Needs matplotlib."""
        from ...plot import skill_against_E

        return skill_against_E(self, path)

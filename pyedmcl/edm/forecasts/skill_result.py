"""Forecast skill against one parameter that was varied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...io.optional import pandas_for
from ...io.result import Result


@dataclass(frozen=True, repr=False)
class SkillResult(Result):
    """Forecast skill against a parameter.

    Attributes
    ----------
    parameter : str
        "Tp" or "exclusion_radius".
    values : ndarray of int (n,)
        What it was set to.
    rho, mae, rmse : ndarray of float64 (n,)
    E : int

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.predict_interval(network.values[:, 0], Tp=[1, 2, 4], E=3)
    >>> result.parameter, result.rho.round(2).tolist(), result.best
    ('Tp', [0.99, 0.96, 0.85], 1)
    >>> result.to_frame().columns.tolist()
    ['Tp', 'rho', 'mae', 'rmse']
    """

    parameter: str
    values: NDArray[np.int_]
    rho: NDArray[np.float64]
    mae: NDArray[np.float64]
    rmse: NDArray[np.float64]
    E: int
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def best(self) -> int | None:
        """Value of the highest rho, the first of a tie; None where no rho is defined."""
        if np.isnan(self.rho).all():
            return None
        return int(self.values[np.where(np.isnan(self.rho), -np.inf, self.rho).argmax()])

    def to_frame(self) -> Any:
        """A pandas DataFrame with the parameter, rho, mae and rmse."""
        columns = {self.parameter: self.values, "rho": self.rho, "mae": self.mae, "rmse": self.rmse}
        return pandas_for("to_frame()").DataFrame(columns)

    def plot(self, path: str | None = None) -> Any:
        """rho against the parameter; saved to ``path`` if given. Needs matplotlib."""
        from ...plot.libraries import skill_against_parameter

        return skill_against_parameter(self, path)

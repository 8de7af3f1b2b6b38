"""What simplex projection returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...io.optional import pandas_for
from ...io.result import Result
from ..shared import arguments


@dataclass(frozen=True, repr=False)
class SimplexResult(Result):
    """Simplex projection of one series; one entry per embedded query row t = (E-1)*tau, ..., n-1.

    Of groups the entries are those of each group in turn.

    Attributes
    ----------
    time : ndarray
        Row number t + Tp that is predicted; of groups, counted within the group.
    observed : ndarray of float64
        Value there, NaN outside the series.
    predicted, variance : ndarray of float64
        Weighted mean of the neighbours' targets, and the weighted variance around it; NaN where there is no neighbour.
    rho, mae, rmse : float
        Pearson correlation (NaN for fewer than 3 pairs or zero variance), mean absolute error, root mean square error.
    group : ndarray of numbers or text, or None
        Label of each entry's group.
    dates : ndarray or None
        The times that the data have for these rows, continued beyond their ends; None where they have none.
    name : str
        What is predicted.
    skill : float
        The measure that was asked for; rho by default.
    errors : ndarray or None
        Of generated steps: sorted absolute errors (n_steps, n) of such steps from each state of the series.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.simplex(network.values[:, 0], E=3)
    >>> round(result.rho, 2)
    0.99
    >>> result.time[:2].tolist()  # the state of row 2 is the first one, and predicts row 3
    [3, 4]
    >>> result.to_frame().columns.tolist()
    ['time', 'observed', 'predicted', 'variance']
    >>> lower, upper = result.interval(0.9)
    >>> round(float(((lower <= result.observed) & (result.observed <= upper))[:-1].mean()), 1)
    0.9
    """

    row_column: ClassVar = "time"

    time: NDArray[np.int_]
    observed: NDArray[np.float64]
    predicted: NDArray[np.float64]
    variance: NDArray[np.float64]
    rho: float
    mae: float
    rmse: float
    E: int
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    group: NDArray[Any] | None = None
    dates: NDArray[Any] | None = field(default=None, repr=False)
    name: str = ""
    skill: float = float("nan")
    errors: NDArray[np.float64] | None = field(default=None, repr=False)

    def interval(self, level: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper ends (n,) of intervals that hold a share ``level`` of what is predicted.

        Their half width is that quantile of how far off predictions were of rows that did not take part in them
        (conformal prediction; Vovk et al., Algorithmic Learning in a Random World, 2005): the variance among
        neighbours says less. Of generated steps each has a width of its own, that of paths of as many steps.

        Parameters
        ----------
        level : float
            In (0, 1).

        Raises
        ------
        InputError
            There are too few errors for this level: 1 / (1 - level), less one, are needed.
        """
        share = arguments.real("level", level, "a number between 0 and 1", lambda one: 0 < one < 1)
        off = np.sort(np.abs(self.observed - self.predicted))[None] if self.errors is None else self.errors
        known = np.isfinite(off).sum(axis=1)
        place = np.ceil((known + 1) * share).astype(int) - 1
        if (place >= known).any():
            least = int(np.ceil(share / (1 - share)))
            step = "" if self.errors is None else f" of step {int((place >= known).argmax()) + 1}"
            raise InputError(
                f"level={level:g}: the errors{step} of at least {least:,} predictions are needed, and there are "
                f"{int(known.min()):,}; take a lower level, a longer series or fewer generated steps"
            )
        half = np.take_along_axis(off, place[:, None], axis=1)[:, 0]
        return self.predicted - half, self.predicted + half

    def to_frame(self, level: float | None = None) -> Any:
        """A pandas DataFrame with columns (group,) time, observed, predicted, variance; the time as in the data.

        With ``level`` also lower and upper, the ends of :meth:`interval`.
        """
        columns = {} if self.group is None else {"group": self.group}
        columns |= {name: getattr(self, name) for name in ("time", "observed", "predicted", "variance")}
        columns["time"] = self.time if self.dates is None else self.dates
        if level is not None:
            columns["lower"], columns["upper"] = self.interval(level)
        return pandas_for("to_frame()").DataFrame(columns)

    def plot(self, path: str | None = None) -> Any:
        """Observed against predicted over time; saved to ``path`` if given. Needs matplotlib."""
        from ...plot import predictions

        return predictions(self, path)

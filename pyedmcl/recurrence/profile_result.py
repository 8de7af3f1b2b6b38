"""Recurrence rates by lag, and the band of their surrogates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..data.arguments import integer
from ..errors import InputError
from ..io.fields import labelled as labelled_array
from ..io.labels import Label
from ..io.optional import need, pandas_for
from ..io.result import Result, brief
from .cells import cells_by_offset
from .counts import Counts

Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class LagProfile(Result):
    """Recurrence rates by lag: of a dyad, of several, or of windows.

    A positive lag compares x with y as many rows later: a peak there says that x leads and y follows.

    Attributes
    ----------
    rate : ndarray of float64 (profiles, lags)
        NaN where no pair of points without a gap is that far apart.
    lags : ndarray of int (lags,)
    labels : mapping of str to tuple
        What tells the profiles apart, a value for each.
    surrogates : ndarray of float64 (profiles, n, lags), optional
        Profiles of surrogates.
    level : float
        Share of surrogates that the band holds at each lag.
    provenance : mapping

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.random.default_rng(0).standard_normal(500)
    >>> y = np.roll(x, 3)  # follows three rows later
    >>> profile = pyedmcl.lag_profile(x, y, lags=10, radius=0.1, n=99, seed=1)
    >>> profile.max_lag.tolist(), profile.max_rate.round(2).tolist(), profile.p_value.tolist()
    ([3], [1.0], [0.01])
    """

    column_labels: ClassVar = {
        "lag": Label("rows", "rows by which y is later than x"),
        "rate": Label("1", "recurrent pairs of points at the lag by all such pairs"),
        "low": Label("1", "lower end of the band of surrogates"),
        "high": Label("1", "upper end of the band of surrogates"),
    }
    series_label: ClassVar = Label("", "what tells the profiles apart")

    rate: Doubles
    lags: NDArray[np.int64]
    labels: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    surrogates: Doubles | None = None
    level: float = 0.95
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.rate)

    def _facts(self) -> dict[str, str]:
        facts = {"profiles": f"{len(self):,}", "lags": f"{self.lags[0]} to {self.lags[-1]}"}
        facts |= {"max_lag": brief(self.max_lag), "max_rate": brief(self.max_rate)}
        return facts if self.surrogates is None else facts | {"p_value": brief(self.p_value)}

    @property
    def max_rate(self) -> Doubles:
        """The highest rate of each profile (maxrec of crqa)."""
        highest: Doubles = np.fmax.reduce(self.rate, axis=1)
        return highest

    @property
    def max_lag(self) -> NDArray[np.int64]:
        """The lag at which it lies (maxlag of crqa); of several the one nearest to 0."""
        nearest = np.argsort(np.abs(self.lags), kind="stable")
        rates = np.where(np.isnan(self.rate), -1.0, self.rate)[:, nearest]
        found: NDArray[np.int64] = self.lags[nearest][rates.argmax(axis=1)]
        return found

    @property
    def band(self) -> tuple[Doubles, Doubles]:
        """Lower and upper ends (profiles, lags): between them lie ``level`` of the surrogates at each lag by itself."""
        tail = (1 - self.level) / 2
        low, high = np.quantile(self._surrogates(), [tail, 1 - tail], axis=1, method="weibull")
        return low, high

    @property
    def p_value(self) -> Doubles:
        """How often the highest rate of a surrogate, at whatever lag, is as high as that of the profile: all lags are
        tested at once. (1 + such surrogates) / (1 + surrogates)."""
        highest = np.fmax.reduce(self._surrogates(), axis=2)
        reached = np.count_nonzero(highest >= self.max_rate[:, None], axis=1)
        p: Doubles = (1 + reached) / (1 + highest.shape[1])
        return p

    def mean(self) -> LagProfile:
        """The mean profile, with the mean of the first surrogates of all, of the second, ... for its band."""
        return LagProfile(
            np.nanmean(self.rate, axis=0)[None], self.lags, {},
            None if self.surrogates is None else np.nanmean(self.surrogates, axis=0)[None], self.level, self.provenance,
        )  # fmt: skip

    def to_dict(self) -> dict[str, list[Any]]:
        """Lists of labels, lags, rates and ends of the band, profile by profile."""
        times = len(self.lags)
        out = {name: [value for value in values for _ in range(times)] for name, values in self.labels.items()}
        out |= {"lag": self.lags.tolist() * len(self), "rate": self.rate.ravel().tolist()}
        if self.surrogates is not None:
            out |= {name: end.ravel().tolist() for name, end in zip(("low", "high"), self.band, strict=True)}
        return out

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row for each profile and lag."""
        return pandas_for("to_frame()").DataFrame(self.to_dict())

    def to_xarray(self) -> Any:
        """An xarray.Dataset with ``rate``, ``low`` and ``high`` over (profile, lag)."""
        names = list(range(len(self)))
        arrays = {"rate": self.rate}
        if self.surrogates is not None:
            arrays |= dict(zip(("low", "high"), self.band, strict=True))
        axes = [("profile", names), ("lag", self.lags)]
        made = {name: labelled_array(values, axes, name) for name, values in arrays.items()}
        return need("xarray", "to_xarray()").Dataset(made)

    def plot(self, path: str | None = None) -> Any:
        """The profile with its band; of several profiles, their mean. Saved to ``path`` if given. Needs matplotlib."""
        from ..plot.recurrence import lag_curve

        return lag_curve(self if len(self) == 1 else self.mean(), path, several=len(self))

    def _surrogates(self) -> Doubles:
        if self.surrogates is None:
            raise InputError("n=99 or another number of surrogates is needed for a band and a p-value")
        return self.surrogates


def profile_of(
    matrices: Sequence[Any], lags: Any, labels: Mapping[str, tuple[Any, ...]], provenance: Mapping[str, Any]
) -> LagProfile:
    """The lag profiles of counted matrices, which need not be of two series.

    Parameters
    ----------
    matrices : sequence of RecurrenceResult
    lags : int, optional
        As for :func:`pyedmcl.lag_profile`; by default as far as all matrices reach.
    """
    reach = min(min(one.counts.n_rows, one.counts.n_columns) for one in matrices) - 1
    most = reach if lags is None else integer("lags", lags, 0, "the largest lag to either side", most=reach)
    rates = np.array([_rates_of(one.counts, one, most) for one in matrices])
    return LagProfile(rates, np.arange(-most, most + 1), labels, provenance=provenance)


def _rates_of(counts: Counts, result: Any, most: int) -> Doubles:
    middle = counts.n_rows - 1
    place = slice(middle - most, middle + most + 1)
    cells = cells_by_offset(*result.complete)[place]
    with np.errstate(invalid="ignore", divide="ignore"):
        rates: Doubles = np.where(cells > 0, counts.per_diagonal[place] / cells, np.nan)
    # Diagonals are counted by column - row, and columns are points of x, unless the convention has them otherwise.
    return rates[::-1] if result.convention.columns == "x" else rates

"""What the functions return: frozen, with provenance, and ready for frames and plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import missing_extra


def _pandas(purpose: str) -> Any:
    try:
        import pandas
    except ImportError as error:
        raise missing_extra("pandas", "io", purpose) from error
    return pandas


@dataclass(frozen=True)
class KnnResult:
    """Nearest neighbours of every row.

    Attributes
    ----------
    indices : ndarray of int32 (n_rows, k)
        Rows of the library, nearest first, ties by row; -1 where there is no legal neighbour.
    distances : ndarray (n_rows, k)
        Euclidean distances in the data's unit; inf where there is no legal neighbour.
    provenance : mapping
        Device, driver, kernel digest, parameters.
    """

    indices: NDArray[np.int32]
    distances: NDArray[np.floating]
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def plot(self, path: str | None = None) -> Any:
        """Distances of the nearest and the last neighbour over time; saved to ``path`` if given. Needs matplotlib."""
        from .plot.states import neighbour_distances

        return neighbour_distances(self, path)


@dataclass(frozen=True)
class SimplexResult:
    """Simplex projection of one series; one entry per embedded query row t = (E-1)*tau, ..., n-1.

    Attributes
    ----------
    time : ndarray
        Row number t + Tp that is predicted.
    observed : ndarray of float64
        Value there, NaN outside the series.
    predicted, variance : ndarray of float64
        Weighted mean of the neighbours' targets, and the weighted variance around it; NaN where there is no neighbour.
    rho, mae, rmse : float
        Pearson correlation (NaN for fewer than 3 pairs or zero variance), mean absolute error, root mean square error.
    """

    time: NDArray[np.int_]
    observed: NDArray[np.float64]
    predicted: NDArray[np.float64]
    variance: NDArray[np.float64]
    rho: float
    mae: float
    rmse: float
    E: int
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def to_frame(self) -> Any:
        """A pandas DataFrame with columns time, observed, predicted, variance."""
        columns = ("time", "observed", "predicted", "variance")
        return _pandas("to_frame()").DataFrame({name: getattr(self, name) for name in columns})

    def plot(self, path: str | None = None) -> Any:
        """Observed against predicted over time; saved to ``path`` if given. Needs matplotlib."""
        from .plot import predictions

        return predictions(self, path)


@dataclass(frozen=True)
class EmbedDimensionResult:
    """Forecast skill against embedding dimension.

    Attributes
    ----------
    E : int or ndarray of int (n_series,)
        Dimension of the highest rho (the smaller one of a tie; 1 where no rho is defined).
    rho : ndarray of float64 (E_max,) or (n_series, E_max)
        Skill for E = 1, ..., E_max.
    names : tuple of str
    """

    E: Any
    rho: NDArray[np.float64]
    names: tuple[str, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row per E, a column per series."""
        table = np.atleast_2d(self.rho).T
        frame = _pandas("to_frame()").DataFrame(table, columns=list(self.names))
        frame.index = range(1, len(table) + 1)
        frame.index.name = "E"
        return frame

    def plot(self, path: str | None = None) -> Any:
        """rho against E; saved to ``path`` if given. Needs matplotlib."""
        from .plot import skill_against_E

        return skill_against_E(self, path)


@dataclass(frozen=True)
class XmapResult:
    """All-pairs cross-map skill.

    Attributes
    ----------
    rho : array_like (n_series, n_series)
        Row = library, column = target: rho[i, j] is the skill with which the embedding of series i predicts series j,
        hence evidence that j drives i. An array, or a lazy one read from ``store`` where ``out=`` was given.
    E : ndarray of int (n_series,)
        Embedding dimension of each target.
    names : tuple of str
    store : object or None
        The result store, where there is one.
    """

    rho: Any
    E: NDArray[np.int_]
    names: tuple[str, ...]
    store: Any = field(default=None, repr=False)
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def to_frame(self) -> Any:
        """A pandas DataFrame, rows = libraries, columns = targets."""
        return _pandas("to_frame()").DataFrame(np.asarray(self.rho), index=list(self.names), columns=list(self.names))

    def edges(self, top: int = 100) -> Sequence[Any]:
        """The ``top`` strongest pairs off the diagonal, as (library, target, rho, E)."""
        from .io.export import strongest_edges

        return strongest_edges(self.rho, self.names, self.E, top)

    def plot(self, path: str | None = None) -> Any:
        """Heat map; saved to ``path`` if given. Needs matplotlib."""
        from .plot import heat_map

        return heat_map(self.rho, self.names, path)

    def plot_network(self, path: str | None = None, *, top: int = 40) -> Any:
        """The ``top`` strongest pairs as arrows from cause to effect; saved to ``path`` if given. Needs matplotlib."""
        from .plot.network import causal_network

        return causal_network(self.rho, self.names, path, top=top)

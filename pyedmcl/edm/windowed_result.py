"""What cross mapping and projection within windows return: skill over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..data.grid import Grid
from ..io.edges import are_two
from ..io.fields import labelled
from ..io.optional import pandas_for
from ..io.result import Result
from ..io.roles import ROLES, roles
from .convergence import means
from .xmap_result import best_edges

_SHOWN = 8  # pairs that a picture shows


def _spans(windows: Any, each: int) -> dict[str, NDArray[Any]]:
    """First row of each window, one past the last, and its middle, in ``each`` rows of a table."""
    spans = {"start": windows.starts, "end": windows.starts + windows.width, "time": windows.time}
    return {name: np.repeat(values, each) for name, values in spans.items()}


@dataclass(frozen=True, repr=False)
class WindowedMap(Result):
    """All-pairs cross-map skill within each window.

    Attributes
    ----------
    rho : ndarray (n_windows, n_libraries, n_targets)
        Row = library, column = target, as in :class:`XmapResult`.
    E : ndarray of int (n_windows, n_targets)
        Embedding dimension of each target in each window.
    names : tuple of str
        Of the libraries.
    targets : tuple of str or None
        Names of the targets, where these are not the libraries.
    starts : ndarray of int (n_windows,)
        First row of each window.
    width : int
        Rows of a window.
    time : ndarray (n_windows,)
        Middle of each window: a date or a number as the data have them, else a row.
    grids : (Grid or None, Grid or None)
        Where libraries and targets lie, if they are fields.
    skill : str
        What rho holds: "pearson", or another measure that was asked for.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.xmap(network.values, E=3, windows=(200, 100))  # 200 rows each, 100 from one to the next
    >>> result.starts.tolist(), result.rho.shape
    ([0, 100, 200], (3, 4, 4))
    >>> result.edges(top=1)[0].target  # of the pair that is strongest in the mean over windows
    'x2'
    >>> result.curves()["x2 drives x0?"].shape
    (3,)
    """

    rho: NDArray[Any]
    E: NDArray[np.int_]
    names: tuple[str, ...]
    targets: tuple[str, ...] | None
    starts: NDArray[np.int_]
    width: int
    time: NDArray[Any]
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    grids: tuple[Grid | None, Grid | None] = field(default=(None, None), repr=False)
    skill: str = "pearson"

    def to_xarray(self) -> Any:
        """An xarray DataArray (time, library, target); the coordinates of a field take the place of its cells."""
        axes = [("library", self.grids[0] or self.names), ("target", self.grids[1] or self.targets or self.names)]
        return labelled(self.rho, [("time", self.time), *axes], "rho")

    def columns(self) -> dict[str, NDArray[Any]]:
        """What :meth:`to_frame` holds, by name."""
        n = len(self.starts)
        library, target = np.nonzero(are_two(self.names, self.targets))
        pairs = roles(np.array(self.names)[library], np.array(self.targets or self.names)[target])
        return _spans(self, len(library)) | {
            **{role: np.tile(held, n) for role, held in zip(ROLES, pairs, strict=True)},
            "rho": self.rho[:, library, target].reshape(-1), "E": self.E[:, target].reshape(-1),
            "E_of": np.full(n * len(library), "cause"),
        }  # fmt: skip

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each window and pair of different series.

        Columns are start and end (rows begin <= t < end), time, cause, effect, library, target, rho, E, E_of.
        """
        return pandas_for("to_frame()").DataFrame(self.columns())

    def mean(self) -> NDArray[np.float64]:
        """Mean (n_libraries, n_targets) over the windows in which a pair has a skill; NaN where it has none."""
        present = np.isfinite(self.rho)
        with np.errstate(invalid="ignore"):
            total = np.where(present, self.rho, 0).sum(axis=0, dtype=np.float64)
            return np.asarray(total / present.sum(axis=0))

    def edges(self, top: int = 100) -> Sequence[Any]:
        """The ``top`` pairs that are strongest in the mean over windows (of errors the smallest), and median E."""
        return best_edges(self.mean(), self.skill, self.names, np.median(self.E, axis=0).astype(int), top, self.targets)

    def curves(self) -> dict[str, NDArray[Any]]:
        """Skill over time of the pairs of two series that are strongest in the mean."""
        targets = self.targets or self.names
        place = [{name: i for i, name in enumerate(names)} for names in (self.names, targets)]
        pairs = [(edge.library, edge.target) for edge in self.edges(_SHOWN)]
        return {f"{cause} drives {effect}?": self.rho[:, place[0][effect], place[1][cause]] for effect, cause in pairs}

    def plot(self, path: str | None = None) -> Any:
        """Skill of the strongest pairs over time; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.windows import skill_over_time

        return skill_over_time(self, path)


@dataclass(frozen=True, repr=False)
class WindowedForecast(Result):
    """Simplex projection within each window.

    Attributes
    ----------
    rho, mae, rmse : ndarray (n_windows,)
    skill : ndarray (n_windows,)
        The measure that was asked for; rho by default.
    predicted, observed, variance : ndarray (n_windows, n)
        As of :class:`SimplexResult`: of each row of the window from the first on that has all its lags.
    E : int
    starts, width, time
        As of :class:`WindowedMap`.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.simplex(network.values[:, 0], E=3, windows=(200, 100))
    >>> result.time.tolist(), bool((result.rho > 0.9).all())
    ([99.5, 199.5, 299.5], True)
    >>> result.to_frame().columns.tolist()
    ['start', 'time', 'rho', 'mae', 'rmse']
    """

    row_column: ClassVar = "time"

    rho: NDArray[np.float64]
    mae: NDArray[np.float64]
    rmse: NDArray[np.float64]
    predicted: NDArray[np.float64]
    observed: NDArray[np.float64]
    variance: NDArray[np.float64]
    skill: NDArray[np.float64]
    E: int
    starts: NDArray[np.int_]
    width: int
    time: NDArray[Any]
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each window: start, time, rho, mae, rmse."""
        columns = {"start": self.starts, "time": self.time, "rho": self.rho, "mae": self.mae, "rmse": self.rmse}
        return pandas_for("to_frame()").DataFrame(columns)

    def curves(self) -> dict[str, NDArray[Any]]:
        """Skill over time."""
        return {f"E = {self.E}": self.rho}

    def plot(self, path: str | None = None) -> Any:
        """Skill over time; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.windows import skill_over_time

        return skill_over_time(self, path)


@dataclass(frozen=True, repr=False)
class WindowedCcm(Result):
    """Convergent cross mapping of two series within each window.

    Attributes
    ----------
    rho : ndarray of float64 (n_windows, 2, n_sizes, samples)
        As of :class:`CcmResult`.
    lib_sizes : ndarray of int (n_sizes,)
    links : ((str, str), (str, str))
        (library, target) of each direction.
    E : (int, int)
    seed : int
        Each window draws the rows that its number chooses.
    skill : str
        What rho holds: "pearson", or another measure that was asked for.
    starts, width, time
        As of :class:`WindowedMap`.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> x, y = network.values[:, 0], network.values[:, 1]
    >>> result = pyedmcl.ccm(x, y, E=3, lib_sizes=[20, 150], sample=5, seed=1, windows=(200, 100))
    >>> result.mean.shape  # window, direction, library size
    (3, 2, 2)
    >>> result.curves()["x drives y?"].round(1).tolist()  # at the largest library
    [0.4, 0.5, 0.7]
    """

    rho: NDArray[np.float64]
    lib_sizes: NDArray[np.int_]
    links: tuple[tuple[str, str], tuple[str, str]]
    E: tuple[int, int]
    seed: int
    skill: str
    starts: NDArray[np.int_]
    width: int
    time: NDArray[Any]
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean skill (n_windows, 2, n_sizes) over the samples that have one."""
        return means(self.rho)

    def columns(self) -> dict[str, NDArray[Any]]:
        """What :meth:`to_frame` holds, by name."""
        n, sizes = len(self.starts), len(self.lib_sizes)
        pairs = roles(*(np.tile(np.repeat(names, sizes), n) for names in zip(*self.links, strict=True)))
        return _spans(self, 2 * sizes) | dict(zip(ROLES, pairs, strict=True)) | {
            "lib_size": np.tile(self.lib_sizes, 2 * n), "mean": self.mean.reshape(-1),
        }  # fmt: skip

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each window, direction and size.

        Columns are start and end (rows begin <= t < end), time, cause, effect, library, target, lib_size, mean.
        """
        return pandas_for("to_frame()").DataFrame(self.columns())

    def curves(self) -> dict[str, NDArray[Any]]:
        """Mean skill of both directions over time, at the largest library."""
        largest = int(self.lib_sizes.argmax())
        mean = self.mean[:, :, largest]
        return {f"{target} drives {library}?": mean[:, d] for d, (library, target) in enumerate(self.links)}

    def plot(self, path: str | None = None) -> Any:
        """Skill of both directions over time; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.windows import skill_over_time

        return skill_over_time(self, path)


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
        return _spans(self, sizes * len(library)) | dict(zip(ROLES, pairs, strict=True)) | {
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
        from ..io.edges import strongest_edges

        rho = self.rho[:, self.lib_sizes.argmax()]
        mean = np.nan_to_num(rho).mean(axis=0)
        best = strongest_edges(mean, self.names, np.median(self.E, axis=0).astype(int), _SHOWN)
        place = {name: i for i, name in enumerate(self.names)}
        return {f"{e.target} drives {e.library}?": rho[:, place[e.library], place[e.target]] for e in best}

    def plot(self, path: str | None = None) -> Any:
        """Skill of the strongest pairs over time; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.windows import skill_over_time

        return skill_over_time(self, path)

"""What convergent cross mapping returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...io.fields import labelled
from ...io.labels import Label, common
from ...io.optional import need, pandas_for
from ...io.result import Result
from ...io.roles import role_columns
from ..shared.convergence import Convergence, convergence, means
from ..shared.measures import ERRORS


@dataclass(frozen=True, repr=False)
class CcmResult(Result):
    """Cross-map skill of two series in both directions against library size.

    Attributes
    ----------
    lib_sizes : ndarray of int (n_sizes,)
    rho : ndarray of float64 (2, n_sizes, samples)
        Skill of each random sub-library; the first axis is the direction, see ``links``.
    links : ((str, str), (str, str))
        (library, target) of each direction: the library's states predict the target, so that a skill that converges
        says that the *target* drives the library.
    n_rows : (int, int)
        Predicted rows of each direction.
    E : (int, int)
        Coordinates of the states of each direction's library.
    tau, Tp : int
    seed : int
        Chooses the random sub-libraries; the same seed gives the same ones on every device.
    method : str
    skill : str
        What rho holds: "pearson", or another measure that was asked for.
    predictions : ndarray (2, n_sizes, samples, n) or None
        Where they were asked for: those of each sub-library, at the rows that are predicted.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> x, y = network.values[:, 0], network.values[:, 1]
    >>> result = pyedmcl.ccm(x, y, E=3, lib_sizes=[20, 100, 390], sample=20, seed=1)
    >>> result.links[1]  # states of y predict x: does x drive y?
    ('y', 'x')
    >>> result.mean[1].round(2).tolist()  # it does: skill grows with the library
    [0.39, 0.55, 0.65]
    >>> result.convergence[1].gain > 0.2
    True
    """

    column_labels: ClassVar = {"E": Label("1", "embedding dimension of the library")}

    lib_sizes: NDArray[np.int_]
    rho: NDArray[np.float64]
    links: tuple[tuple[str, str], tuple[str, str]]
    n_rows: tuple[int, int]
    E: tuple[int, int]
    tau: int
    Tp: int
    seed: int
    method: str = "simplex"
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    skill: str = "pearson"
    predictions: NDArray[np.float64] | None = field(default=None, repr=False)

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean skill (2, n_sizes) over the samples that have one."""
        return means(self.rho)

    @property
    def median(self) -> NDArray[np.float64]:
        """Median skill (2, n_sizes)."""
        return self.quantiles((0.5,))[..., 0]

    def quantiles(self, q: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95)) -> NDArray[np.float64]:
        """Quantiles (2, n_sizes, len(q)) of the skill; NaN where no sample has one."""
        shares = np.asarray(q, np.float64)
        if shares.ndim != 1 or not ((shares >= 0) & (shares <= 1)).all():
            raise InputError(f"q={q!r}: a sequence of numbers from 0 to 1 is needed")
        out = np.full((*self.rho.shape[:2], len(shares)), np.nan)
        for place in np.ndindex(*self.rho.shape[:2]):
            finite = self.rho[place][np.isfinite(self.rho[place])]
            if finite.size:
                out[place] = np.quantile(finite, shares)
        return out

    @property
    def convergence(self) -> tuple[Convergence, Convergence]:
        """Tests of both directions: does skill grow with the library? Raises InputError for errors."""
        if self.skill in ERRORS:
            raise InputError(f"skill={self.skill!r}: tests of convergence are of correlations")
        first, second = (convergence(self.rho[d], self.lib_sizes, self.n_rows[d]) for d in (0, 1))
        return first, second

    def to_xarray(self) -> Any:
        """An xarray.Dataset of rho (direction, lib_size, sample), and of library, target and E (direction)."""
        named = _directions(self.links)
        axes = [*named.axis, ("lib_size", self.lib_sizes), ("sample", np.arange(self.rho.shape[2]))]
        parts = {"rho": labelled(self.rho, axes, "rho"), "E": labelled(np.array(self.E), named.axis, "E")}
        return need("xarray", "to_xarray()").Dataset({**named.roles, **parts})

    def to_frame(self, samples: bool = False) -> Any:
        """A pandas DataFrame: cause, effect, library, target, lib_size, mean, median and quantiles.

        With ``samples`` a row for each sample.
        """
        pandas = pandas_for("to_frame()")
        frames = []
        spread = self.quantiles((0.05, 0.25, 0.5, 0.75, 0.95))
        for d, (library, target) in enumerate(self.links):
            head = role_columns(library, target)
            if samples:
                n = self.rho.shape[2]
                numbers = np.tile(np.arange(n), len(self.lib_sizes))
                frames.append(pandas.DataFrame({**head, "lib_size": np.repeat(self.lib_sizes, n), "sample": numbers,
                                                "rho": self.rho[d].reshape(-1)}))  # fmt: skip
                continue
            names = ("q05", "q25", "median", "q75", "q95")
            frames.append(pandas.DataFrame({
                **head, "lib_size": self.lib_sizes, "mean": self.mean[d],
                **{name: spread[d, :, q] for q, name in enumerate(names)}}))  # fmt: skip
        return pandas.concat(frames, ignore_index=True)

    def plot(self, path: str | None = None) -> Any:
        """Skill against library size with bands; saved to ``path`` if given. Needs matplotlib."""
        from ...plot.libraries import skill_against_library

        return skill_against_library(self, path)


@dataclass(frozen=True, repr=False)
class LaggedCcmResult(Result):
    """Cross-map skill of two series in both directions against the interval Tp between state and target.

    A driver is best seen at Tp < 0: the state of what it drives remembers it.

    Attributes
    ----------
    Tp : ndarray of int (n_lags,)
    rho : ndarray of float64 (2, n_lags)
        Mean skill over the samples.
    links : ((str, str), (str, str))
        (library, target) of each direction, as in :class:`CcmResult`.
    lib_size : int or None
        Rows of a random sub-library; None for all.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> x, y = network.values[:, 0], network.values[:, 1]
    >>> result = pyedmcl.ccm_lagged(x, y, E=3, Tp=[-2, -1, 0, 1])
    >>> result.links[1], result.best[1]  # states of y tell most of x one row earlier, hence x drives y
    (('y', 'x'), -1)
    >>> result.to_frame().columns.tolist()
    ['Tp', 'y -> x', 'x -> y']
    """

    series_label: ClassVar = Label("1", "skill: evidence that the first series drives the second")
    column_labels: ClassVar = common("Tp")

    Tp: NDArray[np.int_]
    rho: NDArray[np.float64]
    links: tuple[tuple[str, str], tuple[str, str]]
    lib_size: int | None
    seed: int
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def best(self) -> tuple[int, int]:
        """Tp of the highest skill in each direction, nearest to 0 of a tie."""
        order = np.argsort(np.abs(self.Tp), kind="stable")
        best = [int(self.Tp[order[np.where(np.isnan(r), -np.inf, r)[order].argmax()]]) for r in self.rho]
        return best[0], best[1]

    def to_xarray(self) -> Any:
        """An xarray.Dataset of rho (direction, Tp), and of library and target (direction)."""
        named = _directions(self.links)
        rho = labelled(self.rho, [*named.axis, ("Tp", self.Tp)], "rho")
        return need("xarray", "to_xarray()").Dataset({**named.roles, "rho": rho})

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row per Tp and a column per direction, named "cause -> effect"."""
        columns = {f"{target} -> {library}": self.rho[d] for d, (library, target) in enumerate(self.links)}
        return pandas_for("to_frame()").DataFrame({"Tp": self.Tp, **columns})

    def plot(self, path: str | None = None) -> Any:
        """Skill against Tp; saved to ``path`` if given. Needs matplotlib."""
        from ...plot.libraries import skill_against_Tp

        return skill_against_Tp(self, path)


class _Directions(NamedTuple):
    """Both directions as a dimension, and who is library and target in each."""

    axis: list[tuple[str, Any]]
    roles: dict[str, Any]


def _directions(links: Sequence[tuple[str, str]]) -> _Directions:
    axis: list[tuple[str, Any]] = [("direction", [f"{target} -> {library}" for library, target in links])]
    sides = zip(("library", "target"), zip(*links, strict=True), strict=True)
    return _Directions(axis, {name: labelled(np.array(side), axis, name) for name, side in sides})

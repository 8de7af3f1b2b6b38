"""What a scan over embeddings returns: skill with named axes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.arguments import real
from ...errors import InputError, shown
from ...io.fields import labelled
from ...io.optional import pandas_for
from ...io.result import Result


@dataclass(frozen=True, eq=False, repr=False)
class EmbeddingScan(Result):
    """Skill of predicting series by themselves over embedding dimension, lag and steps ahead.

    Attributes
    ----------
    rho : ndarray of float64 (n_series, E, tau, Tp)
        Without the first axis for 1-D input. NaN where a skill is not defined.
    E, tau, Tp : tuple of int
        The values along these axes.
    names : tuple of str
        Of the series.
    single : bool
        The input was one series, 1-D.
    provenance : mapping

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> scan = pyedmcl.embedding_scan(network.values[:, 0], E=range(1, 5), tau=[1, 2], Tp=[1, 3])
    >>> scan.axes, scan.rho.shape
    (('E', 'tau', 'Tp'), (4, 2, 2))
    >>> best = scan.sel(Tp=1).best()
    >>> best["E"], best["tau"], round(best["rho"], 2)
    (2, 1, 0.99)
    """

    rho: NDArray[np.float64]
    E: tuple[int, ...]
    tau: tuple[int, ...]
    Tp: tuple[int, ...]
    names: tuple[str, ...]
    single: bool
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes of ``rho``."""
        return ("E", "tau", "Tp") if self.single else ("series", "E", "tau", "Tp")

    def sel(self, *, E: int | None = None, tau: int | None = None, Tp: int | None = None) -> EmbeddingScan:
        """The part at some values: axes that are named keep that value alone."""
        chosen: dict[str, tuple[int, ...]] = {}
        rho = self.rho
        for axis, (name, value) in enumerate((("E", E), ("tau", tau), ("Tp", Tp)), len(self.axes) - 3):
            values = getattr(self, name)
            if value is not None:
                if value not in values:
                    raise InputError(f"{name}={shown(value)} was not scanned; there are {', '.join(map(str, values))}")
                rho = np.take(rho, [values.index(value)], axis=axis)
                values = (value,)
            chosen[name] = values
        return replace(self, rho=rho, E=chosen["E"], tau=chosen["tau"], Tp=chosen["Tp"])

    def best(self, tolerance: float = 0.0) -> Any:
        """The embedding of the highest skill, for each Tp.

        Of all (E, tau) whose skill is within ``tolerance`` of the highest, the one of the smallest E, and of these of
        the smallest tau.

        Returns
        -------
        dict, or list of dict
            Of one series, a list with one for each series else: "E", "tau" and "rho", each a list over Tp where several
            were scanned. E and tau are the first ones, and rho NaN, where no skill is defined.
        """
        within = real("tolerance", tolerance, "a number of at least 0", lambda value: 0 <= value < np.inf)
        rho = self.rho[None] if self.single else self.rho
        best = [self._best_of(one, within) for one in rho]
        return best[0] if self.single else best

    def _best_of(self, rho: NDArray[np.float64], tolerance: float) -> dict[str, Any]:
        columns: dict[str, list[Any]] = {"E": [], "tau": [], "rho": []}
        for at in range(len(self.Tp)):
            skill = np.where(np.isnan(rho[..., at]), -np.inf, rho[..., at])
            place = int(np.argmax(skill >= skill.max() - tolerance))  # E first, then tau
            dimension, lag = divmod(place, len(self.tau))
            columns["E"].append(self.E[dimension])
            columns["tau"].append(self.tau[lag])
            columns["rho"].append(float(rho[dimension, lag, at]))
        return {name: values[0] if len(self.Tp) == 1 else values for name, values in columns.items()}

    def to_xarray(self) -> Any:
        """An xarray.DataArray with the names and values of :attr:`axes`."""
        values = {"series": self.names, "E": list(self.E), "tau": list(self.tau), "Tp": list(self.Tp)}
        return labelled(self.rho, [(name, values[name]) for name in self.axes], "rho")

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row for each combination, with columns series, E, tau, Tp and rho."""
        rows = itertools.product(self.names, self.E, self.tau, self.Tp)
        frame = pandas_for("to_frame()").DataFrame(list(rows), columns=["series", "E", "tau", "Tp"])
        frame["rho"] = self.rho.ravel()
        return frame.drop(columns="series") if self.single else frame

    def plot(self, path: str | None = None) -> Any:
        """Skill over E and tau, a panel for each Tp, the median of several series; saved to ``path`` if given. Needs
        matplotlib."""
        from ...plot.embedding import skill_surface

        return skill_surface(self, path)

"""Significance of all-pairs cross mapping: every skill against surrogates of its target, adjusted for all pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..device.select import DeviceNames
from ..errors import InputError
from ..io.optional import pandas_for
from ..jobs.function import public_function
from ..jobs.sinks import ArraySink
from ..launch.progress import Progress
from . import arguments
from .pairs import pairs_arguments, with_dimensions
from .significance import false_discovery
from .surrogate import check_method
from .xmap_significance_problem import XmapSignificanceProblem

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class XmapSignificance:
    """All-pairs cross-map skill and its significance.

    Attributes
    ----------
    rho : ndarray of float64 (n_series, n_series)
        Row = library, column = target, as of :func:`pyedmcl.xmap`.
    p_value : ndarray of float64 (n_series, n_series)
        (1 + surrogates of the target that do as well) / (1 + n): one-sided; NaN on the diagonal and where rho is.
    q_value : ndarray of float64 (n_series, n_series)
        Adjusted for all pairs off the diagonal (Benjamini and Hochberg).
    E : ndarray of int (n_series,)
        Embedding dimension of each target.
    names : tuple of str
    n : int
        Surrogates of each target.
    method : str
        Of the surrogates.
    seed : int
    """

    rho: Doubles
    p_value: Doubles
    q_value: Doubles
    E: NDArray[np.int_]
    names: tuple[str, ...]
    n: int
    method: str
    seed: int
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def significant(self, rate: float = 0.05) -> NDArray[np.bool_]:
        """Pairs (n_series, n_series) that are called significant at a false discovery rate."""
        limit = arguments.real("rate", rate, "a number between 0 and 1", lambda share: 0 < share < 1)
        found: NDArray[np.bool_] = self.q_value <= limit
        return found

    def to_frame(self, rate: float | None = None) -> Any:
        """A pandas DataFrame of pairs off the diagonal: library, target, rho, p_value, q_value, E, the strongest first.

        With ``rate``, only those significant at this false discovery rate.
        """
        chosen = ~np.eye(len(self.names), dtype=bool) if rate is None else self.significant(rate)
        library, target = np.nonzero(chosen)
        strength = np.where(np.isnan(self.rho), -np.inf, self.rho)[library, target]
        order = np.lexsort((target, library, -strength))
        library, target = library[order], target[order]
        return pandas_for("to_frame()").DataFrame({
            "library": [self.names[i] for i in library], "target": [self.names[j] for j in target],
            "rho": self.rho[library, target], "p_value": self.p_value[library, target],
            "q_value": self.q_value[library, target], "E": self.E[target],
        })  # fmt: skip

    def plot(self, path: str | None = None, rate: float = 0.05) -> Any:
        """Map of the significant skills; saved to ``path`` if given. Needs matplotlib."""
        from ..plot import heat_map

        title = f"significant at a false discovery rate of {rate:g}; others grey"
        return heat_map(np.where(self.significant(rate), self.rho, np.nan), self.names, path, title=title)

    def plot_network(self, path: str | None = None, rate: float = 0.05, *, top: int = 40) -> Any:
        """Significant pairs as arrows from cause to effect; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.network import causal_network

        title = f"significant at a false discovery rate of {rate:g}"
        return causal_network(self.rho, self.names, path, keep=self.significant(rate), top=top, title=title)


@public_function
def xmap_significance(
    data: Any,
    *,
    E: str | int | Sequence[int] = "auto",
    tau: int = 1,
    Tp: int = 0,
    surrogate: str = "phase",
    n: int = 99,
    seed: int | None = None,
    exclusion_radius: int = 0,
    knn: int | None = None,
    E_max: int = 20,
    period: int | None = None,
    recurrence: float = 0.1,
    columns: Sequence[str | int] | str | int | None = None,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: DeviceNames = None,
    tune: str | None = None,
) -> XmapSignificance:
    """Cross map every series onto every other, and onto surrogates of it: which skills are more than chance?

    Parameters
    ----------
    data : array_like (n_steps, n_series)
        Time along the first axis, NaN for gaps (which only the methods "shuffle" and "seasonal" allow).
    surrogate : str
        Method of :func:`pyedmcl.surrogate`.
    n : int
        Surrogates of each target. The smallest p-value is 1 / (n + 1): with many pairs, many surrogates are needed.
    seed : int, optional
        Chooses the surrogates; by default a fresh one, which the result names.
    period, recurrence
        As for :func:`pyedmcl.surrogate`; "twin" takes each target's E, and tau.
    progress : callable, optional
        Called as ``progress(done, total, "series")`` with targets whose surrogates are done and, while E is searched,
        with unit "dimensions"; within long searches with unit "queries".
    E, tau, Tp, exclusion_radius, knn, E_max, columns, dtype, device, tune
        As for :func:`pyedmcl.xmap`.

    Returns
    -------
    XmapSignificance

    Raises
    ------
    InputError
        Data or an argument cannot be used.
    DeviceNotFoundError, DeviceMemoryError
        No device matches; the surrogates of one target or a table do not fit.

    See Also
    --------
    false_discovery : from p-values to false discovery rates.
    surrogate : the null hypotheses.

    Notes
    -----
    Cost: the lookups of :func:`xmap` for n + 1 times as many targets; its search is repeated for each batch of
    targets that fits into memory.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.xmap_significance(network.values, E=3, n=19, seed=1)
    >>> result.p_value.shape
    (4, 4)
    """
    count, number = arguments.draws("n", n), arguments.stream(seed)
    arguments.reporter(progress)
    check_method(surrogate, "surrogate")
    fields = pairs_arguments(
        data, E=E, tau=tau, Tp=Tp, exclusion_radius=exclusion_radius, knn=knn, E_max=E_max, columns=columns, dtype=dtype
    )
    series = fields["data"].series
    if series.n_series < 2:
        raise InputError("data: there is one series; pairs need two at least")
    problem = XmapSignificanceProblem(
        **fields, method=surrogate, n=count, seed=number, period=period, recurrence=recurrence
    )
    runner = arguments.runner_on(device, problem.data.dtype)
    rho, p_value = np.empty((2, series.n_series, series.n_series))
    sink = ArraySink(problem.blocks(), [rho.T, p_value.T])
    problem = with_dimensions(problem, runner, sink)
    record = runner.run(problem, sink)
    return XmapSignificance(
        rho, p_value, false_discovery(p_value), np.array(problem.E, int), series.names, count, surrogate, number,
        runner.provenance(problem.kernels, record),
    )  # fmt: skip

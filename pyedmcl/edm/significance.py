"""Significance of cross-map skill against surrogates of the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.series import Series, build_series
from ..device.select import DeviceNames
from ..errors import InputError
from ..io.optional import pandas_for
from ..jobs.function import public_function
from ..jobs.sinks import ArraySink
from . import arguments
from .ccm_directions import both_directions, library_sizes, sides
from .significance_problem import CcmSignificanceProblem
from .surrogate import check_method, draw, maker

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class CcmSignificance:
    """Cross-map skill of two series against that of surrogates of the target.

    Attributes
    ----------
    links : ((str, str), (str, str))
        (library, target) of each direction: a significant skill says that the target drives the library, or that both
        share a driver whose trace the surrogates lost.
    rho : ndarray of float64 (2,)
        Skill; the mean over samples where sub-libraries are drawn.
    surrogates : ndarray of float64 (2, n)
        Skill of the same states for surrogates of the target.
    p_value : ndarray of float64 (2,)
        (1 + surrogates that do as well) / (1 + n): one-sided, never 0. NaN where the skill is.
    q_value : ndarray of float64 (2,)
        Adjusted for the two directions (Benjamini and Hochberg).
    lib_size : int or None
        Rows of a random sub-library; None for all.
    method : str
        Of the surrogates.
    seed : int
    """

    links: tuple[tuple[str, str], tuple[str, str]]
    rho: Doubles
    surrogates: Doubles
    p_value: Doubles
    q_value: Doubles
    lib_size: int | None
    method: str
    seed: int
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def to_frame(self) -> Any:
        """A pandas DataFrame: library, target, rho, the surrogates' 95 % quantile, p_value, q_value."""
        return pandas_for("to_frame()").DataFrame({
            "library": [link[0] for link in self.links], "target": [link[1] for link in self.links], "rho": self.rho,
            "surrogates_q95": [_quantile(row, 0.95) for row in self.surrogates], "p_value": self.p_value,
            "q_value": self.q_value,
        })  # fmt: skip

    def plot(self, path: str | None = None) -> Any:
        """Skill beside the surrogates' distribution; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.libraries import skill_against_surrogates

        return skill_against_surrogates(self, path)


def _quantile(values: Doubles, q: float) -> float:
    there = values[np.isfinite(values)]
    return float(np.quantile(there, q)) if there.size else float("nan")


def false_discovery(p_values: Any) -> Doubles:
    """Smallest false discovery rate at which each test would be called significant, NaN where there is no p-value.

    Benjamini and Hochberg, J. R. Stat. Soc. B 57, 289 (1995).

    Parameters
    ----------
    p_values : array_like
        Of any shape, from 0 to 1; NaN for tests that were not made.

    Returns
    -------
    ndarray of float64
        Of the same shape.

    Raises
    ------
    InputError
        A value is no probability.

    See Also
    --------
    xmap_significance : p-values of all pairs.

    Notes
    -----
    Cost: sorts the p-values.

    Examples
    --------
    >>> import pyedmcl
    >>> pyedmcl.false_discovery([0.01, 0.02, 0.5]).tolist()
    [0.03, 0.03, 0.5]
    """
    p = _probabilities(p_values)
    there = ~np.isnan(p)
    found = p[there]
    order = np.argsort(found, kind="stable")
    scaled = found[order] * len(found) / np.arange(1, len(found) + 1)
    adjusted = np.empty_like(scaled)
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    out = np.full(p.shape, np.nan)
    out[there] = adjusted
    return out


def _probabilities(p_values: Any) -> Doubles:
    """An array of numbers from 0 to 1, NaN where there is none or it is masked."""
    wrong = "p_values: numbers from 0 to 1, or NaN, are needed"
    try:
        given = np.ma.asanyarray(p_values) if isinstance(p_values, np.ma.MaskedArray) else np.asarray(p_values)
    except Exception as cause:  # whatever the object's own methods raise
        raise InputError(f"{wrong}: {cause}") from cause
    if given.dtype.kind not in "fiuO":  # a complex one would lose a part without a word
        raise InputError(f"{wrong}, not {given.dtype.name}")
    try:
        p: Doubles = np.ma.filled(given.astype(np.float64), np.nan)
    except (TypeError, ValueError, OverflowError) as cause:
        raise InputError(f"{wrong}: {cause}") from cause
    outside = p[(p < 0) | (p > 1)]
    if outside.size:
        raise InputError(f"{wrong}; there is {outside[0]:g}")
    return p


def exceedance(observed: Any, surrogates: Doubles) -> Doubles:
    """(1 + surrogates at least as large) / (1 + surrogates) along the last axis; undefined surrogates do not count.

    NaN where ``observed`` is, or where no surrogate has a value.
    """
    observed = np.asarray(observed, np.float64)
    there = np.isfinite(surrogates)
    with np.errstate(invalid="ignore"):
        reached = (there & (surrogates >= observed[..., None])).sum(axis=-1)
    n = there.sum(axis=-1)
    return np.where(np.isfinite(observed) & (n > 0), (1.0 + reached) / (1.0 + n), np.nan)


@public_function
def ccm_significance(
    x: Any,
    y: Any,
    *,
    E: int | Sequence[int],
    tau: int = 1,
    Tp: int = 0,
    surrogate: str = "phase",
    n: int = 199,
    lib_size: int | None = None,
    sample: int = 30,
    seed: int | None = None,
    exclusion_radius: int = 0,
    knn: int | None = None,
    period: int | None = None,
    recurrence: float = 0.1,
    lib_range: Any = None,
    valid_lib: Any = None,
    dtype: str = "float32",
    device: DeviceNames = None,
    tune: str | None = None,
) -> CcmSignificance:
    """Does cross mapping of two series do better than chance that shares the target's own properties?

    Both directions. Each target is replaced by surrogates, which keep its spectrum, say, but know nothing of the other
    series; all are predicted from the same states and, with ``lib_size``, the same random sub-libraries.

    Parameters
    ----------
    surrogate : str
        Method of :func:`pyedmcl.surrogate`: "phase" asks whether autocorrelation alone could explain a skill,
        "seasonal" whether a common cycle could.
    n : int
        Surrogates of each target. The smallest p-value that can be found is 1 / (n + 1).
    lib_size : int, optional
        Rows of random sub-libraries, over which skill is averaged; by default all rows are used at once.
    sample : int
        Sub-libraries, where ``lib_size`` is given.
    seed : int, optional
        Chooses surrogates and sub-libraries; by default a fresh one, which the result names.
    period, recurrence
        As for :func:`pyedmcl.surrogate`; "twin" takes E and tau of the target.
    x, y, E, tau, Tp, exclusion_radius, knn, lib_range, valid_lib, dtype, device, tune
        As for :func:`pyedmcl.ccm`.

    Returns
    -------
    CcmSignificance

    Raises
    ------
    InputError
        An argument cannot be used, or a series has gaps that the method does not allow.
    DeviceNotFoundError, DeviceMemoryError
        No device matches; sixteen samples of a library do not fit on it.

    See Also
    --------
    surrogate : the null hypotheses.
    xmap_significance : all pairs.

    Notes
    -----
    Cost: that of :func:`ccm` with n + 1 targets in each direction; the search is made once.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> x, y = network.values[:, 0], network.values[:, 1]
    >>> result = pyedmcl.ccm_significance(x, y, E=3, n=19, seed=1)
    >>> bool(((result.p_value >= 1 / 20) & (result.p_value <= 1)).all())
    True
    """
    Tp = arguments.integer("Tp", Tp)
    radius = arguments.exclusion(exclusion_radius)
    count = arguments.draws("n", n)
    samples = arguments.draws("sample", sample)
    k, number = arguments.count("knn", knn), arguments.stream(seed)
    check_method(surrogate, "surrogate")
    dtype = arguments.precision(dtype)
    first, second, tau = sides(x, y, E, tau, False)
    directions = both_directions(first, second, tau, Tp=Tp, knn=k, lib_range=lib_range, valid_lib=valid_lib)
    drawn = []
    for direction in directions:
        target = _first(direction.target.series)
        make = maker(
            target, surrogate, period=period, E=direction.target.lags, tau=tau, recurrence=recurrence,
            what="xy"[1 - direction.number], name="surrogate",
        )  # fmt: skip
        drawn.append(draw(make, count, number, direction.number, target.n_steps))
    sizes = tuple(  # of all rows there is one sample
        library_sizes(int(d.legal.sum()) if lib_size is None else lib_size, [d], "lib_size")[0] for d in directions
    )
    problem = CcmSignificanceProblem(
        directions, tuple(drawn), sizes, 1 if lib_size is None else samples, number, Tp, radius, dtype
    )
    runner = arguments.runner_on(device, dtype)
    skill = np.empty((2, 1 + count))
    record = runner.run(problem, ArraySink(problem.blocks(), [skill]))
    rho, surrogates = skill[:, 0].copy(), skill[:, 1:].copy()
    p_value = exceedance(rho, surrogates)
    return CcmSignificance(
        links=((first.name, second.name), (second.name, first.name)), rho=rho, surrogates=surrogates, p_value=p_value,
        q_value=false_discovery(p_value), lib_size=lib_size, method=surrogate, seed=number,
        provenance=runner.provenance(problem.kernels, record),
    )  # fmt: skip


def _first(series: Series) -> Series:
    return build_series(np.ascontiguousarray(series.values[:, 0]), [series.names[0]], series.time)

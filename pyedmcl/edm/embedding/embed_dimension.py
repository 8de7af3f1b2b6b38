"""The embedding dimension that predicts best, for one series or many at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...data.condition import Prepared
from ...data.group_labels import take_groups
from ...data.series import as_series, check_embedding, require_rows, tell_constant
from ...device.select import DeviceNames
from ...errors import InputError
from ...jobs.function import public_function
from ...jobs.sinks import ArraySink
from ...launch.progress import Progress
from ..shared import arguments
from ..shared.options import PredictionOptions
from .dimension_rule import DimensionRule, tell_doubtful
from .embed_dimension_problem import EmbedDimensionProblem
from .embed_dimension_result import EmbedDimensionResult
from .embed_dimension_rows import EmbedDimensionRowsProblem


@public_function
def embed_dimension(
    x: Any,
    *,
    target: Any = None,
    E_max: int = 20,
    E_rule: str | float = "best",
    tau: int = 1,
    Tp: int = 1,
    exclusion_radius: int = 0,
    knn: int | None = None,
    lib_range: Any = None,
    pred_range: Any = None,
    valid_lib: Any = None,
    groups: Any = None,
    regular: str | None = None,
    neighbors: str = "exact",
    recall: float = 0.99,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: DeviceNames = None,
    client: Any = None,
    tune: str | None = None,
) -> EmbedDimensionResult:
    """Find the embedding dimension E = 1, ..., E_max whose simplex projection of a series by itself is best (rho).

    All dimensions come from one pass over the pairs of rows, all series from a few launches; with ``target`` or chosen
    rows each series and dimension is a search of its own.

    Parameters
    ----------
    x : array_like (n_steps,) or (n_steps, n_series)
        Time along the first axis, NaN for gaps.
    target : array_like (n_steps,), optional
        Series that each of x predicts; itself by default.
    E_max : int
        Largest dimension tried, at least 1.
    E_rule : "best", "one-se" or float
        Which E is taken: that of the highest rho; the smallest whose rho is at most one standard error below it, from
        the spread of skill over eight parts of the rows; or the smallest within a tolerance of it. "one-se" is not
        available with ``target`` or chosen rows.
    tau, Tp : int
        Lag (at least 1) and steps ahead.
    exclusion_radius : int
        Rows with |t - j| up to this are no neighbours (0: the row itself).
    knn : int, optional
        Neighbours; E + 1 by default.
    lib_range, pred_range : (int, int), sequence of (int, int), or mask of bool, optional
        Rows of the library and rows that are predicted, as for :func:`pyedmcl.simplex`; they may be disjoint. Of a
        range each E uses the rows that have E lags.
    valid_lib : mask of bool (n_steps,), optional
        Library rows that may be used, in addition to ``lib_range`` (conditional embedding).
    groups : str, sequence of str, or labels (n_steps,), optional
        Recordings that stand one below the other, as for :func:`pyedmcl.simplex`.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows are not regular, as for :func:`pyedmcl.xmap`.
    neighbors, recall
        How neighbours are searched; as for :func:`pyedmcl.knn`.
    progress : callable or True, optional
        Called as ``progress(done, total, "series")``, and within long searches with unit "queries" or "states".
    dtype, device, tune
        As for :func:`pyedmcl.knn`.
    client : optional
        As for :func:`pyedmcl.xmap`.

    Returns
    -------
    EmbedDimensionResult
        ``E`` is an int and ``rho`` (E_max,) for 1-D input, else (n_series,) and (n_series, E_max).

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError
        No device matches.
    ClientError
        Workers of ``client`` cannot be used, or were lost.

    See Also
    --------
    simplex : the projection behind each value.
    xmap : takes E="auto" and calls this.

    Notes
    -----
    Cost: about n_steps^2 * E_max multiply-adds for each series: the distances of E come from those of E - 1.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.embed_dimension(network.values, E_max=5)
    >>> result.rho.shape
    (4, 5)
    >>> result.E.shape
    (4,)
    """
    _, tau = check_embedding(1, tau)
    E_max = arguments.integer("E_max", E_max, 1)
    Tp = arguments.integer("Tp", Tp)
    radius = arguments.exclusion(exclusion_radius)
    k = arguments.count("knn", knn)
    search, rule = arguments.neighbor_search(neighbors, recall), DimensionRule.parse(E_rule)
    dtype = arguments.precision(dtype)
    arguments.reporter(progress)
    rest, of = take_groups(x, groups, "x")
    series = as_series(rest, what="x")
    require_rows(series, E=E_max, tau=tau, Tp=Tp, k=1, what="x", name="E_max")
    if target is not None and of is not None:
        target = take_groups(target, groups, "target", required=False)[0]
    tell_constant(**({"x": series} if target is None else {"target": arguments.one_series(target, "target")}))
    problem: EmbedDimensionProblem | EmbedDimensionRowsProblem
    if any(given is not None for given in (target, lib_range, pred_range, valid_lib)):
        if rule.parts:
            raise InputError(
                f"E_rule={E_rule!r} is for series that predict themselves from all rows; leave out target, lib_range, "
                "pred_range and valid_lib, or give a tolerance such as E_rule=0.02"
            )
        options = PredictionOptions(
            None, tau, Tp, k, radius, lib_range=lib_range, pred_range=pred_range, valid_lib=valid_lib,
            groups=of,
        )
        problem = EmbedDimensionRowsProblem(Prepared(series, dtype), E_max, target, options, search)
        problem.check()
    else:
        if of is not None:
            layout = of.layout(E=E_max, tau=tau, Tp=[Tp], exclusion_radius=radius)
            series, radius = layout.series(series, "x"), layout.exclusion_radius
        problem = EmbedDimensionProblem(Prepared(series, dtype), E_max, tau, Tp, radius, k, search, parts=rule.parts)
    runner = arguments.runner_on(device, dtype, client)
    rho = np.empty((series.n_series, E_max))
    layers = [rho, np.empty((series.n_series, E_max, rule.parts))][: 2 if rule.parts else 1]
    record = runner.run(problem, ArraySink(problem.blocks(runner.devices), layers))
    best = rule.choose(*layers)
    tell_doubtful(series.names, best, rho)
    single = getattr(rest, "ndim", 2 if series.n_series > 1 else 1) == 1
    used = runner.provenance(problem.kernels, record)
    return EmbedDimensionResult(
        int(best[0]) if single else best, rho[0] if single else rho, series.names, used, series.grid
    )

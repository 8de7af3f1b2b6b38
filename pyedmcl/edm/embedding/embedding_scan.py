"""Skill of self-prediction over embedding dimension, lag and steps ahead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...data.arguments import MOST_STEPS, room, several, shown
from ...data.condition import Prepared
from ...data.group_labels import take_groups
from ...data.series import as_series, require_rows, tell_constant
from ...device.select import DeviceNames
from ...errors import InputError
from ...jobs.function import public_function
from ...jobs.sinks import ArraySink
from ...launch.progress import Progress
from ..shared import arguments
from .embedding_scan_problem import EmbeddingScanProblem
from .embedding_scan_result import EmbeddingScan


@public_function
def embedding_scan(
    x: Any,
    *,
    E: int | Sequence[int] = range(1, 11),
    tau: int | Sequence[int] = range(1, 6),
    Tp: int | Sequence[int] = 1,
    exclusion_radius: int = 0,
    knn: int | None = None,
    groups: Any = None,
    regular: str | None = None,
    neighbors: str = "exact",
    recall: float = 0.99,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: DeviceNames = None,
    client: Any = None,
    tune: str | None = None,
) -> EmbeddingScan:
    """Find how well series predict themselves over embedding dimension, lag and steps ahead (simplex projection).

    Each value is the one that :func:`pyedmcl.embed_dimension` gives with that lag and those steps ahead. All dimensions
    come from one pass over the pairs of rows, and all series share launches.

    Parameters
    ----------
    x : array_like (n_steps,) or (n_steps, n_series)
        Time along the first axis, NaN for gaps.
    E, tau : int or sequence of int
        Embedding dimensions and lags, at least 1. The largest of both must leave rows.
    Tp : int or sequence of int
        Steps ahead; may be negative.
    exclusion_radius : int
        Rows with |t - j| up to this are no neighbours (0: the row itself). With tau > 1, rows that are near in time are
        near in state: take some (E - 1) tau to compare lags.
    knn : int, optional
        Neighbours; E + 1 by default.
    groups : str, sequence of str, or labels (n_steps,), optional
        Recordings that stand one below the other, as for :func:`pyedmcl.simplex`.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows are not regular, as for :func:`pyedmcl.xmap`.
    neighbors, recall
        How neighbours are searched; as for :func:`pyedmcl.knn`.
    progress : callable or True, optional
        Called as ``progress(done, total, "series")``, where a series counts once for each lag and step ahead.
    dtype, device, client, tune
        As for :func:`pyedmcl.embed_dimension`.

    Returns
    -------
    EmbeddingScan
        ``rho`` (n_series, E, tau, Tp), without the first axis for 1-D input; ``best()``, ``to_frame()``, ``plot()``.

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError
        No device matches.

    See Also
    --------
    embed_dimension : one lag, with chosen rows.
    mutual_information : which lag makes coordinates independent.
    false_neighbors : which dimension unfolds the attractor.

    Notes
    -----
    Cost: that of :func:`embed_dimension` for each lag and step ahead.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> scan = pyedmcl.embedding_scan(network.values, E=range(1, 5), tau=[1, 2], Tp=[1, 3])
    >>> scan.rho.shape
    (4, 4, 2, 2)
    >>> sorted(scan.best()[0])
    ['E', 'rho', 'tau']
    """
    dims, lags, steps = (_values(*each) for each in (("E", E, 1), ("tau", tau, 1), ("Tp", Tp, None)))
    radius = arguments.exclusion(exclusion_radius)
    k = arguments.count("knn", knn)
    search = arguments.neighbor_search(neighbors, recall)
    dtype = arguments.precision(dtype)
    arguments.reporter(progress)
    rest, of = take_groups(x, groups, "x")
    series = as_series(rest, what="x")
    for ahead in steps:
        require_rows(series, E=max(dims), tau=max(lags), Tp=ahead, k=1, what="x")
    tell_constant(x=series)
    if of is not None:
        layout = of.layout(E=max(dims), tau=max(lags), Tp=steps, exclusion_radius=radius)
        series, radius = layout.series(series, "x"), layout.exclusion_radius
    problem = EmbeddingScanProblem(Prepared(series, dtype), max(dims), lags, steps, radius, k, search)
    runner = arguments.runner_on(device, dtype, client)
    rho = room("tau", (problem.total, max(dims)))
    record = runner.run(problem, ArraySink(problem.blocks(runner.devices), [rho]))
    surface = rho.reshape(len(lags), len(steps), series.n_series, max(dims)).transpose(2, 3, 0, 1)
    single = getattr(rest, "ndim", 2 if series.n_series > 1 else 1) == 1
    kept = np.ascontiguousarray(surface[:, np.array(dims) - 1])
    used = runner.provenance(problem.kernels, record)
    return EmbeddingScan(kept[0] if single else kept, dims, lags, steps, series.names, single, used)


def _values(name: str, value: Any, least: int | None) -> tuple[int, ...]:
    """One value or several along an axis, each once."""
    numbers = tuple(arguments.integer(name, one, least, most=MOST_STEPS) for one in several(name, value))
    if not numbers or len(set(numbers)) < len(numbers):
        raise InputError(f"{name}={shown(value)}: one value or several different ones are needed")
    return numbers

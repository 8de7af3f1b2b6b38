"""Convergent cross mapping: does cross-map skill grow with the library?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...device.select import DeviceNames
from ...errors import InputError
from ...jobs.blocks import Record
from ...jobs.function import public_function
from ...jobs.runner import Runner
from ...jobs.sinks import ArraySink
from ...launch.progress import Progress
from ..embedding.auto_dimension import dimensions_of
from ..shared import arguments
from ..shared.ccm_directions import METHODS, Direction, library_sizes, stated, variables
from ..shared.convergence import means
from ..shared.measures import check_room, check_skill
from ..shared.regression import check_thetas
from ..surrogates.group_draws import drawn_from
from .ccm_problem import KERNELS, CcmProblem
from .ccm_result import CcmResult, LaggedCcmResult
from .ccm_windows import windowed_ccm
from .ccm_windows_result import WindowedCcm


@public_function
def ccm(
    x: Any,
    y: Any,
    *,
    E: str | int | Sequence[int] | None = None,
    tau: int = 1,
    Tp: int = 0,
    lib_sizes: Any = None,
    sample: int = 100,
    seed: int | None = None,
    exclusion_radius: int = 0,
    knn: int | None = None,
    E_max: int = 20,
    E_rule: str | float = "best",
    method: str = "simplex",
    theta: float = 1.0,
    state: Any = None,
    embedded: bool = False,
    lib_range: Any = None,
    valid_lib: Any = None,
    groups: Any = None,
    regular: str | None = None,
    draw: str = "rows",
    windows: tuple[int, int] | None = None,
    skill: str = "pearson",
    predictions: bool = False,
    neighbors: str = "exact",
    recall: float = 0.99,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: DeviceNames = None,
    tune: str | None = None,
) -> CcmResult | WindowedCcm:
    """Convergent cross mapping of two variables, in both directions.

    For each library size, random sub-libraries are drawn without replacement from the states of one variable, and the
    other is predicted from them at every row. If y drives x, x's states know about y: the skill of "x predicts y" is
    high and grows with the library (Sugihara et al., Science 338, 496, 2012).

    Parameters
    ----------
    x, y : array_like (n,) or (n, columns)
        The two variables, equally long, time along the first axis, NaN for gaps. Of several columns each is embedded,
        and the first is what is predicted.
    E : int, (int, int) or "auto"
        Lags of the embedding of x and of y; "auto" finds those at which each predicts itself best, the default
        unless ``embedded``.
    E_max, E_rule
        For E="auto", as for :func:`pyedmcl.embed_dimension`.
    tau : int
        Lag, at least 1.
    Tp : int
        Steps from state to target; 0 or negative are allowed.
    lib_sizes : int or sequence of int, optional
        Rows of a sub-library: more than the neighbours, at most the rows there are; a dozen up to all by default.
    sample : int
        Sub-libraries of each size.
    seed : int, optional
        Chooses them: each direction, size and sample has a random stream of its own, which depends on nothing else.
        By default a fresh one, which the result names.
    exclusion_radius : int
        Rows with |t - j| up to this are no neighbours (0: the row itself).
    knn : int, optional
        Neighbours; the number of coordinates + 1 by default. Of method "simplex".
    method : {"simplex", "smap"}
        How rows are predicted: by their nearest neighbours, or by linear fits that are weighted by nearness (one fit
        for each row and sample; slower).
    theta : float
        Localisation of method "smap".
    state : sequence of str or int, optional
        Columns of ``x`` that together are one state, by name or position.
    embedded : bool
        The columns of x and y are the coordinates of states themselves.
    lib_range : (int, int), sequence of (int, int), or mask of bool, optional
        Rows that may be drawn: ranges begin <= t < end, 0-based, in which lags and targets lie, too. All by default.
    valid_lib : mask of bool (n,), optional
        Rows that may be drawn, in addition.
    groups : str, sequence of str, or labels (n,), optional
        Recordings (subjects, plots, replicates) that stand one below the other: a column of x or a level of its index,
        or a label for each row. No state and no target crosses a border between groups.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows are not regular, as for :func:`pyedmcl.xmap`.
    draw : {"rows", "groups"}
        What sub-libraries are drawn from: single rows of all groups, or whole groups in random order until there are
        enough rows, the last of them in part (Clark et al., Ecology 96, 1174, 2015). Rows of a group resemble each
        other: whole groups tell what the same number of plots or subjects would have told.
    windows : (int, int), optional
        Width of windows that move along the rows, and rows from one to the next: skill of each window's rows by
        themselves, with the same seed in all.
    skill : {"pearson", "spearman", "rmse", "mae", "nrmse"}
        What ``rho`` holds, as for :func:`pyedmcl.xmap`. All but the first make a search for each sub-library.
    predictions : bool
        The result also has ``predictions`` (2, n_sizes, samples, n), at the rows that are predicted, by a search for
        each sub-library.
    neighbors : {"exact", "auto", "exhaustive", "pruned", "kdtree", "ivf", "hnsw"}
        How the nearest rows of the whole library are searched, among which each sub-library's are then found; see
        :func:`pyedmcl.knn`. Small sub-libraries and method "smap" need no such search, which the result says.
    recall : float
        Share of those rows, in (0, 1], that an approximate search must find.
    progress : callable or True, optional
        Called within a long search as ``progress(done, total, "queries")``, with unit "states" while an index is built,
        and with unit "predictions" within many sub-libraries.
    dtype, device, tune
        As for :func:`pyedmcl.knn`.

    Returns
    -------
    CcmResult or, with ``windows``, WindowedCcm
        Skill of each sample, with summaries and tests of convergence.

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError, DeviceMemoryError
        No device matches; sixteen samples of a library do not fit on it.

    See Also
    --------
    xmap : all pairs at full library size.
    ccm_matrix : this for all pairs.
    ccm_significance : against surrogates.
    ccm_lagged : against Tp.

    Notes
    -----
    Cost: one search for many neighbours, of about n^2 * E multiply-adds in each direction, serves all samples; each
    sample then costs n * (E + 1).

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> x, y = network.values[:, 0], network.values[:, 1]
    >>> result = pyedmcl.ccm(x, y, E=3, lib_sizes=[20, 100, 390], sample=20, seed=1)
    >>> result.rho.shape  # direction, library size, sample
    (2, 3, 20)
    >>> result.mean.shape
    (2, 3)
    """
    Tp = arguments.integer("Tp", Tp)
    samples = arguments.draws("sample", sample)
    k = arguments.count("knn", knn)
    number = arguments.stream(seed)
    search = arguments.neighbor_search(neighbors, recall)
    arguments.reporter(progress)
    dtype = arguments.precision(dtype)
    method = arguments.choice("method", method, METHODS)
    thetas = check_thetas(theta)
    if len(thetas) != 1:
        raise InputError(f"theta={arguments.shown(theta)}: one number of at least 0 is needed")
    x, y, groups = stated(x, y, state, groups)
    if not embedded:
        E = dimensions_of(
            x, y, "auto" if E is None else E, E_max=E_max, E_rule=E_rule, tau=tau, exclusion_radius=exclusion_radius,
            knn=knn, groups=groups, dtype=dtype, device=device,
        )  # fmt: skip
    both = variables(
        x, y, E=E, tau=tau, Tp=[Tp], exclusion_radius=exclusion_radius, embedded=embedded, lib_range=lib_range,
        valid_lib=valid_lib, groups=groups,
    )  # fmt: skip
    problem = CcmProblem(
        (), (), samples, number, Tp, both.exclusion_radius, search, dtype,
        None if method == "simplex" else float(thetas[0]), drawn_from(both.layout, draw), check_skill(skill),
        predictions,
    )  # fmt: skip
    if windows is not None:
        refused = {"lib_range": lib_range, "valid_lib": valid_lib, "groups": groups, "predictions": predictions or None}
        for name in (name for name, value in refused.items() if value is not None):
            raise InputError(f"windows={arguments.shown(windows)} cannot be used with {name}=: leave one of them out")
        return windowed_ccm(both, windows, k, lib_sizes, problem, arguments.runner_on(device, dtype))
    directions = both.directions(Tp, k)
    sizes = library_sizes(lib_sizes, directions)
    problem = replace(problem, directions=directions, lib_sizes=sizes)
    layers = [problem.result()]
    if predictions:
        shape = (*layers[0].shape, both.x.series.n_steps)
        layers.append(check_room(shape, np.float64, "take fewer samples or sizes"))
    runner = arguments.runner_on(device, dtype)
    record = runner.run(problem, ArraySink(problem.blocks(), layers))
    shown = slice(None) if both.layout is None else both.layout.order
    return CcmResult(
        lib_sizes=np.array(sizes),
        rho=layers[0],
        links=both.links,
        n_rows=(directions[0].n_predicted(Tp), directions[1].n_predicted(Tp)),
        E=(both.x.E, both.y.E),
        tau=both.tau,
        Tp=Tp,
        seed=number,
        method=method,
        skill=problem.measure,
        predictions=layers[1][..., shown] if predictions else None,
        provenance=runner.provenance(problem.kernels, record),
    )


def _skill(problem: CcmProblem, runner: Runner) -> tuple[NDArray[np.float64], Record]:
    """rho (directions, sizes, samples)."""
    rho = problem.result()
    return rho, runner.run(problem, ArraySink(problem.blocks(), [rho]))


@public_function
def ccm_lagged(
    x: Any,
    y: Any,
    *,
    E: str | int | Sequence[int] = "auto",
    Tp: Sequence[int] = tuple(range(-8, 9)),
    tau: int = 1,
    lib_size: int | None = None,
    sample: int = 100,
    seed: int | None = None,
    exclusion_radius: int = 0,
    knn: int | None = None,
    E_max: int = 20,
    E_rule: str | float = "best",
    state: Any = None,
    lib_range: Any = None,
    valid_lib: Any = None,
    groups: Any = None,
    regular: str | None = None,
    neighbors: str = "exact",
    recall: float = 0.99,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: DeviceNames = None,
    tune: str | None = None,
) -> LaggedCcmResult:
    """Cross-map skill of two variables against the interval between state and target.

    A cause is best recovered at Tp <= 0, the effect's state being later than what caused it; the best Tp of the other
    direction being positive speaks for synchrony rather than for causation (Ye et al., Sci. Rep. 5, 14750, 2015).

    Parameters
    ----------
    Tp : sequence of int
        Intervals, different ones.
    lib_size : int, optional
        Rows of random sub-libraries; by default all rows, of which there is only one sample.
    sample : int
        Sub-libraries for each Tp, where ``lib_size`` is given.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows are not regular, as for :func:`pyedmcl.xmap`.
    progress : callable or True, optional
        Called as ``progress(done, total, "predictions")``; True shows a bar.
    x, y, E, E_max, E_rule, tau, seed, exclusion_radius, knn, state, lib_range, valid_lib, groups, neighbors, recall,
    dtype, device, tune
        As for :func:`pyedmcl.ccm`.

    Returns
    -------
    LaggedCcmResult

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError, DeviceMemoryError
        No device matches; sixteen samples of a library do not fit on it.

    See Also
    --------
    ccm : skill against library size.

    Notes
    -----
    Cost: that of :func:`ccm` with one library size, for each Tp.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> x, y = network.values[:, 0], network.values[:, 1]
    >>> result = pyedmcl.ccm_lagged(x, y, E=3, Tp=[-2, -1, 0, 1])
    >>> [int(Tp) for Tp in result.Tp]
    [-2, -1, 0, 1]
    """
    arguments.reporter(progress)
    lags = [arguments.integer("Tp", lag) for lag in arguments.several("Tp", Tp)]
    if not lags or len(set(lags)) != len(lags):
        raise InputError(f"Tp={arguments.shown(Tp)}: at least one integer is needed, and none twice")
    samples = arguments.draws("sample", sample)
    k, number = arguments.count("knn", knn), arguments.stream(seed)
    search = arguments.neighbor_search(neighbors, recall)
    dtype = arguments.precision(dtype)
    x, y, groups = stated(x, y, state, groups)
    E = dimensions_of(
        x, y, E, E_max=E_max, E_rule=E_rule, tau=tau, exclusion_radius=exclusion_radius, knn=knn, groups=groups,
        dtype=dtype, device=device,
    )  # fmt: skip
    both = variables(
        x, y, E=E, tau=tau, Tp=lags, exclusion_radius=exclusion_radius, lib_range=lib_range, valid_lib=valid_lib,
        groups=groups,
    )  # fmt: skip
    runner = arguments.runner_on(device, dtype)
    rho, record = np.empty((2, len(lags))), Record()
    for place, lag in enumerate(lags):
        directions = both.directions(lag, k)
        parts: list[tuple[Sequence[Direction], tuple[int, ...], int]]
        if lib_size is not None:
            parts = [(directions, library_sizes(lib_size, directions, "lib_size"), samples)]
        else:  # all rows: gaps may leave different numbers of them
            parts = [([d], library_sizes([int(d.library_mask.sum())], [d]), 1) for d in directions]
        for part, sizes, count in parts:
            problem = CcmProblem(tuple(part), sizes, count, number, lag, both.exclusion_radius, search, dtype)
            skill, new_record = _skill(problem, runner)
            rho[[d.number for d in part], place] = means(skill[:, 0])
            record = record.joined(new_record)
    return LaggedCcmResult(np.array(lags), rho, both.links, lib_size, number, runner.provenance(KERNELS, record))

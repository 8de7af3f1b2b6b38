"""Convergent cross mapping: does cross-map skill grow with the library?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..device.session import open_device
from ..engines.ccm import SampledSkill
from ..engines.subsets import Link
from ..errors import InputError
from ..launch.progress import Progress, reporting
from ..neighbors.choose import Choice
from ..neighbors.searched import add, without_search
from ..tuning.retry import tunable
from . import arguments
from .ccm_problem import METHODS, Direction, check_seed, direction, library_sizes, sides, states_of
from .ccm_result import CcmResult, LaggedCcmResult
from .ccm_smap import smap_skill
from .convergence import means
from .effort import announce
from .provenance import provenance
from .smap_problem import check_thetas
from .states import future

if TYPE_CHECKING:
    from ..device.executor import Executor

KERNELS = ("knn", "ccm_draw", "ccm", "ccm_direct")
_SMAP_KERNELS = ("ccm_draw", "smap_scale", "smap", "smap_solve")


@tunable
@reporting
def ccm(
    x: Any,
    y: Any,
    *,
    E: int | Sequence[int] | None = None,
    tau: int = 1,
    Tp: int = 0,
    lib_sizes: Any = None,
    sample: int = 100,
    seed: int | None = None,
    exclusion_radius: int = 0,
    knn: int | None = None,
    method: str = "simplex",
    theta: float = 1.0,
    embedded: bool = False,
    lib_range: Any = None,
    valid_lib: Any = None,
    neighbors: str = "exact",
    recall: float = 0.99,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: str | None = None,
    tune: str | None = None,
) -> CcmResult:
    """Convergent cross mapping of two variables, in both directions.

    For each library size, random sub-libraries are drawn without replacement from the states of one variable, and the
    other is predicted from them at every row. If y drives x, x's states know about y: the skill of "x predicts y" is
    high and grows with the library (Sugihara et al., Science 338, 496, 2012).

    Parameters
    ----------
    x, y : array_like (n,) or (n, columns)
        The two variables, equally long, time along the first axis, NaN for gaps. Of several columns each is embedded,
        and the first is what is predicted.
    E : int or (int, int)
        Lags of the embedding of x and of y.
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
        for each row and sample; far slower).
    theta : float
        Localisation of method "smap".
    embedded : bool
        The columns of x and y are the coordinates of states themselves.
    lib_range : (int, int), sequence of (int, int), or mask of bool, optional
        Rows that may be drawn: ranges begin <= t < end, 0-based, in which lags and targets lie, too. All by default.
    valid_lib : mask of bool (n,), optional
        Rows that may be drawn, in addition.
    neighbors : {"exact", "auto", "kdtree", "ivf", "hnsw", "pruned"}
        How the nearest rows of the whole library are searched, among which each sub-library's are then found; see
        :func:`pyedmcl.knn`. Small sub-libraries and method "smap" need no such search, which the result says.
    recall : float
        Share of those rows, in (0, 1], that an approximate search must find.
    progress : callable, optional
        Called within a long search as ``progress(done, total, "queries")``, with unit "states" while an index is built,
        and with unit "predictions" within many sub-libraries.
    dtype, device, tune
        As for :func:`pyedmcl.knn`.

    Returns
    -------
    CcmResult
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
    radius = arguments.integer("exclusion_radius", exclusion_radius, 0)
    samples = arguments.integer("sample", sample, 1)
    k = arguments.count("knn", knn)
    number = check_seed(seed)
    choice = arguments.neighbor_search(neighbors, recall)
    arguments.reporter(progress)
    arguments.precision(dtype)
    if method not in METHODS:
        raise InputError(f"method={method!r}: one of {', '.join(map(repr, METHODS))} is needed")
    local = check_thetas(theta)
    if len(local) != 1:
        raise InputError(f"theta={theta!r}: one number of at least 0 is needed")
    one, other, tau = sides(x, y, E, tau, embedded)
    ways = [
        direction(library, target, d, tau=tau, Tp=Tp, knn=k, lib_range=lib_range, valid_lib=valid_lib)
        for d, (library, target) in enumerate(((one, other), (other, one)))
    ]
    sizes = library_sizes(lib_sizes, ways, k)
    executor = open_device(device)
    dtype = arguments.precision(dtype, executor.info.fp64, executor.info.name)
    searched: list[dict[str, Any]] = []
    rho, used, grade = _skill(
        executor, ways, sizes, samples, number, choice, searched, tau=tau, Tp=Tp, radius=radius, dtype=dtype,
        theta=None if method == "simplex" else float(local[0]),
    )  # fmt: skip
    kernels = KERNELS if method == "simplex" else _SMAP_KERNELS
    return CcmResult(
        lib_sizes=sizes,
        rho=rho,
        links=((one.name, other.name), (other.name, one.name)),
        n_rows=(ways[0].n_predicted(Tp), ways[1].n_predicted(Tp)),
        E=(one.E, other.E),
        tau=tau,
        Tp=Tp,
        seed=number,
        method=method,
        provenance=provenance(executor, kernels, used, grade=grade, neighbors=searched),
    )


def _skill(
    executor: Executor, ways: Sequence[Direction], sizes: NDArray[np.int_], samples: int, seed: int, choice: Choice,
    searched: list[dict[str, Any]], *, tau: int, Tp: int, radius: int, dtype: str, theta: float | None,
) -> tuple[NDArray[np.float64], dict[str, Any], str]:  # fmt: skip
    """rho (2, n_sizes, samples) of both directions, the parameters that kernels had, and their grade.

    What searched for neighbours is added to ``searched``.
    """
    n = ways[0].library.series.n_steps
    announce(executor.info, [way.library.E for way in ways], n_library=n, n_query=n, n_series=2,
             n_targets=len(sizes) * samples)  # fmt: skip
    rho, used, grade = np.empty((2, len(sizes), samples)), {}, ""
    for together in _batches(ways):
        states = states_of_all(together, tau=tau, Tp=Tp, radius=radius, dtype=dtype)
        aims = np.array([future(way.target.series.values[:, 0], Tp) for way in together])
        engine = SampledSkill(executor, states, aims, together[0].allowed, choice=choice)
        links = [Link(place, place, (way.number, 1 - way.number)) for place, way in enumerate(together)]
        try:
            if theta is None:
                found = engine.skill(links, sizes.tolist(), samples, seed)
                add(searched, engine.searched)
            else:
                add(searched, without_search(together[0].library.E, choice, "local linear fits take all members"))
                found = np.array([
                    smap_skill(executor, engine, link, way, sizes.tolist(), samples, seed, tau=tau, Tp=Tp,
                               exclusion_radius=radius, theta=theta, dtype=dtype)
                    for link, way in zip(links, together, strict=True)
                ])  # fmt: skip
        finally:
            engine.release()
        for way, values in zip(together, found, strict=True):
            rho[way.number] = values
        used, grade = engine.parameters, engine.grade
    return rho, used, grade


def _batches(ways: Sequence[Direction]) -> list[list[Direction]]:
    """Directions whose states one search serves."""
    one, other = ways
    alike = one.library.series.n_series == other.library.series.n_series == 1 and one.library.E == other.library.E
    return [[one, other]] if alike and one.k == other.k else [[one], [other]]


def states_of_all(ways: Sequence[Direction], *, tau: int, Tp: int, radius: int, dtype: str) -> Any:
    """States of the libraries of directions that one search serves."""
    if len(ways) == 1:
        return states_of(ways[0], tau=tau, Tp=Tp, exclusion_radius=radius, dtype=dtype)
    from .states import delay_states

    columns = [way.library.series.values for way in ways]
    values = np.concatenate([column.astype(np.result_type(*columns)) for column in columns], axis=1)
    lags, k = ways[0].library.lags, ways[0].k
    return delay_states(values, lags, tau, k=k, Tp=Tp, exclusion_radius=radius, dtype=dtype)


@tunable
def ccm_lagged(
    x: Any,
    y: Any,
    *,
    E: int | Sequence[int],
    Tp: Sequence[int] = tuple(range(-8, 9)),
    tau: int = 1,
    lib_size: int | None = None,
    sample: int = 100,
    seed: int | None = None,
    exclusion_radius: int = 0,
    knn: int | None = None,
    lib_range: Any = None,
    valid_lib: Any = None,
    neighbors: str = "exact",
    recall: float = 0.99,
    dtype: str = "float32",
    device: str | None = None,
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
    x, y, E, tau, seed, exclusion_radius, knn, lib_range, valid_lib, neighbors, recall, dtype, device, tune
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
    lags = [arguments.integer("Tp", lag) for lag in ([Tp] if np.ndim(Tp) == 0 else list(Tp))]
    if not lags or len(set(lags)) != len(lags):
        raise InputError(f"Tp={Tp!r}: at least one integer is needed, and none twice")
    radius = arguments.integer("exclusion_radius", exclusion_radius, 0)
    samples = arguments.integer("sample", sample, 1)
    k, number = arguments.count("knn", knn), check_seed(seed)
    choice = arguments.neighbor_search(neighbors, recall)
    arguments.precision(dtype)
    one, other, tau = sides(x, y, E, tau, False)
    executor = open_device(device)
    dtype = arguments.precision(dtype, executor.info.fp64, executor.info.name)
    rho = np.empty((2, len(lags)))
    used: dict[str, Any] = {}
    searched: list[dict[str, Any]] = []
    grade = ""
    for place, lag in enumerate(lags):
        ways = [
            direction(library, target, d, tau=tau, Tp=lag, knn=k, lib_range=lib_range, valid_lib=valid_lib)
            for d, (library, target) in enumerate(((one, other), (other, one)))
        ]
        if lib_size is not None:
            sizes = library_sizes(lib_size, ways, k, "lib_size")
            found, used, grade = _skill(executor, ways, sizes, samples, number, choice, searched, tau=tau, Tp=lag,
                                        radius=radius, dtype=dtype, theta=None)  # fmt: skip
            rho[:, place] = means(found[:, 0])
            continue
        for way in ways:  # all rows: gaps may leave different numbers of them
            sizes = library_sizes([int(way.legal.sum())], [way], k)
            rho[way.number, place], used, grade = _full(
                executor, way, sizes, number, choice, searched, tau=tau, Tp=lag, radius=radius, dtype=dtype
            )  # fmt: skip
    links = ((one.name, other.name), (other.name, one.name))
    record = provenance(executor, KERNELS, used, grade=grade, neighbors=searched)
    return LaggedCcmResult(np.array(lags), rho, links, lib_size, number, record)


def _full(
    executor: Executor, way: Direction, sizes: NDArray[np.int_], seed: int, choice: Choice,
    searched: list[dict[str, Any]], *, tau: int, Tp: int, radius: int, dtype: str,
) -> tuple[float, dict[str, Any], str]:  # fmt: skip
    """rho of a direction's whole library."""
    states = states_of(way, tau=tau, Tp=Tp, exclusion_radius=radius, dtype=dtype)
    aims = future(way.target.series.values[:, 0], Tp)[None]
    engine = SampledSkill(executor, states, aims, way.allowed, choice=choice)
    try:
        rho = engine.skill([Link(0, 0, (way.number, 1 - way.number))], sizes.tolist(), 1, seed)
    finally:
        engine.release()
    add(searched, engine.searched)
    return float(rho[0, 0, 0]), engine.parameters, engine.grade

"""From what the user asks of a threshold to passes over the matrix, each with a problem that has its limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..jobs.runner import LocalRunner
from .cells import cells_of_columns, cells_within
from .conventions import Convention
from .metrics import metric_named
from .points import Points
from .problem import RqaProblem
from .ranks import Ranks
from .units import Spread, required, scaled, spread, spread_in

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..jobs.runner import Runner


_PIXELS = 64  # in whose squares distances are added
_LEAST = 5e-324  # the smallest number above 0, which is no radius


@dataclass(frozen=True)
class RqaPass:
    """One sweep over the matrix, for some of the radii that were asked for.

    Attributes
    ----------
    problem : RqaProblem
        With radii, or limits that were selected.
    radii : tuple
        What each of its matrices reports as its radius.
    order : tuple of int
        The place of each among the radii that were asked for: a problem has them in ascending order.
    """

    problem: RqaProblem
    radii: tuple[Any, ...]
    order: tuple[int, ...]


def passes_for(
    runner: Runner, problem: RqaProblem, convention: Convention, rows: Points, columns: Points, threshold: str,
    radii: Sequence[Any], *, name: str = "radius", unit: str = "data", what: str | None = None,
) -> list[RqaPass]:  # fmt: skip
    """Sweeps that give a matrix for each radius, rate or number of neighbours.

    Parameters
    ----------
    runner : Runner
        Limits are selected on its own device, if they must be.
    problem : RqaProblem
        Without radii.
    convention : Convention
        Whose recurrence rate counts.
    rows, columns : Points
        The same object for one series with itself.
    threshold : str
    radii : sequence
        From :func:`pyedmcl.recurrence.arguments.radii_of`.
    name : str
        The argument that held them.
    unit : str
        Of radii; see :mod:`pyedmcl.recurrence.units`.
    what : str, optional
        What messages call the series.
    """
    what = what or ("x" if name == "radius" else name.replace("radius_", ""))
    pairs = convention.mean_of_pairs
    radii = scaled(list(radii), unit_of(unit, runner, problem, rows, columns, what, pairs=pairs), name)
    if threshold == "neighbours":
        return [
            RqaPass(_with_neighbours(runner.executor, problem, rows, columns, k, name), (math.nan,), (at,))
            for at, k in enumerate(radii)
        ]
    if threshold == "recurrence_rate":
        limits = _limits_of_rates(runner.executor, problem, convention, rows, columns, radii, name)
        radii = [_smallest_radius(problem, *limit, name) for limit in limits]
    order = sorted(range(len(radii)), key=lambda at: radii[at][::-1] if threshold == "corridor" else radii[at])
    ascending = tuple(radii[at] for at in order)
    if threshold == "corridor":
        inner, outer = zip(*ascending, strict=True)
        return [RqaPass(replace(problem, radii=outer, inner=inner), ascending, tuple(order))]
    return [RqaPass(replace(problem, radii=ascending), ascending, tuple(order))]


def unit_of(
    unit: str, runner: Runner, problem: RqaProblem, rows: Points, columns: Points, what: str = "x", *,
    pairs: bool = True,
) -> float:  # fmt: skip
    """How long the unit of a radius is, in that of the data.

    Parameters
    ----------
    unit : str
        One of :data:`UNITS`.
    runner : Runner
        Distances are searched, and added, on its own device.
    problem : RqaProblem
        Without radii.
    rows, columns : Points
        The same object for one series with itself.
    what : str
        What messages call the series.
    pairs : bool
        The mean distance of one series is that of different points.

    Raises
    ------
    InputError
        There is no spread to measure by, or the metric has no such unit.
    """
    if unit == "data":
        return 1.0
    if unit == "max_distance":
        length = largest_distance(runner.executor, problem, rows, columns)
    elif unit == "mean_distance":
        length = mean_distance(runner.executor, problem, rows, columns, pairs=pairs)
    elif metric_named(problem.metric).prepare is not None:
        raise InputError(
            f"radius_unit={unit!r} contradicts metric={problem.metric!r}, whose distances do not grow with the data; "
            "choose 'data' or 'max_distance'"
        )
    else:
        sides = [rows.given] if rows is columns else [rows.given, columns.given]
        parts = [spread(np.ascontiguousarray(side.T)) for side in sides]
        together = Spread(*(np.concatenate(field)[None] for field in zip(*parts, strict=True)))
        length = float(spread_in(unit, together)[0])
    return required(unit, length, what)


def largest_distance(executor: Executor, problem: RqaProblem, rows: Points, columns: Points) -> float:
    """The distance of the two points that are farthest from each other, in the unit of the data."""
    n, m = int(np.count_nonzero(rows.complete)), int(np.count_nonzero(columns.complete))
    cells = n * (n - 1) // 2 if problem.symmetric else n * m
    if not cells:
        return math.nan
    window = 1 if problem.symmetric else 0
    problem = replace(problem, n_rows=rows.n, n_columns=columns.n)  # not those of a window
    ranks = Ranks(
        executor, problem, rows.values, None if problem.symmetric else columns.values,
        window=window, lower=problem.symmetric,
    )  # fmt: skip
    try:
        limit = ranks.kth(cells, cells, sampler(problem, rows, columns, window))
    finally:
        ranks.release()
    return math.ldexp(float(metric_named(problem.metric).radius_of(np.float64(limit))), problem.exponent)


def mean_distance(
    executor: Executor, problem: RqaProblem, rows: Points, columns: Points, *, pairs: bool = True
) -> float:
    """The mean distance of all points of the rows and all of the columns, in the unit of the data; of one series of
    different points (``pairs``), or of all. Distances are added as integers, so that it is the same on every device."""
    from .image.problem import image_problem
    from .image.render import rendered

    n, m = int(np.count_nonzero(rows.complete)), int(np.count_nonzero(columns.complete))
    cells = n * (n - 1) if problem.symmetric and pairs else n * m
    if not cells:
        return math.nan
    whole = replace(
        problem, n_rows=rows.n, n_columns=columns.n, dtype=problem.arithmetic, exact=False, radii=(), inner=None
    )
    pixels = min(rows.n, _PIXELS), min(columns.n, _PIXELS)
    drawn = image_problem(
        whole, rows.values, None if problem.symmetric else columns.values, pixels=pixels, mean=True,
        exponent=problem.exponent,
    )  # fmt: skip
    means = rendered(LocalRunner([executor]), drawn).values
    sums = np.where(np.isnan(means), 0.0, means) * np.outer(*drawn.complete_points(0, pixels[0]))
    return math.fsum(sums.ravel().tolist()) / cells


def _limits_of_rates(
    executor: Executor, problem: RqaProblem, convention: Convention, rows: Points, columns: Points,
    rates: Sequence[float], name: str,
) -> list[tuple[float, float]]:  # fmt: skip
    """The smallest limit for each rate at which the recurrence rate, as the convention counts it, reaches it; and,
    where that is 0, the smallest one above it (0 where all are equal)."""
    window = problem.theiler if problem.theiler_everywhere else 0
    every = int(np.count_nonzero(rows.complete)) * int(np.count_nonzero(columns.complete))
    dropped = cells_within(rows.complete, columns.complete, window)
    outside = every - dropped
    cells = outside if convention.outside(problem.symmetric) else every
    if cells == 0:
        raise InputError(
            f"{name}={rates[0]!r}: there is no cell of which a share could recur, since every point touches a gap or "
            "every cell lies within the Theiler window"
        )
    # A symmetric matrix is searched below its diagonal, on which every complete point recurs with itself.
    identity = int(np.count_nonzero(rows.complete)) if problem.symmetric and window == 0 else 0
    weight = 2 if problem.symmetric else 1
    searched = (outside - identity) // weight
    lower_window = max(window, 1) if problem.symmetric else window
    ranks = Ranks(
        executor, problem, rows.values, None if problem.symmetric else columns.values,
        window=lower_window, lower=problem.symmetric,
    )  # fmt: skip
    limits = []
    try:
        for rate in rates:
            k = -(-(_points_for(rate, cells) - identity) // weight)
            if k > searched:
                most = (identity + weight * searched) / max(cells, 1)
                raise InputError(
                    f"{name}={rate!r}: the recurrence rate can reach {most:.6g} at most, since cells within the "
                    "Theiler window do not recur; choose a lower rate"
                )
            sample = sampler(problem, rows, columns, lower_window)
            limit = 0.0 if k < 1 else ranks.kth(k, searched, sample)
            limits.append((limit, ranks.above(0.0, searched, sample) if limit == 0.0 else limit))
    finally:
        ranks.release()
    return limits


def _smallest_radius(problem: RqaProblem, limit: float, following: float, name: str) -> float:
    """The smallest radius, in the unit of the data, within which what is compared may be as large as ``limit``.

    It gives the same cells wherever it is passed as a radius. A limit itself need not do so: cells at it are outside of
    a radius that is compared by "less than", and roots are rounded. At limit 0 the radius is 0 where equal points are
    within it, else half of the least distance above 0, that of ``following``.
    """
    if limit == 0.0:
        least = float(metric_named(problem.metric).radius_of(np.float64(following)))
        half = math.ldexp(least, problem.exponent - 1)
        return 0.0 if not problem.strict else half if half > _LEAST else 1.0

    def holds(radius: Any, among: RqaProblem) -> bool:
        limit_of_radius = among.limits_of((float(radius),))[0]
        return bool(limit_of_radius > limit if problem.strict else limit_of_radius >= limit)

    near_one, arithmetic = replace(problem, exponent=0), np.dtype(problem.arithmetic).type
    radius: Any = arithmetic(metric_named(problem.metric).radius_of(arithmetic(limit)))
    while radius > 0 and holds(np.nextafter(radius, arithmetic(0)), near_one):
        radius = np.nextafter(radius, arithmetic(0))
    while not holds(radius, near_one):
        radius = np.nextafter(radius, arithmetic(np.inf))
    in_units = np.maximum(np.ldexp(np.float64(radius), problem.exponent), _LEAST)
    if not np.isfinite(in_units):
        raise InputError(f"{name}: the radius of this rate is no number of float64; scale the data down")
    while not holds(in_units, problem):  # it lost digits, being so small
        in_units = np.nextafter(in_units, np.inf)
    return float(in_units)


def _points_for(rate: float, cells: int) -> int:
    """The least number of recurrent points whose share of the cells is at least ``rate``."""
    points = math.ceil(rate * cells)
    while points > 0 and (points - 1) / cells >= rate:
        points -= 1
    while points / cells < rate:
        points += 1
    return points


def enough_cells(
    k: int, n_rows: int, n_columns: int, theiler: int, *, symmetric: bool, name: str = "radius"
) -> None:
    """Refuse more neighbours than the points of a matrix have. Gaps may leave a point with fewer; it then recurs with
    all that it has."""
    window = max(theiler, 1) if symmetric else theiler
    if k < min(n_rows, n_columns) - 2 * window:
        return
    most = int(cells_of_columns(np.ones(n_rows, bool), np.ones(n_columns, bool), window).min())
    if k > most:
        raise InputError(
            f"{name}={k!r}: a point has {most} neighbours at least outside the Theiler window; ask for fewer"
        )


def _with_neighbours(
    executor: Executor, problem: RqaProblem, rows: Points, columns: Points, k: int, name: str
) -> RqaProblem:
    window = problem.line_window
    enough_cells(k, rows.n, columns.n, problem.theiler, symmetric=problem.symmetric, name=name)
    ranks = Ranks(executor, problem, rows.values, None if problem.symmetric else columns.values, window=window)
    try:
        cells = cells_of_columns(rows.complete, columns.complete, window)
        limits = ranks.kth_of_columns(k, cells, sampler(problem, rows, columns, window))
    finally:
        ranks.release()
    return replace(problem, radii=(math.nan,), column_limits=limits, symmetric=False, strict=False)


def sampler(problem: RqaProblem, rows: Points, columns: Points, window: int) -> Any:
    """What gives some distances of random cells, from which :class:`Ranks` guesses where to begin."""
    def sample(n: int) -> NDArray[Any]:
        rng = np.random.default_rng(0)
        i, j = rng.integers(0, rows.n, n), rng.integers(0, columns.n, n)
        kept = np.abs(i - j) >= window
        compared = compared_pairs(problem, rows, columns, i[kept], j[kept])
        present: NDArray[Any] = compared[~np.isnan(compared)]
        return present

    return sample


def compared_pairs(
    problem: RqaProblem, rows: Points, columns: Points, i: NDArray[np.int_], j: NDArray[np.int_]
) -> NDArray[Any]:
    """What is compared with a limit, for the cells (i, j), on the host; bit for bit what the devices find."""
    with np.errstate(over="ignore", under="ignore"):
        x, y = (side.values.astype(problem.arithmetic, copy=False) for side in (rows, columns))
        if problem.embedded:
            differences = (x[i, e] - y[j, e] for e in range(problem.n_features))
        else:
            differences = (x[i + lag] - y[j + lag] for lag in problem.tau * np.arange(problem.m))
        return metric_named(problem.metric).compared(differences)

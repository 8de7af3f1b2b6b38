"""Joint recurrence: two systems, each in its own space, that come back at the same pairs of times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..data.same_rows import require_same_times
from ..errors import InputError
from ..jobs.function import public_function
from ..jobs.turns import begin_of
from . import arguments, common, remarks
from .categories import coded
from .common import Checkpoint, Device, Progress
from .points import embedding_of, near_one, points_of
from .problem import RqaProblem
from .result import RecurrenceResult
from .table import RecurrenceTable
from .thresholds import RqaPass, passes_for


@public_function
def joint_rqa(
    x: Any,
    y: Any,
    *,
    m: int = 1,
    tau: int = 1,
    radius: Any,
    metric: str = "euclidean",
    m_y: int | None = None,
    tau_y: int | None = None,
    radius_y: Any = None,
    metric_y: str | None = None,
    theiler: int | str | None = None,
    lmin: int = 2,
    vmin: int = 2,
    wmin: int = 2,
    convention: str = "pyrqa",
    threshold: str = "fixed",
    normalize: str | None = None,
    radius_unit: str = "data",
    state: Any = None,
    embedded: bool = False,
    dtype: str = "float32",
    exact: bool = True,
    tile: int | None = None,
    regular: str | None = None,
    progress: Progress | None = None,
    checkpoint: Checkpoint = None,
    join: bool = False,
    part: str | None = None,
    device: Device = None,
    client: Any = None,
    tune: str | None = None,
) -> RecurrenceResult | RecurrenceTable:
    """Quantify joint recurrence: cell (i, j) is recurrent where x recurs at times i and j and y does so too.

    The two series may differ in what they measure, in embedding, radius and metric, but not in the number of points
    (Romano et al., Physics Letters A 330, 214, 2004).

    Parameters
    ----------
    x, y : array_like
        As ``x`` of :func:`pyedmcl.rqa`; they must give equally many points.
    m, tau, radius, metric
        As for :func:`pyedmcl.rqa`.
    m_y, tau_y, radius_y, metric_y
        The same for ``y``; those left out are as for ``x``.
    theiler, lmin, vmin, wmin, convention, threshold, normalize, state, embedded, dtype, exact, tile, regular, progress,
    checkpoint, join, part, device, client, tune
        As for :func:`pyedmcl.rqa`; convention "accrqa" has no joint recurrence.
    radius_unit : {"data", "std", "range", "max_distance", "mean_distance"}
        As for :func:`pyedmcl.rqa`: ``radius`` is measured by the spread of x, ``radius_y`` by that of y.

    Returns
    -------
    RecurrenceResult or RecurrenceTable
        ``radius`` is that of x. A table where ``radius`` is a sequence.

    Raises
    ------
    InputError
        An argument cannot be used, or x and y give different numbers of points or radii.
    DeviceNotFoundError, DeviceMemoryError

    See Also
    --------
    rqa : one series, or two that visit the same states.

    Notes
    -----
    Cost: twice that of :func:`rqa`.

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(500) * 0.2)
    >>> result = pyedmcl.joint_rqa(x, np.cos(np.arange(500) * 0.2), m=2, tau=8, radius=0.2)
    >>> 0 < result.recurrence_rate < 0.2
    True
    """
    if y is not None:
        require_same_times(x=x, y=y)
    x, y = coded(radius if threshold == "fixed" else 0.5, x, y)
    threshold = arguments.threshold_named(threshold)
    options = common.options_of(
        convention=convention, lmin=lmin, vmin=vmin, wmin=wmin, dtype=dtype, exact=exact, tile=tile,
        radius_unit=radius_unit, threshold=threshold,
    )  # fmt: skip
    arguments.only_alone(options.convention, "joint_rqa")
    arguments.reporter(progress, "cells")
    begin = begin_of(join, part, checkpoint, "checkpoint")
    given: dict[str, Any] = {"strict": options.convention.strict, "unit": options.radius_unit}
    radii, several = arguments.radii_of(radius, threshold, **given)
    radii_y = radii if radius_y is None else arguments.radii_of(radius_y, threshold, "radius_y", **given)[0]
    if len(radii) != len(radii_y):
        raise InputError(f"radius_y: {len(radii_y)} entries, but radius has {len(radii)}; give as many")
    if y is None:
        raise InputError("y=None: joint recurrence is of two series; rqa(x) is that of one")
    embedding = embedding_of(m=m, tau=tau, embedded=embedded, metric=metric, normalize=normalize, state=state)
    embedding_y = embedding_of(
        m=m if m_y is None else m_y, tau=tau if tau_y is None else tau_y, embedded=embedded,
        metric=metric if metric_y is None else metric_y, normalize=normalize,
        suffix="" if m_y is None and tau_y is None and metric_y is None else "_y", state=state,
    )  # fmt: skip
    first, second = (
        near_one(options.arithmetic, points_of(data, what, own))[0]
        for data, what, own in ((x, "x", embedding), (y, "y", embedding_y))
    )
    if first.n != second.n:
        raise InputError(
            f"y: joint recurrence needs as many points as x has, {first.n}, there are {second.n} (a series of n values "
            "has n - (m-1) tau points); shorten the longer one"
        )
    window = arguments.window(
        theiler, options.convention, first.n, first.n, series=(first.given, second.given)
    )
    alone = [common.problem_of(points, None, options, theiler=window) for points in (first, second)]
    runner = common.runner_of(device, options, client)
    sides = [
        passes_for(
            runner, problem, options.convention, points, points, threshold, own, name=name,
            unit=options.radius_unit,
        )
        for problem, points, own, name in zip(
            alone, (first, second), (radii, radii_y), ("radius", "radius_y"), strict=True
        )
    ]
    complete = first.complete & second.complete
    results: dict[int, RecurrenceResult] = {}
    passes = _joined(*sides)
    common.one_pass(passes, checkpoint, join=begin is not None)
    for sweep in passes:
        pair = (first, second)
        counted = common.count(runner, sweep.problem, pair, pair, options, checkpoint, begin)
        for counts, reported, place in zip(counted, sweep.radii, sweep.order, strict=True):
            origin = common.provenance(
                runner, first, options,
                threshold=threshold, wanted=radii[place], wanted_y=radii_y[place], y=embedding_y.described,
            )  # fmt: skip
            results[place] = common.result_of(counts, reported, alone[0], options, (complete, complete), origin)
    ordered = tuple(results[place] for place in range(len(radii)))
    if threshold != "recurrence_rate":  # which is that of each side by itself
        remarks.tell(ordered, threshold, radii, [first.given, second.given])
    return RecurrenceTable(ordered, "radius", tuple(radii)) if several else ordered[0]


def _joined(x: Sequence[RqaPass], y: Sequence[RqaPass]) -> list[RqaPass]:
    """Passes of joint problems: together where the radii of both ascend in the same order, else one by one."""
    if [sweep.order for sweep in x] == [sweep.order for sweep in y]:
        return [replace(a, problem=replace(a.problem, joint=b.problem)) for a, b in zip(x, y, strict=True)]
    second = {place: _single(sweep, rank) for sweep in y for rank, place in enumerate(sweep.order)}
    joined = []
    for sweep in x:
        for rank, place in enumerate(sweep.order):
            problem = replace(_single(sweep, rank), joint=second[place])
            joined.append(RqaPass(problem, (sweep.radii[rank],), (place,)))
    return joined


def _single(sweep: RqaPass, rank: int) -> RqaProblem:
    p = sweep.problem
    return replace(
        p,
        radii=(p.radii[rank],),
        inner=None if p.inner is None else (p.inner[rank],),
    )

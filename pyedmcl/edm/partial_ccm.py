"""Partial convergent cross mapping of two variables: what is left of a link without what passes through others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..data.same_rows import require_same_rows
from ..data.series import Series, as_series, build_series
from ..device.select import DeviceNames
from ..errors import InputError, warn
from ..io.fields import labelled
from ..io.labels import Label, common
from ..io.optional import need, pandas_for
from ..io.result import Result
from ..jobs.function import public_function
from ..jobs.sinks import ArraySink
from ..launch.progress import Progress
from . import arguments
from .exceedance import exceedance
from .method_choices import AnyChoice, choices_of
from .pair_predictions_problem import PairPredictionsProblem
from .pairs import pairs_arguments, with_dimensions
from .partial_links import PartialLink, partial_skill
from .surrogate import check_method, draw, maker
from .xmap_problem import XmapProblem

Doubles = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class PartialCcm(Result):
    """Cross-map skill of two variables in both directions, with and without what passes through others.

    Attributes
    ----------
    cause, effect : (str, str)
        Of each direction: the states of the effect estimate the cause.
    given : tuple of str
        What the link may pass through.
    rho : ndarray of float64 (2,)
        Correlation of the cause and its estimate.
    partial : ndarray of float64 (2,)
        The same, given the estimates of the cause through each of ``given``: near 0 where all passes through these,
        near rho where nothing does.
    through : ndarray of float64 (2, n_given)
        Correlation of the cause and its estimate through each of ``given``.
    p_value : ndarray of float64 (2,)
        (1 + surrogates of the cause whose ``partial`` is as high) / (1 + n): one-sided; NaN without surrogates.
    E : ndarray of int (2 + n_given,)
        Embedding dimension of x, y and each of ``given``.
    Tp : int
    n, method, seed
        Surrogates: how many, of which kind, and what chose them.
    """

    series_label: ClassVar = Label("1", "skill of the estimate of the cause through this series")
    column_labels: ClassVar = {
        **common("cause", "effect", "rho", "partial", "p_value", "given"),
        "through": Label("1", "skill of the estimate of the cause through another series"),
    }  # fmt: skip

    cause: tuple[str, str]
    effect: tuple[str, str]
    given: tuple[str, ...]
    rho: Doubles
    partial: Doubles
    through: Doubles
    p_value: Doubles
    E: NDArray[np.int_]
    Tp: int
    n: int
    method: str
    seed: int
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def to_xarray(self) -> Any:
        """An xarray.Dataset over both directions, and of the skill through each other series (direction, given)."""
        ends = zip(self.cause, self.effect, strict=True)
        axis: list[tuple[str, Any]] = [("direction", [f"{cause} -> {effect}" for cause, effect in ends])]
        names = ("cause", "effect", "rho", "partial", "p_value")
        parts = {name: labelled(np.array(getattr(self, name)), axis, name) for name in names}
        parts["through"] = labelled(self.through, [*axis, ("given", self.given)], "through")
        return need("xarray", "to_xarray()").Dataset(parts)

    def to_frame(self) -> Any:
        """A pandas DataFrame: cause, effect, rho, partial, p_value, and the skill through each of ``given``."""
        return pandas_for("to_frame()").DataFrame({
            "cause": list(self.cause), "effect": list(self.effect), "rho": self.rho, "partial": self.partial,
            "p_value": self.p_value,
            **{f"through {name}": self.through[:, place] for place, name in enumerate(self.given)},
        })  # fmt: skip


@public_function
def partial_ccm(
    x: Any,
    y: Any,
    *,
    given: Any,
    E: str | int | Sequence[int] = "auto",
    tau: int = 1,
    Tp: int = 0,
    surrogate: str = "phase",
    n: int | None = 99,
    seed: int | None = None,
    period: int | None = None,
    recurrence: float = 0.1,
    exclusion_radius: int = 0,
    knn: int | None = None,
    E_max: int = 20,
    E_rule: str | float = "best",
    regular: str | None = None,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: DeviceNames = None,
    client: Any = None,
    tune: str | None = None,
) -> PartialCcm:
    """Is a link between two variables direct, or does it pass through others? Partial cross mapping, both directions.

    If x drives y, the states of y estimate x. They also estimate each variable z of ``given``, and from the states of
    that estimate x is estimated a second time: this is what y knows of x through z. The partial correlation of x and
    the first estimate, given the second ones, is what does not pass through ``given`` (Leng et al., Nat. Commun. 11,
    2632, 2020).

    Parameters
    ----------
    x, y : array_like (n,)
        The two variables, time along the first axis, NaN for gaps.
    given : array_like (n,) or (n, n_given)
        What the link may pass through.
    E : "auto", int or sequence of int
        Lags of the embedding: for all, or one each for x, y and each of ``given``. "auto" finds each variable's own.
    Tp : int
        Steps from states to what is estimated. Where effects follow after some steps, -1 or less suits better than 0.
    surrogate, period, recurrence
        As for :func:`pyedmcl.ccm_significance`; a warning says what "seasonal" finds without a period, and
        what is made of gaps.
    n : int or None
        Surrogates of each cause; None for no test.
    seed : int, optional
        Chooses the surrogates; by default a fresh one, which the result names.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows are not regular, as for :func:`pyedmcl.xmap`.
    progress : callable or True, optional
        Called as ``progress(done, total, "predictions")`` and, while E is searched, with unit "dimensions".
    tau, exclusion_radius, knn, E_max, E_rule, dtype, device, client, tune
        As for :func:`pyedmcl.xmap`.

    Returns
    -------
    PartialCcm

    Raises
    ------
    InputError
        An argument cannot be used.
    DeviceNotFoundError, DeviceMemoryError
        No device matches; a table does not fit.
    ClientError
        Workers of ``client`` cannot be used, or were lost.

    See Also
    --------
    ccm : the skill itself, against the size of the library.

    Notes
    -----
    Cost: one search for x, y and each estimate of ``given`` in each direction; n + 1 lookups of each.

    The test says whether anything is left beyond chance, not whether most is left. To tell direct from indirect compare
    ``partial`` and ``through`` with ``rho``, too.

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.full((400, 3), 0.4)
    >>> for t in range(399):  # a drives b, and b drives c
    ...     a, b, c = x[t]
    ...     x[t + 1] = a * (3.8 - 3.8 * a), b * (3.7 - 3.4 * b - 0.3 * a), c * (3.7 - 3.4 * c - 0.3 * b)
    >>> found = pyedmcl.partial_ccm(x[:, 0], x[:, 2], given=x[:, 1], E=3, Tp=-2, n=19, seed=1)
    >>> found.cause[0], found.effect[0], bool(found.partial[0] < 0.7 * found.rho[0])
    ('x', 'y', True)
    """
    series = _together(x, y, given)
    draws = 0 if n is None else arguments.draws("n", n)
    number = arguments.stream(seed)
    check_method(surrogate, "surrogate")
    arguments.reporter(progress)
    fields = pairs_arguments(
        series, E=E, tau=tau, Tp=Tp, exclusion_radius=exclusion_radius, knn=knn, E_max=E_max, E_rule=E_rule,
        columns=None, dtype=dtype
    )
    problem = XmapProblem(**fields, block_rows=1)
    runner = arguments.runner_on(device, fields["data"].dtype, client)
    sink = ArraySink([], [])
    problem = with_dimensions(problem, runner, sink)
    dims, others = np.array(problem.E, int), tuple(range(2, series.n_series))
    steps = (problem.Tp,) * len(others)
    links = [PartialLink(cause, 1 - cause, others, problem.Tp, steps, steps) for cause in (0, 1)]
    told = _told(series, surrogate, period) if draws and surrogate != "auto" else (None, None)
    surrogates = {
        cause: draw(
            maker(build_series(np.ascontiguousarray(series.values[:, cause]), [series.names[cause]]), surrogate,
                  period=period, E=int(dims[cause]), tau=problem.tau, recurrence=recurrence, what="xy"[cause],
                  name="surrogate", choice=told[cause]),
            draws, number, cause, series.n_steps,
        )
        for cause in ((0, 1) if draws else ())
    }  # fmt: skip
    found, record = partial_skill(
        runner, series.values, dims, links, surrogates, tau=problem.tau, exclusion_radius=problem.exclusion_radius,
        knn=problem.knn, dtype=problem.data.dtype,
    )  # fmt: skip
    names = series.names
    return PartialCcm(
        cause=(names[0], names[1]), effect=(names[1], names[0]), given=names[2:], rho=found.rho[:, 0],
        partial=found.partial[:, 0], through=np.array([skill[0] for skill in found.through]),
        p_value=exceedance(found.partial[:, 0], found.partial[:, 1:]), E=dims, Tp=problem.Tp, n=draws,
        method=surrogate, seed=number,
        provenance=runner.provenance(
            PairPredictionsProblem.kernels, replace(record, searched=sink.record.searched + record.searched)
        ),
    )  # fmt: skip


def _told(series: Series, surrogate: str, period: int | None) -> tuple[AnyChoice | None, ...]:
    """What is taken for surrogates of both variables, of which a warning tells; None where the method says it all."""
    (found,) = choices_of([Series(series.values[:, :2].copy(), series.names[:2])], surrogate, period)
    if not found:
        return None, None
    told = (f"a surrogate of {name} {one.reason}" for name, one in zip(series.names[:2], found, strict=True))
    season = surrogate == "seasonal"
    warn(f"{'period=None: ' if season else ''}{'; '.join(told)}{'. period= names another' if season else ''}")
    return found


def _together(x: Any, y: Any, given: Any) -> Series:
    """All variables as one table: x, y, and then those that are given."""
    parts = [_named(x, "x", "x"), _named(y, "y", "y"), _named(given, "given", "z")]
    require_same_rows(x=parts[0], y=parts[1], given=parts[2])
    for part, what in zip(parts, ("x", "y", "given"), strict=True):
        if what != "given" and part.n_series != 1:
            raise InputError(f"{what}: one series is needed (1-D), got {part.n_series}; pass a column")
    kind = np.result_type(*(part.values for part in parts))
    values = np.concatenate([part.values.astype(kind) for part in parts], axis=1)
    names = [name for part in parts for name in part.names]
    if len(set(names)) < len(names):
        names = ["x", "y", *(f"z{number}" for number in range(len(names) - 2))]
    return Series(np.ascontiguousarray(values), tuple(names), parts[0].time)


def _named(data: Any, what: str, name: str) -> Series:
    """A table as series; columns that have no names of their own are called by what they are."""
    series = as_series(data, what=what)
    named = isinstance(data, (Series, dict)) or getattr(data, "name", None) is not None
    if named or getattr(data, "columns", None) is not None:
        return series
    names = (name,) if series.n_series == 1 else tuple(f"{name}{number}" for number in range(series.n_series))
    return Series(series.values, names, series.time)

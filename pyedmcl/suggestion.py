"""One recommendation of E, tau, Theiler window and radius for each series, of the functions that find each of them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .arguments import many
from .embedding.dimension import embed_dimension
from .errors import RecurrenceWarning, pandas_for
from .jobs.blocks import origin
from .jobs.runner import public_function
from .launch.progress import report_progress
from .recurrence.arguments import correlation_time
from .recurrence.mutual_information import mutual_information
from .recurrence.rqa import Device, Progress, rqa
from .results.result import ANSWER_ROWS, Answer, Label, Result, common
from .series.groups import take_groups
from .series.series import Series, as_series

_LEAST = 30  # values without which nothing is recommended
_LAGS = 50  # the largest tau that is tried, as far as a state then is at most a third of the rows
_ERRORS = 3.0  # standard errors of a correlation of independent values: what E_max tries of noise rarely exceed
_RATE = 0.05  # of the pairs of states that recur
_SAID = "E is at the upper end|skill hardly depends"  # of embed_dimension, which the reasons say here


@dataclass(frozen=True, eq=False, repr=False)
class Suggestion(Result):
    """What to take for each series.

    Attributes
    ----------
    E : int, or ndarray of int (n_series,)
        Embedding dimension; 0 where no number of lags predicts the series.
    tau : int, or ndarray of int (n_series,)
        Lag between the coordinates of a state, in steps; 0 where nothing is recommended.
    theiler : int, or ndarray of int (n_series,)
        Theiler window of recurrence; ``exclusion_radius=theiler - 1`` leaves out the same neighbours.
    radius : float, or ndarray of float64 (n_series,)
        In the unit of the data, of states of E values (of one for E = 0), by the Euclidean metric; NaN where equal
        states alone are more than 5 %.
    rho : float, or ndarray of float64 (n_series,)
        Skill of E and tau, ``Tp`` steps ahead.
    Tp : int, or ndarray of int (n_series,)
    names : tuple of str
    reasons : tuple of str
        A sentence for each value of a series.
    provenance : mapping

    Examples
    --------
    >>> from pyedmcl.simulate import coupled_maps
    >>> import pyedmcl
    >>> found = pyedmcl.suggest(coupled_maps(n_series=4, n_steps=400).values)
    >>> found.tau.tolist(), found.theiler.tolist()
    ([1, 1, 1, 1], [1, 1, 1, 1])
    >>> found.to_frame().columns.tolist()
    ['series', 'E', 'tau', 'theiler', 'radius', 'rho', 'Tp', 'reasons']
    """

    answer_columns = ("series", "E", "tau", "theiler", "radius")

    series_label: ClassVar = Label("", "")
    column_labels: ClassVar = {
        **common("series", "E", "tau", "rho", "Tp"),
        "theiler": Label("rows", "pairs of states nearer in time than this are left out"),
        "radius": Label("data", "states nearer than this are recurrent"),
        "reasons": Label("", "why, a sentence for each value"),
    }

    E: Any
    tau: Any
    theiler: Any
    radius: Any
    rho: Any
    Tp: Any
    names: tuple[str, ...]
    reasons: tuple[str, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def answer(self) -> Answer:
        """The values of each series."""
        rows = list(zip(*(self.to_dict()[name] for name in self.answer_columns), strict=True))
        return Answer(self.answer_columns, rows[:ANSWER_ROWS], len(rows))

    def to_dict(self) -> dict[str, list[Any]]:
        """Lists of what ``to_frame`` holds."""
        values = {name: np.atleast_1d(getattr(self, name)).tolist() for name in _Choice._fields[:-1]}
        return {"series": list(self.names), **values, "reasons": list(self.reasons)}

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row for each series, with the reasons."""
        return pandas_for("to_frame()").DataFrame(self.to_dict())


class _Choice(NamedTuple):
    """What is recommended for a series."""

    E: int
    tau: int
    theiler: int
    radius: float
    rho: float
    Tp: int
    reasons: str


@public_function
def suggest(
    data: Any,
    *,
    E_max: int = 10,
    columns: Sequence[str | int] | str | int | None = None,
    groups: Any = None,
    regular: str | None = None,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: Device = None,
    tune: str | None = None,
) -> Suggestion:
    """Recommend E, tau, Theiler window and radius for each series, and say why.

    The Theiler window is that of ``theiler="auto"``: the lag at which the autocorrelation falls below 1/e. Where that
    is 1, tau is 1. Else it is the first minimum of the mutual information, unless E lags so far apart predict nothing
    tau steps ahead: then it is 1. E is the smallest whose skill tau steps ahead is within a standard error of the best
    (``E_rule="one-se"``). At the radius 5 % of the pairs of states outside the Theiler window recur.

    Parameters
    ----------
    data : array_like (n_steps,) or (n_steps, n_series)
        Time along the first axis, NaN for gaps.
    E_max : int
        Largest dimension that is tried, at least 1.
    columns : str, int, or sequence of these, optional
        Which series to take, by name or position; names with a minus before them are left out.
    groups : str, sequence of str, or labels (n_steps,), optional
        Recordings (subjects, plots, replicates) that stand one below the other: columns of the data or levels of its
        index, or a label for each row. No state and no target crosses a border.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows (an index of dates or numbers, a coordinate, a time column) are not regular,
        which is refused by default. "insert" puts rows of NaN where rows are missing: ranges and masks are moved along,
        and rows of the result are those of the longer table. "ignore" takes the rows as they come. Dates whose index
        has a frequency are regular.
    progress : callable or True, optional
        Called as ``progress(done, total, unit)``, where the unit says what is counted, such as "series"; True shows a
        bar.
    dtype : {"float32", "float64"}
        What the device computes in.
    device : str or sequence of str, optional
        Which device, or several that share the work; see ``pyedmcl devices``.
    tune : {"never", "cached", "auto", "force"}, optional
        Which tuned parameters kernels take, which changes speed and never the answer; ``PYEDMCL_TUNE`` or "cached" by
        default.

    Returns
    -------
    Suggestion
        ``E``, ``tau``, ``theiler`` and ``radius``, numbers for 1-D input, else (n_series,); ``reasons``, and
        ``to_frame()``.

    Raises
    ------
    InputError
        Data cannot be used.
    DeviceNotFoundError
        No device matches.

    See Also
    --------
    check : whether the table is fit for anything.
    embedding_scan : skill of all E and tau.
    mutual_information, false_neighbors : other criteria, which often ask for another lag or dimension.

    Notes
    -----
    Cost: about n_steps^2 * E_max multiply-adds for each series, twice where the series is smooth.

    Skill counts as such where it exceeds three standard errors of the correlation of as many independent values as
    there are rows (for longer lags: correlation times).

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(600) * 0.3) + 0.1 * np.random.default_rng(1).standard_normal(600)
    >>> found = pyedmcl.suggest(x)
    >>> found.tau, found.theiler
    (5, 4)
    >>> print(found.reasons[0].split(". ")[1])
    tau=5: there the mutual information has its first minimum
    """
    rest, of = take_groups(data, groups, "data")
    series = as_series(rest, columns=columns)
    longest = series.n_steps if of is None else int(of.sizes.max())
    most = max(min(_LAGS, longest // 10), 1)
    if of is not None:
        series = of.layout(E=2, tau=most, Tp=[most]).series(series, "data")
    single = getattr(rest, "ndim", 2 if series.n_series > 1 else 1) == 1
    options = {"dtype": dtype, "device": device, "tune": tune}
    choices = []
    for place in range(series.n_series):
        choices.append(_choice(series.part(place), E_max, most, longest, options))
        report_progress(place + 1, series.n_series, "series")
    held = dict(zip(_Choice._fields, zip(*choices, strict=True), strict=True))
    values = {name: held[name][0] if single else np.array(held[name]) for name in _Choice._fields[:-1]}
    return Suggestion(**values, names=series.names, reasons=held["reasons"], provenance=origin())


def _choice(series: Series, E_max: int, most: int, longest: int, options: dict[str, Any]) -> _Choice:
    """What is recommended for one series.

    Parameters
    ----------
    most : int
        The largest tau that is tried.
    longest : int
        Rows of the longest recording.
    """
    present = int(np.isfinite(series.values).sum())
    if present < _LEAST or series.constant:
        few = f"there are {present} values, and at least {_LEAST} are needed"
        return _Choice(0, 0, 0, math.nan, math.nan, 0, f"Nothing: {few if present < _LEAST else 'it is constant'}.")
    theiler = correlation_time(series.values)
    tau, why = (1, "") if theiler == 1 else _lag(series, theiler, most, options)
    E, rho, at_end = _dimension(series, E_max, tau, theiler, longest, options)
    if tau > 1 and not rho > _ERRORS * math.sqrt(theiler / present):
        why = f"values {tau} steps apart, where the mutual information is low, predict nothing (rho {rho:.2f})"
        tau = 1
        E, rho, at_end = _dimension(series, E_max, tau, theiler, longest, options)
    known = rho > _ERRORS / math.sqrt(present)
    fewest = f"E={E}: the fewest values whose skill {many(tau, 'step')} ahead is within a standard error of the best"
    said = [
        f"{fewest} (rho {rho:.2f}){'; more were not tried' if at_end else ''}" if known else
        "E: none, since no state has a target" if math.isnan(rho) else
        f"E: none, since the best skill one step ahead (rho {rho:.2f}) is no more than independent values reach",
        f"tau={tau}: {why or 'the autocorrelation falls below 1/e within one step'}",
        f"Theiler window {theiler} (exclusion_radius={theiler - 1}): there the autocorrelation falls below 1/e",
    ]  # fmt: skip
    radius, rate = _radius(series, E if known else 1, tau, theiler, options)
    if radius > 0:
        said.append(f"radius {radius:.4g}: {rate:.0%} of the pairs of states outside the Theiler window are nearer")
    else:
        radius = math.nan
        said.append(f"radius: none, since {rate:.0%} of the pairs of states outside the Theiler window are equal")
    return _Choice(E if known else 0, tau, theiler, radius, rho, tau, ". ".join(said) + ".")


def _lag(series: Series, theiler: int, most: int, options: dict[str, Any]) -> tuple[int, str]:
    """tau of a smooth series, and why."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", RecurrenceWarning)
        information = mutual_information(series, lags=most, device=options["device"])
        tau = information.first_minimum()
    if not any("has no minimum" in str(one.message) for one in told):
        return tau, "there the mutual information has its first minimum"
    return min(theiler, most), (
        f"the mutual information has no minimum up to lag {most}, and the autocorrelation falls below 1/e "
        + ("there" if theiler <= most else f"as late as lag {theiler}")
    )


def _dimension(
    series: Series, E_max: int, tau: int, theiler: int, longest: int, options: dict[str, Any]
) -> tuple[int, float, bool]:
    """E, its skill, and whether it is the largest that was tried."""
    tried = max(min(E_max, longest // (3 * tau)), 1)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", _SAID)
        found = embed_dimension(
            series, E_max=tried, E_rule="one-se", tau=tau, Tp=tau, exclusion_radius=theiler - 1, **options
        )
    return int(found.E), float(found.rho[found.E - 1]), 1 < tried == found.E


def _radius(series: Series, E: int, tau: int, theiler: int, options: dict[str, Any]) -> tuple[float, float]:
    """The radius, and the share of pairs of states outside the Theiler window that are nearer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecurrenceWarning)
        found: Any = rqa(
            series, m=E, tau=tau, radius=_RATE, threshold="recurrence_rate", theiler=theiler,
            convention="recurrenceanalysis", **options,
        )  # fmt: skip
    return float(found.radius), float(found.recurrence_rate)

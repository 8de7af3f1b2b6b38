"""Tests of what was found: p-values by counting, false discovery rates, sequential tests, and whether skill grows with
the library.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .arguments import many, room, some
from .errors import InputError, pandas_for, shown, warn
from .jobs.blocks import origin
from .jobs.runner import public_function
from .results.result import Label, Result
from .series.groups import Groups, groups_of
from .series.number_forms import NotNumericError, is_missing, numeric_column
from .series.series import as_series
from .states import arguments

# P-values by counting: how many surrogates do as well as what was observed.


Doubles = NDArray[np.float64]


def counts(observed: Any, surrogates: Doubles) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
    """Surrogates at least as large, and those that have a value, along the last axis; 0 where ``observed`` has none."""
    observed = np.asarray(observed, np.float64)
    present = np.isfinite(surrogates) & np.isfinite(observed)[..., None]
    with np.errstate(invalid="ignore"):
        reached = (present & (surrogates >= observed[..., None])).sum(axis=-1)
    return reached, present.sum(axis=-1)


def p_values(reached: Any, n: Any) -> Doubles:
    """(1 + ``reached``) / (1 + ``n``), NaN where n is 0."""
    return np.where(np.asarray(n) > 0, (1.0 + np.asarray(reached)) / (1.0 + np.asarray(n)), np.nan)


def smallest_p(n: int) -> float:
    """The p-value of what none of ``n`` surrogates reaches."""
    return 1 / (n + 1)


def reached_of(p_value: Any, n: Any) -> NDArray[np.int_]:
    """How many of ``n`` surrogates did as well, given :func:`p_values`; 0 where these are NaN."""
    made = np.isfinite(p_value)
    return np.where(made, np.rint(np.where(made, p_value, 1.0) * (1 + np.asarray(n))) - 1, 0).astype(np.int64)


def exceedance(observed: Any, surrogates: Doubles) -> Doubles:
    """(1 + surrogates at least as large) / (1 + surrogates) along the last axis; undefined surrogates do not count.

    NaN where ``observed`` is, or where no surrogate has a value.
    """
    return p_values(*counts(observed, surrogates))


# Two groups of recordings, by permuting which recording belongs to which.


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
    """Differences of two groups.

    Attributes
    ----------
    measures, groups : tuple of str
    means : ndarray of float64 (2, measures)
    p_value : ndarray of float64 (measures,)
        Two-sided, from permutations of the groups' labels; NaN where a group has no value.
    q_value : ndarray of float64 (measures,)
        False discovery rates over all measures.
    units : tuple of int
        How many each group has.
    paired : bool
    n, seed : int
    provenance : mapping

    Examples
    --------
    >>> import pyedmcl
    >>> table = {"site": ["north"] * 5 + ["south"] * 5, "rho": [0.9, 0.8, 0.85, 0.7, 0.9, 0.3, 0.4, 0.2, 0.35, 0.5]}
    >>> found = pyedmcl.compare(table, "site", seed=1)
    >>> found.groups, found.means.round(2).tolist()
    (('north', 'south'), [[0.83], [0.35]])
    >>> bool(found.p_value[0] < 0.02)
    True
    """

    answer_columns = ("*",)
    series_label: ClassVar = Label("as in the data", "mean of the group")
    column_labels: ClassVar = {
        "measure": Label("", "what is compared"),
        "difference": Label("as in the data", "mean of the first group less that of the second"),
        "p_value": Label("1", "two-sided, by permuting labels of groups"),
        "q_value": Label("1", "false discovery rate over all measures"),
    }

    measures: tuple[str, ...]
    groups: tuple[str, ...]
    means: Doubles
    p_value: Doubles
    q_value: Doubles
    units: tuple[int, ...]
    paired: bool
    n: int
    seed: int
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row for each measure."""
        first, second = self.means
        return pandas_for("to_frame()").DataFrame({
            "measure": self.measures, self.groups[0]: first, self.groups[1]: second, "difference": first - second,
            "p_value": self.p_value, "q_value": self.q_value,
        })  # fmt: skip


@public_function
def compare(
    data: Any, by: str, *, pair: str | None = None, measures: Sequence[str] | None = None, n: int = 9999,
    seed: int | None = None,
) -> Comparison:  # fmt: skip
    """Test whether measures of two groups of recordings (treatments, sites, patients and controls) differ.

    Labels of the groups are permuted among the units, which are rows, or all rows of a value of ``pair``. Where each
    unit is in both groups, its two values are exchanged instead. If the groups do not differ, p-values hold their level
    whatever the values are distributed like.

    Parameters
    ----------
    data : frame, or mapping of str to sequence (rows,)
        A row for each recording, such as ``rqa_batch(...).to_frame()``, or skills of plots.
    by : str
        The column that holds the two groups.
    pair : str, optional
        A column whose values name units, such as the subject: rows of a unit and a group are averaged. Either all units
        are in both groups, or none is.
    measures : sequence of str, optional
        Columns that are compared; all that hold numbers by default.
    n : int
        Permutations. The smallest p-value is 1 / (n + 1).
    seed : int, optional
        Chooses what is random: the same seed gives the same result, whatever the device. By default a fresh one, which
        the result names.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        A column is missing, or there are not two groups, or a unit has no partner.

    See Also
    --------
    rqa_batch : recurrence measures of many recordings.
    false_discovery : what becomes of the p-values.

    Notes
    -----
    Cost: n sums over the units. ``bench/rqa_significance.py --groups`` counts how often p <= 0.05 without a difference.

    Examples
    --------
    >>> import pyedmcl
    >>> table = {"who": [1, 1, 2, 2, 3, 3, 4, 4], "drug": ["a", "b"] * 4, "DET": [1, 2, 5, 7, 2, 4, 8, 9]}
    >>> found = pyedmcl.compare(table, "drug", pair="who", measures=["DET"], seed=1)
    >>> found.paired, found.units
    (True, (4, 4))
    """
    if not hasattr(data, "items"):
        raise InputError(f"data={shown(data)}: a frame, or a mapping of names to columns, is needed")
    columns = {str(name): values for name, values in data.items()}
    for name in [by, *([] if pair is None else [pair]), *(measures or ())]:
        if not isinstance(name, str) or name not in columns:
            raise InputError(f"data: there is no column {shown(name)}; there are {some(list(columns))}")
        if np.shape(columns[name]) != np.shape(columns[by]) or np.ndim(columns[by]) != 1:
            raise InputError(f"data: column {name!r} does not hold a value for each row")
    stream, of_group = arguments.stream(seed), _labels_of(columns[by], by)
    groups = tuple(map(str, of_group.labels))
    if len(groups) != 2:
        raise InputError(f"by={by!r}: it holds {many(len(groups), 'group')} ({some(groups)}), and two are compared")
    held = {name: values for name, values in columns.items() if name not in (by, pair)}
    chosen = list(measures) if measures is not None else [name for name in held if _holds_numbers(held[name])]
    if not chosen:
        raise InputError("measures: no column holds a number for each row")
    if measures is None and len(chosen) < len(held):
        warn(f"data: {some([name for name in held if name not in chosen])} holds no numbers, and is not compared")
    # Columns that are named are series to the door, whatever their names say.
    read = as_series({name: columns[name] for name in chosen}, columns=chosen, argument="measures")
    values = read.values.astype(np.float64)
    rows = np.arange(len(values))
    of_unit = rows if pair is None else _labels_of(columns[pair], pair).codes
    units = rows.tolist() if pair is None else _labels_of(columns[pair], pair).labels
    means = np.full((2, len(units), len(chosen)), np.nan)
    there = np.zeros((2, len(units)), bool)
    for place in range(2):
        here = of_group.codes == place
        for unit in np.unique(of_unit[here]):
            there[place, unit] = True
            means[place, unit] = _mean(values[(of_unit == unit) & here])
    both = there.all(axis=0)
    if both.any() and not both.all():
        alone = [units[place] for place in np.flatnonzero(~both).tolist()]
        raise InputError(f"pair={pair!r}: no partner in the other group for {some(alone)}")
    observed, drawn = _permuted(means, there, bool(both.all()), n, np.random.default_rng(stream))
    p_value = exceedance(np.abs(observed) * (1 - 1e-9), np.abs(drawn))  # sums in another order differ by roundings
    sizes = tuple(there.sum(axis=1).tolist())
    ways = 2.0 ** sizes[0] if both.all() else float(math.comb(sum(sizes), sizes[0]))
    least = (2 if both.all() or sizes[0] == sizes[1] else 1) / ways
    if least > 0.05:
        warn(f"no p-value below {least:.2g} is possible with groups of {sizes[0]} and {sizes[1]}: more are needed")
    return Comparison(
        tuple(chosen), groups, np.stack([_mean(one) for one in means]), p_value, false_discovery(p_value), sizes,
        bool(both.all()), n, stream, origin(),
    )  # fmt: skip


def _labels_of(column: Any, name: str) -> Groups:
    """The label of each row, of which none may be missing: rows without one belong to nothing."""
    labels = groups_of(column, None, "data")
    for code, label in enumerate(labels.labels):
        if is_missing(label) or label != label or label == "":
            row = int(np.flatnonzero(labels.codes == code)[0])
            raise InputError(f"data: column {name!r} has no value in row {row}; fill it in, or leave such rows out")
    return labels


def _holds_numbers(column: Any) -> bool:
    """Whether a column holds numbers and gaps."""
    try:
        numeric_column(np.asarray(column))
    except NotNumericError:
        return False
    return True


def _mean(rows: Doubles) -> Doubles:
    """Means of columns (rows, columns) over what is finite; NaN where nothing is."""
    held = np.isfinite(rows)
    return np.asarray(np.where(held, rows, 0.0).sum(axis=0) / np.where(held.any(axis=0), held.sum(axis=0), np.nan))


def _permuted(
    means: Doubles, there: NDArray[np.bool_], paired: bool, n: int, rng: np.random.Generator
) -> tuple[Doubles, Doubles]:
    """The difference of both groups (measures,), and differences (measures, n) of permuted ones."""
    if paired:
        apart = means[0] - means[1]
        present = np.isfinite(apart)
        total, number = np.where(present, apart, 0.0), np.where(present.any(axis=0), present.sum(axis=0), np.nan)
        drawn = [rng.choice([-1.0, 1.0], len(total)) @ total / number for _ in range(n)]
        return total.sum(axis=0) / number, np.stack(drawn, axis=1)
    pooled = np.where(there[0][:, None], means[0], means[1])
    present = np.isfinite(pooled)
    total = np.where(present, pooled, 0.0)

    def difference(first: NDArray[np.bool_]) -> Doubles:
        with np.errstate(invalid="ignore", divide="ignore"):
            one, other = (which @ total / (which @ present.astype(float)) for which in (first * 1.0, ~first * 1.0))
        return np.asarray(one - other)

    return difference(there[0]), np.stack([difference(rng.permutation(there[0])) for _ in range(n)], axis=1)


# From the p-values of many tests to false discovery rates.


#: A rate within _ROUNDINGS roundings of a number of _DIGITS digits is that number.
_ROUNDINGS, _DIGITS = 4, 9


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

    A test is significant at a rate if its value here is at most that rate: compare by ``<=``. What the arithmetic makes
    of 3 p-values of 1 / 40 among 6 is a rounding above 0.05; such values are set to the short number that they stand
    for, so that this comparison needs no tolerance.

    Examples
    --------
    >>> import pyedmcl
    >>> pyedmcl.false_discovery([0.01, 0.02, 0.5]).tolist()
    [0.03, 0.03, 0.5]
    """
    p = _probabilities(p_values)
    present = ~np.isnan(p)
    tested = p[present]
    order = np.argsort(tested, kind="stable")
    scaled = tested[order] * len(tested) / np.arange(1, len(tested) + 1)
    adjusted = np.empty_like(scaled)
    adjusted[order] = _short(np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0))
    out = np.full(p.shape, np.nan)
    out[present] = adjusted
    return out


def _short(rates: Doubles) -> Doubles:
    """Rates, of which those that differ by rounding only from a decimal number of few digits are that number."""
    with np.errstate(divide="ignore"):
        digits = _DIGITS - 1 - np.floor(np.log10(rates))
    size = 10.0 ** np.clip(np.nan_to_num(digits, posinf=0.0), 0, 22)  # powers of ten that are exact
    decimal = np.rint(rates * size) / size
    return np.where(np.abs(rates - decimal) <= _ROUNDINGS * np.spacing(decimal), decimal, rates)


def _probabilities(p_values: Any) -> Doubles:
    """An array of numbers from 0 to 1, NaN where there is none or it is masked."""
    wrong = "p_values: numbers from 0 to 1, or NaN, are needed"
    try:
        values = np.ma.asanyarray(p_values) if isinstance(p_values, np.ma.MaskedArray) else np.asarray(p_values)
    except Exception as cause:  # whatever the object's own methods raise
        raise InputError(f"{wrong}: {cause}") from cause
    if values.dtype.kind not in "fiuO":  # a complex one would lose a part without a word
        raise InputError(f"{wrong}, not {values.dtype.name}")
    p: Doubles = room("p_values", values.shape)
    try:
        p[...] = np.ma.filled(values.astype(np.float64), np.nan)
    except (TypeError, ValueError, OverflowError) as cause:
        raise InputError(f"{wrong}: {cause}") from cause
    outside = p[(p < 0) | (p > 1)]
    if outside.size:
        raise InputError(f"{wrong}; there is {outside[0]:g}")
    return p


# Sequential Monte Carlo tests of many hypotheses: surrogates are drawn only where a decision is still open.
#
# After n surrogates, k of which do as well as what was observed, the true p-value lies within bounds that hold for all
# n at once but for a chance of EPSILON (Robbins, Ann. Math. Stat. 41, 1397, 1970; Lai, Ann. Stat. 4, 265, 1976). A pair
# is decided where the procedure of Benjamini and Hochberg says the same for any p-values within the bounds (Gandy and
# Hahn, Scand. J. Stat. 41, 1083, 2014).


Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]

#: Chance, for each test, that bounds miss the true p-value at any time.
EPSILON = 1e-3
#: Surrogates of the first round. Each later round adds half of what is there.
FIRST = 39
#: A single test may take this many times the budget, which is meant for the mean of all tests: more where no surrogate
#: has done as well as what was observed, so that the p-value says nothing yet but how many surrogates there are.
MOST_TIMES, MOST_TIMES_UNREACHED = 5, 50
_MOST_NUMBERS = 1 << 27  # of the surrogates of one target in one round
_BISECTIONS = 50


def bounds(reached: Counts, n: Counts) -> tuple[Doubles, Doubles]:
    """Lower and upper bounds of p-values of which ``reached`` of ``n`` surrogates did as well; 0 and 1 where n is 0."""
    shape = np.shape(reached)
    base = int(np.max(n, initial=0)) + 1
    numbers, place = np.unique(np.ravel(reached).astype(np.int64) * base + np.ravel(n), return_inverse=True)
    pairs = np.divmod(numbers, base)  # each pair of counts once: there are few of many tests
    k, n_of = (each.astype(np.float64) for each in pairs)
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, base)))])  # of factorials
    choices = logs[pairs[1]] - logs[pairs[0]] - logs[pairs[1] - pairs[0]]
    limit = math.log(EPSILON) - np.log(n_of + 1) - choices

    def inside(p: Doubles) -> Mask:
        with np.errstate(divide="ignore", invalid="ignore"):
            likely = np.where(k > 0, k * np.log(p), 0.0) + np.where(k < n_of, (n_of - k) * np.log1p(-p), 0.0)
        return np.asarray(likely > limit)

    mode = k / np.maximum(n_of, 1)
    sides = []
    for end in (0.0, 1.0):  # each bound lies between the most likely p-value and an end
        near, far = mode.copy(), np.full_like(mode, end)
        for _ in range(_BISECTIONS):
            middle = (near + far) / 2
            ok = inside(middle)
            near, far = np.where(ok, middle, near), np.where(ok, far, middle)
        sides.append(np.where(n_of > 0, far, end)[place.reshape(-1)].reshape(shape))
    return sides[0], sides[1]


def still_open(lower: Doubles, upper: Doubles, rate: float) -> Mask:
    """Which tests may yet be significant at a false discovery rate or not; NaN for tests that are not made."""
    with np.errstate(invalid="ignore"):
        surely, possibly = false_discovery(upper) <= rate, false_discovery(lower) <= rate
    return np.asarray(possibly & ~surely)


class SequentialTests:
    """Counts of many tests, and what is to be drawn next.

    Parameters
    ----------
    rate : float
        The false discovery rate at which tests are decided.
    budget : int
        Surrogates of a test, as a mean over all tests; 0 where no more are to be drawn.
    drawn : int
        Surrogates that each test has had.
    reached, n : ndarray of int
        Those that did as well as what was observed, and those that have a value; a test with none is not made.

    Attributes
    ----------
    reached, n : ndarray of int
        As above, with all that was added.
    drawn : int
        Surrogates that each open test has had: the number of the next one.
    open : ndarray of bool
        Tests that are not decided yet and may get more surrogates.
    """

    def __init__(self, rate: float, budget: int, drawn: int, reached: Counts, n: Counts) -> None:
        self.reached, self.n, self.drawn = reached, n, drawn
        self._rate, self._budget, self._made = rate, budget, n > 0
        self._lower, self._upper = np.zeros(n.shape), np.ones(n.shape)
        self.open = self._made
        if budget:
            self._decide()

    def add(self, drawn: int, reached: Counts, n: Counts) -> None:
        """Count ``drawn`` more surrogates of the open tests, ``n`` of which have a value."""
        self.reached, self.n = self.reached + np.where(self.open, reached, 0), self.n + np.where(self.open, n, 0)
        self.drawn += drawn
        self._decide()

    def _decide(self) -> None:
        lower, upper = bounds(self.reached, self.n)
        # What was once ruled out stays so: a test that is decided is not opened again.
        self._lower, self._upper = np.maximum(self._lower, lower), np.minimum(self._upper, upper)
        made = [np.where(self._made, side, np.nan) for side in (self._lower, self._upper)]
        self.open = self.open & still_open(made[0], made[1], self._rate)
        if self.drawn >= MOST_TIMES * self._budget:
            self.open &= self.reached == 0

    def step(self, n_steps: int) -> int:
        """How many surrogates of series of ``n_steps`` rows the open tests get next; 0 if all is decided or spent."""
        waiting = int(self.open.sum())
        if not waiting or not self._budget:
            return 0
        left = self._budget * int(self._made.sum()) - int(self.n.sum())
        most = max(min(_MOST_NUMBERS // n_steps, 4096), 1)
        half_again = max(self.drawn // 2, 1)
        times = MOST_TIMES if self.drawn < MOST_TIMES * self._budget else MOST_TIMES_UNREACHED
        return max(min(half_again, most, left // waiting, times * self._budget - self.drawn), 0)


def decided(p_value: Doubles, n: Counts, rate: float) -> Mask:
    """Which of the tests that were made would be called the same at ``rate`` with ever more surrogates.

    Parameters
    ----------
    p_value : ndarray of float64
        (1 + reached) / (1 + n), NaN for tests that were not made.
    """
    made = np.isfinite(p_value)
    lower, upper = (np.where(made, side, np.nan) for side in bounds(reached_of(p_value, n), n))
    return np.asarray(made & ~still_open(lower, upper, rate))


def tell_reach(p_value: Doubles, n: int, rate: float, *, sides: int = 1, tests: str = "directions") -> None:
    """Warn where n is too small for any test to pass at ``rate``, although more surrogates might tell.

    Parameters
    ----------
    p_value : ndarray of float64
        NaN for tests that were not made.
    n : int
        Most surrogates of a test.
    sides : int
        2 where p-values are two-sided; n is a number then.
    tests : str
        What is tested, in the plural.
    """
    made = p_value[np.isfinite(p_value)]
    smallest = sides * smallest_p(n)
    lowest = int((made <= smallest * (1 + 1e-9)).sum())
    if not lowest or bool((false_discovery(made) <= rate).any()):
        return
    needed = math.ceil(made.size * smallest / rate - 1e-9)
    can = "none can pass" if needed > made.size else f"any can pass only if {needed:,} have that p-value; {lowest:,} do"
    warn(
        f"nothing is significant because n={n:,} surrogates are too few: no p-value is below {smallest:.3g}, and of "
        f"{made.size:,} {tests} at a false discovery rate of {rate:g} {can}. Take "
        f"{'n=' + repr('auto') + ', or ' if sides == 1 else ''}a larger n"
    )


# Does cross-map skill grow with the library? Its trend, and the gain from the smallest library to the largest.


#: Skill rises steadily with the library where its trend is above this: of 8 sizes in random order, 3 % are.
#: Libraries share one series, so that skill of unlinked series is so more often.
STEADY = 0.5


@dataclass(frozen=True)
class Convergence:
    """How skill of one direction grows with the library. Skill that converges has a rising trend *and* a gain.

    These describe: libraries share one series, so that skill of unlinked series often rises, too. ``p_gain`` of
    :func:`pyedmcl.ccm_significance` is a test.
    """

    # Kendall's tau-b of mean skill against library size; NaN for one size.
    trend: float
    # Mean skill at the largest library less that at the smallest.
    gain: float
    # Share of the samples of the smallest library that do as well as the median of the largest.
    overlap: float


def convergence(rho: NDArray[np.float64], lib_sizes: NDArray[np.int_]) -> Convergence:
    """How skill (n_sizes, samples) grows with the library sizes (n_sizes,)."""
    order = np.argsort(lib_sizes)
    mean = means(rho[order])
    first, last = (rho[place][np.isfinite(rho[place])] for place in order[[0, -1]])
    overlap = float((first >= np.median(last)).mean()) if first.size and last.size else float("nan")
    trend = kendall(mean[np.isfinite(mean)][:, None])
    return Convergence(float(trend[0]), float(mean[-1] - mean[0]), overlap)


def means(rho: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means over the samples that have a skill, along the last axis; NaN where none has."""
    present = np.isfinite(rho)
    with np.errstate(invalid="ignore"):
        out: NDArray[np.float64] = np.where(present, rho, 0.0).sum(axis=-1) / present.sum(axis=-1)
    return out


def kendall(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Kendall's tau-b (m,) of each column of finite values (n, m) against their order; NaN where all are equal.

    Kendall, Biometrika 30, 81 (1938).
    """
    n = len(values)
    s, tied = np.zeros((2, values.shape[1]), np.int64)
    for later in range(1, n):
        signs = np.sign(values[later] - values[:later])
        s += signs.sum(axis=0).astype(np.int64)
        tied += (signs == 0).sum(axis=0)
    pairs = n * (n - 1) // 2
    with np.errstate(invalid="ignore"):
        return np.asarray(s / np.sqrt(pairs * (pairs - tied)))


def upper_tail(z: Any) -> float:
    """Chance that a standard normal number exceeds z."""
    return 0.5 * math.erfc(float(z) / math.sqrt(2))

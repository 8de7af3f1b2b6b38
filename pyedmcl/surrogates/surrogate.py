"""Surrogate series: what a series could have been if it knew nothing of the others, and which kind a series suggests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import many, some
from ..errors import InputError, warn
from ..parameters import checked
from ..series.groups import Groups, Layout, take_groups
from ..series.regular import regular_times
from ..series.scaling import far_exponent, near_one
from ..series.series import Series, build_series, check_embedding
from ..states import arguments
from .components import (
    LEVEL,
    NOTHING,
    Components,
    Line,
    Spectrum,
    clearest_together,
    common_line,
    components_of,
    far_from_normal,
    is_rhythm,
    lines_of,
    memory_of_rows,
    normal_scores,
    without_cycle,
)
from .makers import METHODS as SEGMENT_METHODS
from .makers import (
    Drawer,
    Maker,
    SegmentChoice,
    Streams,
    adjusted,
    check_period,
    draw,
    grouped,
    one_by_one,
    parts_of,
    phases,
    placed,
    ranked,
    said_together,
    seasonal,
    segment_choices,
    twin_groups,
    twin_path,
)

# Which surrogates a series suggests: what of it could explain a cross-map skill, and is therefore to be kept.


Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]

# A series wanders where the augmented Dickey-Fuller test (5 %, with a trend) does not see it return to its mean.
_RETURNS, _SLOW = -3.41, 0.9
_LEAST = 30  # rows without which nothing is looked for
_BETTER = 45  # of twice the likelihood: slow change and steps may explain so much of a walk by chance (19 of 20)
_SPREAD_GAINS = 6  # beside what it costs: at 150 rows 19 of 20 that grow are seen so, and 5 of 20 with 30
_SURE_GAIN, _TOLD_SHARE = 18, 0.1  # of twice the likelihood, of the variance: memory alone gives some
_LEAST_SPREAD = 0.1  # of the mean: a spread of nothing would make surrogates infinite
# What was found for the last series, by their digests: who tests one series against many looks at it once.
_FOUND: dict[tuple[bytes, float | None], Choice] = {}
_MOST_FOUND = 4096


@dataclass(frozen=True)
class Choice:
    """What surrogates of a series keep."""

    # Slow change, steps and seasons of the series, or of its steps from row to row.
    level: Components = NOTHING
    # The same of how far values lie from that level.
    spread: Components = NOTHING
    # The values that are left, whose order is that of random waves, for they are far from normal.
    ranks: bool = False
    # The spectrum is that of the steps from row to row, which are summed up again.
    steps: bool = False
    # Rows without a value.
    gaps: int = 0
    # Rows of a cycle that was taken out of the series before; 0 for none.
    removed: float = 0

    @property
    def period(self) -> float:
        """Rows of the clearest season; 0 for none."""
        return self.level.lines[0].period if self.level.lines else 0

    @property
    def trend(self) -> bool:
        """Whether it changes slowly."""
        return bool(self.level.slow)

    @property
    def reason(self) -> str:
        """What is kept, and why, in words."""
        parts = [season_words(line) for line in self.level.lines]
        if self.level.slow:
            parts.append("the linear trend" if self.level.slow == 1 else "slow change")
        if self.level.jumps:
            parts.append(f"the {steps_words(self.level.jumps)}")
        if self.spread:
            parts.append("how its spread changes" + "".join(f" in {length(one)} rows" for one in self.spread.lines[:1]))
        if self.steps:
            parts.append("the spectrum of the steps from row to row, since the series does not return to a mean")
        else:
            gone = f"without its cycle of {self.removed:.4g} rows" if self.removed else ""
            none = f"{gone} it has no other" if gone else "it has no lasting"
            rest = f" of what is left {gone}".rstrip() if parts else f", since {none} cycle or trend"
            parts.append(f"the values and the spectrum{rest}" if self.ranks else f"the spectrum{rest}")
        stay = f"{many(self.gaps, 'gap', 'stays', 'stay')}, and {'was' if self.gaps == 1 else 'were'}"
        gaps = f"; {stay} bridged by straight lines for the spectrum" if self.gaps else ""
        last = parts.pop()
        return f"keeps {', '.join(parts)}{', and ' if parts else ''}{last}{gaps}"

    def maker(self, values: Doubles) -> Maker:
        """What makes surrogates of these values."""
        present = np.isfinite(values)
        filled = bridged(values)
        begin, rest = filled[0], np.diff(filled) if self.steps else filled
        kept = np.isfinite(np.diff(values)) if self.steps else present
        base = self.level.fitted(rest, kept) if self.level else np.zeros(len(rest))
        left, missing = rest - base, ~present if self.gaps else None
        if not self.spread and not self.ranks and not self.steps:
            return replace(phases(left), base=base if self.level else None, missing=missing)
        scale = np.ones(len(rest))
        if self.spread:
            size = np.abs(left)
            scale = np.maximum(self.spread.fitted(size, kept), _LEAST_SPREAD * size.mean())
        waves = (ranked if self.ranks else phases)(left / scale)

        def make(streams: Streams) -> Doubles:
            out = base + scale * waves(streams)
            if self.steps:
                out = begin + np.concatenate([np.zeros((len(out), 1)), np.cumsum(out, axis=1)], axis=1)
            if missing is not None:
                out[:, missing] = np.nan
            return out

        return make


def length(line: Line) -> str:
    """Rows of a season, in words."""
    return f"{line.period:.0f}" if line.period == round(line.period) else f"{line.period:.4g}"


def season_words(line: Line) -> str:
    """What a season is, in words."""
    how = "whose height and phase drift" if line.drift else "which repeats itself"
    return f"the mean cycle of {length(line)} rows, {how}"


def steps_words(jumps: Sequence[int]) -> str:
    """At which rows a level changes at once."""
    return f"{'step' if len(jumps) == 1 else 'steps'} at {'row' if len(jumps) == 1 else 'rows'} " + ", ".join(
        f"{jump:,}" for jump in jumps
    )


def choices(series: Series, method: str, period: float | None) -> tuple[Choice, ...]:
    """What "auto" takes for each series; nothing for other methods.

    Of several series those seasons are taken that others share: no other can seem a link.
    """
    if method != "auto":
        return ()
    length = None if period is None else check_period(period, series.n_steps)
    columns = [near_one(column.astype(np.float64))[0] for column in series.values.T]
    found = choose_each(columns, length)
    if len(found) < 2 or length is not None:
        return tuple(found)
    n = series.n_steps
    every = [(*one.level.lines, *one.spread.lines) for one in found]
    shared = [
        tuple(line for number, own in enumerate(every) if number != place for line in own)
        for place in range(len(found))
    ]
    common = common_line([one.level.lines for one in found], n) or _together(columns, found)
    shared = [(*lines, *([common] if common else [])) for lines in shared]
    return tuple(
        _shared(choice, values, lines, common) for choice, values, lines in zip(found, columns, shared, strict=True)
    )


def _together(columns: Sequence[Doubles], found: Sequence[Choice]) -> Line | None:
    """A season that no series, or one alone, shows clearly, and all together do."""
    spectra = []
    for values, choice in zip(columns, found, strict=True):
        rest, kept = _rest(values, choice)
        if float(np.ptp(rest)) > 0:
            level = replace(choice.level, lines=())
            spectra.append(Spectrum.of(rest - level.fitted(rest, kept), kept, level.slow))
    return clearest_together([one for one in spectra if len(one.values) == len(spectra[0].values)])


def _shared(choice: Choice, values: Doubles, others: Sequence[Line], common: Line | None) -> Choice:
    """With those seasons alone that others have, and that which most have if it is there: that is a single test."""
    if not others:
        return choice
    n = len(values)
    level, spread = (
        replace(one, lines=tuple(line for line in one.lines if any(line.shares(other, n) for other in others)))
        for one in (choice.level, choice.spread)
    )
    if common is not None:
        rest, kept = _rest(values, choice)
        left = rest - level.fitted(rest, kept)
        for part, of, limit in ((level, left, LEVEL), (spread, np.abs(left), LEVEL / 5)):
            spectrum = Spectrum.of(of - replace(part, lines=()).fitted(of, kept), kept, part.slow)
            if any(common.shares(line, n) for line in part.lines) or (part is spread and common.period == 2):
                continue
            if spectrum.p_of(common.period, bool(common.drift)) <= limit:
                more = replace(part, lines=(*part.lines, spectrum.line(common.period, bool(common.drift))))
                level, spread = (more, spread) if part is level else (level, more)
    return replace(choice, level=level, spread=spread)


def choose(values: Doubles, period: float | None = None) -> Choice:
    """What surrogates of a series should keep.

    Parameters
    ----------
    values : ndarray (n,)
        Of magnitudes near 1; NaN for gaps.
    period : float, optional
        Rows of a cycle that is known; otherwise it is looked for.
    """
    return choose_each([values], period)[0]


def choose_each(columns: Sequence[Doubles], period: float | None = None) -> list[Choice]:
    """As :func:`choose`, of several series. What was found for a series is kept for the next call."""
    found = []
    for values in columns:
        key = hashlib.blake2b(values.tobytes()).digest(), period
        choice = _FOUND.get(key) or _chosen(values, period)
        _FOUND[key] = choice
        found.append(choice)
    for key in list(_FOUND)[:-_MOST_FOUND]:
        _FOUND.pop(key, None)  # another thread may have taken it out
    return found


def _chosen(values: Doubles, period: float | None) -> Choice:
    """What surrogates of a series should keep, whatever was found before."""
    present = np.isfinite(values)
    gaps = int((~present).sum())
    if present.sum() < _LEAST or float(np.ptp(values[present])) == 0:
        return Choice(gaps=gaps)
    filled = bridged(values)
    seen = seen_by_rank(values)
    level, likelihood = components_of(seen, present)
    steps = wanders(filled) and likelihood <= _likelihood_of_walk(seen) + _BETTER
    choice = Choice(steps=steps, gaps=gaps)
    rest, kept = _rest(values, choice)
    if steps:
        level = Components(lines=lines_of(rest - rest[kept].mean(), kept))
    if period is not None:
        level = _with_period(level, rest, kept, period)
    left = rest - level.fitted(rest, kept)
    size = np.where(kept, np.abs(left), np.abs(left[kept]).mean())  # a bridge is no calm
    spread = components_of(size, kept, _SPREAD_GAINS)[0]
    spread = replace(spread, lines=tuple(line for line in spread.lines if line.period > 2))  # chaos goes by turns
    scale = np.maximum(spread.fitted(size, kept), _LEAST_SPREAD * size.mean()) if spread else 1.0
    return replace(choice, level=level, spread=spread, ranks=far_from_normal((left / scale)[kept]))


def seen_by_rank(values: Doubles) -> Doubles:
    """Values without gaps in which components are looked for: normal scores where values are far from normal."""
    filled = bridged(values)
    return normal_scores(filled) if far_from_normal(values[np.isfinite(values)]) else filled


def sure_change(values: Doubles, choice: Choice) -> Components:
    """Slow change and steps that are sure enough to be told; surrogates keep others, too, at the cost of power."""
    finite = np.isfinite(values)
    if choice.steps or not (choice.level.slow or choice.level.jumps):
        return NOTHING
    found = replace(components_of(seen_by_rank(values), finite, _SURE_GAIN)[0], lines=())
    return found if explained(values, found.fitted(values, finite), finite) > _TOLD_SHARE else NOTHING


def _with_period(level: Components, rest: Doubles, kept: Mask, period: float) -> Components:
    """With a season of known length first, of as many harmonics as there are, and none of nearly that length."""
    n = len(rest)
    known = Spectrum.of(rest - replace(level, lines=()).fitted(rest, kept), kept, level.slow).line(period, False)
    whole = replace(known, harmonics=max(min(int(period / 2), n // 12), 1))
    return replace(level, lines=(known if known.drift else whole,))


def _rest(values: Doubles, choice: Choice) -> tuple[Doubles, Mask]:
    """Values, or steps from row to row, without gaps; and which of them are there."""
    filled, present = bridged(values), np.isfinite(values)
    return (np.diff(filled), present[1:] & present[:-1]) if choice.steps else (filled, present)


def _likelihood_of_walk(values: Doubles) -> float:
    """As that of :func:`components_of`, of a walk whose steps remember the last one."""
    steps = np.diff(values)
    steps = steps - steps.mean()
    left = steps[1:] - memory_of_rows(steps) * steps[:-1]
    return -len(values) * float(np.log(max(float((left * left).mean()), 1e-300)))


def bridged(values: Doubles) -> Doubles:
    """Values with gaps filled by straight lines, and by the nearest value at the ends."""
    present = np.isfinite(values)
    if present.all() or not present.any():
        return values
    rows = np.arange(len(values))
    return np.interp(rows, rows[present], values[present])


def line(values: Doubles, there: Mask) -> Doubles:
    """The straight line through the values that are there."""
    rows = np.arange(len(values)) - (len(values) - 1) / 2
    if there.sum() < 2:
        return np.zeros(len(values))
    slope, middle = np.polyfit(rows[there], values[there], 1)
    return np.asarray(middle + slope * rows)


def explained(values: Doubles, fitted: Doubles, there: Mask) -> float:
    """Share of the variance that is explained; negative where a fit does worse than the mean."""
    total = float(((values[there] - values[there].mean()) ** 2).sum()) if there.any() else 0.0
    return 1 - float(((values[there] - fitted[there]) ** 2).sum()) / total if total > 0 else 0.0


def wanders(values: Doubles) -> bool:
    """Whether a series does not return to a mean or trend, by the augmented Dickey-Fuller test."""
    n = len(values)
    rest = values - line(values, np.ones(n, bool))
    spread = float((rest**2).sum())
    if spread == 0 or float((rest[1:] * rest[:-1]).sum()) / spread < _SLOW:
        return False
    lags = min(int(4 * (n / 100) ** 0.25), 12)
    change = np.diff(values)
    response = change[lags:]
    columns = [values[lags:-1], np.ones(len(response)), np.arange(len(response)) / n]
    columns += [change[lags - lag : -lag] for lag in range(1, lags + 1)]
    design = np.column_stack(columns)
    fit, *_ = np.linalg.lstsq(design, response, rcond=None)
    left = response - design @ fit
    variance = float((left**2).sum()) / max(len(response) - design.shape[1], 1)
    covariance = np.linalg.pinv(design.T @ design)[0, 0]
    error = float(np.sqrt(variance * covariance))
    return error > 0 and float(fit[0]) / error > _RETURNS


# The cycle that seasonal surrogates keep where nobody has said how long it is: that of the series themselves.


@dataclass(frozen=True)
class SeasonChoice:
    """What seasonal surrogates of a series keep."""

    # Rows of the mean cycle; 0 where the series has no two cycles of it.
    period: float
    # Whether the series itself was found to have it; otherwise others have.
    own: bool

    @property
    def reason(self) -> str:
        """What is kept, and why, in words."""
        if not self.period:
            return "keeps the values alone, in random order, since there are no two cycles"
        source = "was found in it" if self.own else "was found in others, not in it"
        return f"keeps the mean cycle of {length(Line(self.period))} rows, which {source}"

    def maker(self, values: NDArray[np.float64]) -> Maker:
        """What makes surrogates of these values."""
        present = np.isfinite(values)
        if self.period:
            return seasonal(values, present, self.period)
        return one_by_one(lambda rng: placed(rng.permutation(values[present]), present))


def season_choices(parts: Sequence[Series]) -> tuple[tuple[SeasonChoice, ...], ...]:
    """What is taken for each series of each part of a table (its groups).

    A series in which no cycle is found has the one that most others have.
    """
    found = [_clearest(choice) for part in parts for choice in choices(part, "auto", None)]
    usual = common_line(found, max(part.n_steps for part in parts))
    usual = usual or next((own[0] for own in found if own), None)
    if usual is None:
        names = parts[0].names
        where = repr(names[0]) if len(names) == 1 else f"any of {len(names):,} series"
        raise InputError(
            f"period=None: no cycle was found in {where}, and 'seasonal' needs one; say how many rows it has, such as "
            "period=12 for months, or take 'auto'"
        )
    each = iter(found)
    return tuple(
        tuple(_choice(next(each), usual.period, part.n_steps) for _ in range(part.n_series)) for part in parts
    )


def _clearest(choice: Choice) -> tuple[Line, ...]:
    return choice.level.lines[:1]


def _choice(own: tuple[Line, ...], usual: float, n_steps: int) -> SeasonChoice:
    period = own[0].period if own else usual if 2 * usual <= n_steps else 0
    return SeasonChoice(period, bool(own))


# What each kind of surrogates takes from the series themselves, and what it loses of them, which is told.


AnyChoice = Choice | SeasonChoice | SegmentChoice


def choices_of(parts: Sequence[Series], method: str, period: float | None) -> tuple[tuple[AnyChoice, ...], ...]:
    """What is taken for each series of each part of a table (its groups).

    By "auto", by "seasonal" without a period, and by "phase" and "iaaft" where there are gaps; nothing for others.
    """
    if method == "seasonal" and period is None:
        return season_choices(parts)
    if method in SEGMENT_METHODS:
        return segment_choices(parts, method)
    return tuple(choices(part, method, period) for part in parts)


#: Kinds that a season, slow change, a step or a walk passes through.
_BLIND = ("shuffle", "phase", "iaaft", "twin")


def tell_lost(parts: Sequence[Series], method: str) -> None:
    """Warn where series have what surrogates of a method do not keep, and what makes them seem linked."""
    if method not in _BLIND:
        return
    lost: dict[str, list[str]] = {}
    for part in parts:
        for name, column, choice in zip(part.names, part.values.T, choices(part, "auto", None), strict=True):
            values, _ = near_one(column.astype(np.float64))
            words = [season_words(line) for line in choice.level.lines if line.period > 2]
            change = sure_change(values, choice)
            words += ["slow change"] * bool(change.slow) + ["steps"] * bool(change.jumps)
            words += ["a walk that returns to no mean"] * choice.steps
            for word in words[:1]:
                lost.setdefault(word, []).append(name)
    if lost:
        what = "; ".join(f"{word} ({some(list(dict.fromkeys(names)))})" for word, names in list(lost.items())[:3])
        warn(
            f"surrogate={method!r} does not keep what could explain a skill: {what}. Series that share it seem to be "
            "linked: take surrogate='auto', which keeps it"
        )


# Series without the cycle that they share: a common season is a driver that is known.


# A rhythm that coupled series have by themselves drifts too little to be told from a season in a few cycles.
_LEAST_CYCLES = 10
_LEAST_PERIOD = 3  # up and down by turns is what populations do by themselves


@dataclass(frozen=True)
class Seasons:
    """Series, and which of them had a cycle that was removed."""

    # Without that cycle.
    series: Series
    # What surrogates of these series should keep, in each group; empty where the method says it all.
    choices: tuple[tuple[AnyChoice, ...], ...]
    # Rows of the cycle; 0 where none was removed.
    period: float
    # Names of the series that had it.
    without: tuple[str, ...]


def seasons_of(
    series: Series, surrogate: str | None, period: float | None, *, remove: bool, layout: Layout | None = None
) -> Seasons:
    """Remove the cycle that at least half of the series share, and two at least.

    It has 3 rows at least, there are 10 cycles at least, unless its period is known, it does not drift, and beside its
    line is no peak: what drifts may be a rhythm of the series themselves, and is left to the surrogates. Where there
    are groups, each series of each group counts as one of these series, and has a mean cycle of its own.

    Parameters
    ----------
    surrogate : str or None
        Method of surrogates.
    period : float or None
        Rows of a cycle that is known, and is then removed from all; looked for by default.
    remove : bool
        Otherwise series stay as they are.
    layout : Layout, optional
        How groups lie among the rows.
    """
    method, parts = "auto" if remove else surrogate or "", parts_of(series, layout, "data")
    chosen = [list(choices(part, method, period)) for _, part in parts]
    known: tuple[tuple[AnyChoice, ...], ...] = tuple(map(tuple, chosen)) if surrogate == "auto" else ()
    if surrogate == "seasonal" and period is None:
        known = choices_of([part for _, part in parts], surrogate, None)
    n = max(part.n_steps for _, part in parts)
    shared = common_line([choice.level.lines for own in chosen for choice in own], n) if remove else None
    those = [
        (group, number)
        for group, (own, (_, part)) in enumerate(zip(chosen, parts, strict=True))
        if shared is not None and (period is not None or shared.period * _LEAST_CYCLES <= part.n_steps)
        for number, choice in enumerate(own) if _own(choice, shared, n) is not None
    ]  # fmt: skip
    if shared is None or shared.drift or shared.period < _LEAST_PERIOD or 2 * len(those) < series.n_series * len(parts):
        return Seasons(series, known, 0, ())
    columns = [near_one(parts[group][1].values[:, number].astype(np.float64)) for group, number in those]
    lines_there = [_own(chosen[group][number], shared, n) or shared for group, number in those]
    if period is None and is_rhythm([column for column, _ in columns], lines_there):
        return Seasons(series, known, 0, ())
    values = series.values.copy()
    for (group, number), (column, exponent), season in zip(those, columns, lines_there, strict=True):
        rows = slice(None) if layout is None else np.flatnonzero(layout.code == group)
        choice = chosen[group][number]
        values[rows, number] = np.ldexp(without_cycle(column, season), exponent)
        lines = tuple(line for line in choice.level.lines if line is not season)
        chosen[group][number] = replace(choice, level=replace(choice.level, lines=lines), removed=shared.period)
    left = replace(series, values=values)
    without = tuple(name for number, name in enumerate(series.names) if any(number == other for _, other in those))
    return Seasons(left, tuple(map(tuple, chosen)) if surrogate == "auto" else known, shared.period, without)


def _own(choice: Choice, shared: Line, n: int) -> Line | None:
    """The season of a series that is the one which others have, too."""
    return next((line for line in choice.level.lines if line.shares(shared, n)), None)


_FEWEST = 4  # values of a series


@checked
@regular_times
def surrogate(
    x: Any,
    method: str = "phase",
    *,
    n: int = 100,
    seed: int | None = None,
    period: float | None = None,
    E: int = 2,
    tau: int = 1,
    recurrence: float = 0.1,
    groups: Any = None,
    regular: str | None = None,
) -> Doubles:
    """Surrogates of a series: random series that share some of its properties and nothing else.

    A skill that series reach as well from surrogates of a target is owed to what the surrogates kept.

    Parameters
    ----------
    x : array_like (n_steps,)
        Gaps (NaN) stay where they are; "twin" takes none. "phase" and "iaaft" draw each stretch of 30 rows or more
        without gaps by itself, and shuffle values within shorter ones.
    method : {"shuffle", "phase", "iaaft", "twin", "seasonal", "auto"}
        What is kept.

        - "shuffle": the values, in random order.
        - "phase": the power spectrum, hence the autocorrelation, with random phases (Ebisuzaki, J. Climate 10, 2147,
          1997).
        - "iaaft": the values and, nearly, the spectrum, by turns (Schreiber and Schmitz, Phys. Rev. Lett. 77, 635,
          1996).
        - "twin": the recurrences: the path goes on from any row whose recurrences are the same (Thiel et al.,
          Europhys. Lett. 75, 535, 2006).
        - "seasonal": the mean cycle of length ``period``; deviations from it are shuffled.
        - "auto": what the series itself suggests: seasons of any length, also drifting ones (in a table those that
          others share); slow change and steps of its level; how its spread changes; its values, if they are far from
          normal; and the power spectrum of what is left, or of the steps from row to row if the series wanders without
          returning to a mean. The result of a test says what was taken.
    n : int
        How many.
    seed : int, optional
        Chooses what is random: the same seed gives the same result, whatever the device. By default a fresh one, which
        the result names. The first surrogates of a seed are the same whatever ``n`` is.
    period : float, optional
        Rows of a cycle, 12.42 as well as 12, for the surrogates "seasonal" and "auto"; looked for by default, and for
        "seasonal" a warning says what was found.
    E : int
        Embedding dimension of the states that "twin" compares.
    tau : int
        Lag between the coordinates of a state, in steps; at least 1.
    recurrence : float
        Share of pairs of states that count as recurrent in the surrogates "twin"; in (0, 1).
    groups : str, sequence of str, or labels (n_steps,), optional
        Recordings (subjects, plots, replicates) that stand one below the other: columns of the data or levels of its
        index, or a label for each row. No state and no target crosses a border. Each has surrogates of its own rows.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows (an index of dates or numbers, a coordinate, a time column) are not regular,
        which is refused by default. "insert" puts rows of NaN where rows are missing: ranges and masks are moved along,
        and rows of the result are those of the longer table. "ignore" takes the rows as they come. Dates whose index
        has a frequency are regular.

    Returns
    -------
    ndarray of float64 (n, n_steps)

    Raises
    ------
    InputError
        An argument cannot be used.

    See Also
    --------
    ccm_significance : uses these.

    Notes
    -----
    Cost: n Fourier transforms of the series ("phase"), some hundred times as many for "iaaft"; "twin" compares all
    pairs of states.

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(500) * 0.2)
    >>> pyedmcl.surrogate(x, "phase", n=3, seed=1).shape
    (3, 500)
    """
    x, of = take_groups(x, groups, "x")
    series = arguments.one_series(x, "x")
    if of is not None:
        options = {"period": period, "E": E, "tau": tau, "recurrence": recurrence}
        return _of_groups(series, of, method, n, arguments.stream(seed), options)
    choices = choices_of([series], method, period)
    _say(method, choices)
    make = maker(
        series, method, period=period, E=E, tau=tau, recurrence=recurrence, choice=choices[0][0] if choices[0] else None
    )
    return draw(make, n, arguments.stream(seed), 0, series.n_steps)


def _of_groups(
    series: Series, groups: Groups, method: str, n: int, seed: int, options: dict[str, Any]
) -> Doubles:
    """Surrogates (n, n_steps) of each group by itself; a group of its own is series number 0, 1, ... of the seed."""
    groups.require(series.n_steps, "x")
    parts = [
        build_series(series.values[groups.codes == number, 0], series.names) for number in range(len(groups.names))
    ]
    choices = choices_of(parts, method, options["period"])
    _say(method, choices)
    makers = [
        maker(part, method, what=f"x, group {name}", choice=own[0] if own else None, **options)
        for part, name, own in zip(parts, groups.names.tolist(), choices, strict=True)
    ]
    return draw(grouped(groups.codes, makers), n, seed, 0, series.n_steps)


def _say(method: str, found: tuple[tuple[AnyChoice, ...], ...]) -> None:
    """Warn of the cycle that was looked for, and of gaps, since nothing but numbers is returned."""
    if method != "auto" and found[0]:
        text = f"a surrogate {said_together([own[0].reason for own in found])}"
        warn(f"period=None: {text}; period= names another" if method == "seasonal" else text)


def maker(
    series: Series, method: str, *, period: float | None = None, E: int = 2, tau: int = 1, recurrence: float = 0.1,
    what: str = "x", name: str = "method", choice: AnyChoice | None = None,
) -> Maker:  # fmt: skip
    """What makes surrogates of a single series from random streams; see :func:`surrogate`.

    ``what`` and ``name`` are what messages call the data and the method; ``choice`` is what :func:`choices_of`
    finds, if that is known.
    """
    E, tau = check_embedding(E, tau)
    values = series.values[:, 0].astype(np.float64)
    exponent = far_exponent(values)
    if exponent:  # sums and spectra are those of numbers near 1
        near_one = build_series(np.ldexp(values, -exponent), series.names)
        make = maker(
            near_one, method, period=period, E=E, tau=tau, recurrence=recurrence, what=what, name=name, choice=choice
        )
        return lambda streams: np.ldexp(make(streams), exponent)
    present = np.isfinite(values)
    if not present.all() and method == "twin":
        raise InputError(
            f"{what}: {name}={method!r}: series {series.names[0]!r} has a gap in row {int(np.argmin(present))}; fill "
            "gaps first, or take another kind, such as 'auto'"
        )
    if present.sum() < _FEWEST:
        raise InputError(
            f"{what}: series {series.names[0]!r} has {int(present.sum())} values; surrogates need at least {_FEWEST}"
        )
    if method == "shuffle":
        return one_by_one(lambda rng: placed(rng.permutation(values[present]), present))
    if method == "phase" and present.all():
        return phases(values)
    if method == "iaaft" and present.all():
        return adjusted(values)
    if method == "seasonal" and period is not None:
        return seasonal(values, present, period)
    if method != "twin":
        return (choice or choices_of([series], method, period)[0][0]).maker(values)
    if len(values) < (E - 1) * tau + _FEWEST:
        raise InputError(
            f"{what}: E={E}, tau={tau} needs at least {(E - 1) * tau + _FEWEST} rows, there are {len(values)}"
        )
    group = twin_groups(values, E, tau, float(recurrence))
    return one_by_one(lambda rng: values[(E - 1) * tau :][twin_path(group, len(values), rng)])


@dataclass(frozen=True, eq=False)
class SeriesMakers:
    """What makes surrogates of each series of a table: found once, and shared by all rounds of a job."""

    series: Series
    method: str
    tau: int
    # period, recurrence: As for :func:`surrogate`.
    period: Any
    recurrence: Any
    # What :func:`choices_of` finds for each series of each group, where that is known.
    known: tuple[tuple[AnyChoice, ...], ...] | None = None
    # How groups lie among the rows; a single one by default.
    layout: Layout | None = None
    # How messages call the data.
    what: str = "data"

    @cached_property
    def choices(self) -> tuple[tuple[AnyChoice, ...], ...]:
        """What is taken for each series of each group; nothing where the method says it all."""
        if self.known is not None:
            return self.known
        return choices_of([part for _, part in self._parts], self.method, self.period)

    @property
    def reasons(self) -> tuple[str, ...]:
        """What is taken for each series, and why, in words; nothing where the method says it all."""
        return tuple(said_together([choice.reason for choice in own]) for own in zip(*self.choices, strict=True))

    def of(self, number: int, E: int) -> Maker:
        """That of a series, of which "twin" embeds E values."""
        if (number, E) not in self._made:
            makers = [
                self._of_part(what, part, number, E, own[number] if own else None)
                for (what, part), own in zip(self._parts, self.choices, strict=True)
            ]
            self._made[number, E] = makers[0] if self.layout is None else grouped(self.layout.code, makers)
        return self._made[number, E]

    def _of_part(self, what: str, part: Series, number: int, E: int, choice: AnyChoice | None) -> Maker:
        values = part.values[:, number].astype(np.float64)
        present = np.isfinite(values)
        if self.layout is not None and present.sum() < _FEWEST:  # such a group holds a state or two, if any
            return one_by_one(lambda rng: placed(rng.permutation(values[present]), present))
        return maker(
            part.part(number), self.method, period=self.period, E=E, tau=self.tau,
            recurrence=self.recurrence, what=what, name="surrogate", choice=choice,
        )  # fmt: skip

    @cached_property
    def drawer(self) -> Drawer:
        """What draws the surrogates."""
        return Drawer()

    @cached_property
    def _parts(self) -> list[tuple[str, Series]]:
        """The rows of each group, and how messages call them."""
        return parts_of(self.series, self.layout, self.what)

    @cached_property
    def _made(self) -> dict[tuple[int, int], Maker]:
        return {}

    def __reduce__(self) -> tuple[Any, ...]:  # what was made stays here; what "auto" takes goes along
        return SeriesMakers, (
            self.series, self.method, self.tau, self.period, self.recurrence, self.choices, self.layout,
            self.what,
        )  # fmt: skip

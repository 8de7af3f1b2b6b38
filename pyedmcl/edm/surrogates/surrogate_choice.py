"""Which surrogates a series suggests: what of it could explain a cross-map skill, and is therefore to be kept."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...data.columns import many
from ...data.condition import near_one
from ...data.series import Series
from .cycles import LEAST_CYCLES, LEVEL, common_period, cycles, p_of_period
from .surrogate_makers import Maker, check_period, phases
from .surrogate_streams import Streams

Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]

_TREND_SHARE = 0.1  # of the variance that a straight line explains
# A series wanders where the augmented Dickey-Fuller test (5 %, with a trend) does not see it return to its mean.
_RETURNS, _SLOW = -3.41, 0.9
_LEAST = 30  # rows without which nothing is looked for
# What was found for the last series, by their digests: who tests one series against many looks at it once.
_FOUND: dict[tuple[bytes, int | None], Choice] = {}
_MOST_FOUND = 4096


@dataclass(frozen=True)
class Choice:
    """What surrogates of a series keep.

    Attributes
    ----------
    period : int
        Rows of the mean cycle; 0 for none.
    trend : bool
        The linear trend.
    steps : bool
        The spectrum is that of the steps from row to row, which are summed up again.
    gaps : int
        Rows without a value.
    removed : int
        Rows of a cycle that was taken out of the series before; 0 for none.
    """

    period: int
    trend: bool
    steps: bool
    gaps: int
    removed: int = 0

    @property
    def reason(self) -> str:
        """What is kept, and why, in words."""
        parts = []
        if self.period:
            parts.append(f"the mean cycle of {self.period} rows, which repeats itself")
        if self.trend:
            parts.append("the linear trend")
        if self.steps:
            parts.append("the spectrum of the steps from row to row, since the series does not return to a mean")
        else:
            none = f"without its cycle of {self.removed} rows it has no other" if self.removed else "it has no lasting"
            parts.append(f"the spectrum{' of what is left' if parts else f', since {none} cycle or trend'}")
        stay = f"{many(self.gaps, 'gap', 'stays', 'stay')}, and {'was' if self.gaps == 1 else 'were'}"
        gaps = f"; {stay} bridged by straight lines for the spectrum" if self.gaps else ""
        rest = parts.pop()
        return f"keeps {', '.join(parts)}{', and ' if parts else ''}{rest}{gaps}"

    def maker(self, values: Doubles) -> Maker:
        """What makes surrogates of these values."""
        present = np.isfinite(values)
        filled = bridged(values)
        begin, rest = filled[0], np.diff(filled) if self.steps else filled
        kept = np.isfinite(np.diff(values)) if self.steps else present
        base = np.zeros(len(rest))
        if self.trend:
            base = base + line(rest, kept)
        if self.period:
            base = base + mean_cycle(rest - base, kept, self.period)
        waves = phases(rest - base)
        if self.period or self.trend:
            waves = replace(waves, base=base)
        missing = ~present if self.gaps else None
        if not self.steps:
            return replace(waves, missing=missing)

        def make(streams: Streams) -> Doubles:
            steps = waves(streams)
            out: Doubles = begin + np.concatenate([np.zeros((len(steps), 1)), np.cumsum(steps, axis=1)], axis=1)
            if missing is not None:
                out[:, missing] = np.nan
            return out

        return make


def choices(series: Series, method: str, period: int | None) -> tuple[Choice, ...]:
    """What "auto" takes for each series; nothing for other methods."""
    if method != "auto":
        return ()
    length = None if period is None else check_period(period, series.n_steps)
    columns = [near_one(column.astype(np.float64))[0] for column in series.values.T]
    choices = choose_each(columns, length)
    shared = common_period([choice.period for choice in choices])
    if shared and length is None:
        choices = [_also(choice, values, shared) for choice, values in zip(choices, columns, strict=True)]
    return tuple(choices)


def _also(choice: Choice, values: Doubles, period: int) -> Choice:
    """With the cycle that other series share, if it is there: to look at one period is a single test."""
    if (choice.period and choice.period % period == 0) or p_of_period(*_level(values, choice.steps), period) > LEVEL:
        return choice
    both = math.lcm(choice.period or 1, period)
    return replace(choice, period=both if both * LEAST_CYCLES <= len(values) else period)


def choose(values: Doubles, period: int | None = None) -> Choice:
    """What surrogates of a series should keep.

    Parameters
    ----------
    values : ndarray (n,)
        Of magnitudes near 1; NaN for gaps.
    period : int, optional
        Rows of a cycle that is known; otherwise it is looked for.
    """
    return choose_each([values], period)[0]


def choose_each(columns: Sequence[Doubles], period: int | None = None) -> list[Choice]:
    """As :func:`choose`, of several series of one length, in which cycles are looked for together.

    What was found for a series is kept for the next call.
    """
    keys = [(hashlib.blake2b(values.tobytes()).digest(), period) for values in columns]
    choice_of = {key: choice for key in keys if (choice := _FOUND.get(key))}
    new = {key: values for key, values in zip(keys, columns, strict=True) if key not in choice_of}
    choice_of |= zip(new, _chosen_anew(list(new.values()), period), strict=True)
    for key in new:
        _FOUND[key] = choice_of[key]
    for key in list(_FOUND)[:-_MOST_FOUND]:
        _FOUND.pop(key, None)  # another thread may have taken it out
    return [choice_of[key] for key in keys]


def _chosen_anew(columns: Sequence[Doubles], period: int | None) -> list[Choice]:
    """What surrogates of each series should keep, whatever was found before."""
    rests = [_without_cycle(values) for values in columns]
    chosen = [choice if period is None or not long else replace(choice, period=period) for choice, long in rests]
    for steps in (False, True) if period is None else ():
        alike = [number for number, (choice, long) in enumerate(rests) if long and choice.steps is steps]
        if not alike:
            continue
        levels = [_level(columns[number], steps) for number in alike]
        lengths = cycles(np.stack([values for values, _ in levels]), np.stack([there for _, there in levels]))
        for number, length in zip(alike, lengths, strict=True):
            chosen[number] = replace(chosen[number], period=length)
    return chosen


def _without_cycle(values: Doubles) -> tuple[Choice, bool]:
    """What surrogates should keep but for a cycle, and whether the series is long enough to have any of it."""
    present = np.isfinite(values)
    gaps = int((~present).sum())
    if present.sum() < _LEAST or float(np.ptp(values[present])) == 0:
        return Choice(0, False, False, gaps), False
    filled = bridged(values)
    steps = wanders(filled)
    rest, kept = (np.diff(filled), present[1:] & present[:-1]) if steps else (filled, present)
    trend = not steps and explained(rest, line(rest, kept), kept) > _TREND_SHARE
    return Choice(0, trend, steps, gaps), True


def _level(values: Doubles, steps: bool) -> tuple[Doubles, Mask]:
    """Values, or steps from row to row, less their trend; and which of them are there."""
    filled, present = bridged(values), np.isfinite(values)
    rest, kept = (np.diff(filled), present[1:] & present[:-1]) if steps else (filled, present)
    return rest - line(rest, kept), kept


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


def mean_cycle(values: Doubles, there: Mask, period: int) -> Doubles:
    """The mean of each phase of a cycle, for all rows."""
    phase = np.arange(len(values)) % period
    counts = np.bincount(phase[there], minlength=period)
    means = np.bincount(phase[there], values[there], period) / np.maximum(counts, 1)
    return np.asarray(means[phase])


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

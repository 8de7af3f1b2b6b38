"""Which surrogates a series suggests: what of it could explain a cross-map skill, and is therefore to be kept."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...data.columns import many
from ...data.condition import near_one
from ...data.series import Series
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
    lines_of,
    memory_of_rows,
    normal_scores,
)
from .surrogate_makers import Maker, check_period, phases, ranked
from .surrogate_streams import Streams

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
    """What surrogates of a series keep.

    Attributes
    ----------
    level : Components
        Slow change, steps and seasons of the series, or of its steps from row to row.
    spread : Components
        The same of how far values lie from that level.
    ranks : bool
        The values that are left, whose order is that of random waves, for they are far from normal.
    steps : bool
        The spectrum is that of the steps from row to row, which are summed up again.
    gaps : int
        Rows without a value.
    removed : float
        Rows of a cycle that was taken out of the series before; 0 for none.
    """

    level: Components = NOTHING
    spread: Components = NOTHING
    ranks: bool = False
    steps: bool = False
    gaps: int = 0
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

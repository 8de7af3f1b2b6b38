"""What of a series is no chance: slow change, steps, and seasons of any length. They are found, fitted, and told.

Two series that share such a component know of each other without any link. A test that keeps it, as it is in the
series, asks of the rest alone; one that is kept needlessly costs power and never the level. So steps and slow change
are looked for liberally, and seasons by a test.

Seasons: a Fourier coefficient of the length is compared with those of its neighbours, 1 to 4 whole cycles of all rows
more or fewer (Fisher's F distribution; Thomson, Proc. IEEE 70, 1055, 1982, does it with tapers). A rhythm that keeps
no phase has as much beside as in its line. Where amplitude and phase change slowly, the line has a width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Cycles of a season that there are at least; what is longer is slow change.
LEAST_CYCLES = 4
#: Of the test for a season; over all lengths where the length is looked for.
LEVEL = 0.05
_SURE = 0.0001
_FINE = 4  # lengths looked at for each that all rows tell apart
_MOST_LINES = 3
_DRIFT = 4  # half waves of all rows that amplitude and phase of a drifting season follow
_WIDE = 6  # whole cycles of all rows up to the furthest neighbour of a drifting season
_LEAST_DRIFTING = 3  # rows
_ROWS_PER_COLUMN = 6
_PEAK, _BACKGROUND = (1, 4), (9, 24)  # whole cycles of all rows beside a line
_BESIDE = 8  # whole cycles of all rows beside a season that was taken out
_SLOW = (0, 1, 2, 4, 6, 8, 12)  # a line, and half waves of all rows
_SLOWER = 6  # of these, which are longer than seasons
_ROWS_PER_HALF_WAVE = 12
_SKEWED, _HEAVY = 0.8, 1.5
_MOST_JUMPS = 4
_SLOW_COSTS = 2.0  # of twice the likelihood, for each term: what is kept needlessly costs power alone
_ANY_SLOW_COSTS = 4.0  # beside that, for any: in noise it is rare
_JUMP_COSTS = 4.0  # beside 2 log n, for the search


@dataclass(frozen=True)
class Line:
    """A season: harmonics of one length."""

    # Rows.
    period: float
    harmonics: int = 1
    # Half waves of all rows that amplitudes and phases follow; 0 if they stay.
    drift: int = 0

    def shares(self, other: Line, n: int) -> bool:
        """Whether all ``n`` rows hardly tell both lengths apart, or one is a multiple of the other."""
        slack = (1 + (self.drift + other.drift) / 4) / n
        long, short = max(self.period, other.period), min(self.period, other.period)
        return any(abs(1 / short - k / long) <= slack for k in range(1, 1 + round(long / short)))


@dataclass(frozen=True)
class Components:
    """What is no chance in a series."""

    # Terms that its slow change is made of: a straight line, then half waves of all rows; 0 for none.
    slow: int = 0
    # Rows at which its level changes at once.
    jumps: tuple[int, ...] = ()
    # Seasons, the clearest first.
    lines: tuple[Line, ...] = field(default=())

    def __bool__(self) -> bool:
        return bool(self.slow or self.jumps or self.lines)

    def fitted(self, values: Doubles, there: Mask) -> Doubles:
        """The least-squares fit to the values that are there, with their mean, at all rows."""
        if not there.any():
            return np.zeros(len(values))
        columns = [np.ones((len(values), 1)), _slow_change(len(values), self.slow), _steps(len(values), self.jumps)]
        columns += [_harmonics(len(values), line) for line in self.lines]
        design = np.concatenate(columns, axis=1)
        known = design if there.all() else design[there]
        fit, *_ = np.linalg.lstsq(known.T @ known, known.T @ values[there], rcond=None)  # of columns of sizes near 1
        return np.asarray(design @ fit)


NOTHING = Components()


def _slow_change(n: int, count: int) -> Doubles:
    """A straight line and count - 1 half waves (n, count)."""
    line = np.linspace(-1.0, 1.0, n)[:, None]
    return np.concatenate([line, _half_waves(n, count - 1)], axis=1) if count else np.empty((n, 0))


def _half_waves(n: int, count: int) -> Doubles:
    return np.cos(np.pi * np.outer(np.arange(n) + 0.5, np.arange(1, count + 1)) / n)


def _steps(n: int, jumps: Sequence[int]) -> Doubles:
    return (np.arange(n)[:, None] >= np.array(jumps, int)[None]).astype(np.float64)


def _harmonics(n: int, line: Line) -> Doubles:
    """Sines and cosines of a season (n, m), each times the half waves that it drifts with."""
    angle = 2 * np.pi * np.outer(np.arange(n), np.arange(1, line.harmonics + 1)) / line.period
    waves = np.concatenate([np.cos(angle), np.sin(angle)], axis=1)
    if 2 * line.harmonics == line.period:  # that sine is 0 at all rows
        waves = waves[:, :-1]
    if not line.drift:
        return waves
    slow = np.concatenate([np.ones((n, 1)), _half_waves(n, line.drift)], axis=1)
    return np.asarray((waves[:, :, None] * slow[:, None, :]).reshape(n, -1))


def far_from_normal(values: Doubles) -> bool:
    """Whether values are so skewed or so heavy at their ends that sums of random waves are nothing like them."""
    spread = float(values.std())
    if spread == 0:
        return False
    scaled = (values - values.mean()) / spread
    return abs(float((scaled**3).mean())) > _SKEWED or float((scaled**4).mean()) - 3 > _HEAVY


def normal_scores(values: Doubles) -> Doubles:
    """Normal quantiles of the ranks of values; equal values have one, that of their mean rank."""
    different, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    rank = np.cumsum(counts) - counts / 2
    quantile = NormalDist().inv_cdf
    return np.array([quantile(one / len(values)) for one in rank.tolist()])[where.ravel()] if len(different) else values


def components_of(values: Doubles, there: Mask, gain: float = 0.0) -> tuple[Components, float]:
    """What is no chance in a series, and twice the log likelihood of what is left, less what components cost.

    Parameters
    ----------
    values : ndarray (n,)
        Gaps are filled.
    there : ndarray of bool (n,)
        Rows that have a value of their own.
    gain : float
        What steps and slow change have to be worth beside what they cost.
    """
    most = Components(slow=min(_SLOWER, len(values) // _ROWS_PER_HALF_WAVE))
    lines = lines_of(values - most.fitted(values, there), there, most.slow)
    rest = values - Components(lines=lines).fitted(values, there) if lines else values
    found, likelihood = _slow_and_jumps(rest, gain)
    if found:
        level = found.fitted(values - Components(lines=lines).fitted(values, there), there)
        lines = lines_of(values - level, there, found.slow)
    return replace(found, lines=lines), likelihood


def _slow_and_jumps(values: Doubles, gain: float) -> tuple[Components, float]:
    """Half waves and steps that are worth what they cost, beside noise that remembers its last value."""
    n = len(values)
    counts = [count for count in _SLOW if count <= n // _ROWS_PER_HALF_WAVE]
    found, best = Components(), -np.inf
    rest = values - _fits(values, counts[-1], 0.0, 1.0)[-1][0].fitted(values, np.ones(n, bool))
    memory = memory_of_rows(rest)
    # What is smoother than that memory makes it has fewer rows of its own: by so much its likelihood is overstated.
    left = memory_of_rows(rest[1:] - memory * rest[:-1])
    dearer = max((1 + left) / (1 - left), 1.0)
    for _ in range(2):
        each = [one for count in counts for one in _fits(values, count, memory, dearer)]
        found, best = max(each, key=lambda one: one[1] - gain * bool(one[0]))
        memory = memory_of_rows(values - found.fitted(values, np.ones(n, bool)), 0 if not found else found.slow)
    return found, best


def memory_of_rows(rest: Doubles, fitted: int = 0) -> float:
    """Autocorrelation at lag 1, which a fit makes smaller."""
    spread = float((rest * rest).sum())
    own = float((rest[1:] * rest[:-1]).sum()) / spread if spread > 0 else 0.0
    return min(max(own + (1 + fitted) / len(rest), -0.5), 0.95)


def _fits(values: Doubles, slow: int, memory: float, dearer: float) -> list[tuple[Components, float]]:
    """With so many half waves, and 0 to 4 steps that are found one by one: each with its likelihood less its cost."""
    n = len(values)

    def white(columns: Doubles) -> Doubles:
        out = columns.copy()
        out[1:] -= memory * columns[:-1]
        out[0] *= math.sqrt(1 - memory * memory)
        return out

    columns = white(np.concatenate([np.ones((n, 1)), _slow_change(n, slow)], axis=1))
    basis = np.linalg.solve(np.linalg.cholesky(columns.T @ columns), columns.T).T  # of length 1, and at right angles
    rest = white(values[:, None])[:, 0]
    rest = rest - basis @ (basis.T @ rest)
    jumps: list[int] = []
    made = []
    edge, jump_costs = max(n // 20, 4), _JUMP_COSTS + 2 * math.log(n)
    for _ in range(_MOST_JUMPS + 1):
        left = max(float((rest * rest).sum()), 1e-300)
        cost = dearer * (_SLOW_COSTS * slow + _ANY_SLOW_COSTS * (slow > 0) + jump_costs * len(jumps))
        made.append((Components(slow, tuple(sorted(jumps))), -n * math.log(left / n) - cost))
        # Inner products with the step at each row, whitened: 1 there, 1 - memory behind.
        columns = np.column_stack([rest, basis])
        behind = np.cumsum(columns[::-1], axis=0)[::-1]
        products = columns + (1 - memory) * (behind - columns)
        norm = 1 + (1 - memory) ** 2 * np.arange(n - 1, -1, -1) - (products[:, 1:] ** 2).sum(axis=1)
        gain = np.where(norm > 1e-6 * n, products[:, 0] ** 2 / np.maximum(norm, 1e-6 * n), 0.0)
        gain[:edge] = gain[n - edge :] = 0.0
        for jump in jumps:
            gain[max(jump - edge, 0) : jump + edge] = 0.0
        at = int(gain.argmax())
        if gain[at] <= dearer * jump_costs * left / n:
            break
        step = white(_steps(n, [at]))[:, 0]
        step = step - basis @ (basis.T @ step)
        step /= np.linalg.norm(step)
        basis, rest = np.column_stack([basis, step]), rest - step * float(step @ rest)
        jumps.append(at)
    return made


@dataclass(frozen=True)
class Spectrum:
    """Fourier coefficients of a series, and which of them a fit has emptied: these are no neighbours of others."""

    # ndarray (n,). Less their mean; 0 for gaps.
    values: Doubles
    # Whole cycles of all rows below which slow change was taken out.
    lowest: float

    @classmethod
    def of(cls, values: Doubles, there: Mask, slow: int = 0) -> Spectrum:
        """Of values of which those that are ``there`` count, without so many half waves."""
        mean = values[there].mean() if there.any() else 0.0
        return cls(np.where(there, values - mean, 0.0), slow / 2 + 0.5)

    def p_of(self, period: float, drift: bool = False) -> float:
        """P-value of the test that the series has a season of ``period`` rows that keeps its phase, or drifts."""
        n = len(self.values)
        if not 2 <= period <= n / 2 or not self.values.any():
            return 1.0
        if period == 2 and not drift:
            own, beside = self._power(np.array([n / 2])), self._power(n / 2 - np.arange(1, 5.0))
            return _student(math.sqrt(float(own[0]) / max(float(beside.mean()), 1e-300)), 8)
        return float(self._p(np.array([n / period]), drift, self._power)[0])

    def _power(self, turns: Doubles) -> Doubles:
        """Squares of the coefficients of so many cycles of all rows."""
        n = len(self.values)
        waves = np.exp(-2j * np.pi * np.outer(turns.ravel() / n, np.arange(n)))
        return np.asarray((np.abs(waves @ self.values) ** 2).reshape(turns.shape))

    def _p(self, turns: Doubles, drift: bool, power: Callable[[Doubles], Doubles]) -> Doubles:
        nearest, furthest = (2, _WIDE) if drift else (1, 4)
        own = power(turns[:, None] + np.arange(1 - nearest, nearest))
        around = power(self._beside(turns, nearest, furthest))
        p = _tail(own.sum(axis=1) / np.maximum(around.sum(axis=1), 1e-300), own.shape[1], around.shape[1])
        return np.where(own.sum(axis=1) <= 1e-20 * len(self.values) * float((self.values**2).sum()), 1.0, p)

    def _beside(self, turns: Doubles, nearest: int, furthest: int) -> Doubles:
        """Neighbours (n_turns, m) on both sides; where one side is at its end, more of the other."""
        steps = np.arange(nearest, furthest + 1)
        below, above = turns[:, None] - steps, turns[:, None] + steps
        out = np.concatenate([
            np.where(below < self.lowest, turns[:, None] + furthest - nearest + 1 + steps, below),
            np.where(above > len(self.values) / 2, turns[:, None] - furthest + nearest - 1 - steps, above),
        ], axis=1)  # fmt: skip
        return np.asarray(np.abs(out))

    def clearest(self, without: Sequence[Line] = ()) -> Line | None:
        """The season with the smallest p-value, if it is at most 0.05 for all lengths together.

        ``without`` are seasons that were taken out, beside which none is looked for.
        """
        n = len(self.values)
        turns = self.turns()
        for line in without:
            multiples = n / line.period * np.arange(1, line.harmonics + 1)
            turns = turns[np.abs(turns[:, None] - multiples).min(axis=1) > _BESIDE]
        if not len(turns):
            return None
        if not without and self.p_of(2.0) * 2 * n <= LEVEL:
            return self.line(2.0, False)
        for drift in (False, True):  # what keeps its phase is simpler
            p = self.p_of_each(turns, drift)
            at = int(p.argmin())
            if float(p[at]) * 2 * n <= LEVEL:
                return self._whole(self.refined(n / float(turns[at])), drift)
        return None

    def turns(self) -> Doubles:
        """Cycles of all rows that seasons may have, closer than all rows tell apart."""
        return np.arange(LEAST_CYCLES * _FINE, _FINE * (len(self.values) // 2 - 1) + 1) / _FINE

    def p_of_each(self, turns: Doubles, drift: bool) -> Doubles:
        """P-values of seasons of so many cycles; 1 where no drifting one is looked for."""
        n = len(self.values)
        table = np.abs(np.fft.rfft(self.values, _FINE * n)) ** 2

        def power(at: Doubles) -> Doubles:
            return np.asarray(table[np.minimum(np.rint(_FINE * at).astype(int), len(table) - 1)])

        p = self._p(turns, drift, power)
        if drift:  # noise that remembers falls off beside one neighbour; what chaos does by turns is wide itself
            p = np.where((turns >= self.lowest + _WIDE) & (turns <= n / _LEAST_DRIFTING), p, 1.0)
        return p

    def _whole(self, period: float, drift: bool) -> Line:
        """The season of this length, or of a multiple of which there is more than harmonics of this one."""
        n, line = len(self.values), self.line(period, drift)
        left = replace(self, values=self.values - Components(lines=(line,)).fitted(self.values, np.ones(n, bool)))
        longer = [k for k in range(2, 7) if k * period * LEAST_CYCLES <= n and left.p_of(k * period, drift) <= _SURE]
        return self.line(self.refined(max(longer) * period), drift) if longer else line

    def refined(self, period: float) -> float:
        """The length near this one that explains most, a whole number where that explains nearly as much."""
        n, highest = len(self.values), min(int(period / 2), 4)
        multiples = np.arange(1, max(highest, 1) + 1)
        centre = n / period
        for width in (0.25, 0.05, 0.01):
            near = centre + np.linspace(-width, width, 11)
            centre = float(near[self._power(near[:, None] * multiples).sum(axis=1).argmax()])
        whole = max(round(n / centre), 2)
        own, other = self._power(np.array([[centre], [n / whole]]) * multiples).sum(axis=1)
        alike = other >= (1 - 1 / math.sqrt(n)) * own and abs(centre - n / whole) < 0.4
        return float(whole) if alike else n / centre

    def line(self, period: float, drift: bool) -> Line:
        """The season of this length, with as many harmonics as are seen, and its drift if that is."""
        n = len(self.values)
        turns = np.array([n / period])
        near, far = self._beside(turns, 1, 2), self._beside(turns, 3, 8)
        ratio = self._power(near).sum() / max(self._power(far).sum(), 1e-300)
        p_of_width = float(_tail(np.array([ratio]), near.shape[1], far.shape[1])[0])
        drifts = period >= _LEAST_DRIFTING and (drift or p_of_width <= LEVEL)
        width = 1 + _DRIFT if drifts else 1
        most = max(min(int(period / 2), n // (_ROWS_PER_COLUMN * 2 * width)), 1)
        seen = [h for h in range(1, most + 1) if self.p_of(period / h, drifts) <= LEVEL]
        return Line(period, max(seen, default=1), _DRIFT if drifts else 0)


def clearest_together(spectra: Sequence[Spectrum]) -> Line | None:
    """The season that series of one length show together, by Fisher's sum of logarithms; as that which shows it best.

    Those that are linked do not say it independently: it is found too easily then, which costs power alone.
    """
    turns = spectra[0].turns() if len(spectra) > 1 else np.empty(0)
    if not len(turns):
        return None
    for drift in (False, True):
        each = np.array([-np.log(np.maximum(one.p_of_each(turns, drift), 1e-300)) for one in spectra])
        total = each.sum(axis=0) - each.max(axis=0)  # of one series alone it is no season that others share
        term, chance = np.zeros(len(turns)), np.zeros(len(turns))
        for k in range(len(spectra) - 1):
            chance = chance + np.exp(term - total)
            term = term + np.log(np.maximum(total, 1e-300) / (k + 1))
        at = int(np.where(total > 0, chance, 1.0).argmin())
        if total[at] > 0 and float(chance[at]) * 2 * len(spectra[0].values) <= LEVEL:
            best = spectra[int(each[:, at].argmax())]
            return best.line(best.refined(len(best.values) / float(turns[at])), drift)
    return None


def is_rhythm(values: Sequence[Doubles], lines: Sequence[Line]) -> bool:
    """Whether series have a rhythm of their own where they seem to share a season.

    The phase of a season is that of the calendar: beside its line is noise alone. A rhythm wanders, and what is left
    beside its line is still a peak, above the noise further off. By Fisher's sum of logarithms over all series.

    Parameters
    ----------
    values : sequence of ndarray (n,)
        Gaps are NaN.
    lines : sequence of Line
        The season of each.
    """
    total = 0.0
    for column, line in zip(values, lines, strict=True):
        there = np.isfinite(column)
        left = Spectrum.of(column - Components(lines=(line,)).fitted(column, there), there)
        turns = np.array([len(column) / line.period])
        near, far = left._power(left._beside(turns, *_PEAK)), left._power(left._beside(turns, *_BACKGROUND))
        ratio = near.sum() / max(far.sum(), 1e-300)
        total -= math.log(max(float(_tail(np.array([ratio]), near.shape[1], far.shape[1])[0]), 1e-300))
    terms = np.cumsum([0.0, *(math.log(max(total, 1e-300) / k) for k in range(1, len(lines)))])
    return bool(lines) and float(np.exp(terms - total).sum()) <= _SURE


def lines_of(values: Doubles, there: Mask, slow: int = 0) -> tuple[Line, ...]:
    """The seasons of a series without so many half waves, the clearest first."""
    lines: tuple[Line, ...] = ()
    rest = values
    for _ in range(_MOST_LINES):
        line = Spectrum.of(rest, there, slow).clearest(lines)
        if line is None:
            break
        lines = (*lines, line)
        rest = values - Components(lines=lines).fitted(values, there)
    return tuple(sorted(lines, key=lambda line: line.period == 2))  # by turns is what chaos does by itself


def _tail(ratio: Doubles, above: int, below: int) -> Doubles:
    """Chance that squares of ``above`` complex normal numbers exceed ``ratio`` times those of ``below`` others."""
    total, term = np.zeros(len(ratio)), (1 + ratio) ** -float(below)
    for i in range(above):
        total = total + term
        term = term * ratio / (1 + ratio) * (below + i) / (i + 1)
    return np.minimum(total, 1.0)


def _student(t: float, freedom: int) -> float:
    """Two-sided p-value of Student's t by its integral."""
    x = np.linspace(0.0, 1.0, 2001)[1:-1]  # from t to infinity: t / x
    with np.errstate(over="ignore"):
        density = (1 + (t / x) ** 2 / freedom) ** (-(freedom + 1) / 2) * t / x**2
    constant = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    return min(2 * constant * float(density.sum()) / 2000, 1.0)


def common_line(lines: Sequence[Sequence[Line]], n: int) -> Line | None:
    """The season that at least two series have, and most of all; None for none."""
    those = [one for own in lines for one in own]
    counted = [sum(any(one.shares(other, n) for other in own) for own in lines) for one in those]
    if max(counted, default=0) < 2:
        return None
    most = [one for one, count in zip(those, counted, strict=True) if count == max(counted)]
    return min(most, key=lambda one: (one.period != round(one.period), one.drift))


def without_cycle(values: Doubles, line: Line) -> Doubles:
    """A series less a season, about its own mean; gaps stay gaps."""
    there = np.isfinite(values)
    season = Components(lines=(line,)).fitted(values, there)
    return np.asarray(values - season + season[there].mean())

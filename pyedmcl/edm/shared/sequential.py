"""Sequential Monte Carlo tests of many hypotheses: surrogates are drawn only where a decision is still open.

After n surrogates, k of which do as well as what was observed, the true p-value lies within bounds that hold for all n
at once but for a chance of EPSILON (Robbins, Ann. Math. Stat. 41, 1397, 1970; Lai, Ann. Stat. 4, 265, 1976). A pair is
decided where the procedure of Benjamini and Hochberg says the same for any p-values within the bounds (Gandy and Hahn,
Scand. J. Stat. 41, 1083, 2014).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ...errors import warn
from .exceedance import reached_of, smallest_p
from .false_discovery import false_discovery

Doubles = NDArray[np.float64]
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
    n : ndarray of int
    rate : float
    """
    made = np.isfinite(p_value)
    lower, upper = (np.where(made, side, np.nan) for side in bounds(reached_of(p_value, n), n))
    return np.asarray(made & ~still_open(lower, upper, rate))


def tell_reach(p_value: Doubles, n: int, rate: float) -> None:
    """Warn where n is too small for any test to pass at ``rate``, although more surrogates might tell.

    Parameters
    ----------
    p_value : ndarray of float64
        NaN for tests that were not made.
    n : int
        Most surrogates of a test.
    rate : float
    """
    made = p_value[np.isfinite(p_value)]
    smallest = smallest_p(n)
    lowest = int((made <= smallest * (1 + 1e-9)).sum())
    if not lowest or bool((false_discovery(made) <= rate).any()):
        return
    needed = math.ceil(made.size * smallest / rate - 1e-9)
    can = "none can pass" if needed > made.size else f"any can pass only if {needed:,} have that p-value; {lowest:,} do"
    warn(
        f"nothing is significant because n={n:,} surrogates are too few: no p-value is below {smallest:.3g}, and of "
        f"{made.size:,} directions at a false discovery rate of {rate:g} {can}. Take n='auto', or a larger n"
    )

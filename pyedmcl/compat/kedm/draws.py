"""The random sub-libraries that kEDM draws for a seed.

The generator is PCG-XSH-RR 64/32 with its default stream (M. E. O'Neill, PCG: A Family of Simple Fast Space-Efficient
Statistically Good Algorithms for Random Number Generation, HMC-CS-2014-0905, 2014); the sampling without replacement is
Floyd's (Bentley and Floyd, Commun. ACM 30, 754, 1987), with a bound that is one lower than his.
"""

from __future__ import annotations

import secrets

import numpy as np
from numpy.typing import NDArray

_MULTIPLIER, _INCREMENT = 6364136223846793005, 1442695040888963407
_WORD = (1 << 64) - 1
_CELLS = 1 << 22


class Generator:
    """The 32-bit numbers of one seed; 0 stands for a fresh one."""

    def __init__(self, seed: int) -> None:
        start = seed & _WORD if seed else secrets.randbits(64)
        self._state = ((start + _INCREMENT) * _MULTIPLIER + _INCREMENT) & _WORD
        self._ready = np.empty(0, np.uint32)

    def _more(self, n: int) -> None:
        """Have n numbers ready: the states of a run follow from those of its first half at once."""
        states = np.array([self._state], np.uint64)
        factor, term = _MULTIPLIER, _INCREMENT
        while len(states) < n:
            states = np.concatenate([states, states * np.uint64(factor) + np.uint64(term)])
            factor, term = factor * factor & _WORD, (factor + 1) * term & _WORD
        self._state = (int(states[-1]) * _MULTIPLIER + _INCREMENT) & _WORD
        mixed = (((states >> np.uint64(18)) ^ states) >> np.uint64(27)).astype(np.uint32)
        turn = (states >> np.uint64(59)).astype(np.uint32)
        back = (np.uint32(32) - turn) & np.uint32(31)
        self._ready = np.concatenate([self._ready, (mixed >> turn) | (mixed << back)])

    def below(self, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        """One number from 0 to less than each bound, without bias: too small ones of a round are passed over."""
        out = np.empty(len(bounds), np.int64)
        place = 0
        while place < len(bounds):
            left = bounds[place:].astype(np.uint32)
            if len(self._ready) < len(left):
                self._more(len(left) - len(self._ready))
            words = self._ready[: len(left)]
            refused = np.flatnonzero(words < (np.uint32(0) - left) % left)  # 2^32 modulo the bound
            taken = int(refused[0]) if len(refused) else len(left)
            out[place : place + taken] = words[:taken] % left[:taken]
            self._ready = self._ready[taken + (1 if len(refused) else 0) :]
            place += taken
        return out

    def samples(self, n: int, size: int, count: int) -> NDArray[np.bool_]:
        """Which of n are in each of some sub-libraries of ``size`` (count, n); all if there are not more.

        One by one, each number drawn is taken, or, if it is a member already, the largest that could have been drawn
        plus one. So it is a member if it was drawn before, or if it has taken the place of such a one.
        """
        if size >= n:
            return np.ones((count, n), bool)
        mask = np.zeros((count, n), bool)
        at_once = max(_CELLS // size, 1)
        for begin in range(0, count, at_once):
            part = mask[begin : begin + at_once]
            steps = np.arange(len(part) * size)
            first = n - size
            drawn = self.below(first + steps % size)
            sample = steps // size
            member = drawn + sample * n
            earliest = np.empty(part.size, np.int64)
            earliest[member[::-1]] = steps[::-1]  # of equal indices the last assignment holds
            again = earliest[member] != steps
            stood_in = np.flatnonzero(drawn >= first)  # numbers that may have taken a place: whose, and
            whose = drawn[stood_in] - first + sample[stood_in] * size
            while True:
                also = again[whose] & ~again[stood_in]
                if not also.any():
                    break
                again[stood_in[also]] = True
            part.reshape(-1)[np.where(again, first + steps % size + sample * n, member)] = True
        return mask

"""PyRQA's strategies for choosing an implementation: they hold their arguments, and choose nothing.

Parameters of kernels are tuned per device beforehand, see ``docs/tuning.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

_FACTORS = (1, 2, 4, 8, 16, 32)


class Selector:
    """Base of the strategies."""

    def __init__(self, loop_unroll_factors: Sequence[int] = _FACTORS) -> None:
        self.loop_unroll_factors = loop_unroll_factors


class SingleSelector(Selector):
    """One implementation."""


class EpsilonSelector(Selector):
    """Base of those that explore."""

    def __init__(self, loop_unroll_factors: Sequence[int] = _FACTORS, explore: int = 5) -> None:
        super().__init__(loop_unroll_factors)
        self.explore = explore


class EpsilonGreedySelector(EpsilonSelector):
    """Explore every so often."""


class VWGreedySelector(EpsilonSelector):
    """Explore, and forget what was found before."""

    def __init__(self, loop_unroll_factors: Sequence[int] = _FACTORS, explore: int = 5, factor: int = 3) -> None:
        super().__init__(loop_unroll_factors, explore)
        self.factor = factor


class EpsilonDecreasingSelector(EpsilonSelector):
    """Explore less and less."""

    def __init__(self, loop_unroll_factors: Sequence[int] = _FACTORS, explore: int = 5, delta: int = 3) -> None:
        super().__init__(loop_unroll_factors, explore)
        self.delta = delta


class EpsilonFirstSelector(EpsilonSelector):
    """Explore at the beginning."""

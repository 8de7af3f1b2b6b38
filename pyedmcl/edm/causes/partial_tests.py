"""Is anything left of links without what passes through another series? Tests of partial cross mapping of many links.

Surrogates of the cause take its place in both estimates. They are drawn in rounds, and only for links that more of them
may still decide at the false discovery rate over all these links.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...jobs.blocks import Record, cut
from ...jobs.runner import Runner
from ..shared import arguments
from ..shared.exceedance import counts, p_values
from ..shared.sequential import FIRST, SequentialTests
from ..surrogates.surrogate import SeriesMakers
from .partial_links import LinkedSeries, PartialLink, partial_skill

Doubles = NDArray[np.float64]

_NUMBERS = 1 << 25  # predictions that are held together


def partial_tests(
    runner: Runner, series: LinkedSeries, links: Sequence[PartialLink], makers: SeriesMakers, *, budget: int,
    rate: float, seed: int,
) -> tuple[Doubles, Record]:  # fmt: skip
    """P-values of links whose partial correlation is compared with those of surrogates of their causes.

    Parameters
    ----------
    runner, series, links
        As for :func:`partial_skill`.
    makers : SeriesMakers
        What makes the surrogates.
    budget : int
        Surrogates of a link, as a mean over all of them.
    rate : float
        False discovery rate at which links are decided.
    seed : int
    """
    n_steps, record = len(series.values), Record()

    def of(which: Sequence[int], first: int, n: int) -> tuple[Doubles, Doubles]:
        """Of some links the partial correlation, and those of n surrogates from ``first`` on."""
        nonlocal record
        partials = []
        for part in cut(len(which), max(_NUMBERS // (2 * (n + 1) * n_steps), 1)):
            part_links = [links[number] for number in which[part.begin : part.end]]
            drawn = {cause: arguments.room("n", (n, n_steps)) for cause in sorted({link.cause for link in part_links})}
            draws = [(out, makers.of(cause, int(series.E[cause])), cause) for cause, out in drawn.items()]
            makers.drawer.draw(draws, seed, first)
            skill, new_record = partial_skill(runner, series, part_links, drawn)
            record = record.joined(new_record)
            partials.append(skill.partial)
        together = np.concatenate(partials)
        return together[:, 0], together[:, 1:]

    n = min(FIRST, budget)
    try:
        observed, surrogates = of(range(len(links)), 0, n)
        tests = SequentialTests(rate, budget, n, *counts(observed, surrogates))
        while step := tests.step(n_steps):
            which = np.flatnonzero(tests.open)
            reached, made = np.zeros((2, len(links)), np.int64)
            reached[which], made[which] = counts(observed[which], of(which.tolist(), tests.drawn, step)[1])
            tests.add(step, reached, made)
    finally:
        makers.drawer.release()
    return p_values(tests.reached, tests.n), record

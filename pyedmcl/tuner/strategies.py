"""In what order configurations are tried: pure generators that are asked for some and told how those did.

A strategy is given configurations to begin with, such as the defaults, and how many it may ask for at once. It yields
lists of configurations and is sent a mapping of their canonical text to a cost (seconds, or anything that grows with
them), or None for one that cannot be used. It touches no device; with the same seed and the same costs it asks for the
same configurations.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Generator, Mapping, Sequence
from random import Random
from typing import Any

from ..tuning.key import canonical
from .space import Space

Costs = Mapping[str, float | None]
Asking = Generator[list[dict[str, Any]], Costs, None]

# A move must gain as much: less is noise, and a walk along a plateau.
_GAIN = 0.99
# After this many draws in a row that were known already, little is left to find.
_STALE = 200


def exhaustive(space: Space, starts: Sequence[Mapping[str, Any]], rng: Random, batch: int) -> Asking:
    """Every valid configuration: the given ones first, then the others in the order of the spec."""
    first = {canonical(start): dict(start) for start in starts}
    others = (c for c in space.enumerate() if canonical(c) not in first)
    everything = itertools.chain(first.values(), others)
    while configurations := list(itertools.islice(everything, batch)):
        yield configurations


def greedy(space: Space, starts: Sequence[Mapping[str, Any]], rng: Random, batch: int) -> Asking:
    """Local search with restarts.

    From the best of the given configurations to the best neighbour of each batch that gains, until none does; then
    anew from a configuration that differs from the best one in a few places, or every third time from anywhere.
    """
    costs: dict[str, float] = {}  # infinite where a configuration cannot be used
    best: dict[str, Any] | None = None

    def cost(configuration: Mapping[str, Any] | None) -> float:
        return math.inf if configuration is None else costs[canonical(configuration)]

    def tried(configurations: Sequence[Mapping[str, Any]]) -> Asking:
        nonlocal best
        fresh = list({canonical(c): dict(c) for c in configurations if canonical(c) not in costs}.values())
        for at in range(0, len(fresh), batch):
            chosen = fresh[at : at + batch]
            answers = yield chosen
            for configuration in chosen:
                seconds = answers.get(canonical(configuration))
                costs[canonical(configuration)] = math.inf if seconds is None else seconds
                best = configuration if cost(configuration) < cost(best) else best

    def descend(configuration: dict[str, Any] | None) -> Asking:
        while configuration is not None:
            around = space.neighbours(configuration)
            rng.shuffle(around)
            start, configuration = configuration, None
            for at in range(0, len(around), batch):
                yield from tried(around[at : at + batch])
                lowest = min(around[at : at + batch], key=cost)
                if cost(lowest) < _GAIN * cost(start):
                    configuration = lowest
                    break

    yield from tried(starts)
    yield from descend(best)
    stale = 0
    for number in itertools.count(1):
        drawn = space.sample(rng) if best is None or number % 3 == 0 else space.perturbed(best, rng, 2 + number % 2)
        if drawn is not None and canonical(drawn) not in costs:
            stale = 0
            yield from tried([drawn])
            if cost(drawn) < math.inf:
                yield from descend(drawn)
        else:
            stale += 1
        if stale == _STALE:
            return


STRATEGIES = {"greedy": greedy, "exhaustive": exhaustive}


def ask(asking: Asking, costs: Costs | None = None) -> list[dict[str, Any]]:
    """What to try next, told how what was asked for last did (None at first); an empty list at the end."""
    try:
        return next(asking) if costs is None else asking.send(costs)
    except StopIteration:
        return []

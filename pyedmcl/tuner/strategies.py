"""In what order configurations are tried: pure generators that are asked for some and told how those did.

A strategy yields lists of configurations and is sent a mapping of their canonical text to a cost (seconds, or anything
that grows with them), or None for one that cannot be used. It touches no device; with the same seed and the same costs
it asks for the same configurations.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from random import Random
from typing import Any

from ..errors import InputError
from ..tuning.key import canonical
from .space import Space

Costs = Mapping[str, float | None]
Asking = Generator[list[dict[str, Any]], Costs, None]

# A move must gain as much: less is noise, and a walk along a plateau.
_GAIN = 0.99
# After so many draws in a row that were known already, little is left to find.
_STALE = 200


def exhaustive(space: Space, starts: Sequence[Mapping[str, Any]], rng: Random, batch: int) -> Asking:
    """Every valid configuration: the given ones first, then the others in the order of the spec."""
    first = {canonical(start): dict(start) for start in starts}
    others = (c for c in space.enumerate() if canonical(c) not in first)
    everything = itertools.chain(first.values(), others)
    while some := list(itertools.islice(everything, batch)):
        yield some


def greedy(space: Space, starts: Sequence[Mapping[str, Any]], rng: Random, batch: int) -> Asking:
    """Local search with restarts.

    From the best of the given configurations to the best neighbour of each batch that gains, until none does; then
    anew from a configuration that differs from the best one in a few places, or every third time from anywhere.
    """
    costs: dict[str, float] = {}  # infinite where a configuration cannot be used
    best: dict[str, Any] | None = None

    def cost(configuration: Mapping[str, Any] | None) -> float:
        return math.inf if configuration is None else costs[canonical(configuration)]

    def ask(wanted: Sequence[Mapping[str, Any]]) -> Asking:
        nonlocal best
        fresh = list({canonical(c): dict(c) for c in wanted if canonical(c) not in costs}.values())
        for at in range(0, len(fresh), batch):
            some = fresh[at : at + batch]
            told = yield some
            for configuration in some:
                found = told.get(canonical(configuration))
                costs[canonical(configuration)] = math.inf if found is None else found
                best = configuration if cost(configuration) < cost(best) else best

    def descend(here: dict[str, Any] | None) -> Asking:
        while here is not None:
            around = space.neighbours(here)
            rng.shuffle(around)
            start, here = here, None
            for at in range(0, len(around), batch):
                yield from ask(around[at : at + batch])
                lowest = min(around[at : at + batch], key=cost)
                if cost(lowest) < _GAIN * cost(start):
                    here = lowest
                    break

    yield from ask(starts)
    yield from descend(best)
    stale = 0
    for number in itertools.count(1):
        drawn = space.sample(rng) if best is None or number % 3 == 0 else space.perturbed(best, rng, 2 + number % 2)
        if drawn is not None and canonical(drawn) not in costs:
            stale = 0
            yield from ask([drawn])
            if cost(drawn) < math.inf:
                yield from descend(drawn)
        else:
            stale += 1
        if stale == _STALE:
            return


STRATEGIES: Mapping[str, Callable[[Space, Sequence[Mapping[str, Any]], Random, int], Asking]] = {
    "greedy": greedy,
    "exhaustive": exhaustive,
}


class Strategy:
    """A strategy at work.

    Parameters
    ----------
    name : str
        One of :data:`STRATEGIES`; InputError for another.
    space : Space
    starts : sequence of mapping
        Configurations to begin with, such as the defaults.
    seed : int
    batch : int
        Most configurations that are asked for at once.
    """

    def __init__(
        self, name: str, space: Space, starts: Sequence[Mapping[str, Any]] = (), *, seed: int = 0, batch: int = 8
    ) -> None:
        if name not in STRATEGIES:
            raise InputError(f"strategy={name!r}: one of {', '.join(STRATEGIES)} is needed")
        self._asking = STRATEGIES[name](space, starts, Random(seed), batch)

    def ask(self, costs: Costs | None = None) -> list[dict[str, Any]]:
        """What to try next, told how what was asked for last did (None at first); an empty list at the end."""
        try:
            return next(self._asking) if costs is None else self._asking.send(costs)
        except StopIteration:
            return []

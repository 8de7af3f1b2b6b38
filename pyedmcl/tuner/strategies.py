"""In what order configurations are tried: pure generators that are asked for some and told how those did.

A strategy yields lists of configurations and is sent a mapping of their canonical text to a cost (seconds, or anything
that grows with them), or None for one that cannot be used. It touches no device; with the same seed and the same costs
it asks for the same configurations.
"""

from __future__ import annotations

import itertools
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
    costs: dict[str, float | None] = {}
    best: tuple[float, dict[str, Any]] | None = None

    def ask(wanted: Sequence[Mapping[str, Any]]) -> Asking:
        nonlocal best
        fresh = list({canonical(c): dict(c) for c in wanted if canonical(c) not in costs}.values())
        for at in range(0, len(fresh), batch):
            some = fresh[at : at + batch]
            told = yield some
            for configuration in some:
                cost = costs[canonical(configuration)] = told.get(canonical(configuration))
                if cost is not None and (best is None or cost < best[0]):
                    best = cost, configuration

    yield from ask(starts)
    here = best[1] if best is not None else None
    rounds = itertools.count(1)
    while True:
        if here is not None:
            yield from _descend(space, here, rng, batch, costs, ask)
        here = None
        for _ in range(_STALE):
            number = next(rounds)
            if best is None or number % 3 == 0:
                drawn = space.sample(rng)
            else:
                drawn = space.perturbed(best[1], rng, 2 + number % 2)
            if drawn is not None and canonical(drawn) not in costs:
                yield from ask([drawn])
                here = drawn if costs[canonical(drawn)] is not None else None
                break
        else:
            return


def _descend(
    space: Space, here: dict[str, Any], rng: Random, batch: int, costs: dict[str, float | None],
    ask: Callable[[Sequence[Mapping[str, Any]]], Asking],
) -> Asking:  # fmt: skip
    """Walk downhill from ``here`` until no neighbour gains."""
    moved = True
    while moved:
        moved = False
        around = space.neighbours(here)
        rng.shuffle(around)
        for at in range(0, len(around), batch):
            some = around[at : at + batch]
            yield from ask(some)
            known = [(cost, c) for c in some if (cost := costs[canonical(c)]) is not None]
            cost, found = min(known, key=lambda pair: pair[0], default=(None, None))
            now = costs[canonical(here)]
            if cost is not None and found is not None and (now is None or cost < _GAIN * now):
                here, moved = found, True
                break


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

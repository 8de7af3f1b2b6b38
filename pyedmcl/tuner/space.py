"""The configurations of a kernel that are worth considering: the product of its tunables, less what is not valid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from random import Random
from typing import Any

from ..codegen.spec import Constraint, KernelSpec, Tunable
from ..device.info import DeviceInfo
from ..device.quirks import quirks_for
from ..tuning import defaults
from ..tuning.key import canonical

Configuration = Mapping[str, Any]

_TRIES = 50


class _Partial(dict[str, Any]):
    """Values of some tunables and of all that is given; asking for the other tunables raises KeyError, also ``get``."""

    def __init__(self, values: Mapping[str, Any], undecided: frozenset[str]) -> None:
        super().__init__(values)
        self.undecided = undecided

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self or name in self.undecided else default


def _holds(constraint: Constraint, values: _Partial) -> bool | str:
    """Whether a constraint holds; the name of a tunable without a value while it depends on that.

    What asks for a value that only the engine knows is left to the engine, which refuses to build it.
    """
    try:
        return bool(constraint.holds(values))
    except KeyError as unknown:
        name = unknown.args[0] if unknown.args else None
        return name if isinstance(name, str) and name in values.undecided else True


class Space:
    """All valid configurations of a kernel for a problem on a device.

    Parameters
    ----------
    spec : KernelSpec
    info : DeviceInfo
    given : mapping, optional
        Specialisation, as far as it is known. Constraints on values that are not known are left to the build.
    sizes : mapping, optional
        Sizes of the problem, which say how much local memory staged targets take.
    """

    def __init__(
        self, spec: KernelSpec, info: DeviceInfo, given: Mapping[str, Any] | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        self.spec, self.info = spec, info
        quirks = quirks_for(info)
        self._most = quirks.max_work_group
        self.given = {**(given or {}), **quirks.values}
        self.tunables: dict[str, Tunable] = {tunable.name: tunable for tunable in spec.tunables}
        self.constraints = (*spec.constraints, *defaults.limits(spec, self.given, info, self._most, sizes))

    def defaults(self) -> dict[str, Any]:
        """What is used without any tuning."""
        return defaults.defaults(self.spec, self.given, self.info, self._most)

    def raw_count(self) -> int:
        """Combinations of values, valid or not."""
        return prod(len(tunable.values) for tunable in self.tunables.values())

    def count(self) -> int:
        """Valid configurations, exactly: branches in which nothing is left to decide are not walked through."""
        return self._count({}, tuple(self.tunables), self.constraints)

    def enumerate(self) -> Iterator[dict[str, Any]]:
        """Valid configurations in the order of the spec's values, the last tunable changing first."""
        return self._walk({}, tuple(self.tunables), self.constraints, None)

    def sample(self, rng: Random) -> dict[str, Any] | None:
        """A valid configuration drawn at random; None where there is none.

        All are equally likely where at least some of the combinations are valid.
        """
        for _ in range(_TRIES):
            drawn = {name: rng.choice(tunable.values) for name, tunable in self.tunables.items()}
            if not self.broken(drawn):
                return drawn
        return next(self._walk({}, tuple(self.tunables), self.constraints, rng), None)

    def broken(self, configuration: Configuration) -> list[str]:
        """All that speaks against a configuration; empty for a valid one."""
        return list(defaults.objections(self.spec, configuration, self.given, self.constraints))

    def neighbours(self, configuration: Configuration) -> list[dict[str, Any]]:
        """Valid configurations one step away: one tunable goes to the value before or after its own.

        Where that breaks a constraint, one other tunable takes the first value that mends it.
        """
        configurations: dict[str, dict[str, Any]] = {}
        for name, tunable in self.tunables.items():
            for value in _beside(tunable.values, configuration[name]):
                changed = {**configuration, name: value}
                if self.broken(changed):
                    mended = self._mended(changed, name)
                    if mended is None:
                        continue
                    changed = mended
                configurations.setdefault(canonical(changed), changed)
        configurations.pop(canonical(configuration), None)
        return list(configurations.values())

    def perturbed(self, configuration: Configuration, rng: Random, changes: int) -> dict[str, Any] | None:
        """A valid configuration that differs in ``changes`` tunables at random places; None where none was met."""
        names = [name for name, tunable in self.tunables.items() if len(tunable.values) > 1]
        for _ in range(_TRIES if names else 0):
            changed = dict(configuration)
            for name in rng.sample(names, min(changes, len(names))):
                changed[name] = rng.choice([v for v in self.tunables[name].values if v != configuration[name]])
            if not self.broken(changed):
                return changed
        return None

    def _mended(self, configuration: Configuration, kept: str) -> dict[str, Any] | None:
        for name, tunable in self.tunables.items():
            if name == kept:
                continue
            for value in tunable.values:
                changed = {**configuration, name: value}
                if not self.broken(changed):
                    return changed
        return None

    def _open(
        self, values: Mapping[str, Any], rest: tuple[str, ...], constraints: tuple[Constraint, ...]
    ) -> dict[Constraint, str] | None:
        """The constraints that are not decided yet, each with what it asks for next; None if one is broken."""
        partial = _Partial({**self.given, **values}, frozenset(rest))
        left = {}
        for constraint in constraints:
            holds = _holds(constraint, partial)
            if holds is False:
                return None
            if isinstance(holds, str):
                left[constraint] = holds
        return left

    def _count(self, values: dict[str, Any], rest: tuple[str, ...], constraints: tuple[Constraint, ...]) -> int:
        left = self._open(values, rest, constraints)
        if left is None:
            return 0
        if not left:
            return prod(len(self.tunables[name].values) for name in rest)
        name = next(iter(left.values()))
        others = tuple(other for other in rest if other != name)
        return sum(self._count({**values, name: v}, others, tuple(left)) for v in self.tunables[name].values)

    def _walk(
        self, values: dict[str, Any], rest: tuple[str, ...], constraints: tuple[Constraint, ...], rng: Random | None
    ) -> Iterator[dict[str, Any]]:
        left = self._open(values, rest, constraints)
        if left is None:
            return
        if not rest:
            yield values
            return
        first, *others = rest
        choices = list(self.tunables[first].values)
        if rng is not None:
            rng.shuffle(choices)
        for value in choices:
            yield from self._walk({**values, first: value}, tuple(others), tuple(left), rng)


def _beside(values: tuple[Any, ...], value: Any) -> list[Any]:
    """The values before and after ``value``; for one that is not listed, those on both sides of it."""
    if value in values:
        at = values.index(value)
        return [values[place] for place in (at - 1, at + 1) if 0 <= place < len(values)]
    below = [v for v in values if v < value][-1:]
    above = [v for v in values if v > value][:1]
    return below + above

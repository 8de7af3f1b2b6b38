"""How much a kernel does in one run of a tuning problem: what ``bench/run.py`` divides by the time.

docs/bench.md ("What is counted") says the same in words. Counted is what the problem needs at least; what a kernel does
beside it (addresses, loops, sorting) is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyedmcl.search.searches import operations_per_pair
from pyedmcl.tuner.problem import TuningCase

Numbers = Mapping[str, Any]
Formula = Callable[[Numbers, Mapping[str, Any]], float]


@dataclass(frozen=True)
class Count:
    """What one run of a case of a kernel comes to; each formula gets the case's numbers and its specialisation.

    Attributes
    ----------
    unit : str
        What ``amount`` counts.
    amount : callable
    bytes : callable
        Bytes that must at least move between memory and compute units.
    operations : callable, optional
        Arithmetic operations of all work-items, a multiply-add being one; left out where that says nothing.
    memory : str
        Which memory ``bytes`` moves: "device", or "local" where what is read again and again lies nearer.
    arithmetic : str
        In which numbers the operations are done; the specialisation's number type where left out.
    entries : tuple of str
        Entry points that are the kernel itself, where a tuner also times launches of others.
    """

    unit: str
    amount: Formula
    bytes: Formula
    operations: Formula | None = None
    memory: str = "device"
    arithmetic: str = ""
    entries: tuple[str, ...] = ()


@dataclass(frozen=True)
class Counted:
    """The numbers of one case."""

    unit: str
    amount: float
    work: Mapping[str, float]
    """Name of a ceiling to operations or bytes; what is not counted is left out."""


def counted(case: TuningCase) -> Counted:
    """What one run of a case comes to."""
    count, numbers = COUNTS[case.kernel], case.numbers
    given = numbers.get("given", {})
    work = {count.memory: float(count.bytes(numbers, given))}
    if count.operations is not None:
        arithmetic = count.arithmetic or str(given.get("dtype", "float32"))
        work[arithmetic] = float(count.operations(numbers, given))
    return Counted(count.unit, float(count.amount(numbers, given)), {name: n for name, n in work.items() if n})


def own_entries(kernel: str, timed: tuple[str, ...]) -> tuple[str, ...]:
    """Entry points whose launches are the kernel's own, of those that a tuner times."""
    return COUNTS[kernel].entries or timed


def _item(given: Mapping[str, Any]) -> int:
    return np.dtype(given["dtype"]).itemsize


def _cells(n: Numbers, g: Mapping[str, Any]) -> float:
    return float(n["points"]) ** 2


def _bits(times: float) -> Formula:
    """Bytes of the bits of half a matrix, for each radius, moved ``times`` times."""
    return lambda n, g: n["points"] ** 2 / 2 / 8 * g["n_radii"] * times


def _draws(n: Numbers) -> float:
    """Sub-libraries of both directions."""
    return 2.0 * len(n["sizes"]) * n["samples"]


def _fits(n: Numbers, g: Mapping[str, Any]) -> float:
    return float(n["rows"]) * n["thetas"]


def _map_pairs(n: Mapping[str, Any], g: Mapping[str, Any]) -> float:
    """Rows times library rows, of all libraries of a map."""
    return float(n["rows"]) ** 2 * float(n["libraries"])


def _smap_pairs(n: Numbers, g: Mapping[str, Any]) -> float:
    return float(n["rows"]) ** 2 * n["thetas"]


def _smap_sums(g: Mapping[str, Any]) -> int:
    """Sums of one fit."""
    regressors = int(g["regressors"])
    return regressors * (regressors + 1) // 2 + regressors + 3


def _smap_bytes(n: Numbers, g: Mapping[str, Any]) -> float:
    return _fits(n, g) * _smap_sums(g) * 8


def _smap_operations(n: Numbers, g: Mapping[str, Any]) -> float:
    return _smap_pairs(n, g) * _smap_sums(g)


def _searched(n: Numbers, g: Mapping[str, Any]) -> float:
    return float(n["rows"]) * n["library"]


def _searched_bytes(n: Numbers, g: Mapping[str, Any]) -> float:
    return float((n["rows"] + n["library"]) * _item(g) + n["rows"] * g["k"] * (4 + _item(g)))


def _candidates(n: Numbers, g: Mapping[str, Any]) -> float:
    return float((n["rows"] - n["E"] + 1) * (n["E"] + 5))


def _knn_pairs(n: Numbers, g: Mapping[str, Any]) -> float:
    return float(n["rows"]) * n["library"] * n["libraries"]


def _knn_bytes(n: Numbers, g: Mapping[str, Any]) -> float:
    """The series once, tables of rows and of weights (padded to four) once."""
    places = sum(-(-k // 4) * 4 for k in g["counts"])
    return n["libraries"] * float(n["library"] * _item(g) + places * n["rows"] * (4 + _item(g)))


def _predicted(n: Numbers, g: Mapping[str, Any]) -> float:
    return float(n["rows"]) * n["libraries"] * len(n["dims"])


def _looked_up(n: Numbers, g: Mapping[str, Any]) -> float:
    return float(n["libraries"]) * n["targets"] * n["rows"]


def _scanned_bytes(n: Numbers, g: Mapping[str, Any]) -> float:
    """k neighbours with their distances, the value of each, and a bit of membership for each that is looked at."""
    looked = sum(g["k"] * n["steps"] / size for size in n["sizes"]) / len(n["sizes"])
    return _draws(n) * n["steps"] * (g["k"] * (2 * _item(g) + 4) + looked / 8)


def _members(n: Numbers, g: Mapping[str, Any]) -> float:
    return _draws(n) / len(n["sizes"]) * sum(n["sizes"]) * n["steps"]


COUNTS: Mapping[str, Count] = {
    "knn": Count(
        "pairs", _knn_pairs, _knn_bytes, lambda n, g: _knn_pairs(n, g) * (2.0 * max(g["dims"]) + len(g["dims"]))
    ),
    "lookup": Count(
        "predictions", _looked_up, lambda n, g: _looked_up(n, g) * (g["k"] + 1.0) * _item(g),
        lambda n, g: _looked_up(n, g) * (g["k"] + (5.0 if g["gaps"] else 3.0)), memory="local",
    ),
    "predict": Count(
        "predictions", _predicted,
        lambda n, g: n["rows"] * n["libraries"] * sum((E + 1) * (4 + 2 * _item(g)) + 2 * _item(g) for E in n["dims"]),
        lambda n, g: n["rows"] * n["libraries"] * sum(4.0 * (E + 1) for E in n["dims"]),
    ),
    "skill": Count(
        "values", lambda n, g: n["pairs"] * n["rows"], lambda n, g: n["pairs"] * n["rows"] * 2 * _item(g),
        lambda n, g: 10.0 * n["pairs"] * n["rows"],
    ),
    "stage": Count(
        "values", lambda n, g: n["rows"] * n["series"], lambda n, g: 3.0 * n["rows"] * n["series"] * _item(g)
    ),
    "smap_stage": Count(
        "values", lambda n, g: n["rows"] * g["coordinates"],
        lambda n, g: n["rows"] * g["coordinates"] * (16.0 + _item(g)),
    ),
    "smap_scale": Count(
        "pairs", lambda n, g: float(n["rows"]) ** 2,
        lambda n, g: n["rows"] * (2 * g["coordinates"] + 5) * _item(g),
        lambda n, g: 0.0 if g["limited"] else float(n["rows"]) ** 2 * (2.0 * g["coordinates"] + 3),
    ),
    "smap": Count(
        "pairs", _smap_pairs, _smap_bytes, _smap_operations, arithmetic="float64", entries=("smap", "smap_shared")
    ),
    "smap_shared": Count(
        "pairs", _smap_pairs, _smap_bytes, _smap_operations, arithmetic="float64", entries=("smap_shared",)
    ),
    "smap_solve": Count(
        "fits", _fits, lambda n, g: _smap_bytes(n, g) + 8 * (g["coordinates"] + 4) * _fits(n, g)
    ),
    "smap_white": Count(
        "values", lambda n, g: n["rows"] * n["libraries"] * g["E"],
        lambda n, g: n["rows"] * n["libraries"] * g["E"] * (8.0 + 4 * _item(g)),
    ),
    "smap_gram": Count(
        "pairs", _map_pairs, lambda n, g: n["rows"] * n["libraries"] * (5 * g["E"] + 3) * _item(g),
        lambda n, g: _map_pairs(n, g) * (10.0 * g["E"] + 12 + (g["E"] + 1) * (g["E"] + 2)),
    ),
    "smap_slopes": Count(
        "pairs", _map_pairs, lambda n, g: n["rows"] * n["libraries"] * (g["E"] + 1) * (g["E"] + 3) * _item(g),
        lambda n, g: _map_pairs(n, g) * (6.0 * g["E"] + 12 + 2 * g["E"] * (g["E"] + 1)),
    ),
    "smap_map": Count(
        "predictions", lambda n, g: n["rows"] * n["libraries"] * n["targets"],
        lambda n, g: n["rows"] * (n["libraries"] * (5 * g["E"] + 3) + n["targets"]) * _item(g),
        lambda n, g: _map_pairs(n, g) * (2.0 * n["targets"] + 5 * g["E"] + 5),
    ),
    "ccm": Count("predictions", lambda n, g: _draws(n) * n["steps"], _scanned_bytes),
    "ccm_direct": Count(
        "pairs", _members, lambda n, g: 4 * _members(n, g), lambda n, g: _members(n, g) * (2.0 * g["E"] + 1)
    ),
    "ccm_draw": Count("rows", lambda n, g: _draws(n) * n["steps"], lambda n, g: _draws(n) * n["steps"] / 8),
    "recurrence_bits": Count(
        "cells", _cells, _bits(1.0),
        lambda n, g: _cells(n, g) / 2 * (g["m"] + 1.0 + g["n_radii"] * (1 + g["exact"])),
        entries=("recurrence_bits",),
    ),
    "recurrence_transpose": Count("cells", _cells, _bits(2.0)),
    "recurrence_lines": Count("cells", _cells, _bits(3.0)),
    "recurrence_image": Count(
        "cells", _cells, lambda n, g: 8 * n["points"] + 4 * 200**2, lambda n, g: _cells(n, g) / 2 * (2.0 * g["m"] + 4)
    ),
    "recurrence_network": Count("cells", _cells, lambda n, g: _cells(n, g) / 4),
    "recurrence_windows": Count(
        "cells", lambda n, g: n["windows"] * 500.0**2, lambda n, g: n["windows"] * 500.0**2 / 4
    ),
    "recurrence_ranks": Count("cells", _cells, lambda n, g: 16 * n["points"]),
    "pruned": Count("pairs", _searched, _searched_bytes, entries=("pruned",)),
    "pruned_order": Count(
        "states", lambda n, g: n["states"], lambda n, g: n["states"] * (4 + (g["axes"] + 2) * _item(g))
    ),
    "shared_sums": Count(
        "pairs", _searched, _searched_bytes,
        lambda n, g: _searched(n, g) * operations_per_pair(g["E"], g["side"]),
    ),
    "candidates": Count(
        "candidates", _candidates,
        lambda n, g: _candidates(n, g) * 4 + n["rows"] * (n["E"] + 1) * (4 + _item(g)),
        lambda n, g: _candidates(n, g) * 2.0 * n["E"],
    ),
}  # fmt: skip

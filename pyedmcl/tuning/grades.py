"""Which of the known parameters suit a problem, and how well: the grades of docs/tuning.md."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ..device.fingerprint import DeviceKey
from .key import MODELS, TuningKey

#: From the best to the least knowledge; "forced" parameters were given by the caller, "recorded" ones belong to a job
#: that is continued.
GRADES = ("forced", "recorded", "exact", "other driver", "other size", "same architecture", "shipped", "default")

# What is lost by a configuration that was tuned elsewhere, beside one that was tuned on the problem itself: a measure
# that orders configurations, and tells which are to be expected to be worse than the defaults. One doubling of the
# numbers that the text is specialised by, four times the size, and another device of the family count alike.
_LOSS_OF_DEFAULTS = 2.5
_LOSS_OF_RELATIVE = 1.2  # so that among equals the device itself goes first
_LOSS_PER_DOUBLING_OF_UNITS = 0.25
# So small that they decide among equals only.
_LOSS_OF_DRIVER = 0.1
_LOSS_OF_SHIPPED = 0.2
# Octaves of time that an octave of loss puts at risk: what was gained over the defaults where a configuration was
# tuned must outweigh that, or the defaults are the better choice. On times that bench/tuning_loss.py took of
# processors, configurations lost 0.05 to 0.07 octaves in the mean for each octave of difference, with a standard
# deviation of 0.09 to 0.13.
_RISK = 0.25
_HALVED = frozenset({"tau"})  # its buckets are powers of four


@dataclass(frozen=True)
class Entry:
    """A configuration worth using.

    Attributes
    ----------
    key : TuningKey
        What it was tuned on.
    parameters : mapping
    seconds : float or None
        Median time on the device of the case it was tuned on.
    gain : float or None
        How many times faster than the defaults it was there, 1 for the defaults themselves; None where nobody noted it.
    imported : bool
        Whether it came into the database from a file.
    """

    key: TuningKey
    parameters: Mapping[str, Any]
    seconds: float | None = None
    gain: float | None = None
    imported: bool = field(default=False, compare=False)


def ranked(stored: Iterable[Entry], key: TuningKey, shipped: Iterable[Entry] = ()) -> list[tuple[str, Entry]]:
    """Entries that suit a key, the least predicted loss first, each with its grade.

    "exact" (device, driver, specialisation and size); "other driver"; "other size" (the same device, a specialisation
    or size near by); "same architecture" (a relative of the device); "shipped" (any of these, in what came with the
    package). Only entries of the same kernel and text count, and only those that are to be expected to be no slower
    than the defaults: the further from a problem an entry was tuned, the more must it have gained there.

    Parameters
    ----------
    stored : iterable of Entry
        Of the database, the best known first.
    key : TuningKey
    shipped : iterable of Entry
        What came with the package.
    """
    near = []
    for from_package, entries in ((False, stored), (True, shipped)):
        for order, entry in enumerate(entries):
            if (entry.key.kernel, entry.key.digest) != (key.kernel, key.digest):
                continue
            lost, grade = predicted_loss(entry.key, key), "shipped" if from_package else _grade(entry.key, key)
            if lost is not None and lost <= _LOSS_OF_DEFAULTS:
                near.append((lost + _LOSS_OF_SHIPPED * from_package, from_package, order, grade, entry))
    suitable, doubted = [], set()
    for lost, from_package, _, grade, entry in sorted(near, key=lambda item: item[:3]):
        source = from_package, entry.key.device
        if source not in doubted and _repays(entry, lost):
            suitable.append((grade, entry))
        else:
            doubted.add(source)
    return suitable


def _repays(entry: Entry, lost: float) -> bool:
    """Whether an entry gained enough where it was tuned to be worth the risk of using it so far away."""
    if entry.gain is None or lost == 0:  # what was found here, on the problem itself, is no guess
        return True
    risk = _RISK * lost if lost > _LOSS_OF_DRIVER + _LOSS_OF_SHIPPED else 0.0  # none where it was tuned on the problem
    return math.log2(entry.gain) >= risk


def predicted_loss(known: TuningKey, asked: TuningKey) -> float | None:
    """What is lost by a configuration that was tuned on another problem or device, in octaves of all that differs.

    None where one says nothing about the other. Size weighs as much as device: parameters of a relative that were
    tuned on the size itself go before those that were tuned here on a much shorter problem.
    """
    device, far = relation(known.device, asked.device), distance(known, asked)
    if device is None or far is None:
        return None
    lost = far + {"same": 0.0, "driver": _LOSS_OF_DRIVER, "relative": _LOSS_OF_RELATIVE}[device]
    if known.kernel in MODELS:  # whose numbers are scaled by the units
        return lost
    units = math.log2(max(known.device.compute_units, 1) / max(asked.device.compute_units, 1))
    return lost + _LOSS_PER_DOUBLING_OF_UNITS * abs(units)


def _grade(known: TuningKey, asked: TuningKey) -> str:
    device = relation(known.device, asked.device)
    if device == "relative":
        return "same architecture"
    if distance(known, asked):
        return "other size"
    return "exact" if device == "same" else "other driver"


def relation(known: DeviceKey, asked: DeviceKey) -> str | None:
    """How a known device stands to the one asked for: "same", "driver" (another one), "relative", or None."""
    if known == asked:
        return "same"
    if (known.runtime, known.vendor) != (asked.runtime, asked.vendor):
        return None
    if (known.name, known.compute_units) == (asked.name, asked.compute_units):
        return "driver"
    return "relative" if family(known.name) == family(asked.name) else None


@lru_cache(maxsize=256)
def family(name: str) -> tuple[str, ...]:
    """A device's name without what tells it from its siblings.

    The words up to the model number, of which its letters stay, or its first digit (RTX 4090 and RTX 4080, H200 and
    H100 are siblings); of AMD's gfx numbers all but the last two digits.
    """
    words = []
    for word in re.split(r"[^0-9a-z]+", re.sub(r"\((?:r|tm)\)", " ", name.lower())):
        gfx = re.fullmatch(r"(gfx\d+?)[0-9a-f]{2}", word)
        digit = re.search(r"\d", word)
        if digit is None:
            words.append(word)
            continue
        words.append(gfx[1] if gfx else word[: digit.start()] or word[0])
        break
    return tuple(word for word in words if word)


def distance(known: TuningKey, asked: TuningKey) -> float | None:
    """How far apart two problems are, in octaves of what differs; 0 for the same bucket.

    Doublings of the specialisation, and steps of four of the sizes. There are several sizes that mostly grow together:
    their mean counts. None where one problem says nothing about the other.
    """
    if (known.specialisation, known.size) == (asked.specialisation, asked.size):
        return 0.0
    first, second = _fields(known.specialisation), _fields(asked.specialisation)
    octaves = 0.0
    for name in {**first, **second}:
        if name not in first or name not in second:
            octaves += 1.0
            continue
        a, b = first[name], second[name]
        if a == b:
            continue
        # One dimension and several are different programs.
        if not (_number(a) and _number(b)) or (name.endswith(".count") and 1 in (a, b)):
            return None
        octaves += _octaves(a, b) / (2 if name in _HALVED else 1)
    one, other = _fields(known.size), _fields(asked.size)
    steps = [_octaves(one[n], other[n]) / 2 if n in one and n in other else 1.0 for n in {**one, **other}]
    return octaves + sum(steps) / max(len(steps), 1)


def _number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _octaves(a: int, b: int) -> float:
    return abs(math.log2(max(a, 0.5)) - math.log2(max(b, 0.5)))


@lru_cache(maxsize=4096)
def _fields(text: str) -> dict[str, Any]:
    """Canonical JSON as names and values, members of objects as ``name.member``."""
    flat: dict[str, Any] = {}
    for name, value in json.loads(text).items():
        if isinstance(value, dict):
            flat.update({f"{name}.{member}": inner for member, inner in value.items()})
        else:
            flat[name] = value if not isinstance(value, list) else tuple(value)
    return flat

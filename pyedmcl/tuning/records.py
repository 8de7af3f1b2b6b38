"""Keys of tuned configurations, trials, and the grades that say which of them suit a problem."""

from __future__ import annotations

import json
import math
import os
import re
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..config import runs
from ..device.info import DeviceInfo, DeviceKey, device_key
from ..kernels import NAMES, spec
from ..kernels.kernel_spec import KernelSpec

# What a tuned configuration belongs to: device, kernel, its text and search space, and what it was tuned on.


#: What is measured beside kernels, and the version of the formulas that use it, to be raised when they change. What
#: the numbers mean is the business of those formulas: :mod:`pyedmcl.search.rates`.
MODELS = {"neighbors": "2"}

# Follows from tuned parameters, so it cannot be part of what they are looked up by.
_DERIVED = frozenset({"capacity", "capacities"})
# Values whose effect on speed is coarser than that of the others, in powers of four; columns beyond a few groups of
# the widest vectors are all alike.
_COARSE = frozenset({"tau"})
_MOST_COLUMNS = 256


@dataclass(frozen=True)
class TuningKey:
    """What a tuned configuration belongs to."""

    device: DeviceKey
    # Name of the spec, or one of :data:`MODELS`.
    kernel: str
    # Of the kernel's text and search space; of a model its version.
    digest: str
    # specialisation, size: Canonical JSON of the bucketed specialisation, and of the sizes rounded to powers of four.
    specialisation: str
    size: str

    def configuration(self, parameters: Mapping[str, Any]) -> tuple[str, str, str]:
        """Device, specialisation and parameters as text: what is barred or was verified, whatever the size."""
        return device_digest(self.device), self.specialisation, canonical(parameters)


def tuning_key(
    spec: KernelSpec, specialisation: Mapping[str, Any], info: DeviceInfo, sizes: Mapping[str, int] | None = None
) -> TuningKey:
    """The key of a kernel, given what :func:`pyedmcl.tuning.parameters.parameters` is given.

    Parameters
    ----------
    specialisation : mapping
        As far as it is known; see :func:`bucketed`.
    sizes : mapping, optional
        Name to a number of things.
    """
    return TuningKey(
        device_key(info), spec.name, spec_digest(spec), canonical(bucketed(specialisation)), canonical(rounded(sizes))
    )


def bucketed(specialisation: Mapping[str, Any]) -> dict[str, Any]:
    """A specialisation coarse enough that what was tuned for one member of the bucket suits the others.

    Integers go to the nearest power of two, tuples of integers to the buckets of their length and of their largest
    member; text and truth values stay.
    """
    return {name: _bucket(name, value) for name, value in specialisation.items() if name not in _DERIVED}


def rounded(sizes: Mapping[str, int] | None) -> dict[str, int]:
    """Sizes to the nearest power of four."""
    return {name: nearest_power(int(value), 2) for name, value in (sizes or {}).items()}


def nearest_power(value: int, bits: int = 1) -> int:
    """The power of ``2**bits`` nearest to ``value`` on a logarithmic scale; 0 for 0 and less.

    In integers, so that every machine rounds alike.
    """
    if value < 1:
        return 0
    low = 1 << ((value.bit_length() - 1) // bits * bits)
    return low << bits if value * value >= low * (low << bits) else low


def canonical(values: Mapping[str, Any]) -> str:
    """JSON with sorted names and no spaces: equal mappings give equal text, whatever types hold their numbers."""
    return json.dumps(values, sort_keys=True, separators=(",", ":"), default=_plain, allow_nan=False)


def finite(value: Any, what: str, needed: str, *, zero: bool = False) -> float:
    """A finite number of JSON, above 0 or, with ``zero``, at least 0. Raises ValueError naming ``what`` is none."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value < float("inf") or (value == 0 and not zero):
        raise ValueError(f"{what} is {value!r}; {needed} needed")
    return float(value)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        return value.tolist()
    raise TypeError(f"{value!r} cannot be part of a tuning key: numbers, text and lists of them can")


def _bucket(name: str, value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, int) and not isinstance(value, bool):
        if name == "columns":
            return min(nearest_power(value), _MOST_COLUMNS)
        return nearest_power(value, 2 if name in _COARSE else 1)
    if isinstance(value, Sequence) and not isinstance(value, str):
        if all(isinstance(item, int) for item in value):
            return {"count": nearest_power(len(value)), "most": nearest_power(max(value, default=0))}
        return [_bucket(name, item) for item in value]
    return value


@lru_cache(maxsize=64)
def spec_digest(spec: KernelSpec) -> str:
    """``spec.digest()``, computed once per process."""
    return spec.digest()


def digest_of(name: str) -> str | None:
    """What today's trials of a kernel or of one of :data:`MODELS` carry; None where there is no such."""
    return spec_digest(spec(name)) if name in NAMES else MODELS.get(name)


def model_key(name: str, device: DeviceKey) -> TuningKey:
    """The key of one of :data:`MODELS`, which holds for all problems of a device."""
    return TuningKey(device, name, MODELS[name], canonical({}), canonical({}))


@lru_cache(maxsize=256)
def device_digest(device: DeviceKey) -> str:
    """``device.digest()``, computed once per process."""
    return device.digest()


def device_from(fields: Mapping[str, Any]) -> DeviceKey:
    """A device key from :meth:`DeviceKey.as_dict`. Raises ValueError where a field is missing or of another type."""
    kinds = {name: int if kind == "int" else str for name, kind in DeviceKey.__annotations__.items()}
    if set(fields) != set(kinds):
        odd = ", ".join(sorted(set(fields) ^ set(kinds)))
        raise ValueError(f"a device has the fields {', '.join(kinds)}; missing or unknown: {odd}")
    for name, kind in kinds.items():
        if not isinstance(fields[name], kind) or isinstance(fields[name], bool):
            raise ValueError(f"the device's {name} is {fields[name]!r}, not {'a number' if kind is int else 'text'}")
    return DeviceKey(**{name: fields[name] for name in kinds})


def key_as_dict(key: TuningKey) -> dict[str, Any]:
    """The key as JSON can hold it; specialisation and size as objects."""
    return {
        "device": asdict(key.device), "kernel": key.kernel, "digest": key.digest,
        "specialisation": json.loads(key.specialisation), "size": json.loads(key.size),
    }  # fmt: skip


def key_from(fields: Mapping[str, Any]) -> TuningKey:
    """The reverse of :func:`key_as_dict`. Raises ValueError naming what is wrong."""
    for name, kind in (
        ("device", dict), ("kernel", str), ("digest", str), ("specialisation", dict), ("size", dict),
    ):  # fmt: skip
        if not isinstance(fields.get(name), kind):
            raise ValueError(f"{name!r} is {fields.get(name)!r}; {'an object' if kind is dict else 'text'} is needed")
    return TuningKey(
        device_from(fields["device"]), fields["kernel"], fields["digest"], canonical(fields["specialisation"]),
        canonical(fields["size"]),
    )  # fmt: skip


# Trials: what was tried, by whom, and how it ended; also as lines of JSON.


#: How a trial ended, beside "started" for one that has not.
ENDS = ("ok", "wrong", "failed", "hung", "slow")
#: A configuration that ended so is never tried again, and never used.
BARRING = ("wrong", "failed", "hung")
#: Session of trials and rates that came from a file: what this machine has measured is preferred to them.
IMPORTED = "import"
# Of another host's process nothing can be known; no trial takes that long.
_GONE_AFTER_SECONDS = 3600.0


@dataclass(frozen=True)
class Trial:
    """One configuration and how it did."""

    key: TuningKey
    # All tuned parameters of the kernel.
    parameters: Mapping[str, Any]
    # "ok"; "wrong" (another answer than the oracle's); "failed" (did not compile or launch); "hung" (killed); "slow"
    # (given up early); "started" (running, or it took its process with it).
    status: str
    # Of the rounds, in seconds on the device.
    median: float | None = None
    # Seconds of each round.
    rounds: tuple[float, ...] = ()
    # Why it failed, or anything else worth keeping.
    note: str = ""
    # End (else start), in seconds since 1970.
    when: float = 0.0
    # The tuning that it belongs to; "import" for one that came from a file.
    session: str = ""
    # The exact problem that was run; times of different cases cannot be compared.
    case: str = ""
    # Whether it is the outcome of a tuning: compared again with the defaults, and kept.
    final: bool = False
    # Who runs it: see :func:`process_token`.
    process: str = ""
    # Row of the database; 0 for one from a file.
    id: int = 0

    @property
    def canonical(self) -> str:
        """Canonical JSON of the parameters."""
        return canonical(self.parameters)

    @property
    def barring(self) -> bool:
        """Whether its configuration is not to be tried again: it ended badly, or it took its process with it."""
        return self.status in BARRING or (self.status == "started" and not alive(self.process, self.when))


def process_token() -> str:
    """This process: host, process number and, where the system tells it, the moment it began."""
    return f"{socket.gethostname()} {os.getpid()} {_born(os.getpid())}"


def alive(process: str, since: float) -> bool:
    """Whether the process of a token is still running; for another host's, whether ``since`` is recent."""
    host, _, rest = process.partition(" ")
    number, _, born = rest.partition(" ")
    if not number.isdigit():
        return False
    recent = time.time() - since < _GONE_AFTER_SECONDS
    if host != socket.gethostname():
        return recent
    # Numbers are used again: a process that began at another moment is another one.
    return runs(int(number), unknown=recent) and born in ("", _born(int(number)))


def _born(number: int) -> str:
    try:
        stat = Path(f"/proc/{number}/stat").read_text()
    except (OSError, ValueError):
        return ""
    return stat.rpartition(")")[2].split()[19]


def trial_line(trial: Trial) -> str:
    """A trial as one line of JSON."""
    record = {
        **key_as_dict(trial.key), "parameters": dict(trial.parameters), "status": trial.status,
        "rounds": list(trial.rounds), "note": trial.note, "when": round(trial.when, 3), "session": trial.session,
        "case": trial.case, "final": trial.final,
    }  # fmt: skip
    return canonical(record)


def seconds_of(rounds: Any) -> tuple[float, ...]:
    """Times as positive floats. Raises ValueError naming the first that is none."""
    if not isinstance(rounds, (list, tuple)):
        raise ValueError(f"times are {rounds!r}; a list of seconds is needed")
    return tuple(finite(value, "a time", "seconds above 0 are") for value in rounds)


# Which of the known parameters suit a problem, and how well: the grades of docs/tuning.md.


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
    """A configuration worth using."""

    # What it was tuned on.
    key: TuningKey
    parameters: Mapping[str, Any]
    # Median time on the device of the case it was tuned on.
    seconds: float | None = None
    # How many times faster than the defaults it was there, 1 for the defaults themselves; None where nobody noted it.
    gain: float | None = None
    # Whether it came into the database from a file.
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

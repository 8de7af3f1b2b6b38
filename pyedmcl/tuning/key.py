"""What a tuned configuration belongs to: device, kernel, its text and search space, and what it was tuned on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from ..codegen.spec import KernelSpec
from ..device.fingerprint import DeviceKey, device_key
from ..device.info import DeviceInfo
from ..kernels import NAMES, spec

#: What is measured beside kernels, and the version of the formulas that use it, to be raised when they change. What
#: the numbers mean is the business of those formulas: :mod:`pyedmcl.neighbors.rates`.
MODELS = {"neighbors": "2"}

# Follows from tuned parameters, so it cannot be part of what they are looked up by.
_DERIVED = frozenset({"capacity", "capacities"})
# Values whose effect on speed is coarser than that of the others, in powers of four; columns beyond a few groups of
# the widest vectors are all alike.
_COARSE = frozenset({"tau"})
_MOST_COLUMNS = 256


@dataclass(frozen=True)
class TuningKey:
    """What a tuned configuration belongs to.

    Attributes
    ----------
    device : DeviceKey
    kernel : str
        Name of the spec, or one of :data:`MODELS`.
    digest : str
        Of the kernel's text and search space; of a model its version.
    specialisation, size : str
        Canonical JSON of the bucketed specialisation, and of the sizes rounded to powers of four.
    """

    device: DeviceKey
    kernel: str
    digest: str
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
    spec : KernelSpec
    specialisation : mapping
        As far as it is known; see :func:`bucketed`.
    info : DeviceInfo
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

"""What a store was made from, and how two such records differ, in words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import InputError
from ..kernels import NAMES, spec
from .records import digest_of

#: Formats that can be read: of maps of series onto themselves, and onto other series. Formats 1 to 3 of versions that
#: were never released did not say in each file to what run it belongs.
FORMATS = SQUARE, RECTANGULAR = 4, 5
KIND = "xmap"


def now() -> str:
    """Current time, UTC, ISO 8601 to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _plain(value: Any) -> Any:
    """``value`` as JSON gives it back (tuples as lists, NumPy numbers as Python's), so that records compare."""

    def convert(item: Any) -> Any:
        if isinstance(item, (np.generic, np.ndarray)):
            return item.tolist()
        raise InputError(f"a manifest holds numbers, text, lists and dicts; got {type(item).__name__}: {item!r}")

    try:
        return json.loads(json.dumps(value, default=convert, allow_nan=False))
    except ValueError as error:
        raise InputError(f"a manifest holds finite numbers only: {error}") from error


@dataclass(frozen=True)
class Manifest:
    """Everything that decides the bits of an all-pairs result.

    Attributes
    ----------
    input_digest : str
        Digest of the series' values.
    names : sequence of str
        Names of the N series, in order.
    block_rows : int
        Library rows per block, 1..N; not compared.
    parameters : mapping
        E (list or its digest), tau, Tp, exclusion_radius, knn, dtype and so on; numbers, text, lists and dicts.
    version : str
        Version of pyedmcl.
    kernels : mapping of str to str
        Kernel name -> digest.
    device : mapping
        Key of the device.
    dtype : {"float32", "float64"}
        How rho is stored.
    created : str
        UTC time, ISO 8601; not compared.
    format : int
        Of the store, one of :data:`FORMATS`; not compared.
    targets : sequence of str, optional
        Names of the targets, where these are not the N series.
    grids : sequence, optional
        What describes the grids on which the series and the targets lie, None for those that lie on none; not compared.

    Raises
    ------
    InputError
        A field cannot be used.
    """

    input_digest: str
    names: Sequence[str]
    block_rows: int
    parameters: Mapping[str, Any]
    version: str
    kernels: Mapping[str, str] = field(default_factory=dict)
    device: Mapping[str, Any] = field(default_factory=dict)
    dtype: str = "float32"
    created: str = field(default_factory=now)
    format: int = SQUARE
    targets: Sequence[str] | None = None
    grids: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(str(name) for name in self.names))
        if self.targets is not None:
            object.__setattr__(self, "targets", tuple(str(name) for name in self.targets))
            object.__setattr__(self, "format", RECTANGULAR)
            if not self.targets:
                raise InputError("a result needs at least one target")
        for name in ("parameters", "kernels", "device"):
            object.__setattr__(self, name, _plain(dict(getattr(self, name))))
        if not self.names:
            raise InputError("a result needs at least one series")
        if not 1 <= self.block_rows <= len(self.names):
            raise InputError(f"block_rows is {self.block_rows}: 1 to {len(self.names)} (the series) is needed")
        object.__setattr__(self, "block_rows", int(self.block_rows))
        if self.dtype not in ("float32", "float64"):
            raise InputError(f"rho is stored as float32 or float64, not {self.dtype!r}")

    @cached_property
    def identity(self) -> str:
        """A digest of all of it but the time, by which every file of the store says that it belongs there."""
        attributes = self.attributes()
        del attributes["pyedmcl"]["created"]
        return digest_of(attributes)

    @property
    def shape(self) -> tuple[int, int]:
        """(N, N), or (N, targets)."""
        return len(self.names), len(self.names if self.targets is None else self.targets)

    @property
    def keep(self) -> str | None:
        """The rule by which edges were kept; None where all pairs are, as in the first stores."""
        rule = self.parameters.get("keep")
        return None if rule is None else str(rule)

    def attributes(self) -> dict[str, Any]:
        """The group attributes: the names by themselves (any Zarr reader shows them), the rest under "pyedmcl"."""
        return {
            "names": list(self.names),
            **({} if self.targets is None else {"targets": list(self.targets)}),
            "pyedmcl": {
                "format": self.format,
                "kind": KIND,
                "version": self.version,
                "created": self.created,
                "input_digest": self.input_digest,
                "shape": list(self.shape),
                "block_rows": self.block_rows,
                "dtype": self.dtype,
                "parameters": self.parameters,
                "kernels": self.kernels,
                "device": self.device,
                **({} if self.grids is None else {"grids": list(self.grids)}),
            },
        }

    def provenance(self, **more: Any) -> dict[str, Any]:
        """What of a result's provenance the store keeps, in the same shape."""
        return {
            "data": {"data": {"file": None, "rows": None, "series": len(self.names), "digest": self.input_digest}},
            "seed": self.parameters.get("seed"),
            "command": None,
            "version": self.version,
            "versions": {},
            "function": None,
            "arguments": dict(self.parameters),
            "device": self.device.get("name"),
            "device_key": dict(self.device),
            "kernels": dict(self.kernels),
            **more,
        }

    @classmethod
    def from_attributes(cls, attributes: Mapping[str, Any]) -> Manifest:
        """The inverse of :meth:`attributes`. Raises KeyError, TypeError or InputError where that is damaged."""
        record = attributes["pyedmcl"]
        field_names = ("input_digest", "block_rows", "parameters", "version", "kernels", "device", "dtype", "created",
                  "format")  # fmt: skip
        fields = {name: record[name] for name in field_names}
        names, targets = attributes["names"], attributes.get("targets")
        return cls(names=names, targets=targets, grids=record.get("grids"), **fields)


def _short(value: Any, limit: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _same(stored: Any, requested: Any) -> bool:
    # As text: True == 1 == 1.0 in Python, yet they are other parameters.
    return json.dumps(stored, sort_keys=True) == json.dumps(requested, sort_keys=True)


def _difference(label: str, stored: Any, requested: Any) -> str:
    if isinstance(stored, list) and isinstance(requested, list):
        if len(stored) != len(requested):
            return f"{label}: stored {len(stored)} values, asked for {len(requested)}"
        place = next(i for i, (was, now_) in enumerate(zip(stored, requested, strict=True)) if not _same(was, now_))
        return f"{label}: stored {_short(stored[place])} at position {place}, asked for {_short(requested[place])}"
    return f"{label}: stored {_short(stored)}, asked for {_short(requested)}"


def _differences(prefix: str, stored: Mapping[str, Any], requested: Mapping[str, Any]) -> list[str]:
    lines = []
    for key in [*stored, *(key for key in requested if key not in stored)]:
        if key not in requested:
            lines.append(f"{prefix}{key}: stored {_short(stored[key])}, not asked for")
        elif key not in stored:
            lines.append(f"{prefix}{key}: not stored, asked for {_short(requested[key])}")
        elif not _same(stored[key], requested[key]):
            lines.append(_difference(prefix + key, stored[key], requested[key]))
    return lines


# Of a device's key, what decides speed only: a process that is pinned to fewer cores gives the same bits.
_SPEED_ONLY = ("compute_units",)


def same_kind(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether keys of devices differ in nothing but what decides speed only."""
    return _same(_kind(one), _kind(other))


def _kind(device: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in device.items() if name not in _SPEED_ONLY}


def _deciding(manifest: Manifest) -> dict[str, Any]:
    """What decides bits, of a manifest's device: nothing where kernels give the same bits on all of them."""
    same_bits = all(name in NAMES and spec(name).same_bits for name in manifest.kernels)
    return {} if same_bits else _kind(manifest.device)


def mismatch(path: str, stored: Manifest, requested: Manifest) -> str | None:
    """A message that lists each field in which the two differ and what to do, or None where they agree."""
    work = []
    if stored.input_digest != requested.input_digest:
        work.append(
            f"the input data differ (digest: stored {_short(stored.input_digest, 20)}, "
            f"now {_short(requested.input_digest, 20)})"
        )
    if len(stored.names) != len(requested.names):
        work.append(f"number of series: stored {len(stored.names)}, asked for {len(requested.names)}")
    elif stored.names != requested.names:
        work.append(_difference("names of the series", list(stored.names), list(requested.names)))
    if stored.targets != requested.targets:
        targets = stored.targets, requested.targets
        were, are = ("the series themselves" if names is None else list(names) for names in targets)
        work.append(_difference("targets", were, are))
    work += _differences("", stored.parameters, requested.parameters)
    # Blocks of any size give the same result: those of a store stay as they were cut.
    if stored.dtype != requested.dtype:
        work.append(_difference("dtype of rho", stored.dtype, requested.dtype))
    alike = same_kind(stored.device, requested.device)
    device = [] if alike else _differences("device ", _deciding(stored), _deciding(requested))
    # Other work may need other kernels: then they tell of nothing that users have changed beside it.
    code = [] if work else _differences("kernel ", stored.kernels, requested.kernels)
    if stored.version != requested.version:
        code.insert(0, _difference("version of pyedmcl", stored.version, requested.version))
    if not (work or device or code):
        return None
    lines = [f"{path} holds a result that this run cannot continue:", *(f"  - {x}" for x in work + device + code)]
    same = []
    if device or code:
        lines.append("On another device or version the result would not be bit-identical to one uninterrupted run.")
    if not work:
        same += ["choose the stored device with device="] if device else []
        same += [f"install pyedmcl {stored.version}"] if stored.version != requested.version else []
    ways = [" and ".join(same)] if same else []
    ways += ["choose another output path", "start again with resume=False, which removes what is there"]
    way = ", ".join(ways[:-1]) + ", or " + ways[-1]
    lines.append(way[0].upper() + way[1:] + ".")
    return "\n".join(lines)

"""The parts of a job: problems, blocks, engines, records of their work, manifests and provenance."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..call import described_call, versions
from ..device.info import device_key
from ..errors import InputError
from ..kernels import NAMES, spec
from .records import digest_of

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..device.info import DeviceInfo
    from ..search.searcher import Searcher


# Where a result comes from: devices, drivers, kernels, parameters.


#: Entries that a job adds and that are listed after the kernels.
_LAST = ("parameters", "grade", "neighbors", "precision", "seconds", "blocks")
#: What a record of a job is "for" that tells of its targets, and not of the search for neighbours.
PRECISION = "precision"


@functools.cache
def _digest(kernel: str) -> str:
    return spec(kernel).digest()


def entries_by_kind(searched: Iterable[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Records of a job by the entry of provenance that they belong to.

    Parameters
    ----------
    searched : iterable of mapping
        As a :class:`pyedmcl.jobs.blocks.Record` holds them.

    Returns
    -------
    dict
        ``neighbors``; and ``precision``, where there is any of it.
    """
    entries = [dict(entry) for entry in searched]
    choices = {"neighbors": [entry for entry in entries if entry.get("for") != PRECISION]}
    of_targets = [{name: entry[name] for name in entry if name != "for"} for entry in entries
                  if entry.get("for") == PRECISION]  # fmt: skip
    return choices | ({PRECISION: of_targets} if of_targets else {})


def origin(**more: Any) -> dict[str, Any]:
    """How a record of provenance begins, which is all of it for what no device has computed.

    Parameters
    ----------
    **more
        What the method adds; its ``arguments`` are joined with those of the call.

    Returns
    -------
    dict
        Plain data: the data (file, rows, series and digest of each argument), the seed, the command line (None in
        Python), versions, the function and its arguments; then ``more``.
    """
    from .. import __version__

    call = described_call()
    call["arguments"] = {**call["arguments"], **more.pop("arguments", {})}
    first = {name: call.pop(name) for name in ("data", "seed", "command")}
    return {**first, "version": __version__, "versions": versions(), **call, **more}


def provenance(
    infos: Sequence[DeviceInfo], kernels: Iterable[str], tuning: Mapping[str, Any], **more: Any
) -> dict[str, Any]:
    """A record that says what would be needed to get the same bits again.

    Parameters
    ----------
    infos : sequence of DeviceInfo
        The devices that worked on it. ``device``, ``device_id``, ``driver`` and ``device_key`` are of the first one,
        ``devices``, ``device_ids`` and ``drivers`` of all.
    kernels : iterable of str
        ``kernels`` holds the digest of the source of each.
    tuning : mapping
        Kernel to the parameters that it was given, see :meth:`pyedmcl.tuning.parameters.ParameterSource.record`.
    **more
        What the method adds: its parameters, what it chose.

    Returns
    -------
    dict
        Plain data: :func:`origin` with ``more``, and then devices. ``tuning`` lists, for each kernel, the tuned
        parameters that it was given and how well they are known to suit (their grade).
    """
    first = infos[0]
    last = {name: more.pop(name) for name in _LAST if name in more}
    return {
        **origin(**more),
        "device": first.name,
        "device_id": first.id,
        "driver": first.driver,
        "device_key": device_key(first).as_dict(),
        "devices": [info.name for info in infos],
        "device_ids": [info.id for info in infos],
        "drivers": [info.driver for info in infos],
        "kernels": {name: _digest(name) for name in kernels},
        "tuning": dict(tuning),
        **last,
    }


# A job is a problem cut into blocks, and a sink; a block is a pure function of (problem, block, device).


Arrays = Sequence[NDArray[Any]]
#: Is called with how much of a block is done, in the unit of its problem.
Report = Callable[[int], None]


@dataclass(frozen=True)
class Block:
    """Rows ``begin`` to ``end - 1`` of a result (libraries, series, windows): computed, stored and resumed as one."""

    # Number of the block in the job, from 0 on.
    number: int
    begin: int
    end: int
    # The layers of the result that are to be computed. A result may have several, such as one for each library size,
    # some of which may have been computed before.
    layers: tuple[int, ...] = (0,)

    def __len__(self) -> int:
        return self.end - self.begin


def cut(n: int, rows: int, layers: int = 1) -> list[Block]:
    """Blocks of ``rows`` rows, the last one perhaps shorter, that cover ``n`` rows of ``layers`` layers."""
    return [
        Block(number, begin, min(begin + rows, n), tuple(range(layers)))
        for number, begin in enumerate(range(0, n, rows))
    ]


@dataclass(frozen=True)
class Wait:
    """Says that no block can be claimed now, while other processes compute some that come back if these are lost."""

    # Time to wait before the sink is asked again.
    seconds: float


_BLOCK_BYTES = 8 << 20
_LEAST_WORK = 1 << 31  # pairs x steps of a block: about a second of two processor cores
_MOST_BLOCKS = 20_480  # of a store that is cut for many: a metadata server must claim and write them all
# The process that takes the last block works while the others wait. With this many blocks for each, that wait is some
# percent of the run.
_BLOCKS_OF_A_PROCESS = 20
# Each of several devices gets some blocks, so that a slower device takes fewer and none waits long for the last block.
_BLOCKS_OF_A_DEVICE = 4
_BLOCK_VALUES = 1 << 24  # of the series of a block


def rows_of_a_block(n: int, most: int, devices: int = 1) -> int:
    """Rows of a block where ``devices`` share ``n`` rows, and a block has at most ``most``."""
    return most if devices == 1 else max(min(most, -(-n // (_BLOCKS_OF_A_DEVICE * devices))), 1)


def series_of_a_block(n: int, n_steps: int, devices: int = 1) -> int:
    """Series of a block where ``devices`` share ``n`` of them, whose values a block holds in memory."""
    return rows_of_a_block(n, max(_BLOCK_VALUES // n_steps, 1), devices)


def default_block_rows(n_series: int, n_targets: int | None = None) -> int:
    """Library rows per block for ``n_series`` series: 16 to 64, fewer where a row is so long that 8 MiB hold fewer.

    With fewer targets than libraries, rows are shorter and blocks have more of them, up to 1,024.
    """
    if n_series < 1:
        raise InputError(f"a result needs at least one series, got {n_series}")
    columns = n_series if n_targets is None else n_targets
    most = min(max(64 * (n_series // columns), 64), 1024)
    fine = min(max(n_series // 16, 16), most)
    return min(fine, max(_BLOCK_BYTES // (4 * columns), 1), n_series)


def shared_block_rows(rows: int, n_series: int, row_work: int, processes: int) -> int:
    """Library rows per block where processes share them: fewer for many, so that nobody waits long for the last ones.

    Not so few that claiming and writing blocks takes long beside computing them.

    Parameters
    ----------
    rows : int
        For one process.
    row_work : int
        Pairs x steps of a row.
    processes : int
        As far as their number is known.
    """
    if processes < 2:
        return rows
    least = max(-(-_LEAST_WORK // row_work), -(-n_series // _MOST_BLOCKS))
    return min(rows, max(n_series // (_BLOCKS_OF_A_PROCESS * processes), least))


@dataclass(frozen=True)
class Record:
    """How blocks came about, as plain data."""

    # Kernel to its tuned parameters.
    parameters: Mapping[str, Any] = field(default_factory=dict)
    # How well these parameters are known to suit the device and the problem.
    grade: str = ""
    # Entries that say which search found the neighbours, why it was chosen, and how good it was; and how targets were
    # looked up, where the user chose that (:func:`entries_by_kind` tells the two apart). No entry comes twice.
    searched: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(cls, searcher: Searcher) -> Record:
        """What a searcher for neighbours tells of its work."""
        return cls(searcher.parameters, searcher.grade, tuple(searcher.decisions))

    def joined(self, other: Record) -> Record:
        """This record with the entries that another one adds. Parameters and grade are the last ones that are known."""
        more = tuple(entry for entry in other.searched if entry not in self.searched)
        return Record(other.parameters or self.parameters, other.grade or self.grade, self.searched + more)


@dataclass(frozen=True)
class BlockResult:
    """What an engine computes for a block."""

    # An array for each layer of the block, whose first axis are the rows. Some sinks take results of another kind.
    arrays: Any
    record: Record = field(default_factory=Record)


class Engine(Protocol):
    """A problem that is open on a device. It computes blocks in any order; no block depends on those before it."""

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Compute a block.

        Parameters
        ----------
        into : sequence of ndarray or None
            Arrays that the engine may write to and return instead of new ones.
        report : callable
            May be called with how much of the block is done, as long as that is not all of it.
        """

    def release(self) -> None:
        """Give all device memory back."""


class Problem(Protocol):
    """All numbers that define a result. A problem is frozen, can be pickled, and knows of no device."""

    @property
    def unit(self) -> str:
        """What progress counts, such as series; empty where the engine reports its progress itself."""

    @property
    def total(self) -> int:
        """Size of the whole problem in that unit."""

    def size(self, block: Block) -> int:
        """Size of a block in that unit."""

    @property
    def operations(self) -> float:
        """A rough number of arithmetic operations of the whole job, from which follows whether tuning would repay."""

    def open(self, executor: Executor) -> Engine:
        """Open the problem on a device. Where that fails, all of its memory is given back."""


# What a store was made from, and how two such records differ, in words.


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
    """Everything that decides the bits of an all-pairs result."""

    # Digest of the series' values.
    input_digest: str
    # Names of the N series, in order.
    names: Sequence[str]
    # Library rows per block, 1..N; not compared.
    block_rows: int
    # E (list or its digest), tau, Tp, exclusion_radius, knn, dtype and so on; numbers, text, lists and dicts.
    parameters: Mapping[str, Any]
    # Version of pyedmcl.
    version: str
    # Kernel name -> digest.
    kernels: Mapping[str, str] = field(default_factory=dict)
    # Key of the device.
    device: Mapping[str, Any] = field(default_factory=dict)
    # How rho is stored.
    dtype: str = "float32"
    # UTC time, ISO 8601; not compared.
    created: str = field(default_factory=now)
    # Of the store, one of :data:`FORMATS`; not compared.
    format: int = SQUARE
    # Names of the targets, where these are not the N series.
    targets: Sequence[str] | None = None
    # What describes the grids on which the series and the targets lie, None for those that lie on none; not compared.
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

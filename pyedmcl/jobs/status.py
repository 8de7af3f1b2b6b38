"""How far the results of a folder are, and who computes them, as far as the folder tells; nothing is waited for."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ..atomic_files import temporary_name
from ..errors import StoreError, StoreForeignError
from . import layout
from .claims import FOLDER, Holder, Watch
from .records import IDENTITY, DamagedError, read_identity
from .sharing import blocks_in, entries_in, stage_blocks
from .steps import STEPS, entries_of_steps, said_of_step, steps_of
from .store import XmapStore

_RECENT = 600.0  # seconds before the last block in which blocks are counted for the rate


@dataclass(frozen=True)
class Process:
    """Who computes, or has computed, blocks of a joined result."""

    holder: Holder
    # Blocks.
    done: int
    # What it has claimed.
    computing: tuple[str, ...]
    # Lost: it ended on this machine, or its claims were not touched for their lifetime.
    state: str


@dataclass(frozen=True)
class Status:
    """How far a result is."""

    path: Path
    # Blocks, of all library sizes.
    done: int
    # None for a function of several steps that has not ended: later steps follow from what earlier ones find.
    total: int | None
    # E_done, E_total: Blocks of the search for E, where joined processes are at it; else 0.
    E_done: int
    E_total: int
    # Those that have joined.
    processes: tuple[Process, ...]
    # Blocks a second, lately; None where too few are done to tell.
    rate: float | None
    # Of a function of several steps that has not ended: which one it is at, and how far.
    step: str = ""

    @property
    def complete(self) -> bool:
        return self.done == self.total

    @property
    def claimed(self) -> int:
        """Blocks that are being computed, or were by processes that are lost."""
        return sum(len(one.computing) for one in self.processes)

    @property
    def stale(self) -> int:
        """Those of processes that are lost."""
        return sum(len(one.computing) for one in self.processes if one.state == "lost")

    @property
    def seconds_left(self) -> float | None:
        """By the rate."""
        return None if self.rate is None or self.total is None else (self.total - self.done) / self.rate


class Observer:
    """Looks at a folder, again and again; the longer, the better it knows who is lost.

    Parameters
    ----------
    path : Path
        A result of ``xmap`` or ``ccm_matrix``, or the folder of joined recurrence runs or of a network.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._watch = Watch(path / FOLDER)

    def look(self) -> Status:
        """How far it is now."""
        if not self._path.is_dir():
            what = "is a file" if self._path.exists() else "does not exist"
            raise StoreForeignError(f"{self._path} {what}: name the folder of a run")
        total: int | None
        try:
            identity = read_identity(self._path)
        except (DamagedError, OSError) as error:
            raise StoreError(f"{self._path / IDENTITY} is damaged ({error}): name another folder") from error
        if identity is not None and identity[1].items() >= STEPS.items():
            return self._steps()
        if identity is not None:
            folders = {self._path: identity[0], **self._stages()}
            n_done, total, E_found = sum(map(blocks_in, folders)), sum(folders.values()), (0, 0)
            entries = [entry for folder in folders for entry in entries_in(folder)]
        else:
            stores = stores_of(self._path)
            entries = [entry for store in stores for entry in store.entries()]
            n_done, total = len(entries), sum(store.n_blocks for store in stores)
            E_found = self._search_for_E(stores[0])
        return Status(self._path, n_done, total, *E_found, *self._told_of(entries))

    def _steps(self) -> Status:
        """Of a function of several steps."""
        steps, entries = steps_of(self._path), entries_of_steps(self._path)
        n_done, ended = sum(map(blocks_in, steps)), blocks_in(self._path) > 0
        step = said_of_step(steps[-1]) if steps and not ended else ""
        return Status(self._path, n_done, n_done if ended else None, 0, 0, *self._told_of(entries), step)

    def _told_of(self, entries: Sequence[dict[str, Any]]) -> tuple[tuple[Process, ...], float | None]:
        """Who works, and how many blocks a second are done, of what is told of blocks."""
        done = Counter(str(entry.get("writer", "")) for entry in entries)
        holders = {str(entry["writer"]): _writer(entry) for entry in entries if "writer" in entry}
        times = [str(entry.get("time", "")) for entry in entries]
        return tuple(self._processes(done, holders)), rate(times)

    def _stages(self) -> dict[Path, int]:
        """Folders of stages whose parts lie with the claims, and how many there are to be."""
        stages: dict[Path, int] = {}
        for name in self._watch.names():
            folder = self._watch.folder / name
            with contextlib.suppress(DamagedError, OSError):  # most names are claims
                identity = read_identity(folder)
                stages |= {} if identity is None else {folder: identity[0]}
        return stages

    def _processes(self, done: Counter[str], holders: dict[str, Holder]) -> list[Process]:
        claims: dict[str, list[str]] = {}
        lost: dict[str, bool] = {}
        names, moment = sorted(self._watch.names()), self._now()
        for name in names:
            seen = self._watch.look(name)
            if seen is None or not seen[0].id:
                continue
            holder, mtime = seen
            holders[holder.id] = holder
            own_claims = claims.setdefault(holder.id, [])
            if not name.startswith("member-") and name != "setup":
                own_claims.append(name)
            late = moment - mtime / 1e9 > holder.lifetime and self._watch.alive(name) is None
            lost[holder.id] = lost.get(holder.id, True) and (late or self._watch.stale(name) is not None)
        return [
            Process(holder, done[one], tuple(claims.get(one, ())),
                    "left" if one not in claims else "lost" if lost[one] else "at work")
            for one, holder in sorted(holders.items())
        ]  # fmt: skip

    def _now(self) -> float:
        """The time of the file system, whose clock may be another one than this machine's."""
        file = self._watch.folder / temporary_name("now")
        try:
            file.touch(exist_ok=False)
            try:
                return file.stat().st_mtime
            finally:
                file.unlink()
        except OSError:
            return time.time()

    def _search_for_E(self, store: XmapStore) -> tuple[int, int]:
        if store.E is not None:
            return 0, 0
        n, names = store.shape[1], [name for name in self._watch.names() if name.startswith("E-")]
        done = 0
        for name in names:
            done += blocks_in(self._watch.folder / name)  # most are claims, and one is the folder
        return (done, len(stage_blocks(n, store.block_rows))) if names else (0, 0)


def _writer(entry: dict[str, Any]) -> Holder:
    """Who wrote a line of a journal."""
    writer = str(entry["writer"])
    pid = writer.rsplit("-", 2)[1] if writer.count("-") > 1 else ""
    host, device = str(entry.get("host", "?")), str(entry.get("device", ""))
    return Holder(writer, host, int(pid) if pid.isdecimal() else 0, "", device)


def stores_of(path: Path) -> list[XmapStore]:
    """The stores of a result: itself, or one for each library size."""
    places = [path]
    if path.is_dir() and not (path / "zarr.json").exists():
        places = [path / name for name in sorted(os.listdir(path)) if (path / name / "zarr.json").exists()]
    stores = []
    for place in places:
        attributes = layout.read_attributes(place)
        if attributes is None:
            break
        store = XmapStore(place, layout.read_manifest(place, attributes))
        store.refresh()
        stores.append(store)
    if not stores:
        raise StoreForeignError(
            f"{path} is no result of pyedmcl xmap or ccm-matrix, nor the folder of joined rqa runs: name such a one"
        )
    return stores


def rate(times: Sequence[str]) -> float | None:
    """Blocks a second, of the times at which they were finished (ISO 8601); None where these are too few."""
    seconds = []
    for text in times:
        with contextlib.suppress(ValueError):
            seconds.append(datetime.fromisoformat(text).timestamp())
    recent = [moment for moment in seconds if moment > max(seconds) - _RECENT]
    span = max(recent) - min(recent) if recent else 0.0
    return (len(recent) - 1) / span if span else None

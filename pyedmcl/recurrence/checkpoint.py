"""Counts of a long sweep that may be killed at any moment: finished rows are kept in a file, to go on from there."""

from __future__ import annotations

import glob
import hashlib
import io
import json
import os
import time
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import Interrupted, StoreError, StoreForeignError, StoreMismatchError
from ..jobs import durable
from ..launch.progress import told
from .counts import Counts
from .engine import combine, count_rows, in_context
from .partial import Partial, join
from .problem import RqaProblem

if TYPE_CHECKING:
    from ..device.executor import Executor

_FORMAT = "pyedmcl recurrence checkpoint 1"
_BLOCK_SECONDS = 20.0  # between two writes, once the speed is known
_FIRST_CELLS = 1 << 32
_FIELDS = tuple(f.name for f in fields(Partial))


def quantify_with_checkpoint(
    path: str | os.PathLike[str], executors: Sequence[Executor], problem: RqaProblem, x: Any, y: Any, *,
    tile: int | None,
) -> list[Counts]:  # fmt: skip
    """As :func:`~pyedmcl.recurrence.engine.quantify`, block by block of rows; each finished one is on disk at once.

    Parameters
    ----------
    path : path
        The file; where it exists, the work goes on behind the rows that it holds.
    executors, problem, x, y, tile
        As for the engine.

    Raises
    ------
    StoreForeignError
        The file is something else.
    StoreMismatchError
        It belongs to other data or parameters; the message says which differ.
    StoreError
        Another run writes it at this moment; the message names the process.
    StoreWriteError
        It cannot be written.
    Interrupted
        Ctrl-C; the message says what is kept.
    """
    file = Path(path)
    identity = identity_of(problem, x, y)
    read(file, identity)  # before anything is touched, and again under the lock
    lock = _Lock(file)
    try:
        state = read(file, identity)
        return _counted(file, identity, state, executors, problem, x, y, tile)
    finally:
        lock.release()


class _Lock(durable.WriterLock):
    """One run at a time for a checkpoint; others in the same folder are free."""

    def __init__(self, file: Path) -> None:
        folder = file.absolute().parent
        super().__init__(folder)
        self._path = folder / f"{durable.LOCK_NAME}-{file.name}"
        try:
            durable.make_folder(folder)
            self.acquire()
            for left in folder.glob(f"{durable.PRIVATE_PREFIX}tmp-*-{glob.escape(file.name)}"):  # by killed runs
                left.unlink(missing_ok=True)
        except OSError as error:
            self.release()
            raise durable.write_failure(
                f"checkpoint={str(file)!r} could not be written", "; what it holds is kept", error
            ) from error
        except StoreError as error:
            # The lock speaks of the folder, which other runs may use.
            raise StoreError(f"checkpoint={str(file)!r}{str(error).removeprefix(str(folder))}") from None


def _counted(
    file: Path, identity: dict[str, str], state: list[Partial] | None, executors: Sequence[Executor],
    problem: RqaProblem, x: Any, y: Any, tile: int | None,
) -> list[Counts]:  # fmt: skip
    """Block by block, from the rows on that ``state`` lacks."""
    theiler = max(problem.theiler, 1) if problem.symmetric else problem.theiler
    k_first = 0 if problem.symmetric else 1 - problem.n_rows
    every = _cells(problem, 0, problem.n_rows)
    done, wanted = (state[0].end if state else 0), _FIRST_CELLS
    try:
        while done < problem.n_rows:
            start = time.monotonic()
            end = _end_of_block(problem, done, wanted)
            found = _block(executors, problem, x, y, done, end, tile)
            parts = [*([state] if state else []), *found]
            state = [join([part[r] for part in parts], theiler, k_first) for r in range(problem.n_radii)]
            write(file, identity, state)
            rate = _cells(problem, done, end) / max(time.monotonic() - start, 1e-3)
            done, wanted = end, int(max(rate * _BLOCK_SECONDS, _FIRST_CELLS))
            told(_cells(problem, 0, done), every, "cells")
    except KeyboardInterrupt:
        raise Interrupted(
            f"stopped: {done:,} of {problem.n_rows:,} rows are kept in {file}; the same call goes on from there"
        ) from None
    assert state is not None
    return combine(problem, [state], x)


def _block(
    executors: Sequence[Executor], problem: RqaProblem, x: Any, y: Any, begin: int, end: int, tile: int | None
) -> list[list[Partial]]:
    """Rows ``begin`` to ``end``, shared among the devices."""
    share = -(-(end - begin) // (32 * len(executors))) * 32
    ranges = [(a, min(a + share, end)) for a in range(begin, end, share)]
    if len(ranges) == 1:
        return [count_rows(executors[0], problem, x, y, ranges[0], tile=tile)]
    with ThreadPoolExecutor(len(ranges)) as pool:
        pairs = zip(executors, ranges, strict=False)
        futures = [
            pool.submit(in_context(count_rows), device, problem, x, y, rows, tile=tile) for device, rows in pairs
        ]
        return [future.result() for future in futures]


def _end_of_block(problem: RqaProblem, begin: int, cells: int) -> int:
    """The row behind a block of about so many cells; a multiple of 32, or the last one."""
    width = max(problem.n_columns - begin, 1) if problem.symmetric else problem.n_columns
    rows = max(cells // width // 32, 1) * 32
    return min(begin + rows, problem.n_rows)


def _cells(problem: RqaProblem, begin: int, end: int) -> int:
    if not problem.symmetric:
        return (end - begin) * problem.n_columns
    return (end - begin) * problem.n_columns - (end * (end - 1) - begin * (begin - 1)) // 2


def identity_of(problem: RqaProblem, x: Any, y: Any) -> dict[str, str]:
    """What a checkpoint belongs to: the problem's fields and the data's digests, as JSON texts."""
    given = asdict(problem)
    sides = [side for pair in (x, y) if pair is not None for side in (pair if isinstance(pair, tuple) else (pair,))]
    described: dict[str, Any] = {"data": [_digest(side) for side in sides]}
    for name, value in given.items():
        described[name] = _digest(value) if isinstance(value, np.ndarray) else value
    if given["joint"] is not None and given["joint"]["column_limits"] is not None:
        described["joint"] = {**given["joint"], "column_limits": _digest(given["joint"]["column_limits"])}
    # As text, so that a radius that is NaN equals itself.
    return {name: json.dumps(value) for name, value in described.items()}


def _digest(values: NDArray[Any]) -> str:
    head = f"{values.dtype.name} {values.shape} ".encode()
    return hashlib.sha256(head + np.ascontiguousarray(values).tobytes()).hexdigest()


def write(file: Path, identity: dict[str, str], state: Sequence[Partial]) -> None:
    """Replace the file by ``state``: rows 0 to ``state[0].end``, a part per radius."""
    head = {"format": _FORMAT, "identity": identity}
    arrays: dict[str, Any] = {}
    for r, part in enumerate(state):
        arrays |= {f"{name}{r}": np.asarray(getattr(part, name)) for name in _FIELDS}
    held = io.BytesIO()
    np.savez(held, head=np.frombuffer(json.dumps(head).encode(), np.uint8), **arrays)
    try:
        durable.write_file(file, held.getbuffer())
    except OSError as error:
        raise durable.write_failure(
            f"checkpoint={str(file)!r} could not be written", "; finished rows of before are kept", error
        ) from error


def read(file: Path, identity: dict[str, str]) -> list[Partial] | None:
    """What the file holds, or None where there is none."""
    if not file.exists():
        return None
    try:
        with np.load(file, allow_pickle=False) as held:
            head = json.loads(bytes(held["head"]))
            if head["format"] != _FORMAT:
                raise ValueError(head["format"])
            radii = range((len(held.files) - 1) // len(_FIELDS))
            parts = [{name: held[f"{name}{r}"] for name in _FIELDS} for r in radii]
    except (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise StoreForeignError(
            f"checkpoint={str(file)!r} is no recurrence checkpoint of this version; name another file, or remove it"
        ) from error
    stored = head["identity"]
    if stored != identity:
        names = [name for name in identity if stored.get(name) != identity[name]]
        shown = "; ".join(
            "data differ" if name == "data" else f"{name} = {stored.get(name)} there, {identity[name]} asked for"
            for name in names
        )
        raise StoreMismatchError(f"checkpoint={str(file)!r} belongs to another run ({shown}); name another file")
    return [Partial(**_unpacked(part)) for part in parts]


def _unpacked(part: dict[str, NDArray[Any]]) -> dict[str, Any]:
    return {name: int(array) if array.ndim == 0 else array for name, array in part.items()}

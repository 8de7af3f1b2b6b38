"""A problem as a file, from which workers of a cluster read it."""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from .. import config
from ..files import PRIVATE_PREFIX, draft, temporary_name, write_failure
from .blocks import Problem


@dataclass(frozen=True)
class Spooled:
    """A file, and the SHA-256 of what it holds."""

    path: Path
    digest: str


@contextmanager
def spooled(problem: Problem, beside: Path | None) -> Iterator[Spooled]:
    """The problem in a file while the block lasts.

    Parameters
    ----------
    problem : Problem
    beside : Path or None
        A folder that workers see, such as that of the result; ``PYEDMCL_SPOOL_DIR`` comes first, and where there is
        neither, this machine's folder for temporary files.

    Raises
    ------
    StoreWriteError
        It cannot be written.
    """
    named = config.current().spool_dir
    private = None
    try:
        if named is not None or beside is None:
            private = Path(tempfile.mkdtemp(prefix=f"{PRIVATE_PREFIX}spool-", dir=named))
        folder = beside if private is None else private
        assert folder is not None
        written = _write(problem, folder)
    except OSError as error:
        _remove(private, None)
        place = named or beside or tempfile.gettempdir()
        raise write_failure(
            f"the problem for the workers of client= cannot be written to {place}", ", or set PYEDMCL_SPOOL_DIR", error
        ) from error
    try:
        yield written
    finally:
        _remove(private, written.path)


def _write(problem: Problem, folder: Path) -> Spooled:
    # A name of its own: each of several who share the folder removes what it has written, and nothing else. What a
    # killed run has left is removed with other temporary files.
    path = folder / temporary_name("spool")
    with draft(path) as handle:
        summed = _Summed(handle)
        pickle.Pickler(summed, protocol=5).dump(problem)
    return Spooled(path.absolute(), summed.digest.hexdigest())


class _Summed:
    """A file that is summed while it is written."""

    def __init__(self, handle: IO[bytes]) -> None:
        self._handle, self.digest = handle, hashlib.sha256()

    def write(self, data: Any) -> int:
        self.digest.update(data)
        return self._handle.write(data)


def _remove(own: Path | None, file: Path | None) -> None:
    with contextlib.suppress(OSError):
        if own is not None:
            shutil.rmtree(own)
        elif file is not None:
            file.unlink()

"""What survives whatever kills the process: a journal, a lease for one writer; files by :mod:`pyedmcl.atomic_files`."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import socket
import stat
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..atomic_files import (
    NOT_OFFERED,
    PRIVATE_PREFIX,
    TEMPORARY_PREFIX,
    explained,
    names_in,
    open_plain,
    read_plain,
    remove_from,
    sync_folder,
    write_all,
    write_failure,
    write_file,
)
from ..config import runs
from ..errors import StoreError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = [
    "LOCK_NAME", "PRIVATE_PREFIX", "TEMPORARY_PREFIX", "Journal", "Lease", "explained", "inner_folder",
    "journal_line", "make_folder", "mark_of", "names_in", "open_plain", "read_journal", "read_plain", "remove_from",
    "remove_temporaries", "sync_folder", "write_all", "write_failure", "write_file",
]  # fmt: skip
_SUM, _OF = "crc32", "of"  # in a line of a journal

LOCK_NAME = PRIVATE_PREFIX + "lock"
# Nobody's link in a folder of ours is followed: it could lead to any file of the user.
_OPEN = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def make_folder(folder: Path) -> None:
    """Create ``folder`` and its missing parents durably."""
    missing = []
    while not os.path.isdir(folder) and folder.parent != folder:
        missing.append(folder)
        folder = folder.parent
    for new in reversed(missing):
        new.mkdir(exist_ok=True)
        sync_folder(new.parent)


def inner_folder(folder: Path) -> None:
    """As :func:`make_folder`, of a folder within one of ours, which is no link. Raises OSError."""
    make_folder(folder)
    names_in(folder)


def mark_of(path: Path) -> tuple[int, ...]:
    """What differs when a file has been written or replaced; empty where there is none."""
    try:
        status = path.lstat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns


def remove_temporaries(folder: Path) -> None:
    """Remove what killed writers left in ``folder``; only for the holder of the lease."""
    remove_from(folder, lambda name: name.startswith(TEMPORARY_PREFIX))


@dataclass(frozen=True)
class JournalRead:
    """What was read of a journal."""

    # Of the run that was asked for. A line that was torn by a kill or a power cut (no line end, or no JSON object), or
    # damaged, is left out.
    entries: list[dict[str, Any]]
    # Bytes up to which whole lines go.
    end: int
    # Whether every byte was one of these entries.
    clean: bool
    # Whole entries of other runs.
    foreign: list[dict[str, Any]]


def read_journal(path: Path, of: str, begin: int = 0) -> JournalRead:
    """Entries of a journal, which belong to the run ``of``; those behind ``begin`` bytes."""
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            file.seek(begin)
            data = file.read()
    except FileNotFoundError:
        return JournalRead([], begin, True, [])
    *lines, rest = data.split(b"\n")
    entries: list[dict[str, Any]] = []
    foreign: list[dict[str, Any]] = []
    for line in lines:
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict) and entry.pop(_SUM, None) == _sum(entry):
            (entries if entry.pop(_OF, None) == of else foreign).append(entry)
    clean = not rest and len(entries) == len(lines)
    return JournalRead(entries, begin + len(data) - len(rest), clean, foreign)


def journal_line(entry: dict[str, Any], of: str) -> bytes:
    """One entry as it stands in the file, which says to what run it belongs."""
    entry = {**entry, _OF: of}
    return json.dumps({**entry, _SUM: _sum(entry)}, allow_nan=False).encode() + b"\n"


def _sum(entry: dict[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(entry).encode()):08x}"


class Journal:
    """A file of JSON lines of the run ``of``, each on the disk before :meth:`append` returns.

    The file must hold whole lines only: repair it from :func:`read_journal` before opening.
    """

    def __init__(self, path: Path, of: str) -> None:
        self._of = of
        self._descriptor = os.open(path, _OPEN, 0o666)
        try:
            self._size = os.fstat(self._descriptor).st_size
            sync_folder(path.parent)
        except BaseException:
            self.close()
            raise

    def append(self, entry: dict[str, Any]) -> None:
        """Add one entry. Raises OSError, the file then being as before (or its last line torn, and mended next)."""
        line = journal_line(entry, self._of)
        try:
            # An earlier failed append may have left half a line that could not be cut off then.
            os.ftruncate(self._descriptor, self._size)
            os.lseek(self._descriptor, self._size, os.SEEK_SET)
            write_all(self._descriptor, memoryview(line))
            os.fsync(self._descriptor)
        except BaseException:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(line)

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class Lease:
    """The right of one process to write a store or a checkpoint, by an advisory lock on a file.

    Parameters
    ----------
    path : Path
        The file, which is made and removed again.

    Notes
    -----
    The system drops the lock with the process, so that a file left by ``kill -9`` blocks nobody; its text (pid and
    host) serves the message. Where the file system has no locks, that pid is read from the text and looked up on the
    same host.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1

    def acquire(self) -> None:
        """Take the lease. Raises StoreError naming the holder, OSError where the folder cannot be written."""
        while self._descriptor < 0:
            descriptor = os.open(self._path, _OPEN, 0o666)
            try:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise StoreError(f"{self._path} is a pipe or a device, and no lock of pyedmcl: remove it")
                if not _try_lock(descriptor):
                    raise StoreError(
                        f"{self._path.parent} is being written by another run ({_holder(descriptor)}): "
                        "wait until it ends, stop it, or choose another output path"
                    )
                # The holder removes the file on leaving: a lock on the removed one would guard nothing.
                with contextlib.suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(descriptor), os.stat(self._path)):
                        self._sign(descriptor)
                        self._descriptor = descriptor
            finally:
                if self._descriptor != descriptor:
                    os.close(descriptor)

    def _sign(self, descriptor: int) -> None:
        """Write the holder's name; a file that cannot hold it (a full disk) is removed again."""
        try:
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 0, os.SEEK_SET)
            write_all(descriptor, memoryview(signed(os.getpid(), socket.gethostname()).encode()))
        except OSError:
            with contextlib.suppress(OSError):
                self._path.unlink()
            raise

    def release(self) -> None:
        """Give the lease back and remove its file; a second call does nothing."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        if sys.platform == "win32":  # an open file cannot be removed there
            os.close(descriptor)
        with contextlib.suppress(OSError):
            self._path.unlink()
        if sys.platform != "win32":
            os.close(descriptor)


_SIGNED = re.compile(r"pid (?P<pid>\d+) on (?P<host>\S+)")


def signed(pid: int, host: str) -> str:
    """How messages, and the text of a lease, name a process; ``_SIGNED`` reads it, and nothing behind it."""
    return f"pid {pid} on {host}"


def _holder(descriptor: int) -> str:
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        return os.read(descriptor, 200).decode(errors="replace") or "pid unknown"
    except OSError:
        return "pid unknown"


def _try_lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            os.lseek(descriptor, 1 << 20, os.SEEK_SET)  # beyond the text: locked bytes cannot be read there
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
            return False
        if error.errno in NOT_OFFERED:
            return not _alive(_holder(descriptor))
        raise
    return True


def _alive(holder: str) -> bool:
    """Whether a process that has :func:`signed` so is one of this host that runs and is not this one."""
    found = _SIGNED.match(holder)
    if found is None or found["host"] != socket.gethostname() or int(found["pid"]) == os.getpid():
        return False
    return runs(int(found["pid"]), unknown=False)

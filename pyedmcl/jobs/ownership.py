"""To what a folder belongs: processes that share it compute the same, and what is not ours in it is left alone."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import StoreError, StoreForeignError, StoreMismatchError
from ..files import PRIVATE_PREFIX, kind_of, write_new
from . import durable
from .records import DamagedError, checked, digest_of, read_checked

#: The file that says it.
IDENTITY = "parts.json"
_FORMAT = "pyedmcl parts 2"
# Names of ours at the top of a folder of any kind. What else lies there is the user's own, and not looked at.
_OURS = re.compile(
    r"zarr\.json|rho|E|parts\.json|grid\.json|part-\d+-\d+\.npz|\w+\.edm|library_\d+|E_\d+-tau.*|\d{3,}-\w+|"
    + re.escape(PRIVATE_PREFIX) + ".*"
)  # fmt: skip


def require_plain(folder: Path) -> None:
    """Make sure that a folder of ours leads nowhere else, before anything in it is read, changed or removed.

    Raises
    ------
    StoreForeignError
        There is a link, a pipe, a socket or a device under a name of ours, at any depth.
    StoreError
        The folder cannot be listed.
    """
    try:
        _require_plain(folder, folder, _OURS)
    except OSError as error:
        raise StoreError(f"{folder} cannot be listed ({error.strerror}): check its permissions") from error


def _require_plain(top: Path, folder: Path, ours: re.Pattern[str] | None) -> None:
    inner = []
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            if ours is not None and not ours.fullmatch(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                inner.append(entry.name)
            elif not entry.is_file(follow_symlinks=False):
                with contextlib.suppress(FileNotFoundError):  # removed meanwhile by who shares the folder
                    if kind := kind_of(entry.stat(follow_symlinks=False).st_mode):
                        raise StoreForeignError(
                            f"{folder / entry.name} is {kind}, where pyedmcl keeps files and folders only: {top} is "
                            "left alone; remove that, or choose another output path"
                        )
    # Library sizes and maps of a grid are folders of ours by themselves, in which users may keep their own.
    for name in inner:
        _require_plain(top, folder / name, _OURS if _STORE.fullmatch(name) and ours is not None else None)


_STORE = re.compile(r"library_\d+|E_\d+-tau.*")


def digest_of_identity(identity: Mapping[str, Any]) -> str:
    """By which each file of a folder says that it belongs to a run with such an identity."""
    return digest_of(dict(identity))


def identity_file(blocks: int, identity: Mapping[str, Any]) -> bytes:
    """The text of :data:`IDENTITY`: into how many blocks a problem is cut, and what it is."""
    return checked({"format": _FORMAT, "blocks": blocks, "identity": dict(identity)})


def read_identity(folder: Path) -> tuple[int, dict[str, Any]] | None:
    """What :func:`identity_file` says there; None where it is not there.

    Raises
    ------
    DamagedError
        It is not what was written, or by another version.
    OSError
        It cannot be read.
    """
    record = read_checked(folder / IDENTITY)
    if record is None:
        return None
    try:
        if record["format"] != _FORMAT:
            raise DamagedError(f"its format is {record['format']}")
        return int(record["blocks"]), dict(record["identity"])
    except (LookupError, TypeError, ValueError) as error:
        raise DamagedError(str(error)) from error


def digest_in(folder: Path) -> str | None:
    """:func:`digest_of_identity` of what a folder says of itself; None where it says nothing.

    Raises
    ------
    StoreError
        What it says is damaged.
    """
    try:
        identity = read_identity(folder)
    except (DamagedError, OSError) as error:
        raise StoreError(
            f"{folder / IDENTITY} is damaged ({error}): bring it back from a copy, or remove the folder and run again"
        ) from error
    return None if identity is None else digest_of_identity(identity[1])


def is_ours(folder: Path, identity: Mapping[str, str], argument: str) -> bool:
    """Whether a folder is of this very run; False where it is empty or not there.

    Parameters
    ----------
    folder : Path
    identity : mapping
        What decides the answer, each as text; the name "data" stands for their digest.
    argument : str
        The name under which users gave the folder.

    Raises
    ------
    StoreForeignError
        It holds other things.
    StoreMismatchError
        It is of another run; the message says what differs.
    """
    require_plain(folder)
    try:
        stored = read_identity(folder)
        entries = os.listdir(folder) if stored is None and os.path.lexists(folder) else []
    except (DamagedError, OSError) as error:
        is_file = os.path.exists(folder) and not os.path.isdir(folder)
        raise _foreign(folder, "it is a file" if is_file else str(error), argument) from error
    if IDENTITY in entries:  # another process has written it a moment ago
        return is_ours(folder, identity, argument)
    if any(not name.startswith(PRIVATE_PREFIX) for name in entries):
        raise _foreign(folder, "it holds other things", argument)
    if stored is not None:
        refuse_another(folder, stored[1], identity, argument)
    return stored is not None


def mark(folder: Path, blocks: int, identity: Mapping[str, str], argument: str) -> None:
    """Say that a folder is of this run, unless it says so; other arguments and errors as for :func:`is_ours`.

    Parameters
    ----------
    blocks : int
        Into how many the problem is cut; a folder that says so already keeps its number.

    Raises
    ------
    StoreWriteError
        It cannot be written.
    """
    if not is_ours(folder, identity, argument):
        with durable.explained(f"{folder} cannot be written", ", then run the same command again"):
            write_new(folder / IDENTITY, identity_file(blocks, identity))
        is_ours(folder, identity, argument)  # somebody else may have been quicker


def refuse_another(path: Path, stored: Mapping[str, Any], identity: Mapping[str, str], argument: str) -> None:
    """Raise StoreMismatchError where what is kept belongs to something else than is asked for, with what differs."""
    if stored != identity:
        names = [name for name in identity if stored.get(name) != identity[name]]
        shown = "; ".join(
            "data differ" if name == "data" else f"{name} = {stored.get(name)} there, {identity[name]} asked for"
            for name in names
        )
        raise StoreMismatchError(f"{argument}={str(path)!r} belongs to another run ({shown}); name another one")


def _foreign(folder: Path, why: str, argument: str) -> StoreForeignError:
    return StoreForeignError(
        f"{argument}={str(folder)!r} is no folder of this run, or is damaged ({why}), and is left alone; name a new or "
        "empty folder, or one of the same run"
    )

"""Where programs and the like are kept between processes, and doing without where the user has no folder for it.

A service or a container's user may have no home folder, or one that cannot be written. Everything is computed there,
too: PyOpenCL and loopy are told to keep nothing, PoCL, which does not start without a folder, gets one that is removed
at the end of the process, and a remark says that programs are compiled anew.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .. import config
from ..errors import warn

# What loopy reads while it is imported.
_KEEP_NOTHING = ("LOOPY_NO_CACHE", "CG_NO_CACHE")
_told = False
_shared: set[Path] = set()  # of which that was told


def usable(folder: Path) -> bool:
    """Whether files can be made in a folder, or it can be made itself."""
    folder = folder.absolute()
    try:
        while not os.path.lexists(folder) and folder.parent != folder:
            folder = folder.parent
        # The administrator has access to folders such as /proc, in which no file can be made for all that.
        if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK):
            with tempfile.TemporaryFile(dir=folder):
                return True
    except (OSError, ValueError):
        pass
    return False


def private(folder: Path) -> bool:
    """Whether only this user or the administrator can have put anything into a folder from which programs are loaded.

    A folder that is not there is made so.
    """
    if sys.platform == "win32":  # where the user's folders are the user's own
        return True
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = os.lstat(folder)
    except OSError:
        return False
    own = status.st_uid in (os.geteuid(), 0) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if stat.S_ISDIR(status.st_mode) and own:
        return True
    if folder not in _shared:
        _shared.add(folder)
        warn(
            f"{folder} is not used, since others may write there or it is a link, and what is loaded from it could be "
            "theirs: remove it, or set PYEDMCL_CACHE_DIR to a folder of your own"
        )
    return False


def others_usable() -> bool:
    """Whether other packages can keep files in the user's cache folder."""
    import platformdirs

    try:
        folder = Path(platformdirs.user_cache_dir())
    except RuntimeError:  # the home of this user is not known; versions that do not say so give a relative folder
        return False
    return folder.is_absolute() and usable(folder)


@contextlib.contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Within the block, the process has these environment variables."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def for_runtimes() -> Iterator[None]:
    """Within the block, in which OpenCL runtimes are loaded, PoCL has a folder that can be written."""
    if os.environ.get("POCL_CACHE_DIR") or others_usable():
        yield
        return
    folder = config.current().cache_dir / "pocl"
    if not usable(folder) or not private(folder):
        try:
            folder = Path(tempfile.mkdtemp(prefix="pyedmcl-"))
        except OSError:  # there is no place at all
            yield
            return
        atexit.register(_remove, folder, os.getpid())
    with environment(POCL_CACHE_DIR=str(folder)):
        yield


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # a fork ends, too
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def for_loopy() -> Iterator[None]:
    """Within the block, in which loopy is imported, it learns whether it can keep files."""
    with contextlib.nullcontext() if others_usable() else environment(**dict.fromkeys(_KEEP_NOTHING, "1")):
        yield


def tell() -> None:
    """Say once that nothing is kept, where that is so."""
    global _told
    folder = config.current().cache_dir
    if not _told and not usable(folder):
        _told = True
        warn(
            f"compiled programs are not kept, since {folder} cannot be written: every process compiles them anew. "
            "Set PYEDMCL_CACHE_DIR to a folder that can be written."
        )

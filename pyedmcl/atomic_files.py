"""The one way to write a file: whole or not at all, under a name that nobody can foresee, and never through a link."""

from __future__ import annotations

import contextlib
import errno
import io
import math
import os
import secrets
import stat
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from .errors import InputError, OutputError, PyedmclError, StoreWriteError, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Every file of ours that is not part of a result starts so; a folder that holds only such names counts as empty.
PRIVATE_PREFIX = ".pyedmcl-"
TEMPORARY_PREFIX = PRIVATE_PREFIX + "tmp-"
#: Errors by which a file system says that it has no such service (Lustre without flock, some FUSE mounts).
NOT_OFFERED = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK}
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_PLAIN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_DIRECTORY", 0)
_AGAIN = ", or name another place, and do the same again; a file that was there before is unchanged"
_LONGEST = 200  # bytes of a name that a temporary name can hold beside its own part; most file systems allow 255


def write_failure(what: str, advice: str, error: OSError) -> StoreWriteError:
    """An error that says ``what`` failed, why, and what to do, ``advice`` being the end of that sentence."""
    reason = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        cause = "Free some disk space"
    elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        cause = "Make the folder writable"
    else:
        cause = "Check the path and the disk"
    failure = StoreWriteError(f"{what}: {reason}. {cause}{advice}.")
    failure.errno = error.errno
    return failure


@contextlib.contextmanager
def explained(what: str, advice: str) -> Iterator[None]:
    """What the system refuses within is told as :func:`write_failure` says it; errors of ours pass as they are."""
    try:
        yield
    except OSError as error:
        if isinstance(error, PyedmclError):
            raise
        raise write_failure(what, advice, error) from error


def kind_of(mode: int) -> str | None:
    """What an entry of a folder is, in words, where it is neither a file nor a folder; None for these two."""
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return None
    return "a link" if stat.S_ISLNK(mode) else "a pipe, a socket or a device"


def open_plain(path: Path) -> int:
    """Open a file of ours to read. A link is not followed, and nobody is waited for at the other end of a pipe."""
    try:
        descriptor = os.open(path, _PLAIN)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link, or a socket
            raise OSError(errno.EINVAL, "it is a link or a socket, which is not followed", str(path)) from error
        raise
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is no file", str(path))


def read_plain(path: Path) -> bytes:
    """The content of a file of ours; errors as for :func:`open_plain`."""
    with os.fdopen(open_plain(path), "rb") as file:
        return file.read()


@contextmanager
def _opened(folder: Path) -> Iterator[int | Path]:
    """A folder that is no link, so that what is done with its descriptor is done in it and nowhere else."""
    if sys.platform == "win32":  # where folders cannot be opened
        if folder.is_symlink():
            raise NotADirectoryError(errno.ENOTDIR, "it is a link", str(folder))
        yield folder
        return
    try:
        descriptor = os.open(folder, _FOLDER)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotADirectoryError(errno.ENOTDIR, "it is a link", str(folder)) from error
        raise
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def names_in(folder: Path) -> list[str]:
    """Names of the entries of a folder of ours. Raises NotADirectoryError for a link, OSError as the system does."""
    with _opened(folder) as opened:
        return os.listdir(opened)


def remove_from(folder: Path, ours: Callable[[str], bool]) -> list[str]:
    """Remove the files of a folder whose names are ``ours``; a folder that is a link, or not there, is left alone.

    Returns
    -------
    list of str
        What is left: names of others, folders, and what cannot be removed.
    """
    left = []
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), _opened(folder) as opened:
        for name in sorted(os.listdir(opened)):
            try:
                if not ours(name):
                    left.append(name)
                elif isinstance(opened, int):
                    os.unlink(name, dir_fd=opened)
                else:
                    os.unlink(opened / name)
            except FileNotFoundError:
                pass
            except OSError:
                left.append(name)
    return left


def sync_folder(folder: Path) -> None:
    """Make renames and new names in ``folder`` survive a power cut."""
    if sys.platform == "win32":  # a folder cannot be opened there; NTFS journals names itself
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in NOT_OFFERED:
            raise
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: memoryview) -> None:
    """Write all of ``data``, however little the system takes at a time."""
    while data:
        data = data[os.write(descriptor, data) :]


def temporary_name(name: str) -> str:
    """A name beside ``name`` that cannot be foreseen. It ends in ``name``, unless that is too long for it."""
    shown = name if len(os.fsencode(name)) <= _LONGEST else "long"
    return f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}-{shown}"


def _require_replaceable(path: Path) -> None:
    """Raise OSError where something is that a file must not take the place of."""
    for look in (os.lstat, os.stat):
        try:
            mode = look(path).st_mode
        except OSError:  # nothing is there, or a link that leads nowhere
            return
        if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            kind = "a folder" if stat.S_ISDIR(mode) else "a pipe, a socket or a device"
            raise OSError(errno.EINVAL, f"it is {kind}, which no file replaces", str(path))


@contextmanager
def draft(path: Path) -> Iterator[IO[bytes]]:
    """A new file beside ``path``, which takes its place if the block ends well and is removed otherwise.

    ``path`` is seen either as before or whole, also after a power cut. The file is made exclusively, so that a link or
    a file which somebody has put there is never written to; a link at ``path`` itself is replaced, not followed. What
    is no file (a device, a pipe, or a link to one) is never replaced.

    Parameters
    ----------
    path : pathlib.Path
        Its folder must exist.

    Yields
    ------
    binary file
        For writing and reading.
    """
    _require_replaceable(path)
    # The same folder: os.replace is atomic within one file system only.
    temporary = path.with_name(temporary_name(path.name))
    descriptor = os.open(temporary, _NEW, 0o666)
    try:
        with os.fdopen(descriptor, "w+b") as handle:
            yield handle
            handle.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def write_file(path: Path, data: bytes | memoryview) -> None:
    """Replace ``path`` by ``data``; see :func:`draft`, which says what is raised.

    Parameters
    ----------
    path : pathlib.Path
        Its folder must exist.
    data : bytes or memoryview
        Contiguous.
    """
    with draft(path) as handle:
        write_all(handle.fileno(), memoryview(data).cast("B"))


def write_new(path: Path, data: bytes) -> bool:
    """Write ``path`` whole, unless it is there: of several processes that do so at the same time, one wins.

    Returns
    -------
    bool
        Whether it was written; False where it was there.
    """
    temporary = path.with_name(temporary_name(path.name))
    descriptor = os.open(temporary, _NEW, 0o666)
    try:
        try:
            write_all(descriptor, memoryview(data))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in NOT_OFFERED | {errno.EPERM, errno.EMLINK}:
                raise
            # There are no links: two who come at the same moment may both see nothing, and the later one stands.
            if os.path.lexists(path):
                return False
            os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    sync_folder(path.parent)
    return True


def path_of(path: Any, name: str = "path") -> Path:
    """``path`` as a Path."""
    place = _path_of(path, name)
    try:
        os.lstat(place)
    except OSError as error:  # a file need not be there, or be ours to see; only its name is looked at
        if error.errno == errno.ENAMETOOLONG:
            raise InputError(f"{name}={shown(str(place))}: this name is too long for the file system") from error
    return place


def _path_of(path: Any, name: str) -> Path:
    """As :func:`path_of`, without asking the file system."""
    try:
        text = os.fspath(path)
    except TypeError:
        text = None
    if not isinstance(text, str) or not text or "\0" in text:
        raise InputError(
            f"{name}={shown(path)}: the path of a file or folder is needed, as text (not empty, without NUL) or "
            "pathlib.Path"
        )
    try:
        return Path(text).expanduser()
    except RuntimeError as error:  # of ~ with nobody's name behind it
        raise InputError(f"{name}={shown(text)}: {error}") from error


def output_path(path: Any, suffixes: Sequence[str] = (), what: str = "a file") -> Path:
    """``path`` as a Path to which a file can be written, as far as can be told before anything is computed.

    Parameters
    ----------
    suffixes : sequence of str
        Small letters, each with its dot; any where there are none.
    what : str
        Is written there, for messages.
    """
    file = _path_of(path, "path")
    if suffixes and file.suffix.lower() not in suffixes:
        endings = " or ".join(filter(None, [", ".join(suffixes[:-1]), suffixes[-1]]))
        hint = "; Excel opens .csv" if file.suffix.lower() in (".xlsx", ".xls") and ".csv" in suffixes else ""
        raise OutputError(f"{file}: {what} is written as {endings}, not {file.suffix or '(no suffix)'!r}{hint}")
    try:
        folder, taken = os.stat(file.parent), None
        with contextlib.suppress(FileNotFoundError):
            taken = os.stat(file)
    except OSError as error:
        if isinstance(error, (FileNotFoundError, NotADirectoryError)):
            raise OutputError(f"{file}: there is no folder {str(file.parent)!r}; create it first") from error
        raise OutputError(f"{file}: cannot be written ({error.strerror}); name another file") from error
    if not stat.S_ISDIR(folder.st_mode):
        raise OutputError(f"{file}: {str(file.parent)!r} is no folder; name a file in one")
    if taken is not None and stat.S_ISDIR(taken.st_mode):
        raise OutputError(f"{file}: this is a folder; name a file in it")
    return file


@contextmanager
def writing(path: Path, what: str = "the file") -> Iterator[IO[bytes]]:
    """As :func:`draft`, with errors of ours."""
    with explained(f"{path}: {what} could not be written", _AGAIN), draft(path) as handle:
        yield handle


def stored_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """A member of an archive of ours, none of which is compressed: it takes no more memory than the file has bytes."""
    member = archive.getinfo(name)
    if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
        raise zipfile.BadZipFile(f"{name} is compressed, which pyedmcl never does")
    assert archive.fp is not None
    if member.file_size > archive.fp.seek(0, os.SEEK_END):
        raise zipfile.BadZipFile(f"{name} is to be longer than the whole file")
    return archive.read(member)


def array_of(data: bytes) -> NDArray[Any]:
    """An array from the bytes of an .npy file, which hold exactly what its head says."""
    import numpy as np
    from numpy.lib import format as npy

    stream = io.BytesIO(data)
    version = npy.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"version {version} of its array is not known")
    read_head = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read_head(stream)
    n = math.prod(shape)
    if min(shape, default=0) < 0 or n * max(dtype.itemsize, 1) > len(data) or (
        not dtype.hasobject and n * dtype.itemsize != len(data) - stream.tell()
    ):
        raise ValueError(f"an array of shape {shape} and type {dtype} does not take {len(data)} bytes")
    stream.seek(0)
    return np.asarray(npy.read_array(stream, allow_pickle=False))

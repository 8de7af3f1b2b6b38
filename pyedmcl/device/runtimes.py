"""Make installed OpenCL runtimes visible, load PyOpenCL or dpctl, and keep on disk what they compiled."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import errno
import functools
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import config
from ..atomic_files import read_plain
from ..errors import DeviceNotFoundError, LaunchError, warn
from .info import DeviceInfo

# Where programs and the like are kept between processes, and doing without where the user has no folder for it.
#
# A service or a container's user may have no home folder, or one that cannot be written. Everything is computed there,
# too: PyOpenCL and loopy are told to keep nothing, PoCL, which does not start without a folder, gets one that is
# removed at the end of the process, and a remark says that programs are compiled anew.


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


# What takes long to make is kept on disk: rendered texts, and compiled programs for runtimes that compile anew in every
# process.
#
# A file holds the SHA-256 of its payload and the payload. Its name is a digest of everything the payload depends on: of
# a binary the text, the compiler options, the device, its driver and, for a processor, its instruction sets. A file
# that is damaged or that the driver refuses is as good as none: the payload is made again. The folder belongs to the
# user (``PYEDMCL_CACHE_DIR``) and may be deleted at any time; one in which others may write is not used.


_FORMAT = b"pyedmcl program 1\n"
_DIGEST_BYTES = hashlib.sha256().digest_size
_FILES_KEPT = 2000  # some 100 MB; a whole test run makes fewer


class KeptFiles:
    """Payloads in a folder within the user's cache folder.

    Parameters
    ----------
    folder : str
        Its name.
    maker : str
        Identity of whoever makes the payloads: those of another one are not found.
    """

    def __init__(self, folder: str, maker: str) -> None:
        self._folder, self._maker = config.current().cache_dir / folder, maker

    def load(self, source: str, options: Sequence[str]) -> bytes | None:
        """What was kept for this text and these options, or None."""
        if not self._folder.exists() or not private(self._folder):
            return None
        with contextlib.suppress(OSError):
            data = read_plain(self._path(source, options))
            head = len(_FORMAT)
            digest, payload = data[head : head + _DIGEST_BYTES], data[head + _DIGEST_BYTES :]
            if data.startswith(_FORMAT) and hashlib.sha256(payload).digest() == digest:
                return payload
        return None

    def keep(self, source: str, options: Sequence[str], payload: bytes) -> None:
        """Keep a payload; a folder that cannot be written only means that the next process makes it again."""
        path = self._path(source, options)
        if not private(self._folder):
            return
        with contextlib.suppress(OSError):
            handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
            try:
                with os.fdopen(handle, "wb") as stream:
                    stream.write(_FORMAT + hashlib.sha256(payload).digest() + payload)
                Path(scratch).replace(path)
            except BaseException:
                Path(scratch).unlink(missing_ok=True)
                raise
            self._drop_oldest()

    def _path(self, source: str, options: Sequence[str]) -> Path:
        parts = "\0".join([self._maker, *options, source])
        return self._folder / f"{hashlib.sha256(parts.encode()).hexdigest()}.bin"

    def _drop_oldest(self) -> None:
        """Delete the older half where there are too many files, so that old versions do not fill the disk."""
        files = list(self._folder.glob("*.bin"))
        if len(files) <= _FILES_KEPT:
            return
        for path in sorted(files, key=lambda file: file.stat().st_mtime)[: len(files) // 2]:
            path.unlink(missing_ok=True)


class ProgramCache(KeptFiles):
    """Binaries of one device.

    Parameters
    ----------
    info : DeviceInfo
        The device that the binaries are for.
    """

    def __init__(self, info: DeviceInfo) -> None:
        device = [info.platform, info.version, info.vendor, info.name, info.driver, info.opencl_c, _instruction_sets()]
        super().__init__("programs", "\0".join(device))


@functools.cache
def _instruction_sets() -> str:
    """The processor's instruction sets: machines that share a home folder may call different processors the same."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        return next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return ""


# An OpenCL loader finds runtimes ("ICDs") through small text files in ``/etc/OpenCL/vendors``. Wheels cannot write
# there, and containers often lack the file of the driver they were given. Before the loader reads its list, which it
# does once per process, a private folder is prepared that repeats the registered runtimes and adds the missing ones;
# ``OCL_ICD_VENDORS``, which every loader honours, names that folder for the moment of loading and is then restored,
# so that child processes and other libraries see the environment that the user set.


SYSTEM_VENDORS = Path("/etc/OpenCL/vendors")
INTEL_LIBRARY = "libintelocl.so"
NVIDIA_LIBRARY = "libnvidia-opencl.so.1"
#: What makes SYCL see less than :mod:`pyedmcl` finds; the end of a sentence.
LOADED_BEFORE = (
    "this program used dpctl before pyedmcl had made its runtimes visible: call a function of pyedmcl first, or "
    "register the runtime in /etc/OpenCL/vendors"
)

# In the order of their dependencies. Loaded beforehand because the runtime opens some of them by bare name while it
# works, where its own search path no longer counts.
_INTEL_COMPANIONS = (
    "libintlc.so.5",
    "libirng.so",
    "libsvml.so",
    "libimf.so",
    "libhwloc.so.15",
    "libtcm.so.1",
    "libtbb.so.12",
)

_lock = threading.Lock()
_module: Any = None
_sycl: Any = None
_pid: int | None = None


def library_folders() -> list[Path]:
    """Folders where wheels of this environment put shared libraries, the most specific first."""
    import site

    prefixes = [sys.prefix, sys.base_prefix]
    with contextlib.suppress(Exception):
        prefixes.insert(1, site.getuserbase())
    return list(dict.fromkeys(Path(prefix) / "lib" for prefix in prefixes))


def distribution_file(distribution: str, name: str) -> Path | None:
    """The file called ``name`` that an installed ``distribution`` brought along, if there is one."""
    from importlib import metadata

    try:
        files = metadata.files(distribution) or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name == name:
            path = Path(os.path.normpath(str(file.locate())))
            if path.exists():
                return path
    return None


def intel_library() -> Path | None:
    """``libintelocl.so`` of the wheel ``intel-opencl-rt``, or None."""
    if not sys.platform.startswith("linux"):
        return None
    for folder in library_folders():
        if (folder / INTEL_LIBRARY).exists():
            return folder / INTEL_LIBRARY
    return distribution_file("intel-opencl-rt", INTEL_LIBRARY)


def preload_intel(library: Path) -> list[str]:
    """Load what ``libintelocl.so`` needs; returns the names that could not be loaded."""
    missing = []
    for name in _INTEL_COMPANIONS:
        path: Path | None = library.parent / name
        if path is None or not path.exists():
            path = next((f / name for f in library_folders() if (f / name).exists()), None)
        path = path or distribution_file("intel-cmplr-lib-rt", name)
        try:
            ctypes.CDLL(str(path or name), mode=ctypes.RTLD_GLOBAL)
        except OSError:
            missing.append(name)
    return missing


def loadable(library: str) -> bool:
    """Whether the dynamic linker can load ``library``."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def registered(environ: Mapping[str, str], prefix: Path, system: Path = SYSTEM_VENDORS) -> dict[str, str]:
    """The runtimes a loader would see by itself: file name -> library.

    ``OCL_ICD_VENDORS`` (a folder, an ``.icd`` file or a library) takes the place of the system folder, as it does in
    the loaders. A conda environment has a vendors folder of its own, whose entries are kept where the library they
    name exists: wheels leave files there that name a build path.
    """
    libraries: dict[str, str] = {}
    named = environ.get("OCL_ICD_VENDORS") or ""
    folder = Path(named or environ.get("OPENCL_VENDOR_PATH") or system)
    if named and not folder.is_dir():
        file = folder if folder.is_file() else system / named
        libraries["named.icd"] = _first_line(file) if named.endswith(".icd") else named
    else:
        libraries.update(_read_folder(folder))
    if not named:
        of_environment = _read_folder(prefix / "etc" / "OpenCL" / "vendors")
        libraries.update({f"env-{name}": library for name, library in of_environment.items() if Path(library).exists()})
    return {name: library for name, library in libraries.items() if library}


def _first_line(file: Path) -> str:
    try:
        return file.read_text(errors="replace").strip().splitlines()[0].strip()
    except (OSError, IndexError):
        return ""


def _read_folder(folder: Path) -> dict[str, str]:
    try:
        files = sorted(folder.glob("*.icd"))
    except OSError:
        return {}
    return {file.name: _first_line(file) for file in files}


def additions(known: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Runtimes that are wanted or installed but not among the ``known`` ones: file name -> library.

    ``OCL_ICD_FILENAMES`` (libraries) is repeated here because the loader inside PyOpenCL's wheel does not read it;
    a loader that does notices that it has the library already.
    """
    extra: dict[str, str] = {}
    for index, library in enumerate((environ.get("OCL_ICD_FILENAMES") or "").split(os.pathsep)):
        if library and library not in known.values():
            extra[f"filename-{index}.icd"] = library
    present = {*known.values(), *extra.values()}
    intel = intel_library()
    if intel is not None and str(intel) not in present:
        extra["pyedmcl-intel-cpu.icd"] = str(intel)
    if (
        sys.platform.startswith("linux")
        and NVIDIA_LIBRARY not in {Path(library).name for library in present}
        and loadable(NVIDIA_LIBRARY)
    ):
        extra["pyedmcl-nvidia.icd"] = NVIDIA_LIBRARY
    return extra


def write_folder(root: Path, entries: Mapping[str, str]) -> Path:
    """A folder below ``root`` with one ``.icd`` file per entry.

    Its name is a digest of the environment and of the content. So a folder never changes, two environments or
    settings never meet in one, and processes that start together may write it at the same time.
    """
    text = repr((sys.prefix, sorted(entries.items())))
    folder = root / hashlib.sha256(text.encode()).hexdigest()[:16]
    if not (private(root) and private(folder)):
        raise PermissionError(errno.EPERM, "others may write there", str(folder))
    others = {file.name for file in folder.iterdir() if file.suffix == ".icd"}.difference(entries)
    if others:  # a loader takes all that is there
        raise FileExistsError(errno.EEXIST, f"{', '.join(sorted(others))} should not be there", str(folder))
    for name, library in entries.items():
        target = folder / name
        if _first_line(target) == library:
            continue
        handle, scratch = tempfile.mkstemp(dir=folder, suffix=".tmp")
        with os.fdopen(handle, "w") as stream:
            stream.write(library + "\n")
        Path(scratch).replace(target)
    return folder


@contextlib.contextmanager
def visible() -> Iterator[dict[str, str]]:
    """Within this context a loader that reads its list of runtimes sees all of them; yields the additions."""
    registered_libraries = registered(os.environ, Path(sys.prefix))
    extra = additions(registered_libraries, os.environ)
    for library in (*registered_libraries.values(), *extra.values()):
        if Path(library).name == INTEL_LIBRARY:
            preload_intel(Path(library))
    if not extra:
        yield extra
        return
    entries = {**registered_libraries, **extra}
    with contextlib.ExitStack() as stack:
        try:
            folder = write_folder(config.current().cache_dir / "icd", entries)
        except OSError:  # a read-only home: the files are needed for the moment of loading only
            folder = write_folder(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pyedmcl-"))), entries)
        stack.enter_context(environment(OCL_ICD_VENDORS=str(folder)))
        yield extra


def check_fork() -> None:
    """Raise LaunchError in a process forked from one that had already loaded a driver."""
    if _pid is not None and _pid != os.getpid():
        raise LaunchError(
            "A device was in use before this process was forked, and drivers do not survive a fork. Start worker "
            "processes with the 'spawn' or 'forkserver' method, or use no device before the workers exist."
        )


def in_use() -> None:
    """Note that this process has loaded a driver, which does not survive a fork."""
    global _pid
    _pid = os.getpid()


def opencl() -> Any:
    """The module pyopencl, imported with every runtime visible.

    A program that has listed OpenCL platforms by itself before has fixed what is visible; nothing is added then.
    """
    global _module
    check_fork()
    if _module is not None:
        return _module
    with _lock:
        if _module is None:
            with visible(), for_runtimes():
                try:
                    import pyopencl
                except ImportError as error:
                    raise DeviceNotFoundError(
                        f"PyOpenCL cannot be imported ({error}). Install it with: pip install pyopencl"
                    ) from error
                in_use()
                with contextlib.suppress(pyopencl.Error):  # no runtime at all: discovery reports an empty list
                    pyopencl.get_platforms()
            # Drivers chat in their build logs on success; the log stays readable on the program that was built.
            warnings.filterwarnings("ignore", category=pyopencl.CompilerWarning)
            if not others_usable():
                pyopencl._PYOPENCL_NO_CACHE = True
            _module = pyopencl
            tell()
    return _module


#: The oldest dpctl that serves: those before leak, or hold arrays of their own.
DPCTL_FROM = (0, 22, 1)


def sycl() -> Any:
    """The module dpctl, imported with every OpenCL runtime visible; it fixes what it sees when it first lists devices.
    """
    global _sycl
    check_fork()
    if _sycl is not None:
        return _sycl
    with _lock:
        if _sycl is None:
            with visible(), for_runtimes():
                try:
                    import dpctl
                    import dpctl.memory
                    import dpctl.program
                except ImportError as error:
                    raise DeviceNotFoundError(
                        f"device='sycl' needs dpctl, which cannot be imported ({error}). Install it with: "
                        "pip install 'pyedmcl[sycl]'"
                    ) from error
                version = tuple(int(part) for part in re.findall(r"\d+", dpctl.__version__)[:3])
                if version < DPCTL_FROM:
                    raise DeviceNotFoundError(
                        f"device='sycl' needs dpctl {'.'.join(map(str, DPCTL_FROM))} or newer, and "
                        f"{dpctl.__version__} is installed: pip install --upgrade 'pyedmcl[sycl]'"
                    )
                in_use()
                dpctl.get_devices()
            _sycl = dpctl
    return _sycl

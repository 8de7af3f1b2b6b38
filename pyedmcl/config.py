"""The one reader of environment variables and of the user's folders, and whether a process still runs."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

# Whether a process of this machine still runs.


def runs(pid: int, *, unknown: bool = True) -> bool:
    """Whether there is a process of this number; ``unknown`` on a system where that cannot be asked.

    Numbers are used again: it may be another process than the one that is meant.
    """
    if sys.platform == "win32":  # os.kill would end the process there
        return unknown
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


#: Defaults only; what is known; also tune before long jobs; tune whatever is asked for.
TUNE_MODES = ("never", "cached", "auto", "force")

#: A folder that can be neither read nor made.
_NOWHERE = Path(os.devnull) / "no-home"

#: Seconds without a sign of life after which a claim counts as lost.
CLAIM_LIFETIME = 60.0


@dataclass(frozen=True)
class Config:
    """Settings taken from the environment.

    Attributes
    ----------
    cache_dir, data_dir : pathlib.Path
        ``PYEDMCL_CACHE_DIR`` and ``PYEDMCL_DATA_DIR``, else the platform's usual folders.
    """

    # ``PYEDMCL_DEVICE``: which device to use where the caller names none.
    device: str | None
    # ``PYEDMCL_MEMORY_FRACTION``: share of the device's memory that may be used, in (0, 1].
    memory_fraction: float
    # ``PYEDMCL_MEMORY_LIMIT``: upper bound of device memory in bytes.
    memory_limit: int | None
    # ``PYEDMCL_TUNE``: which tuned parameters are used where the caller does not say, one of :data:`TUNE_MODES`.
    tune: str = "cached"
    # ``PYEDMCL_CLAIM_LIFETIME``: seconds after which a process that shares a folder and gives no sign of life counts as
    # gone.
    claim_lifetime: float = CLAIM_LIFETIME

    @property
    def client_timeout(self) -> float:
        """``PYEDMCL_CLIENT_TIMEOUT``: how many seconds a job waits for a worker of ``client=``."""
        return _number("PYEDMCL_CLIENT_TIMEOUT") or 300.0

    @property
    def spool_dir(self) -> Path | None:
        """``PYEDMCL_SPOOL_DIR``: a folder that the workers of ``client=`` see, for what they are to compute."""
        named = os.environ.get("PYEDMCL_SPOOL_DIR", "").strip()
        return Path(named).expanduser() if named else None

    @property
    def cache_dir(self) -> Path:
        return _folder("PYEDMCL_CACHE_DIR", "cache")

    @property
    def data_dir(self) -> Path:
        return data_dir()


def data_dir() -> Path:
    """:attr:`Config.data_dir`, without reading the rest."""
    kept = _kept.get()
    if kept is None:
        return _folder("PYEDMCL_DATA_DIR", "data")
    if kept.data_dir is None:
        kept.data_dir = _folder("PYEDMCL_DATA_DIR", "data")
    return kept.data_dir


# What the usual folders of a user follow from, on any system.
_HOMES = ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA")


def _folder(variable: str, kind: str) -> Path:
    return _folder_by(kind, os.environ.get(variable), *map(os.environ.get, _HOMES))


@functools.lru_cache(maxsize=64)  # it is asked for several times in a call, and takes as long as a launch to find out
def _folder_by(kind: str, named: str | None, *homes: str | None) -> Path:
    try:
        return Path(named).expanduser() if named else _usual_folder(kind)
    except RuntimeError:  # the home of this user is not known
        return _NOWHERE


def _usual_folder(kind: str) -> Path:
    import platformdirs

    folder = Path(getattr(platformdirs, f"user_{kind}_dir")("pyedmcl", appauthor=False))
    # Versions that do not raise RuntimeError leave "~", which would be a folder in the working directory.
    return folder if folder.is_absolute() else _NOWHERE


def _number(variable: str) -> float | None:
    text = os.environ.get(variable, "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        from .errors import InputError

        raise InputError(f"{variable}={text!r}: a positive, finite number is needed")
    return value


def _tune() -> str:
    mode = os.environ.get("PYEDMCL_TUNE", "").strip().lower() or "cached"
    if mode not in TUNE_MODES:
        from .errors import InputError

        raise InputError(f"PYEDMCL_TUNE={mode!r}: one of {', '.join(TUNE_MODES)} is needed")
    return mode


@dataclass
class _Kept:
    """What was read of the environment, as far as it was asked for."""

    settings: Config | None = None
    data_dir: Path | None = None


_kept: ContextVar[_Kept | None] = ContextVar("kept", default=None)


@contextlib.contextmanager
def read_once() -> Iterator[None]:
    """Within the block, the environment is read where it is asked for first: a small call asks some ten times."""
    token = _kept.set(_kept.get() or _Kept())
    try:
        yield
    finally:
        _kept.reset(token)


def is_read_once() -> bool:
    """Whether this is within :func:`read_once`, as each public function is."""
    return _kept.get() is not None


def current() -> Config:
    """The settings: the environment is read, within :func:`read_once` only at first."""
    kept = _kept.get()
    if kept is None:
        return _read()
    if kept.settings is None:
        kept.settings = _read()
    return kept.settings


def _read() -> Config:
    limit = _number("PYEDMCL_MEMORY_LIMIT")
    return Config(
        device=os.environ.get("PYEDMCL_DEVICE", "").strip() or None,
        memory_fraction=min(_number("PYEDMCL_MEMORY_FRACTION") or 0.5, 1.0),
        memory_limit=int(limit) if limit else None,
        tune=_tune(),
        claim_lifetime=_number("PYEDMCL_CLAIM_LIFETIME") or CLAIM_LIFETIME,
    )


# Which of its node's processes this one is: SLURM, Open MPI, MPICH and Intel MPI (Hydra), MVAPICH.
LOCAL_RANKS = (
    "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK",
)  # fmt: skip


def local_rank() -> tuple[str, int] | None:
    """The variable that tells which of its node's processes this one is, and its value; None where nothing tells."""
    for name in LOCAL_RANKS:
        text = os.environ.get(name, "").strip()
        if text.isdecimal():
            return name, int(text)
    return None


# Which of the processes of a job this one is, as its scheduler tells: variables that hold the number, the least number
# (or it is that), how many there are (or the greatest number), and the step. Arrays of jobs come before ranks of one.
_PARTS = (
    ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_COUNT", "", "SLURM_ARRAY_TASK_STEP"),
    ("SGE_TASK_ID", "SGE_TASK_FIRST", "", "SGE_TASK_LAST", "SGE_TASK_STEPSIZE"),
    ("LSB_JOBINDEX", "1", "", "LSB_JOBINDEX_END", "LSB_JOBINDEX_STEP"),
    ("SLURM_PROCID", "0", "SLURM_NTASKS", "", ""),
    ("OMPI_COMM_WORLD_RANK", "0", "OMPI_COMM_WORLD_SIZE", "", ""),
    ("PMI_RANK", "0", "PMI_SIZE", "", ""),
)


def part() -> tuple[int, int] | None:
    """Which of how many processes of a job this one is, from 0, as schedulers tell (SLURM, Grid Engine, LSF, MPI)."""

    def value(name: str) -> int | None:
        text = os.environ.get(name, "").strip() if name and not name.isdecimal() else name
        return int(text) if text.isdecimal() else None

    for names in _PARTS:
        number, least, count, greatest, step = map(value, names)
        if number is None or least is None:
            continue
        step = step or 1
        if count is None and greatest is not None:
            count = (greatest - least) // step + 1
        if count is not None and count > 1 and number >= least:
            return (number - least) // step % count, count
    return None


def child_environment() -> dict[str, str]:
    """The environment for a Python process of ours: as it is, and it finds this very package."""
    here = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}

"""The one reader of environment variables and of the user's folders."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

#: Defaults only; what is known; also tune before long jobs; tune whatever is asked for.
TUNE_MODES = ("never", "cached", "auto", "force")

#: A folder that can be neither read nor made.
_NOWHERE = Path(os.devnull) / "no-home"


@dataclass(frozen=True)
class Config:
    """Settings taken from the environment, read anew by each call of :func:`current`.

    Attributes
    ----------
    device : str or None
        ``PYEDMCL_DEVICE``: which device to use where the caller names none.
    memory_fraction : float
        ``PYEDMCL_MEMORY_FRACTION``: share of the device's memory that may be used, in (0, 1].
    memory_limit : int or None
        ``PYEDMCL_MEMORY_LIMIT``: upper bound of device memory in bytes.
    tune : str
        ``PYEDMCL_TUNE``: which tuned parameters are used where the caller does not say, one of :data:`TUNE_MODES`.
    cache_dir, data_dir : pathlib.Path
        ``PYEDMCL_CACHE_DIR`` and ``PYEDMCL_DATA_DIR``, else the platform's usual folders.
    """

    device: str | None
    memory_fraction: float
    memory_limit: int | None
    tune: str = "cached"

    @property
    def cache_dir(self) -> Path:
        return _folder("PYEDMCL_CACHE_DIR", "cache")

    @property
    def data_dir(self) -> Path:
        return _folder("PYEDMCL_DATA_DIR", "data")


def _folder(variable: str, kind: str) -> Path:
    named = os.environ.get(variable)
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


def current() -> Config:
    """Read the environment."""
    limit = _number("PYEDMCL_MEMORY_LIMIT")
    return Config(
        device=os.environ.get("PYEDMCL_DEVICE", "").strip() or None,
        memory_fraction=min(_number("PYEDMCL_MEMORY_FRACTION") or 0.5, 1.0),
        memory_limit=int(limit) if limit else None,
        tune=_tune(),
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


def child_environment() -> dict[str, str]:
    """The environment for a Python process of ours: as it is, and it finds this very package."""
    here = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}

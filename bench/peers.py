"""Other packages, where they are installed, as calls that can be timed beside ours."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from pyedmcl.device.info import DeviceInfo

KEDM = ("kedm", "kedm-cuda13x", "kedm-cuda12x")
#: Variants of PyRQA by the names of its modules: its default, and the fastest three on long series.
PYRQA_VARIANTS: Mapping[str, str | None] = {
    "default": None,
    "no_overlap": "ColumnNoOverlapNoMaterialisation",
    "overlap": "ColumnOverlapNoMaterialisation",
    "bit": "ColumnOverlapMaterialisationBitNoRecycling",
}
#: The variant and the tile edge with which PyRQA was fastest on long series.
PYRQA_FASTEST, PYRQA_EDGE = "no_overlap", 65_000


@dataclass(frozen=True)
class Peer:
    """A call of another package.

    Attributes
    ----------
    label : str
        Name and version of the package.
    call : callable
        Returns what the package returns, when the answer is there.
    """

    label: str
    call: Callable[[], Any]


def installed(*packages: str) -> str | None:
    """Name and version of the first of these packages that is installed."""
    for name in packages:
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
    return None


def kedm(function: str, *args: Any, **kwargs: Any) -> Peer | None:
    """A call of one of kEDM's functions; None where it is not installed.

    Importing kEDM pins the importing thread to one core, which is right for its own team of threads and would leave any
    other library half of a small machine. It is therefore imported and called in a thread of its own.
    """
    label = installed(*KEDM)
    if label is None:
        return None
    thread = _thread()
    try:
        found = getattr(thread.submit(importlib.import_module, "kedm").result(), function)
    except ImportError:
        return None
    return Peer(label, lambda: thread.submit(found, *args, **kwargs).result())


def pyedm(function: str, table: Mapping[str, Any], /, **kwargs: Any) -> Peer | None:
    """A call of one of pyEDM's functions on a data frame with a column of time; None where it is not installed.

    Parameters
    ----------
    function : str
    table : mapping
        Name to a series.
    **kwargs
        Arguments of the function.
    """
    label = installed("pyEDM")
    if label is None:
        return None
    import pandas

    series = {name: np.asarray(values, float) for name, values in table.items()}
    steps = len(next(iter(series.values())))
    frame = pandas.DataFrame({"t": range(1, steps + 1), **series})
    found = getattr(importlib.import_module("pyEDM"), function)
    return Peer(label, lambda: found(frame, **kwargs))


def pyrqa(
    info: DeviceInfo, x: Any, *, m: int, tau: int, radius: float, variant: str = PYRQA_FASTEST, edge: int = PYRQA_EDGE
) -> Peer | None:
    """A whole run of PyRQA on the same device; None where it is not installed, or does not see the device.

    Parameters
    ----------
    info : DeviceInfo
    x : ndarray (n,)
    m, tau : int
    radius : float
    variant : str
        One of :data:`PYRQA_VARIANTS`.
    edge : int
        Of its tiles, in cells; at most as many as there are values.
    """
    label = installed("PyRQA")
    if label is None:
        return None
    place = _place(info)
    if place is None:
        return None
    from pyrqa.analysis_type import Classic
    from pyrqa.computation import RQAComputation
    from pyrqa.metric import EuclideanMetric
    from pyrqa.neighbourhood import FixedRadius
    from pyrqa.opencl import OpenCL
    from pyrqa.settings import Settings
    from pyrqa.time_series import TimeSeries

    series = TimeSeries(x, embedding_dimension=m, time_delay=tau, dtype=np.float32)
    settings = Settings(series, analysis_type=Classic, neighbourhood=FixedRadius(radius),
                        similarity_measure=EuclideanMetric, theiler_corrector=1)  # fmt: skip
    options = _variant_options(PYRQA_VARIANTS[variant])

    def call() -> Any:
        opencl = OpenCL(platform_id=place[0], device_ids=(place[1],))
        return RQAComputation.create(settings, edge_length=min(len(x), edge), opencl=opencl, **options).run()

    return Peer(label, call)


def _variant_options(name: str | None) -> dict[str, Any]:
    """Arguments that ask PyRQA for a variant; none for its default."""
    if name is None:
        return {}
    module = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
    found = getattr(importlib.import_module(f"pyrqa.variants.rqa.radius.{module}"), name)
    return {"variants": (found,), "variants_kwargs": {"optimisations_enabled": True}}


def _place(info: DeviceInfo) -> tuple[int, int] | None:
    """Numbers of platform and device as PyRQA counts them, by its own list."""
    for number, platform in enumerate(importlib.import_module("pyrqa.opencl").cl.get_platforms()):
        if platform.name.strip() != info.platform:
            continue
        for index, device in enumerate(platform.get_devices()):
            if device.name.strip() == info.name and device.driver_version.strip() == info.driver:
                return number, index
    return None


@lru_cache(maxsize=1)
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="peer")

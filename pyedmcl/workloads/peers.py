"""Other packages, where they are installed, as calls that can be timed beside ours."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..device.info import DeviceInfo

#: A peer's call; it returns when the answer is there.
Call = Callable[[], object]
_RQA_EDGE = 65_000  # of PyRQA's tiles, at most: its fastest on long series


def kedm(function: str, *args: Any, **kwargs: Any) -> tuple[str, Call] | None:
    """Name and version of kEDM, and a call of one of its functions; None where it is not installed.

    Importing it pins the importing thread to one core, so it is imported and called in a thread of its own.
    """
    label = _installed("kedm", "kedm-cuda13x", "kedm-cuda12x")
    if label is None:
        return None
    thread = _thread()
    try:
        found = getattr(thread.submit(importlib.import_module, "kedm").result(), function)
    except ImportError:
        return None
    return label, lambda: thread.submit(found, *args, **kwargs).result()


def pyrqa(info: DeviceInfo, x: NDArray[Any], *, m: int, tau: int, radius: float) -> tuple[str, Call] | None:
    """PyRQA on the same device with the variant that was its fastest where all were compared.

    None where it is not installed, or does not see the device.

    Parameters
    ----------
    info : DeviceInfo
    x : ndarray (n,)
    m, tau : int
    radius : float
    """
    label = _installed("PyRQA")
    if label is None:
        return None
    try:
        room = {
            name: importlib.import_module(f"pyrqa.{name}")
            for name in ("opencl", "analysis_type", "computation", "metric", "neighbourhood", "settings", "time_series")
        }
        radius_variants = importlib.import_module("pyrqa.variants.rqa.radius.column_no_overlap_no_materialisation")
        places = _places(info)
    except (ImportError, AttributeError):
        return None
    if places is None:
        return None
    series = room["time_series"].TimeSeries(x, embedding_dimension=m, time_delay=tau, dtype=np.float32)
    settings = room["settings"].Settings(
        series, analysis_type=room["analysis_type"].Classic, neighbourhood=room["neighbourhood"].FixedRadius(radius),
        similarity_measure=room["metric"].EuclideanMetric, theiler_corrector=1,
    )  # fmt: skip
    variant = radius_variants.ColumnNoOverlapNoMaterialisation

    def call() -> object:
        opencl = room["opencl"].OpenCL(platform_id=places[0], device_ids=(places[1],))
        found: object = (
            room["computation"].RQAComputation.create(
                settings, edge_length=min(len(x), _RQA_EDGE), opencl=opencl, variants=(variant,),
                variants_kwargs={"optimisations_enabled": True},
            ).run()
        )  # fmt: skip
        return found

    return label, call


def _places(info: DeviceInfo) -> tuple[int, int] | None:
    """Numbers of platform and device as PyRQA counts them, by its own list."""
    for number, platform in enumerate(importlib.import_module("pyrqa.opencl").cl.get_platforms()):
        if platform.name.strip() != info.platform:
            continue
        for index, device in enumerate(platform.get_devices()):
            if device.name.strip() == info.name and device.driver_version.strip() == info.driver:
                return number, index
    return None


def _installed(*packages: str) -> str | None:
    for name in packages:
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:
            continue
    return None


@lru_cache(maxsize=1)
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="peer")


def names() -> Sequence[str]:
    """Peers that are installed, with their versions."""
    found = (_installed("kedm", "kedm-cuda13x", "kedm-cuda12x"), _installed("PyRQA"))
    return [label for label in found if label is not None]

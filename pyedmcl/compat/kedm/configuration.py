"""What takes the place of Kokkos."""

from __future__ import annotations

from ...device.session import open_device


def get_kokkos_config() -> str:
    """What computes here: a text of several lines.

    Returns
    -------
    str
        There is no Kokkos; the lines name the OpenCL device and its runtime.
    """
    info = open_device(None).info
    return (
        "pyedmcl (OpenCL; no Kokkos)\n"
        f"  Device: {info.name}\n"
        f"  Platform: {info.platform}\n"
        f"  Driver: {info.driver}\n"
        f"  Compute units: {info.compute_units}\n"
    )

"""What must hold for every answer of a device, whatever it was asked: cheap checks of what comes to the host.

A driver, a compiler or a memory that is broken seldom ends in an error. Where its numbers cannot be, no result is
returned: an error names the device and asks for a report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data.extent import present_extent
from ..errors import WrongResultError

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..device.info import DeviceInfo

#: A correlation may pass 1 by rounding errors, which grow where a series hardly varies; wrong numbers pass it by more.
MOST_RHO = 1.01


def wrong_result(info: DeviceInfo, what: str) -> WrongResultError:
    """The error for an answer of a device that cannot be; ``what`` ends the sentence "the device gave"."""
    return WrongResultError(
        f"{info.name} ({info.platform}, driver {info.driver}) gave {what}. Its driver or a kernel is at fault, and "
        "nothing is returned. Please report this with what 'pyedmcl devices --doctor' prints; another device "
        "(device=, --device) or tune='never' may do better."
    )


def require_rho(executor: Executor, rho: NDArray[Any], kernel: str) -> None:
    """Demand that correlations lie within [-1, 1], or are NaN: a series or a prediction does not vary.

    Raises
    ------
    WrongResultError
        One does not.
    """
    if not rho.size:
        return
    least, most = present_extent(rho)  # where nothing is present no comparison holds
    if most > MOST_RHO or least < -MOST_RHO:
        raise wrong_result(executor.info, f"correlations from {least:.4g} to {most:.4g} (kernel {kernel})")


def require_rows(executor: Executor, rows: NDArray[np.int32], n_library: int, kernel: str) -> None:
    """Demand that neighbours are rows of a library, or -1 where there is none.

    Raises
    ------
    WrongResultError
        One is neither.
    """
    if rows.size and (int(rows.min()) < -1 or int(rows.max()) >= n_library):
        raise wrong_result(
            executor.info,
            f"neighbours in rows {int(rows.min()):,} to {int(rows.max()):,} of a library of {n_library:,} rows "
            f"(kernel {kernel})",
        )

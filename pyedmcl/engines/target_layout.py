"""How targets lie on the device: time-major, with room for what the last work-group reads behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..device.info import DeviceInfo
from ..device.memory import MemoryBudget
from ..errors import DeviceMemoryError
from ..kernels import lookup, smap_map
from ..launch.sizes import round_up

#: Rows and columns are rounded up to multiples of it, so that the widest vectors divide the columns, and work-groups
#: the rows.
PADDED_TO = 16


@dataclass(frozen=True)
class TargetLayout:
    """Rows and columns that there is room for, [rows][stride].

    Attributes
    ----------
    rows, stride : int
    """

    rows: int
    stride: int

    @property
    def elements(self) -> int:
        """Numbers that there is room for."""
        return self.rows * self.stride


def layout_of_lookup(n_steps: int, n_targets: int) -> TargetLayout:
    """For a lookup; other programs are told the same by ``usage`` of the SPEC, which a test compares."""
    return _layout(n_steps, n_targets, lookup.MOST_COLUMNS)


def layout_of_smap(n_steps: int, n_targets: int) -> TargetLayout:
    """For a map of S-map, whose last step over the rows of a library may lie behind the last row in part."""
    return _layout(n_steps + smap_map.MOST_STEP, n_targets, smap_map.MOST_COLUMNS)


def _layout(n_steps: int, n_targets: int, most_columns: int) -> TargetLayout:
    """The last work-group may read ``most_columns`` numbers behind the last column, in rows that must be there."""
    stride = round_up(n_targets, PADDED_TO)
    return TargetLayout(round_up(n_steps + -(-most_columns // stride), PADDED_TO), stride)


def require_room(info: DeviceInfo, limit: MemoryBudget, shape: tuple[int, int], nbytes: int) -> None:
    """Refuse targets (n_steps, n_targets) that take more than three quarters of the memory, which libraries need, too.

    Raises
    ------
    DeviceMemoryError
        With what they need and what there is.
    """
    most = min(limit.largest, limit.total * 3 // 4)
    if nbytes > most:
        raise DeviceMemoryError(
            f"{shape[1]:,} targets of {shape[0]:,} steps need {nbytes:,} bytes on the device; {most:,} may be used for "
            f"them on {info.name} (raise PYEDMCL_MEMORY_FRACTION or PYEDMCL_MEMORY_LIMIT)"
        )


def columns_of_rho(order: NDArray[Any]) -> NDArray[np.int32]:
    """The column of rho of each target of a lookup, with zeros behind them that the last work-group may read."""
    return np.concatenate([order, np.zeros(lookup.MOST_COLUMNS, order.dtype)]).astype(np.int32)

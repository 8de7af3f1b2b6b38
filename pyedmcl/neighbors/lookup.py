"""How a lookup is laid out on a device: groups, their columns of targets, and whether these are staged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..device.info import DeviceInfo
from ..device.quirks import quirks_for
from ..kernels import spec
from ..plan import round_up
from ..tuning.policy import parameters

# Lookups of a staged value that repay its staging.
_REPAID = 16
_ROW_LANES_MOST = 128


@dataclass(frozen=True)
class Shape:
    """The launch of one class of targets.

    Attributes
    ----------
    parameters : mapping
        Tuned parameters, with fewer libraries at once where there are few.
    columns, group : int
        Targets and work-items of a group.
    slices : int
        Groups that share a block of columns, each with every so many-th library.
    stage_rows : int
        Steps that a group's local array has room for; 0: targets are read from the caches.
    """

    parameters: Mapping[str, Any]
    columns: int
    group: int
    slices: int
    stage_rows: int


class Shapes:
    """Shapes of the lookups of one job.

    Parameters
    ----------
    info : DeviceInfo
    n_steps : int
    dtype : str
    """

    def __init__(self, info: DeviceInfo, n_steps: int, dtype: str) -> None:
        self._info, self._n_steps, self._dtype = info, n_steps, dtype
        self._itemsize = np.dtype(dtype).itemsize
        self._local = quirks_for(info).local_bytes
        # One compiled kernel serves lengths that differ little.
        self._padded = round_up(n_steps, 256)

    def chosen(self, k: int, width: int) -> Mapping[str, Any]:
        """Tuned parameters for ``width`` targets with ``k`` neighbours."""
        given = {"dtype": self._dtype, "k": k, "columns": width}
        return parameters(spec("lookup"), given, self._info, {"rows": self._n_steps, "targets": width}).parameters

    def shape(self, k: int, width: int, n_libraries: int) -> Shape:
        """The launch for ``width`` targets of ``n_libraries`` tables with ``k`` neighbours."""
        chosen = dict(self.chosen(k, width))
        columns = chosen["target_lanes"] * chosen["lanes"] * chosen["vectors"]
        blocks, units = -(-width // columns), self._info.compute_units
        # Few libraries are spread over all units: a group takes fewer at once, with more work-items for each.
        while chosen["library_lanes"] > 1 and blocks * -(-n_libraries // chosen["library_lanes"]) < 3 * units // 4:
            chosen["library_lanes"] //= 2
            chosen["row_lanes"] = min(2 * chosen["row_lanes"], _ROW_LANES_MOST)
        slices = -(-n_libraries // chosen["library_lanes"])
        stage_rows = 0
        nbytes = (self._padded + 2 * chosen["row_lanes"] * chosen["library_lanes"]) * columns * self._itemsize
        if chosen["stage"] and nbytes <= self._local:
            # Few groups, each with many libraries, repay the staging; they should fill the device in even shares.
            resident = units * (self._local // nbytes)
            shared = -(-slices // -(-slices * blocks // resident))
            if n_libraries * k >= _REPAID * shared:
                slices, stage_rows = shared, self._padded
        group = chosen["target_lanes"] * chosen["row_lanes"] * chosen["library_lanes"]
        return Shape(chosen, columns, group, slices, stage_rows)

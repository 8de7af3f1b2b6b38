"""How a lookup is laid out on a device: groups, their columns of targets, and whether these are staged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import isqrt
from typing import Any

import numpy as np

from ..device.info import DeviceInfo
from ..device.quirks import quirks_for
from ..kernels import spec
from ..kernels.lookup import STRANDS
from ..launch.sizes import round_up
from ..tuning.parameters import ParameterChoice, adjusted, parameters

# Lookups of a staged value that repay its staging.
_REPAID = 16
_ROW_LANES_MOST = 128
# Bytes of a step's targets that fill all banks of local memory: reads of wider steps meet as often.
_BANKS_BYTES = 128
# Libraries of a map that keep groups busy that are as wide as local memory allows.
_MANY_LIBRARIES = 512
# Targets of 16 bits: their bytes, how many are 16 bytes, work-items of a group, and the most neighbours of which
# several rows are looked up at once.
_CODE_BYTES, _CODES_MOST, _CODES_GROUP, _UNROLLED_MOST = 2, 8, 512, 6
# Sums over the rows of a library that lie in local memory: of p, p p and p o.
_SUMS = 3
# Bytes of an entry of a narrow table.
_ENTRY_BYTES = 6
# Libraries that a group looks through for marked pairs, at least.
_LIBRARIES_AGAIN = 8
# Multiply-adds of a class of targets, at most, that the kernel for any number of neighbours looks up. On processors it
# takes up to 1.4 times as long, 0.1 ms here, where compiling one more kernel takes 100 ms. On an H200 it takes 1.05 to
# 1.3 times as long, 0.01 ms here, where one more kernel takes 200 to 300 ms once.
_FEW_OPERATIONS, _FEW_ON_GPUS = 1e7, 1e8
# What it costs to begin a group, in reads of a target for each row (a library takes k + 1 of them): to sum
# observations, and to fetch targets for local memory.
_OBSERVING, _STAGING = 1.0, 40.0


@dataclass(frozen=True)
class LookupShape:
    """The launch of one class of targets.

    Attributes
    ----------
    parameters : mapping
        Tuned parameters, with fewer libraries at once where there are few.
    columns, group : int
        Targets and work-items of a group.
    blocks : int
        Blocks of columns of a launch.
    cost : float
        Operations of a block for each library and query row.
    slices : int
        Groups that share a column tile: of n, group i has the libraries i, i + n, i + 2 n, ..
    stage_rows : int
        Steps that a group's local array has room for; 0: targets are read from the caches.
    local_sums : int
        What of the sums over rows waits in local memory between chunks: 0 nothing, 1 what rounding left over, 2 the
        sums as well.
    """

    parameters: Mapping[str, Any]
    columns: int
    group: int
    blocks: int
    cost: float
    slices: int
    stage_rows: int
    local_sums: int = 0


class LookupShapes:
    """Shapes of the lookups of one job.

    Parameters
    ----------
    info : DeviceInfo
    n_steps : int
    dtype : str
    n_libraries : int
        Of the whole map.
    """

    def __init__(self, info: DeviceInfo, n_steps: int, dtype: str, n_libraries: int) -> None:
        self._info, self._n_steps, self._dtype, self._n_libraries = info, n_steps, dtype, n_libraries
        self._itemsize = np.dtype(dtype).itemsize
        quirks = quirks_for(info)
        self._local, self._groups = quirks.local_bytes, quirks.groups_at_once
        # One compiled kernel serves lengths that differ little.
        self._padded = round_up(n_steps, 256)
        # A job asks for few shapes, again and again.
        self._choices: dict[tuple[int, int], ParameterChoice] = {}
        self._narrowed: dict[tuple[int, int, bool], dict[str, Any]] = {}

    def chosen(self, k: int, width: int) -> ParameterChoice:
        """Tuned parameters for ``width`` targets with ``k`` neighbours."""
        if (k, width) not in self._choices:
            specialisation = {"dtype": self._dtype, "k": k, "columns": width}
            sizes = {"rows": self._n_steps, "targets": width}
            self._choices[k, width] = parameters(spec("lookup"), specialisation, self._info, sizes)
        return self._choices[k, width]

    def _fitted(self, k: int, width: int, *, compact: bool) -> dict[str, Any]:
        """The chosen parameters, with groups that are no wider than the targets and that use the whole device."""
        if (k, width, compact) in self._narrowed:
            return self._narrowed[k, width, compact]
        choice = self.chosen(k, width)
        chosen = self._narrowed[k, width, compact] = dict(choice.parameters)
        if compact:
            self._halved(chosen, k, width)
        else:
            self._widen(chosen, width)
        # What suits similar numbers of targets may be more than twice as wide as these are.
        for name in ("target_lanes", "vectors"):
            while chosen[name] > 1 and chosen["target_lanes"] * chosen["lanes"] * chosen["vectors"] // 2 >= width:
                chosen[name] //= 2
        every = -(-width // (chosen["target_lanes"] * chosen["lanes"] * chosen["vectors"]))
        # Few libraries are spread over all units: a group takes fewer at once, with more work-items for each. By the
        # number of the whole map, so that all of its blocks share one compiled kernel.
        n_units, n_all = self._info.compute_units, self._n_libraries
        while chosen["library_lanes"] > 1 and every * -(-n_all // chosen["library_lanes"]) < 3 * n_units // 4:
            chosen["library_lanes"] //= 2
            chosen["row_lanes"] = min(2 * chosen["row_lanes"], _ROW_LANES_MOST)
        why = "groups are as wide as local memory and the targets allow, and few libraries are spread over all units"
        adjusted(choice, chosen, why + ("; targets of 16 bits lie in wider vectors" if compact else ""))
        return chosen

    def _widen(self, chosen: dict[str, Any], width: int) -> None:
        """Let a staged group own as many targets as local memory has room for, with fewer libraries at once.

        Tuned parameters serve lengths of which the longest is four times the shortest. They may own as few targets as
        the longest leaves room for. Groups of twice the targets read tables half as often. Only targets of 32 bits were
        measured (docs/design/lookup.md).
        """
        if not chosen["stage"] or chosen["row_lanes"] != STRANDS or self._dtype != "float32":
            return
        if self._n_libraries < _MANY_LIBRARIES:
            return
        lanes = chosen["lanes"] * chosen["vectors"]
        legal = next(each.values for each in spec("lookup").tunables if each.name == "target_lanes")
        while chosen["library_lanes"] > 1 and lanes * chosen["target_lanes"] < width:
            wider = {"target_lanes": 2 * chosen["target_lanes"], "library_lanes": chosen["library_lanes"] // 2}
            twice, illegal = {**chosen, **wider}, wider["target_lanes"] not in legal
            too_wide = lanes * twice["target_lanes"] * self._itemsize > _BANKS_BYTES
            if illegal or too_wide or self._staged_bytes(twice, compact=False) > self._local:
                return
            chosen.update(twice)

    def _halved(self, chosen: dict[str, Any], k: int, width: int) -> None:
        """Change parameters for targets of 32 bits into some for half the bytes.

        In local memory vectors of the same bytes hold twice the targets, and a group owns twice as many of them: tables
        are then read half as often. Where these do not fit, a group owns as many as before.
        """
        if not quirks_for(self._info).scalar_work_items or chosen["lanes"] > _CODES_MOST // 2:
            return
        wide = dict(chosen)
        wide["stage"] = True
        while wide["lanes"] < _CODES_MOST and wide["lanes"] * wide["target_lanes"] < width:
            wide["lanes"] *= 2
        while wide["target_lanes"] > 1 and self._staged_bytes(wide, compact=True) > self._local:
            wide["target_lanes"] //= 2
            wide["row_lanes"] = min(2 * wide["row_lanes"], _ROW_LANES_MOST)
        if wide["lanes"] == _CODES_MOST and wide["row_lanes"] >= STRANDS and self._n_libraries >= _MANY_LIBRARIES:
            # Many libraries at once instead of work-items that share a strand of rows, and groups that registers allow.
            wide["row_lanes"] = STRANDS
            wide["library_lanes"] = max(_CODES_GROUP // (STRANDS * wide["target_lanes"]), 1)
            most = 4 if self._local_sums(wide, k, compact=True) else 2 * wide["target_lanes"]
            wide["unroll"] = min(wide["unroll"], most) if k <= _UNROLLED_MOST else 1
        if self._staged_bytes(wide, compact=True) <= self._local:
            chosen.update(wide)

    def _local_sums(self, chosen: Mapping[str, Any], k: int, *, compact: bool) -> int:
        """What of its sums a staged group keeps in local memory: as much as leaves its tables room in the cache.

        Targets of 32 bits need fewer registers for their sums. They were faster so only where local memory has room for
        several groups (docs/design/lookup.md).
        """
        if chosen["row_lanes"] != STRANDS or self._dtype != "float32":
            return 0
        if not compact and 2 * self._staged_bytes(chosen, compact=False) > self._local:
            return 0
        # What all work-items read of tables for one row each.
        row = STRANDS * chosen["library_lanes"] * round_up(k, 4) * _ENTRY_BYTES
        for some in (2, 1):
            nbytes = self._staged_bytes(chosen, compact=compact, local_sums=some)
            if nbytes <= self._local and nbytes + row <= self._local + quirks_for(self._info).cache_beside:
                return some
        return 0

    def takes_any_k(self, k: int, width: int) -> bool:
        """Whether ``width`` targets with ``k`` neighbours are too little work to repay a kernel of their own."""
        per_target = float(self._n_libraries) * self._n_steps * k
        if quirks_for(self._info).scalar_work_items:
            few = per_target * width <= _FEW_ON_GPUS
        else:
            lanes = spec("lookup").defaults("cpu")["lanes"]
            few = width <= lanes and per_target * lanes <= _FEW_OPERATIONS
        return few and self.chosen(k, width).grade != "forced"

    def _for_any_k(self, k: int, width: int) -> Mapping[str, Any]:
        """The parameters of a kernel that serves any number of neighbours: one for all classes on processors.

        On GPUs, whose classes have any number of targets, it is one for those that share tuned parameters.
        """
        if quirks_for(self._info).scalar_work_items:
            return self._fitted(k, width, compact=False)
        chosen = {**spec("lookup").defaults("cpu"), "vectors": 1}
        return adjusted(self.chosen(k, width), chosen, "one kernel serves all dimensions that have few targets")

    def _staged_bytes(self, chosen: Mapping[str, Any], *, compact: bool, local_sums: int = 0) -> int:
        """Local memory of a group whose targets are staged; its sums wait there or are only put together."""
        columns = chosen["target_lanes"] * chosen["lanes"] * chosen["vectors"]
        places = max(_SUMS * local_sums, 2) * chosen["row_lanes"] * chosen["library_lanes"]
        sums = (places + (3 if compact else 2)) * self._itemsize
        return int((self._padded * (_CODE_BYTES if compact else self._itemsize) + sums) * columns)

    def again(self, width: int, n_libraries: int) -> LookupShape:
        """The launch that looks for marked pairs of ``width`` targets, and computes them."""
        chosen = spec("lookup").defaults(quirks_for(self._info).defaults_for)
        columns = chosen["target_lanes"] * chosen["lanes"] * chosen["vectors"]
        blocks, group = -(-width // columns), chosen["target_lanes"] * chosen["row_lanes"] * chosen["library_lanes"]
        slices = min(max(n_libraries // _LIBRARIES_AGAIN, 1), max(self._info.compute_units * self._groups // blocks, 1))
        return LookupShape(chosen, columns, group, blocks, 0.0, slices, 0)

    def shape(
        self, k: int, width: int, n_libraries: int, units: Callable[[float], int], *, compact: bool = False,
        any_k: bool = False, like: int | None = None,
    ) -> LookupShape:  # fmt: skip
        """The launch for ``width`` targets of ``n_libraries`` tables with ``k`` neighbours.

        ``units`` says how many units of work a launch may have, from the operations that a unit takes for each library
        and query row.
        A kernel for any number of neighbours takes the parameters of ``like`` neighbours, where that is given.
        """
        chosen = self._for_any_k(like or k, width) if any_k else self._fitted(k, width, compact=compact)
        columns = chosen["target_lanes"] * chosen["lanes"] * chosen["vectors"]
        every, n_units = -(-width // columns), self._info.compute_units
        cost = 2.0 * columns * (k + 5)
        blocks = -(-every // -(-every // max(units(cost), 1)))  # even shares of the launches
        tasks, reads = -(-n_libraries // chosen["library_lanes"]), chosen["library_lanes"] * (k + 1)
        slices, stage_rows = even_shares(blocks, tasks, n_units * self._groups, _OBSERVING / reads), 0
        nbytes = self._staged_bytes(chosen, compact=compact)
        if chosen["stage"] and nbytes <= self._local:
            # Few groups, each with many libraries, repay the staging.
            shared = even_shares(blocks, tasks, n_units * (self._local // nbytes), (_OBSERVING + _STAGING) / reads)
            if n_libraries * k >= _REPAID * shared:
                slices, stage_rows = shared, self._padded
        local_sums = self._local_sums(chosen, k, compact=compact) if stage_rows and not any_k else 0
        group = chosen["target_lanes"] * chosen["row_lanes"] * chosen["library_lanes"]
        return LookupShape(chosen, columns, group, blocks, cost, slices, stage_rows, local_sums)


@lru_cache(maxsize=1024)
def even_shares(blocks: int, tasks: int, resident: int, begun: float) -> int:
    """Into how many slices to cut each block's tasks so that a device is busy evenly until the end.

    Parameters
    ----------
    blocks, tasks : int
        A group does one slice of the tasks of one block.
    resident : int
        Groups that run at once.
    begun : float
        What it costs to begin a group, in tasks.
    """

    def cost(slices: int) -> tuple[float, int]:
        return -(-blocks * slices // resident) * (-(-tasks // slices) + begun), slices

    several = range(1, isqrt(tasks) + 2)
    return min({min(n, tasks) for n in several} | {-(-tasks // n) for n in several}, key=cost)

"""States of a series in the order of a k-d tree, with boxes around its leaves, made on the device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..kernels import spec
from ..launch.pool import Pool
from ..launch.sizes import open_size, round_up
from ..tuning.parameters import adjusted, parameters
from .pruned_axes import PrincipalAxes
from .series import DeviceSeries

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor

FAN = 16  # children of a node, of the templates
PLACES = 128  # an order is padded to whole tiles of queries, of any size that is tuned
LEAST_PER_COUNTER = 8  # states of a part: the counters of all parts take half a byte a state, as memory is planned for
_KEY_BITS = 32
_PLACE_BITS = 16  # of a place along a node's axis at least; ever smaller nodes are cut ever more finely


@dataclass(frozen=True)
class OrderShape:
    """Sizes of an order of ``n`` states in leaves of ``leaf`` states."""

    n: int
    leaf: int
    axes: int
    itemsize: int

    @property
    def padded(self) -> int:
        return round_up(self.n, max(PLACES, self.leaf))

    @property
    def parents(self) -> list[int]:
        """Nodes with up to :data:`FAN` children, level by level, the root last."""
        nodes = -(-self.n // self.leaf)
        out: list[int] = []
        while not out or out[-1] > 1:
            nodes = -(-nodes // FAN)
            out.append(nodes)
        return out

    @property
    def kept_bytes(self) -> int:
        """Rows, coordinates and boxes."""
        parents = sum(self.parents)
        boxes = parents * FAN * (2 * self.axes * self.itemsize + 4)
        return self.padded * (4 + (self.axes + 1) * self.itemsize) + boxes

    @property
    def scratch_bytes(self) -> int:
        """What making it takes besides."""
        return self.n * (4 + 4 * 4 + (self.axes + 1) * self.itemsize) + self.n // 2 + (1 << 20)

    @property
    def largest_bytes(self) -> int:
        return self.padded * (self.axes + 1) * self.itemsize

    def rounds(self) -> list[tuple[int, int]]:
        """(binary logarithm of a node's states, nodes) of each round of sorting.

        A node is cut into four, the first perhaps into two.
        """
        if self.n <= self.leaf:
            return []
        doublings = (-(-self.n // self.leaf) - 1).bit_length()
        log_leaf = self.leaf.bit_length() - 1
        if self.axes == 1:
            return [(log_leaf + doublings, 1)]
        out = [(log_leaf + doublings, 1)] if doublings % 2 else []
        left = doublings - doublings % 2
        for bits in range(left, 0, -2):
            out.append((log_leaf + bits, -(-self.n // (self.leaf << bits))))
        return out


@dataclass(frozen=True)
class Order:
    """An order on the device.

    Attributes
    ----------
    shape : OrderShape
    rows : Buffer
        int32 (padded,), -1 behind the last.
    places : Buffer
        Coordinates (axes + 1, padded); the last row holds what each may be off by.
    boxes, first_rows : Buffer
        Of leaves and of nodes above them, level by level.
    """

    shape: OrderShape
    rows: Buffer
    places: Buffer
    boxes: Buffer
    first_rows: Buffer


class Orderer:
    """Makes orders of delay-embedded states.

    Parameters
    ----------
    executor : Executor
    pool : Pool
        For scratch memory and for the orders, which live until one of the same name is made.
    E, tau : int
    dtype : str
    leaf : int
        States of a leaf, a power of two.
    """

    def __init__(self, executor: Executor, pool: Pool, E: int, tau: int, dtype: str, leaf: int) -> None:
        self.executor, self.pool = executor, pool
        self.E, self.tau, self.dtype, self.leaf = E, tau, np.dtype(dtype), leaf

    def make(self, name: str, series: DeviceSeries, rows: NDArray[np.int32], axes: PrincipalAxes) -> Order:
        """Order the states of some rows; ``rows`` holds at least one."""
        specialisation = {"dtype": self.dtype.name, "axes": axes.n_axes, "leaf": self.leaf}
        info = self.executor.info
        choice = parameters(spec("pruned_order"), specialisation, info, {"rows": len(rows)})
        fitted = in_enough_parts(choice.parameters, len(rows), info.compute_units)
        values = adjusted(choice, fitted, "a short series is sorted in parts for all compute units")
        run = _Kernels(self.executor, {**specialisation, **values})
        shape = OrderShape(len(rows), self.leaf, axes.n_axes, self.dtype.itemsize)
        rows_on_device = self.executor.upload(rows, self.pool.get("pruned rows", rows.nbytes))
        coordinates = self.pool.get("pruned coordinates", shape.n * (shape.axes + 1) * shape.itemsize)
        ids = [self.pool.get(f"pruned id {place}", shape.n * 4) for place in (0, 1)]
        self._project(run, series, rows_on_device, axes, coordinates, ids[0], shape)
        self._sort(run, coordinates, ids, shape)
        order = self._empty(name, shape)
        run(
            "gather", shape.padded, rows=rows_on_device, id=ids[0], coordinates=coordinates, n=shape.n,
            padded=shape.padded, row=order.rows, ordered=order.places,
        )  # fmt: skip
        self._box(run, order)
        return order

    def _empty(self, name: str, shape: OrderShape) -> Order:
        get, nodes = self.pool.get, sum(shape.parents)
        return Order(
            shape,
            get(f"{name} rows", shape.padded * 4),
            get(f"{name} places", shape.padded * (shape.axes + 1) * shape.itemsize),
            get(f"{name} boxes", nodes * FAN * 2 * shape.axes * shape.itemsize),
            get(f"{name} first rows", nodes * FAN * 4),
        )

    def _project(
        self, run: _Kernels, series: DeviceSeries, rows: Buffer, axes: PrincipalAxes, coordinates: Buffer,
        ids: Buffer, shape: OrderShape,
    ) -> None:  # fmt: skip
        """Coordinates of all states along the axes."""
        basis = self.executor.upload(axes.axes, self.pool.get("pruned axes", axes.axes.nbytes))
        run(
            "project", shape.n, series=series.buffer, first=series.first, rows=rows, n=shape.n, E=self.E,
            tau=self.tau, centre=axes.centre, rounding=axes.rounding, basis=basis, coordinates=coordinates, id=ids,
        )  # fmt: skip

    def _sort(self, run: _Kernels, coordinates: Buffer, ids: list[Buffer], shape: OrderShape) -> None:
        """Put ``ids[0]`` into the order of the tree, level by level, by counting sorts."""
        get, n = self.pool.get, shape.n
        keys = [get(f"pruned key {place}", n * 4) for place in (0, 1)]
        wg, bits = int(run.values["wg"]), int(run.values["bits"])
        parts = -(-n // (wg * int(run.values["each"])))
        counts = get("pruned counts", (parts << bits) * 4)
        scanners = 256 if wg >= 128 else wg
        for log_size, nodes in shape.rounds():
            axis, place = get("pruned axis", nodes * 4), get("pruned place", nodes * 2 * shape.itemsize)
            if shape.axes > 1:
                run(
                    "axes_of", nodes, coordinates=coordinates, n=n, id=ids[0], log_size=log_size, nodes=nodes,
                    axis=axis, place=place,
                )  # fmt: skip
            node_bits = (nodes - 1).bit_length()
            axis_bits = _KEY_BITS if shape.axes == 1 else _PLACE_BITS
            total = min(round_up(node_bits + axis_bits, bits), _KEY_BITS)
            run(
                "keys_of", n, coordinates=coordinates, n=n, id=ids[0], log_size=log_size, place_bits=total - node_bits,
                axis=axis, place=place, key=keys[0],
            )  # fmt: skip
            for shift in range(0, total, bits):
                run("count", parts * wg, wg, key=keys[0], n=n, shift=shift, parts=parts, counts=counts)
                run("scan", scanners, scanners, counts=counts, total=parts << bits)
                run(
                    "scatter", parts * wg, wg, key=keys[0], id=ids[0], n=n, shift=shift, parts=parts, counts=counts,
                    new_key=keys[1], new_id=ids[1],
                )  # fmt: skip
                keys.reverse()
                ids.reverse()

    def _box(self, run: _Kernels, order: Order) -> None:
        """Boxes of leaves, then of the nodes above them, level by level."""
        shape, parents = order.shape, order.shape.parents
        run(
            "leaf_boxes", parents[0] * FAN, row=order.rows, ordered=order.places, n=shape.n, padded=shape.padded,
            parents=parents[0], boxes=order.boxes, first_row=order.first_rows,
        )  # fmt: skip
        below = 0
        for level in range(1, len(parents)):
            above = below + parents[level - 1]
            run(
                "upper_boxes", parents[level] * FAN, boxes=order.boxes, first_row=order.first_rows, below=below,
                nodes=parents[level - 1], here=above, parents=parents[level],
            )  # fmt: skip
            below = above


def in_enough_parts(parameters: Mapping[str, Any], n: int, units: int) -> dict[str, Any]:
    """Parameters with smaller parts of ``n`` states, where these would keep less than half of the compute units busy.

    What was tuned on a long series has large parts, since each part costs counters. On an H200 parts of 4,096 states,
    the best for a million of them, sorted 131,072 states in 1.22 times the time of parts of 1,024.
    """
    values = dict(parameters)
    sizes = next(tunable.values for tunable in spec("pruned_order").tunables if tunable.name == "each")
    least = (LEAST_PER_COUNTER << values["bits"]) / values["wg"]
    smaller = [each for each in sizes if least <= each < values["each"]]
    while smaller and 2 * -(-n // (values["wg"] * values["each"])) <= units:
        values["each"] = smaller.pop()
    return values


class _Kernels:
    """The kernels that make an order, by their names.

    Parameters
    ----------
    executor : Executor
    values : dict
        Specialisation and parameters.
    """

    def __init__(self, executor: Executor, values: dict[str, Any]) -> None:
        self._executor, self.values = executor, values

    def __call__(self, entry: str, work_items: int, group: int = 0, /, **arguments: Any) -> None:
        """Launch a kernel with ``work_items``, in groups of ``group`` or of whatever size the device prefers."""
        kernel = build(self._executor, spec("pruned_order"), self.values, entry)
        size, local = ((work_items,), (group,)) if group else (open_size(work_items), None)
        self._executor.launch(kernel, size, local, **arguments)

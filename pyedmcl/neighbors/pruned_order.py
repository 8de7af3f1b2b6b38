"""States of a series in the order of a k-d tree, with boxes around blocks of them, made on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..kernels import spec
from ..launch.pool import Pool
from ..launch.sizes import round_up
from ..tuning.parameters import parameters
from .pruned_basis import Basis

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor

FAN = 16  # children of a node, of the templates
PLACES = 128  # an order is padded to whole tiles of queries, of any size that is tuned
_KEY_BITS = 32
_PLACE_BITS = 16  # of a place along a node's axis at least; ever smaller nodes are cut ever more finely


@dataclass(frozen=True)
class Shape:
    """Sizes of an order of ``n`` states in blocks of ``leaf``."""

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
    shape : Shape
    rows : Buffer
        int32 (padded,), -1 behind the last.
    places : Buffer
        Coordinates (axes + 1, padded); the last row holds what each may be off by.
    boxes, first_rows : Buffer
        Of blocks and of nodes above them, level by level.
    """

    shape: Shape
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
        States of a block, a power of two.
    """

    def __init__(self, executor: Executor, pool: Pool, E: int, tau: int, dtype: str, leaf: int) -> None:
        self.executor, self.pool = executor, pool
        self.E, self.tau, self.dtype, self.leaf = E, tau, np.dtype(dtype), leaf

    def make(self, name: str, series: Buffer, front: int, rows: NDArray[Any], basis: Basis) -> Order:
        """Order the states of some rows.

        Parameters
        ----------
        name : str
        series : Buffer
            Row 0 at column ``front``, gaps before it.
        front : int
        rows : ndarray of int32
            At least one.
        basis : Basis
        """
        executor, get, i = self.executor, self.pool.get, np.int32
        given = {"E": self.E, "tau": self.tau, "dtype": self.dtype.name, "axes": basis.n_axes, "leaf": self.leaf}
        chosen = parameters(spec("pruned_order"), given, executor.info, {"rows": len(rows)}).parameters
        values = {**given, **chosen}
        shape = Shape(len(rows), self.leaf, basis.n_axes, self.dtype.itemsize)
        n, padded, item = shape.n, shape.padded, self.dtype.itemsize

        def launch(entry: str, threads: int, *arguments: Any, group: int = 0) -> None:
            kernel = build(executor, spec("pruned_order"), values, entry)
            size = threads if group else round_up(threads, 64)
            executor.launch(kernel, (size,), (group,) if group else None, arguments)

        given_rows = executor.upload(rows, get("pruned rows", n * 4))
        axes = executor.upload(basis.axes, get("pruned basis", basis.axes.nbytes))
        coordinates = get("pruned coordinates", n * (basis.n_axes + 1) * item)
        keys = [get(f"pruned key {place}", n * 4) for place in (0, 1)]
        ids = [get(f"pruned id {place}", n * 4) for place in (0, 1)]
        real = self.dtype.type
        launch(
            "project", n, series, i(front), given_rows, i(n), real(basis.centre), real(basis.rounding), axes,
            coordinates, ids[0],
        )  # fmt: skip
        wg, bits = int(chosen["wg"]), int(chosen["bits"])
        each = wg * int(chosen["each"])
        parts = -(-n // each)
        counts = get("pruned counts", (parts << bits) * 4)
        scanners = 256 if wg >= 128 else wg
        for log_size, nodes in shape.rounds():
            axis, place = get("pruned axis", nodes * 4), get("pruned place", nodes * 2 * item)
            if basis.n_axes > 1:
                launch("axes_of", nodes, coordinates, i(n), ids[0], i(log_size), i(nodes), axis, place)
            node_bits = (nodes - 1).bit_length()
            wanted = _KEY_BITS if basis.n_axes == 1 else _PLACE_BITS
            total = min(round_up(node_bits + wanted, bits), _KEY_BITS)
            launch(
                "keys_of", n, coordinates, i(n), ids[0], i(log_size), i(total - node_bits), axis, place, keys[0],
            )  # fmt: skip
            for shift in range(0, total, bits):
                launch("count", parts * wg, keys[0], i(n), i(shift), i(parts), counts, group=wg)
                launch("scan", scanners, counts, i(parts << bits), group=scanners)
                launch(
                    "scatter", parts * wg, keys[0], ids[0], i(n), i(shift), i(parts), counts, keys[1], ids[1], group=wg
                )  # fmt: skip
                keys.reverse()
                ids.reverse()
        parents = shape.parents
        order = Order(
            shape,
            get(f"{name} rows", padded * 4),
            get(f"{name} places", padded * (basis.n_axes + 1) * item),
            get(f"{name} boxes", sum(parents) * FAN * 2 * basis.n_axes * item),
            get(f"{name} first rows", sum(parents) * FAN * 4),
        )
        launch("gather", padded, given_rows, ids[0], coordinates, i(n), i(padded), order.rows, order.places)
        launch(
            "leaf_boxes", parents[0] * FAN, order.rows, order.places, i(n), i(padded), i(parents[0]), order.boxes,
            order.first_rows,
        )  # fmt: skip
        below = 0
        for level in range(1, len(parents)):
            here = below + parents[level - 1]
            launch(
                "upper_boxes", parents[level] * FAN, order.boxes, order.first_rows, i(below), i(parents[level - 1]),
                i(here), i(parents[level]),
            )  # fmt: skip
            below = here
        return order

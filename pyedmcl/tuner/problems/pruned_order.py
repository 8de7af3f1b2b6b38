"""Tuning problem of putting states into an order in space, with boxes around leaves of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...codegen.sentinels import GAP
from ...codegen.spec import Constraint
from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...launch.pool import Pool
from ...neighbors.plan import SearchProblem
from ...neighbors.pruned_axes import PrincipalAxes, principal_axes
from ...neighbors.pruned_order import FAN, LEAST_PER_COUNTER, Order, Orderer
from ...neighbors.series import DeviceSeries, HostSeries, HostStates, rows_with_states
from ..problem import Answer, TuningCase, TuningProblem
from ..verify import WrongAnswerError
from .common import Floats, flow, releasing, scalar, units
from .searches import ORDER_ENTRIES, PrunedProblem, small_searches


class OrderProblem(TuningProblem):
    """Rounds of counting sorts, and boxes level by level."""

    kernel, entries = "pruned_order", ORDER_ENTRIES
    constraints = (
        Constraint(
            lambda v: v["wg"] * v["each"] >= LEAST_PER_COUNTER << v["bits"],
            "counters of all parts take half a byte per state at most, as memory is planned for",
        ),
    )

    def __init__(self) -> None:
        super().__init__()
        self._search = PrunedProblem()

    normal = ({"E": 1, "axes": 1}, {"E": 20, "axes": 4}, {"part": 8})
    exhaustive = ({"dtype": "float64"},)

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> TuningCase | None:
        rows = min(max(int(sizes.get("rows", 0)), 1), 1 << 20)
        axes = int(specialisation["axes"])
        return self.case(info, rows, E=axes, axes=axes, leaf=int(specialisation["leaf"]), dtype=specialisation["dtype"])

    def case(
        self, info: DeviceInfo, states: int = 0, *, E: int = 3, axes: int = 3, leaf: int = 0, tau: int = 1,
        dtype: str = "float32", part: int = 1,
    ) -> TuningCase:  # fmt: skip
        """A case of ``states`` states, or of a part of those of a common problem."""
        states = states or units(info, 30_000, 8_000, most=1 << 20) // part
        leaf = leaf or (32 if scalar(info) else 16)
        specialisation = {"E": E, "tau": tau, "dtype": dtype, "axes": axes, "leaf": leaf}
        return self.named(f"E={E}", f"{axes} axes", f"{states:,} states", states=states, given=specialisation)

    @contextmanager
    def _ordering(
        self, executor: Executor, case: TuningCase, x: Floats, rows: NDArray[Any], axes: PrincipalAxes
    ) -> Iterator[Callable[[], Order]]:
        g, pool = case.given, Pool(executor)
        laid = np.where(np.isnan(x), x.dtype.type(GAP), x)
        with releasing(pool):
            series = DeviceSeries(executor.upload(laid, pool.get("series", laid.nbytes)), 0)
            orderer = Orderer(executor, pool, g["E"], g["tau"], g["dtype"], g["leaf"])
            yield lambda: orderer.make("order", series, rows, axes)

    @contextmanager
    def open(self, executor: Executor, case: TuningCase) -> Iterator[Callable[[], Answer]]:
        g = case.given
        front = (g["E"] - 1) * g["tau"]
        x = flow(case.numbers["states"] + front, g["dtype"])
        rows = np.arange(front, len(x), dtype=np.int32)
        with self._ordering(executor, case, x, rows, _axes(x, rows, g)) as make:

            def go() -> Answer:
                order = make()
                low, high = _boxes(executor, order)[-1]
                # Which of the possible orders it is depends on the parameters: a digit more sees finer differences.
                rows_found = executor.download(order.rows, np.empty(order.shape.padded, np.int32))
                return {"rows": np.sort(rows_found), "low": low.min(axis=0), "high": high.max(axis=0)}

            yield go

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        g = case.given
        for number, small in enumerate(small_searches((g["E"] - 1) * g["tau"], g["dtype"], True)):
            x = small.library
            search = SearchProblem((g["E"],), (1,), g["tau"], 0, 0, len(x), len(x), g["dtype"])
            rows = rows_with_states(HostSeries(x, 0), search, 0, len(x), small.library_mask)
            yield f"{len(rows)} states (problem {number})", (x, rows, _axes(x, rows, g))

    def computed(self, executor: Executor, case: TuningCase, small: Any) -> Answer:
        x, rows, axes = small
        with self._ordering(executor, case, *small) as make:
            order = make()
            in_order = executor.download(order.rows, np.empty(order.shape.padded, np.int32))
            inside, behind = in_order[: len(rows)], in_order[len(rows) :]
            _require_boxes(_boxes(executor, order), order.shape.leaf, _projected(x, inside, axes, case.given))
        return {"rows": np.sort(inside), "places behind the last": np.unique(np.append(behind, -1))}

    def expected(self, case: TuningCase, small: Any) -> Answer:
        _, rows, _ = small
        return {"rows": rows, "places behind the last": np.array([-1])}

    def verify(self, executor: Executor, case: TuningCase) -> None:
        """Also the whole search, whose walk relies on the order."""
        super().verify(executor, case)
        g = case.given
        small = self._search.case(executor.info, 64, E=g["E"], tau=g["tau"], dtype=g["dtype"], excluding=True)
        self._search.verify(executor, small)


def _axes(x: Floats, rows: NDArray[Any], given: Mapping[str, Any]) -> PrincipalAxes:
    """As many axes as asked for, whatever the states have: orthonormal polynomials of the lag. Any axes are legal."""
    principal = principal_axes(HostStates(HostSeries(x, 0), rows, given["E"], given["tau"]))
    if principal.n_axes == given["axes"]:
        return principal
    axes = np.linalg.qr(np.vander(np.linspace(-1.0, 1.0, given["E"]), given["axes"], increasing=True))[0].T
    return replace(principal, axes=np.ascontiguousarray(axes, given["dtype"]))


def _boxes(executor: Executor, order: Order) -> list[tuple[Floats, Floats]]:
    """Low and high corners (nodes, axes) of the boxes of each level, leaves first."""
    shape = order.shape
    dtype = np.float32 if shape.itemsize == 4 else np.float64
    flat = executor.download(order.boxes, np.empty((sum(shape.parents), shape.axes, 2, FAN), dtype))
    levels = np.split(flat, np.cumsum(shape.parents)[:-1])
    return [(b[:, :, 0].swapaxes(1, 2).reshape(-1, shape.axes), b[:, :, 1].swapaxes(1, 2).reshape(-1, shape.axes))
            for b in levels]  # fmt: skip


def _projected(x: Floats, rows: NDArray[Any], axes: PrincipalAxes, given: Mapping[str, Any]) -> NDArray[Any]:
    """States on the axes."""
    lags = np.arange(given["E"]) * given["tau"]
    states = x[rows[:, None].astype(np.int64) - lags].astype(np.float64) - axes.centre
    return np.asarray(states @ axes.axes.astype(np.float64).T)


def _require_boxes(levels: list[tuple[Floats, Floats]], leaf: int, states: NDArray[np.float64]) -> None:
    """Each state lies in the box of its leaf, which lies in the box of its node, and so on."""
    low: NDArray[Any] = states  # of what a level's boxes hold
    high, fan = low, leaf
    for level, (lows, highs) in enumerate(levels):
        node = np.arange(len(low)) // fan
        if not ((lows[node] <= low) & (high <= highs[node])).all():
            raise WrongAnswerError(f"boxes of level {level} around {len(states)} states do not hold all of them")
        filled = -(-len(low) // fan)
        low, high, fan = lows[:filled], highs[:filled], FAN


PROBLEMS = (OrderProblem(),)

"""Workload of putting states into an order in space, with boxes around blocks of them."""

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
from ...neighbors.pruned import PrunedSearcher
from ...neighbors.pruned_axes import PrincipalAxes, principal_axes
from ...neighbors.pruned_order import FAN, Order, Orderer
from ...neighbors.series import DeviceSeries, HostSeries, HostStates, rows_with_states
from ..verify import require_equal
from ..workload import Answer, Case, Workload, WrongAnswerError
from .common import Floats, flow, on_gpu
from .searches import points, problems, verify_search

#: Entry points of the program, in the order they run.
ENTRIES = (
    "project", "axes_of", "keys_of", "count", "scan", "scatter", "gather", "leaf_boxes", "upper_boxes",
)  # fmt: skip
_STATES_MOST = 1 << 20


class OrderWorkload(Workload):
    """Rounds of counting sorts, and boxes level by level."""

    kernel = "pruned_order"
    entries = ENTRIES
    constraints = (
        Constraint(
            lambda v: v["wg"] * v["each"] >= 8 << v["bits"],
            "counters of all parts take half a byte per state at most, as memory is planned for",
        ),
    )

    def cases(self, mode: str, info: DeviceInfo) -> list[Case]:
        leaf, n = 32 if on_gpu(info) else 16, points(info)
        cases = [_case(n, 3, 3, leaf)]
        if mode != "rapid":
            cases += [_case(n, 1, 1, leaf), _case(n, 20, 4, leaf), _case(n // 8, 3, 3, leaf)]
        if mode == "exhaustive" and info.fp64:
            cases.append(_case(n, 3, 3, leaf, dtype="float64"))
        return cases

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> Case | None:
        s = specialisation
        rows = min(max(int(sizes.get("rows", 0)), 1), _STATES_MOST)
        return _case(rows, int(s["E"]), int(s["axes"]), int(s["leaf"]), int(s["tau"]), s["dtype"])

    @contextmanager
    def open(self, executor: Executor, case: Case) -> Iterator[Callable[[], Answer]]:
        given = case.numbers["given"]
        front = (given["E"] - 1) * given["tau"]
        x = flow(case.numbers["states"] + front, given["dtype"])
        rows = np.arange(front, len(x), dtype=np.int32)
        axes, pool = _axes(x, rows, given), Pool(executor)
        series = _upload(executor, pool, x)
        orderer = Orderer(executor, pool, given["E"], given["tau"], given["dtype"], given["leaf"])

        def go() -> Answer:
            order = orderer.make("order", series, rows, axes)
            low, high = _boxes(executor, order)[-1]
            # In which of the possible orders they are depends on the parameters: a digit more sees finer differences.
            found = executor.download(order.rows, np.empty(order.shape.padded, np.int32))
            return {"rows": np.sort(found), "low": low.min(axis=0), "high": high.max(axis=0)}

        try:
            yield go
        finally:
            pool.release()

    def verify(self, executor: Executor, case: Case) -> None:
        given = case.numbers["given"]
        E, tau, dtype = given["E"], given["tau"], given["dtype"]
        for number, problem in enumerate(problems((E - 1) * tau, dtype, True)):
            x, pool = problem.library, Pool(executor)
            search = SearchProblem((E,), (1,), tau, 0, 0, len(x), len(x), dtype)
            rows = rows_with_states(HostSeries(x, 0), search, 0, len(x), problem.library_mask)
            axes = _axes(x, rows, given)
            try:
                order = Orderer(executor, pool, E, tau, dtype, given["leaf"]).make(
                    "order", _upload(executor, pool, x), rows, axes
                )
                _require_order(executor, order, x, rows, axes, given, f"{len(rows)} states (problem {number})")
            finally:
                pool.release()
        verify_search(PrunedSearcher, executor, {**given, "k": E + 1}, own=True)


def _case(states: int, E: int, axes: int, leaf: int, tau: int = 1, dtype: str = "float32") -> Case:
    name = f"E={E}, {axes} axes, {states:,} states" + ("" if dtype == "float32" else f", {dtype}")
    given = {"E": E, "tau": tau, "dtype": dtype, "axes": axes, "leaf": leaf}
    return Case("pruned_order", name, {"states": states, "given": given})


def _axes(x: Floats, rows: NDArray[Any], given: Mapping[str, Any]) -> PrincipalAxes:
    """So many axes, whatever the states would have: polynomials of the lag, orthonormal. Any such axes are legal."""
    found = principal_axes(HostStates(HostSeries(x, 0), rows, given["E"], given["tau"]))
    if found.n_axes == given["axes"]:
        return found
    lags = np.linspace(-1.0, 1.0, given["E"])
    axes = np.linalg.qr(np.vander(lags, given["axes"], increasing=True))[0].T
    return replace(found, axes=np.ascontiguousarray(axes, given["dtype"]))


def _upload(executor: Executor, pool: Pool, x: Floats) -> DeviceSeries:
    laid = np.where(np.isnan(x), x.dtype.type(GAP), x)
    return DeviceSeries(executor.upload(laid, pool.get("series", laid.nbytes)), 0)


def _boxes(executor: Executor, order: Order) -> list[tuple[Floats, Floats]]:
    """Low and high corners (nodes, axes) of the boxes of each level, blocks first."""
    shape = order.shape
    dtype = np.float32 if shape.itemsize == 4 else np.float64
    flat = executor.download(order.boxes, np.empty((sum(shape.parents), shape.axes, 2, FAN), dtype))
    levels = np.split(flat, np.cumsum(shape.parents)[:-1])
    return [(b[:, :, 0].swapaxes(1, 2).reshape(-1, shape.axes), b[:, :, 1].swapaxes(1, 2).reshape(-1, shape.axes))
            for b in levels]  # fmt: skip


def _require_order(
    executor: Executor, order: Order, x: Floats, rows: NDArray[Any], axes: PrincipalAxes, given: Mapping[str, Any],
    what: str,
) -> None:
    """Each row once, in the box of its block, which is in the box of its node, and so on."""
    shape, n = order.shape, len(rows)
    found = executor.download(order.rows, np.empty(shape.padded, np.int32))
    require_equal(f"rows in order of {what}", np.sort(found[:n]), rows)
    require_equal(f"places behind the last of {what}", found[n:], np.full(shape.padded - n, -1, np.int32))
    lags = np.arange(given["E"]) * given["tau"]
    states = x[found[:n, None].astype(np.int64) - lags].astype(np.float64) - axes.centre
    inside = states @ axes.axes.astype(np.float64).T
    low = high = inside  # of what a level's boxes hold
    each = shape.leaf
    for level, (lows, highs) in enumerate(_boxes(executor, order)):
        node = np.arange(len(low)) // each
        if not ((lows[node] <= low) & (high <= highs[node])).all():
            raise WrongAnswerError(f"boxes of level {level} for {what} do not hold all that is in them")
        filled = -(-len(low) // each)
        low, high, each = lows[:filled], highs[:filled], FAN


WORKLOAD = OrderWorkload()

"""What a device can do at most, measured: multiply-adds, copies within its memory, reads from local memory.

Speeds of kernels are given as a share of these. The kernel is run in a few shapes by turns, and the fastest run of all
counts: a ceiling is what was reached once, not what is usual.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from mako.template import Template

from pyedmcl.device.executor import Argument, Buffer, Executor
from pyedmcl.device.info import DeviceInfo
from pyedmcl.device.memory import budget
from pyedmcl.device.quirks import quirks_for
from pyedmcl.kernels import texts
from pyedmcl.kernels.kernel_spec import declared
from pyedmcl.tuner.problem import scalar

#: Multiply-adds of a chain in one step of the kernel's loop.
REPEATS = 8
_SECONDS = 0.01  # that a launch should take, so that its beginning and end do not show
_STEPS_MOST = 1 << 24
_ARGUMENTS = """
    multiply_add(real* out; real a, b; int steps)
    copy(const real* from; real* to; ulong n, part)
    read_local(real* out; int n_rows, steps)
"""
_ROUNDS = 6
_LOCAL_BYTES = 16 << 10  # fits the first cache of a processor, and leaves room for several groups on a GPU
_COPY_BYTES = {"cpu": 128 << 20, "gpu": 1 << 30}  # many times the last cache

Shape = Mapping[str, Any]


@dataclass(frozen=True)
class Ceiling:
    """The most that was reached of one thing.

    Attributes
    ----------
    name : str
        The type of its numbers for arithmetic ("float32"), else which memory ("device" or "local").
    rate : float
        Operations or bytes per second. A multiply-add is one operation, as is whatever else is issued in its place; a
        copied byte counts twice, since it is read and written.
    unit : str
        "operations/s" or "bytes/s".
    shape : mapping
        Of the kernel, where it was reached.
    """

    name: str
    rate: float
    unit: str
    shape: Shape


def ceilings(executor: Executor, seconds: float = _SECONDS) -> dict[str, Ceiling]:
    """Measure a device; takes a few seconds, most of them to compile.

    Parameters
    ----------
    executor : Executor
    seconds : float
        That a launch should take, at least about.

    Returns
    -------
    dict
        By name: "float32", "float64" where the device has it, "device" and "local".
    """
    types = ("float32", "float64") if executor.info.fp64 else ("float32",)
    found = {dtype: multiply_adds(executor, dtype, seconds) for dtype in types}
    return {**found, "device": copies(executor), "local": local_reads(executor, seconds)}


def multiply_adds(executor: Executor, dtype: str = "float32", seconds: float = _SECONDS) -> Ceiling:
    """Lane operations per second."""
    if scalar(executor.info):
        shapes = [_shape(executor.info, lanes, chains, dtype=dtype) for lanes, chains in ((1, 4), (1, 8), (2, 4))]
    else:
        wide = 8 if dtype == "float64" else 16
        shapes = [_shape(executor.info, lanes, chains, dtype=dtype)
                  for lanes, chains in ((wide, 8), (wide, 16), (wide // 2, 8))]  # fmt: skip
    numbers = np.dtype(dtype).type

    def prepared(shape: Shape) -> Iterator[_Run]:
        items = _groups(executor.info) * shape["wg"]
        with _held(executor, items * shape["lanes"] * numbers().itemsize) as (out,):
            kernel = _kernel(executor, shape, "multiply_add")
            # 1 is where x * a + b stays: neither overflow nor denormal numbers, which are slow on some processors.
            yield _Run(
                executor, lambda steps: (kernel, items, shape["wg"], {"out": out, "a": 0.5, "b": 0.5, "steps": steps}),
                float(items * shape["lanes"] * shape["chains"] * REPEATS), seconds,
            )  # fmt: skip

    return _fastest(dtype, "operations/s", shapes, prepared)


def copies(executor: Executor, nbytes: int | None = None) -> Ceiling:
    """Bytes read and written per second by a copy within the device's memory."""
    gpu = scalar(executor.info)
    shapes = [_shape(executor.info, lanes, 4) for lanes in ((4, 2) if gpu else (16, 8))]
    allowed = budget(executor.info)
    nbytes = nbytes or max(min(_COPY_BYTES["gpu" if gpu else "cpu"], allowed.total // 4, allowed.largest // 2), 1 << 12)

    def prepared(shape: Shape) -> Iterator[_Run]:
        item = 4 * int(shape["lanes"])
        n = max(nbytes // item, 1)
        groups = _groups(executor.info)
        part = -(-n // groups)
        with _held(executor, n * item, n * item) as (source, target):
            kernel = _kernel(executor, shape, "copy")
            # Memory that was never written may lie nowhere yet, and reading it then costs nothing.
            for buffer in (source, target):
                _fill(executor, buffer)
            arguments = {"from": source, "to": target, "n": n, "part": part}
            yield _Run(executor, lambda steps: (kernel, groups * shape["wg"], shape["wg"], arguments), 2.0 * n * item)

    return _fastest("device", "bytes/s", shapes, prepared)


def local_reads(executor: Executor, seconds: float = _SECONDS) -> Ceiling:
    """Bytes read per second from local memory, which on a processor is its first cache."""
    gpu = scalar(executor.info)
    shapes = [_shape(executor.info, lanes, chains)
              for lanes, chains in (((4, 4), (2, 8), (1, 8)) if gpu else ((16, 8), (16, 16), (8, 16)))]  # fmt: skip

    def prepared(shape: Shape) -> Iterator[_Run]:
        items = _groups(executor.info) * shape["wg"]
        with _held(executor, items * shape["lanes"] * 4) as (out,):
            kernel = _kernel(executor, shape, "read_local")
            yield _Run(
                executor,
                lambda steps: (kernel, items, shape["wg"], {"out": out, "n_rows": shape["rows"], "steps": steps}),
                float(items * shape["lanes"] * shape["rows"] * 4), seconds,
            )  # fmt: skip

    return _fastest("local", "bytes/s", shapes, prepared)


class _Run:
    """A launch whose work grows with its steps, and the best rate of it so far."""

    def __init__(
        self, executor: Executor, launch: Callable[[int], tuple[Any, int, int, Mapping[str, Argument]]],
        work_per_step: float, seconds: float = 0.0,
    ) -> None:  # fmt: skip
        self._executor, self._launch, self._work = executor, launch, work_per_step
        self.rate, self._steps = 0.0, 1
        taken = self._seconds()
        while seconds and taken < seconds and self._steps < _STEPS_MOST:
            # Step by step: a first launch may take long for reasons of its own.
            self._steps = min(self._steps * max(min(int(seconds / max(taken, 1e-9)) + 1, 16), 2), _STEPS_MOST)
            taken = self._seconds()

    def again(self) -> None:
        """Run once more."""
        self.rate = max(self.rate, self._steps * self._work / self._seconds())

    def _seconds(self) -> float:
        kernel, items, wg, arguments = self._launch(self._steps)
        self._executor.finish()
        begun = time.perf_counter()
        event = self._executor.launch(kernel, (items,), (wg,), **arguments)
        event.wait()
        wall = time.perf_counter() - begun
        return event.seconds or wall  # some drivers report no time


def _fastest(name: str, unit: str, shapes: list[Shape], prepared: Callable[[Shape], Iterator[_Run]]) -> Ceiling:
    best = Ceiling(name, 0.0, unit, {})
    for shape in shapes:
        with contextmanager(prepared)(shape) as run:
            for _ in range(_ROUNDS):
                run.again()
            if run.rate > best.rate:
                best = Ceiling(name, run.rate, unit, shape)
    return best


def _shape(info: DeviceInfo, lanes: int, chains: int, *, dtype: str = "float32") -> Shape:
    item = np.dtype(dtype).itemsize * lanes
    wg = min(256, quirks_for(info).max_work_group) if scalar(info) else 1
    rows = min(_LOCAL_BYTES, info.local_bytes // 2) // (item * wg)
    return {"dtype": dtype, "lanes": lanes, "chains": chains, "wg": wg, "rows": max(rows // chains, 1) * chains}


def _kernel(executor: Executor, shape: Shape, entry: str) -> Any:
    quirks = quirks_for(executor.info)
    real = "double" if shape["dtype"] == "float64" else "float"
    text = _template().render(**shape, real=real, contract=quirks.fma != "builtin")
    slots = declared(_ARGUMENTS, real == "double")[entry]
    return executor.build(texts.prelude(quirks) + text, quirks.build_options).kernel(entry, slots)


@lru_cache(maxsize=1)
def _template() -> Any:
    return Template(Path(__file__).with_name("ceilings.cl.mako").read_text(encoding="utf-8"), strict_undefined=True)


def _groups(info: DeviceInfo) -> int:
    """Enough to fill every unit several times over."""
    return max(info.compute_units, 1) * (32 if scalar(info) else 8)


def _fill(executor: Executor, buffer: Buffer) -> None:
    n = buffer.nbytes // 4
    block = np.ones(min(n, 4 << 20), np.float32)
    for begin in range(0, n, len(block)):
        executor.upload(block[: n - begin], buffer, 4 * begin)


@contextmanager
def _held(executor: Executor, *sizes: int) -> Iterator[tuple[Buffer, ...]]:
    buffers: list[Buffer] = []
    try:
        for size in sizes:
            buffers.append(executor.allocate(size))
        yield tuple(buffers)
    finally:
        for buffer in buffers:
            buffer.release()

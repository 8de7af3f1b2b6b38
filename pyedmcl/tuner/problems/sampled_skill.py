"""What the workloads of convergent cross mapping share: drawing, scanning and comparing are kernels of one engine."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...edm.states import delay_states, future
from ...engines.ccm import SampledSkill
from ...engines.subsets import Link
from ...reference import ccm as oracle
from ...reference.edm import legal_rows
from ..verify import require_close, require_equal
from ..workload import Answer, Case, Workload
from .common import Floats, maps, on_gpu

_LINKS = Link(0, 1, (0, 1)), Link(1, 0, (1, 0))
_SEED = 3
_SAMPLES = 19  # that are verified: no whole number of words
_SHOWN = (0, 1, 16)
# Steps, Tp and exclusion radius of what is verified.
_RAGGED = ((130, 0, 0, False), (171, 1, 4, True))


class CcmWorkload(Workload):
    """Two series from each other, from random parts of the library."""

    # Weights are exponentials, which vectors may round otherwise than scalars.
    tolerance = (0.0, 2e-5)

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> Case | None:
        s = specialisation
        k = int(s.get("k", 4))
        n = min(int(sizes.get("rows", steps(info))), steps(info))
        E = int(s.get("E", max(min(k - 1, 20), 1)))
        if n < 2 * E + 2 * k + 40:
            return None
        return self.case(n, E, k, dtype=s.get("dtype", "float32"))

    def case(self, n: int, E: int, k: int, *, dtype: str = "float32") -> Case:
        """A case of ``n`` steps."""
        small, large = self.shares()
        sizes = sorted({max(int(share * n), 2 * k) for share in np.linspace(small, large, 8)})
        name = f"E={E}, {n:,} steps, {len(sizes)} sizes of {sizes[0]}..{sizes[-1]}"
        name += "" if dtype == "float32" else f", {dtype}"
        given = {"E": E, "k": k, "dtype": dtype}
        return Case(self.kernel, name, {"steps": n, "sizes": sizes, "samples": 100, "given": given})

    def shares(self) -> tuple[float, float]:
        """Smallest and largest sub-library, as shares of all rows."""
        return 0.02, 0.95

    @contextmanager
    def open(self, executor: Executor, case: Case) -> Iterator[Callable[[], Answer]]:
        n = case.numbers
        engine = _engine(executor, maps(n["steps"], 2, "float64"), n["given"], 0, 0)

        def go() -> Answer:
            return {"rho": engine.skill(_LINKS, n["sizes"], n["samples"], _SEED)}

        try:
            yield go
        finally:
            engine.release()

    def verify(self, executor: Executor, case: Case) -> None:
        given = case.numbers["given"]
        for number, (length, Tp, radius, _) in enumerate(_RAGGED):
            x, sizes = _problem(number, given["E"]), _sizes(number, given["E"], given["k"])
            engine = _engine(executor, x, given, Tp, radius)
            what = f"{length} steps, E={given['E']}"
            try:
                for link in _LINKS:
                    drawn = engine.members(link, sizes, _SAMPLES, _SEED)
                    for size, found, right in zip(sizes, drawn, _members(number, given["E"], given["k"], link),
                                                  strict=True):  # fmt: skip
                        require_equal(f"members of samples of {size} rows of {what}", found, right)
                rho = engine.skill(_LINKS, sizes, _SAMPLES, _SEED)[:, :, list(_SHOWN)]
            finally:
                engine.release()
            require_close(f"rho of {what}", rho, _skill(number, given["E"], given["k"]), *self.tolerance)


def steps(info: DeviceInfo) -> int:
    """Of a common problem."""
    return 4000 if on_gpu(info) else 1000


def _engine(executor: Executor, x: Floats, given: Mapping[str, Any], Tp: int, radius: int) -> SampledSkill:
    states = delay_states(x, given["E"], 1, k=given["k"], Tp=Tp, exclusion_radius=radius, dtype=given["dtype"])
    return SampledSkill(executor, states, np.array([future(column, Tp) for column in x.T]))


@functools.lru_cache(maxsize=16)
def _problem(number: int, E: int) -> Floats:
    length, _, _, gappy = _RAGGED[number]
    x = np.array(maps(length + 4 * E, 2, "float64", seed=5 + number))
    if gappy:
        x[[7, length // 2]] = np.nan
    return x


def _legal(number: int, E: int, link: Link) -> Any:
    x = _problem(number, E)
    return legal_rows(x[:, link.library], E, 1, _RAGGED[number][1], x[:, link.target])


def _sizes(number: int, E: int, k: int) -> list[int]:
    """Small ones, whose members are all looked at, and larger ones, which are scanned; the last holds all rows."""
    most = min(int(_legal(number, E, link).sum()) for link in _LINKS)
    return sorted({k + 3, most // 3, 2 * most // 3, most})


@functools.lru_cache(maxsize=64)
def _members(number: int, E: int, k: int, link: Link) -> Sequence[Any]:
    legal = _legal(number, E, link)
    rows, found = np.flatnonzero(legal), []
    for size in _sizes(number, E, k):
        members = np.zeros((_SAMPLES, len(legal)), bool)
        for sample in range(_SAMPLES):
            drawn = oracle.sub_library(len(rows), size, seed=_SEED, library=link.stream[0], target=link.stream[1],
                                       sample=sample)  # fmt: skip
            members[sample, rows[drawn]] = True
        found.append(members)
    return found


@functools.lru_cache(maxsize=64)
def _skill(number: int, E: int, k: int) -> Any:
    x, (_, Tp, radius, _) = _problem(number, E), _RAGGED[number]
    return np.array([
        [[oracle.ccm_skill(x[:, link.library], x[:, link.target], size, E=E, Tp=Tp, k=k, exclusion_radius=radius,
                           seed=_SEED, library=link.stream[0], target=link.stream[1], sample=sample)
          for sample in _SHOWN] for size in _sizes(number, E, k)] for link in _LINKS
    ])  # fmt: skip


_WANTED = ((3, 4), (1, 2), (8, 9), (20, 21))


def wanted(mode: str) -> Sequence[tuple[int, int]]:
    """E and k worth tuning, the most common first."""
    return _WANTED[: 1 if mode == "rapid" else len(_WANTED)]

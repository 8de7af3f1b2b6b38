"""Whole calls of public functions, host array to host result, and the same asked of a peer where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..device.info import DeviceInfo
from ..edm.ccm import ccm
from ..edm.embed_dimension import embed_dimension
from ..edm.smap import smap
from ..edm.xmap import xmap
from ..recurrence.rqa import rqa
from ..tuner.problems.common import maps, on_gpu
from . import peers

_DIMS = 20
_M, _TAU, _RADIUS = 5, 3, 0.25

Peer = tuple[str, Callable[[], object]]


@dataclass(frozen=True)
class WholeCall:
    """One call.

    Attributes
    ----------
    name : str
        Of the function.
    problem : str
        For people.
    unit : str
        What ``count`` counts.
    count : float
    ours : callable
    peer : callable
        Gives name and version of the peer and the same call of it, or None where it is not installed.
    operations : float
        Arithmetic operations of all work-items, counted as :class:`pyedmcl.tuner.workload.Workload` does; 0 where that
        says nothing.
    """

    name: str
    problem: str
    unit: str
    count: float
    ours: Callable[[], object]
    peer: Callable[[], Peer | None]
    operations: float = 0.0


def whole_calls(info: DeviceInfo, quick: bool = False) -> list[WholeCall]:
    """The calls that ``pyedmcl bench`` times on a device.

    Parameters
    ----------
    info : DeviceInfo
    quick : bool
        Smaller problems.

    Returns
    -------
    list of WholeCall
        Several of one name where a function has more than one common problem.
    """
    gpu = on_gpu(info)
    series, steps = ((400, 2000) if quick else (1000, 4000)) if gpu else ((64, 800) if quick else (154, 1600))
    few = series if gpu else series // 4
    long = 1600 if quick else 4000
    points = (50_000 if quick else 200_000) if gpu else (4_000 if quick else 20_000)
    return [
        _xmap(info, maps(steps, series), np.full(series, 3)),
        _xmap(info, maps(steps, few), 1 + np.arange(few) * 7919 % _DIMS),
        _embed_dimension(info, long),
        _smap(info, long),
        _ccm(info, 500 if quick else 1000, 32 if quick else 100),
        _rqa(info, points),
    ]


def call_names() -> tuple[str, ...]:
    """Names of :func:`whole_calls`."""
    return "xmap", "embed_dimension", "smap", "ccm", "rqa"


def _xmap(info: DeviceInfo, x: Any, dims: Any) -> WholeCall:
    steps, n = x.shape
    same = len(set(dims.tolist())) == 1
    given: Any = int(dims[0]) if same else dims.tolist()
    pairs = float(n * steps**2)
    # As the kernels' workloads count: each dimension once for all E in one pass, a comparison for each E; then k
    # multiply-adds and five sums for each prediction.
    operations = pairs * (2.0 * dims.max() + len(set(dims.tolist()))) + n * steps * float((dims + 1 + 5).sum())
    return WholeCall(
        "xmap", f"{n} x {steps:,}, E={given if same else '1..20 mixed'}", "pairs", pairs,
        lambda: xmap(x, E=given, device=info.id), lambda: peers.kedm("xmap", x, dims.tolist()), operations,
    )  # fmt: skip


def _embed_dimension(info: DeviceInfo, steps: int) -> WholeCall:
    x = np.ascontiguousarray(maps(steps, 2)[:, 0])
    pairs = float(steps**2)
    return WholeCall(
        "embed_dimension", f"{steps:,} steps, E=1..20", "pairs", pairs, lambda: embed_dimension(x, device=info.id),
        lambda: peers.kedm("edim", x), pairs * 3.0 * _DIMS,
    )  # fmt: skip


def _smap(info: DeviceInfo, steps: int) -> WholeCall:
    x = np.ascontiguousarray(maps(steps, 2)[:, 0])
    return WholeCall(
        "smap", f"{steps:,} steps, E=3, theta=2", "pairs", float(steps**2),
        lambda: smap(x, E=3, theta=2.0, device=info.id),
        lambda: peers.kedm("smap", x, x, E=3, tau=1, Tp=1, theta=2.0),
    )  # fmt: skip


def _ccm(info: DeviceInfo, steps: int, samples: int) -> WholeCall:
    table = maps(steps, 2)
    x, y = (np.ascontiguousarray(table[:, column]) for column in (0, 1))
    sizes = list(range(20, steps - 20, steps // 17))

    def twice() -> Peer | None:
        """A peer maps one direction; we map both."""
        there, back = (peers.kedm("ccm", *pair, E=3, sample=samples, lib_sizes=sizes) for pair in ((x, y), (y, x)))
        if there is None or back is None:
            return None
        calls = there[1], back[1]
        return there[0], lambda: [call() for call in calls]

    return WholeCall(
        "ccm", f"{steps:,} steps, E=3, {len(sizes)} sizes, {samples} samples, both ways", "sub-libraries",
        float(2 * len(sizes) * samples),
        lambda: ccm(x, y, E=3, lib_sizes=sizes, sample=samples, seed=1, device=info.id), twice,
    )  # fmt: skip


def _rqa(info: DeviceInfo, points: int) -> WholeCall:
    x = np.ascontiguousarray(maps(points + (_M - 1) * _TAU, 1)[:, 0])
    return WholeCall(
        "rqa", f"{points:,} points, m={_M}, all measures", "cells", float(points**2),
        lambda: rqa(x, m=_M, tau=_TAU, radius=_RADIUS, device=info.id),
        lambda: peers.pyrqa(info, x, m=_M, tau=_TAU, radius=_RADIUS),
    )  # fmt: skip

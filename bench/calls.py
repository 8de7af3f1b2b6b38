"""Whole calls of public functions, host array to host result, and the same of a peer where one is installed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from peers import Peer, kedm, pyrqa
from workloads import mixed_dimensions

import pyedmcl
from pyedmcl.device.info import DeviceInfo
from pyedmcl.tuner.problem import maps, scalar

_DIMS = 20
_RECURRENCE = {"m": 5, "tau": 3, "radius": 0.25}


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
        Gives the same call of a peer, or None where it is not installed.
    operations : float
        Arithmetic operations of all work-items, as counts.py has them; 0 where that says nothing.
    """

    name: str
    problem: str
    unit: str
    count: float
    ours: Callable[[], object]
    peer: Callable[[], Peer | None]
    operations: float = 0.0


def whole_calls(info: DeviceInfo, quick: bool = False) -> list[WholeCall]:
    """The calls that are timed on a device; several of one name where a function has more than one common problem.

    Parameters
    ----------
    info : DeviceInfo
    quick : bool
        Smaller problems.
    """
    gpu = scalar(info)
    series, steps = ((400, 2000) if quick else (1000, 4000)) if gpu else ((64, 800) if quick else (154, 1600))
    few = series if gpu else series // 4
    long = 1600 if quick else 4000
    points = (50_000 if quick else 200_000) if gpu else (4_000 if quick else 20_000)
    return [
        _xmap(info, maps(steps, series), [3] * series),
        _xmap(info, maps(steps, few), mixed_dimensions(few, _DIMS)),
        _embed_dimension(info, long),
        _smap(info, long),
        _ccm(info, 500 if quick else 1000, 32 if quick else 100),
        _rqa(info, points),
    ]


def call_names() -> tuple[str, ...]:
    """Names of :func:`whole_calls`."""
    return "xmap", "embed_dimension", "smap", "ccm", "rqa"


def _xmap(info: DeviceInfo, x: Any, dims: list[int]) -> WholeCall:
    steps, n = x.shape
    same = len(set(dims)) == 1
    E: Any = dims[0] if same else dims
    pairs = float(n * steps**2)
    # As the kernels are counted: each dimension once for all E in one pass, a comparison for each E; then k
    # multiply-adds and five sums for each prediction.
    operations = pairs * (2.0 * max(dims) + len(set(dims))) + n * steps * float(sum(d + 1 + 5 for d in dims))
    return WholeCall(
        "xmap", f"{n} x {steps:,}, E={E if same else '1..20 mixed'}", "pairs", pairs,
        lambda: pyedmcl.xmap(x, E=E, device=info.id), lambda: kedm("xmap", x, dims), operations,
    )  # fmt: skip


def _embed_dimension(info: DeviceInfo, steps: int) -> WholeCall:
    x = np.ascontiguousarray(maps(steps, 2)[:, 0])
    pairs = float(steps**2)
    return WholeCall(
        "embed_dimension", f"{steps:,} steps, E=1..20", "pairs", pairs,
        lambda: pyedmcl.embed_dimension(x, device=info.id), lambda: kedm("edim", x), pairs * 3.0 * _DIMS,
    )  # fmt: skip


def _smap(info: DeviceInfo, steps: int) -> WholeCall:
    x = np.ascontiguousarray(maps(steps, 2)[:, 0])
    return WholeCall(
        "smap", f"{steps:,} steps, E=3, theta=2", "pairs", float(steps**2),
        lambda: pyedmcl.smap(x, E=3, theta=2.0, device=info.id),
        lambda: kedm("smap", x, x, E=3, tau=1, Tp=1, theta=2.0),
    )  # fmt: skip


def _ccm(info: DeviceInfo, steps: int, samples: int) -> WholeCall:
    table = maps(steps, 2)
    x, y = (np.ascontiguousarray(table[:, column]) for column in (0, 1))
    sizes = list(range(20, steps - 20, steps // 17))

    def both() -> Peer | None:
        """kEDM maps one direction; we map both."""
        directions = [kedm("ccm", *pair, E=3, sample=samples, lib_sizes=sizes) for pair in ((x, y), (y, x))]
        calls = [peer.call for peer in directions if peer is not None]
        if directions[0] is None or len(calls) < 2:
            return None
        return Peer(directions[0].label, lambda: [call() for call in calls])

    return WholeCall(
        "ccm", f"{steps:,} steps, E=3, {len(sizes)} sizes, {samples} samples, both ways", "sub-libraries",
        float(2 * len(sizes) * samples),
        lambda: pyedmcl.ccm(x, y, E=3, lib_sizes=sizes, sample=samples, seed=1, device=info.id), both,
    )  # fmt: skip


def _rqa(info: DeviceInfo, points: int) -> WholeCall:
    m, tau = _RECURRENCE["m"], _RECURRENCE["tau"]
    x = np.ascontiguousarray(maps(points + int((m - 1) * tau), 1)[:, 0])
    arguments: Any = _RECURRENCE
    return WholeCall(
        "rqa", f"{points:,} points, m={m}, all measures", "cells", float(points**2),
        lambda: pyedmcl.rqa(x, device=info.id, **arguments), lambda: pyrqa(info, x, **arguments),
    )  # fmt: skip

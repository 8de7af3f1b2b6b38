"""What the host does in a small call, part by part, while copies, launches and kernels are left out.

usage: python bench/host_parts.py [--device NAME] [--case simplex,smap] [--points 2000] [--E 20] [--repeat 400]
                                  [--out FILE]

Calls are made until they are repeated ones (pyedmcl/launch/replay.py). Then ``call`` is timed, then ``host`` with an
executor that does nothing, and then the parts of it with a stopwatch around each; a part within another one counts
for itself only. All figures are medians in microseconds. ``passes`` is the sum of those that go over the data in
NumPy, and ``layers`` what no part has: arguments, settings, the job, the result and its record.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
from common import Report, parser

import pyedmcl
from pyedmcl.device.opencl import OpenCLExecutor
from pyedmcl.device.session import open_device

#: Part -> functions of the package, as the modules that call them name them.
PASSES = {
    "looking the data over": (
        "data.series.extent", "data.series.bounds", "data.condition.bounds", "edm.simplex_fit.check_library",
        "edm.regression.complete_rows", "edm.smap_fit.complete_rows", "edm.smap_fit._fewest",
    ),
    "digest for provenance": ("data.series.Series.digest",),
    "library as the device reads it": ("edm.simplex_fit.condition", "edm.simplex_fit.lay_out", "engines.smap.near_one"),
    "targets near 1": ("engines.projector._Target.of", "edm.simplex_fit.future"),
    "basis of a fit": ("engines.smap.basis_of",),
    "predictions in units of the data": ("engines.projector._Target.in_units", "engines.smap.LocalFits._take"),
    "skill": ("edm.scores.pearson", "edm.scores.errors", "edm.simplex_fit.scores.pearson"),
}  # fmt: skip
OTHERS = {"steps of the call before": ("engines.projector.replayed", "engines.smap.replayed")}


class _Nothing:
    """The event of a launch that is left out."""

    seconds = 0.0

    def wait(self) -> None:
        """There is nothing to wait for."""


@contextlib.contextmanager
def nothing_done() -> Iterator[None]:
    """Within the block the executor copies and launches nothing."""
    with (
        mock.patch.object(OpenCLExecutor, "launch", lambda *given, **named: _Nothing()),
        mock.patch.object(OpenCLExecutor, "_put", lambda *given: None),
        mock.patch.object(OpenCLExecutor, "_get", lambda *given: None),
    ):
        yield


class Stopwatch:
    """Seconds of parts, each without those within it."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._inner = [0.0]

    def around(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose time counts for the part."""

        @functools.wraps(function)
        def timed(*given: Any, **named: Any) -> Any:
            self._inner.append(0.0)
            begun = time.perf_counter()
            try:
                return function(*given, **named)
            finally:
                seconds = time.perf_counter() - begun
                self.seconds[part] += seconds - self._inner.pop()
                self._inner[-1] += seconds

        return timed


@contextlib.contextmanager
def watched(stopwatch: Stopwatch) -> Iterator[None]:
    """Within the block, the stopwatch is around all parts."""
    with contextlib.ExitStack() as patches:
        for part, names in (PASSES | OTHERS).items():
            for name in names:
                owner, attribute = _place(name)
                whole = inspect.getattr_static(owner, attribute)
                timed = stopwatch.around(part, getattr(owner, attribute))
                replaced = staticmethod(timed) if isinstance(whole, classmethod) else timed
                patches.enter_context(mock.patch.object(owner, attribute, replaced))
        yield


def _place(name: str) -> tuple[Any, str]:
    """The module or class that has a name, and its last part."""
    *path, attribute = name.split(".")
    owner: Any = pyedmcl
    for each in path:
        if hasattr(owner, "__path__"):  # a package, of which a module may not have been imported yet
            importlib.import_module(f"{owner.__name__}.{each}")
        owner = getattr(owner, each)
    return owner, attribute


def median(call: Callable[[], Any], repeat: int) -> float:
    """Microseconds of a call."""
    found = []
    for _ in range(repeat):
        begun = time.perf_counter()
        call()
        found.append(time.perf_counter() - begun)
    return statistics.median(found) * 1e6


def parts_of(call: Callable[[], Any], repeat: int) -> dict[str, float]:
    """Microseconds of the call, of the host's part, and of the parts of that."""
    for _ in range(20):
        call()
    found = {"call": median(call, repeat)}
    with nothing_done():
        found["host"] = median(call, repeat)
        of_each = []
        for _ in range(repeat):
            stopwatch = Stopwatch()
            with watched(stopwatch):
                call()
            of_each.append(stopwatch.seconds)
    found |= {part: statistics.median(each[part] for each in of_each) * 1e6 for part in (*PASSES, *OTHERS)}
    passes = sum(found[part] for part in PASSES)
    return found | {"passes": passes, "layers": found["host"] - passes - sum(found[part] for part in OTHERS)}


def main() -> None:
    arguments = parser(__doc__, repeat=400)
    arguments.add_argument("--case", default="simplex,smap")
    arguments.add_argument("--points", type=int, default=2000)
    arguments.add_argument("--E", type=int, default=20)
    options = arguments.parse_args()
    report = Report(open_device(options.device).info, options.out)
    x = np.random.default_rng(1).standard_normal(options.points)
    cases = {
        "simplex": lambda: pyedmcl.simplex(x, E=options.E, device=options.device),
        "smap": lambda: pyedmcl.smap(x, E=options.E, theta=2.0, device=options.device),
    }
    for case in options.case.split(","):
        found = parts_of(cases[case], options.repeat)
        lines = "".join(f"\n    {part:35s} {us:7.0f}" for part, us in found.items() if us)
        report.add(
            f"{case} of {options.points:,} points, E = {options.E}, microseconds:{lines}", case=case,
            points=options.points, E=options.E, us={part: round(us, 1) for part, us in found.items()},
        )  # fmt: skip


if __name__ == "__main__":
    main()

"""What the host does in a small call, part by part, without copies, launches and kernels; and the parts of a map.

usage: python bench/host_parts.py [--device NAME] [--case simplex,smap] [--points 2000] [--E 20] [--repeat 400]
       python bench/host_parts.py [--device NAME] --case map [--shape 2000x3780] [--E 3] [--repeat 9]

Small calls are made until they are repeated ones (pyedmcl/launch/replay.py). Then ``call`` is timed, ``host`` with an
executor that does nothing, and then the parts of it with a stopwatch around each; a part within another one counts
for itself only. All figures are medians in microseconds. ``passes`` is the sum of those that go over the data in
NumPy, and ``layers`` what no part has: arguments, settings, the job, the result and its record.

Of a map nothing is left out: ``kernels`` is the device's own time, ``waiting`` what the host waits for it before it
copies results, and ``copies`` what uploads and downloads take then.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
from common import Report, compiled, parser
from workloads import coupled_maps

import pyedmcl
from pyedmcl.device.opencl import OpenCLExecutor
from pyedmcl.device.select import open_device

#: Part -> functions of the package, as the modules that call them name them.
PASSES = {
    "looking the data over": (
        "series.series.extent", "series.series.bounds", "series.scaling.bounds", "forecast.simplex.check_library",
        "states.states.complete_rows", "forecast.smap.complete_rows", "forecast.smap._fewest",
    ),
    "digest for provenance": ("series.series.Series.digest",),
    "library as the device reads it": (
        "forecast.simplex.condition", "forecast.simplex.lay_out_in_itself", "engines.smap.near_one",
    ),
    "targets near 1": ("engines.predict._Target.of", "forecast.simplex.future"),
    "basis of a fit": ("engines.smap.basis_of",),
    "predictions in units of the data": ("engines.predict._Target.in_units", "engines.smap.LocalFits._take"),
    "looking at the answer": ("engines.crossmap.require_rho",),
    "skill": ("states.arguments.pearson", "states.arguments.errors"),
}  # fmt: skip
OTHERS = {"steps of the call before": ("engines.predict.replayed", "engines.smap.replayed")}


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
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._inner = [0.0]

    def around(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose time counts for the part."""

        @functools.wraps(function)
        def timed(*given: Any, **named: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():  # beside the call, not in it
                return function(*given, **named)
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


def parts_of_map(call: Callable[[], Any], repeat: int) -> dict[str, float]:
    """Microseconds of the call, of the device's kernels, and of parts."""
    compiled(call)
    call()
    found = {"call": median(call, repeat)}
    launch, get, of_each = OpenCLExecutor.launch, OpenCLExecutor._get, []
    for _ in range(repeat):
        stopwatch = Stopwatch()
        events: list[Any] = []

        def noted(self: Any, *given: Any, events: list[Any] = events, **named: Any) -> Any:
            events.append(launch(self, *given, **named))
            return events[-1]

        def after_waiting(self: Any, *given: Any, stopwatch: Stopwatch = stopwatch) -> None:
            stopwatch.around("waiting", self._wait)()
            stopwatch.around("copies", get)(self, *given)

        with (
            watched(stopwatch), mock.patch.object(OpenCLExecutor, "launch", noted),
            mock.patch.object(OpenCLExecutor, "unmeasured", lambda self: self),
            mock.patch.object(OpenCLExecutor, "_put", stopwatch.around("copies", OpenCLExecutor._put)),
            mock.patch.object(OpenCLExecutor, "_get", after_waiting),
        ):  # fmt: skip
            begun = time.perf_counter()
            call()
            seconds = time.perf_counter() - begun
        own = stopwatch.seconds
        own["rest"] = seconds - sum(own.values())
        own["kernels"] = sum(event.seconds for event in events)
        of_each.append(own)
    names = ("kernels", "waiting", "copies", *PASSES, "rest")
    return found | {part: statistics.median(each[part] for each in of_each) * 1e6 for part in names}


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--case", default="simplex,smap")
    arguments.add_argument("--points", type=int, default=2000)
    arguments.add_argument("--shape", default="2000x3780")
    arguments.add_argument("--E", type=int, help="20, of a map 3")
    arguments.add_argument("--repeat", type=int, help="400, of a map 9; the median counts")
    options = arguments.parse_args()
    report = Report(open_device(options.device).info, options.out)
    if options.case == "map":
        n, length = map(int, options.shape.split("x"))
        table, E = coupled_maps(n, length), options.E or 3
        found = parts_of_map(lambda: pyedmcl.xmap(table, E=E, device=options.device), options.repeat or 9)
        tell(report, f"a map of {options.shape}", found, case="map", shape=options.shape, E=E)
        return
    E, repeat = options.E or 20, options.repeat or 400
    x = np.random.default_rng(1).standard_normal(options.points)
    cases = {
        "simplex": lambda: pyedmcl.simplex(x, E=E, device=options.device),
        "smap": lambda: pyedmcl.smap(x, E=E, theta=2.0, device=options.device),
    }
    for case in options.case.split(","):
        found = parts_of(cases[case], repeat)
        tell(report, f"{case} of {options.points:,} points", found, case=case, points=options.points, E=E)


def tell(report: Report, what: str, found: dict[str, float], **of_case: Any) -> None:
    """Show the parts of a call, and keep them."""
    lines = "".join(f"\n    {part:35s} {us:7.0f}" for part, us in found.items() if us)
    report.add(f"{what}, E = {of_case['E']}, microseconds:{lines}", **of_case,
               us={part: round(us, 1) for part, us in found.items()})  # fmt: skip


if __name__ == "__main__":
    main()

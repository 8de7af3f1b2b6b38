"""What each device does when in a call on several devices: preparing, its first block, later ones, and the end.

usage: python bench/device_timeline.py [--device gpus] [--case xmap,rqa,ccm_matrix] [--out FILE]

Prints a line per device and appends a JSON line per case and number of devices. ``begun`` is when the first block of a
device begins, ``uploaded`` when the device first gets something, ``first`` and ``last`` when its first and last blocks
end, all in seconds since the call; ``steady`` is the median of its later blocks and ``copies`` what it waited for
copies to the host. The third call is looked at.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from common import Report, parser
from scale_devices import calls, counts_of

from pyedmcl.device.opencl import OpenCLExecutor
from pyedmcl.device.select import select_several
from pyedmcl.jobs.runner import OpenProblem

Event = tuple[str, str, float, float]


@contextmanager
def noted(kind: type, method: str, events: list[Event]) -> Iterator[None]:
    """Have each call of a method noted, with the device it concerns."""
    call = getattr(kind, method)

    @functools.wraps(call)
    def timed(self: Any, *given: Any, **named: Any) -> Any:
        begun = time.perf_counter()
        try:
            return call(self, *given, **named)
        finally:
            info = getattr(self, "_executor", self).info
            events.append((method, info.id, begun, time.perf_counter()))

    with mock.patch.object(kind, method, timed):
        yield


def timeline(call: Callable[[Any], Any], ids: list[str]) -> tuple[float, list[dict[str, Any]]]:
    """Seconds of a call, and what each device did when."""
    events: list[Event] = []
    call(ids)
    call(ids)
    with (
        noted(OpenProblem, "block", events), noted(OpenCLExecutor, "upload", events),
        noted(OpenCLExecutor, "download", events),
    ):  # fmt: skip
        begun = time.perf_counter()
        call(ids)
        seconds = time.perf_counter() - begun
    found = []
    for device in ids:
        own = {name: [(a - begun, b - begun) for what, of, a, b in events if (what, of) == (name, device)]
               for name in ("block", "upload", "download")}  # fmt: skip
        blocks = own["block"]
        if blocks:
            found.append({
                "device": device, "begun": blocks[0][0], "uploaded": min(a for a, _ in own["upload"]),
                "first": blocks[0][1], "last": blocks[-1][1], "blocks": len(blocks),
                "steady": statistics.median([b - a for a, b in blocks[1:]] or [blocks[0][1] - blocks[0][0]]),
                "copies": sum(b - a for a, b in own["download"]),
            })  # fmt: skip
    return seconds, found


def main() -> None:
    arguments = parser(__doc__)
    arguments.set_defaults(device="gpus", maps="8000x3780", points=4_000_000, matrix="500x2000")
    arguments.add_argument("--case", default="xmap,rqa,ccm_matrix")
    arguments.add_argument("--maps")
    arguments.add_argument("--points", type=int)
    arguments.add_argument("--matrix")
    options = arguments.parse_args()
    infos = [choice.device for choice in select_several(options.device)]
    report = Report(infos[0], options.out)
    for case, call in calls(options):
        if case.split()[0] not in options.case.split(","):
            continue
        for n in counts_of(len(infos)):
            seconds, found = timeline(call, [info.id for info in infos[:n]])
            lines = "\n".join("    " + ", ".join(
                f"{name} {value:.3f}" if isinstance(value, float) else f"{name} {value}" for name, value in each.items()
            ) for each in found)  # fmt: skip
            report.add(f"{case} on {n}: {seconds:.3f} s\n{lines}", case=case, devices=n, seconds=seconds, found=found)


if __name__ == "__main__":
    main()

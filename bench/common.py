"""What every benchmark needs: its options, a clock, and a report for people and for files."""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Callable
from typing import Any

import pyedmcl
from pyedmcl.device.info import DeviceInfo
from pyedmcl.device.select import settle


def parser(description: str | None, repeat: int | None = None) -> argparse.ArgumentParser:
    """A parser with the options that all benchmarks have.

    Parameters
    ----------
    description : str
        The module's docstring.
    repeat : int, optional
        Default of ``--repeat``; left out where a benchmark repeats nothing.
    """
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--device", help="as for device= of a function")
    if repeat is not None:
        made.add_argument("--repeat", type=int, default=repeat, help="runs of which the median counts")
    made.add_argument("--out", metavar="FILE", help="append a JSON line for each figure")
    return made


def compiled(function: Callable[[], Any]) -> Any:
    """What a first call returns, after which all kernels that it asked for are compiled."""
    result = function()
    settle()
    return result


def clock(function: Callable[[], object]) -> float:
    """Seconds of a call, after the garbage of the calls before it has been collected."""
    gc.collect()
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def timed(function: Callable[[], Any], repeat: int) -> tuple[list[float], Any]:
    """Seconds of each call after one that compiles, and what the last call returned.

    Garbage is collected before, and none within or between the calls: to look through all objects of a large package
    empties the caches of the processor, which a call of 2 ms then fills again.
    """
    result = compiled(function)
    seconds = []
    gc.collect()
    collects = gc.isenabled()
    gc.disable()
    try:
        for _ in range(repeat):
            start = time.perf_counter()
            result = function()
            seconds.append(time.perf_counter() - start)
    finally:
        if collects:
            gc.enable()
    return seconds, result


class Report:
    """Shows figures to people and appends them to a file, a JSON line each, with the device and our version.

    Parameters
    ----------
    info : DeviceInfo
    out : str, optional
        The file.
    """

    def __init__(self, info: DeviceInfo, out: str | None = None) -> None:
        self._place = {"device": info.name, "runtime": info.runtime, "driver": info.driver,
                       "version": pyedmcl.__version__}  # fmt: skip
        self._out = out
        self.title = f"{info.name} ({info.runtime}, driver {info.driver})"

    def add(self, text: str | None = None, **record: Any) -> None:
        """Show a figure in these words, by default its JSON line, and append its line to the file."""
        line = json.dumps({**record, **self._place})
        print(line if text is None else text, flush=True)
        if self._out:
            with open(self._out, "a", encoding="utf-8") as file:
                file.write(line + "\n")

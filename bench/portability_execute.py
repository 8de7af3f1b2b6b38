"""The calls of portability_calls.py on each runtime, in processes of their own that may crash, hang and be watched."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from portability_calls import CALLS
from portability_place import DIMS, DTYPES, LAGS

Record = dict[str, Any]
#: Call, E, tau and number type.
Task = tuple[str, int, int, str]
BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
OCLGRIND = Path("/usr/lib/oclgrind/liboclgrind-rt-icd.so")
LIMIT = 600  # seconds for one call
_PART = 24  # calls of a process, after which its records are kept
_SEARCHES = ("knn", "simplex", "embed_dimension", "xmap")


@dataclass(frozen=True)
class Run:
    """A set of parameters on a runtime.

    Attributes
    ----------
    parameters, size : str
        As portability_run.py takes them.
    watch : str
        What Oclgrind looks for beside accesses out of bounds: "races" or "uninitialised".
    calls : tuple of str
    dims, lags : tuple of int
        The E and tau of the calls.
    """

    parameters: str
    size: str = "usual"
    watch: str = ""
    calls: tuple[str, ...] = tuple(CALLS)
    dims: tuple[int, ...] = DIMS
    lags: tuple[int, ...] = LAGS

    def tasks(self) -> list[Task]:
        return [(call, E, tau, dtype) for call in self.calls for E in self.dims for tau in self.lags
                for dtype in DTYPES]  # fmt: skip


# Of other parameters a few cells: what they change is how work is shared out.
_FEW = (3, 20), (3,)
_HERE = (
    Run("default"),
    Run("gpu", dims=_FEW[0], lags=_FEW[1]),
    Run("gpu-unroll4-tile256", "usual", "", _SEARCHES, *_FEW),
    Run("gpu-unroll16-tile512", "usual", "", _SEARCHES, *_FEW),
)
RUNS = {
    "intel": _HERE,
    "pocl": _HERE,
    "rusticl": (Run("default"),),
    "oclgrind": (
        # Work-items of a group, which may race, are what the parameters of a GPU have.
        Run("gpu", "tiny", "races"),
        Run("lanes8", "watched", "uninitialised"),
        Run("default", "tiny", "races", tuple(CALLS), *_FEW),
        *(
            Run(name, "tiny", "races", _SEARCHES, *_FEW)
            for name in ("gpu-unroll4-tile256", "gpu-unroll16-tile512", "lanes4-wg32")
        ),
        Run("gpu-unroll4-tile256", "watched", "uninitialised", _SEARCHES, *_FEW),
    ),
    "sycl": (Run("default"),),
    "nvidia": (Run("default"), Run("gpu", dims=_FEW[0], lags=_FEW[1])),
    "cuda": (Run("default"),),
}
RUNTIMES = tuple(RUNS)


def environment(runtime: str, watch: str = "", log: Path | None = None) -> dict[str, str]:
    """The environment in which a process sees ``runtime``."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("OCLGRIND_")}
    plain["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), plain.get("PYTHONPATH", "")]))
    if runtime == "rusticl":
        plain |= {"RUSTICL_ENABLE": "llvmpipe", "RUSTICL_FEATURES": "fp64"}
    if runtime == "oclgrind":
        plain |= {"OCL_ICD_VENDORS": str(OCLGRIND), "OCLGRIND_LOG": str(log)}
        # One thread for uninitialised reads: the shadows of local memory are shared by groups that run side by side.
        plain |= {"OCLGRIND_DATA_RACES": "1"} if watch == "races" else {
            "OCLGRIND_UNINITIALIZED": "1", "OCLGRIND_NUM_THREADS": "1"}  # fmt: skip
    return plain


def found(runtime: str, python: str = sys.executable) -> Record | str:
    """Name in the records and driver of a runtime, or why it cannot be used here."""
    if runtime == "oclgrind" and not OCLGRIND.exists():
        return "Oclgrind is not installed (Debian: oclgrind)"
    done = subprocess.run(
        [python, "-c", "import json, sys; from pyedmcl.device import quirks, select\n"
         "d = select.select(sys.argv[1]).device; q = quirks.quirks_for(d)\n"
         "print(json.dumps([d.kind, d.name, d.driver, q.unusable]))", runtime],
        env=environment(runtime, "races", Path(os.devnull)), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    if done.returncode:
        return f"the runtime {runtime} is not on this machine"
    kind, name, driver, unusable = json.loads(done.stdout.splitlines()[-1])
    if kind == "gpu":
        name += " (CUDA)" if runtime == "cuda" else ""
    return unusable or {"runtime": name if kind == "gpu" else runtime, "driver": driver}


@functools.cache
def absent(runtime: str, python: str = sys.executable) -> str | None:
    """Why ``runtime`` cannot be used here, or None."""
    what = found(runtime, python)
    return what if isinstance(what, str) else None


def reports(log: str) -> list[str]:
    """Oclgrind's reports, the first lines of each."""
    return [part.strip() for part in re.split(r"\n(?=\S)", "\n" + log) if part.strip()]


def execute(
    runtime: str, run: Run, tasks: Sequence[Task], jobs: int, python: str = sys.executable, *, together: bool = False
) -> Iterator[Record]:
    """Make calls, ``jobs`` processes at a time. Where Oclgrind watches, each call has a process and a count of reports.

    Parameters
    ----------
    runtime : str
    run : Run
    tasks : sequence
    jobs : int
    python : str
    together : bool
        Whether calls share processes also where Oclgrind watches: in half of the time, but a report names no call.

    Yields
    ------
    dict
        As portability_run.py makes them; and for a watched process one that counts the reports.
    """
    if run.watch and not together:
        parts = [[task for task in tasks if task[0] == call] for call in run.calls]  # so that a report names a call
    else:
        size = max(1, min(_PART, -(-len(tasks) // jobs)))
        parts = [list(tasks[begin : begin + size]) for begin in range(0, len(tasks), size)]

    def all_of(part: list[Task]) -> list[Record]:
        return list(_persistent(runtime, run, part, python))

    with ThreadPoolExecutor(jobs) as pool:
        for records in pool.map(all_of, filter(None, parts)):
            yield from records


def _persistent(runtime: str, run: Run, tasks: list[Task], python: str) -> Iterator[Record]:
    """Go on in a new process behind a call at which one ended."""
    while tasks:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "log"
            done, ended = 0, ""
            for record in _process(runtime, run, tasks, python, log):
                if isinstance(record, str):
                    ended = record
                else:
                    done += 1
                    yield {**record, "how": "executed", "parameters": run.parameters, "size": run.size}
            if run.watch:
                there = reports(log.read_text(errors="replace")) if log.exists() else []
                yield {"how": "watched", "parameters": run.parameters, "size": run.size, "watched": run.watch,
                       "call": tasks[0][0], "ok": not there, "reports": len(there), "first": there[:1],
                       "calls": done}  # fmt: skip
        tasks = tasks[done:]
        if tasks:
            call, E, tau, dtype = tasks.pop(0)
            yield {"how": "executed", "parameters": run.parameters, "size": run.size, "call": call, "E": E, "tau": tau,
                   "dtype": dtype, "ended": "failed", "reason": ended}  # fmt: skip


def _process(runtime: str, run: Run, tasks: Iterable[Task], python: str, log: Path) -> Iterator[Record | str]:
    """The records of one process, then how it ended."""
    command = [python, str(BENCH / "portability_run.py"), runtime, run.parameters, run.size]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, env=environment(runtime, run.watch, log), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=errors, text=True)  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(list(tasks)))
        process.stdin.close()
        timer = threading.Timer(LIMIT, process.kill)
        timer.start()
        for line in process.stdout:
            timer.cancel()
            timer = threading.Timer(LIMIT, process.kill)
            timer.start()
            if line.startswith('{"call"'):
                yield json.loads(line)
        timer.cancel()
        code = process.wait()
        errors.seek(0)
        what = f"no answer within {LIMIT} s" if code == -9 else f"the process ended with code {code}"
        yield f"{what}: {errors.read().strip()[-300:]}"

"""What runs and compiles where: every kernel on each OpenCL runtime here, and for GPUs that are not at hand.

usage: python bench/portability.py [--runtimes intel,pocl,rusticl,oclgrind,sycl | none]
       [--targets gfx90a,Gen9,... | none] [--jobs 2] [--resume] [--python PATH] [--take FILE ...]
       [--out bench/results/portability.jsonl] [--docs docs/portability.md]

Every kernel is executed for E = 1, 3, 10, 20, tau = 1, 3, float32 and float64 by the calls of portability_calls.py,
whose answers must be those of the oracles; Oclgrind must have nothing to report. Each kernel is compiled as
portability_programs.py says. The exit status is 1 where a call fails, a program does not compile (unless it needs
double precision that the target lacks), or no program stands for a kernel.

The file of --out is written as work proceeds. Its lines about other runtimes and targets are kept; with --resume also
those of calls that passed and of programs whose text has not changed. --python names another Python for these runtimes,
such as one that has dpctl for "sycl". On a machine with an NVIDIA GPU: --runtimes nvidia,cuda --targets none --out
OTHER, which another machine adds by --take OTHER. With --docs the tables between the marks of that page are written
anew.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import portability_compile as offline
import portability_programs as programs
from portability_execute import BENCH, RUNS, RUNTIMES, Run, execute, found
from portability_tables import needs_float64, tables

from pyedmcl.device.info import DeviceInfo

Record = dict[str, Any]
RESULTS = BENCH / "results" / "portability.jsonl"
MARKS = "<!-- tables: written by bench/portability.py -->", "<!-- end of tables -->"
_HERE = tuple(name for name in RUNTIMES if name not in ("nvidia", "cuda"))


class Results:
    """The records of a file, which grow as work proceeds.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path, self.records = path, load(path)
        self.failed = 0

    def drop(self, *, keep: Any, **of: str) -> None:
        """Forget the records that have these values, but for those that ``keep`` says yes to."""
        self.records = [r for r in self.records if any(r.get(name) != value for name, value in of.items()) or keep(r)]

    def add(self, record: Record) -> None:
        self.records.append(record)
        if not record.get("ok", record.get("ended") != "failed") and not needs_float64(record):
            self.failed += 1
            print(json.dumps(record)[:600], flush=True)

    def save(self) -> None:
        """Write the file: what was executed, what was watched, what was compiled."""
        ways = ("executed", "watched", "compiled")
        names = [*RUNTIMES, *offline.TARGETS]

        def place(record: Record) -> tuple[int, int]:
            name = record.get("target", record.get("runtime"))
            return ways.index(record["how"]), names.index(name) if name in names else len(names)

        self.records.sort(key=place)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("".join(json.dumps(record) + "\n" for record in self.records))


def load(path: Path) -> list[Record]:
    """Records of earlier runs; none where there is no file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run_all(results: Results, runtime: str, jobs: int, resume: bool, python: str) -> None:
    """Make all calls on a runtime, and save after each set of parameters."""
    where = found(runtime, python)
    if isinstance(where, str):
        print(f"left out: {where}", flush=True)
        return
    sizes = {(run.parameters, run.size) for run in RUNS[runtime]}
    results.drop(runtime=where["runtime"], keep=lambda r: (r["parameters"], r["size"]) in sizes)
    for run in RUNS[runtime]:
        _run(results, runtime, run, where, jobs, resume, python)
        results.save()


def _run(results: Results, runtime: str, run: Run, where: Record, jobs: int, resume: bool, python: str) -> None:
    mine = {"runtime": where["runtime"], "parameters": run.parameters, "size": run.size}
    todo = run.tasks()

    def kept(record: Record) -> bool:
        if record["how"] == "watched":
            return record["ok"] and record["call"] in run.calls
        return record["ended"] != "failed" and record["driver"] == where["driver"] and _task(record) in todo

    results.drop(**mine, keep=kept if resume else lambda record: False)
    done = {_task(r) for r in results.records if r["how"] == "executed" and all(r[k] == v for k, v in mine.items())}
    todo = [task for task in todo if task not in done]
    print(f"{where['runtime']}, {run.parameters} {run.watch}: {len(todo)} calls", flush=True)
    for number, record in enumerate(execute(runtime, run, todo, jobs, python), 1):
        results.add({**where, **record})
        if number % 24 == 0:
            results.save()


def _task(record: Record) -> tuple[str, int, int, str]:
    return record["call"], record["E"], record["tau"], record["dtype"]


def compile_all(results: Results, target: str, jobs: int, resume: bool) -> None:
    """Compile every kernel for a target, ``jobs`` programs at a time; a kernel without a program is a failure, too."""
    todo = _programs(offline.gpu(target))
    wanted = {program.digest for program in todo}
    results.drop(target=target, keep=lambda r: resume and r["ok"] and r.get("text") in wanted)
    done = {r["text"] for r in results.records if r.get("target") == target}
    print(f"{target}: {len(wanted - done)} programs", flush=True)
    for number, record in enumerate(_compiled(target, [p for p in todo if p.digest not in done], jobs), 1):
        results.add(record)
        if number % 24 == 0:
            results.save()
    for kernel in programs.uncovered(todo):
        results.add({"how": "compiled", "target": target, "kernel": kernel, "for": "", "dtype": "", "ok": False,
                     "reason": "no tuning problem builds it"})  # fmt: skip
    results.save()


@functools.cache
def _programs(info: DeviceInfo) -> list[programs.Program]:
    return programs.programs_for(info)


def _compiled(target: str, todo: list[programs.Program], jobs: int) -> Iterator[Record]:
    with ThreadPoolExecutor(jobs) as pool:
        made = pool.map(lambda program: offline.compile_program(target, program), todo)
        for program, result in zip(todo, made, strict=True):
            yield {"how": "compiled", "target": target, "kernel": program.kernel, "for": program.label,
                   "dtype": program.dtype, "text": program.digest, **result}  # fmt: skip


def take(results: Results, path: Path) -> None:
    """Put what another machine recorded in the place of records of the same runtimes and targets."""
    theirs = load(path)
    for kind in ("runtime", "target"):
        for name in {r[kind] for r in theirs if kind in r}:
            results.drop(**{kind: name}, keep=lambda record: False)
    results.records += theirs


def write_docs(page: Path, records: list[Record]) -> None:
    """Put the tables between the marks of ``page``."""
    head, _, rest = page.read_text().partition(MARKS[0])
    page.write_text(f"{head}{MARKS[0]}\n{tables(records)}\n{MARKS[1]}{rest.partition(MARKS[1])[2]}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtimes", default=",".join(_HERE))
    parser.add_argument("--targets", default=",".join(offline.TARGETS))
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--resume", action="store_true", help="leave out what passed before")
    parser.add_argument("--python", default=sys.executable, help="for the runtimes")
    parser.add_argument("--take", type=Path, nargs="*", default=[], help="records of other machines")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--docs", type=Path)
    return parser.parse_args()


def main() -> int:
    options = _options()
    runtimes, targets = ([name for name in text.split(",") if name and name != "none"]
                         for text in (options.runtimes, options.targets))  # fmt: skip
    results = Results(options.out)
    for path in options.take:
        take(results, path)
    for runtime in runtimes:
        run_all(results, runtime, options.jobs, options.resume, options.python)
    for target in targets:
        why = offline.missing(target)
        if why is not None:
            print(f"left out: {target}: {why}", flush=True)
            continue
        compile_all(results, target, options.jobs, options.resume)
    results.save()
    if options.docs:
        write_docs(options.docs, results.records)
    print(tables(results.records))
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main())

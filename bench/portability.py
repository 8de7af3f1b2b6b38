"""What runs and compiles where: neighbours and skill on each OpenCL runtime here, all kernels for GPUs not at hand.

usage: python bench/portability.py [--runtimes intel,pocl,rusticl,oclgrind | none] [--targets gfx90a,Gen9,... | none]
       [--jobs 2] [--out bench/results/portability.jsonl] [--docs docs/portability.md]

Neighbours and distances must equal the oracles bit for bit, all else within 2e-5; Oclgrind must have nothing to report.
Each kernel is compiled as portability_programs.py says. The exit status is 1 where a check fails, a program does not
compile (unless it needs double precision that the target lacks), or no program stands for a kernel.
On a machine with a GPU: --runtimes nvidia --targets none. Lines of FILE that another run wrote about other runtimes and
targets are kept. With --docs the tables between the marks of that page are written anew.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import portability_compile as offline
import portability_programs as programs

Record = dict[str, Any]
BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
RESULTS = BENCH / "results" / "portability.jsonl"
OCLGRIND = Path("/usr/lib/oclgrind/liboclgrind-rt-icd.so")
# What to ask pyedmcl for; a runtime's name in the records.
NAMES = {"intel": "intel-cpu"}
SETS = ("default", "gpu", "gpu-unroll4-tile256", "gpu-unroll16-tile512")
# (parameters, size, what Oclgrind watches). Out-of-bounds accesses are always watched.
SIMULATED = (
    ("default", "tiny", "races"),
    ("gpu-unroll4-tile256", "tiny", "races"),
    ("gpu-unroll16-tile512", "tiny", "races"),
    ("lanes4-wg32", "tiny", "races"),
    ("lanes8", "watched", "uninitialised"),
    ("gpu-unroll4-tile256", "watched", "uninitialised"),
)
# rusticl compiles 16 lanes for minutes from E = 10 on: its own parameters are tried for smaller E.
SHORT = {("rusticl", "default")}
LIMIT = 1800  # seconds for one set of parameters
MARKS = "<!-- tables: written by bench/portability.py -->", "<!-- end of tables -->"


def environment(runtime: str, watch: str = "", log: Path | None = None) -> dict[str, str]:
    """The environment in which a process sees ``runtime``."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("OCLGRIND_")}
    plain["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), plain.get("PYTHONPATH", "")]))
    if runtime == "rusticl":
        plain["RUSTICL_ENABLE"] = "llvmpipe"
    if runtime == "oclgrind":
        plain |= {"OCL_ICD_VENDORS": str(OCLGRIND), "OCLGRIND_LOG": str(log)}
        # One thread for uninitialised reads: the shadows of local memory are shared by groups that run side by side.
        plain |= {"OCLGRIND_DATA_RACES": "1"} if watch == "races" else {
            "OCLGRIND_UNINITIALIZED": "1", "OCLGRIND_NUM_THREADS": "1"}  # fmt: skip
    return plain


def absent(runtime: str) -> str | None:
    """Why ``runtime`` cannot be used here, or None."""
    if runtime == "oclgrind" and not OCLGRIND.exists():
        return "Oclgrind is not installed (Debian: oclgrind)"
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from pyedmcl.device import quirks, select\n"
         "print(quirks.quirks_for(select.select(sys.argv[1]).device).unusable or '')", runtime],
        env=environment(runtime, "races", Path(os.devnull)), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    if done.returncode:
        return f"the runtime {runtime} is not on this machine"
    return done.stdout.strip() or None


def reports(log: str) -> list[str]:
    """Oclgrind's reports, the first lines of each."""
    return [part.strip() for part in re.split(r"\n(?=\S)", "\n" + log) if part.strip()]


def execute(runtime: str, parameters: str, size: str, watch: str = "") -> Iterator[Record]:
    """Run all checks in a process of their own; for Oclgrind a last record counts its reports."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        command = [sys.executable, str(BENCH / "portability_run.py"), runtime, parameters, size]
        with (Path(folder) / "out").open("w+") as out, (Path(folder) / "errors").open("w+") as errors:
            process = subprocess.Popen(command, env=environment(runtime, watch, log), stdout=out, stderr=errors)
            try:
                ended = f"code {process.wait(LIMIT)}"
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                ended = f"a stop after {LIMIT} s"
            out.seek(0)
            errors.seek(0)
            records = [json.loads(line) for line in out if line.startswith("{")]
            last = errors.read().strip()[-300:]
        yield from records
        if process.returncode:
            reason = f"the process ended with {ended}: {last}"
            yield {"how": "executed", "runtime": NAMES.get(runtime, runtime), "parameters": parameters, "size": size,
                   "function": "process", "ok": False, "reason": reason}  # fmt: skip
        if runtime == "oclgrind":
            found = reports(log.read_text(errors="replace")) if log.exists() else []
            yield {"how": "watched", "runtime": runtime, "parameters": parameters, "watched": watch, "ok": not found,
                   "launching_checks": len(records), "reports": len(found), "first": found[:1]}  # fmt: skip


def compile_all(target: str, jobs: int) -> Iterator[Record]:
    """Compile every kernel for a target, so many programs at a time; a kernel without a program is a failure, too."""
    todo = programs.programs_for(offline.gpu(target))
    with ThreadPoolExecutor(jobs) as pool:
        results = pool.map(lambda program: offline.compile_program(target, program), todo)
        for program, result in zip(todo, results, strict=True):
            yield {"how": "compiled", "target": target, "kernel": program.kernel, "for": program.label,
                   "dtype": program.dtype, **result}  # fmt: skip
    for kernel in programs.uncovered(todo):
        yield {"how": "compiled", "target": target, "kernel": kernel, "for": "", "dtype": "", "ok": False,
               "reason": "no tuning problem builds it"}  # fmt: skip


def needs_float64(record: Record) -> bool:
    """Whether a program did not compile because the target has no double precision."""
    return record.get("reason", "") == offline.NO_FLOAT64


_SIZES = {"watched": "uninitialised values watched", "tiny": "races watched", "short": "E up to 3"}


def table(records: list[Record]) -> str:
    """All tables as markdown."""
    compiled = [r for r in records if r["how"] == "compiled" and r["kernel"] in programs.kernel_names()]
    parts = (executed_table(records), target_table(compiled), kernel_table(compiled))
    return "\n\n".join("\n".join(part) for part in parts)


def executed_table(records: list[Record]) -> list[str]:
    """A line for each runtime and set of parameters."""
    lines = ["| runtime | driver | parameters | checks | passed |", "| --- | --- | --- | --- | --- |"]
    groups: dict[tuple[str, ...], list[Record]] = defaultdict(list)
    for r in records:
        if r["how"] == "executed":
            size = _SIZES.get(r.get("size", ""), "")
            groups[r["runtime"], r.get("driver", ""), r["parameters"] + (f" ({size})" if size else "")].append(r)
    for key, rows in groups.items():
        lines.append(f"| {' | '.join(key)} | {len(rows)} | {sum(r['ok'] for r in rows)} |")
    watched = [r for r in records if r["how"] == "watched"]
    if watched:
        lines += ["", f"Oclgrind: {sum(r['reports'] for r in watched)} reports in {len(watched)} runs."]
    return lines


def target_table(compiled: list[Record]) -> list[str]:
    """A line for each target."""
    lines = ["| target | programs | compiled | need float64 | failed | without spills | most spills |",
             "| --- | --- | --- | --- | --- | --- | --- |"]  # fmt: skip
    for target in offline.TARGETS:
        rows = [r for r in compiled if r["target"] == target]
        if not rows:
            continue
        good = [r for r in rows if r["ok"]]
        lacking = sum(map(needs_float64, rows))
        most = max(good, key=lambda r: r["spills"], default={"spills": 0})
        named = f"{most['spills']} ({most['kernel']} {most['for']} {most['dtype']})" if most["spills"] else "0"
        lines.append(f"| {target} | {len(rows)} | {len(good)} | {lacking} | {len(rows) - len(good) - lacking} "
                     f"| {sum(not r['spills'] for r in good)} | {named} |")  # fmt: skip
    return lines


def kernel_table(compiled: list[Record]) -> list[str]:
    """A line for each kernel, a column for each target; below it what failed, and kernels that were not compiled."""
    targets = [target for target in offline.TARGETS if any(r["target"] == target for r in compiled)]
    lines = [f"| kernel | {' | '.join(targets)} |", "| --- |" + " --- |" * len(targets)]
    rows: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for r in compiled:
        rows[r["kernel"], r["target"]].append(r)
    for kernel in programs.kernel_names():
        lines.append(f"| {kernel} | {' | '.join(_cell(rows[kernel, target]) for target in targets)} |")
    failed: dict[str, list[str]] = defaultdict(list)
    for r in compiled:
        if not r["ok"] and not needs_float64(r):
            failed[f"`{r['kernel']}` {r['for']} {r['dtype']}: {r['reason']}"].append(r["target"])
    lines += ["", "Failed:" if failed else "Failed: nothing.", *([""] * bool(failed))]
    lines += [f"* {what} ({', '.join(where)})" for what, where in failed.items()]
    missing = [kernel for kernel in programs.kernel_names() if not any(rows[kernel, target] for target in targets)]
    return [*lines, "", f"Not compiled at all: {', '.join(missing) or 'none'}."]


def _cell(rows: list[Record]) -> str:
    """How many programs compiled, of how many where not all did, and how many of them spill."""
    good = [r for r in rows if r["ok"]]
    spilling = sum(r["spills"] > 0 for r in good)
    count = str(len(good)) if len(good) == len(rows) else f"{len(good)} of {len(rows)}"
    return count + (f", {spilling} spill" if spilling else "")


def load(path: Path) -> list[Record]:
    """Records of earlier runs; none where there is no file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def save(path: Path, fresh: list[Record], used: list[str]) -> list[Record]:
    """Replace the records of the runtimes and targets in ``used``; returns all of them."""
    kept = [r for r in load(path) if r.get("target", r.get("runtime")) not in used]
    records = sorted(kept + fresh, key=lambda r: (r["how"] == "compiled", r.get("runtime", "")))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return records


def write_docs(page: Path, records: list[Record]) -> None:
    """Put the tables between the marks of ``page``."""
    head, _, rest = page.read_text().partition(MARKS[0])
    page.write_text(f"{head}{MARKS[0]}\n{table(records)}\n{MARKS[1]}{rest.partition(MARKS[1])[2]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtimes", default="intel,pocl,rusticl,oclgrind")
    parser.add_argument("--targets", default=",".join(offline.TARGETS))
    parser.add_argument("--jobs", type=int, default=2, help="compilers at a time")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--docs", type=Path)
    options = parser.parse_args()
    runtimes, targets = ([name for name in text.split(",") if name and name != "none"]
                         for text in (options.runtimes, options.targets))  # fmt: skip
    fresh: list[Record] = []
    used: list[str] = []
    failed = 0

    def take(records: Iterator[Record]) -> None:
        nonlocal failed
        for record in records:
            fresh.append(record)
            if not record["ok"] and not needs_float64(record):
                failed += 1
                print(json.dumps(record), flush=True)

    for runtime in runtimes:
        why = absent(runtime)
        if why is not None:
            print(f"left out: {why}", flush=True)
            continue
        used.append(NAMES.get(runtime, runtime))
        runs = SIMULATED if runtime == "oclgrind" else [
            (name, "short" if (runtime, name) in SHORT else "full", "") for name in SETS]  # fmt: skip
        for parameters, size, watch in runs:
            print(f"{runtime} {parameters} {watch}", flush=True)
            take(execute(runtime, parameters, size, watch))
        save(options.out, fresh, used)
    for target in targets:
        why = offline.missing(target)
        if why is not None:
            print(f"left out: {target}: {why}", flush=True)
            continue
        used.append(target)
        print(target, flush=True)
        take(compile_all(target, options.jobs))
    records = save(options.out, fresh, used)
    if options.docs:
        write_docs(options.docs, records)
    print(table(records))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

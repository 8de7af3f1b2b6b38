"""The tables of docs/portability.md, from the records of bench/portability.py."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import portability_compile as offline
import portability_programs as programs
from portability_calls import CALLS
from portability_place import DIMS, DTYPES, LAGS

from pyedmcl.kernels import spec

Record = dict[str, Any]
Cell = tuple[str, int, int, str]
_CELLS = len(DIMS) * len(LAGS) * len(DTYPES)
_SIZES = {"watched": "uninitialised values watched", "tiny": "races watched"}


def needs_float64(record: Record) -> bool:
    """Whether a program did not compile because the target has no double precision."""
    return bool(record.get("reason", "") == offline.NO_FLOAT64)


def tables(records: Sequence[Record]) -> str:
    """All tables as markdown."""
    compiled = [r for r in records if r["how"] == "compiled" and r["kernel"] in programs.kernel_names()]
    executed = [r for r in records if r["how"] == "executed"]
    watched = [r for r in records if r["how"] == "watched"]
    parts = (matrix(executed), runs(executed, watched), target_table(compiled), kernel_table(compiled),
             resources(compiled))  # fmt: skip
    return "\n\n".join("\n".join(part) for part in parts)


_SAID = {"intel": "the Intel CPU runtime", "pocl": "PoCL", "rusticl": "rusticl"}


def claim(records: Sequence[Record]) -> str:
    """What a page may say of devices: those on which calls passed and none failed, in words. No simulator is one."""
    executed = [r for r in records if r["how"] == "executed"]
    failed = {r["runtime"] for r in executed if r["ended"] == "failed"}
    good = {r["runtime"] for r in executed if r["ended"] == "passed"} - failed
    said = [name for runtime, name in _SAID.items() if runtime in good]
    if {"intel", "sycl"} <= good:
        said[0] += ' (through OpenCL, and SYCL with `device="sycl"`)'
    # A GPU's name without what follows its model, such as the size of its memory.
    gpus = [name for name in runtimes(executed) if name in good - {*_SAID, "sycl", "oclgrind"}]
    said += dict.fromkeys(f"an {' '.join(name.split()[:2])}" for name in gpus)
    return " and ".join(filter(None, (", ".join(said[:-1]), *said[-1:])))


def runtimes(executed: Iterable[Record]) -> list[str]:
    """In the order of the records."""
    return list(dict.fromkeys(r["runtime"] for r in executed))


def cells(executed: Iterable[Record], runtime: str) -> dict[tuple[str, int, int, str], tuple[str, str]]:
    """(kernel, E, tau, number type) -> how all calls ended that stand for it, and why where not all passed.

    A cell failed where any call did, and passed where one did and no other failed.
    """
    rows: dict[Cell, list[Record]] = defaultdict(list)
    for r in executed:
        if r["runtime"] == runtime:
            for kernel in CALLS[r["call"]].kernels if r["call"] in CALLS else ():
                rows[kernel, r["E"], r["tau"], r["dtype"]].append(r)
    result = {}
    for kernel in programs.kernel_names():
        for E in DIMS:
            for tau in LAGS:
                for dtype in DTYPES:
                    result[kernel, E, tau, dtype] = _ended(rows[kernel, E, tau, dtype])
    return result


def _ended(rows: Sequence[Record]) -> tuple[str, str]:
    for ended in ("failed", "passed", "not there"):
        found = [r for r in rows if r["ended"] == ended]
        if found:
            return ended, found[0].get("reason", "").partition("\n")[0]
    return "not run", "no call was made"


def matrix(executed: Sequence[Record]) -> list[str]:
    """A line for each kernel, a column for each runtime: how many cells passed; below, why others did not."""
    names = runtimes(executed)
    lines = [f"| kernel | {' | '.join(names)} |", "| --- |" + " --- |" * len(names)]
    answers = {name: cells(executed, name) for name in names}
    why: dict[tuple[str, str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for kernel in programs.kernel_names():
        row = []
        for name in names:
            count: dict[str, int] = defaultdict(int)
            for (its, *_), (ended, reason) in answers[name].items():
                if its == kernel:
                    count[ended] += 1
                    if ended != "passed":
                        why[name, ended, reason][kernel] += 1
            others = [f"{number} {ended}" for ended, number in count.items() if ended != "passed"]
            row.append(", ".join([str(count["passed"])] * bool(count["passed"]) + others))
        lines.append(f"| {kernel} | {' | '.join(row)} |")
    lines += ["", "What did not pass:" if why else f"All {_CELLS} cells of each kernel passed everywhere.", ""]
    for (name, ended, reason), kernels in why.items():
        which = ", ".join(f"{kernel} {number}" for kernel, number in kernels.items())
        if len(kernels) == len(programs.kernel_names()) and len(set(kernels.values())) == 1:
            which = f"{next(iter(kernels.values()))} of every kernel"
        lines.append(f"* {name}, {ended}: {reason} ({which})")
    return lines if why else lines[:-1]


def runs(executed: Sequence[Record], watched: Sequence[Record]) -> list[str]:
    """A line for each runtime and set of parameters."""
    lines = ["| runtime | driver | parameters | calls | passed | failed | not there | other bits |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]  # fmt: skip
    bits = _common_bits(executed)
    groups: dict[tuple[str, ...], list[Record]] = defaultdict(list)
    for r in executed:
        size = _SIZES.get(r["size"], "")
        groups[r["runtime"], r["driver"], r["parameters"] + (f" ({size})" if size else "")].append(r)
    for key, rows in groups.items():
        ended = [sum(r["ended"] == wanted for r in rows) for wanted in ("passed", "failed", "not there")]
        other = [r for r in rows if r["ended"] == "passed" and same_bits(r["call"]) and r["bits"] != bits[_task(r)]]
        lines.append(f"| {' | '.join(key)} | {len(rows)} | {' | '.join(map(str, ended))} | {len(other)} |")
    if watched:
        lines += ["", f"Oclgrind: {sum(r['reports'] for r in watched)} reports in {len(watched)} processes that made "
                  f"{sum(r['calls'] for r in watched)} calls."]  # fmt: skip
    return lines


def same_bits(call: str) -> bool:
    """Whether all kernels of a call promise the same bits on every device."""
    return all(spec(kernel).same_bits for kernel in CALLS[call].kernels)


def _task(record: Record) -> tuple[Any, ...]:
    return (record["call"], record["E"], record["tau"], record["dtype"], record["size"] == "usual")


def _common_bits(executed: Iterable[Record]) -> dict[tuple[Any, ...], str]:
    """Task -> the bits that most runs gave."""
    found: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    for r in executed:
        if r["ended"] == "passed":
            found[_task(r)].append(r["bits"])
    return {task: max(sorted(bits), key=bits.count) for task, bits in found.items()}


def target_table(compiled: Sequence[Record]) -> list[str]:
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


def kernel_table(compiled: Sequence[Record]) -> list[str]:
    """A line for each kernel, a column for each target; below it what failed, and kernels that were not compiled."""
    targets, rows = _by_kernel(compiled)
    lines = [f"| kernel | {' | '.join(targets)} |", "| --- |" + " --- |" * len(targets)]
    for kernel in programs.kernel_names():
        lines.append(f"| {kernel} | {' | '.join(_cell(rows[kernel, target]) for target in targets)} |")
    failed: dict[str, list[str]] = defaultdict(list)
    for r in compiled:
        if not r["ok"] and not needs_float64(r):
            failed[f"`{r['kernel']}` {r['for']} {r['dtype']}: {r['reason']}"].append(r["target"])
    lines += ["", "Failed:" if failed else "Failed: nothing.", *([""] * bool(failed))]
    lines += [f"* {what} ({', '.join(where)})" for what, where in failed.items()]
    missing = [f"{kernel} ({target})" for kernel in programs.kernel_names() for target in targets
               if not rows[kernel, target]]  # fmt: skip
    return [*lines, "", f"Not compiled at all: {', '.join(missing) or 'none'}."]


def resources(compiled: Sequence[Record]) -> list[str]:
    """The most registers of a kernel on each target, with AMD's compiler also the fewest waves of a SIMD unit."""
    targets, rows = _by_kernel(compiled)
    lines = [f"| kernel | {' | '.join(targets)} |", "| --- |" + " --- |" * len(targets)]
    for kernel in programs.kernel_names():
        lines.append(f"| {kernel} | {' | '.join(_used(rows[kernel, target]) for target in targets)} |")
    return lines


def _by_kernel(compiled: Sequence[Record]) -> tuple[list[str], dict[tuple[str, str], list[Record]]]:
    rows: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for r in compiled:
        rows[r["kernel"], r["target"]].append(r)
    return [target for target in offline.TARGETS if any(r["target"] == target for r in compiled)], rows


def _used(rows: Sequence[Record]) -> str:
    registers = [r["registers"] for r in rows if r["ok"] and "registers" in r]
    waves = [r["occupancy"] for r in rows if r["ok"] and "occupancy" in r]
    lanes = [r["simd"] for r in rows if r["ok"] and "simd" in r]
    said = [str(max(registers))] if registers else []
    said += [f"{min(waves)} waves"] if waves else []
    said += [f"{min(lanes)} lanes"] if lanes else []
    return ", ".join(said) or "-"


def _cell(rows: Sequence[Record]) -> str:
    """How many programs compiled, of how many where not all did, and how many of them spill."""
    good = [r for r in rows if r["ok"]]
    spilling = sum(r["spills"] > 0 for r in good)
    count = str(len(good)) if len(good) == len(rows) else f"{len(good)} of {len(rows)}"
    return count + (f", {spilling} spill" if spilling else "")

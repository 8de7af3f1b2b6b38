"""What share of the best known speed parameters reach that were not made for a device.

usage: python bench/performance_portability.py [NAME ...] [--device NAME] [--quick] [--rounds 5] [--tune 60]
       [--search 600] [--database FOLDER] [--wisdom FILE ...] [--out FILE] [--docs docs/bench.md]
       python bench/performance_portability.py --from FILE [--docs docs/bench.md]

The workloads are those of bench/run.py: kernels that have something to tune, and whole calls. Each runs in turn with

    defaults   nothing is known of the device
    other      the shipped wisdom of all other devices of its class (processors or GPUs), as if it were of this device
    tuned      what 'pyedmcl tune' found in --tune seconds for everything; it began with what "other" knows, as that of
               a user does
    alone      the same where no wisdom is shipped
    best       what is known: the device's own shipped wisdom, and --search seconds of tuning, kept in --database, where
               the next run goes on

With --tune 0 the two tuned ways are left out.

The best known time of a workload is the least of the medians of these five. A share is that time over the one of a
way, and a device's figure the harmonic mean of its shares (Pennycook, Sewall and Lee, 2019; there over devices, as in
the row below all devices of the table). A line holds one workload. --wisdom adds files as 'pyedmcl db export' writes
them. --docs puts the table of the lines of --out (or --from) between the marks of that page.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

from calls import WholeCall
from common import Report, clock, parser

from pyedmcl.device.info import DeviceInfo, device_key
from pyedmcl.errors import InputError
from pyedmcl.kernels import NAMES, spec
from pyedmcl.tuner.measure import Bench
from pyedmcl.tuner.problem import TuningCase
from pyedmcl.tuning import knowledge
from pyedmcl.tuning.parameters import source
from pyedmcl.tuning.records import Entry

ROOT = Path(__file__).resolve().parent.parent
MARKS = "<!-- table: written by bench/performance_portability.py -->", "<!-- end of table -->"
COLUMNS = {
    "defaults": "defaults", "other": "another device's wisdom", "tuned": "60 s of tuning",
    "alone": "60 s of tuning, nothing shipped",
}  # fmt: skip
GOALS = {"defaults": 0.85, "other": 0.9, "tuned": 0.97}
_SHIPPED = knowledge.shipped
# Reads shipped wisdom from a file, and runs the command.
_COMMAND = """
import pathlib, sys
from pyedmcl.tuning import knowledge as wisdom
entries = wisdom.read(pathlib.Path(sys.argv.pop(1))).entries
wisdom.shipped = lambda runtime, kernel: entries
from pyedmcl.cli.app import app
app(sys.argv[1:])
"""
_PROCESSORS = frozenset({"intel-cpu", "pocl", "rusticl"})


@dataclass(frozen=True)
class Way:
    """What is known while a workload runs.

    Attributes
    ----------
    name : str
        A key of :data:`COLUMNS`, or "best".
    folder : str
        Holds the database.
    shipped : tuple of Entry
    """

    name: str
    folder: str
    shipped: tuple[Entry, ...] = ()


def of_class(info: DeviceInfo, more: Sequence[Path] = ()) -> tuple[Entry, ...]:
    """Shipped wisdom of other devices of the class of ``info``, as if they were this one."""
    mine = device_key(info)
    files = [*sorted((ROOT / "tuning" / "wisdom").glob("*.jsonl")), *more]
    entries = [entry for file in files for entry in knowledge.read(file).entries]
    return tuple(
        replace(entry, key=replace(entry.key, device=mine))
        for entry in entries
        if entry.key.kernel in NAMES
        and (entry.key.device.name, entry.key.device.runtime) != (mine.name, mine.runtime)
        and (entry.key.device.runtime in _PROCESSORS) == (info.kind == "cpu")
    )


@contextlib.contextmanager
def known(way: Way) -> Iterator[None]:
    """Within the block, parameters are chosen by what a way knows, and searches by the shipped rates as ever."""

    def shipped(runtime: str, kernel: str) -> tuple[Entry, ...]:
        return way.shipped if kernel in NAMES else _SHIPPED(runtime, kernel)

    with (
        mock.patch.dict(os.environ, PYEDMCL_DATA_DIR=way.folder),
        mock.patch.object(knowledge, "shipped", shipped),
    ):
        source.forget()
        with source.mode("never" if way.name == "defaults" else "cached"):
            yield
    source.forget()


def tune(way: Way, device: str, kernels: Sequence[str], seconds: float) -> None:
    """Have 'pyedmcl tune' fill the database of a way for ``seconds``, with the wisdom that the way knows."""
    command = ["tune", *kernels, "--device", device, "--mode", "rapid", "--budget", f"{seconds:g}s", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        shipped = Path(folder, "shipped.jsonl")
        shipped.write_text("".join(knowledge.line(entry) + "\n" for entry in way.shipped))
        done = subprocess.run([sys.executable, "-c", _COMMAND, str(shipped), *command],
                              env={**os.environ, "PYEDMCL_DATA_DIR": way.folder}, check=False)  # fmt: skip
    if done.returncode:
        raise SystemExit(f"'pyedmcl {' '.join(command)}' ended with code {done.returncode}")


def of_kernel(bench: Bench, case: TuningCase, ways: Sequence[Way], rounds: int) -> dict[str, Any] | None:
    """Seconds of a kernel's launches by each way, and its parameters; None where it has none to choose, and why where
    the device cannot run it."""
    described = bench.describe(case, None)
    if described.status != "ok":
        why = described.note.partition("\n")[0]
        return {"kind": "kernel", "name": case.kernel, "problem": case.name, "absent": why}
    if not described.asked:
        return None
    asked, info = described.asked[0], bench.executor.info
    chosen: dict[str, Mapping[str, Any]] = {}
    for way in ways:
        with known(way):
            choice = source.parameters(spec(case.kernel), asked.specialisation, info, asked.sizes)
            chosen[way.name] = dict(choice.parameters)
    times: dict[str, list[float]] = {json.dumps(each, sort_keys=True): [] for each in chosen.values()}
    for number in range(rounds):
        order = list(times)
        for text in order[number % len(order) :] + order[: number % len(order)]:
            times[text] += bench.sample(case, json.loads(text)).seconds
    seconds = {name: statistics.median(times[json.dumps(each, sort_keys=True)]) for name, each in chosen.items()}
    return {"kind": "kernel", "name": case.kernel, "problem": case.name, "seconds": seconds, "parameters": chosen}


def of_call(call: WholeCall, ways: Sequence[Way], rounds: int) -> dict[str, Any]:
    """Seconds of a whole call by each way, in rounds after one that compiles; each time a call before looks up. Or why
    the device cannot make it."""
    times: dict[str, list[float]] = {way.name: [] for way in ways}
    for number in range(rounds + 1):
        for way in (*ways[number % len(ways) :], *ways[: number % len(ways)]):
            with known(way):
                try:
                    call.ours()
                except InputError as error:  # such as a device without double precision
                    return {"kind": "call", "name": call.name, "problem": call.problem, "absent": str(error)}
                seconds = clock(call.ours)
            times[way.name] += [seconds] if number else []
    medians = {name: statistics.median(found) for name, found in times.items()}
    return {"kind": "call", "name": call.name, "problem": call.problem, "seconds": medians}


def shares(record: Mapping[str, Any]) -> dict[str, float]:
    """The best known time over that of each way that was measured."""
    seconds = record.get("seconds", {})
    return {way: min(seconds.values()) / seconds[way] for way in COLUMNS if way in seconds}


def table(records: Sequence[Mapping[str, Any]]) -> str:
    """A row for each device and kind of workload, then their harmonic means; of each workload the last line counts."""
    last = {(r["device"], r["runtime"], r["kind"], r["name"], r["problem"]): r for r in records}
    if not last:
        return "No device was measured yet."
    lines = [f"| device | workloads | {' | '.join(COLUMNS.values())} |", "| --- " * (2 + len(COLUMNS)) + "|"]
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for place, record in last.items():
        groups.setdefault(place[:3], []).append(record)
    for device, runtime, kind in groups:
        some = [found for record in groups[device, runtime, kind] if (found := shares(record))]
        cells = [_cell([each[way] for each in some if way in each]) for way in COLUMNS]
        absent = len(groups[device, runtime, kind]) - len(some)
        count = f"{len(some)} {kind}s{f', {absent} not there' * bool(absent)}"
        lines.append(f"| {device} ({runtime}) | {count} | {' | '.join(cells)} |")
    means = [[statistics.harmonic_mean([shares(r)[way] for r in group if way in shares(r)])
              for group in groups.values() if any(way in shares(r) for r in group)] for way in COLUMNS]  # fmt: skip
    lines.append(f"| harmonic mean of the rows | | {' | '.join(map(_cell, means))} |")
    lines.append("| goal | | " + " | ".join(f"{GOALS[way]:g}" if way in GOALS else "" for way in COLUMNS) + " |")
    worst = [(1 / shares(r)["defaults"], r) for r in last.values() if shares(r).get("defaults", 1) < 1 / 1.5]
    lost = [f"{r['name']} ({r['problem']}) on {r['device']} {ratio:.2f}x"
            for ratio, r in sorted(worst, key=lambda pair: -pair[0])]  # fmt: skip
    return "\n".join([*lines, "", f"Defaults lose more than 1.5x: {'; '.join(lost) or 'nowhere'}."])


def _cell(values: Sequence[float]) -> str:
    return f"{statistics.harmonic_mean(values):.2f}, least {min(values):.2f}" if values else "not measured"


def write_docs(page: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Put the table between the marks of a page."""
    head, _, rest = page.read_text().partition(MARKS[0])
    page.write_text(f"{head}{MARKS[0]}\n{table(records)}\n{MARKS[1]}{rest.partition(MARKS[1])[2]}")


def load(path: str | None) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()] if path and Path(path).exists() else []


def measure(options: Any, known_files: Sequence[Path]) -> None:
    """Tune where that is asked for, then time every workload."""
    from figures import problems

    from pyedmcl.device.select import open_device

    executor = open_device(options.device)
    info = executor.info
    todo = problems(options.names, info, options.quick)
    kernels = sorted({work.kernel for work in todo if isinstance(work, TuningCase) and spec(work.kernel).tunables})
    report = Report(info, options.out)
    with tempfile.TemporaryDirectory() as folder:
        others = of_class(info, known_files)
        ways = [
            Way("defaults", f"{folder}/none"), Way("other", f"{folder}/none", others),
            Way("tuned", f"{folder}/tuned", others), Way("alone", f"{folder}/alone"),
            Way("best", options.database or f"{folder}/best", knowledge.read_shipped(info.runtime).entries),
        ]  # fmt: skip
        if not others:  # a tuning begins with nothing in any case
            ways = [way for way in ways if way.name not in ("other", "alone")]
        if not options.tune:
            ways = [way for way in ways if way.name not in ("tuned", "alone")]
        budgets = {"tuned": options.tune, "alone": options.tune, "best": options.search}
        for way in ways:
            if budgets.get(way.name):
                # Of a few workloads a kernel gets the share that it would have of all.
                tune(way, info.id, kernels if options.names else [], budgets[way.name])
        bench = Bench(executor)
        for work in todo:
            if isinstance(work, WholeCall):
                record: dict[str, Any] | None = of_call(work, ways, options.rounds)
            else:
                record = of_kernel(bench, work, ways, options.rounds) if work.kernel in kernels else None
            if record is not None:
                found = record.get("absent") or ", ".join(f"{way} {share:.2f}" for way, share in shares(record).items())
                report.add(f"{record['kind']:>6} {record['name']:<20} {record['problem']:<40} {found}", **record)


def main(arguments: list[str] | None = None) -> None:
    command = parser(__doc__)
    command.add_argument("names", nargs="*", metavar="NAME", help="kernels and calls, as for bench/run.py")
    command.add_argument("--from", dest="source", metavar="FILE", help="make the table of its lines, and run nothing")
    command.add_argument("--quick", action="store_true", help="smaller and fewer problems")
    command.add_argument("--rounds", type=int, default=5)
    command.add_argument("--tune", type=float, default=60.0, metavar="SECONDS")
    command.add_argument("--search", type=float, default=600.0, metavar="SECONDS")
    command.add_argument("--database", help="folder that keeps what the longer search finds")
    command.add_argument("--wisdom", type=Path, nargs="*", default=[], help="of more devices")
    command.add_argument("--docs", type=Path)
    options = command.parse_args(arguments)
    if not options.source:
        measure(options, options.wisdom)
    records = load(options.source or options.out)
    print(table(records))
    if options.docs:
        write_docs(options.docs, records)


if __name__ == "__main__":
    main()

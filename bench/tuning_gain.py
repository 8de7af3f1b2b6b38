"""What tuning gains: shipped wisdom against defaults, kernel by kernel, and against a fresh tuning; cost of a look-up.

usage: python bench/tuning_gain.py [--device NAME] [--kernels knn,lookup] [--mode normal] [--rounds 9] [--fresh SECONDS]
       [--cases N] [--out FILE]

Each figure is the time on the device of the kernel's own launches, defaults and shipped parameters in turn, in one
process and with an empty database. With ``--fresh`` each problem is tuned anew for its seconds, without any wisdom
and with another seed; the winner runs in the same rounds, and ``reached`` is the share of its speed that shipped
wisdom has.
"""

from __future__ import annotations

import math
import os
import statistics
import tempfile
import time
from collections.abc import Mapping
from typing import Any
from unittest import mock

from common import Report, parser


def parameters_of(asked: Any, spec: Any, info: Any) -> tuple[Mapping[str, Any], str]:
    from pyedmcl.tuning.parameters import source

    with source.mode("cached"):
        choice = source.parameters(spec, asked.specialisation, info, asked.sizes)
    return dict(choice.parameters), choice.grade


def fresh(bench: Any, case: Any, spec: Any, info: Any, seconds: float) -> Mapping[str, Any]:
    """The outcome of a tuning that knows nothing."""
    from pathlib import Path

    from pyedmcl.tuner.measure import Settings
    from pyedmcl.tuner.search import Tuning
    from pyedmcl.tuning import knowledge
    from pyedmcl.tuning.database import Database, new_session
    from pyedmcl.tuning.parameters import source

    with tempfile.TemporaryDirectory() as folder, mock.patch.object(knowledge, "shipped", lambda runtime, kernel: ()):
        source.forget()
        settings = Settings("greedy", seed=1, rounds=5, duel=7)
        until = time.monotonic() + seconds
        database = Database(Path(folder) / "fresh.sqlite3")
        outcome = Tuning(bench, spec, case, info, database, new_session(), settings, until).run()
    source.forget()
    return outcome.parameters


def lookup_cost(asked: Any, spec: Any, info: Any) -> dict[str, float]:
    """Seconds of a question: the very first one of a process, a new one, and one that was asked before."""
    from pyedmcl.tuning.parameters import source

    source.forget()

    def ask(rows: int) -> float:
        begun = time.perf_counter()
        source.parameters(spec, asked.specialisation, info, {**asked.sizes, "rows": rows})
        return time.perf_counter() - begun

    with source.mode("cached"):
        first = ask(500)
        new = [ask(rows) for rows in range(501, 701)]
        again = [ask(rows) for rows in range(501, 701)]
    return {
        "first_s": first,
        "new_s": statistics.median(new),
        "new_most_s": max(new),
        "again_s": statistics.median(again),
    }


def main() -> None:
    command = parser(__doc__)
    command.add_argument("--kernels", default="")
    command.add_argument("--mode", default="normal")
    command.add_argument("--rounds", type=int, default=9)
    command.add_argument("--fresh", type=float, default=0.0)
    command.add_argument("--cases", default="", help="which of a kernel's problems, as numbers; all by default")
    options = command.parse_args()
    os.environ["PYEDMCL_DATA_DIR"] = tempfile.mkdtemp(prefix="pyedmcl-bench-")  # empty: only what is shipped
    from pyedmcl.device.select import open_device
    from pyedmcl.kernels import spec
    from pyedmcl.tuner.measure import Bench
    from pyedmcl.tuner.problems import names, problem, tuned_spec

    executor = open_device(options.device)
    info, bench = executor.info, Bench(executor)
    wanted = [n for n in options.kernels.split(",") if n] or [n for n in names() if spec(n).tunables]
    gains: list[float] = []
    report = Report(info, options.out)
    for name in wanted:
        some = problem(name).cases(options.mode, info)
        for number in map(int, options.cases.split(",")) if options.cases else range(len(some)):
            if number >= len(some):
                continue
            case = some[number]
            described = bench.describe(case, None)
            if described.status != "ok" or not described.asked:
                print(f"{name}, {case.name}: {described.note}")
                continue
            shipped, grade = parameters_of(described.asked[0], spec(name), info)
            runs: dict[str, Any] = {"default": None, "shipped": shipped}
            if options.fresh:
                runs["fresh"] = fresh(bench, case, tuned_spec(name), info, options.fresh)
            figures: dict[str, list[float]] = {run: [] for run in runs}
            for round_ in range(options.rounds):
                order = list(runs)
                for run in order[round_ % len(order) :] + order[: round_ % len(order)]:
                    figures[run] += bench.sample(case, runs[run]).seconds
            middle = {run: statistics.median(seconds) for run, seconds in figures.items() if seconds}
            gain = middle["default"] / middle["shipped"]
            gains.append(gain)
            record = {"kernel": name, "case": case.name, "grade": grade, "parameters": shipped, "gain": gain,
                      **{f"{run}_s": seconds for run, seconds in middle.items()}}  # fmt: skip
            if "fresh" in middle:
                record |= {"fresh_parameters": runs["fresh"], "reached": middle["fresh"] / middle["shipped"]}
            report.add(**record)
            if name == "knn" and number == 0:
                report.add(**{"look-up of parameters": name}, **lookup_cost(described.asked[0], spec(name), info))
    if gains:
        mean = math.exp(statistics.mean(map(math.log, gains)))
        report.add(**{"geometric mean of gains": mean}, least=min(gains), problems=len(gains))


if __name__ == "__main__":
    main()

"""What it costs to use parameters that were tuned on another problem: every known configuration on every problem.

usage: python bench/tuning_loss.py [--device NAME] [--kernels knn,lookup] [--mode normal] [--rounds 5] [--out FILE]
       python bench/tuning_loss.py --from FILE

For each tuning problem of a kernel, the defaults and all configurations that the shipped wisdom of the device's runtime
holds for that kernel run in turn, in one process; a figure is the shortest time of the kernel's own launches. A line
holds one problem as the look-up of parameters sees it, the seconds of the defaults, and for each configuration what it
was tuned on and its seconds. At the end, or of the lines of a file, it is told what the look-up would take and cost if
nothing were known of the problem's own size, or of the device but for a relative of it: seconds through those of the
defaults, which should never be more than 1.1.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import Report, parser


def configurations(asked: Any, spec: Any, info: Any, entries: Any) -> list[dict[str, Any]]:
    """Distinct configurations that fit, each with all that it was tuned on."""
    from pyedmcl.device.quirks import quirks_for
    from pyedmcl.tuning import defaults

    found: dict[str, dict[str, Any]] = {}
    for entry in entries:
        if defaults.unfit(
            spec, entry.parameters, asked.specialisation, info, quirks_for(info).max_work_group, asked.sizes
        ):
            continue
        one = found.setdefault(json.dumps(entry.parameters, sort_keys=True), {"parameters": dict(entry.parameters)})
        one.setdefault("tuned_on", []).append(
            {"specialisation": json.loads(entry.key.specialisation), "size": json.loads(entry.key.size)}
        )
    return list(found.values())


def gains(lines: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """How many times faster than the defaults configurations are on each problem, by :func:`_place`."""
    return {
        _place(line, line, one["parameters"]): line["default_s"] / one["seconds"]
        for line in lines
        for one in line["configurations"]
    }


def _place(line: Mapping[str, Any], problem: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    of = [line.get("runtime"), line["kernel"], problem["specialisation"], problem["size"], parameters]
    return json.dumps(of, sort_keys=True)


def left_out(line: Mapping[str, Any], what: str, gained: Mapping[str, float]) -> float:
    """Seconds through those of the defaults, of what the look-up takes without some knowledge.

    Parameters
    ----------
    line : mapping
        As this benchmark writes it.
    gained : mapping
        Of :func:`gains`, of the problems that the configurations were tuned on.
    what : {"nothing", "size", "device"}
        Left out: nothing; what was tuned on the problem's own specialisation and size; the device, for which a relative
        stands in.
    """
    from pyedmcl.device.info import DeviceKey
    from pyedmcl.tuning.records import Entry, TuningKey, canonical, ranked

    device = DeviceKey("vendor", "Device A100", "runtime", "1", "1", line["units"], 1024, 49152)
    other = replace(device, name="Device A200") if what == "device" else device
    asked = TuningKey(device, line["kernel"], "text", canonical(line["specialisation"]), canonical(line["size"]))
    entries, seconds = [], {}
    for number, one in enumerate(line["configurations"]):
        seconds[number] = one["seconds"]
        for on in one["tuned_on"]:
            key = replace(
                asked, device=other, specialisation=canonical(on["specialisation"]), size=canonical(on["size"])
            )
            if what != "size" or key != asked:
                entries.append(Entry(key, {"number": number}, gain=gained.get(_place(line, on, one["parameters"]))))
    found = ranked((), asked, entries)
    return float(seconds[found[0][1].parameters["number"]] / line["default_s"]) if found else 1.0


def tell(lines: list[dict[str, Any]]) -> None:
    """What is lost at most, and where."""
    gained = gains(lines)
    for what in ("nothing", "size", "device"):
        lost = {f"{line['kernel']}, {line['case']}": left_out(line, what, gained) for line in lines}
        worst = max(lost, key=lambda name: lost[name])
        print(f"without {what}: at most {lost[worst]:.2f} ({worst}), {sum(lost.values()) / len(lost):.2f} in the mean")


def main() -> None:
    command = parser(__doc__)
    command.add_argument("--from", dest="source", metavar="FILE", help="tell of the lines of a file, and run nothing")
    command.add_argument("--kernels", default="", help="all that wisdom is shipped for by default")
    command.add_argument("--mode", default="normal")
    command.add_argument("--rounds", type=int, default=5)
    options = command.parse_args()
    if options.source:
        tell([json.loads(text) for text in Path(options.source).read_text().splitlines()])
        return
    os.environ["PYEDMCL_DATA_DIR"] = tempfile.mkdtemp(prefix="pyedmcl-bench-")  # empty: only what is shipped
    from pyedmcl.device.select import open_device
    from pyedmcl.kernels import NAMES, spec
    from pyedmcl.tuner.measure import Bench
    from pyedmcl.tuner.problems import problem
    from pyedmcl.tuning import knowledge
    from pyedmcl.tuning.records import tuning_key

    executor = open_device(options.device)
    info, bench = executor.info, Bench(executor)
    report, lines = Report(info, options.out), []
    shipped = knowledge.read_shipped(info.runtime).entries
    kernels = {entry.key.kernel for entry in shipped} & set(NAMES)
    for name in options.kernels.split(",") if options.kernels else sorted(kernels):
        entries = [entry for entry in shipped if entry.key.kernel == name]
        for case in problem(name).cases(options.mode, info):
            described = bench.describe(case, None)
            if described.status != "ok" or not described.asked:
                print(f"{name}, {case.name}: {described.note}")
                continue
            asked = described.asked[0]
            some = configurations(asked, spec(name), info, entries)
            runs = [None, *(one["parameters"] for one in some)]
            best = [float("inf")] * len(runs)
            for round_ in range(options.rounds):
                for place in (*range(round_ % len(runs), len(runs)), *range(round_ % len(runs))):
                    best[place] = min([best[place], *bench.sample(case, runs[place]).seconds])
            # An engine may ask with several keys in one run; what is kept for one of them is kept for all.
            for question in described.asked:
                key = tuning_key(spec(name), question.specialisation, info, question.sizes)
                line = {
                    "kernel": name, "case": case.name, "specialisation": json.loads(key.specialisation),
                    "size": json.loads(key.size), "units": info.compute_units, "default_s": best[0],
                    "configurations": [{**one, "seconds": s} for one, s in zip(some, best[1:], strict=True)],
                }  # fmt: skip
                report.add(**line)
                lines.append(line)
    tell(lines)


if __name__ == "__main__":
    main()

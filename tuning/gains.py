"""Write into the shipped wisdom how many times faster than the defaults each entry was, from measured lines.

    python bench/tuning_loss.py --device NAME --kernels knn,lookup --out lines.jsonl
    python tuning/gains.py lines.jsonl

The look-up of parameters carries an entry to another size or device only where it gained enough on its own problem
(docs/tuning.md). ``pyedmcl tune`` and ``pyedmcl db export`` note gains by themselves; this is for entries that are
older than that, and for measuring anew. Entries of problems that were not measured keep what they have.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyedmcl.tuning.records import canonical

WISDOM = Path(__file__).resolve().parent / "wisdom"


def measured(lines: str) -> dict[str, float]:
    """Gains in lines of bench/tuning_loss.py, by what :func:`_place` makes of device, problem and parameters."""
    found = {}
    for line in map(json.loads, lines.splitlines()):
        for one in line["configurations"]:
            at = _place(line["runtime"], line["device"], line, one["parameters"])
            found[at] = round(line["default_s"] / one["seconds"], 3)
    return found


def _place(runtime: str, device: str, problem: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    return canonical(
        {"device": [runtime, device], "kernel": problem["kernel"], "specialisation": problem["specialisation"],
         "size": problem["size"], "parameters": dict(parameters)}
    )  # fmt: skip


def with_gains(wisdom: str, found: Mapping[str, float]) -> str:
    """The lines of a file, those whose problem was measured with the gain that was found."""
    lines = []
    for line in wisdom.splitlines():
        record = json.loads(line)
        device = record["device"]
        gain = found.get(_place(device["runtime"], device["name"], record, record["parameters"]))
        line = line if gain is None else canonical({**record, "gain": gain})
        lines.append(line + "\n")
    return "".join(lines)


def main(files: list[str]) -> int:
    if not files:
        print(__doc__)
        return 2
    found: dict[str, float] = {}
    for file in files:
        found |= measured(Path(file).read_text(encoding="utf-8"))
    for path in sorted(WISDOM.glob("*.jsonl")):
        before = path.read_text(encoding="utf-8")
        after = with_gains(before, found)
        if after != before:
            path.write_text(after, encoding="utf-8", newline="\n")
            print(f"{path.name} written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

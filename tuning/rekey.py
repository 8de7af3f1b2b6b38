"""Give the shipped wisdom the digests of today's kernels, where a kernel's text changed and its parameters did not.

    python tuning/rekey.py               # which kernels have entries of another digest
    python tuning/rekey.py knn lookup    # these entries belong to today's text

Wisdom is what was fast on a device. It stays true when a kernel is only written differently (renamed variables, a
fragment of its own); it does not when the work was laid out anew, and then the kernel has to be tuned again. Only a
person knows which of the two it was, so kernels are named one by one. An entry that today's spec does not allow is an
error, and no file is written.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from pyedmcl.kernels import NAMES, spec
from pyedmcl.tuning.defaults import objections
from pyedmcl.tuning.records import canonical, digest_of

WISDOM = Path(__file__).resolve().parent / "wisdom"


def stale(text: str) -> Counter[str]:
    """Kernel to the number of its entries that belong to another text than today's."""
    found: Counter[str] = Counter()
    for record in map(json.loads, text.splitlines()):
        if record["digest"] != digest_of(record["kernel"]):
            found[record["kernel"]] += 1
    return found


def rekeyed(text: str, kernels: tuple[str, ...]) -> str:
    """The lines of a file, those of ``kernels`` with today's digests. Raises ValueError for an illegal entry."""
    lines = []
    for number, line in enumerate(text.splitlines(), start=1):
        record = json.loads(line)
        if record.get("kernel") in kernels:
            kernel = spec(record["kernel"])
            # Of the specialisation an entry keeps a bucket only.
            reason = next(objections(kernel, record["parameters"], {}, kernel.constraints), None)
            if reason is not None:
                raise ValueError(f"line {number}: {record['kernel']} does not allow this entry: {reason}")
            line = canonical({**record, "digest": digest_of(record["kernel"])})
        lines.append(line + "\n")
    return "".join(lines)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernel", nargs="*", metavar="KERNEL", help="kernels whose entries are still true")
    kernels = tuple(parser.parse_args(arguments).kernel)
    unknown = sorted(set(kernels) - set(NAMES))
    if unknown:
        parser.error(f"there is no kernel {', '.join(unknown)}; there are {', '.join(NAMES)}")
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(WISDOM.glob("*.jsonl"))}
    after = {}
    for path, text in texts.items():
        try:
            after[path] = rekeyed(text, kernels)
        except ValueError as error:
            print(f"{path.name}, {error}", file=sys.stderr)
            return 2
    left: Counter[str] = Counter()
    for path, text in after.items():
        if text != texts[path]:
            path.write_text(text, encoding="utf-8", newline="\n")
            print(f"{path.name} written")
        left += stale(text)
    for kernel, count in sorted(left.items()):
        print(f"{kernel}: {count} {'entry belongs' if count == 1 else 'entries belong'} to another text")
    return int(bool(left))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

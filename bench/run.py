"""Kernels and whole calls on a device: how fast, what share of its limits, how fast other packages are.

usage: python bench/run.py [NAME ...] [--device NAME] [--quick] [--rounds N] [--no-peer] [--out FILE]

A NAME is a kernel, a function such as xmap, or both; all of them by default. Limits (arithmetic and memory) are
measured first. Parameters are those that a job would get: see 'pyedmcl tune'. docs/bench.md explains the figures.
Ctrl-C ends it; what was measured so far has been shown, and is in FILE.
"""

from __future__ import annotations

import sys

from ceilings import ceilings
from common import Report, parser
from figures import Figure, figures, known_names, problems

from pyedmcl.device.select import open_device

_ROUNDS, _ROUNDS_QUICK = 7, 3
_MEMORIES = ("device", "local")


def main(arguments: list[str] | None = None) -> None:
    command = parser(__doc__)
    command.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known_names()))
    command.add_argument("--quick", action="store_true", help="smaller and fewer problems, 3 rounds")
    command.add_argument("--rounds", type=int, help="of each problem; 7 by default")
    command.add_argument("--no-peer", action="store_true", help="do not run kEDM and PyRQA")
    options = command.parse_args(arguments)
    for name in options.names:
        if name not in known_names():
            command.error(f"{name!r}: one of {', '.join(known_names())} is needed")
    rounds = options.rounds or (_ROUNDS_QUICK if options.quick else _ROUNDS)
    executor = open_device(options.device)
    todo = problems(options.names, executor.info, options.quick)
    report = Report(executor.info, options.out)
    print(f"{report.title}: {len(todo)} problems")
    done = 0
    try:
        limits = ceilings(executor)
        for limit in limits.values():
            report.add(f"limit {limit.name}: {rate_text(limit.rate, limit.unit)}", kind="ceiling", name=limit.name,
                       per_second=limit.rate, unit=limit.unit)  # fmt: skip
        for figure in figures(executor, todo, limits, rounds=rounds, with_peers=not options.no_peer):
            report.add(line(figure), **figure.as_dict())
            done += 1
    except KeyboardInterrupt:
        print(f"stopped: {done} of {len(todo)} problems were timed", file=sys.stderr)
        raise SystemExit(130) from None


def line(figure: Figure) -> str:
    """A figure for people: name, problem, time and spread, rate, shares of the limits, ratio to the peer, grades."""
    name = figure.name if figure.kind == "kernel" else f"{figure.name}()"
    words = [
        f"{name:<20} {figure.problem:<44} {figure.median * 1e3:9.3f} ms {figure.spread / figure.median:5.1%}",
        f"{rate_text(figure.rate, figure.unit + '/s'):>22}",
    ]
    words += [f"{share:4.0%} {limit if limit in _MEMORIES else 'arithmetic'}" for limit, share in figure.shares.items()]
    if figure.ratio is not None:
        words.append(f"{figure.ratio:.1f}x {figure.peer}")
    words += [f"[{', '.join(grades_of(figure))}]"] * bool(grades_of(figure)) + [figure.note] * bool(figure.note)
    return "  ".join(words)


def grades_of(figure: Figure) -> list[str]:
    """How well the parameters are known: of the kernel itself, or of all kernels of a whole call."""
    some = [figure.grades.get(figure.name, ())] if figure.kind == "kernel" else figure.grades.values()
    return list(dict.fromkeys(grade for grades in some for grade in grades))


def rate_text(rate: float, unit: str) -> str:
    """``12.3 Gpairs/s``."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if rate >= size:
            return f"{rate / size:.3g} {prefix}{unit}"
    return f"{rate:.3g} {unit}"


if __name__ == "__main__":
    main()

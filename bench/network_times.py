"""Seconds of `causal_network` on simulated maps, with the defaults: the first call of a process, and later ones.

usage: python bench/network_times.py [--device NAME] [--cases 40x3000,200x2000] [--repeat 2] [--commit NAME]
       [--out FILE]

A case is SERIESxROWS. The first case of a process also compiles.
"""

from __future__ import annotations

import functools
import warnings

from common import Report, clock, parser

import pyedmcl
from pyedmcl.device.select import select
from pyedmcl.errors import PyedmclWarning
from pyedmcl.simulate import coupled_maps


def main() -> None:
    command = parser(__doc__, repeat=2)
    command.add_argument("--cases", default="40x3000")
    command.add_argument("--commit", default="", help="the version, for FILE")
    options = command.parse_args()
    report = Report(select(options.device).device, options.out)
    warnings.simplefilter("ignore", PyedmclWarning)
    for case in options.cases.split(","):
        n_series, n_steps = map(int, case.split("x"))
        x = coupled_maps(n_series=n_series, n_steps=n_steps, seed=1).values
        call = functools.partial(pyedmcl.causal_network, x, seed=1, device=options.device)
        first, *later = [clock(call) for _ in range(options.repeat + 1)]
        report.add(case=case, first_s=first, later_s=later, commit=options.commit)


if __name__ == "__main__":
    main()

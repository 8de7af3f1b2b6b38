"""How much longer recurrence quantification takes at given recurrence rates than at their radii, in turns.

Run: python bench/rates.py [points]
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np

import pyedmcl

RATES = (0.01, 0.02, 0.05, 0.1)


def main() -> None:
    warnings.simplefilter("ignore")
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 30_000
    x = np.cumsum(np.random.default_rng(0).standard_normal(n))
    x -= np.convolve(x, np.ones(500) / 500, "same")
    for m in (1, 10):
        for rates in (RATES[2:3], RATES):
            asked = {"radius": list(rates), "threshold": "recurrence_rate"}
            table = pyedmcl.rqa(x, m=m, tau=2, **asked)
            calls = {"rates": asked, "radii": {"radius": [result.radius for result in table]}}
            taken: dict[str, list[float]] = {name: [] for name in calls}
            for _ in range(4):
                for name, options in calls.items():
                    begin = time.process_time()
                    pyedmcl.rqa(x, m=m, tau=2, **options)
                    taken[name].append(time.process_time() - begin)
            at_rates, at_radii = (np.median(taken[name][1:]) for name in calls)  # the first one compiles
            print(f"{n:,} points, m={m}, {len(rates)} rates: {at_rates:.2f} s of processor time, "
                  f"{at_rates / at_radii:.1f} times that of their radii")  # fmt: skip


if __name__ == "__main__":
    main()

"""Series whose scale is drawn at random, so that an oracle at scale 1 knows what is computed of them.

The values are multiples of 2**-11 below 6, perhaps with 2**20 added: squares of their differences have all their digits
in float32, so that ties are ties in any precision, and a power of two rounds nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

N_STEPS = 60
#: 1e-300 to 1e300, and where float32, squares in float32 and squares in float64 end.
EXPONENTS = (-1020, -997, -540, -530, -300, -140, -75, -70, -20, 0, 20, 43, 63, 67, 100, 130, 300, 505, 520, 997)


class Scaled(NamedTuple):
    """Series (n_steps, 3) at scale 1, without the offset that they have, and the exponent of their scale."""

    centred: np.ndarray
    exponent: int
    offset: float

    @property
    def at_one(self):
        return self.centred + self.offset

    @property
    def values(self):
        return np.ldexp(self.at_one, self.exponent)

    def back(self, found, degree=1):
        """A result of that degree in the data, at scale 1."""
        return np.ldexp(np.asarray(found, np.float64), -degree * self.exponent)

    def back_centred(self, found):
        """Values at scale 1 without the offset."""
        return self.back(found) - self.offset

    @property
    def rounding(self):
        """Of a value with its offset."""
        return 2.0**-52 * self.offset

    @property
    def squares_fit(self):
        """Squares of the data, and of their roundings, are numbers of float64."""
        return abs(self.exponent) < 450


@st.composite
def scaled(draw, kinds=("maps", "offset", "ties", "gaps")):
    """Coupled maps, also upon an offset or with gaps, or integers with many ties."""
    kind, exponent = draw(st.sampled_from(kinds)), draw(st.sampled_from(EXPONENTS) | st.integers(-1020, 997))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if kind == "ties":
        return Scaled(rng.integers(0, 6, (N_STEPS, 3)).astype(np.float64), exponent, 0.0)
    x = np.empty((N_STEPS, 3))
    x[0] = rng.uniform(0.1, 0.9, 3)
    for t in range(1, N_STEPS):
        x[t] = (3.7 - 0.2 * np.roll(x[t - 1], 1)) * x[t - 1] * (1 - x[t - 1])
        x[t] = np.clip(x[t] + rng.uniform(-0.05, 0.05, 3), 0.02, 0.98)  # no cycle, whose states would lie on a line
    values = np.rint(x * 2**11) / 2**11
    if kind == "gaps":
        values[rng.integers(5, N_STEPS, 2)] = np.nan
    return Scaled(values, exponent, 2.0**20 if kind == "offset" else 0.0)

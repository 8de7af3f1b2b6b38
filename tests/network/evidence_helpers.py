"""What is known of the pairs of a network, for the rules that decide on links."""

from __future__ import annotations

import numpy as np

from pyedmcl.network.verdicts import Evidence


def evidence(skill, lag, **more):
    ones = np.ones_like(skill)
    options = {"q_value": 0 * ones, "gain": ones, "trend": ones, "rate": 0.05, "latest": -1}
    return Evidence(skill=skill, lag=lag, **(options | more))

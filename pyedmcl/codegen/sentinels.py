"""Numbers that stand for something, on the host and in every kernel: the prologue of each text defines them.

Conditioned data (:mod:`pyedmcl.data.condition`) have magnitudes of at most 1e13, so no sum of their squares reaches
``FAR``, and each squared distance in which a gap takes part exceeds it. No kernel has to ask for NaN. All of them are
finite in float32.
"""

from __future__ import annotations

#: A gap, where data lie on the device.
GAP = 1e16
#: What is smaller in magnitude is data; anything else, be it shifted and scaled, is a gap.
PRESENT = 1e15
#: What is added to a squared distance so that the row is no neighbour: more than FAR, whatever it is added to.
GAP_SQUARED = GAP**2
#: No squared distance between states without gaps is larger.
FAR = 1e30
#: The squared distance of an empty place in a table; larger than any sum of GAP_SQUARED that occurs.
NOWHERE = 3e38

SENTINELS = {"GAP": GAP, "PRESENT": PRESENT, "GAP_SQUARED": GAP_SQUARED, "FAR": FAR, "NOWHERE": NOWHERE}

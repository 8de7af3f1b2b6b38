"""A kernel that exists on paper, and a backend that knows its times: the tuner at work without a device."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from pyedmcl.kernels import spec
from pyedmcl.kernels.kernel_spec import Constraint, KernelSpec, Tunable
from pyedmcl.tuner.measure import Reply, TrialQuestion
from pyedmcl.tuner.problem import TuningCase
from pyedmcl.tuning.records import canonical

PAPER = KernelSpec(
    name="skill",  # the name of a kernel that there is, so that its text can be digested
    producer="loopy",
    text="skill",
    example=spec("skill").example,
    specialisation=("dtype",),
    tunables=(
        Tunable("lanes", (1, 2, 4, 8), {"cpu": 8, "gpu": 1}, "width"),
        Tunable("tile", (0, 64, 128), {"cpu": 0, "gpu": 64}, "rows staged"),
        Tunable("unroll", (1, 2, 4), {"cpu": 1, "gpu": 1}, "steps"),
    ),
    constraints=(Constraint(lambda v: v["tile"] == 0 or v["lanes"] == 1, "a tile is for scalar work-items"),),
)
CASE = TuningCase("skill", "on paper", {"given": {"dtype": "float32"}})
DEFAULT = {"lanes": 8, "tile": 0, "unroll": 1}


def seconds_of(parameters):
    """Smooth, with its best at lanes 4, tile 0, unroll 4."""
    lanes = {1: 3.0, 2: 2.0, 4: 1.0, 8: 1.3}[parameters["lanes"]]
    return 1e-3 * (lanes + {1: 0.4, 2: 0.2, 4: 0.0}[parameters["unroll"]] + parameters["tile"] / 1000)


def counting(kernel):
    """A spec like ``kernel``, and a list that grows with every look at one of its constraints: (spec, looks)."""
    looks = []

    def watched(constraint):
        return replace(constraint, holds=lambda values: looks.append(1) or constraint.holds(values))

    return replace(kernel, constraints=tuple(map(watched, kernel.constraints))), looks


class Scripted:
    """A backend with known times.

    Parameters
    ----------
    seconds : callable
    ends : mapping
        Canonical parameters to (request, status): how they end there.
    noise : float
        Relative, uniform.
    """

    def __init__(self, seconds=seconds_of, ends=(), noise=0.0, seed=0):
        self.seconds, self.ends, self.noise = seconds, dict(ends), noise
        self.rng = Random(seed)
        self.calls = []

    def _reply(self, do, parameters, seconds=()):
        parameters = DEFAULT if parameters is None else parameters
        self.calls.append((do, canonical(parameters)))
        at, status = self.ends.get(canonical(parameters), (None, "ok"))
        if at == do:
            return Reply(status, note=f"{status} on purpose")
        return Reply("ok", seconds)

    def _timed(self, do, parameters):
        plain = self.seconds(DEFAULT if parameters is None else parameters)
        return self._reply(do, parameters, (plain * (1 + self.noise * self.rng.uniform(-1, 1)),))

    def describe(self, case, parameters):
        return Reply("ok", asked=(TrialQuestion({"dtype": "float32"}, {}, dict(parameters or DEFAULT)),))

    def prepare(self, case, configurations):
        return [self._reply("prepare", parameters) for parameters in configurations]

    def attempt(self, case, parameters):
        return self._timed("attempt", parameters)

    def verify(self, case, parameters):
        return self._reply("verify", parameters)

    def sample(self, case, parameters, *, together=False):
        return self._timed("duel" if together else "sample", parameters)

    def asked_to(self, do):
        return [text for what, text in self.calls if what == do]

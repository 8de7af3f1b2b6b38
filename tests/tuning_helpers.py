"""Keys and trials to put into a tuning database, and a series for short calls."""

from __future__ import annotations

import numpy as np
from device_helpers import NVIDIA

from pyedmcl.kernels import spec
from pyedmcl.tuning.records import tuning_key

KNN = {"dims": (3,), "tau": 1, "dtype": "float32"}
SIZES = {"rows": 1000, "library": 1000}


def short_series():
    return np.random.default_rng(5).normal(size=120).cumsum()


def key(kernel="predict", specialisation=None, info=NVIDIA, **sizes):
    return tuning_key(spec(kernel), {"dtype": "float32"} if specialisation is None else specialisation, info, sizes)


def run(database, at, parameters, seconds=1.0, status="ok", **more):
    """A trial from start to end; returns its number."""
    number = database.start(at, parameters, **{"session": "s", **more})
    rounds = None if seconds is None else [seconds] * 3
    database.finish(number, status=status, seconds=rounds, note="" if status == "ok" else f"it was {status}")
    return number


def best_of(database, at):
    """The outcome of the newest tuning of a key, or the fastest trial; None where there is none that may be used."""
    return next((trial for trial in database.known(at.kernel, at.digest).winners if trial.key == at), None)


def of_kernel(database, name):
    return [trial for trial in database.trials() if trial.key.kernel == name]

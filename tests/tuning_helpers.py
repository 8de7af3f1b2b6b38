"""A folder of its own for the tuning database, and keys and trials to put into it."""

from __future__ import annotations

import pytest
from device_helpers import NVIDIA

from pyedmcl.kernels import spec
from pyedmcl.tuning import wisdom
from pyedmcl.tuning.database import Database, new_session
from pyedmcl.tuning.key import tuning_key
from pyedmcl.tuning.parameters import source

KNN = {"dims": (3,), "tau": 1, "dtype": "float32"}
SIZES = {"rows": 1000, "library": 1000}


def key(kernel="predict", specialisation=None, info=NVIDIA, **sizes):
    return tuning_key(spec(kernel), {"dtype": "float32"} if specialisation is None else specialisation, info, sizes)


def run(database, at, parameters, seconds=1.0, status="ok", **more):
    """A trial from start to end; returns its number."""
    number = database.start(at, parameters, **{"session": "s", **more})
    rounds = None if seconds is None else [seconds] * 3
    database.finish(number, status=status, seconds=rounds, note="" if status == "ok" else f"it was {status}")
    return number


@pytest.fixture
def data_dir(tmp_path, monkeypatch):
    """An empty data folder, "cached" mode, no shipped wisdom, and a source of parameters that has learnt nothing."""
    monkeypatch.setenv("PYEDMCL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("PYEDMCL_TUNE", raising=False)
    monkeypatch.setattr(wisdom, "shipped", lambda runtime: ())
    source.forget()
    yield tmp_path / "data"
    source.tuner = None
    source.forget()


__all__ = ["KNN", "SIZES", "Database", "data_dir", "key", "new_session", "run"]

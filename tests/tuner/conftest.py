"""A tuning database of each test's own."""

from __future__ import annotations

import pytest

from pyedmcl.tuning.database import Database
from pyedmcl.tuning.parameters import source


@pytest.fixture(autouse=True)
def own_database(tmp_path, monkeypatch):
    """Every test has a database of its own, as have the processes it starts."""
    monkeypatch.setenv("PYEDMCL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("PYEDMCL_TUNE", raising=False)
    source.forget()
    yield Database()
    source.forget()

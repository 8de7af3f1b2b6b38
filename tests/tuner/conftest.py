"""A tuning database of each test's own."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _own_database(own_database):
    """Whether a test asks for it or not: none here is to see what others have tuned."""

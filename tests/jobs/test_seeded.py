"""The seed of a folder of random work: all who share it have that of the process that began it."""

from __future__ import annotations

import pytest

from pyedmcl.errors import StoreMismatchError
from pyedmcl.jobs import steps
from pyedmcl.jobs.records import mark


def of(data):
    return lambda seed: {"data": data, "seed": str(seed)}


@pytest.fixture
def quicker(tmp_path, monkeypatch):
    """A folder that another process marks as its own, with the seed 5, just after this one found it empty."""
    looks, real = [], steps._stored_seed

    def looked(path):
        found = real(path)
        looks.append(found)
        if len(looks) == 1:
            mark(path, 1, of("ours")(5), "out")
        return found

    monkeypatch.setattr(steps, "_stored_seed", looked)
    return tmp_path


def test_who_comes_a_moment_later_takes_the_seed_that_is_there(quicker):
    with steps.seeded_folder(quicker, 0.0, "a device", None, of("ours")) as (_, seed):
        assert seed == 5


def test_other_data_are_refused_all_the_same(quicker):
    with (
        pytest.raises(StoreMismatchError, match="data differ"),
        steps.seeded_folder(quicker, 0.0, "a device", None, of("others")),
    ):
        pass


def test_a_seed_that_was_asked_for_stays(quicker):
    with steps.seeded_folder(quicker, 0.0, "a device", 5, of("ours")) as (_, seed):
        assert seed == 5
    with (
        pytest.raises(StoreMismatchError, match="seed = 5 there, 6 asked for"),
        steps.seeded_folder(quicker, 0.0, "a device", 6, of("ours")),
    ):
        pass

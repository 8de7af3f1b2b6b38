"""Where rates come from: the database, what is shipped, and defaults."""

from __future__ import annotations

from dataclasses import replace

import pytest
from device_helpers import INTEL, NVIDIA
from rates_helpers import CPU, entry, sets_of, trial

from pyedmcl.search.rates import NAME, from_values, rates_of
from pyedmcl.tuning import knowledge
from pyedmcl.tuning.database import Database
from pyedmcl.tuning.parameters import source

TWO_CORES = replace(INTEL, compute_units=2)
SHIPPED = knowledge.shipped


def test_the_database_goes_before_wisdom_and_wisdom_before_defaults(data_dir, monkeypatch):
    def found():
        known = rates_of(TWO_CORES)
        return known.source, round(known.rates.exact_lag / CPU.exact_lag, 6)

    assert found() == ("default", 1)
    assert not data_dir.exists()  # nothing is made for a look
    sibling = replace(TWO_CORES, compute_units=128)
    monkeypatch.setattr(knowledge, "shipped", lambda runtime, kernel: (entry(sibling, 3.0),))
    source.forget()
    assert found() == ("shipped for a similar device", 192)  # a part of the units, so many times the time
    database = Database()
    database.add([trial(sibling, 9.0), trial(NVIDIA, 99.0)])
    assert found() == ("measured on a similar device", 576)
    monkeypatch.setattr(knowledge, "shipped", lambda runtime, kernel: (entry(sibling, 3.0), entry(TWO_CORES, 4.0)))
    source.forget()
    assert found() == ("shipped", 4)
    database.add([trial(replace(TWO_CORES, driver="older"), 5.0)])
    assert found() == ("measured with another driver", 5)
    assert knowledge.take_in(database, [entry(TWO_CORES, 6.0)]) == 1
    assert knowledge.take_in(database, [entry(TWO_CORES, 6.0)]) == 0
    assert found() == ("imported", 6)
    database.add([trial(TWO_CORES, 7.0)])
    knowledge.take_in(database, [entry(TWO_CORES, 8.0)])
    assert found() == ("measured", 7)
    database.add([trial(TWO_CORES, 2.0)])
    assert found() == ("measured", 2)


def test_rates_of_other_formulas_and_incomplete_ones_are_ignored(data_dir):
    Database().add([trial(TWO_CORES, 2.0, model="0")])
    assert rates_of(TWO_CORES).source == "default"
    Database().add([trial(TWO_CORES, exact_call=1.0)])  # of this version, but not all of them
    assert rates_of(TWO_CORES).source == "default"
    for odd in (-1, "1", True, float("inf")):
        assert from_values({**CPU.as_dict(), "exact_call": odd}) is None
    assert from_values({**CPU.as_dict(), "exact_call": 0}).exact_call == 0


def test_rates_are_read_once(data_dir, monkeypatch):
    Database().add([trial(TWO_CORES, 2.0)])
    assert rates_of(TWO_CORES).source == "measured"
    with monkeypatch.context() as patch:
        patch.setattr(Database, "known", lambda *asked: pytest.fail("read again"))
        assert rates_of(TWO_CORES).source == "measured" and rates_of(NVIDIA).source == "default"
    Database().add([trial(TWO_CORES, 3.0)])  # what has changed is read
    assert rates_of(TWO_CORES).rates.exact_lag == pytest.approx(3 * CPU.exact_lag)


@pytest.mark.parametrize("content", [b"no database, but long enough to be one" * 99, b"SQLite format 3\0" + b"x" * 999])
def test_a_damaged_database_leaves_the_defaults(data_dir, content):
    data_dir.mkdir()
    (data_dir / "tuning.sqlite3").write_bytes(content)
    assert rates_of(TWO_CORES).source == "default"
    assert Database().add([trial(TWO_CORES)]) == 1
    assert rates_of(TWO_CORES).source == "measured"


def test_a_newer_database_is_left_alone(data_dir):
    Database().add([trial(TWO_CORES)])
    Database().file.write(lambda connection: connection.execute("PRAGMA user_version = 99"))
    source.forget()
    assert rates_of(TWO_CORES).source == "default"


def test_a_folder_that_cannot_be_written_keeps_rates_in_memory(data_dir):
    data_dir.parent.joinpath("data").write_text("a file where the folder should be")
    assert Database().add([trial(TWO_CORES, 2.0)]) == 1
    assert Database().in_memory and rates_of(TWO_CORES).source == "measured"


def test_what_nobody_looks_up_again(data_dir):
    database = Database()
    database.add([trial(TWO_CORES, 2.0), trial(NVIDIA, 2.0), trial(TWO_CORES, 3.0), trial(NVIDIA, model="0")])
    assert database.idle(database.trials()) == {1, 4}
    knowledge.take_in(database, [entry(TWO_CORES, 8.0)])  # does not go before what was measured
    assert database.idle(database.trials()) == {1, 4, 5}
    assert database.remove([1, 4, 5, 9]) == 3
    assert [one.key.device.name for one in sets_of(database)] == [NVIDIA.name, INTEL.name]


def test_lines_survive_the_way_there_and_back():
    other = replace(entry(NVIDIA), key=replace(entry(NVIDIA).key, digest="0"))
    reading = knowledge.parse("\n".join(map(knowledge.line, [entry(TWO_CORES), other])))
    assert reading.entries == (entry(TWO_CORES),) and not reading.bad
    assert "1 entry of rates of neighbors belongs to another version" in reading.problems("f")[0]


def test_shipped_rates_are_usable():
    """Every line of rates that ships belongs to this version's formulas."""
    for runtime in ("intel-cpu", "pocl", "nvidia"):
        assert NAME not in knowledge.read_shipped(runtime).stale
        (one,) = SHIPPED(runtime, NAME)
        assert from_values(one.parameters) is not None and one.key.device.runtime == runtime

"""Where rates come from: the database, what is shipped, and defaults."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from device_helpers import INTEL, NVIDIA
from rates_helpers import CPU, record

from pyedmcl.neighbors.rates import NAME, from_values, rates_of
from pyedmcl.tuning import knowledge, wisdom
from pyedmcl.tuning.database import Database
from pyedmcl.tuning.parameters import source
from pyedmcl.tuning.rates import IMPORTED, line, newest, record_from, remove, save, stored, superseded

TWO_CORES = replace(INTEL, compute_units=2)
SHIPPED = wisdom.shipped_rates


def test_the_database_goes_before_wisdom_and_wisdom_before_defaults(data_dir, monkeypatch):
    def found():
        known = rates_of(TWO_CORES)
        return known.source, round(known.rates.exact_lag / CPU.exact_lag, 6)

    assert found() == ("default", 1)
    assert not data_dir.exists()  # nothing is made for a look
    sibling = replace(TWO_CORES, compute_units=4)
    monkeypatch.setattr(wisdom, "shipped_rates", lambda runtime: (record(sibling, 3.0),))
    source.forget()
    assert found() == ("shipped for a similar device", 6)  # half as many units, twice the time
    monkeypatch.setattr(wisdom, "shipped_rates", lambda runtime: (record(sibling, 3.0), record(TWO_CORES, 4.0)))
    source.forget()
    assert found() == ("shipped", 4)
    database = Database()
    save(database, [record(sibling, 9.0), record(NVIDIA, 99.0)])
    assert found() == ("shipped", 4)
    save(database, [record(replace(TWO_CORES, driver="older"), 5.0)])
    assert found() == ("measured with another driver", 5)
    assert save(database, [record(TWO_CORES, 6.0)], imported=True) == 1
    assert save(database, [record(TWO_CORES, 6.0)], imported=True) == 0
    assert found() == ("imported", 6)
    save(database, [record(TWO_CORES, 7.0)])
    save(database, [record(TWO_CORES, 8.0)], imported=True)
    assert found() == ("measured", 7)
    save(database, [record(TWO_CORES, 2.0)])
    assert found() == ("measured", 2)


def test_rates_of_other_formulas_are_ignored(data_dir):
    save(Database(), [record(TWO_CORES, 2.0, model="0"), record(TWO_CORES, 3.0, name="other")])
    assert rates_of(TWO_CORES).source == "default"
    save(Database(), [record(TWO_CORES, values={"exact_call": 1.0})])  # of this version, but not all of them
    assert rates_of(TWO_CORES).source == "default"
    assert from_values({}) is None


def test_rates_are_read_once(data_dir, monkeypatch):
    from pyedmcl.tuning import rates

    save(Database(), [record(TWO_CORES, 2.0)])
    assert rates_of(TWO_CORES).source == "measured"
    monkeypatch.setattr(knowledge, "stored", lambda database: pytest.fail("read again"))
    assert rates_of(TWO_CORES).source == "measured" and rates_of(NVIDIA).source == "default"
    monkeypatch.setattr(knowledge, "stored", rates.stored)
    save(Database(), [record(TWO_CORES, 3.0)])  # what has changed is read
    assert rates_of(TWO_CORES).rates.exact_lag == pytest.approx(3 * CPU.exact_lag)


@pytest.mark.parametrize("content", [b"no database, but long enough to be one" * 99, b"SQLite format 3\0" + b"x" * 999])
def test_a_damaged_database_leaves_the_defaults(data_dir, content):
    data_dir.mkdir()
    (data_dir / "tuning.sqlite3").write_bytes(content)
    assert rates_of(TWO_CORES).source == "default"
    assert save(Database(), [record(TWO_CORES)]) == 1
    assert rates_of(TWO_CORES).source == "measured"


def test_rows_that_are_no_rates_are_left_out(data_dir):
    database = Database()
    save(database, [record(TWO_CORES, 2.0), record(NVIDIA, 2.0)])
    spoil = """UPDATE rates SET "values"='{"exact_call": -1}' WHERE id=1"""
    database.file.write(lambda connection: connection.execute(spoil))
    assert [one.device.name for one in stored(database)] == [NVIDIA.name]
    assert rates_of(TWO_CORES).source == "default"


def test_a_database_without_the_table_of_rates(data_dir):
    """As earlier versions made it: it is read, kept, and given the table when there is something to write."""
    database = Database()
    database.set_limit("device", "kernel", 64, "refused")
    database.file.write(lambda connection: connection.execute("DROP TABLE rates"))
    assert stored(database) == [] and rates_of(TWO_CORES).source == "default"
    assert remove(database, []) == 0 and remove(database, [7]) == 0
    save(database, [record(TWO_CORES)])
    assert rates_of(TWO_CORES).source == "measured"
    assert len(database.limits()) == 1 and database.problems == []


def test_a_newer_database_is_left_alone(data_dir):
    save(Database(), [record(TWO_CORES)])
    Database().file.write(lambda connection: connection.execute("PRAGMA user_version = 99"))
    source.forget()
    assert rates_of(TWO_CORES).source == "default"


def test_a_folder_that_cannot_be_written_keeps_rates_in_memory(data_dir):
    data_dir.parent.joinpath("data").write_text("a file where the folder should be")
    assert save(Database(), [record(TWO_CORES, 2.0)]) == 1
    assert Database().in_memory and rates_of(TWO_CORES).source == "measured"


def test_what_is_superseded(data_dir):
    database = Database()
    save(database, [record(TWO_CORES, 2.0), record(NVIDIA, 2.0), record(TWO_CORES, 3.0), record(NVIDIA, model="0")])
    everything = stored(database)
    assert [one.id for one in superseded(everything)] == [1, 4]
    assert sorted(one.id for one in newest(everything)) == [2, 3]
    assert [one.id for one in newest(everything, device="h200")] == [2]
    assert remove(database, [1, 4, 9]) == 2
    assert stored(database)[0].problems == ({"n": 1},) and stored(database)[0].when == 5.0


def test_lines_survive_the_way_there_and_back():
    one = record(TWO_CORES)
    reading = wisdom.parse("\n".join([line(one), line(record(NVIDIA, model="0")), '{"rates": "neighbors"}']))
    assert record_from(json.loads(line(one))) == replace(one, problems=(), when=0.0, session="")
    assert [r.device.name for r in reading.rates] == [one.device.name] and reading.entries == ()
    (bad, stale) = reading.problems("f")
    assert "line 3: 'device' is None" in bad and "1 entry of rates of neighbors belongs to another version" in stale
    for values in ({"exact_call": -1}, {"exact_call": "1"}, {"exact_call": True}, {"exact_call": float("inf")}):
        with pytest.raises(ValueError, match="the rate 'exact_call'"):
            record_from({**json.loads(line(one)), "values": values})
    assert IMPORTED == "import"


def test_shipped_rates_are_usable():
    """Every line of rates that ships belongs to this version's formulas."""
    for runtime in ("intel-cpu", "pocl", "nvidia"):
        assert not [name for name in wisdom.read_shipped(runtime).stale if name == NAME]
        for one in SHIPPED(runtime):
            assert from_values(one.values) is not None and one.device.runtime == runtime

"""Databases of trials that are damaged, of another program, or of a newer version: kept aside or left alone."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest
from device_helpers import NVIDIA
from rates_helpers import trial
from tuning_helpers import best_of, key, run

from pyedmcl.tuning import database as connection
from pyedmcl.tuning.database import SCHEMA, Database, KnownKernel

FAST, SLOW = {"wg": 64}, {"wg": 32}


@pytest.fixture
def database(tmp_path):
    return Database(tmp_path / "new" / "folder" / "tuning.sqlite3")


@pytest.mark.parametrize("content", [b"no database at all\n" * 300, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_corrupt_file_is_kept_aside(tmp_path, content, caplog):
    path = tmp_path / "tuning.sqlite3"
    path.write_bytes(content)
    database = Database(path)
    assert best_of(database, key()) is None
    (aside,) = tmp_path.glob("tuning.sqlite3.unusable-*")
    assert aside.read_bytes() == content
    assert "kept as " + aside.name in caplog.text and "shipped defaults" in caplog.text
    run(database, key(), FAST)
    assert dict(best_of(database, key()).parameters) == FAST and path.exists()


def test_damage_inside_a_file_is_found_when_it_is_met(database, caplog):
    for i in range(300):
        database.start(key(), {"wg": i}, session="s" * 50)
    size = database.path.stat().st_size
    with database.path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))
    assert database.trials() == []
    assert "malformed" in caplog.text and len(list(database.path.parent.glob("*.unusable-*"))) == 1
    run(database, key(), FAST)
    assert len(database.trials()) == 1


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        (b"size TEXT NOT NULL, problem", b"s\xe9ze TEXT NOT NULL, problem"),
        (b"CREATE TABLE trials", b"CREATE TAB\xccE trials"),
        (b"CREATE TABLE trials", b"CREATE TABLE tria\xecs"), (b"median REAL", b"med\xefan REAL"),
        (b"problem TEXT NOT NULL", b"problem TEXT NOT NUL\xcc"), (b"process TEXT NOT", b"pr`cess TEXT NOT"),
    ],
)  # fmt: skip
def test_a_damaged_schema_is_kept_aside(database, written, instead, caplog):
    run(database, key(), FAST)
    content = database.path.read_bytes()
    assert content.count(written) == 1
    database.path.write_bytes(content.replace(written, instead))
    assert database.known("predict", key().digest) == KnownKernel() and database.trials() == []
    run(database, key(), SLOW)
    assert [dict(trial.parameters) for trial in database.trials()] == [SLOW]
    assert len(list(database.path.parent.glob("*.unusable-*"))) == 1 and "kept as" in caplog.text


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("parameters", "{"), ("parameters", "[]"), ("parameters", '{"wg": NaN}'), ("specialisation", "x"),
        ("size", "7"), ("rounds", "[-1]"), ("median", "x"), ("median", None), ("status", "okay"), ("at", 1e300),
        ("session", b"\xff"),
    ],
)  # fmt: skip
def test_a_damaged_row_is_damage_of_the_file(database, column, value):
    run(database, key(), FAST)
    with sqlite3.connect(database.path) as raw:
        raw.execute(f"UPDATE trials SET {column} = ?", (value,))
    raw.close()
    assert database.trials() == [] and "damaged" in database.problems[0]
    assert len(list(database.path.parent.glob("*.unusable-*"))) == 1


def test_nothing_is_added_to_a_file_in_which_it_would_be_lost(database):
    """SQLite reads this schema, and gives no numbers to rows of it."""
    run(database, key(), FAST)
    content = database.path.read_bytes()
    written = b"CREATE TABLE trials (\n    id INTEGER"
    assert content.count(written) == 1
    database.path.write_bytes(content.replace(written, b"CREATE TABLE trials (\n    ib INTEGER"))
    again = connection.File(database.path)  # as another process opens it
    again.write(lambda raw: raw.execute("DELETE FROM limits"))
    assert "'trials' is not as it was made" in again.problems[0]
    assert len(list(database.path.parent.glob("*.unusable-*"))) == 1


@pytest.mark.parametrize("place", [18, 19])
def test_a_format_that_sqlite_never_wrote_is_damage_too(database, place):
    run(database, key(), FAST)
    content = bytearray(database.path.read_bytes())
    content[place] ^= 4  # SQLite would go on reading, and write nothing
    database.path.write_bytes(content)
    run(database, key(), SLOW)
    assert not database.in_memory and dict(database.trials()[-1].parameters) == SLOW
    assert len(list(database.path.parent.glob("*.unusable-*"))) == 1


def test_a_damaged_limit_is_damage_of_the_file(database):
    database.set_limit(key().device.digest(), "predict", 64, "refused 128")
    with sqlite3.connect(database.path) as raw:
        raw.execute("UPDATE limits SET work_group = -3")
    raw.close()
    assert database.known("predict", key().digest).limits == {} and "damaged" in database.problems[0]


@pytest.mark.parametrize("table", ["limits", "bars", "checks", "gains"])
@pytest.mark.parametrize("writing", [False, True])
def test_a_database_that_lacks_a_table_is_kept_aside(database, table, writing, caplog):
    run(database, key(), FAST)
    with sqlite3.connect(database.path) as raw:
        raw.execute(f"DROP TABLE {table}")
    raw.close()
    again = connection.File(database.path)  # as another process opens it
    if writing:
        again.write(lambda connection: connection.execute("DELETE FROM limits"))
    else:
        assert Database(database.path).known("predict", key().digest) == KnownKernel()
    assert len(list(database.path.parent.glob("*.unusable-*"))) == 1 and "kept as" in caplog.text


def test_rates_that_have_a_table_of_their_own_become_trials(database, monkeypatch):
    """As they were kept before they were trials. Where the file cannot be written, the trials are read."""
    own = trial(NVIDIA, 2.0)
    run(database, key(), FAST)
    with sqlite3.connect(database.path) as raw:
        raw.execute(
            """CREATE TABLE rates (id INTEGER PRIMARY KEY, device TEXT NOT NULL, name TEXT NOT NULL,
            model TEXT NOT NULL, "values" TEXT NOT NULL, problems TEXT NOT NULL, at REAL NOT NULL,
            session TEXT NOT NULL)"""
        )
        row = (own.key.device.digest(), "neighbors", own.key.digest, own.canonical, own.note, own.when, own.session)
        raw.execute("INSERT INTO rates VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", row)
    raw.close()
    connect = sqlite3.connect
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", lambda name, **more: connect(name.replace("mode=rw", "mode=ro"), **more))
        assert [dict(one.parameters) for one in database.trials()] == [FAST] and database.problems == []
    again = Database(database.path)
    assert best_of(again, own.key) == replace(own, id=2) and len(again.trials()) == 2
    assert again.add([own]) == 0 and again.problems == []


def test_another_kind_of_database_is_kept_aside(tmp_path):
    path = tmp_path / "tuning.sqlite3"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE recipes (name TEXT)")
    other.close()
    database = Database(path)
    run(database, key(), FAST)
    assert len(list(tmp_path.glob("*.unusable-*"))) == 1
    assert "not one of pyedmcl" in database.problems[0]


def test_a_newer_database_is_left_alone(database, caplog):
    run(database, key(), FAST)
    path = database.path
    with sqlite3.connect(path) as newer:
        newer.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    newer.close()
    before = path.read_bytes()
    again = Database(path)
    assert best_of(again, key()) is None
    run(again, key(), SLOW)
    assert dict(best_of(again, key()).parameters) == SLOW
    assert path.read_bytes() == before and again.path.name == f"tuning-{SCHEMA}.sqlite3"
    assert "newer pyedmcl" in caplog.text

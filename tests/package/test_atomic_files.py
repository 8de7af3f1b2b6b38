"""Files are written whole or not at all, under names that nobody can foresee, and never through a planted link."""

from __future__ import annotations

import os

import numpy as np
import pytest
from typer.testing import CliRunner

import pyedmcl
from pyedmcl import atomic_files
from pyedmcl.cli.app import app
from pyedmcl.errors import InputError, OutputError, StoreError, StoreWriteError
from pyedmcl.jobs import durable


@pytest.fixture
def victim(tmp_path):
    """A file that nobody may change, outside the folder that is written to."""
    (tmp_path / "folder").mkdir()
    path = tmp_path / "victim"
    path.write_text("untouched")
    yield path
    assert path.read_text() == "untouched"


def test_a_link_in_place_of_the_file_is_replaced(victim, tmp_path):
    target = tmp_path / "folder" / "out.csv"
    target.symlink_to(victim)
    atomic_files.write_file(target, b"new")
    assert target.read_bytes() == b"new" and not target.is_symlink()


def test_temporary_names_cannot_be_foreseen_and_are_never_taken_over(victim, tmp_path, monkeypatch):
    names = {atomic_files.temporary_name("out.csv") for _ in range(100)}
    assert len(names) == 100
    monkeypatch.setattr(atomic_files, "temporary_name", lambda name: "planted")
    (tmp_path / "folder" / "planted").symlink_to(victim)
    with pytest.raises(FileExistsError):
        atomic_files.write_file(tmp_path / "folder" / "out.csv", b"new")
    with (
        pytest.raises(StoreWriteError, match="could not be written"),
        atomic_files.writing(tmp_path / "folder" / "out.csv"),
    ):
        pass


def test_a_planted_journal_or_lease_is_not_followed(victim, tmp_path):
    folder = tmp_path / "folder"
    for name in ("blocks.jsonl", "lease"):
        (folder / name).symlink_to(victim)
    with pytest.raises(OSError):
        durable.Journal(folder / "blocks.jsonl", "run")
    with pytest.raises(OSError):
        durable.Lease(folder / "lease").acquire()


def test_what_fails_leaves_the_file_that_was_there(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("old")
    for trouble in (OSError(28, "No space left on device"), KeyboardInterrupt()):
        with pytest.raises((StoreWriteError, KeyboardInterrupt)), atomic_files.writing(path) as draft:
            draft.write(b"half")
            raise trouble
        assert path.read_text() == "old" and os.listdir(tmp_path) == ["out.csv"]


def test_long_names_can_be_written(tmp_path):
    path = tmp_path / ("x" * 251 + ".csv")
    atomic_files.write_file(path, b"new")
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("path", [5, None, b"bytes", "", "a\0b", ["a"]])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(InputError, match=r"\bpath="):
        atomic_files.path_of(path)


def test_a_name_too_long_for_the_file_system_is_refused_before_it_is_used(tmp_path):
    long = tmp_path / ("x" * 300)
    with pytest.raises(InputError, match=r"out=.*too long"):
        atomic_files.path_of(long, "out")
    with pytest.raises(OutputError, match=r"name another"):
        atomic_files.output_path(long)
    with pytest.raises(InputError, match=r"out=.*too long"):
        pyedmcl.xmap_grid(np.ones((9, 2)), E=[1], out=long)
    done = CliRunner().invoke(app, ["status", str(long)])
    assert done.exit_code == 3 and "too long" in done.output


@pytest.mark.parametrize("name", ["none/out.csv", "file/out.csv", "folder.csv", "x" * 300 + ".csv", "out.txt", "out"])
def test_where_nothing_can_be_written(tmp_path, name):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(OutputError) as caught:
        atomic_files.output_path(tmp_path / name, (".csv", ".json"), "a table")
    assert isinstance(caught.value, (StoreError, InputError)) and str(tmp_path) in str(caught.value)
    assert atomic_files.output_path(tmp_path / "out.json", (".csv", ".json")) == tmp_path / "out.json"

"""Recurrence that several processes count together: the same integers, whoever counted which band, and was killed."""

from __future__ import annotations

import json
import os
import subprocess

import numpy as np
import pytest
from checkpoint_helpers import CASES, counts_of, series
from cli_helpers import environment, inside, words
from process_helpers import end_of

import pyedmcl
from pyedmcl.errors import InputError, Interrupted, PyedmclWarning, StoreForeignError, StoreMismatchError
from pyedmcl.jobs.records import read_identity
from pyedmcl.jobs.sharing import covered, part_name
from pyedmcl.recurrence import engine


@pytest.mark.parametrize("case", CASES)
def test_stopped_after_every_band_and_continued(one_device, tmp_path, monkeypatch, case):
    options, cross = CASES[case]
    x, y = series(230), series(170, 1) if cross else None
    folder = tmp_path / "new" / "run"
    whole = counts_of(pyedmcl.rqa(x, y, device=one_device, **options))
    write, stops = engine.BandsSink.write, 0

    def killed(*given):
        write(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(engine.BandsSink, "write", killed)
    for _ in range(20):
        try:
            pyedmcl.rqa(x, y, checkpoint=folder, device=one_device, join=True, **options)
        except Interrupted as stop:
            assert f"bands are kept in {folder}" in str(stop)
            stops += 1
        else:
            break
    assert stops >= 6
    again = pyedmcl.rqa(x, y, checkpoint=folder, device=one_device, join=True, **options)
    assert counts_of(again) == whole
    n = json.loads((folder / "parts.json").read_text())["content"]["blocks"]
    assert sorted(os.listdir(folder)) == [part_name(0, n), "parts.json"], "all are joined, and nothing else is left"


def test_two_processes_count_together(one_device, tmp_path):
    np.save(tmp_path / "x.npy", series(1000))
    folder = tmp_path / "run"
    command = words("rqa", tmp_path / "x.npy", "--radius", 0.7, "--m", 2, "--checkpoint", folder, "--json", "--device",
                    one_device)  # fmt: skip
    processes = [subprocess.Popen([*command, "--part", f"{i}/2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env=environment()) for i in (1, 2)]  # fmt: skip
    said = [end_of(process) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    results = [json.loads(out)["results"] for out, _ in said]
    alone = pyedmcl.rqa(series(1000), radius=0.7, m=2, device=one_device)
    assert results[0] == results[1] and results[0][0]["determinism"] == alone.determinism
    assert covered(folder) == [(0, 16)] and not list(folder.rglob(".pyedmcl-*"))


def test_bands_are_joined_in_any_order_and_leftovers_do_not_count(one_device, tmp_path, monkeypatch):
    x = series(700)
    options = {"m": 2, "radius": [0.7, 1.5], "device": one_device}
    whole = counts_of(pyedmcl.rqa(x, **options))
    monkeypatch.setattr(engine.BandsSink, "joins", False)
    folder = tmp_path / "run"
    assert counts_of(pyedmcl.rqa(x, checkpoint=folder, part="8/16", **options)) == whole
    assert len(covered(folder)) == 15 and covered(folder)[3] == (3, 4)
    # Joined behind a kill between writing the whole and removing its halves.
    monkeypatch.setattr(engine.BandsSink, "joins", True)
    halves = {part_name(a, a + 1): (folder / part_name(a, a + 1)).read_bytes() for a in (4, 5)}
    (folder / part_name(4, 5)).unlink()
    assert counts_of(pyedmcl.rqa(x, checkpoint=folder, join=True, **options)) == whole
    assert covered(folder)[4] == (4, 6)
    for name, data in halves.items():
        (folder / name).write_bytes(data)
    assert counts_of(pyedmcl.rqa(x, checkpoint=folder, join=True, **options)) == whole
    # A damaged one is told of, and counted again.
    file = folder / part_name(4, 6)
    file.write_bytes(file.read_bytes()[:-40])
    for name in halves:
        (folder / name).unlink()
    with pytest.warns(PyedmclWarning, match=r"part-4-6\.npz is damaged .* computed anew"):
        assert counts_of(pyedmcl.rqa(x, checkpoint=folder, join=True, **options)) == whole
    assert covered(folder)[4] == (4, 6)
    assert counts_of(pyedmcl.rqa(x, checkpoint=folder, join=True, **options)) == whole


def test_joint_recurrence(one_device, tmp_path):
    x, y = series(230), series(230, 1)
    options = {"radius": 0.9, "device": one_device}
    alone = pyedmcl.joint_rqa(x, y, **options)
    assert pyedmcl.joint_rqa(x, y, checkpoint=tmp_path / "run", join=True, **options).counts == alone.counts


def test_what_does_not_belong_is_refused(one_device, tmp_path):
    x, folder, file = series(230), tmp_path / "run", tmp_path / "file.npz"
    options = {"device": one_device, "join": True}
    pyedmcl.rqa(x, radius=0.7, checkpoint=folder, **options)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(StoreMismatchError, match=r"belongs to another run \(data differ; radii = .* asked for"):
        pyedmcl.rqa(series(230, 5), radius=0.8, checkpoint=folder, **options)
    text = (folder / "parts.json").read_text()
    (folder / "parts.json").write_text(text.replace('"blocks": ', '"blocks": 1'))
    with pytest.raises(StoreForeignError, match=r"or is damaged .*its checksum differs"):
        pyedmcl.rqa(x, radius=0.7, checkpoint=folder, **options)
    for path, data in before.items():
        path.write_bytes(data)
    assert pyedmcl.rqa(x, radius=0.7, checkpoint=folder, **options)
    with pytest.raises(InputError, match="is a folder; name a file in it"):
        pyedmcl.rqa(x, radius=0.7, checkpoint=folder, device=one_device)
    file.write_text("mine")
    with pytest.raises(InputError, match="is a file; processes that join share a folder: name one"):
        pyedmcl.rqa(x, radius=0.7, checkpoint=file, **options)
    with pytest.raises(InputError, match="join=True: processes share a folder; name it by checkpoint="):
        pyedmcl.rqa(x, radius=0.7, **options)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "one.jpg").write_text("x")
    with pytest.raises(StoreForeignError, match=r"it holds other things.* and is left alone"):
        pyedmcl.rqa(x, radius=0.7, checkpoint=tmp_path / "photos", **options)
    assert os.listdir(tmp_path / "photos") == ["one.jpg"]


def test_the_command_has_checkpoints(one_device, tmp_path):
    np.save(tmp_path / "x.npy", series(230))
    command = ["rqa", tmp_path / "x.npy", "--radius", 0.7, "--checkpoint", tmp_path / "run.npz", "--device", one_device]
    assert inside(*command).returncode == 0 and (tmp_path / "run.npz").exists()
    other = inside(*command, "--m", 2)
    assert other.returncode == 5 and "m = 1 there, 2 asked for" in other.stderr


@pytest.mark.parametrize("joins", [True, False])
@pytest.mark.parametrize("place", [0, 1, -1])
@pytest.mark.parametrize("moment", ["first", "last", "end"])
def test_what_vanishes_is_counted_again(one_device, tmp_path, monkeypatch, joins, place, moment):
    """A scratch folder is purged, or another process finds a damaged file: no row is left out."""
    monkeypatch.setattr(engine.BandsSink, "joins", joins)
    x, folder, told = series(700), tmp_path / "run", []
    options = {"m": 2, "radius": [0.7, 1.5], "device": one_device}

    def purge(done, total, unit):
        told.append(done)
        now = done == total if moment == "end" else len(told) == {"first": 3, "last": 15}[moment]
        if now and (parts := sorted(folder.glob("part-*.npz"))):
            parts[place % len(parts)].unlink()

    whole = counts_of(pyedmcl.rqa(x, **options))
    assert counts_of(pyedmcl.rqa(x, checkpoint=folder, join=True, progress=purge, **options)) == whole
    assert sum(end - begin for begin, end in covered(folder)) == read_identity(folder)[0]
    assert counts_of(pyedmcl.rqa(x, checkpoint=folder, join=True, **options)) == whole

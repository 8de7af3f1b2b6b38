"""Maps that several processes compute together: the bits of one process, in whatever way it was shared out."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from cli_helpers import environment, shell, words
from kill_worker import JOBS, series
from process_helpers import end_of

import pyedmcl
from pyedmcl.errors import InputError
from pyedmcl.jobs import default_block_rows


@pytest.fixture
def table(tmp_path):
    np.save(tmp_path / "table.npy", series())
    return tmp_path / "table.npy"


def together(*commands):
    """Run commands of pyedmcl at the same time; each gives JSON."""
    processes = [
        subprocess.Popen(words(*command, "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        for command in commands
    ]
    said = [end_of(process) for process in processes]
    assert [process.returncode for process in processes] == [0] * len(commands), said
    return [json.loads(out) for out, _ in said]


def test_two_processes_share_a_map(one_device, table, tmp_path):
    rho, E = JOBS["xmap"](None, one_device)
    out = tmp_path / "out.zarr"
    command = ["xmap", table, "-o", out, "--E-max", 3, "--device", one_device]
    together([*command, "--part", "1/2"], [*command, "--part", "2/2"])
    found = pyedmcl.open_xmap(out)
    np.testing.assert_array_equal(np.asarray(found.rho), rho)
    np.testing.assert_array_equal(found.E, E)
    assert not list(out.rglob(".pyedmcl-*"))
    lines = [json.loads(line) for line in (out / "rho" / "blocks.jsonl").read_text().splitlines()]
    assert [line["block"] for line in lines] == list(range(-(-64 // default_block_rows(64))))
    # Alone and together a store is the same but for the journal.
    JOBS["xmap"](tmp_path / "alone.zarr", one_device)
    names = [path.relative_to(out) for path in out.rglob("*")]
    assert sorted(names) == sorted(p.relative_to(tmp_path / "alone.zarr") for p in (tmp_path / "alone.zarr").rglob("*"))
    assert (out / "rho" / "tuning.json").read_bytes() == (tmp_path / "alone.zarr/rho/tuning.json").read_bytes()


def test_two_processes_keep_the_edges_of_one(one_device, table, tmp_path):
    out, alone = tmp_path / "out.zarr", tmp_path / "alone.zarr"
    command = ["xmap", table, "-o", out, "--E", 2, "--keep", "top:3:target", "--device", one_device, "--join"]
    together(command, command)
    pyedmcl.xmap(series(), E=2, keep="top:3:target", out=alone, device=one_device)
    chunks = sorted(path.name for path in (out / "rho").glob("c.*"))
    assert chunks == sorted(path.name for path in (alone / "rho").glob("c.*"))
    assert all((out / "rho" / name).read_bytes() == (alone / "rho" / name).read_bytes() for name in chunks)
    assert pyedmcl.open_xmap(out).edges(top=200) == pyedmcl.open_xmap(alone).edges(top=200)


def test_library_sizes_and_the_seed_are_shared(one_device, table, tmp_path):
    out = tmp_path / "out"
    command = ["ccm-matrix", table, "-o", out, "--columns", ",".join(map(str, range(40))), "--E", 2, "--lib-sizes",
               "20,60", "--sample", 4, "--device", one_device, "--join"]  # fmt: skip
    first, second = together(command, command)
    assert first["seed"] == second["seed"]
    alone = pyedmcl.ccm_matrix(
        series()[:, :40], E=2, lib_sizes=[20, 60], sample=4, seed=first["seed"], device=one_device
    )
    found = pyedmcl.open_ccm_matrix(out)
    np.testing.assert_array_equal(found.rho, alone.rho)
    assert found.seed == first["seed"] and not list(out.rglob(".pyedmcl-*"))


def test_E_is_searched_in_blocks_of_which_some_are_there(one_device, tmp_path):
    """What a killed process has found of E is not searched again, and a damaged part of it is."""
    rho, E = JOBS["xmap"](None, one_device)
    out, stops = tmp_path / "out.zarr", []

    def stop(done, total, unit):
        if unit == "dimensions" and done >= 2 * default_block_rows(64):
            stops.append(done)
            raise KeyboardInterrupt

    options = {"E_max": 3, "out": out, "device": one_device, "part": "1/1"}
    with pytest.raises(pyedmcl.errors.Interrupted, match="continues there"):
        pyedmcl.xmap(series(), progress=stop, **options)
    assert [path.name for path in out.rglob("part-*.npz")] == ["part-0-2.npz"], "neighbours lie in one file"
    assert not list(out.rglob("member-*")) and not list(out.rglob("E-*-*"))
    told = []
    found = pyedmcl.xmap(series(), progress=lambda *now: told.append(now), **options)
    assert next(now for now in told if now[2] == "dimensions") == (2 * default_block_rows(64), 64, "dimensions")
    np.testing.assert_array_equal(np.asarray(found.rho), rho)
    np.testing.assert_array_equal(found.E, E)


def test_processes_on_unlike_devices_make_the_map_of_one(both_devices, table, tmp_path):
    rho, E = JOBS["xmap"](None, both_devices[0])
    out = tmp_path / "out.zarr"
    together(*(["xmap", table, "-o", out, "--E-max", 3, "--device", device, "--join"] for device in both_devices))
    np.testing.assert_array_equal(np.asarray(pyedmcl.open_xmap(out).rho), rho)
    np.testing.assert_array_equal(pyedmcl.open_xmap(out).E, E)


# Runs the command line on one core.
PINNED = """
import os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from pyedmcl.cli.app import main
main()
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not pin processes")
def test_a_process_that_is_pinned_to_a_core_joins(one_device, table, tmp_path):
    rho, _ = JOBS["xmap"](None, one_device)
    out = tmp_path / "out.zarr"

    def stop(done, total, unit):
        if unit == "series" and done:
            raise KeyboardInterrupt

    with pytest.raises(pyedmcl.errors.Interrupted):
        pyedmcl.xmap(series(), E_max=3, out=out, device=one_device, join=True, progress=stop)
    command = [sys.executable, "-c", PINNED, "xmap", table, "-o", out, "--E-max", "3", "--join", "--device", one_device]
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=240, env=environment())
    assert ended.returncode == 0, ended.stderr
    np.testing.assert_array_equal(np.asarray(pyedmcl.open_xmap(out).rho), rho)


def test_what_does_not_go_together_is_refused(tmp_path):
    with pytest.raises(InputError, match="join=True: processes share a folder; name it by out="):
        pyedmcl.xmap(series(), E=2, join=True)
    with pytest.raises(InputError, match="resume=False with join=True would remove what the others compute"):
        pyedmcl.ccm_matrix(series(), E=2, out=tmp_path / "x", part="1/2", resume=False)
    with pytest.raises(InputError, match="part='2/1': 'I/N' is needed"):
        pyedmcl.xmap(series(), E=2, out=tmp_path / "x", part="2/1")
    assert not (tmp_path / "x").exists()


def test_another_question_is_refused_by_name(one_device, table, tmp_path):
    out = tmp_path / "out.zarr"
    pyedmcl.xmap(series(), E=2, out=out, device=one_device, join=True)
    again = shell("xmap", table, "-o", out, "--E", 2, "--tau", 2, "--join", "--device", one_device)
    assert again.returncode == 5 and "tau: stored 1, asked for 2" in again.stderr


def test_a_process_without_such_a_device_leaves_the_others_at_work(one_device, table, tmp_path):
    out = tmp_path / "out.zarr"

    def meanwhile(done, total, unit):
        if done and not ended:
            ended.append(shell("xmap", table, "-o", out, "--E", 2, "--join", "--device", "no such thing"))

    ended = []
    found = pyedmcl.xmap(series(), E=2, out=out, device=one_device, join=True, progress=meanwhile)
    assert ended[0].returncode == 4 and "no such thing" in ended[0].stderr
    assert not np.isnan(np.asarray(found.rho)).all() and not list(out.rglob(".pyedmcl-*"))


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_stored_maps_are_copied_and_pickled(again, one_device, tmp_path, monkeypatch):
    x = np.random.default_rng(3).standard_normal((80, 7)).cumsum(axis=0)
    monkeypatch.chdir(tmp_path)
    stored = {"map": pyedmcl.xmap(x, E=2, out="map", device=one_device),
              "edges": pyedmcl.xmap(x, E=2, out="edges", keep="top:2", device=one_device),
              "grid": pyedmcl.xmap_grid(x, E=[2, 3], out="grid", device=one_device),
              "opened": pyedmcl.open_xmap("map")}  # fmt: skip
    for name, one in stored.items():
        whole = one.edges(top=100) if name == "edges" else np.asarray(one.rho)
        other = again(one)
        if again is not copy.copy:  # which shares what it holds, and so its relative path
            monkeypatch.chdir("/")
        np.testing.assert_array_equal(other.edges(top=100) if name == "edges" else np.asarray(other.rho), whole)
        monkeypatch.chdir(tmp_path)

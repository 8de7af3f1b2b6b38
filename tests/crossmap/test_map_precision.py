"""precision= of maps: what it goes with, what a result and a store say of it, and its option in a shell."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import pyedmcl
from pyedmcl.cli.app import app
from pyedmcl.engines import crossmap
from pyedmcl.errors import InputError, StoreMismatchError
from pyedmcl.simulate import coupled_maps

X = coupled_maps(n_series=6, n_steps=1600, seed=5).values
OPTIONS = {"E": 2, "precision": "compact"}


@pytest.fixture(scope="module", autouse=True)
def any_number_of_targets():
    """Targets have 16 bits however few they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crossmap, "COMPACT_LEAST", 1)
        yield


@pytest.fixture(scope="module")
def compact(one_device):
    return pyedmcl.xmap(X, device=one_device, **OPTIONS)


def test_full_is_the_default_and_compact_is_near(one_device, compact):
    full = pyedmcl.xmap(X, E=2, device=one_device)
    again = pyedmcl.xmap(X, E=2, precision="full", device=one_device)
    np.testing.assert_array_equal(full.rho, again.rho)
    assert 0 < np.abs(full.rho - compact.rho).max() < 2e-5
    assert "precision" not in full.provenance["arguments"] or full.provenance["arguments"]["precision"] == "full"
    assert compact.provenance["arguments"]["precision"] == "compact"
    assert compact.provenance["precision"] == [{"asked": "compact", "targets": 6, "full": 0, "why": ""}]
    assert "compact" in compact.provenance["kernels"] and "compact" not in full.provenance["kernels"]
    assert not any("for" in entry for entry in compact.provenance["neighbors"])


@pytest.mark.parametrize(("options", "match"), [
    ({"precision": "half"}, "precision='half'"), ({"precision": 16}, "precision=16"),
    ({"precision": None}, "precision=None"), ({"precision": "auto"}, "precision='auto'"),
    ({"precision": "compact", "dtype": "float64"}, "dtype='float64'"),
    ({"precision": "compact", "skill": "spearman"}, "skill='spearman'"),
    ({"precision": "compact", "predictions": True}, "predictions=True"),
    ({"precision": "compact", "windows": (200, 100)}, "windows="),
])  # fmt: skip
def test_what_it_does_not_go_with_is_named(one_device, options, match):
    with pytest.raises(InputError, match=match):
        pyedmcl.xmap(X, **{"E": 2, "device": one_device, **options})


def test_every_form_of_a_map_has_it(one_device, compact, tmp_path):
    """Edges, blocks of a store, layers of a grid, and what is mixed: each number is that of the map."""
    edges = pyedmcl.xmap(X, keep="top:2", device=one_device, **OPTIONS)
    np.testing.assert_array_equal(edges.rho, compact.rho[edges.library, edges.target])
    stored = pyedmcl.xmap(X, out=tmp_path / "map", device=one_device, **OPTIONS)
    np.testing.assert_array_equal(stored.rho, compact.rho)
    opened = pyedmcl.open_xmap(tmp_path / "map")
    assert opened.provenance["precision"] == compact.provenance["precision"]
    grid = pyedmcl.xmap_grid(X, E=[1, 2, 3], Tp=[0, 1], precision="compact", device=one_device)
    np.testing.assert_array_equal(grid.sel(E=2, Tp=0).rho, compact.rho)
    E = [2, 1, 3, 2, 1, 3]
    mixed = pyedmcl.xmap(X, E=E, precision="compact", device=one_device).rho
    for target in range(6):
        np.testing.assert_array_equal(mixed[:, target], grid.sel(E=E[target], Tp=0).rho[:, target])
    folded = pyedmcl.xmap(X, folds=2, device=one_device, **OPTIONS)
    in_full = pyedmcl.xmap(X, E=2, folds=2, device=one_device)
    assert 0 < np.abs(folded.folds - in_full.folds).max() < 2e-5


def test_few_targets_of_a_dimension_are_in_full_without_a_warning(one_device, compact, monkeypatch, recwarn):
    monkeypatch.setattr(crossmap, "COMPACT_LEAST", 4)
    E = [2, 2, 3, 2, 2, 3]
    full = pyedmcl.xmap(X, E=E, device=one_device)
    found = pyedmcl.xmap(X, E=E, precision="compact", device=one_device)
    few = np.array(E) == 3
    np.testing.assert_array_equal(found.rho[:, few], full.rho[:, few])
    np.testing.assert_array_equal(found.rho[:, ~few], compact.rho[:, ~few])
    [entry] = found.provenance["precision"]
    assert entry["full"] == 2 and "fewer" in entry["why"]
    monkeypatch.setattr(crossmap, "COMPACT_LEAST", 7)
    none = pyedmcl.xmap(X, E=E, precision="compact", device=one_device)
    np.testing.assert_array_equal(none.rho, full.rho)
    assert none.provenance["precision"][0]["full"] == 6
    assert not [each for each in recwarn if "in full" in str(each.message)]


def test_a_store_is_not_continued_with_another_precision(one_device, tmp_path):
    for first, then in (("full", "compact"), ("compact", "full")):
        out = tmp_path / first
        pyedmcl.xmap(X, E=2, out=out, precision=first, device=one_device)
        with pytest.raises(StoreMismatchError, match="precision"):
            pyedmcl.xmap(X, E=2, out=out, precision=then, device=one_device)
        pyedmcl.xmap(X, E=2, out=out, precision=first, device=one_device)


def test_two_devices_share_a_map(both_devices, compact):
    found = pyedmcl.xmap(X, device=list(both_devices), **OPTIONS)
    np.testing.assert_array_equal(found.rho, compact.rho)


def test_the_option_of_commands(one_device, compact, tmp_path):
    data = tmp_path / "data.csv"
    np.savetxt(data, X, delimiter=",", header=",".join(f"x{i}" for i in range(6)), comments="")
    for words in (["xmap", data, "--E", 2], ["xmap-grid", data, "--E", "2,3"]):
        out = tmp_path / words[0]
        command = [*words, "--precision", "compact", "--device", one_device, "-o", out, "--json"]
        found = CliRunner().invoke(app, [str(word) for word in command])
        assert found.exit_code == 0, found.output
    np.testing.assert_array_equal(pyedmcl.open_xmap(tmp_path / "xmap").rho, compact.rho)
    np.testing.assert_array_equal(pyedmcl.open_xmap_grid(tmp_path / "xmap-grid").sel(E=2).rho, compact.rho)
    wrong = ["xmap", data, "--E", 2, "--precision", "half", "--device", one_device, "-o", tmp_path / "other"]
    found = CliRunner().invoke(app, [str(word) for word in wrong])
    assert found.exit_code == 3 and "--precision" in found.output

"""``xmap(keep=...)``: the strongest pairs instead of the map, in memory and on disk, and never the square."""

from __future__ import annotations

import json
import pickle
import re
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

import pyedmcl
from pyedmcl.crossmap.keep import EdgeSink, Keep, KeptProblem
from pyedmcl.engines.crossmap import CrossMap
from pyedmcl.errors import InputError, Interrupted, MissingExtraError, StoreError, StoreMismatchError
from pyedmcl.jobs import XmapStore, open_store

RULES = ("top:2", "top:2:target", "rho>0.3")
NAMES = [f"s{i}" for i in range(40)]


@pytest.fixture(scope="module")
def data():
    from pyedmcl.simulate import coupled_maps

    values = coupled_maps(n_series=40, n_steps=60).values.astype(np.float32)
    values[:, 7] = 0.5  # constant: rho is NaN
    return dict(zip(NAMES, values.T, strict=True))


@pytest.fixture(scope="module")
def whole(data, one_device):
    with pytest.warns(RuntimeWarning, match="constant"):
        return pyedmcl.xmap(data, E=2, device=one_device)


@pytest.fixture(autouse=True)
def _quiet(recwarn):
    yield
    assert all(re.search("constant|more series|there are \\d+ rows", str(warning.message)) for warning in recwarn)


def expected(rho, rule):
    """The pairs to keep, by sorting all: (library, target) in the documented order."""
    n = len(rho)
    cells = [(i, j) for i in range(n) for j in range(n) if i != j and not np.isnan(rho[i, j])]
    if rule.startswith("rho>"):
        return [cell for cell in cells if rho[cell] > float(rule[4:])]
    axis, most = int(rule.endswith(":target")), int(rule.split(":")[1])
    by_series = [sorted((c for c in cells if c[axis] == s), key=lambda c: (-rho[c], *c))[:most] for s in range(n)]
    return [cell for own in by_series for cell in own]


def cells_of(result):
    return list(zip(result.library.tolist(), result.target.tolist(), strict=True))


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("rule", RULES)
def test_edges_are_those_of_the_map(data, whole, one_device, tmp_path, rule, stored):
    out = tmp_path / "edges.zarr" if stored else None
    results = [pyedmcl.xmap(data, E=2, keep=rule, out=out, device=one_device)]
    results += [pyedmcl.open_xmap(out)] if stored else []
    for result in results:
        assert cells_of(result) == expected(whole.rho, rule)
        np.testing.assert_array_equal(result.rho, whole.rho[result.library, result.target])
        assert result.names == whole.names and (result.E == whole.E).all() and len(result) == len(result.rho)
        every = {(e.library, e.target): e for e in whole.edges(top=2000)}
        assert all(every[edge.library, edge.target] == edge for edge in result.edges(top=5))
        assert [edge.rho for edge in result.edges(top=5)] == sorted(map(float, result.rho), reverse=True)[:5]
    assert results[0].provenance["arguments"]["keep"].startswith(rule)


def test_the_device_gives_the_same_edges(data, device):
    result, rho = pyedmcl.xmap(data, E=2, keep="top:3", device=device), pyedmcl.xmap(data, E=2, device=device).rho
    assert cells_of(result) == expected(rho, "top:3")
    np.testing.assert_array_equal(result.rho, rho[result.library, result.target])


@pytest.mark.parametrize("rule", ["top:2", "top:2:target"])
def test_several_devices_keep_the_edges_of_one(data, whole, both_devices, rule):
    result = pyedmcl.xmap(data, E=2, keep=rule, device=list(both_devices))
    assert cells_of(result) == expected(whole.rho, rule)


def test_kernels_that_need_devices_of_one_kind_are_told():
    problem = SimpleNamespace(kernels=("stage", "smap"), unit="series", total=3, operations=1.0)
    assert KeptProblem(problem, Keep.parse("top:1"), "float32", np.arange(3), 3).kernels == ("stage", "smap")


def test_workers_send_edges_only(data, whole, one_device, monkeypatch):
    sent, room = [], EdgeSink.write
    monkeypatch.setattr(EdgeSink, "write", lambda self, block, result: (sent.append(result), room(self, block, result)))
    with ThreadPoolExecutor(2) as pool:
        result = pyedmcl.xmap(data, E=2, keep="top:2:target", client=pool, device=one_device)
    assert cells_of(result) == expected(whole.rho, "top:2:target")
    assert all(block.arrays[0].dtype.names == ("library", "target", "rho") for block in sent)


def test_frames_sparse_arrays_and_pickles(data, whole, one_device):
    result = pyedmcl.xmap(data, E=2, keep="top:2", device=one_device)
    frame = result.to_frame()
    assert list(frame.columns) == ["cause", "effect", "library", "target", "rho", "E", "E_of"]
    assert len(frame) == len(result)
    assert frame["target"].tolist() == [whole.names[j] for j in result.target]
    sparse = result.to_scipy()
    assert sparse.shape == whole.rho.shape and sparse.nnz == len(result)
    library, target = sparse.nonzero()
    np.testing.assert_array_equal(sparse.toarray()[library, target], whole.rho[library, target])
    assert cells_of(pickle.loads(pickle.dumps(result))) == cells_of(result)


def test_graphs_lead_from_cause_to_effect(data, one_device, monkeypatch):
    """With a stand-in for networkx, which not every machine has."""
    nodes, edges = {}, {}
    graph = SimpleNamespace(
        add_nodes_from=nodes.update,
        add_weighted_edges_from=lambda more, weight: edges.update({(a, b): {weight: rho} for a, b, rho in more}),
    )
    result = pyedmcl.xmap(data, E=2, keep="top:2", device=one_device)
    monkeypatch.setitem(sys.modules, "networkx", SimpleNamespace(DiGraph=lambda: graph))
    assert result.to_networkx() is graph
    assert nodes == {name: {"E": 2} for name in result.names}
    frame = result.to_frame()
    pairs = zip(frame["target"], frame["library"], frame["rho"], strict=True)
    assert edges == {(t, lib): {"rho": float(rho)} for t, lib, rho in pairs}
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingExtraError, match=r"networkx.*pyedmcl\[graph\]"):
        result.to_networkx()


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json", ".npz", ".parquet"])
def test_edges_are_saved(data, one_device, tmp_path, suffix):
    import pandas

    result, path = pyedmcl.xmap(data, E=2, keep="top:2", device=one_device), tmp_path / f"edges{suffix}"
    result.save(path)
    frame = result.to_frame()
    if suffix == ".npz":
        with np.load(path) as found:
            np.testing.assert_array_equal(found["names"][found["library"]], frame["library"])
            np.testing.assert_array_equal(found["names"][found["target"]], frame["target"])
            np.testing.assert_array_equal(found["rho"], result.rho)
            np.testing.assert_array_equal(found["E"], frame["E"])
        return
    readers = {
        ".csv": pandas.read_csv, ".tsv": lambda path: pandas.read_csv(path, sep="\t"),
        ".json": lambda path: pandas.DataFrame(json.loads(path.read_text())), ".parquet": pandas.read_parquet,
    }  # fmt: skip
    found = readers[suffix](path)
    assert list(found.columns) == list(frame.columns)
    assert found["library"].tolist() == frame["library"].tolist()
    assert found["target"].tolist() == frame["target"].tolist() and found["E"].tolist() == frame["E"].tolist()
    np.testing.assert_array_equal(found["rho"].to_numpy(np.float32), result.rho)


@pytest.mark.parametrize("suffix", [".csv", ".json", ".npz", ".parquet"])
def test_no_edges_at_all_are_saved(data, one_device, tmp_path, suffix):
    result = pyedmcl.xmap(data, E=2, keep="rho>0.9999", device=one_device)
    assert len(result) == 0 and result.edges() == []
    result.save(tmp_path / f"none{suffix}")
    text = (tmp_path / f"none{suffix}").read_bytes()
    assert {".csv": text == b"cause,effect,library,target,rho,E,E_of\n", ".json": text == b"[]\n"}.get(suffix, True)


@pytest.mark.parametrize("rule", ["top:2", "top:2:target"])
def test_a_stopped_run_continues_with_the_same_files(data, one_device, tmp_path, monkeypatch, rule):
    reference, out, skill = tmp_path / "whole.zarr", tmp_path / "edges.zarr", CrossMap.skill
    pyedmcl.xmap(data, E=2, keep=rule, out=reference, device=one_device)

    def stop_at_the_second(self, begin, *rest):
        if begin:
            raise KeyboardInterrupt
        return skill(self, begin, *rest)

    monkeypatch.setattr(CrossMap, "skill", stop_at_the_second)
    with pytest.raises(Interrupted, match=r"1 of 3 blocks .* kept"):
        pyedmcl.xmap(data, E=2, keep=rule, out=out, device=one_device)
    with pytest.warns(RuntimeWarning, match=r"not finished: 2 of 3 blocks .* and so are their edges"):
        assert 0 < len(pyedmcl.open_xmap(out)) < 80
    computed = []
    monkeypatch.setattr(CrossMap, "skill", lambda self, a, *b: (computed.append(a), skill(self, a, *b))[1])
    pyedmcl.xmap(data, E=2, keep=rule, out=out, device=one_device)
    assert len(computed) == 2, "the finished block is not computed again"
    files = sorted(path.name for path in (reference / "rho").glob("c.*"))
    assert files == ["c.0.npy", "c.1.npy", "c.2.npy"]
    for name in files:
        assert (out / "rho" / name).read_bytes() == (reference / "rho" / name).read_bytes()
        assert np.load(out / "rho" / name).dtype.names == ("library", "target", "rho")


def test_other_readers_of_zarr_see_names_and_dimensions(data, one_device, tmp_path, recwarn):
    zarr = pytest.importorskip("zarr", minversion="3", reason="format 3 needs zarr 3")
    result = pyedmcl.xmap(data, E=2, keep="top:2", out=tmp_path / "edges.zarr", device=one_device)
    recwarn.clear()
    group = zarr.open_group(store=tmp_path / "edges.zarr", mode="r")
    assert sorted(name for name, _ in group.members(max_depth=None)) == ["E", "rho"]
    assert group["E"][:].tolist() == result.E.tolist() and group.attrs["names"] == list(result.names)
    assert dict(group["rho"].attrs) == {"keep": "top:2:library", "edges": "c.<block>.npy"}
    assert not len(recwarn), "nothing of ours is unknown to it"


def test_damage_is_found_and_computed_anew(data, one_device, tmp_path):
    out = tmp_path / "edges.zarr"
    result = pyedmcl.xmap(data, E=2, keep="top:2", out=out, device=one_device)
    edges, chunk = cells_of(result), out / "rho" / "c.1.npy"
    chunk.write_bytes(chunk.read_bytes()[:-1] + b"\xff")
    with pytest.raises(StoreError, match=r"block 1 of .* has changed"):
        len(pyedmcl.open_xmap(out))
    with pytest.warns(RuntimeWarning, match=r"1 of \d+ blocks .* have changed since they were written"):
        assert cells_of(pyedmcl.xmap(data, E=2, keep="top:2", out=out, device=one_device)) == edges


def test_another_rule_is_refused_unless_started_afresh(data, whole, one_device, tmp_path):
    out = tmp_path / "edges.zarr"
    pyedmcl.xmap(data, E=2, keep="top:2", out=out, device=one_device)
    pyedmcl.xmap(data, E=2, keep="top : 2 : library", out=out, device=one_device)  # the same one
    for rule in ("top:3", "all"):
        with pytest.raises(StoreMismatchError, match="keep: stored 'top:2:library'"):
            pyedmcl.xmap(data, E=2, keep=rule, out=out, device=one_device)
    with pytest.raises(InputError, match="holds edges only"):
        _ = open_store(out).rho
    fresh = pyedmcl.xmap(data, E=2, out=out, resume=False, device=one_device)
    np.testing.assert_array_equal(np.asarray(fresh.rho), whole.rho)
    assert not list(out.rglob("*.npy"))


def test_a_store_refuses_what_are_no_edges(tmp_path):
    from store_helpers import make_manifest, values

    manifest = make_manifest(parameters={"keep": "top:2:library"})
    with (
        XmapStore.create_or_resume(tmp_path / "a", manifest) as store,
        pytest.raises(InputError, match="edges are a list"),
    ):
        store.write(0, values()[:5])
    with (
        XmapStore.create_or_resume(tmp_path / "b", make_manifest()) as store,
        pytest.raises(InputError, match="holds a map"),
    ):
        store.edges(0)


@pytest.mark.parametrize(("rule", "stored"), [("top:10", True), ("top:2:target", False), ("rho>0.99", False)])
def test_the_square_is_never_held(one_device, tmp_path, monkeypatch, rule, stored):
    n = 5000  # a square of 100 MB
    monkeypatch.setenv("PYEDMCL_MEMORY_LIMIT", str(64 << 20))
    walk = np.cumsum(np.random.default_rng(3).standard_normal((40, n)), axis=0).astype(np.float32)
    pyedmcl.xmap(walk[:, :40], E=2, keep=rule, device=one_device)  # imports and compiles
    tracemalloc.start()
    try:
        result = pyedmcl.xmap(walk, E=2, keep=rule, out=tmp_path / "edges.zarr" if stored else None, device=one_device)
        assert 0 < len(result) < n * n / 100
        assert len(result.edges(top=7)) == 7
        assert tracemalloc.get_traced_memory()[1] < n * n * 4 / 3
    finally:
        tracemalloc.stop()


def test_pictures_of_edges(data, one_device, tmp_path):
    result = pyedmcl.xmap(data, E=2, keep="top:2", device=one_device)
    axes = result.plot(tmp_path / "edges.png").axes[0]
    assert axes.get_title() == "40 series; kept pairs (top:2:library), others are grey"
    drawn = axes.images[0].get_array()
    assert np.count_nonzero(~np.ma.getmaskarray(drawn)) == len(result)
    assert drawn[result.library[0], result.target[0]] == result.rho[0]
    figure = result.plot_network(top=3)
    assert "the strongest 3 of" in figure.axes[0].get_title()


def test_a_large_picture_of_edges_is_drawn_from_maxima():
    from pyedmcl.plot.pairs import edge_map

    edges = np.array([(0, 3, 0.5), (1, 2, 0.75), (4, 0, 0.25)], [("library", int), ("target", int), ("rho", float)])
    axes = edge_map(lambda: [edges[:1], edges[1:]], list("abcde"), keep="rho>0.2", max_cells=3).axes[0]
    assert axes.get_title().endswith("each cell is the largest kept rho of 2 x 2 pairs")
    cells = axes.images[0].get_array()
    np.testing.assert_array_equal(cells.filled(-1), [[-1, 0.75, -1], [-1, -1, -1], [0.25, -1, -1]])


def test_from_a_shell(data, tmp_path, one_device):
    import pandas
    from typer.testing import CliRunner

    from pyedmcl.cli.app import app

    def run(*words):
        outcome = CliRunner().invoke(app, [*map(str, words), "--quiet"])
        assert outcome.exit_code == 0, outcome.output
        return outcome

    pandas.DataFrame(data).to_csv(tmp_path / "data.csv", index=False)
    out, edges = tmp_path / "edges.zarr", pyedmcl.xmap(data, E=2, keep="top:2", device=one_device).to_frame()
    run("xmap", tmp_path / "data.csv", "-o", out, "--E", 2, "--keep", "top:2", "--device", one_device)
    run("export", out, "-o", tmp_path / "edges.csv")
    assert pandas.read_csv(tmp_path / "edges.csv")[["library", "target"]].equals(edges[["library", "target"]])
    run("export", out, "-o", tmp_path / "best.csv", "--edges", "--top", 3)
    best = pandas.read_csv(tmp_path / "best.csv")
    np.testing.assert_allclose(best["rho"], edges["rho"].nlargest(3), rtol=1e-6)
    run("plot", out, "-o", tmp_path / "edges.png")
    run("plot", out, "-o", tmp_path / "arrows.png", "--network", "--top", 5)
    refused = CliRunner().invoke(app, ["export", str(out), "-o", str(tmp_path / "map.npy")])
    assert refused.exit_code == 5 and ".parquet" in refused.output

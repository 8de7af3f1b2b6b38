"""Reports of results: what they say, in which order, and that names of series stay text wherever they stand."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from itertools import pairwise

import numpy as np
import pytest
from reporting_parts import ODD, ccm_matrix_result, cells_of, read, skills, xmap_result
from result_makers import MAKERS, VALUES, made

pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install 'pyedmcl[report]' brings it")

import pyedmcl
from pyedmcl.crossmap.grid import XmapGrid
from pyedmcl.crossmap.results import HeldParts, XmapEdges, XmapResult
from pyedmcl.errors import InputError, MissingExtraError, OutputError, StoreForeignError
from pyedmcl.network.verdicts import COLUMNS
from pyedmcl.results.edges import strongest_edges
from pyedmcl.significance.xmap_significance import XmapSignificance
from pyedmcl.simulate import coupled_maps


@pytest.mark.parametrize("name", MAKERS)
def test_every_result_has_a_report(name, one_device, tmp_path):
    path = made(name, one_device).report(tmp_path / "r.html")
    page = read(path)
    assert "Written by pyedmcl" in page.text
    shown = {tag for tag, _ in page.tags} & {"canvas", "table", "img"}
    assert shown or name == "EmbedResult", "there is something to see"
    assert path.stat().st_size < 2_000_000


def test_a_map_shows_its_skill_and_its_strongest_links(tmp_path):
    result = xmap_result()
    page = read(result.report(tmp_path / "r.html", top=10))
    found = cells_of(page.content("layers"))
    assert np.isnan(np.diag(found)).all(), "a series and itself are no pair"
    assert np.allclose(found, np.where(np.eye(6), np.nan, result.rho), atol=2e-5, equal_nan=True)
    rows, best = page.tables[0], strongest_edges(result.rho, result.names, result.E, 10)
    assert rows[0][:3] == ["cause (target)", "effect (library)", "rho"]
    assert [row[:2] for row in rows[1:]] == [[edge.target, edge.library] for edge in best]
    assert page.csv()[0][:4] == ["cause", "effect", "library", "target"]
    assert [row[:4] for row in page.csv()[1:]] == [
        [edge.target, edge.library, edge.library, edge.target] for edge in best
    ]
    assert "The 10 strongest of 30 pairs." in page.text
    names, links = (page.content("links")[key] for key in ("names", "links"))
    assert [(names[cause], names[effect]) for cause, effect, *_ in links] == [
        (edge.target, edge.library) for edge in best
    ]


def test_names_are_text_wherever_they_stand(tmp_path):
    result = ccm_matrix_result(8, ODD)
    text = result.report(tmp_path / "r.html", title="</title><script>alert(3)</script>").read_text(encoding="utf-8")
    page = read(tmp_path / "r.html")
    assert len(page.scripts) == 1, "the only program is ours"
    assert not re.search(r"<script[^>]*>\s*alert|<img[^>]*onerror|<b>", text)
    assert {tag for tag, _ in page.tags} <= {
        "html", "head", "meta", "title", "style", "body", "header", "h1", "noscript", "p", "main", "article", "h2",
        "dl", "dt", "dd", "section", "h3", "details", "summary", "pre", "figure", "figcaption", "div", "label",
        "select", "option", "button", "canvas", "span", "script", "table", "thead", "tbody", "tr", "th", "td", "a",
        "input", "output", "img", "footer", "ul", "li",
    }  # fmt: skip
    assert not any(key.startswith("on") for _, attributes in page.tags for key in attributes)
    shown = [name.replace("\u202e", "\\u202e").replace("\0", "\\x00").replace("\n", "\\n") for name in ODD]
    assert page.content("layers")["rows"] == shown
    assert {row[0] for row in page.tables[0][1:]} == set(shown)
    assert {row[0] for row in page.csv()[1:]} == {"'" + name if name.startswith("=") else name for name in ODD}


def test_the_page_may_run_its_own_script_only_and_load_nothing(tmp_path):
    page = read(xmap_result().report(tmp_path / "r.html"))
    (policy,) = [a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"]
    digest = base64.b64encode(hashlib.sha256(page.scripts[0].encode()).digest()).decode()
    assert policy.startswith("default-src 'none';") and f"script-src 'sha256-{digest}'" in policy
    loaded = [a[key] for _, a in page.tags for key in ("src", "href") if key in a]
    assert loaded and all(address.startswith(("data:", "#")) for address in loaded)
    style = (tmp_path / "r.html").read_text(encoding="utf-8").partition("<style>")[2].partition("</style>")[0]
    assert "url(" not in style and "@import" not in style


def test_five_hundred_series_take_less_than_five_megabytes(tmp_path):
    rng, n = np.random.default_rng(1), 500
    names = tuple(f"neuron {i:03d}" for i in range(n))
    p = rng.random((n, n))
    result = XmapSignificance(skills(n), p, p, np.full(n, 4), names, 99, "phase", 1, np.full((n, n), 99))
    path = result.report(tmp_path / "r.html", cluster=True)
    assert path.stat().st_size < 5_000_000
    content = read(path).content("layers")
    assert content["cells"] == [n, n] and content["size"] == 1, "each pair is a cell"
    assert [layer["label"] for layer in content["layers"]] == ["skill (rho)", "q-value", "p-value"]


def test_a_map_of_more_series_than_pixels_is_shown_by_means(tmp_path):
    n = 1500
    page = read(xmap_result(n).report(tmp_path / "r.html", top=5))
    content = page.content("layers")
    assert content["size"] == 3 and content["cells"] == [500, 500] and content["shape"] == [n, n]
    assert "Each cell is the mean of 3 x 3 pairs." in page.text
    whole = skills(n).astype(float)
    assert np.allclose(cells_of(content)[0, 1], whole[:3, 3:6].mean(), atol=1e-4)
    assert len(page.tables[0]) == 6


def test_cluster_puts_like_series_side_by_side(tmp_path):
    result = xmap_result(8)
    content = read(result.report(tmp_path / "r.html", cluster=True)).content("layers")
    groups = [int(name[1:]) % 2 for name in content["rows"]]
    assert sum(a != b for a, b in pairwise(groups)) == 1 and content["rows"] == content["columns"]
    order = [int(name[1:]) for name in content["rows"]]
    expected = np.where(np.eye(8), np.nan, result.rho)[np.ix_(order, order)]
    assert np.allclose(cells_of(content), expected, atol=2e-5, equal_nan=True)
    first = read(xmap_result(8).report(tmp_path / "r.html")).content("layers")
    assert first["rows"] == list(result.names), "only on request"


def test_convergence_has_trends_and_curves_of_chosen_pairs(tmp_path):
    result = ccm_matrix_result()
    page = read(result.report(tmp_path / "r.html", pairs=[("x1", "x0")]))
    rows = {tuple(row[:2]): row for row in page.tables[0][1:]}
    head = page.tables[0][0]
    frame = result.table()
    assert head == ["cause (target)", "effect (library)", "rho", "gain", "trend", "E", "E of"]
    for cause, effect, _, _, rho, gain, trend, *_ in frame:
        assert rows[cause, effect][2:5] == [f"{rho:.4g}", f"{gain:.4g}", f"{trend:.4g}"]
    curves = page.content("curves")
    assert curves["x"] == [20, 50, 100, 200, 400] and curves["chosen"] == [[0, 1]]
    assert curves["names"][:2] == ["x1", "x0"]
    (skill,) = [values for cause, effect, values in curves["curves"] if (cause, effect) == (0, 1)]
    assert np.allclose(skill, [0.88, 0.85, 0.8, 0.7, 0.5])
    falling = [link for link in page.content("links")["links"] if link[:2] == [
        page.content("links")["names"].index("x1"), page.content("links")["names"].index("x0")]]  # fmt: skip
    assert falling[0][3] is None, "no arrow was tested"
    with pytest.raises(InputError, match=r"pairs: there is no pair with cause 'x1' and effect 'x9'"):
        result.report(tmp_path / "r.html", pairs=[("x1", "x9")])


def test_a_grid_shows_what_is_chosen_and_skill_along_its_axis(tmp_path):
    rho = np.stack([skills(4, seed) for seed in range(6)]).reshape(3, 2, 4, 4)
    grid = XmapGrid(rho, {"E": (1, 2, 3), "tau": (1, 2)}, tuple("abcd"), None, {"Tp": 0})
    page = read(grid.report(tmp_path / "r.html", pairs=[("b", "a")]))
    content = page.content("layers")
    assert [layer["label"] for layer in content["layers"]][:3] == ["best skill (rho)", "chosen E", "E = 1, tau = 1"]
    curves = page.content("curves")
    values = {(curves["names"][cause], curves["names"][effect]): found for cause, effect, found in curves["curves"]}
    assert np.allclose(values["b", "a"], rho[:, :, 0, 1].max(axis=1), atol=1e-4)
    choice = grid.saturation()
    place = np.argmax(choice.rho, axis=0)
    expected = np.take_along_axis(choice.chosen, place[None], axis=0)[0]
    assert np.allclose(cells_of(content, 1), np.where(np.eye(4), np.nan, expected), equal_nan=True)
    for row in page.tables[0][1:]:
        assert row[3] == f"{expected['abcd'.index(row[1]), 'abcd'.index(row[0])]:g}"


def test_kept_pairs_and_errors(tmp_path):
    parts = np.array([(0, 1, 0.9), (2, 0, 0.5)], [("library", "i4"), ("target", "i4"), ("rho", "f4")])
    edges = XmapEdges("top:1", np.array([2, 3, 4]), ("a", "b", "c"), "float32", HeldParts((parts,)))
    page = read(edges.report(tmp_path / "r.html"))
    assert [row[:2] for row in page.tables[0][1:]] == [["b", "a"], ["a", "c"]]
    assert "Pairs that were kept (top:1); others are grey." in page.text
    page = read(xmap_result(4, skill="rmse").report(tmp_path / "r.html", top=3))
    assert page.tables[0][1][2] == f"{np.where(np.eye(4), np.inf, skills(4)).min():.4g}", "the smallest error is best"
    assert not any("links" in content for content in page.contents), "errors are no strength of a link"


def test_maps_of_several_theta_are_layers(tmp_path):
    rho = np.stack([skills(4), skills(4, 1)])
    result = XmapResult(rho, np.full(4, 3), tuple("abcd"), theta=np.array([0.0, 2.0]))
    page = read(result.report(tmp_path / "r.html"))
    layers = page.content("layers")["layers"]
    assert [layer["label"] for layer in layers] == ["rho, theta = 0", "rho, theta = 2"]
    best = np.where(np.eye(4), -1, rho.max(axis=0))
    assert page.tables[0][1][2] == f"{best.max():.4g}", "links are those of the best theta"
    chosen = XmapResult(rho[0], np.full(4, 3), tuple("abcd"), theta=np.full((4, 4), 2.0))
    content = read(chosen.report(tmp_path / "r.html")).content("layers")
    assert [layer["label"] for layer in content["layers"]] == ["skill (rho)", "chosen theta"]
    assert cells_of(content, 1)[0, 1] == 2


def test_what_was_run_is_there(one_device, tmp_path):
    result = pyedmcl.xmap({"<a>": VALUES[:, 0], "b": VALUES[:, 1]}, E=3, device=one_device)
    text = read(result.report(tmp_path / "r.html")).text
    data = result.provenance["data"]["data"]
    for part in (data["digest"], "400 rows, 2 series", "xmap(E=3", f"pyedmcl {pyedmcl.__version__}", "numpy",
                 result.provenance["device"]):  # fmt: skip
        assert part in text


def test_stores_finished_or_not(one_device, tmp_path):
    pyedmcl.xmap(VALUES, E=3, out=tmp_path / "m.zarr", device=one_device)
    page = read(pyedmcl.report(tmp_path / "m.zarr", tmp_path / "r.html"))
    assert "not finished" not in page.text and str(tmp_path / "m.zarr") in page.text
    for chunk in (tmp_path / "m.zarr" / "rho").rglob("c.*"):
        chunk.unlink()
    page = read(pyedmcl.report(tmp_path / "m.zarr", tmp_path / "r.html"))
    assert "This result is not finished: 1 of 1 blocks are missing" in page.text
    assert np.isnan(cells_of(page.content("layers"))).all() and len(page.tables[0]) == 1


def test_folders_of_several_maps(one_device, tmp_path):
    """Their provenance is that of the first map, whose own E, fold or library size is not that of all."""
    grid, sizes = tmp_path / "grid", tmp_path / "ccm"
    pyedmcl.xmap_grid(VALUES, E=[1, 3], folds=2, out=grid, device=one_device)
    page = read(pyedmcl.report(grid, tmp_path / "r.html"))
    labels = [layer["label"] for layer in page.content("layers")["layers"]]
    assert labels == ["best skill (rho)", "chosen E", "E = 1", "E = 3"], "means over folds"
    assert "tau=1" in page.text and "fold=" not in page.text and "SHA-256" in page.text
    pyedmcl.ccm_matrix(VALUES, E=3, lib_sizes=[30, 60], sample=5, seed=1, out=sizes, device=one_device)
    page = read(pyedmcl.report(sizes, tmp_path / "r.html"))
    assert "sample=5" in page.text and "lib_size=" not in page.text and "library sizes" in page.text
    next((sizes / "library_0000060" / "rho").glob("c.*")).unlink()
    page = read(pyedmcl.report(sizes, tmp_path / "r.html"))
    assert "This result is not finished: 1 of 2 blocks are missing" in page.text


def test_several_results_are_sections_and_the_file_is_the_same_each_time(one_device, tmp_path):
    plot, measures = made("RecurrencePlot", one_device), made("RecurrenceResult", one_device)
    first, second = (pyedmcl.report([plot, measures], tmp_path / f"{i}.html", title="Both") for i in "12")
    assert first.read_bytes() == second.read_bytes()
    page = read(first)
    assert [a["href"] for a in page.links[:2]] == ["#s1", "#s2"]
    content = page.content("layers")
    assert np.allclose(cells_of(content), plot.density, atol=1e-4) and content["upwards"]
    assert page.tables[0][1][0] == "RR"


def test_what_cannot_be_reported_is_refused(tmp_path, monkeypatch):
    result, path = xmap_result(), tmp_path / "r.html"
    with pytest.raises(OutputError, match=r"a report is written as .html or .htm, not '.pdf'"):
        result.report(tmp_path / "r.pdf")
    with pytest.raises(OutputError, match="there is no folder"):
        result.report(tmp_path / "none" / "r.html")
    with pytest.raises(InputError, match="there is no such file or folder"):
        pyedmcl.report(tmp_path / "none.zarr", path)
    (tmp_path / "a.txt").write_text("no result")
    with pytest.raises(StoreForeignError, match=r"a\.txt is no result"):
        pyedmcl.report(tmp_path / "a.txt", path)
    with pytest.raises(InputError, match="result=3: what a function of pyedmcl returned is needed"):
        pyedmcl.report(3, path)
    with pytest.raises(InputError, match="pairs: there are no curves of pairs here"):
        result.report(path, pairs=[("x0", "x1")])
    with pytest.raises(InputError, match="result: there is none"):
        pyedmcl.report([], path)
    for wrong in ({"top": 0}, {"top": True}, {"rate": 1}, {"title": 1}, {"cluster": "no"}, {"pairs": "ab"}):
        with pytest.raises(InputError, match=f"{next(iter(wrong))}="):
            result.report(path, **wrong)
    path.write_text("mine")
    monkeypatch.setitem(sys.modules, "scipy.cluster.hierarchy", None)
    with pytest.raises(MissingExtraError, match=r"pyedmcl\[report\]"):
        result.report(path, cluster=True)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pyedmcl\[report\]"):
        result.report(path)
    assert path.read_text() == "mine", "what was there is kept"


def test_folders_of_networks_and_tests_are_reported(tmp_path, one_device):
    data = np.random.default_rng(3).random((60, 3))
    options = {"E": 2, "n": 19, "seed": 1, "device": one_device}
    pyedmcl.causal_network(data, **options, lags=None, convergence=False, out=tmp_path / "net")
    pyedmcl.xmap_significance(data, **options, out=tmp_path / "tests")
    for name in ("net", "tests"):
        page = pyedmcl.report(tmp_path / name, tmp_path / f"{name}.html").read_text(encoding="utf-8")
        assert "not finished" not in page and "x2" in page


def test_the_answer_comes_first_and_nothing_is_dropped(tmp_path, one_device):
    found = pyedmcl.causal_network(coupled_maps(n_series=8, n_steps=400).values, E=3, n=99, seed=1, device=one_device)
    asked = next(row for row in found.rows(["none"]))[:2]
    path = found.report(tmp_path / "r.html", pairs=[asked], top=100)
    page, text = read(path), path.read_text(encoding="utf-8")
    order = ('class="answer"', 'class="network"', 'class="table wide"', 'class="curves"', 'class="map"', "SHA-256")
    places = [text.index(mark) for mark in order]
    assert places == sorted(places)
    assert text.rindex("<details", 0, places[-1]) > places[-2], "data and provenance are folded"
    links = found.rows(["direct", "link"])
    for cause, effect in [asked, *(row[:2] for row in links)]:
        for sentence in found.statement(cause=cause, effect=effect).split(". "):
            assert sentence.rstrip(".") in page.text
    network = page.content("links")
    assert network["total"] == len(network["links"]) == len(links) and not network["untested"]
    head, rows = page.tables[0][0], page.tables[0][1:]
    assert head[-1] == "reasons" and len(rows) == len(found.rows())
    told = page.text.partition("The same in all rows:")[2].partition("Search")[0]
    assert all(
        name.replace("_", " ") in told or name.replace("_", " ") in " ".join(head)
        for name in COLUMNS if name not in ("cause", "effect", "p_value", "q_value")
    ), "each column is shown or said"  # fmt: skip
    assert page.csv()[0][:3] == ["cause", "effect", "verdict"] and len(page.csv()[0]) == len(COLUMNS)


def test_arrows_that_nobody_tested_are_called_so(tmp_path):
    p = np.full((6, 6), 0.01)
    tested = XmapSignificance(skills(6), p, p, np.full(6, 4), tuple("abcdef"), 99, "phase", 1, np.full((6, 6), 99))
    for result, untested in ((xmap_result(), True), (ccm_matrix_result(), True), (tested, False)):
        page = read(result.report(tmp_path / "r.html", top=5))
        assert page.content("links")["untested"] is untested
        assert ("No arrow was tested" in page.text) is untested
        text = (tmp_path / "r.html").read_text(encoding="utf-8")
        if untested:
            drawing = text.index('class="drawing"')
            assert text.rindex("<figure", 0, drawing) < text.rindex("No arrow was tested", 0, drawing)
    assert page.content("links")["total"] == 30, "of how many the 5 are the strongest"

"""The commands about cross mapping, views and intervals: the functions' numbers, in tables, JSON and words."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from series_helpers import driven
from typer.testing import CliRunner

import pyedmcl
from pyedmcl.cli.app import app


@pytest.fixture
def table(tmp_path):
    """A CSV of years and four series; b is driven by a."""
    a, b = driven(150)
    values = np.column_stack([a, b, np.random.default_rng(1).standard_normal((150, 2))])
    path = tmp_path / "series.csv"
    with path.open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["year", "a", "b", "c", "d"])
        writer.writerows([1800 + i, *map(repr, row)] for i, row in enumerate(values.tolist()))
    return path, values


def run(*words, code=0):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, (done.output, done.exception)
    return done


def rows_of(path):
    with path.open(newline="") as handle:
        return list(csv.DictReader(handle))


def test_ccm(table, tmp_path, one_device):
    path, x = table
    out = tmp_path / "skill.csv"
    options = ["ccm", path, "--x", "a", "--y", "b", "--E", 2, "--lib-sizes", "20:140:60", "--sample", 9, "--seed", 4,
               "--device", one_device]  # fmt: skip
    said = run(*options, "-o", out).stdout
    expected = pyedmcl.ccm(x[:, 0], x[:, 1], E=2, lib_sizes=[20, 80, 140], sample=9, seed=4, device=one_device)
    assert f"{expected.mean[1, 2]:.3f} at 140" in said and "b predicts a (a drives b?)" in said
    rows = rows_of(out)
    assert [(row["library"], row["lib_size"]) for row in rows] == [(n, s) for n in "ab" for s in ("20", "80", "140")]
    np.testing.assert_array_equal([float(row["mean"]) for row in rows], expected.mean.reshape(-1))
    answer = json.loads(run(*options, "--json").stdout)
    assert answer["seed"] == 4 and answer["directions"][1]["trend"] == expected.convergence[1].trend
    with_two = json.loads(run("ccm", path, "--x", 1, "--y", 2, "--E", "2,3", "--sample", 2, "--lib-sizes", "30,60",
                              "--seed", 1, "--device", one_device, "--json").stdout)  # fmt: skip
    assert with_two["neighbors"] == []
    pruned = json.loads(run(*options, "--neighbors", "pruned", "--recall", "0.9", "--json").stdout)
    assert pruned["directions"] == answer["directions"]
    assert {(record["used"], record["target"]) for record in pruned["neighbors"]} == {("pruned", 0.9)}
    assert with_two["E"] == [2, 3] and with_two["lib_sizes"] == [30, 60]
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    run(*options, "--plot", tmp_path / "skill.png")
    assert (tmp_path / "skill.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--E", "2"], "--x and --y"),
        (["--E", "2", "--x", "a"], "--x and --y"),
        (["--E", "2", "--x", "a", "--y", "a"], "different"),
        (["--E", "1,2,3", "--x", "a", "--y", "b"], "--E"),
        (["--E", "2", "--x", "a", "--y", "b", "--lib-sizes", "20-30"], "--lib-sizes"),
        (["--E", "2", "--x", "a", "--y", "b", "--lib-sizes", "3"], "--lib-sizes: 3"),
        (["--E", "2", "--x", "a", "--y", "z"], "'z'"),
    ],
)
def test_bad_words_are_named(table, words, said):
    done = CliRunner().invoke(app, ["ccm", str(table[0]), *words])
    assert done.exit_code != 0
    assert said in " ".join((done.output + str(done.exception)).replace("│", "").split())


def test_ccm_matrix(table, tmp_path, one_device):
    path, x = table
    out, pairs = tmp_path / "m", tmp_path / "pairs.json"
    words = ["ccm-matrix", path, "-o", out, "--E", 2, "--lib-sizes", "20,60,140", "--sample", 4, "--seed", 2,
             "--device", one_device]  # fmt: skip
    run(*words, "--pairs", pairs)
    expected = pyedmcl.ccm_matrix(x, E=2, lib_sizes=[20, 60, 140], sample=4, seed=2, device=one_device)
    stored = pyedmcl.open_ccm_matrix(out)
    np.testing.assert_array_equal(stored.rho, expected.rho)
    assert stored.names == ("a", "b", "c", "d")
    found = json.loads(pairs.read_text())
    assert len(found) == 12 and found[0]["library"] == "b" and found[0]["rho"] == expected.rho[2, 1, 0]
    answer = json.loads(run(*words, "--json").stdout)  # a finished result is simply there
    assert answer["lib_sizes"] == [20, 60, 140] and answer["seed"] == 2 and answer["neighbors"] == []
    run("ccm-matrix", path, "-o", tmp_path / "m.csv", code=2)


def test_surrogate_test_of_a_pair_and_of_all(table, tmp_path, one_device):
    path, x = table
    words = ["surrogate-test", path, "--E", 2, "--n", 19, "--seed", 3, "--device", one_device]
    pair = json.loads(run(*words, "--x", "a", "--y", "b", "--json").stdout)
    expected = pyedmcl.ccm_significance(x[:, 0], x[:, 1], E=2, n=19, seed=3, device=one_device)
    assert [row["p_value"] for row in pair["pairs"]] == expected.p_value.tolist()
    out = tmp_path / "pairs.csv"
    said = run(*words, "--surrogate", "shuffle", "--rate", 0.6, "-o", out).stdout
    every = pyedmcl.xmap_significance(x, E=2, n=19, seed=3, surrogate="shuffle", device=one_device)
    rows = rows_of(out)
    assert len(rows) == 12 and rows[0]["library"] == "b" and rows[0]["target"] == "a"
    assert f"{every.significant(0.6).sum()} of 12 directions" in said
    np.testing.assert_allclose(sorted(float(row["p_value"]) for row in rows),
                               np.sort(every.p_value[np.isfinite(every.p_value)]))  # fmt: skip
    run(*words, "--rate", 1, code=2)
    run(*words, "--n", "many", code=2)


def test_surrogates_that_the_command_chooses_are_told(table, tmp_path, one_device):
    path, x = table
    words = ["surrogate-test", path, "--E", 2, "--seed", 3, "--budget", 60, "--surrogate", "auto"]
    words += ["--device", one_device]
    found = run(*words)
    assert "surrogates of a, b, c, d: keeps the" in found.stderr and "no p can be below" in found.stdout
    answer = json.loads(run(*words, "--json").stdout)
    every = pyedmcl.xmap_significance(x, E=2, seed=3, budget=60, surrogate="auto", device=one_device)
    assert answer["n"] == every.n and answer["smallest_q"] == every.smallest_q


def test_multiview(table, tmp_path, one_device):
    path, x = table
    out = tmp_path / "views.csv"
    options = ["--E", 2, "--D", 2, "--lib", "0:100", "--pred", "100:150", "--device", one_device]
    said = run("multiview", path, "--target", "c", "--columns", "a,c", *options, "-o", out).stdout
    expected = pyedmcl.multiview(x[:, [0, 2]], 1, E=2, D=2, lib_range=(0, 100), pred_range=(100, 150),
                                 device=one_device)  # fmt: skip
    assert f"rho = {expected.rho:.5g}" in said and "2 of 6 views" in said
    assert float(rows_of(out)[3]["predicted"]) == expected.predicted[3] and rows_of(out)[0]["time"] == "1901"
    by_place = json.loads(run("multiview", path, "--target", 3, "--columns", "a,c", *options, "--json").stdout)
    assert by_place["views"][0]["rho"] == expected.view_rho[0]
    assert json.loads(run("multiview", path, "--target", 3, "--device", one_device, "--json").stdout)["n_tried"] == 1


def test_predict_interval(table, tmp_path, one_device):
    path, x = table
    out = tmp_path / "skill.tsv"
    said = run("predict-interval", path, "--column", "c", "--E", 2, "--Tp=-1:3,7", "-o", out, "--device",
               one_device).stdout  # fmt: skip
    expected = pyedmcl.predict_interval(x[:, 2], E=2, Tp=[-1, 0, 1, 2, 3, 7], device=one_device)
    lines = out.read_text().splitlines()
    assert lines[0].split("\t") == ["Tp", "rho", "mae", "rmse"] and len(lines) == 7
    assert float(lines[6].split("\t")[1]) == expected.rho[5] and f"best at Tp = {expected.best}" in said
    run("predict-interval", path, "--column", "c", "--E", 2, "--Tp", "3:1", code=2)


def test_network(table, tmp_path, one_device):
    path, x = table
    out, text, picture = (tmp_path / name for name in ("pairs.csv", "words.txt", "network.png"))
    words = ["network", path, "--E", 2, "--lags", "-1:1", "--n", 19, "--seed", 3, "--device", one_device]
    said = run(*words, "-o", out, "--text", text, "--plot", picture)
    expected = pyedmcl.causal_network(
        dict(zip("abcd", x.T, strict=True)), E=2, lags=range(-1, 2), n=19, seed=3, device=one_device
    )
    assert expected.summary() in said.stdout and "surrogates of a, b, c, d: keeps the" in said.stderr
    rows = rows_of(out)
    assert [row["verdict"] for row in rows] == [row[2] for row in expected.rows()] and len(rows) == 12
    assert float(rows[0]["rho"]) == expected.rows()[0][3] and picture.stat().st_size > 1000
    assert text.read_text().startswith(expected.methods())
    answer = json.loads(run(*words, "--json").stdout)
    assert [row["cause"] for row in answer["pairs"]] == [row["cause"] for row in rows]
    run(*words, "--lags", "1:2", code=3)
    run(*words, "-o", tmp_path / "pairs.txt", code=5)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("x.txt", "if not to a folder (a name without an ending), is written as .csv, .tsv, .json, .graphml, .gexf "),
        ("absent/x.gexf", "there is no folder"),
    ],
)
def test_a_network_that_cannot_be_written_is_refused_before_the_work(table, tmp_path, monkeypatch, output, said):
    monkeypatch.setattr(pyedmcl, "causal_network", lambda *_, **__: pytest.fail("the work began"))
    done = CliRunner().invoke(app, ["network", str(table[0]), "-o", str(tmp_path / output)])
    assert done.exit_code == 5 and said in " ".join(done.output.split()), done.output


@pytest.mark.parametrize(("text", "said"), [("", "this is a folder"), ("absent/x.txt", "there is no folder")])
def test_a_text_that_cannot_be_written_is_refused_before_the_work(table, monkeypatch, text, said):
    monkeypatch.setattr(pyedmcl, "causal_network", lambda *_, **__: pytest.fail("the work began"))
    done = CliRunner().invoke(app, ["network", str(table[0]), "--text", text])
    assert done.exit_code == 5 and said in " ".join(done.output.split()), done.output


def test_a_network_in_a_folder_is_continued(table, tmp_path, one_device):
    path, _ = table
    words = ["network", path, "--E", 2, "--lags", "-1:1", "--n", 19, "--device", one_device, "-o", tmp_path / "n"]
    first = run(*words)
    pairs = (tmp_path / "n" / "pairs.csv").read_text()
    assert pairs.startswith("cause,effect,verdict")
    assert run(*words).stdout == first.stdout and (tmp_path / "n" / "pairs.csv").read_text() == pairs
    assert "tau" in run(*words, "--tau", 2, code=5).stderr

"""``pyedmcl rqa`` and ``pyedmcl recurrence-plot``: the numbers of Python, and refusals that say what to do."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from cli_helpers import shell
from typer.testing import CliRunner

import pyedmcl
from pyedmcl.cli.app import app

PNG = b"\x89PNG\r\n\x1a\n"


def wave(n, seed):
    return np.sin(np.arange(n) * 0.2) + 0.3 * np.random.default_rng(seed).standard_normal(n)


X, Y = wave(300, 0), wave(300, 1)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "waves.csv"
    rows = [("year", "a", "b"), *zip(range(1700, 2000), X.tolist(), Y.tolist(), strict=True)]
    path.write_text("\n".join(",".join(map(str, row)) for row in rows))
    return path


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def answer_of(*words):
    done = run(*words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def needs_matplotlib():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install 'pyedmcl[plot]' brings it")


def test_measures_are_those_of_python(table, one_device):
    answer = answer_of("rqa", table, "--column", "a", "--m", 3, "--tau", 2, "--radius", 0.8, "--theiler", 2,
                       "--metric", "maximum", "--convention", "crqa", "--lmin", 3, "--device", one_device)  # fmt: skip
    found = pyedmcl.rqa(X, m=3, tau=2, radius=0.8, theiler=2, metric="maximum", convention="crqa", lmin=3,
                        device=one_device)  # fmt: skip
    (row,) = answer["results"]
    assert row == {"radius": 0.8, **found.to_dict()}
    assert (answer["series"], answer["against"], answer["n_rows"]) == (["a"], None, 296)
    assert answer["provenance"]["convention"] == "crqa"


def test_several_radii_and_a_table(table, tmp_path, one_device):
    out = tmp_path / "rqa.csv"
    done = run("rqa", table, "--column", 1, "--radius", "0.3,0.6", "-o", out, "--device", one_device)
    assert done.exit_code == 0, done.output
    expected = pyedmcl.rqa(X, radius=[0.3, 0.6], device=one_device)
    with out.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [float(row["radius"]) for row in rows] == [0.3, 0.6]
    assert [float(row["determinism"]) for row in rows] == [result.DET for result in expected]
    lines = done.stdout.splitlines()
    assert lines[0].split()[:3] == ["radius", "RR", "DET"]
    assert f"{expected[1].DET:.6g}" in lines[2].split()


def test_cross_and_several_series(table, one_device):
    crossed = answer_of("rqa", table, "--column", "a", "--against", "b", "--radius", 0.4, "--device", one_device)
    assert crossed["against"] == "b"
    assert crossed["results"][0]["laminarity"] == pyedmcl.rqa(X, Y, radius=0.4, device=one_device).LAM
    both = answer_of("rqa", table, "--columns", "all", "--radius", 0.4, "--device", one_device)
    expected = pyedmcl.rqa(np.stack([X, Y], axis=1), radius=0.4, device=one_device)
    assert both["series"] == ["a", "b"] and both["results"][0]["determinism"] == expected.DET


def test_thresholds(table, one_device):
    options = ("rqa", table, "--column", "a", "--device", one_device, "--threshold")
    ring = answer_of(*options, "corridor", "--radius", "0.2:0.5")
    expected = pyedmcl.rqa(X, radius=(0.2, 0.5), threshold="corridor", device=one_device)
    assert ring["results"][0]["radius"] == [0.2, 0.5] and ring["results"][0]["trapping_time"] == expected.TT
    rate = answer_of(*options, "recurrence_rate", "--radius", 0.05)
    assert 0.05 <= rate["results"][0]["recurrence_rate"] < 0.05 + 3 / 300


def test_pictures(table, tmp_path, one_device):
    needs_matplotlib()
    plot, lines = tmp_path / "rp.png", tmp_path / "lines.png"
    done = run("rqa", table, "--column", "a", "--radius", 0.4, "--plot", plot, "--lines", lines, "--device", one_device)
    assert done.exit_code == 0, done.output
    assert plot.read_bytes().startswith(PNG) and lines.read_bytes().startswith(PNG)
    assert "determinism" in done.stdout and "rp.png" in done.stdout


def test_recurrence_plot_as_numbers(table, tmp_path, one_device):
    out = tmp_path / "rp.npy"
    answer = answer_of("recurrence-plot", table, "--column", "a", "--against", "b", "--m", 2, "--radius", 0.5,
                       "--pixels", 50, "-o", out, "--device", one_device)  # fmt: skip
    expected = pyedmcl.recurrence_plot(X, Y, m=2, radius=0.5, pixels=50, device=one_device)
    np.testing.assert_array_equal(np.load(out), expected.counts)
    assert answer["recurrent"] == expected.counts.sum() and answer["pixels"] == [50, 50]


def test_distances_without_a_radius(table, tmp_path, one_device):
    out = tmp_path / "dp.npy"
    done = run("recurrence-plot", table, "--column", "a", "-o", out, "--device", one_device)
    assert done.exit_code == 0 and "300 x 300 distances" in done.stdout
    np.testing.assert_allclose(np.load(out), np.abs(X[:, None] - X[None]), rtol=1e-5, atol=1e-6)


def test_plain_picture_is_what_python_saves(table, tmp_path, one_device):
    one, two = tmp_path / "one.png", tmp_path / "two.png"
    done = run("recurrence-plot", table, "--column", "a", "--radius", 0.5, "--pixels", 60, "--black", 0.4, "--plain",
               "-o", one, "--device", one_device)  # fmt: skip
    assert done.exit_code == 0, done.output
    pyedmcl.recurrence_plot(X, radius=0.5, pixels=60, device=one_device).save(two, black=0.4)
    assert one.read_bytes() == two.read_bytes()


def test_picture_with_axes(table, tmp_path, one_device):
    needs_matplotlib()
    out = tmp_path / "rp.pdf"
    done = run("recurrence-plot", table, "--column", "a", "--radius", 0.5, "-o", out, "--device", one_device)
    assert done.exit_code == 0 and out.read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["rqa", "--radius", "0.5"], 2, "--column"),
        (["rqa", "--column", "a", "--radius", "x"], 2, "--radius x"),
        (["rqa", "--column", "a", "--radius", "0.5", "--threshold", "corridor"], 2, "0.2:0.5"),
        (["rqa", "--column", "a", "--radius", "1.5", "--threshold", "neighbours"], 2, "number of neighbours"),
        (["rqa", "--column", "a", "--radius", "-1"], 3, "--radius -1.0"),
        (["rqa", "--column", "a", "--radius", "0.5", "--m", "400"], 3, "--m 400"),
        (["rqa", "--column", "a", "--radius", "0.5", "--convention", "mine"], 3, "--convention 'mine'"),
        (["rqa", "--column", "absent", "--radius", "0.5"], 3, "absent"),
        (["rqa", "--column", "a", "--columns", "a,b", "--radius", "0.5"], 2, "one of them"),
        (["rqa", "--columns", "a,b", "--against", "b", "--radius", "0.5"], 2, "--against"),
        (["rqa", "--against", "b", "--radius", "0.5"], 2, "--column"),
        (["rqa", "--column", "a", "--radius", "0.5,0.6", "--plot", "rp.png"], 2, "one radius"),
        (["rqa", "--column", "a", "--radius", "0.5", "-o", "rqa.png"], 5, ".csv"),
        (["rqa", "--column", "a", "--radius", "0.5", "--plot", "rp.docx"], 5, ".png"),
        (["rqa", "--column", "a", "--radius", "0.5", "--device", "no such device"], 4, "no such device"),
        (["recurrence-plot", "--column", "a", "--radius", "0.5,0.6", "-o", "rp.npy"], 3, "one radius"),
        (["recurrence-plot", "--column", "a", "--radius", "0.5", "--plain", "-o", "rp.pdf"], 5, ".png"),
        (["recurrence-plot", "--column", "a", "--black", "0.5", "-o", "rp.npy"], 2, "--radius"),
        (["recurrence-plot", "--column", "a", "-o", "nowhere/rp.npy"], 5, "nowhere"),
    ],
)
def test_refusals(words, code, said, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if words[-1] == "rp.docx" or "rp.png" in words:
        needs_matplotlib()
    done = run(words[0], table, *words[1:])
    assert done.exit_code == code, done.output
    assert said in " ".join(done.output.replace("│", " ").split())
    assert not list(tmp_path.iterdir())


def test_the_command_itself(table, one_device):
    done = shell("rqa", table, "--column", "a", "--radius", "0.4", "--device", one_device, "--quiet", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["series"] == ["a"] and not done.stderr


def test_scale_and_unit(table, one_device):
    line = ("--column", "a", "--radius", 0.2, "--normalize", "zscore", "--radius-unit", "range", "--device", one_device)
    answer = answer_of("rqa", table, *line)
    found = pyedmcl.rqa(X, radius=0.2, normalize="zscore", radius_unit="range", device=one_device)
    assert answer["results"][0]["radius"] == found.radius != 0.2
    assert answer["results"][0]["determinism"] == found.DET
    refused = run("rqa", table, "--column", "a", "--radius", 0.2, "--radius-unit", "sd", "--device", one_device)
    assert refused.exit_code == 3 and "--radius-unit 'sd'" in refused.output


def test_batch_of_columns_and_groups(table, tmp_path, one_device):
    out, options = tmp_path / "batch.csv", ("--m", 2, "--radius", "0.2,0.5", "--device", one_device)
    answer = answer_of("rqa-batch", table, "--columns", "a,b", *options, "-o", out)
    found = pyedmcl.rqa_batch([X, Y], m=2, radius=[0.2, 0.5], device=one_device)
    assert [row["series"] for row in answer["results"]] == ["a", "a", "b", "b"]
    assert [row["determinism"] for row in answer["results"]] == found.measure("DET").tolist()
    written = list(csv.DictReader(out.read_text().splitlines()))
    assert [float(row["laminarity"]) for row in written] == found.measure("LAM").tolist()
    long = tmp_path / "long.csv"
    rows = [("subject", "uV"), *(("s1", v) for v in X[:200].tolist()), *(("s2", v) for v in Y[:100].tolist())]
    long.write_text("\n".join(",".join(map(str, row)) for row in rows))
    grouped = answer_of("rqa-batch", long, "--groups", "subject", "--columns", "uV", *options)
    found = pyedmcl.rqa_batch([X[:200], Y[:100]], m=2, radius=[0.2, 0.5], device=one_device)
    assert [row["subject"] for row in grouped["results"]] == ["s1", "s1", "s2", "s2"]
    assert [row["trapping_time"] for row in grouped["results"]] == found.measure("TT").tolist()
    crossed = answer_of("rqa-batch", table, "--columns", "a", "--against", "b", *options)
    assert crossed["results"][1]["determinism"] == pyedmcl.rqa(X, Y, m=2, radius=0.5, device=one_device).DET
    shown = run("rqa-batch", table, *options)
    assert shown.exit_code == 0 and "2 series, 4 results" in shown.stdout
    assert "radius_used" in shown.stdout and "more" not in shown.stderr
    many = run("rqa-batch", table, "--radius", ",".join(f"{0.01 * at:.2f}" for at in range(10, 23)), "--m", 2)
    assert "and 6 more; -o writes all of them" in many.stderr
    assert run("rqa-batch", table, "--against", "b", *options).exit_code == 2
    alone = run("rqa-batch", table, "--groups", "year", *options)
    assert alone.exit_code == 3 and "needs at least" in alone.output

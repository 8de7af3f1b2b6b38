"""``pyedmcl check``, and its remarks in the words of the shell, by other commands too."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import pyedmcl
from pyedmcl.cli.app import app

RNG = np.random.default_rng(5)
NOISE = RNG.standard_normal((400, 2))


def test_the_command(tmp_path):
    path = tmp_path / "x.csv"
    rows = [f"{year}-{month:02}-01,{value}" for value, (year, month) in zip(
        NOISE[:, 0], ((1990 + i // 12, 1 + i % 12) for i in range(401) if i != 30), strict=True)]  # fmt: skip
    path.write_text("\n".join(["date,a", *rows]) + "\n")
    said = CliRunner().invoke(app, ["check", str(path)]).stdout
    assert "1 remark\n" in said and "1 row is missing" in said
    answer = json.loads(CliRunner().invoke(app, ["check", str(path), "--json"]).stdout)
    assert [remark["code"] for remark in answer["remarks"]] == ["time-gaps"]
    pytest.importorskip("pandas", reason="pandas is not installed")
    assert pyedmcl.check(NOISE[:60]).to_frame()["code"].tolist() == ["few-rows"]


def test_groups_of_a_file(tmp_path):
    rows = [f"{who},{t},{NOISE[t, 0] + 50 * (who == 'b')}" for who in "ab" for t in range(200)]
    (tmp_path / "long.csv").write_text("who,t,x\n" + "\n".join(rows))
    asked = ["check", str(tmp_path / "long.csv"), "--time-column", "t", "--E-max", "3", "--json"]

    def said(*words):
        outcome = CliRunner().invoke(app, [*asked, *words])
        assert outcome.exit_code == 0, outcome.output
        return [remark["code"] for remark in json.loads(outcome.stdout)["remarks"]]

    assert "time-back" in said("--columns", "x")
    assert said("--groups", "who") == []

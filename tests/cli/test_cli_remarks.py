"""Remarks on a table in the words of the shell, by every command that reads one."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from pyedmcl.cli.app import app

N = 300
RNG = np.random.default_rng(8)
NOISE = RNG.standard_normal((N + 10, 3))
SERIES = {"a": NOISE[:N, 0], "b": NOISE[:N, 1]}


def test_commands_tell_of_them(tmp_path, one_device):
    path = tmp_path / "x.csv"
    site = np.repeat([1.0, 2.0], N // 2)
    np.savetxt(path, np.column_stack([site, *SERIES.values()]), delimiter=",", header="site,a,b", comments="")
    options = ["--E", "2", "--device", one_device]
    told = CliRunner().invoke(app, ["xmap", str(path), "-o", str(tmp_path / "m"), *options])
    assert told.exit_code == 0 and "site: each of its 2 values stands in one stretch" in told.output
    assert "--groups 'site'" in told.output and "groups=" not in told.output
    assert "--groups 'site'" in CliRunner().invoke(app, ["check", str(path)]).output


@pytest.mark.parametrize("surrogate", ["auto", "phase"])
def test_a_season_is_told_where_surrogates_do_not_keep_it(surrogate, tmp_path, one_device):
    path, season = tmp_path / "x.csv", 3 * np.sin(np.arange(N) * np.pi / 6)
    np.savetxt(path, NOISE[:N, :2] + season[:, None], delimiter=",", header="a,b", comments="")
    asked = ["surrogate-test", str(path), "--surrogate", surrogate, "--n", "19", "--E", "2", "--device", one_device]
    told = CliRunner().invoke(app, asked).output
    assert ("Test with 'pyedmcl surrogate-test" in told) is (surrogate == "phase")
    check = CliRunner().invoke(app, ["check", str(path)]).output
    assert "(--surrogate auto or --surrogate seasonal)" in check and "surrogate=" not in check

"""Commands of recurrence say what matters to recurrence, and nothing of cross mapping."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from pyedmcl.cli.app import app

RNG = np.random.default_rng(3)
KINDS = {
    "periodic": np.sin(2 * np.pi * np.arange(400) / 50).round(6),
    "codes": RNG.integers(0, 4, 400).astype(float),
    "drift": np.arange(400.0) + RNG.standard_normal(400),
    "walk": np.cumsum(RNG.standard_normal(400)),
    "few": RNG.random(30),
}
OF_MAPS = ("skill", "drive", "follow", "linked by chance", "Leave them out", "neighbours at distance 0", "E_max", "rho")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", ["rqa", "against", "rqa-batch", "recurrence-plot"])
def test_no_command_speaks_of_cross_mapping(tmp_path, one_device, kind, command):
    path = tmp_path / "x.csv"
    x = KINDS[kind]
    np.savetxt(path, np.column_stack([x, x]), delimiter=",", header="a,b", comments="")
    of_one = ["--column", "a", "--radius", "0.3"]
    asked = {
        "rqa": ["rqa", str(path), *of_one],
        "against": ["rqa", str(path), *of_one, "--against", "b"],
        "rqa-batch": ["rqa-batch", str(path), "--radius", "0.3"],
        "recurrence-plot": ["recurrence-plot", str(path), *of_one, "-o", str(tmp_path / "rp.png"), "--plain"],
    }[command]
    told = CliRunner().invoke(app, [*asked, "--device", one_device])
    assert told.exit_code == 0, told.output
    assert not [word for word in OF_MAPS if word in told.output]


def test_headers_of_devices_are_told_in_options(tmp_path, one_device):
    path = tmp_path / "HR.csv"
    path.write_text("1509313645.0\n1.0\n" + "\n".join(f"{70 + np.sin(t * 0.13):.4f}" for t in range(500)))
    asked = ["rqa", str(path), "--radius", "0.2", "--radius-unit", "std", "--device", one_device]
    told = CliRunner().invoke(app, asked)
    assert told.exit_code == 0 and "row 0 holds 1.50931e+09, row 1 holds 1" in told.output
    assert "more than 50 %" in told.output and "--threshold" in told.output and "threshold=" not in told.output
    checked = CliRunner().invoke(app, ["check", str(path), "--purpose", "recurrence"])
    assert "row 0 holds" in checked.output and "cycle" not in checked.output


def test_the_window_is_a_number_or_auto(tmp_path, one_device):
    path = tmp_path / "x.csv"
    np.savetxt(path, np.sin(np.arange(400) / 10))
    asked = ["rqa", str(path), "--radius", "0.2", "--device", one_device, "--theiler"]
    assert CliRunner().invoke(app, [*asked, "auto"]).exit_code == CliRunner().invoke(app, [*asked, "12"]).exit_code == 0
    wrong = CliRunner().invoke(app, [*asked, "soon"])
    assert wrong.exit_code == 2 and "'auto' or an integer of at least 0" in wrong.output


@pytest.mark.parametrize("command", ["rqa", "recurrence-plot"])
def test_a_column_that_tells_recordings_apart_leads_to_a_command_that_has_groups(tmp_path, command):
    path = tmp_path / "two.csv"
    path.write_text("who,x\n" + "".join(f"{who},{n % 7}.5\n" for who in ("anna", "ben") for n in range(30)))
    picture = ["-o", str(tmp_path / "plot.png")] if command == "recurrence-plot" else []
    done = CliRunner().invoke(app, [command, str(path), "--radius", "0.5", *picture])
    assert done.exit_code == 3
    assert "--groups 'who' of rqa-batch" in done.stderr and "groups=" not in done.stderr
    batch = CliRunner().invoke(app, ["rqa-batch", str(path), "--groups", "who", "--radius", "0.5"])
    assert batch.exit_code == 0, batch.output

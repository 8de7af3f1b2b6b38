"""Files whose columns tell of recordings or dates: what is read from them, and what is told."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

from pyedmcl.cli.app import app
from pyedmcl.errors import GroupsWarning, InputError, ReadingWarning
from pyedmcl.files import read_series

ROWS = 60
VALUES = np.random.default_rng(2).random((ROWS, 2)).round(4)
DAYS = [f"2001-{1 + i // 28:02}-{1 + i % 28:02}" for i in range(ROWS)]
SITES = ["bay"] * 20 + ["harbour"] * 20 + ["reef"] * 20


def written(tmp_path, **columns):
    path = tmp_path / "table.csv"
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


A, B = VALUES.T


def test_a_counter_before_dates_is_left_out(tmp_path):
    path = written(tmp_path, **{"Unnamed: 0": range(ROWS)}, date=DAYS, a=A, b=B)
    series = read_series(path)
    assert series.names == ("a", "b") and series.time.dtype.kind == "M" and str(series.time[0])[:10] == "2001-01-01"
    assert read_series(path, columns=["Unnamed: 0", "a"]).names == ("Unnamed: 0", "a"), "it was asked for"
    path = written(tmp_path, count=range(ROWS), date=DAYS, a=A)
    assert read_series(path).names == ("count", "a"), "a name makes it a series"


@pytest.mark.parametrize("day", [True, False])
def test_years_and_months_are_a_date(day, tmp_path):
    split = [text.split("-") for text in DAYS] if day else [(2001 + i // 12, 1 + i % 12) for i in range(ROWS)]
    columns = dict(zip(("year", "Month", "day"), zip(*split, strict=True), strict=False))
    series = read_series(written(tmp_path, **columns, a=A, b=B))
    assert series.names == ("a", "b")
    expected = np.array(DAYS) if day else np.arange("2001-01", "2006-01", dtype="M8[M]")
    assert (series.time == expected.astype("M8[us]")).all()
    again = read_series(tmp_path / "table.csv", columns="a")
    assert again.names == ("a",) and (again.time == series.time).all()


def test_what_is_no_date_stays_a_series(tmp_path):
    path = written(tmp_path, year=[2001] * ROWS, month=[1 + 5 * i % 13 for i in range(ROWS)], a=A)
    assert "year" in read_series(path, columns=["year", "a"]).names
    assert set(read_series(path).names) == {"month", "a"}, "there is no month 13"
    path = written(tmp_path, date=DAYS, year=[2001] * ROWS, month=[1 + i % 12 for i in range(ROWS)], a=A)
    with pytest.warns(ReadingWarning, match="'year', 'month' hold times or numbers of rows, too, and are left out"):
        assert read_series(path).names == ("a",)
    assert read_series(path).time.dtype.kind == "M" and str(read_series(path).time[1])[:10] == "2001-01-02"


@pytest.mark.parametrize("labels", [SITES, [{"bay": 3, "harbour": 1, "reef": 2}[site] for site in SITES]])
def test_recordings_beside_what_is_read_are_told_of(labels, tmp_path, one_device):
    path = written(tmp_path, site=labels, a=A, b=B)
    with pytest.warns(RuntimeWarning, match="column 'site' .* seems to tell recordings apart"):
        read_series(path, columns="a")
    asked = ["rqa", str(path), "--column", "a", "--radius", "0.2", "--device", one_device]
    told = CliRunner().invoke(app, asked)
    assert told.exit_code == 0 and "seems to tell recordings apart" in told.output and "--groups 'site'" in told.output
    grouped = ["rqa-batch", str(path), "--columns", "a", "--groups", "site", *asked[4:]]
    assert "recordings apart" not in CliRunner().invoke(app, grouped).output


def test_what_tells_no_recordings_is_not_told_of(tmp_path):
    path = written(
        tmp_path, date=DAYS, phase=["before"] * 30 + ["after"] * 30, year=[2001] * 30 + [2002] * 30,
        count=[i % 7 for i in range(ROWS)], note=["ok"] * ROWS, a=A,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error", GroupsWarning)
        read_series(path, columns="a")
    path = written(tmp_path, year=[2001] * 30 + [2002] * 30, count=[i % 7 for i in range(ROWS)], a=A)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_series(path, columns="a")


def test_a_column_of_names_is_to_be_pivoted(tmp_path):
    with pytest.raises(InputError, match="give each a column"):
        read_series(written(tmp_path, date=DAYS, name=SITES, value=A))
    with pytest.raises(InputError, match=r"'-name'$"):
        read_series(written(tmp_path, date=DAYS, name=SITES, value=A, other=B))


def test_dates_beside_groups_are_times(tmp_path, one_device):
    """What the message about sites asks for is taken, with dates behind the sites."""
    path = written(tmp_path, site=SITES, date=DAYS[:20] * 3, a=A, b=B)
    asked = ["xmap", str(path), "--groups", "site", "--E", "2", "--device", one_device, "-o", str(tmp_path / "m")]
    assert CliRunner().invoke(app, asked).exit_code == 0
    path = written(tmp_path, site=SITES, date=(DAYS[:10] + DAYS[11:21]) * 3, a=A, b=B)
    told = CliRunner().invoke(app, [*asked[:-1], str(tmp_path / "n")])
    assert told.exit_code == 3 and "1 row is missing" in told.output

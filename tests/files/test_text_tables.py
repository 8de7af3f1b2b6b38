"""Text tables: separators, headers, time columns, missing cells, and what is refused."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import pytest

from pyedmcl.errors import InputError, PyedmclWarning
from pyedmcl.files import read_series
from pyedmcl.series.series import Series

DATA = Path(__file__).resolve().parents[1] / "data"
NAN = float("nan")


def read(folder: Path, text: str, suffix: str = ".csv", encoding: str = "utf-8", **options: object) -> Series:
    path = folder / f"table{suffix}"
    path.write_bytes(gzip.compress(text.encode(encoding)) if suffix.endswith(".gz") else text.encode(encoding))
    return read_series(path, **options)  # type: ignore[arg-type]


def check(series: Series, names: str, rows: list[list[float]], times: list[object] | None = None) -> None:
    assert series.names == tuple(names.split())
    np.testing.assert_array_equal(series.values, rows)
    assert (None if series.time is None else series.time.tolist()) == times


@pytest.mark.parametrize(
    ("text", "suffix"),
    [("a,b\n1,2.5\n3,-4e2\n", ".csv"), ("a;b\n1;2.5\n3;-4e2\n", ".csv"), ("a\tb\n1\t2.5\n3\t-4e2\n", ".tsv"),
     ("a b\n1   2.5\n 3 -4e2\n", ".txt"), ("a, b\r\n1, 2.5\r\n3, -4e2", ".csv"), ("\ufeffa,b\n1,2.5\n3,-4e2\n", ".csv"),
     ('"a","b"\n"1","2.5"\n3,"-4e2"\n', ".csv"), ("# made by hand\n\na,b\n1,2.5\n\n# pause\n3,-4e2\n", ".csv"),
     ("a,b\n1,2.5\n3,-4e2\n", ".csv.gz"), ("a;b\n1,0;2,5\n3,0;-4,0e2\n", ".csv"), ("a,b,\n1,2.5,\n3,-4e2,\n", ".csv"),
     ("a,b\n1,2.5,\n3,-4e2,\n", ".csv"), ("#a,b\n1,2.5\n3,-4e2\n", ".dat"), ('"a" "b"\n1 2.5\n3 -4e2\n', ".txt")],
)
def test_dialects(tmp_path: Path, text: str, suffix: str) -> None:
    check(read(tmp_path, text, suffix), "a b", [[1, 2.5], [3, -400]])


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    check(read(tmp_path, "grün,b\n1,2\n", encoding=encoding), "grün b", [[1, 2]])


@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [("1,2\n3,4\n", "x0 x1", [[1, 2], [3, 4]]), ("5\n6\n7\n", "x0", [[5], [6], [7]]), ("v\n6\n7\n", "v", [[6], [7]]),
     ("NA,2\n3,4\n", "x0 x1", [[NAN, 2], [3, 4]]), ("0,1,2\n0.5,1.5,2.5\n", "0 1 2", [[0.5, 1.5, 2.5]]),
     ("a,1,2\n7,8,9\n", "a 1 2", [[7, 8, 9]]),
     ("a,,c\n1,2,3\n", "a x1 c", [[1, 2, 3]])],
)
def test_header_or_none(tmp_path: Path, text: str, names: str, rows: list[list[float]]) -> None:
    check(read(tmp_path, text), names, rows)


@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [('t,"temperature\n(degrees)",b\n0,1,2\n1,3,4\n', "temperature (degrees)|b", [[1, 2], [3, 4]]),
     ('# of 2020\n"a\r\n\r\n# b","c ""d""\r\n"\r\n1,2\r\n\r\n3,4\r\n', 'a # b|c "d"', [[1, 2], [3, 4]]),
     ('"a\nb"\t"c"\n1\t2\n', "a b|c", [[1, 2]]), ('"a","b"\n"1","2"\n"3","4"\n', "a|b", [[1, 2], [3, 4]])],
)
def test_line_breaks_in_quoted_cells(tmp_path: Path, text: str, names: str, rows: list[list[float]]) -> None:
    series = read(tmp_path, text)
    assert series.names == tuple(names.split("|")) and series.values.tolist() == rows


def test_a_quotation_mark_that_nothing_closes_concerns_its_line_only(tmp_path: Path) -> None:
    series = read(tmp_path, "a,b\n" + "1,2\n" * 5 + '3,"4\n' + "5,6\n" * 150)
    assert series.values[4:7].tolist() == [[1, 2], [3, 4], [5, 6]] and series.n_steps == 156


def test_what_stands_in_quotes_besides_numbers_may_have_line_breaks(tmp_path: Path) -> None:
    (tmp_path / "notes.csv").write_text('a,note\n1,"wind,\nrain"\n2,\n3,"sun\n\nand fog"\n')
    series = read_series(tmp_path / "notes.csv", columns=["a"])
    assert series.values[:, 0].tolist() == [1, 2, 3]


def test_missing_cells(tmp_path: Path) -> None:
    text = "a,b\n,1\nNA,2\nNaN,3\nnull,4\nN/A,5\n nan ,6\nNone,7\n8,\n"
    check(read(tmp_path, text), "a b", [[NAN, n] for n in range(1, 8)] + [[8, NAN]])


@pytest.mark.parametrize(
    ("text", "times"),
    [("year,a\n1990,1\n1991,2\n", [1990, 1991]), ("a,Time (s)\n1,0.5\n2,0.75\n", [0.5, 0.75]),
     ("T,a\n1,1\n2,2\n", [1, 2]), (",a\n0,1\n1,2\n", [0, 1]), ("a\n0 1\n1 2\n", [0, 1]), (",0\n0,1.0\n1,2.0\n", [0, 1]),
     ("time,a\nmorning,1\nnoon,2\n", ["morning", "noon"])],
)
def test_time_column_by_name(tmp_path: Path, text: str, times: list[object]) -> None:
    series = read(tmp_path, text)
    assert series.n_series == 1 and series.values[:, 0].tolist() == [1, 2]
    assert series.time is not None and series.time.tolist() == times


@pytest.mark.parametrize(
    ("first", "second", "month", "day"),
    [("2001-01-30", "2001-02-28", 2, 28), ("2001/01/30", "2001/02/28", 2, 28), ("30.01.2001", "28.02.2001", 2, 28),
     ("01/30/2001", "02/28/2001", 2, 28), ("30/01/2001", "28/02/2001", 2, 28), ("2001-01", "2001-02", 2, 1),
     ("05/01/2001", "04/02/2001", 2, 4), ("Jan 2001", "Feb 2001", 2, 1),
     ("2001-01-30T12:00:00Z", "2001-02-28T12:00:00Z", 2, 28), ("2001-01-30 12:00", "2001-02-28 12:00", 2, 28)],
)
@pytest.mark.parametrize("header", ["", "when,a\n"])
def test_first_column_of_dates(tmp_path: Path, first: str, second: str, month: int, day: int, header: str) -> None:
    series = read(tmp_path, f"{header}{first},1\n{second},2\n")
    assert series.names == ("a" if header else "x1",) and series.values[:, 0].tolist() == [1, 2]
    assert series.time is not None
    assert series.time.astype("datetime64[D]")[1] == np.datetime64(f"2001-{month:02}-{day:02}")


def test_dates_that_read_two_ways_are_decided_by_the_user(tmp_path: Path) -> None:
    text = "date,a\n01/02/2001,1\n02/03/2001,2\n"
    with pytest.raises(InputError, match="Say time_format='month/day/year' or time_format='day/month/year'"):
        read(tmp_path, text)
    for form in ("day/month/year", "%d/%m/%Y"):
        assert str(read(tmp_path, text, time_format=form).time[1])[:10] == "2001-03-02"


@pytest.mark.parametrize(
    "text",
    ["1,5\n2,6\n3,4\n", "a,b\n1,5\n2,6\n3,4\n", "t,b\n3,5\n1,6\n2,4\n", "time\n1\n2\n3\n"],
    ids=["no header", "no time-like name", "not increasing", "only column"],
)
def test_data_is_not_taken_for_time(tmp_path: Path, text: str) -> None:
    series = read(tmp_path, text)
    assert series.time is None and series.n_series == text.split("\n")[0].count(",") + 1


def test_time_that_stops_increasing_far_down_is_data(tmp_path: Path) -> None:
    rows = [f"{i},{i % 7}" for i in range(400)] + ["3,1"]
    series = read(tmp_path, "t,a\n" + "\n".join(rows) + "\n")
    assert series.names == ("t", "a") and series.time is None
    assert series.values[-1].tolist() == [3, 1] and series.values[399, 0] == 399


def test_time_column_named(tmp_path: Path) -> None:
    text = "a,stamp,b\n1,9,2\n3,8,4\n"
    check(read(tmp_path, text, time_column="stamp"), "a b", [[1, 2], [3, 4]], [9, 8])
    check(read(tmp_path, text, time_column=0, columns=["b"]), "b", [[2], [4]], [1, 3])
    check(read(tmp_path, "time,a\n1,2\n2,3\n", columns=["time", "a"]), "time a", [[1, 2], [2, 3]])
    with pytest.raises(InputError, match=r"no column 'clock'; there are 3: 'a', 'stamp', 'b'"):
        read(tmp_path, text, time_column="clock")
    with pytest.raises(InputError, match="no column of data beside the time column 'a'"):
        read(tmp_path, text, time_column="a", columns=["a"])


def test_columns_need_not_look_at_the_others(tmp_path: Path) -> None:
    text = "site,a,b\nnorth,1,2\nsouth,3,4\n"
    check(read(tmp_path, text, columns=["b", "a"]), "b a", [[2, 1], [4, 3]])
    check(read(tmp_path, text, columns=2), "b", [[2], [4]])
    with pytest.raises(InputError, match=r"no column 'q'; there are 3"):
        read(tmp_path, text, columns="q")


def test_columns_of_words_are_left_out_with_a_warning(tmp_path: Path) -> None:
    text = "day,notes,a,by,b\n1,ok,1,Ann,2\n2,,3,Bob,4\n3,storm,5,Ann,6\n"
    with pytest.warns(PyedmclWarning, match="table.csv: columns 'notes', 'by' hold text and are left out"):
        check(read(tmp_path, text), "a b", [[1, 2], [3, 4], [5, 6]], [1, 2, 3])
    with pytest.warns(PyedmclWarning, match="column 'notes' holds text and is left out"):
        check(read(tmp_path, text, columns="-by"), "a b", [[1, 2], [3, 4], [5, 6]], [1, 2, 3])
    with pytest.raises(InputError, match="column 'notes' is not numeric: line 2 holds 'ok'"):
        read(tmp_path, text, columns=["a", "notes"])


@pytest.mark.parametrize(
    ("text", "words"),
    [("# note\na,b\n1,2\n3,four\n", "column 'b' is not numeric: line 4 holds 'four'"),
     ("site,a\nnorth,1\n7,2\n", "column 'site' is not numeric: line 2 holds 'north'"),
     ("site,a\nnorth,1\nnorth,2\nsouth,3\nsouth,4\n", "the words in column 'site' ('north', 'south') seem to tell"),
     ("a\nx\nx\n", "column 'a' is not numeric: line 2 holds 'x'"), ("a,b\n1_5,2\n2,3\n", "line 2 holds '1_5'"),
     ("1.0x,2.5\n3,4\n", "column 'x0' is not numeric: line 1 holds '1.0x'"),
     ("a,b\n1,2\n3\n", "line 3 has 1 cells where 2"),
     ("a,b\n1,2\n3,4,5\n", "line 3 has 3 cells where 2"), ("", "empty"), ("# only a comment\n", "empty"),
     ("a,b\n", "no rows of data"), ("a,a\n1,2\n", "more than one 'a'"),
     ("a,b\n1,2\n3,inf\n", "'b' is infinite in row 1"),
     ("a,b\n1,\0\n", "not a text table"), ("a,b,c,d\n1,2\n3,4\n", "header has 4 names, but rows have 2 cells"),
     ("a,b\n3,1,1\n2,2,2\n", "header has 2 names, but rows have 3 cells")],
)
def test_refusals(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert words in str(caught.value) and "table.csv" in str(caught.value)


def test_damaged_gzip(tmp_path: Path) -> None:
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 10_000)[:-30])
    with pytest.raises(InputError, match="cannot be read"):
        read_series(path)


def test_paths(tmp_path: Path) -> None:
    (tmp_path / "Sardine_anchovy.csv").write_text("a\n1\n")
    with pytest.raises(InputError, match=r"no such file .* did you mean 'Sardine_anchovy.csv'\?"):
        read_series(tmp_path / "sardine_anchovi.csv")
    with pytest.raises(InputError) as caught:
        read_series(tmp_path / "qqqqqq.h5")
    assert "did you mean" not in str(caught.value)
    with pytest.raises(InputError, match="no folder"):
        read_series(tmp_path / "none" / "a.csv")
    with pytest.raises(InputError, match="is a folder"):
        read_series(tmp_path)
    (tmp_path / "a.sav").write_text("")
    with pytest.raises(InputError, match=r"unknown format '.sav'; known are CSV.*Parquet.*Zarr.*Excel"):
        read_series(tmp_path / "a.sav")
    with pytest.raises(InputError, match="leave it out"):
        read_series(tmp_path / "Sardine_anchovy.csv", dataset="values")


def test_values_are_read_exactly_and_without_optional_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("pandas", "polars", "pyarrow", "h5py", "zarr"):
        monkeypatch.setitem(sys.modules, package, None)
    values = np.random.default_rng(0).standard_normal((300, 7)) * 10.0 ** np.arange(-9, 12, 3)
    text = "\n".join(",".join(repr(float(v)) for v in row) for row in values)
    check(read(tmp_path, text), "x0 x1 x2 x3 x4 x5 x6", values.tolist())


def test_the_work_grows_with_the_rows_and_no_faster(tmp_path: Path) -> None:
    """Counted in calls of functions, Python's and C's, since a clock would measure the machine."""
    row = ",".join(f"{v:.6f}" for v in np.linspace(-1, 1, 100))

    def calls(rows: int) -> int:
        path = tmp_path / f"{rows}.csv"
        path.write_text(",".join(f"v{i}" for i in range(100)) + "\n" + f"{row}\n" * rows)
        kinds: list[str] = []
        sys.setprofile(lambda frame, event, argument: kinds.append(event))
        try:
            series = read_series(path)
        finally:
            sys.setprofile(None)
        assert series.values.shape == (rows, 100) and series.values[-1, -1] == 1
        return kinds.count("call") + kinds.count("c_call")

    assert 0 < calls(4_000) < 5 * calls(1_000)


@pytest.mark.parametrize(
    ("name", "steps", "names", "first_time"),
    [("sardine_anchovy_sst.csv", 78, "anchovy sardine sio_sst np_sst", 1929),
     ("LorenzData1000.csv", 1000, "V1 V2 V3 V4 V5", 10.0),
     ("TentMapNoise.csv", 999, "TentMap", 1), ("circle.csv", 200, "x y", 1),
     ("block_3sp.csv", 198, "x_t x_t-1 x_t-2 y_t y_t-1 y_t-2 z_t z_t-1 z_t-2", 3)],
)
def test_published_series(name: str, steps: int, names: str, first_time: float) -> None:
    series = read_series(DATA / name)
    assert series.n_steps == steps and series.names == tuple(names.split())
    assert series.time is not None and series.time[0] == first_time


def test_published_dates() -> None:
    name = "S12CD-S333-SumFlow_1980-2005.csv"
    series = read_series(DATA / name)
    assert series.names == ("S12.C.D.S333",) and series.time is not None
    assert series.time[1] == np.datetime64("1980-01-07") and series.values[1, 0] == 391.1


def test_a_header_longer_than_the_first_sample(tmp_path):
    n = 120_000
    path = tmp_path / "wide.csv"
    header = ",".join(f"column {i}" for i in range(n))
    assert len(header) > 1 << 20
    path.write_text("\n".join([header, *(",".join(["0.5"] * n) for _ in range(3))]) + "\n")
    series = read_series(path)
    assert series.values.shape == (3, n) and series.names[-1] == f"column {n - 1}"


def test_a_line_without_end_is_no_table(tmp_path, monkeypatch):
    monkeypatch.setattr("pyedmcl.files.text_layout._MOST_BYTES", 1 << 20)
    (tmp_path / "line.csv").write_text("x" * (2 << 20))
    with pytest.raises(InputError, match="first line is longer than 1 MiB"):
        read_series(tmp_path / "line.csv")


@pytest.mark.parametrize("first", [",25", "12,", "NA,25", "nan,nan"])
@pytest.mark.parametrize("above", ["", "Station 12\n", "mg,m\n"])
def test_gaps_in_the_first_row_leave_the_names_what_they_are(tmp_path: Path, first: str, above: str) -> None:
    """Two names above two numbers of as many digits each: commas part columns, whatever the first row lacks."""
    series = read(tmp_path, f"{above if above.startswith('S') else ''}a,b\n{above if above.startswith('m') else ''}"
                  f"{first}\n" + "".join(f"{20 + n},{40 + n}\n" for n in range(30)))  # fmt: skip
    assert series.names == ("a", "b")
    np.testing.assert_array_equal(series.values[1:], [[20 + n, 40 + n] for n in range(30)])


def test_one_column_of_thousands_among_words_for_gaps_is_cured(tmp_path: Path) -> None:
    cells = [f"{n},{n:03}" if n % 3 == 0 else "BDL" if n % 3 == 1 else str(n) for n in range(1, 61)]
    text = "catch\n" + "\n".join(cells) + "\n"
    with pytest.raises(InputError, match=r"say thousands=',' or decimal=','\. Mark missing .* skip_rows='4:4'$"):
        read(tmp_path, text)
    with pytest.warns(PyedmclWarning, match="BDL"):
        series = read(tmp_path, text, thousands=",")
    wanted = [1001.0 * n if n % 3 == 0 else NAN if n % 3 == 1 else float(n) for n in range(1, 61)]
    check(series, "catch", [[value] for value in wanted])


@pytest.mark.parametrize("minus", "\u2212\u2013\ufe63\uff0d-")
@pytest.mark.parametrize("mark", ".,")
def test_a_column_of_negative_numbers_holds_no_words(tmp_path: Path, minus: str, mark: str) -> None:
    """Whichever minus sign stands before each of them, in a column by itself or beside another one."""
    numbers = [f"{minus}{n}{mark}{n}5" for n in range(1, 30)]
    wanted = [[-float(f"{n}.{n}5")] for n in range(1, 30)]
    alone = read(tmp_path, "v\n" + "\n".join(numbers) + "\n")
    beside = read(tmp_path, "v;w\n" + "".join(f"{number};1\n" for number in numbers))
    for series in (alone, beside):
        np.testing.assert_array_equal(series.values[:, :1], wanted)

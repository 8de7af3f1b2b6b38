"""Series: what goes in, what comes out, and what is refused with which words."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tracemalloc
import warnings
from decimal import Decimal

import numpy as np
import pytest

from pyedmcl.errors import InputError, PyedmclWarning, ReadingWarning
from pyedmcl.series.series import Series, as_series, check_embedding, require_rows


class WithArray:
    """Nothing but ``__array__``."""

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


@pytest.mark.parametrize(
    ("given", "kept"),
    [("float16", "float32"), ("float32", "float32"), ("float64", "float64"), ("int8", "float64"), ("uint64", "float64"),
     ("bool", "float64"), (">f4", "float32"), (">i2", "float64")],
)
def test_dtypes(given: str, kept: str) -> None:
    source = np.array([[1, 0], [0, 1], [1, 1]]).astype(given)
    series = as_series(source)
    assert series.values.dtype == np.dtype(kept)
    assert series.values.flags.c_contiguous
    np.testing.assert_array_equal(series.values, source.astype(float))


def test_one_dimension_is_one_series() -> None:
    series = as_series([1, 2.5, None])
    assert (series.n_steps, series.n_series, series.names, series.time) == (3, 1, ("x0",), None)
    np.testing.assert_array_equal(series.values[:, 0], [1, 2.5, np.nan])


@pytest.mark.parametrize("order", ["F", "strided"])
def test_other_memory_orders_become_row_major(order: str) -> None:
    base = np.arange(24.0).reshape(6, 4)
    given = np.asfortranarray(base) if order == "F" else np.repeat(base, 2, axis=0)[::2]
    series = as_series(given)
    assert series.values.flags.c_contiguous
    np.testing.assert_array_equal(series.values, base)


def test_large_float32_is_neither_copied_nor_widened() -> None:
    given = np.zeros((200_000, 20), np.float32)  # 16 MB
    tracemalloc.start()
    try:
        series = as_series(given)
        series.digest()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert np.shares_memory(series.values, given)
    assert peak < 4e6
    assert given.flags.writeable and not series.values.flags.writeable


def test_array_protocol_mapping_structured_and_masked() -> None:
    np.testing.assert_array_equal(as_series(WithArray()).values[:, 1], [2, 4, 6])
    series = as_series({"a": [1, 2], "b": np.array([3, 4], np.float32)})
    assert series.names == ("a", "b") and series.values.tolist() == [[1, 3], [2, 4]]
    structured = np.array([(1, 2.5), (3, 4.5)], dtype=[("p", "i4"), ("q", "f4")])
    assert as_series(structured).names == ("p", "q")
    masked = as_series(np.ma.masked_equal([[1, 2], [3, 1]], 1))
    np.testing.assert_array_equal(masked.values, [[np.nan, 2], [3, np.nan]])


def test_series_passes_through_and_can_be_narrowed() -> None:
    series = as_series(np.arange(6.0).reshape(2, 3))
    assert as_series(series) is series
    narrowed = as_series(series, columns=["x2", 0])
    assert narrowed.names == ("x2", "x0") and narrowed.values.tolist() == [[2, 0], [5, 3]]


def test_series_checks_its_parts() -> None:
    values = np.zeros((3, 2))
    with pytest.raises(InputError, match="1 names for 2 series"):
        Series(values, ("a",))
    with pytest.raises(InputError, match="C-contiguous"):
        Series(values.T, ("a", "b", "c"))
    with pytest.raises(InputError, match="time has shape"):
        Series(values, ("a", "b"), np.arange(4))


def test_pandas() -> None:
    pd = pytest.importorskip("pandas", reason="pandas frames as input need pandas")
    days = pd.date_range("2020-01-01", periods=3)
    columns = {"a": [1.0, np.nan, 3.0], "b": pd.array([1, None, 3], dtype="Int64"), "c": [True, False, True]}
    frame = pd.DataFrame(columns, index=days)
    series = as_series(frame)
    assert series.names == ("a", "b", "c")
    np.testing.assert_array_equal(series.values, [[1, 1, 1], [np.nan, np.nan, 0], [3, 3, 1]])
    assert series.time is not None
    np.testing.assert_array_equal(series.time, days.values)
    assert as_series(frame.reset_index(drop=True)).time is None
    one = as_series(frame["b"].rename("flow"))
    assert one.names == ("flow",) and one.values.shape == (3, 1)
    same = as_series(pd.DataFrame(np.ones((3, 2), np.float32), columns=["u", "v"], index=["r", "s", "t"]))
    assert same.values.dtype == np.float32 and same.time is not None and same.time.tolist() == ["r", "s", "t"]


def test_pandas_integer_labels_are_labels() -> None:
    pd = pytest.importorskip("pandas", reason="pandas frames as input need pandas")
    frame = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=[5, 7])
    assert as_series(frame, columns=[7]).values.tolist() == [[2], [4]]
    with pytest.raises(InputError, match="no column 0"):
        as_series(frame, columns=[0])


def test_a_column_of_dates_is_the_time_as_an_index_is() -> None:
    pd = pytest.importorskip("pandas", reason="pandas frames as input need pandas")
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "month": ["2020-01", "2020-02", "2020-04"]})
    expected = np.array(["2020-01", "2020-02", "2020-04"], "M8[us]")
    typed = frame.assign(month=pd.to_datetime(frame["month"])).rename(columns={"month": "when"})
    for table in (frame, typed, frame.set_index("month"), dict(frame)):
        series = as_series(table)
        assert series.names == ("x",) and (series.time == expected).all()


def test_pandas_refusals() -> None:
    pd = pytest.importorskip("pandas", reason="pandas frames as input need pandas")
    frame = pd.DataFrame({"x": [1.0, 2.0], "site": ["p", 7], "when": pd.to_datetime(["2020", "2021"]), "z": [1j, 2]})
    with pytest.raises(InputError) as caught:
        as_series(frame, what="survey")
    message = str(caught.value)
    assert message.startswith("survey: ") and "'site' is not numeric: row 0 holds 'p'" in message
    assert "'when'" not in message and "'z' holds complex" in message and "'x'" not in message
    assert as_series(frame, columns="x").n_series == 1
    with pytest.raises(InputError, match="several levels"):
        as_series(frame[["x"]].set_index(pd.MultiIndex.from_tuples([("a", 1), ("b", 1)])))
    with pytest.raises(InputError, match="more than one 'x'"):
        as_series(pd.DataFrame([[1.0, 2.0]], columns=["x", "x"]))
    with pytest.raises(InputError, match="several columns are called 'x'"):
        as_series(pd.DataFrame([[1.0, 2.0]], columns=["x", "x"]), columns=["x"])


def test_columns_of_words_are_left_out_with_a_warning() -> None:
    pd = pytest.importorskip("pandas", reason="pandas frames as input need pandas")
    frame = pd.DataFrame({"x": np.arange(6.0), "notes": ["ok", "storm", None, "ok", "ok", "?"], "y": np.ones(6)})
    with pytest.warns(PyedmclWarning, match="survey: column 'notes' holds text and is left out$"):
        series = as_series(frame, what="survey")
    assert series.names == ("x", "y") and series.values.shape == (6, 2)
    with pytest.warns(PyedmclWarning, match="columns 'notes', 'by' hold text and are left out"):
        assert as_series(frame.assign(by=pd.Categorical(["Ann"] * 6)), columns="-y").names == ("x",)
    with pytest.raises(InputError, match="'notes' is not numeric"):
        as_series(frame, columns=["x", "notes"])  # it was asked for
    with pytest.raises(InputError, match="'notes' is not numeric"):
        as_series(frame["notes"])


@pytest.mark.parametrize("cells", [["1,500", "2,5", "3.5"], ["ok", "ok", "<0.5"], ["low", "-.5", ""], ["5", "x", "b"]])
def test_columns_that_may_hold_numbers_are_no_words(cells: list[str]) -> None:
    with pytest.raises(InputError, match=r"'x' is not numeric|'x' holds"):
        as_series({"x": np.array(cells), "y": [1.0, 2.0, 3.0]})


@pytest.mark.parametrize("sites", [["a", "a", "b", "b", "c", "c"], ["a", "b", "c"] * 2,
                                   ["a", "a", "b", "b", "c", "c", "a", "b", "c"]])
def test_words_that_tell_recordings_apart_are_not_left_out(sites: list[str]) -> None:
    table = {"site": np.array(sites), "y": np.arange(float(len(sites)))}
    with pytest.raises(InputError, match=r"'site' \('a', 'b', 'c'\) seem to tell recordings apart. .*groups='site'"):
        as_series(table)
    assert as_series(table, columns="-site").names == ("y",)


def test_columns_come_in_the_order_that_was_asked_for() -> None:
    table = {"a": np.array([1.0, 2.0, 4.0]), "b": np.array([7.0, 5.0, 6.0])}
    for data in (table, as_series(table)):
        series = as_series(data, columns=["b", "a"])
        assert series.names == ("b", "a") and series.values[0].tolist() == [7, 1]


def test_polars() -> None:
    pl = pytest.importorskip("polars", reason="polars frames as input need polars")
    frame = pl.DataFrame({"day": pl.Series([1, 2, 3]).cast(pl.Date), "a": pl.Series([1.0, None, 3.0], dtype=pl.Float32),
                          "b": [True, None, False], "i": [1, None, 3]})
    series = as_series(frame)
    assert series.names == ("a", "b", "i") and series.time is not None and series.time.dtype.kind == "M"
    np.testing.assert_array_equal(series.values, [[1, 1, 1], [np.nan] * 3, [3, 0, 3]])
    assert as_series(frame, columns=["a"]).values.dtype == np.float32
    assert as_series(pl.Series("flow", [1, 2])).names == ("flow",)
    with pytest.raises(InputError, match="collect"):
        as_series(frame.lazy())
    assert as_series(pl.DataFrame({"s": ["1", "2"]})).values.ravel().tolist() == [1, 2]
    with pytest.raises(InputError, match="'s' is not numeric"):
        as_series(pl.DataFrame({"s": ["1", "x"]}))


def test_xarray() -> None:
    xr = pytest.importorskip("xarray", reason="xarray arrays as input need xarray")
    years = np.array([1990, 1991, 1992])
    cells = xr.DataArray(np.arange(6, dtype=np.float32).reshape(3, 2), dims=("time", "cell"),
                         coords={"time": years, "cell": ["u", "v"]})
    series = as_series(cells)
    assert series.names == ("u", "v") and series.values.dtype == np.float32
    assert series.time is not None and series.time.tolist() == years.tolist()
    one = as_series(cells[:, 1].rename("flow"))
    assert one.names == ("flow",) and one.values[:, 0].tolist() == [1, 3, 5]
    assert as_series(cells.drop_vars("cell")).names == ("x0", "x1")
    both = as_series(xr.Dataset({"a": ("time", [1.0, 2.0]), "b": ("time", [3.0, 4.0])}))
    assert both.names == ("a", "b") and both.values.tolist() == [[1, 3], [2, 4]]
    assert as_series(cells.to_dataset(name="f")).names == ("u", "v")
    with pytest.raises(InputError, match=r"transpose\('time', 'cell'\)"):
        as_series(cells.T)
    with pytest.raises(InputError, match="share one dimension"):
        as_series(xr.Dataset({"a": ("time", [1.0, 2.0]), "b": ("x", [3.0])}))


def test_arrow_table() -> None:
    pa = pytest.importorskip("pyarrow", reason="Arrow tables as input need pyarrow")
    series = as_series(pa.table({"a": [1, None], "b": [1.5, 2.5]}))
    np.testing.assert_array_equal(series.values, [[1, 1.5], [np.nan, 2.5]])


@pytest.mark.parametrize(
    ("data", "words"),
    [(np.zeros((2, 2, 2)), "shape (2, 2, 2)"), (3.0, "a single value"), (np.zeros((0, 2)), "0 rows"), ([], "0 rows"),
     (np.zeros((4, 0)), "0 series"), ({}, "0 series"), ([[1, 2], [3]], "equally long"), ("flow.csv", "read_series"),
     (np.array([1j, 2]), "'x0' holds complex"), (np.array([["a", "b"]]), "'x0' is not numeric: row 0 holds 'a'"),
     ([1.0, "two"], "'x0' is not numeric"), ({"a": [1, 2], "b": [1]}, "equally long")],
)
def test_refusals(data: object, words: str) -> None:
    with pytest.raises(InputError) as caught:
        as_series(data)
    assert words in str(caught.value)


def test_infinite_values_are_named_and_counted() -> None:
    values = np.zeros((70_000, 20), np.float32)  # more than one block of the check
    values[65_000, 3] = -np.inf
    values[65_001, 1] = np.inf
    values[69_999, 19] = np.inf
    with pytest.raises(InputError, match=r"'x3' is infinite in row 65000 .* 2 more values"):
        as_series(values)
    values[65_001, 1] = values[69_999, 19] = np.nan
    with pytest.raises(InputError) as caught:
        as_series(values)
    assert "more" not in str(caught.value)
    values[65_000, 3] = np.nan
    assert as_series(values).n_steps == 70_000


def test_columns() -> None:
    data = {"a": [1.0, 2.0], "b": [3.0, 4.0], "word": ["u", "v"]}
    assert as_series(data, columns=["b", "a"]).values.tolist() == [[3, 1], [4, 2]]
    assert as_series(data, columns=-2).names == ("b",)
    with pytest.raises(InputError, match=r"no column 'q', 9; there are 3: 'a', 'b', 'word'"):
        as_series(data, columns=["a", "q", 9])
    with pytest.raises(InputError, match="'b' more than once"):
        as_series(data, columns=["b", 1])
    with pytest.raises(InputError, match="empty"):
        as_series(data, columns=[])


def test_digest_depends_on_all_that_matters_and_on_nothing_else() -> None:
    values = np.arange(12, dtype=np.float32).reshape(6, 2)
    digest = as_series(values).digest()
    assert len(digest) == 64 and digest == as_series(np.asfortranarray(values)).digest()
    assert digest == Series(values, ("x0", "x1"), np.arange(6)).digest()
    changed = values.copy()
    changed[5, 1] += 1
    others = [as_series(values.astype(float)), as_series(changed), as_series(values.reshape(4, 3)),
              Series(values, ("x0", "y")), Series(values, ("x0,", "x1"))]
    assert len({digest, *(other.digest() for other in others)}) == 6


def test_digest_of_many_values_is_made_of_pieces() -> None:
    values = np.arange(5_000_000, dtype=np.float32).reshape(-1, 2)
    raw = values.tobytes()
    state = hashlib.sha256(json.dumps(["float32", [2_500_000, 2], ["x0", "x1"]]).encode())
    for begin in (0, 16 << 20):
        state.update(hashlib.sha256(raw[begin : begin + (16 << 20)]).digest())
    assert as_series(values).digest() == state.hexdigest()
    changed = values.copy()
    changed[-1, 1] += 1
    assert as_series(changed).digest() != state.hexdigest()


def test_renamed_series_keep_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    series = as_series(np.array([[1.0, np.nan], [3.0, 2.0]]))
    extent, digest = series.extent, series.digest()
    monkeypatch.setattr("pyedmcl.series.series.extent", None)  # no value is looked at again
    other = series.renamed(("a", "b"))
    np.testing.assert_array_equal(other.extent, extent)
    assert other.names == ("a", "b") and other.digest() != digest


@pytest.mark.parametrize(
    ("E", "tau", "Tp", "k", "needed"),
    [(1, 1, 0, 2, 3), (3, 1, 0, 4, 7), (3, 2, 1, 4, 10), (3, 2, -2, 4, 9), (3, 2, -7, 4, 12), (20, 1, 1, 21, 42)],
)
def test_require_rows(E: int, tau: int, Tp: int, k: int, needed: int) -> None:
    def usable(rows: int) -> int:  # counted one by one from the definition of a legal neighbour row
        return sum(1 for t in range(rows) if t >= (E - 1) * tau and 0 <= t + Tp < rows)

    assert usable(needed) == k + 1
    require_rows(as_series(np.zeros(needed)), E=E, tau=tau, Tp=Tp, k=k)
    with pytest.raises(InputError, match=f"at least {needed} rows, there are {needed - 1}") as caught:
        require_rows(as_series(np.zeros(needed - 1)), E=E, tau=tau, Tp=Tp, k=k)
    assert "transpose" not in str(caught.value)


def test_require_rows_suspects_a_transpose() -> None:
    with pytest.raises(InputError, match="transpose"):
        require_rows(as_series(np.zeros((4, 500))), E=3, tau=1, Tp=0, k=4)


def test_check_embedding() -> None:
    assert check_embedding(3, np.int64(2)) == (3, 2)
    assert check_embedding(3.0, 1) == (3, 1)
    for E in (0, -1, True, 2.5, "3", None, np.nan, np.inf, np.bool_(True)):
        with pytest.raises(InputError, match=r"E=.*an integer of at least 1"):
            check_embedding(E, 1)
    for tau in (0, False, 1.5):
        with pytest.raises(InputError, match=r"tau=.*an integer of at least 1"):
            check_embedding(2, tau)
    with pytest.raises(InputError, match="pyEDM's tau=-1 is tau=1 here"):
        check_embedding(2, -1)


def test_no_library_is_imported_for_plain_arrays() -> None:
    code = ("import sys, numpy as np; from pyedmcl.series.series import as_series; as_series(np.zeros(3));"
            "as_series([1, 2]);"
            "names = ('pandas', 'polars', 'xarray', 'pyarrow', 'h5py', 'zarr', 'pyopencl');"
            "print([name for name in names if name in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (1000, 3), (2000, 700), (3, 5000), (700, 1)])
def test_extent_is_that_of_the_columns(shape: tuple[int, int]) -> None:
    values = np.random.default_rng(1).normal(size=shape)
    values[shape[0] // 2, -1] = np.nan
    low, high = as_series(values).extent
    assert np.array_equal(low, values.min(axis=0), equal_nan=True)
    assert np.array_equal(high, values.max(axis=0), equal_nan=True)
    assert np.isnan(low[-1]) and np.isfinite(low[:-1]).all()


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
@pytest.mark.parametrize("gap", [False, True])
def test_infinity_is_found_beside_gaps(bad: float, gap: bool) -> None:
    values = np.zeros((3000, 2))
    values[2500, 1] = bad
    if gap:
        values[7, 1] = np.nan
    with pytest.raises(InputError, match="is infinite in row 2500"):
        as_series(values)


_STEPS = np.random.default_rng(3).permutation(40)
_LONG = {
    "int64": np.array(2**60 + _STEPS),
    "uint64": np.uint64(2**63) + _STEPS.astype(np.uint64),
    "integers of Python": [2**70 + int(step) for step in _STEPS],
    "Decimal": [Decimal(10) ** 25 + int(step) for step in _STEPS],
    "longdouble": np.longdouble(1e20) + _STEPS,
    "texts": [str(2**60 + int(step)) for step in _STEPS],
    "floats far from zero": 1e13 + _STEPS / 40,
    "floats whose differences are gone": np.full(40, 2.0**80) + _STEPS * 2.0**30,
}


@pytest.mark.parametrize("name", _LONG)
@pytest.mark.parametrize("beside", [False, True])
def test_digits_that_float64_does_not_hold_are_told(name, beside):
    """Neighbours and skill would be those of rounded values, without a word."""
    column = np.array(_LONG[name]) if isinstance(_LONG[name], np.ndarray) else np.array(_LONG[name], object)
    data = {"a": column, "b": np.arange(40.0) ** 2} if beside else {"a": column}
    with pytest.warns(ReadingWarning, match=r"'a' varies in the last digits that float64 holds, or beyond them"):
        as_series(data)


def _with_a_gap(kind):
    """Long integers and a gap, as containers hold them; 2**60 and 2**60 + 1 are one and the same in float64."""
    held = [None, *([2**60, 2**60 + 1] * 20)]
    if kind == "masked array":
        return np.ma.masked_array([0, *held[1:]], mask=[True] + [False] * 40)
    if kind.startswith("pandas"):
        pandas = pytest.importorskip("pandas")
        if kind.endswith("pyarrow"):
            pytest.importorskip("pyarrow")
        series = pandas.Series(held, dtype="int64[pyarrow]" if kind.endswith("pyarrow") else "Int64", name="a")
        return series.to_frame() if "frame" in kind else series
    if kind.startswith("polars"):
        polars = pytest.importorskip("polars")
        series = polars.Series("a", held)
        return series.to_frame() if "frame" in kind else series
    return pytest.importorskip("pyarrow").table({"a": held})


_WITH_A_GAP = (
    "masked array", "pandas", "pandas frame", "pandas of pyarrow", "pandas frame of pyarrow", "polars", "polars frame",
    "pyarrow",
)  # fmt: skip


@pytest.mark.parametrize("kind", _WITH_A_GAP)
@pytest.mark.parametrize("mapped", [False, True])
def test_a_gap_does_not_round_long_integers_before_they_are_looked_at(kind, mapped):
    data = _with_a_gap(kind)
    if mapped and hasattr(data, "columns"):
        data = {"a": data["a"]}
    elif mapped:
        data = {"a": data}
    with pytest.warns(ReadingWarning, match="in the last digits that float64 holds, or beyond them"):
        read = as_series(data)
    assert np.isnan(read.values[0, 0])
    assert (read.values[1:, 0] == 2.0**60).all()


@pytest.mark.parametrize(
    "values",
    [
        np.array([2**60] * 40), [Decimal("0.1")] * 40, np.full(40, 1e25), np.arange(40) * 2**60, 1e9 + _STEPS,
        [Decimal(int(step)) / 7 for step in _STEPS], (1e6 + _STEPS / 40).astype("f4"), ["0.1"] * 39 + [""],
    ],
)  # fmt: skip
def test_digits_that_are_held_are_not_told(values):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReadingWarning)
        as_series({"a": values if isinstance(values, np.ndarray) else np.array(values, object)})

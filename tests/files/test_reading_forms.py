"""A known table in random forms is read as it was written, or refused with the option that cures it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reading_forms import cures, make_form, outcome, read_frame

from pyedmcl.errors import InputError
from pyedmcl.files import read_series, text

FIRST, FORMS = 0, 400


@pytest.mark.parametrize("first", range(FIRST, FIRST + FORMS, 50))
def test_no_form_becomes_other_data(first, tmp_path):
    refused = 0
    for seed in range(first, first + 50):
        form = make_form(seed)
        path = tmp_path / f"table{form.suffix}"
        path.write_bytes(form.text)
        result, messages = outcome(form, lambda path=path, **said: read_series(path, **said))
        assert result != "different", f"seed {seed} ({', '.join(form.what)}): {messages}"
        refused += result == "refused"
        frame = read_frame(path, form)
        if frame is not None:
            of_frame, messages = outcome(form, lambda frame=frame, **said: read_series(frame, **said))
            assert of_frame in ("equal", "told", "doubted", "cured"), f"seed {seed} as a frame: {messages}"
    assert refused == 0, "a refusal names the option that cures it"


def test_a_changed_cell_is_noticed():
    form = make_form(3)
    changed = form.values.copy()
    changed[5, 0] += 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyedmcl.series.series import build_series

        series = build_series(changed, form.names, form.time)
    assert outcome(form, lambda **said: series)[0] == "different"


def test_cures_are_found_in_messages():
    message = "holds 'ND'. Say missing='ND,x' or header=3, header=False; skip_rows='4:4'"
    assert cures(message) == [{"missing": "ND,x"}, {"header": 3}, {"header": False}, {"skip_rows": "4:4"}]


def test_what_no_option_can_mend_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text('a,b\n"1,5",2\n"2.5",3\n')
    with pytest.raises(InputError, match="its decimal mark differs from row to row"):
        read_series(tmp_path / "a.csv")
    assert np.isfinite(read_series(tmp_path / "a.csv", columns="-a").values).all()


# Two readers of the same rows: pyarrow's, and the one that tells which line is no row.


def _both(path: Path, monkeypatch: pytest.MonkeyPatch, **said: Any) -> list[object]:
    found = []
    for least in (1 << 40, 0):
        monkeypatch.setattr(text, "_LEAST_BYTES", least)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                series = read_series(path, **said)
            except InputError as error:
                found.append(str(error))
                continue
        time = None if series.time is None else series.time.tolist()
        told = [str(one.message) for one in caught]
        found.append((series.values.tobytes(), series.names, time, str(series.reading), told))
    return found


CELLS = [
    *"""1e400 -1e400 1e-400 4.9e-324 2.2250738585072011e-308 123456789012345678901234567890 1.7976931348623159e308 inf
    -inf Infinity nan NaN -nan +1.5 .5 5. 1E+05 0x10 1_5 \uff11 1d3 00012 -0 9007199254740993
    1.00000000000000011102230246251565 NA na N/A null NULL None none <NA> NaT nat True 1;5 #1""".split(),  # noqa: SIM905
    " 1", " 1 ", "\t1", "1\t", "", " ", '"1.5"', '" 1.5"', '"NA"', '""', '"1,5"', "1 000", "'1",
]  # fmt: skip
TAILS = ["\n", "\n\n", "#x\n", "#1,2\n", "END\n", "1,2,\n", "1,2,3\n", "1\n", ",\n", " \n", "a,b\n", '"x\ny",2\n']


@pytest.mark.parametrize("cell", CELLS)
def test_both_readers_take_a_cell_for_the_same(cell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b\n" + "1.5,2\n" * 70 + f"{cell},3\n" + "2.5,4\n" * 5, encoding="utf-8")
    own, other = _both(path, monkeypatch)
    assert own == other


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_both_readers_take_a_line_for_the_same(
    tail: str, end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table.csv"
    days = "".join(f"2001-{month:02}-{day:02},1.5,{month}\n" for month in range(1, 6) for day in range(1, 28))
    for rows in ("a,b\n" + "1.5,2\n" * 70 + tail + "2.5,4\n" + tail, f"date,a,b\n{days}{tail}2001-06-01,2,4\n{tail}"):
        path.write_bytes(rows.replace("\n", end).encode())
        own, other = _both(path, monkeypatch)
        assert own == other


def test_both_readers_take_random_forms_for_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And most plain ones are read by pyarrow."""
    taken = []
    regular = text._Rows.regular

    def counted(rows: Any) -> Any:
        taken.append(regular(rows))
        return taken[-1]

    monkeypatch.setattr(text._Rows, "regular", counted)
    for seed in range(5_000_000, 5_000_120):
        form = make_form(seed)
        path = tmp_path / f"table{form.suffix}"
        path.write_bytes(form.text)
        own, other = _both(path, monkeypatch)
        assert own == other, form.what
    assert sum(found is not None for found in taken) > 20

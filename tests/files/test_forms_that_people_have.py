"""Small files of forms that people have: each is read as its record in forms.json says, or refused with its words."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from pyedmcl.errors import InputError, PyedmclWarning
from pyedmcl.files import read_series

FORMS = Path(__file__).resolve().parents[1] / "data" / "forms"
EXPECTED = json.loads((FORMS / "forms.json").read_text(encoding="utf-8"))


def test_every_file_has_a_record():
    assert {path.name for path in FORMS.iterdir()} == {*EXPECTED, "forms.json"} and len(EXPECTED) >= 120


@pytest.mark.parametrize("name", EXPECTED)
def test_a_file_is_read_as_it_was_meant(name):
    expected = EXPECTED[name]
    options = expected.get("options", {})
    if "error" in expected:
        with pytest.raises(InputError) as caught:
            read_series(FORMS / name, **options)
        assert expected["error"] in str(caught.value)
        return
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        series = read_series(FORMS / name, **options)
    said = " | ".join(str(one.message) for one in told if issubclass(one.category, PyedmclWarning))
    assert expected.get("told", "") in said and ("told" in expected or not said), said
    np.testing.assert_array_equal(series.values, np.array(expected["values"], float))
    assert series.names == tuple(expected.get("names", (f"x{i}" for i in range(series.n_series))))
    time = expected.get("time")
    if time is None:
        assert series.time is None
    elif series.time.dtype.kind == "M":
        assert (series.time == np.array(time, "M8[us]")).all()
    else:
        assert series.time.tolist() == time

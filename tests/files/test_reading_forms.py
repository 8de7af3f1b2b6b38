"""A known table in random forms is read as it was written, or refused with the option that cures it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from reading_forms import cures, make_form, outcome, read_frame

from pyedmcl.errors import InputError
from pyedmcl.files import read_series

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
    assert refused <= 2, "a refusal names the option that cures it"


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

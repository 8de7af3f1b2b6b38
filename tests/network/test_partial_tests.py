"""Surrogates of partial cross mapping within networks: as partial_ccm has them, and without a say in verdicts."""

from __future__ import annotations

import numpy as np
import pytest
from series_helpers import CHAIN, linked_maps

import pyedmcl
from pyedmcl.errors import InputError

DATA = linked_maps(400, CHAIN, 3, strength=0.4)
SHUFFLED = {"E": 3, "surrogate": "shuffle", "seed": 1}


def test_they_are_those_of_partial_ccm(one_device):
    options = SHUFFLED | {"n": 99, "lags": None, "convergence": False, "forecast": False, "device": one_device}
    found = pyedmcl.causal_network(DATA, **options, partial_surrogates=39)
    one = pyedmcl.partial_ccm(
        DATA[:, 0], DATA[:, 2], given=DATA[:, 1], **SHUFFLED, Tp=-1, n=39, device=one_device
    )
    assert found.through[2, 0] == 1 and found.p_partial[2, 0] == one.p_value[0]
    tested = np.isfinite(found.p_partial)
    np.testing.assert_array_equal(tested, found.through >= 0)
    plain = pyedmcl.causal_network(DATA, **options)
    assert plain.p_partial is None and (plain.verdict == found.verdict).all() and (plain.codes == found.codes).all()


def test_a_result_says_them_and_keeps_them(tmp_path, one_device):
    options = {"E": 3, "seed": 1, "n": 39, "partial_surrogates": 60, "device": one_device}
    frame = pyedmcl.causal_network(dict(zip("abc", DATA.T, strict=True)), **options, out=tmp_path / "net")
    p = frame.p_partial[2, 0]
    assert 1 / 61 <= p <= 1 and f"(p = {p:.2g} against surrogates of a)" in frame.statement("a", "c")
    again = pyedmcl.open_result(tmp_path / "net")
    np.testing.assert_array_equal(again.p_partial, frame.p_partial)
    row = next(row for row in again.rows() if row[:2] == ("a", "c"))
    assert row[pyedmcl.network.verdicts.COLUMNS.index("p_partial")] == p


def test_groups_have_them_too(one_device):
    options = SHUFFLED | {"n": 39, "lags": (-1, 0), "groups": np.repeat([1, 2], 200).tolist(), "device": one_device}
    found = pyedmcl.causal_network(DATA, **options, partial_surrogates=19)
    assert (np.isfinite(found.p_partial) == (found.through >= 0)).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"partial_surrogates": 0}, "partial_surrogates=0"),
        ({"partial_surrogates": "auto"}, "partial_surrogates='auto'"),
        ({"partial_surrogates": 9, "surrogate": None}, "with surrogate=None there is nothing"),
        ({"partial_surrogates": 9, "partial": False}, "with partial=False there is nothing"),
    ],
)
def test_what_cannot_be_tested_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        pyedmcl.causal_network(DATA, E=3, **options)

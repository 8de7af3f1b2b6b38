"""Remarks of recurrence: matrices nearly empty or full, rates that cannot be had, smooth series, stray values."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import ConstantSeriesWarning, RecurrenceWarning
from pyedmcl.recurrence.arguments import CONVENTIONS
from pyedmcl.recurrence.measures import SHORT_NAMES
from pyedmcl.recurrence.remarks import off_diagonal_rate

RNG = np.random.default_rng(0)
NOISE = RNG.standard_normal(300)
CODES = RNG.integers(0, 5, 300).astype(float)
CALLS = {
    "rqa": lambda x, **options: pyedmcl.rqa(x, **options),
    "cross": lambda x, **options: pyedmcl.rqa(x, x[::-1].copy(), theiler=0, **options),
    "batch": lambda x, **options: pyedmcl.rqa_batch([x, x], **options)[0],
    "network": lambda x, **options: pyedmcl.recurrence_network(x, **options),
    "plot": lambda x, **options: pyedmcl.recurrence_plot(x, **options),
    "windowed": lambda x, **options: pyedmcl.windowed_rqa(x, len(x), 1, **options)[0],
}
RATED = [name for name in CALLS if name != "windowed"]


def told(call, *data, **options):
    """The remarks of a call, and what it returned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = call(*data, **options)
    return [str(one.message) for one in caught if one.category is RecurrenceWarning], found


@pytest.mark.parametrize("name", [name for name in CALLS if name != "cross"])  # which has pairs of equal values
@pytest.mark.parametrize(("radius", "words"), [(1e-5, "less than 0.1 %"), (0.3, None), (10.0, "more than 50 %")])
def test_little_and_much(one_device, name, radius, words):
    said, _ = told(CALLS[name], NOISE, radius=radius, device=one_device)
    assert [one for one in said if "of the pairs recur" in one] == said
    assert len(said) == (words is not None) and all(words in one for one in said)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_the_main_diagonal_does_not_count_as_recurrence(one_device, convention):
    said, found = told(pyedmcl.rqa, np.arange(50.0), radius=0.5, convention=convention, device=one_device)
    assert off_diagonal_rate(found) == 0 and len(said) == 1 and said[0].startswith("0 of the pairs recur")


@pytest.mark.parametrize("convention", ["pyrqa", "crqa", "recurrenceanalysis"])
@pytest.mark.parametrize("name", RATED)
def test_a_rate_below_the_share_of_equal_pairs(device, name, convention):
    options = {"radius": 0.01, "threshold": "recurrence_rate", "device": device}
    again = {"device": device}
    if name == "network":
        again["strict"] = options["strict"] = CONVENTIONS[convention].strict
    else:
        again["convention"] = options["convention"] = convention
    said, found = told(CALLS[name], CODES, **options)
    assert len(said) == 1 and "of the pairs are equal" in said[0]
    assert "no radius gives the recurrence rate 0.01" in said[0]
    assert found.radius == (0.5 if CONVENTIONS[convention].strict else 0.0)  # half of the least distance, or 0
    same = CALLS[name](CODES, radius=found.radius, **again)
    if name == "network":
        assert np.array_equal(same.degree, found.degree)
    else:
        np.testing.assert_equal(same.counts, found.counts)


@pytest.mark.parametrize("values", [NOISE.round(1), np.round(NOISE * 64) / 64, NOISE], ids=["tenths", "64ths", "all"])
def test_rates_that_can_be_had_are_not_told(one_device, values):
    said, found = told(pyedmcl.rqa, values, radius=0.2, threshold="recurrence_rate", device=one_device)
    assert 0.2 <= found.RR < 0.25 and said == []


def test_a_rate_below_the_main_diagonal(one_device):
    said, found = told(pyedmcl.rqa, NOISE[:20], radius=0.01, threshold="recurrence_rate", device=one_device)
    assert found.RR == 0.05 and len(said) == 1 and "the main diagonal has as many" in said[0]


def test_all_pairs_equal(one_device):
    said, found = told(pyedmcl.rqa, np.ones(30), radius=0.1, threshold="recurrence_rate", device=one_device)
    assert found.RR == found.radius == 1.0 and len(said) == 1


def test_of_batches_the_series_are_named(one_device):
    said, _ = told(pyedmcl.rqa_batch, [NOISE, CODES, CODES[:99]], radius=0.01, threshold="recurrence_rate",
                   device=one_device)  # fmt: skip
    assert len(said) == 1 and said[0].startswith("'series (series=1)', 'series (series=2)': ")
    gappy = NOISE.copy()
    gappy[::7] = np.nan
    said, batch = told(pyedmcl.rqa_batch, [NOISE, gappy, np.zeros(40)], radius=[0.4, 5.0], device=one_device)
    shares = [off_diagonal_rate(one) for one in batch]
    assert len(said) == 1 and said[0].startswith("'series (series=0)', 'series (series=1)', 'series (series=2)'")
    assert [share > 0.5 for share in shares] == [False, True, False, True, True, True]


def test_smooth_series_are_told_of_their_window(one_device):
    wave = np.sin(np.arange(500) * 0.05)
    said, found = told(pyedmcl.rqa, wave, m=2, tau=30, radius=0.2, device=one_device)
    assert found.Lmax == found.counts.n_rows - 1
    assert len(said) == 1 and "theiler='auto'" in said[0] and "smooth" in said[0]
    for call in (pyedmcl.rqa, lambda x, **more: pyedmcl.rqa_batch([x], **more)):
        assert told(call, wave, m=2, tau=30, radius=0.2, theiler="auto", device=one_device)[0] == []
        assert "smooth" in told(call, wave, m=2, tau=30, radius=0.2, device=one_device)[0][0]


@pytest.mark.parametrize("value", [1509313645.0, 2147483647.0, -1e6])
def test_values_far_from_all_others(one_device, value):
    heart = 70 + np.sin(np.arange(600) * 0.13) + NOISE.repeat(2) / 10
    heart[3] = value
    said, _ = told(pyedmcl.rqa, heart, radius=0.2, radius_unit="std", device=one_device)
    assert len(said) == 1 and f"Row 3 holds {value:g}" in said[0]
    remarks = pyedmcl.check(heart, purpose="recurrence").remarks
    assert [remark.code for remark in remarks] == ["gap-code" if value == 2147483647.0 else "stray"]


def test_check_for_recurrence_knows_headers_and_blinks_and_nothing_of_maps():
    heart = 70 + np.sin(np.arange(600) * 0.13)
    heart[:2] = 1509313645.0, 1.0
    (remark,) = pyedmcl.check(heart, purpose="recurrence").remarks
    assert remark.code == "stray" and remark.text.startswith("row 0 holds 1.50931e+09, row 1 holds 1, far from")
    pupil = 3000 + 100 * NOISE
    pupil[50:60] = 0
    assert [one.code for one in pyedmcl.check(pupil, purpose="recurrence").remarks] == ["gap-code"]
    wave = np.sin(2 * np.pi * np.arange(1000) / 50).round(6)
    walk = np.cumsum(NOISE)
    (remark,) = pyedmcl.check(CODES, purpose="recurrence").remarks
    assert remark.code == "ties" and remark.text.endswith("many states are equal, and recur whatever the radius is")
    drifting = np.sin(np.arange(1000) * 0.37)
    for sound in (drifting, walk, np.column_stack([drifting, drifting]), np.arange(100.0), NOISE):
        assert pyedmcl.check(sound, purpose="recurrence").remarks == ()
    assert pyedmcl.check(wave).remarks != ()
    assert "skill" not in str(pyedmcl.check(np.ones(50), purpose="recurrence"))


def test_constant_channels_have_no_lag():
    data = np.column_stack([np.sin(np.arange(200) / 5), np.ones(200)])
    for call, words in ((pyedmcl.mutual_information, "no lag"), (pyedmcl.false_neighbors, "all are neighbours")):
        with pytest.warns(ConstantSeriesWarning, match=words) as caught:
            call(data)
        assert not any("rho" in str(one.message) for one in caught)


def test_no_remark_speaks_of_skill(one_device):
    """What recurrence warns of is about recurrence, whatever is wrong."""
    for x in (NOISE, CODES, np.ones(50), np.sin(np.arange(500) * 0.05)):
        for radius in (1e-6, 0.2, 50.0):
            for name, call in CALLS.items():
                said, _ = told(call, x, radius=radius, device=one_device)
                assert not any(word in one for one in said for word in ("skill", "rho", "drives")), name
    assert "DET" in SHORT_NAMES

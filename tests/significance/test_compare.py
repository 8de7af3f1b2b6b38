"""``compare``: differences of two groups by permuting labels of units, level and power, and what is refused."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import InputError, PyedmclWarning, ReadingWarning

RNG = np.random.default_rng(5)
AB = ["a"] * 5 + ["b"] * 4


def p_of(table, by="g", **options):
    return pyedmcl.compare(table, by, seed=1, **options).p_value


def test_permutations_are_those_of_all_labels():
    values = RNG.standard_normal(9)
    apart = [abs(values[list(own)].mean() - np.delete(values, own).mean()) for own in combinations(range(9), 5)]
    exact = np.mean(np.array(apart) >= apart[0] - 1e-12)
    found = pyedmcl.compare({"g": AB, "v": values}, "g", n=9999, seed=1)
    assert found.p_value[0] == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 9999))
    np.testing.assert_allclose(found.means[:, 0], [values[:5].mean(), values[5:].mean()])
    assert (found.groups, found.units, found.paired, found.measures) == (("a", "b"), (5, 4), False, ("v",))


def test_pairs_exchange_their_two_values():
    one, other = RNG.standard_normal((2, 7))
    table = {"g": ["x"] * 7 + ["y"] * 7, "who": [*range(7), *range(7)], "v": [*one, *other]}
    apart = np.array([abs(np.dot(signs, one - other)) for signs in product([1, -1], repeat=7)])
    exact = np.mean(apart >= apart[0] - 1e-12)
    found = pyedmcl.compare(table, "g", pair="who", measures=["v"], n=9999, seed=1)
    assert found.paired and found.p_value[0] == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 9999))


def test_rows_of_a_unit_are_one_value():
    """Twenty rows of each of three and three subjects are six units, in which nothing can be significant."""
    values = np.repeat([0.0, 0.1, 0.2, 5.0, 5.1, 5.2], 20) + 0.01 * RNG.standard_normal(120)
    table = {"g": np.repeat(["a", "b"], 60), "who": np.repeat(np.arange(6), 20), "v": values}
    with pytest.warns(PyedmclWarning, match=r"no p-value below 0.1 is possible with groups of 3 and 3"):
        assert p_of(table, pair="who", measures=["v"])[0] > 0.08
    assert p_of(table, measures=["v"])[0] == 1e-4


@pytest.mark.parametrize("paired", [False, True])
def test_the_level_holds_whatever_the_values_are(paired):
    """Cauchy values and ties: 5 % of p-values are at most 0.05, as far as 1,000 tests tell."""
    values = RNG.standard_cauchy((20, 500))
    table = {"g": np.repeat(["a", "b"], (10, 10)), "who": np.r_[:10, :10]} | {
        f"v{k}": column for k, column in enumerate([*values.T, *np.round(RNG.standard_normal((500, 20)))])
    }
    p = p_of(table, pair="who" if paired else None, measures=[f"v{k}" for k in range(1000)], n=999)
    assert 0.03 <= (p <= 0.05).mean() <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 1000)


def test_gaps_are_left_out_of_means_and_of_tests():
    values = RNG.standard_normal((9, 2))
    values[[0, 6], 0] = np.nan
    values[:5, 1] = np.nan
    found = pyedmcl.compare({"g": AB, "v": values[:, 0], "w": values[:, 1]}, "g", n=199, seed=1)
    np.testing.assert_allclose(found.means[:, 0], [np.nanmean(values[:5, 0]), np.nanmean(values[5:, 0])])
    assert np.isfinite(found.p_value[0]) and np.isnan(found.p_value[1]) and np.isnan(found.q_value[1])


@pytest.mark.parametrize(
    ("table", "options", "said"),
    [
        ({"g": AB, "v": range(9)}, {"by": "h"}, "there is no column 'h'"),
        ({"g": ["a"] * 9, "v": range(9)}, {}, "it holds 1 group"),
        ({"g": list("abcabcabc"), "v": range(9)}, {}, "it holds 3 groups"),
        ({"g": AB, "v": list("abcdefghi")}, {}, "measures: no column holds a number"),
        ({"g": AB, "v": list("abcdefghi")}, {"measures": ["v"]}, "column 'v' is not numeric"),
        ({"g": AB, "v": range(9), "w": [1, 2, 3, 4, 5, 1, 2, 3, 4]}, {"pair": "w"}, "no partner in the other"),
        ({"g": AB, "v": range(9)}, {"n": 0}, "n=0"),
        ([1, 2], {}, "data="),
        ({"g": AB, "v": range(9)}, {"by": ["g"]}, "there is no column"),
        ({"g": AB, "v": range(9), "w": [1]}, {"pair": "w"}, "column 'w' does not hold a value for each row"),
        ({"g": "a", "v": range(9)}, {}, "column 'g' does not hold a value"),
    ],
)
def test_what_is_refused(table, options, said):
    with pytest.raises(InputError, match=said):
        p_of(table, **options)


def test_a_frame_of_a_batch(one_device):
    pandas = pytest.importorskip("pandas", reason="tables need pandas")
    noise = RNG.standard_normal((8, 200))
    series = np.concatenate([noise[:4], np.cumsum(noise[4:], axis=1)])
    frame = pyedmcl.rqa_batch(
        list(series), m=1, radius=0.1, threshold="recurrence_rate", device=one_device
    ).to_frame().assign(kind=["noise"] * 4 + ["walk"] * 4)  # fmt: skip
    found = pyedmcl.compare(frame, "kind", measures=["determinism"], n=999, seed=1)
    assert found.p_value[0] < 0.06 and isinstance(found.to_frame(), pandas.DataFrame)
    assert found.to_frame().columns.tolist() == ["measure", "noise", "walk", "difference", "p_value", "q_value"]


def test_labels_that_are_missing_are_refused_and_columns_of_words_told():
    """Rows without a subject would be one subject; a column that is left out would seem to be compared."""
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"g": ["a", "b"] * 5, "v": RNG.standard_normal(10), "note": list("abcdefghij")})
    for missing in (None, float("nan"), pandas.NA, ""):
        for column in ("who", "g"):
            labels = [*(["a", "b"] * 4 if column == "g" else [0, 0, 1, 1, 2, 2, 3, 3]), missing, missing]
            wrong = table.assign(**{column: pandas.Series(labels, dtype=object)})
            with pytest.raises(InputError, match=f"column '{column}' has no value in row 8"):
                pyedmcl.compare(wrong, "g", pair="who" if column == "who" else None, measures=["v"], n=19, seed=1)
    with pytest.warns(PyedmclWarning, match="'note' holds no numbers, and is not compared"):
        assert pyedmcl.compare(table, "g", n=19, seed=1).measures == ("v",)


def test_numbers_are_read_as_everywhere():
    """Texts of numbers, nullable integers, and columns with names of times."""
    pandas = pytest.importorskip("pandas")
    texts = [f"{value:.3f}".replace(".", ",") for value in RNG.standard_normal(10)]
    counts = pandas.array([1, 2, None, *range(7)], dtype="Int64")
    table = pandas.DataFrame({"g": ["a", "b"] * 5, "text": texts, "n": counts, "year": range(1990, 2000)})
    found = pyedmcl.compare(table, "g", measures=["text", "n", "year"], n=19, seed=1)
    numbers = np.array([float(text.replace(",", ".")) for text in texts])
    np.testing.assert_allclose(found.means[0], [numbers[::2].mean(), 10 / 4, 1994], rtol=1e-12)
    with pytest.warns(ReadingWarning, match="in the last digits that float64 holds"):
        pyedmcl.compare({"g": ["a", "b"] * 5, "v": 2**60 + np.arange(10)}, "g", n=19, seed=1)

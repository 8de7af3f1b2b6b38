"""Words and factors are equal or not, in every function of recurrence."""

from __future__ import annotations

import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import InputError

WORDS = ["the", "cat", "sat", "on", "the", "mat", "and", "the", "dog", "sat", "on", "the", "cat"]
OTHER = ["a", "dog", "sat", "on", "the", "mat", "while", "the", "cat", "sat", "on", "a", "dog"]
TABLE = {word: at for at, word in enumerate(dict.fromkeys(WORDS + OTHER))}
CODES, OTHER_CODES = (np.array([TABLE[word] for word in words], float) for words in (WORDS, OTHER))


def forms():
    pandas = pytest.importorskip("pandas")
    return [
        lambda words: words, tuple, np.array, lambda words: np.array(words, object), pandas.Series, pandas.Categorical,
        lambda words: pandas.Series(words, dtype="category"), lambda words: pandas.Series(words, dtype="string"),
    ]  # fmt: skip


@pytest.mark.parametrize("place", range(8))
def test_words_in_any_container_are_codes(one_device, place):
    words = forms()[place](WORDS)
    options = {"radius": 0.5, "device": one_device}
    found = pyedmcl.rqa(words, **options)
    assert found.counts == pyedmcl.rqa(CODES, **options).counts
    cross = pyedmcl.rqa(words, OTHER, theiler=0, **options)
    assert cross.counts == pyedmcl.rqa(CODES, OTHER_CODES, theiler=0, **options).counts
    assert cross.counts.points == (np.array(OTHER)[:, None] == np.array(WORDS)[None]).sum()


@pytest.mark.parametrize("options", [{"radius": 0.5}, {"radius": 0, "convention": "crqa"},
                                     {"radius": 0.001, "convention": "crqa"}, {"radius": 0.5, "m": 2}], ids=str)
def test_every_function_takes_words(one_device, options):
    options = {"device": one_device, **options}
    whole = pyedmcl.rqa(CODES, **options)
    assert pyedmcl.rqa(WORDS, **options).counts == whole.counts
    assert pyedmcl.windowed_rqa(WORDS, len(WORDS), 1, **options)[0].counts == whole.counts
    batch = pyedmcl.rqa_batch([WORDS, OTHER], **options)
    assert batch[0].counts == whole.counts and batch[1].counts == pyedmcl.rqa(OTHER_CODES, **options).counts
    joint = pyedmcl.joint_rqa(WORDS, OTHER, **options)
    assert joint.counts == pyedmcl.joint_rqa(CODES, OTHER_CODES, **options).counts
    profile = pyedmcl.lag_profile(WORDS, OTHER, lags=4, **options)
    wanted = pyedmcl.lag_profile(CODES, OTHER_CODES, lags=4, **options)
    np.testing.assert_array_equal(profile.rate, wanted.rate)
    several = pyedmcl.lag_profile([WORDS, OTHER], [OTHER, WORDS], lags=4, **options)
    np.testing.assert_array_equal(several.rate[0], profile.rate[0])
    image = pyedmcl.recurrence_plot(WORDS, OTHER, **options)
    np.testing.assert_array_equal(image.matrix, pyedmcl.recurrence_plot(CODES, OTHER_CODES, **options).matrix)


def test_missing_words_are_gaps(one_device):
    gappy = [None if at in (2, 7) else word for at, word in enumerate(WORDS)]
    codes = CODES.copy()
    codes[[2, 7]] = np.nan
    assert pyedmcl.rqa(gappy, radius=0.5, device=one_device).counts == (
        pyedmcl.rqa(codes, radius=0.5, device=one_device).counts)  # fmt: skip


def test_a_radius_that_takes_different_words_for_equal_is_refused():
    for radius in (1.0, [0.5, 2.0]):
        with pytest.raises(InputError, match="words are equal or not"):
            pyedmcl.rqa(WORDS, radius=radius)


def test_texts_of_numbers_are_numbers_or_refused_as_before(one_device):
    from pyedmcl.recurrence.points import coded

    for data in (["1", "2.5", "1"], [1.0, 2.0], np.zeros((3, 2)), "abc", 5, None, [[1.0, 2.0], [3.0]]):
        assert coded(0.5, "fixed", data, metric="euclidean", normalize=None, radius_unit="data")[0] is data

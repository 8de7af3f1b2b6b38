"""Random draws as kEDM makes them: no kEDM and no device is needed."""

from __future__ import annotations

import numpy as np
import pytest

from pyedmcl.compat.kedm.functions import Generator


def test_bounded_draws_pass_over_words_that_would_favour_some():
    """A bound just above half of all words refuses every second one: the words in between are used in order."""
    words = Generator(5)
    words._more(400)
    raw = [int(word) for word in words._ready]
    bound = 2**31 + 1
    expected = [word % bound for word in raw if word >= 2**32 % bound][:100]
    assert Generator(5).below(np.full(100, bound)).tolist() == expected


@pytest.mark.parametrize(("n", "size", "count"), [(2, 1, 5), (7, 3, 400), (10, 9, 60), (300, 299, 12), (100, 50, 20)])
def test_samples_are_those_of_the_plain_loop(n, size, count):
    generator, expected = Generator(3), np.zeros((count, n), bool)
    for mask in expected:
        bounds = np.arange(n - size, n)
        for bound, drawn in zip(bounds, generator.below(bounds), strict=True):
            mask[bound if mask[drawn] else drawn] = True
    np.testing.assert_array_equal(Generator(3).samples(n, size, count), expected)
    assert (expected.sum(axis=1) == size).all()

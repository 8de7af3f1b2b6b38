"""Arguments at and beyond the ends of what is possible: exclusion radii of more than an int, very many neighbours."""

from __future__ import annotations

import subprocess
import sys

import naive
import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import InputError
from pyedmcl.functions import MOST_NEIGHBOURS
from pyedmcl.tuning.parameters import using

# What GPUs get, small enough for a test on a CPU.
LONE_LANES = {"lanes": 1, "wg": 16, "unroll": 4, "tile": 64, "list_registers": 64}


@pytest.mark.parametrize("radius", [2**31 - 1, 2**31, 10**10])
def test_exclusion_radius_larger_than_an_int(device, radius):
    x = naive.noisy_maps(1, 300, 1)[:, 0]
    with using(knn=LONE_LANES):
        result = pyedmcl.knn(x, E=3, exclusion_radius=radius, device=device)
    assert (result.indices == -1).all() and np.isinf(result.distances).all()


MANY = """
import sys
import numpy as np
import pyedmcl
from pyedmcl.reference import knn_float32_exact

device, k = sys.argv[1], int(sys.argv[2])
x = np.random.default_rng(0).standard_normal(k + 300).astype(np.float32)
squared, rows = knn_float32_exact(x, E=2, k=k, query=x[:40])
found = pyedmcl.knn(x, E=2, k=k, query=x[:40], device=device)
np.testing.assert_array_equal(found.indices, rows)
np.testing.assert_array_equal(np.asarray(found.distances, np.float32), np.sqrt(squared))
"""


def test_as_many_neighbours_as_are_kept_at_most_are_found(device):
    """In a process of its own, since lists that outgrow a thread's stack end it."""
    done = subprocess.run([sys.executable, "-c", MANY, device, str(MOST_NEIGHBOURS)], capture_output=True, text=True)
    assert done.returncode == 0, f"exit status {done.returncode}: {done.stderr[-1000:]}"


def test_more_neighbours_than_are_kept_are_refused(one_device):
    with pytest.raises(InputError, match=f"k=.* neighbours, an integer of at most {MOST_NEIGHBOURS:,}"):
        pyedmcl.knn(np.zeros(2000), E=2, k=MOST_NEIGHBOURS + 1, device=one_device)

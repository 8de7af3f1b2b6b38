"""The headers that solve small symmetric systems, by themselves: against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from fragment_helpers import run_fragment

SOLVE = """
#define N ${n}
#define PACKED ((N + 2) * (N + 3) / 2)
#include "solve.clh"
"""
SOLVE_BODY = """
  local moment packed[PACKED];
  local moment scale[N];
  const int lane = get_local_id(0), lanes = get_local_size(0);
  for (int at = lane; at < PACKED; at += lanes) packed[at] = triangle[at];
  barrier(CLK_LOCAL_MEM_FENCE);
  const moment bound = solve(packed, scale, N, lane, lanes);
  for (int j = lane; j < N; j += lanes) x[j] = packed[AT(N, j)];
  if (lane == 0) doubt[0] = bound;
"""


def solved(device, matrix, right, row, group):
    """Solution of a system, and how many roundings ``row @ solution`` may be off by."""
    n = len(matrix)
    packed = np.zeros((n + 2) * (n + 3) // 2)
    full = np.zeros((n + 2, n + 2))
    full[:n, :n], full[n, :n], full[n + 1, :n] = matrix, right, row
    rows, columns = np.tril_indices(n + 2)
    packed[:] = full[rows, columns]
    found = run_fragment(
        device, SOLVE, SOLVE_BODY, {"triangle": packed}, {"x": np.zeros(n), "doubt": np.zeros(1)}, items=group,
        group=group, n=n,
    )  # fmt: skip
    return found["x"], found["doubt"][0]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 12])
@pytest.mark.parametrize("group", [1, 4])
def test_symmetric_systems_are_solved(device, n, group):
    rng = np.random.default_rng(n)
    points = rng.standard_normal((3 * n, n)) * 10.0 ** rng.integers(-4, 5, n)  # regressors of very different size
    matrix, right, row = points.T @ points, points.T @ rng.standard_normal(3 * n), rng.standard_normal(n)
    x, doubt = solved(device, matrix, right, row, group)
    size = np.sqrt(np.diag(matrix))
    expected = np.linalg.solve(matrix / np.outer(size, size), right / size) / size
    np.testing.assert_allclose(x, expected, rtol=1e-9)
    assert np.isfinite(doubt)
    assert abs(row @ x - row @ expected) <= 10 * doubt * np.finfo(float).eps


def test_a_singular_system_is_infinitely_doubtful(device):
    points = np.random.default_rng(1).standard_normal((9, 3))
    points = np.column_stack([points, points[:, 0] + points[:, 1]])
    _, doubt = solved(device, points.T @ points, points.T @ np.ones(9), np.ones(4), 1)
    assert doubt == np.inf


@pytest.mark.parametrize("K", [1, 4, 9])
def test_small_systems_are_solved(one_device, K):
    """Packed ones, of one work-item each; the last has a direction that the others hold already."""
    head = f'#define K {K}\n#define LEAST_PIVOT 1e-13\n#include "solve_packed.clh"'
    body = """
  moment a[N_PACKED], x[K];
  for (int j = 0; j < N_PACKED; ++j) a[j] = matrices[i * N_PACKED + j];
  for (int j = 0; j < K; ++j) x[j] = wanted[i * K + j];
  least[i] = solve_packed(a, x);
  for (int j = 0; j < K; ++j) found[i * K + j] = x[j];"""
    rng, n = np.random.default_rng(K), 20
    rows = rng.standard_normal((n, 30, K)) * 10.0 ** rng.integers(-6, 7, (n, 1, K))  # of very different units
    if K > 1:
        rows[-1, :, -1] = rows[-1, :, 0]
    matrices, wanted = np.swapaxes(rows, 1, 2) @ rows, rng.standard_normal((n, K))
    lower = np.tril_indices(K)
    out = {"found": np.zeros((n, K)), "least": np.zeros(n)}
    given = {"matrices": matrices[:, lower[0], lower[1]], "wanted": wanted}
    result = run_fragment(one_device, head, body, given, out, items=n, dtype="float64", lanes=1)
    regular = n - (K > 1)
    expected = np.linalg.solve(matrices[:regular], wanted[:regular, :, None])[..., 0]
    np.testing.assert_allclose(result["found"][:regular], expected, rtol=1e-9)
    assert (result["least"][:regular] > 0.01).all()
    if K > 1:
        assert result["least"][-1] < 1e-13 and result["found"][-1, -1] == 0

"""Headers and fragments of S-map by themselves: distances, weights, H, and the sweeps over a library, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from fragment_helpers import run_fragment
from smap_helpers import FittedLibrary, squared_distances

DTYPES = ("float32", "float64")
NOT_EXCLUDED = -(1 << 30)  # of `upper`: no library row is too near


def integers_of(dtype):
    return np.int32 if dtype == "float32" else np.int64


# ---- smap.clh ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("lanes", "E"), [(1, 1), (1, 6), (4, 6), (16, 3)])
def test_distances_and_what_is_left_out(device, dtype, lanes, E):
    """Rows that are too near, and rows behind the last of the k neighbours."""
    n, n_library, radius = 32, 20, 3
    rng = np.random.default_rng(E)
    queries, library = (rng.integers(-3, 4, (rows, E)).astype(dtype) for rows in (n, n_library))  # many ties
    queries += np.float32(0.1) * (rng.random((n, E)) < 0.5)
    upper = np.where(np.arange(n) % 5, np.arange(n) + radius, NOT_EXCLUDED).astype(integers_of(dtype))
    expected = squared_distances(queries, library)
    limit_row = rng.integers(0, n_library, n)
    limit = expected[np.arange(n), limit_row]
    padded = np.pad(library, ((0, 0), (0, -E % 4)), constant_values=1e9)
    body = f"""
  const int radius = {radius};
  realv q[COORDINATES];
  for (int e = 0; e < COORDINATES; ++e) q[e] = LOADV(queries + e * {n} + i * LANES);
  const rowv upper = LOADV(uppers + i * LANES), limit_row = LOADV(limit_rows + i * LANES);
  const realv limit_squared = LOADV(limits + i * LANES);
  for (int j = 0; j < {n_library}; ++j) {{
    const int to = j * {n} + i * LANES;
    SQUARED_DISTANCE(sum, global, library + j * NEAR_STRIDE);
    STOREV(sum, squared + to);
    STORE_INT(CHOOSE((rowv)(0), (rowv)(1), TOO_NEAR(j)), too_near + to);
    STORE_INT(CHOOSE((rowv)(0), (rowv)(1), BEYOND(sum, j)), beyond + to);
    STOREV(CONVERT_REALV(upper), converted + to);
  }}
"""
    inputs = {"queries": queries.T, "library": padded, "uppers": upper, "limits": limit,
              "limit_rows": limit_row.astype(integers_of(dtype))}  # fmt: skip
    outputs = {name: np.zeros((n_library, n), dtype) for name in ("squared", "converted")}
    outputs |= {name: np.zeros((n_library, n), np.int32) for name in ("too_near", "beyond")}
    found = run_fragment(
        device, f'#define COORDINATES {E}\n#include "smap.clh"', body, inputs, outputs, items=n // lanes, dtype=dtype,
        lanes=lanes,
    )  # fmt: skip
    row, t = np.arange(n_library)[:, None], np.arange(n)
    np.testing.assert_array_equal(found["squared"], expected.T)
    np.testing.assert_array_equal(found["converted"], np.tile(upper.astype(dtype), (n_library, 1)))
    np.testing.assert_array_equal(found["too_near"], (np.abs(row - t) <= radius) & (t % 5 != 0))
    after = (limit < expected.T) | ((limit == expected.T) & (row > limit_row))
    np.testing.assert_array_equal(found["beyond"], after)
    assert ((limit == expected.T) & (row != limit_row)).any() or E > 3, "no distance ties with the limit"


# ---- smap_map.clh ----

STATE_HEAD = """
#define E ${E}
#define COORDINATES ${E}
#define GAPS ${int(gaps)}
#define STATE ${-(-(2 * E + gaps) // 4) * 4}
#define COLUMNS ${2 * E + gaps}
#include "smap_map.clh"
"""


def close(dtype):
    return {"rtol": 500 * np.finfo(dtype).eps, "atol": 500 * np.finfo(dtype).eps}


ROW = """
  const int n_padded = ${n}, t0 = i * LANES, radius = ${radius};
  realv q[E], centre[E], g[E + 1];
  for (int e = 0; e < E; ++e) {
    q[e] = LOADV(columns + e * n_padded + t0);
    centre[e] = LOADV(columns + (E + e) * n_padded + t0);
  }
  for (int e = 0; e <= E; ++e) g[e] = LOADV(fits + e * n_padded + t0);
  const rowv upper = FIRST_ROWS + (rowv)(t0 + radius);
"""


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("lanes", "E", "gaps"), [(1, 2, False), (1, 5, True), (4, 3, True), (8, 1, False), (16, 3, True)]
)
def test_what_a_state_counts_in_a_prediction(device, dtype, lanes, E, gaps):
    library = FittedLibrary(E, gaps, dtype, 48, theta=1.5)
    body = f"""{ROW}
  const realv nearest = LOADV(fits + (E + 1) * n_padded + t0), rate = LOADV(fits + (E + 2) * n_padded + t0);
  STOREV(STATE_RATE((real)1.5, LOADV(total + t0), LOADV(count + t0)), rates + t0);
  for (int s = 0; s < n_padded; ++s) {{
    READ_STATE(global, states + s * STATE);
    STATE_DISTANCE(d);
    PREDICTS_WITH(h, STATE_WEIGHT(d), TOO_NEAR(s));
    STOREV(d, distances + s * n_padded + t0);
    STOREV(h, H + s * n_padded + t0);
  }}
"""
    total = library.total.astype(dtype)
    total[7] = 0  # all states are alike
    inputs = {"states": library.states, "columns": library.columns, "fits": library.fits, "total": total,
              "count": library.n_neighbors.astype(dtype)}  # fmt: skip
    outputs = {name: np.zeros((48, 48), dtype) for name in ("distances", "H")} | {"rates": np.ones(48, dtype)}
    found = run_fragment(
        device,
        STATE_HEAD,
        body,
        inputs,
        outputs,
        items=48 // lanes,
        dtype=dtype,
        lanes=lanes,
        E=E,
        gaps=gaps,
        n=48,
        radius=2,
    )
    np.testing.assert_allclose(found["distances"].T, library.d, rtol=2 * np.finfo(dtype).eps)
    np.testing.assert_allclose(found["H"].T, library.h, **close(dtype))
    assert (found["H"].T[~library.neighbor] == 0).all() and (library.h[library.neighbor] != 0).all()
    np.testing.assert_allclose(
        found["rates"], np.where(np.arange(48) == 7, 0, library.rate), rtol=8 * np.finfo(dtype).eps
    )


# ---- smap_gram_sweeps.mako ----

SWEEPS = f"""
<%namespace name="sweeps" file="smap_gram_sweeps.mako"/>
#define WG ${{wg}}
#define K ${{E + 1}}
#define CHUNK 16
#define LEAST_PIVOT 1e-13
{STATE_HEAD}
#include "solve_packed.clh"
"""
SWEPT = f"""{ROW}
  const int n_rows = ${{n_rows}};
%if wg > 1:
  local real staged_states[CHUNK * STATE] __attribute__((aligned(64)));
%endif
  realv nearest = FAR, total = 0, count = 0;
  ${{sweeps.distances()}}
  STOREV(nearest, nearest_of + t0);
  STOREV(total, total_of + t0);
  STOREV(count, count_of + t0);
  const realv rate = LOADV(fits + (E + 2) * n_padded + t0);
  ${{sweeps.declare_system()}}
  ${{sweeps.system()}}
  moment packed[N_PACKED * LANES], rest[K * LANES];
  ${{sweeps.store_system("packed")}}
  for (int k = 0; k < K * LANES; ++k) rest[k] = 1;
  ${{sweeps.predicted()}}
  for (int l = 0; l < LANES; ++l) {{
    for (int k = 0; k < N_PACKED; ++k) system[(t0 + l) * N_PACKED + k] = packed[k * LANES + l];
    for (int k = 0; k < K; ++k) left[(t0 + l) * K + k] = rest[k * LANES + l];
  }}
"""


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("lanes", "wg", "E", "gaps"), [(1, 8, 3, True), (4, 1, 10, False), (8, 1, 11, True), (1, 1, 1, False)]
)
def test_sweeps_over_a_library(device, dtype, lanes, wg, E, gaps):
    """Of 40 rows, in chunks of 16: distances, the systems of all rows, and what H leaves of their right-hand sides."""
    library = FittedLibrary(E, gaps, dtype, 40, theta=0.5)
    inputs = {"states": library.states, "columns": library.columns, "fits": library.fits}
    outputs = {name: np.zeros(40, dtype) for name in ("nearest_of", "total_of", "count_of")}
    outputs |= {"system": np.zeros((40, (E + 1) * (E + 2) // 2)), "left": np.zeros((40, E + 1))}
    found = run_fragment(
        device, SWEEPS, SWEPT, inputs, outputs, items=40 // lanes, group=wg, dtype=dtype, lanes=lanes, wg=wg, E=E,
        gaps=gaps, n=40, n_rows=40, radius=2,
    )  # fmt: skip
    np.testing.assert_array_equal(found["count_of"], library.n_neighbors)
    np.testing.assert_allclose(found["nearest_of"], library.nearest, rtol=2 * np.finfo(dtype).eps)
    np.testing.assert_allclose(found["total_of"], library.total, rtol=20 * np.finfo(dtype).eps)
    system = np.einsum("ts,tsa,tsb->tab", library.weights, library.regressors, library.regressors)
    row, column = np.tril_indices(E + 1)
    size = np.abs(system).max(axis=(1, 2))[:, None]
    np.testing.assert_allclose(found["system"] / size, system[:, row, column] / size, **close(dtype))
    left = 1 + np.einsum("ts,tsa->ta", library.h, library.regressors)
    size = 1 + np.einsum("ts,tsa->ta", np.abs(library.h), np.abs(library.regressors))
    np.testing.assert_allclose(found["left"] / size, left / size, **close(dtype))

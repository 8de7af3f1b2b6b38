"""Parts of the search for neighbours by themselves, against NumPy: candidates are collected, and become tables."""

from __future__ import annotations

import numpy as np
import pytest
from knn_parts import COUNTS, DIMS, FAR, J_BEGIN, N_ROWS, NOWHERE, Search

from pyedmcl.reference import simplex_weights

# ---- knn_collect_scalar.mako, knn_collect_lanes.mako, knn_collect_shared.mako ----

COLLECTED = """
  realv bounds[DIMS];
  rowv held[DIMS];
%for s in range(len(dims)):
  realv bound${s} = LOADV(given + ${s} * ${n_rows + 32} + tq);
  held[${s}] = 0;
%endfor
%if masked:
  global const real* restrict penalty_of_row = penalty;
%endif
  ${collect.sweep()}
  for (int s = 0; s < DIMS; ++s) {
    realv nearest[K_MAX];
    rowv rows[K_MAX];
%if shared:
    read_list(SLOT_BUFFER(CAPACITY_BEFORE[s]), K_OF[s], nearest, rows);
%else:
    sort_candidates(SLOT_BUFFER(CAPACITY_BEFORE[s]), K_OF[s], held[s], nearest, rows);
%endif
    for (int k = 0; k < K_OF[s] && t0 < n_rows; ++k) {
      STOREV(nearest[k], listed + ((part * DIMS + s) * K_MAX + k) * ${n_rows + 32} + t0);
      STOREV(rows[k], named + ((part * DIMS + s) * K_MAX + k) * ${n_rows + 32} + t0);
    }
  }
"""
COLLECTS = {
    "scalar": [{"masked": True}, {"capacities": (16, 8, 16), "hot": 12}], "scalar-tile": [{"capacities": (16, 12, 16)}],
    "sharers": [{}], "lanes": [{"masked": True}, {"capacities": (12, 8, 12)}, {"shared": True},
                               {"shared": True, "masked": True}], "lanes-group": [{}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("layout", "options"), [(layout, options) for layout in COLLECTS for options in COLLECTS[layout]], ids=str
)
def test_candidates_hold_the_neighbours(device, layout, options):
    """Whatever the bound is that they start from, and also where it lets through more than a buffer holds."""
    search = Search(layout, seed=1, **options)
    sharers, rng = search.values["sharers"], np.random.default_rng(2)
    given = np.full((len(DIMS), N_ROWS + 32), -1, np.float32)
    for s in range(len(DIMS)):
        kth = np.sort(search.of_neighbors[s], axis=1)[:, COUNTS[s] - 1]
        looser = np.where(rng.random(N_ROWS) < 0.3, FAR, np.minimum(kth, FAR) * rng.choice([1, 1, 1.5, 20], N_ROWS))
        given[s, :N_ROWS] = np.where(search.incomplete[s], -1, np.minimum(looser, FAR))
    shape = sharers, len(DIMS), max(COUNTS), N_ROWS + 32
    outputs = {"listed": np.full(shape, NOWHERE), "named": np.full(shape, -1, np.int32)}
    found = search.run(device, COLLECTED, outputs, given=given)
    for s, k in enumerate(COUNTS):
        rows, squared = search.tables(s)
        for t in range(N_ROWS):
            pairs = sorted(zip(found["listed"][:, s, :k, t].ravel(), found["named"][:, s, :k, t].ravel(), strict=True))
            pairs = [(d, j) if d < FAR else (NOWHERE, -1) for d, j in pairs][:k]
            assert pairs == list(zip(squared[t], rows[t], strict=True)), (DIMS[s], t)


# ---- knn_emit.mako ----

CANDIDATES = """
  const int library_of_launch = 1, table_rows = ${table_rows};
  const ulong rows_per_slot = 2 * table_rows;
  rowv held[DIMS];
  for (int s = 0; s < DIMS; ++s) {
    const int own = (part * DIMS + s) * ${n_rows + 32} + t0;
    held[s] = LOADV(filled + own);
    for (int c = 0; c < 20; ++c) {
      const int from = ((part * DIMS + s) * 20 + c) * ${n_rows + 32} + t0;
%if shared:
      for (int l = 0; l < LANES; ++l) {
        const int empty = c >= filled[own + l];
        ((global long*)(SLOT_BUFFER(CAPACITY_BEFORE[s])))[c * LANES + l] =
            empty ? (long)as_int(NOWHERE) << 32 | 0xffffffffL : (long)as_int(d[from + l]) << 32 | j[from + l];
      }
%else:
      PUT_CANDIDATE(SLOT_BUFFER(CAPACITY_BEFORE[s]) + ENTRY_AT(c), LOADV(d + from), LOADV(j + from));
%endif
    }
  }
  ${emitted.tables(shared)}
"""


@pytest.mark.parametrize("emit", ["neighbours", "weights"])
@pytest.mark.parametrize(
    ("layout", "options"),
    [("scalar", {}), ("sharers", {}), ("sharers", {"registers": False}), ("lanes", {}),
     ("lanes-group", {"registers": False}), ("lanes", {"shared": True})], ids=str,
)  # fmt: skip
def test_candidates_become_tables(device, layout, options, emit):
    """Of all sharers of a row, and of a launch's second library; some rows have fewer candidates than neighbours."""
    table_rows, n = 40, N_ROWS + 32
    search = Search(layout, emit=emit, table_rows=table_rows, **options)
    sharers, lanes, rng = search.values["sharers"], search.values["lanes"], np.random.default_rng(3)
    shape = sharers, len(DIMS), 20, n
    d = (rng.integers(0, 6, shape) / 4).astype(np.float32)
    rows = rng.permuted(np.broadcast_to(np.arange(200)[:, None], (200, n)), axis=0)[: 20 * sharers]
    j = np.empty(shape, np.int32)
    j[:] = np.sort(rows.reshape(sharers, 1, 20, n), axis=2)  # candidates come in the order of rows
    filled = rng.integers(0, 21, (sharers, len(DIMS), n), dtype=np.int32)
    empty = np.arange(20)[:, None] >= filled[:, :, None]
    d[empty], j[empty] = 0, -5  # what lies behind the last candidate
    if search.values["shared"]:  # lists are sorted already
        order = np.lexsort((j, np.where(empty, np.inf, d)), axis=2)
        d, j = np.take_along_axis(d, order, 2), np.take_along_axis(j, order, 2)
    strides = [-(-k // 4) * 4 if emit == "weights" else k for k in COUNTS]
    outputs = {"out_row": np.full(sum(strides) * 2 * table_rows, -7, np.int32),
               "out_value": np.full(sum(strides) * 2 * table_rows, -7, np.float32)}  # fmt: skip
    found = search.run(device, CANDIDATES, outputs, d=d, j=j, filled=filled)
    begin = 0
    for s, (k, stride) in enumerate(zip(COUNTS, strides, strict=True)):
        size = table_rows * stride
        tables = [found[name][begin + size :][:size] for name in ("out_row", "out_value")]  # of the second library
        assert (found["out_row"][begin:][:size] == -7).all()
        begin += 2 * size
        if emit == "weights" and lanes > 1:
            tables = [table.reshape(-1, stride, lanes).swapaxes(1, 2) for table in tables]
        table_of_rows, values = (table.reshape(table_rows, stride) for table in tables)
        for t in range(N_ROWS):
            own = [(d[part, s, c, t], j[part, s, c, t]) for part in range(sharers) for c in range(filled[part, s, t])]
            nearest = sorted(own)[:k]
            there = len(nearest)
            squared = np.array([*(pair[0] for pair in nearest), *[np.inf] * (k - there)])
            assert table_of_rows[t, :there].tolist() == [pair[1] for pair in nearest]
            if emit == "neighbours":
                assert (table_of_rows[t, there:k] == -1).all()
                np.testing.assert_array_equal(values[t, :k], np.where(squared < np.inf, squared, NOWHERE))
            else:
                assert (table_of_rows[t, there:k] == J_BEGIN).all(), "a row that can be read"
                expected = simplex_weights(np.sqrt(squared)[None])[0] if there else np.zeros(k)
                np.testing.assert_allclose(values[t, :k], expected, atol=1e-6)

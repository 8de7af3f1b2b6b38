"""Parts of the search for neighbours by themselves, against NumPy: distances, and the bound of a first sweep."""

from __future__ import annotations

import numpy as np
import pytest
from fragment_helpers import run_fragment
from knn_parts import COUNTS, DIMS, FAR, J_BEGIN, J_END, N_ROWS, Search

# ---- knn_distances.mako ----

STORE_DISTANCES = f"""
<%def name="stored(s)">
%for u in range(unroll):
  STOREV(squared${{u}}, squared + ((size_t)${{s}} * {J_END + 16} + j - j_begin + ${{u}}) * {N_ROWS + 64} + t0);
%endfor
</%def>
"""
ALL_STEPS = """
%if tile:
  for (int jt = j_begin; jt < j_end; jt += TILE) {
    ${distances.load_tile()}
    const int tile_end = min(jt + TILE, j_end);
%else:
  {
    const int jt = j_begin, tile_end = j_end;
%endif
    for (int j = jt; j < tile_end; j += UNROLL) {
%if tile:
      local const real* xt = xs + (j - jt + HALO);
%endif
      ${distances.step(stored)}
    }
  }
"""


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("layout", ["scalar", "scalar-tile", "lanes", "lanes-group"])
def test_distances_of_a_step(device, layout, masked):
    """Bit for bit. Scalar work-items put rows near the query beyond every bound; lanes leave them out later."""
    search = Search(layout, masked=masked)
    lanes = search.values["lanes"]
    shape = len(DIMS), J_END + 16, N_ROWS + 64
    found = search.run(device, ALL_STEPS, {"squared": np.full(shape, -1, np.float32)}, STORE_DISTANCES)["squared"]
    for s, squared in enumerate(search.squared):
        for t in range(N_ROWS // lanes * lanes):
            j = np.arange(J_BEGIN + t % lanes, J_END)
            stored, expected = found[s, j - t % lanes - J_BEGIN, t], squared[t, j]
            if lanes == 1:
                near = np.abs(t - j) <= search.values["radius"]
                assert (stored[near] > FAR).all()
                stored, expected = stored[~near], expected[~near]
            np.testing.assert_array_equal(stored, expected, err_msg=f"dimension {DIMS[s]}, row {t}")


@pytest.mark.parametrize("lanes", [4, 8])
def test_penalties_of_lanes(device, lanes):
    """Rows before the first have that of row 0."""
    head = '<%namespace name="distances" file="knn_distances.mako"/>\n#include "topk.clh"\n${distances.functions()}'
    penalty = np.random.default_rng(4).random(64).astype(np.float32)
    body = "  STOREV(PENALTY(i - LANES), penalties + i * LANES);"
    found = run_fragment(
        device, head, body, {"penalty": penalty}, {"penalties": np.zeros((60, lanes), np.float32)}, items=60,
        lanes=lanes, masked=True,
    )["penalties"]  # fmt: skip
    j = np.arange(60)[:, None] - lanes + np.arange(lanes)
    np.testing.assert_array_equal(found, penalty[np.maximum(j, 0)])


# ---- knn_bound.mako ----


def minima_of(search, s, t):
    """What the documented row groups give of a query row: the least distance of each, by sharer."""
    v = search.values
    unroll, share, tile = v["unroll"], v["bound_share"], v["tile"] or 10**6
    step = unroll if v["tile"] else unroll * share
    lane, merged, per_tile = t % v["lanes"], v["merged"][s], v["groups_per_tile"]
    d = np.where(search.squared[s][t] > FAR, FAR, search.squared[s][t])
    d = np.where(np.abs(np.arange(J_END) - t) <= v["radius"], FAR, d)
    least = []
    for part in range(v["sharers"]):
        own_of_round = v["groups_per_round"] // per_tile * len(range(part, per_tile, v["sharers"]))
        places = {}
        row_groups = 0
        for jt in range(J_BEGIN, J_END, share * tile if v["tile"] else tile):
            if row_groups == own_of_round:
                row_groups = 0
            for g in range(part, per_tile, v["sharers"]):
                rows = []
                for j in range(jt + g * step, min(jt + tile, J_END), per_tile * step):
                    near = v["lanes"] > 1 and t - lane - v["radius"] - unroll < j < t - lane + 1 + v["radius"]
                    rows += [] if near else [j + lane + u for u in range(unroll) if j + lane + u < J_END]
                place = row_groups // merged
                places[place] = min([places.get(place, FAR), *d[rows]])
                row_groups += 1
        least += places.values()
    return np.sort(least)


def bounds_of(search, device):
    """(dimension, query row)."""
    store = "  if (part == 0 && t0 < n_rows) STOREV(bound{s}, bounds_of + {s} * {n} + t0);"
    body = "\n".join(["  ${bound.find()}", *(store.format(s=s, n=N_ROWS + 32) for s in range(len(DIMS)))])
    return search.run(device, body, {"bounds_of": np.zeros((len(DIMS), N_ROWS + 32), np.float32)})["bounds_of"]


BOUNDS = {
    "scalar": [{"groups_per_tile": 9}, {"groups_per_tile": 12, "merged": (2, 3, 1), "bound_share": 2}],
    "scalar-tile": [
        {"groups_per_tile": 3, "groups_per_round": 6},
        {"groups_per_tile": 4, "merged": (3, 4, 1), "bound_share": 2},
    ],
    "sharers": [{"groups_per_tile": 4, "groups_per_round": 8}, {"groups_per_tile": 5, "merged": (1, 3, 1)}],
    "lanes": [{"groups_per_tile": 11}, {"groups_per_tile": 13, "merged": (2, 4, 1)}],
    "lanes-group": [{"groups_per_tile": 16, "bound_share": 2}],
}


@pytest.mark.parametrize(
    ("layout", "options"), [(layout, options) for layout in BOUNDS for options in BOUNDS[layout]], ids=str
)
def test_the_bound_is_the_kth_minimum_of_row_groups(device, layout, options):
    """No neighbour lies beyond it; and a query row that touches a gap has none."""
    options = {"groups_per_round": 10**6 // options["groups_per_tile"] * options["groups_per_tile"], **options}
    search = Search(layout, **options)
    found = bounds_of(search, device)
    for s, E in enumerate(DIMS):
        for t in range(N_ROWS // search.values["lanes"] * search.values["lanes"]):
            bound = found[s, t]
            if search.incomplete[s][t]:
                assert bound == -1
                continue
            least = minima_of(search, s, t)
            assert bound == (least[COUNTS[s] - 1] if len(least) >= COUNTS[s] else FAR), (E, t)
            assert bound >= min(np.sort(search.of_neighbors[s][t])[COUNTS[s] - 1], FAR)


@pytest.mark.parametrize("row_groups", [13, 6])
def test_the_bound_of_many_neighbours_is_found_by_halving(device, row_groups):
    """Where lists do not lie in registers lanes have it by some percent too large, but never too small."""
    search = Search("lanes", groups_per_tile=row_groups, groups_per_round=row_groups, registers=False)
    found = bounds_of(search, device)
    looser = []
    for s, k in enumerate(COUNTS):
        for t in range(N_ROWS // 4 * 4):
            least = minima_of(search, s, t)
            least = least[least < FAR]
            if search.incomplete[s][t] or len(least) < k:
                assert found[s, t] == (-1 if search.incomplete[s][t] else FAR)
                continue
            # Halved are the bits of a float, about its logarithm: what is left is 1 / 256 of the range of all minima.
            low, kth, high = least[[0, k - 1, -1]].view(np.int32).tolist()
            bound = int(found[s, t].view(np.int32))
            assert kth <= bound <= kth + (high - low) // 256 + 2
            looser.append(bound > kth)
    assert len(looser) > 60 and any(looser)

"""One tile of query rows, for the parts of the search for neighbours to work on by themselves."""

from __future__ import annotations

import numpy as np
from fragment_helpers import run_fragment

from pyedmcl.kernels.texts import SENTINELS
from pyedmcl.reference import fma32
from pyedmcl.reference.edm import nearest_first

FAR, GAP, NOWHERE = (np.float32(SENTINELS[name]) for name in ("FAR", "GAP", "NOWHERE"))
DIMS, COUNTS, TAU, FRONT = (1, 2, 4), (3, 2, 6), 2, 16
N_ROWS, J_BEGIN, J_END = 37, 6, 151

# What knn.cl.mako has before its kernel, and for one tile of query rows within it.
HEAD = """
<%namespace name="distances" file="knn_distances.mako"/>
<%namespace name="bound" file="knn_bound.mako"/>
<%namespace name="collect_scalar" file="knn_collect_scalar.mako"/>
<%namespace name="collect_lanes" file="knn_collect_lanes.mako"/>
<%namespace name="collect_shared" file="knn_collect_shared.mako"/>
<%namespace name="emitted" file="knn_emit.mako"/>
<%
collect = collect_scalar if lanes == 1 else collect_shared if shared else collect_lanes
before = lambda numbers: [sum(numbers[:s]) for s in range(len(dims))]
strides = [-(-k // 4) * 4 if emit == "weights" else k for k in counts]
of_dimensions = {
    "DIM_OF": dims, "K_OF": counts, "K_STRIDE": strides, "K_BEFORE": before(strides), "CAPACITY_OF": capacities,
    "CAPACITY_BEFORE": before(capacities), "MERGED": merged,
}
%>
#define DIMS ${len(dims)}
#define K_MAX ${max(counts)}
#define LIST_IN_REGISTERS ${int(registers)}
#define WG ${wg}
#define GROUP_ROWS ${wg * lanes}
#define SHARERS ${sharers}
#define QUERY_ROWS ${wg * lanes // sharers}
#define UNROLL ${unroll}
#define TILE ${tile}
#define HALO ${-(-(max(dims) - 1) * tau // 4) * 4}
#define SHARE ${bound_share}
#define BOUND_STEP ${unroll if tile else unroll * bound_share}
#define HOT ${hot}
#define HOT_ROW ${"ushort" if tile else "int"}
#define LOW 4
#define GROUP_SCRATCH ((size_t)GROUP_ROWS * ${2 * sum(capacities) + hot})
#include "topk.clh"
#include "weights.clh"
%if lanes == 1:
typedef PASTE(REAL_NAME, 4) real4;
typedef PASTE(WHOLE_NAME, 4) rowv4;
%endif
%for name, numbers in of_dimensions.items():
constant int ${name}[DIMS] = {${", ".join(map(str, numbers))}};
%endfor
#define SLOT_BUFFER(BEFORE) (buffer + (size_t)(2 * GROUP_ROWS) * (BEFORE))
${distances.functions()}
${collect.functions()}
"""
TILE = """
  const int lane0 = get_local_id(0) * LANES, n_rows = ${n_rows}, j_begin = ${j_begin}, j_end = ${j_end};
  const int exclusion_radius = ${radius}, groups_per_tile = ${groups_per_tile}, groups_per_round = ${groups_per_round};
  global whole* restrict buffer = scratch + (size_t)get_group_id(0) * GROUP_SCRATCH + LANE_OFFSET;
  global whole* restrict minima = scratch + (size_t)get_group_id(0) * GROUP_SCRATCH + lane0;
%if tile:
  local real xs[TILE + HALO] __attribute__((aligned(32)));
%endif
%if lanes == 1:
  global whole* restrict scratch_end = scratch + ((size_t)get_group_id(0) + 1) * GROUP_SCRATCH;
  global HOT_ROW* restrict hot = (global HOT_ROW*)scratch_end - HOT * WG + lane0;
%endif
%if sharers > 1:
  local int published[WG];
  const int part = get_local_id(0) / QUERY_ROWS, row_of_tile = get_local_id(0) % QUERY_ROWS;
%else:
  const int part = 0, row_of_tile = lane0;
%endif
  const int t0 = get_group_id(0) * QUERY_ROWS + row_of_tile, tq = min(t0, n_rows - 1);
  global const real* restrict x = library + ${front};
  global const real* restrict y = query + ${front};
%for e in range(max(dims)):
  const realv q${e} = LOADV(y + tq - ${e * tau});
%endfor
  const int near_begin = t0 - exclusion_radius - UNROLL, near_end = t0 + 1 + exclusion_radius;
"""
# Two kinds of work-items, with and without tiles, and a few options of each.
LAYOUTS = {
    "scalar": {"lanes": 1, "wg": 8, "unroll": 4, "tile": 0},
    "scalar-tile": {"lanes": 1, "wg": 8, "unroll": 8, "tile": 32},
    "sharers": {"lanes": 1, "wg": 8, "unroll": 4, "tile": 32, "sharers": 2},
    "lanes": {"lanes": 4, "wg": 1, "unroll": 4, "tile": 0},
    "lanes-group": {"lanes": 8, "wg": 2, "unroll": 2, "tile": 0},
}


class Search:
    """Two series with gaps, and what the parts of a search for neighbours find of them."""

    def __init__(self, layout, *, masked=False, radius=2, seed=0, **options):
        rng = np.random.default_rng(seed)
        x = np.round(rng.standard_normal(160), 1).astype(np.float32)  # many ties
        x[90] = GAP
        y = x[:N_ROWS].copy()
        y[20] = GAP
        x[J_END:] = GAP
        pad = lambda a: np.concatenate([np.full(FRONT, GAP, np.float32), a, np.full(80, GAP, np.float32)])  # noqa: E731
        self.library, self.query = pad(x), pad(y)
        self.penalty = np.where(rng.random(len(x) + 80) < 0.3, np.float32(SENTINELS["GAP_SQUARED"]), np.float32(0))
        self.values = {
            "dims": DIMS, "counts": COUNTS, "tau": TAU, "front": FRONT, "masked": masked, "radius": radius,
            "sharers": 1, "bound_share": 1, "hot": 16, "capacities": (32, 32, 32), "merged": (1, 1, 1),
            "emit": "neighbours", "shared": False, "registers": True, "n_rows": N_ROWS, "j_begin": J_BEGIN,
            "j_end": J_END, "groups_per_tile": 1, "groups_per_round": 1,
            "dtype": "float32", **LAYOUTS[layout], **options,
        }  # fmt: skip
        t, j = np.arange(N_ROWS)[:, None], np.arange(J_END)
        total = np.where(masked, self.penalty[None, :J_END], np.float32(0)) * np.ones((N_ROWS, 1), np.float32)
        self.squared = []
        for e in range(max(DIMS)):
            difference = self.query[FRONT + t - e * TAU] - self.library[FRONT + j - e * TAU]
            total = fma32(difference, difference, total)
            if e + 1 in DIMS:
                self.squared.append(total)
        self.excluded = (np.abs(t - j) <= radius) | (j < J_BEGIN)
        self.incomplete = [(np.abs(self.query[FRONT + t - TAU * np.arange(E)]) >= GAP).any(axis=1) for E in DIMS]
        self.of_neighbors = [
            np.where(self.excluded | (d > FAR) | incomplete[:, None], np.inf, d)
            for d, incomplete in zip(self.squared, self.incomplete, strict=True)
        ]

    def tables(self, s):
        """Rows and squared distances of the k nearest in dimension ``s``; -1 and NOWHERE where there are fewer."""
        rows, squared = np.full((N_ROWS, COUNTS[s]), -1), np.full((N_ROWS, COUNTS[s]), NOWHERE)
        for t, d in enumerate(self.of_neighbors[s]):
            order = [j for j in nearest_first(d, COUNTS[s]) if d[j] < np.inf]
            rows[t, : len(order)], squared[t, : len(order)] = order, d[order]
        return rows, squared

    def run(self, device, body, outputs, head="", **inputs):
        v = self.values
        n_groups = -(-N_ROWS * v["sharers"] // (v["wg"] * v["lanes"]))
        scratch = np.full(n_groups * v["wg"] * v["lanes"] * (2 * sum(v["capacities"]) + v["hot"]), -99, np.int32)
        inputs |= {"library": self.library, "query": self.query, "penalty": self.penalty}
        return run_fragment(
            device,
            HEAD + head,
            TILE + body,
            inputs,
            outputs | {"scratch": scratch},
            items=n_groups * v["wg"],
            group=v["wg"],
            **v,
        )

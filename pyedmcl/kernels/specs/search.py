"""Specs of the searches for neighbours."""

from __future__ import annotations

from ..kernel_spec import Constraint, KernelSpec, Tunable, Usage, Values

# All k nearest neighbours: several embedding dimensions in one pass, exact, no L x L matrix.


_PROBLEM = {
    "n_series": "library series, each of which is searched for the rows of its query series",
    "n_library": "rows of a library series",
    "n_query": "rows of a query series",
    "Tp": "a library row j may be a neighbour if row j + Tp exists",
    "exclusion_radius": "rows with |t - j| up to it are no neighbours; -1 for another series: none is left out",
    "groups": "work-groups; from 1 to n_tiles * n_series, some for each compute unit",
}
_MEANINGS = {
    "library_stride": "columns of a library series", "query_stride": "columns of a query series",
    "front": "column of row 0", "n_rows": "query rows", "j_begin": "first library row that may be a neighbour",
    "groups_per_tile": "row groups of a library tile whose minima bound the distances",
    "groups_per_round": "row groups that there is room for at once",
    "exclusion_radius": "rows near in time that are no neighbours", "n_tiles": "tiles of query rows",
    "first_library": "series of the first task", "task_begin": "first task: a tile of query rows of a library",
    "task_end": "one past the last task",
    "table_rows": "query rows that a table has room for",
    "rows_per_slot": "query rows of all libraries' tables of a dimension",
    "scratch": "working memory of the groups; its content is of no meaning",
}  # fmt: skip


def _bound(v: Values) -> dict[str, str]:
    """How library rows are grouped for the bound on the k-th distance, as ``KnnPass`` of ``search/plan.py`` does it.

    ``tests/export/test_kernel_source.py`` holds the two together.
    """
    step = v["unroll"] * v["bound_share"]
    if not v["tile"]:
        return {"groups_per_tile": f"max(min(enough, ceil_div(searched, {step})), 1)",
                "groups_per_round": "groups_per_tile"}  # fmt: skip
    return {
        "steps": f"ceil_div(min({v['tile']}, searched), {v['unroll']})",
        "row_tiles": f"ceil_div(searched, {v['tile'] * v['bound_share']})",
        "even_share": "max(min(odd(ceil_div(enough, row_tiles)), min(steps, most)), 1)",
        "groups_per_tile": "select(row_tiles * even_share > most, "
                           "max(min(max(even_share, 7), min(steps, most)), 1), even_share)",
        "groups_per_round": "min(row_tiles, max(most / groups_per_tile, 1)) * groups_per_tile",
    }  # fmt: skip


def _usage(v: Values) -> Usage:
    # Sizes are those of KnnPass (search/plan.py), which tests/export/test_kernel_source.py compares with them.
    dims, counts, tau, buffers = v["dims"], v["counts"], v["tau"], v["lanes"] * v["wg"]
    rows = buffers // v["sharers"]
    weights, item = v["emit"] == "weights", 8 if v["dtype"] == "float64" else 4
    strides = [-(-k // 4) * 4 if weights else k for k in counts]
    hot = v["hot"] * (2 if v["tile"] else 4) // item if v["lanes"] == 1 else 0
    front = -(-(dims[-1] - 1) * tau // 16) * 16 + 16
    where = f"[series][stride], row 0 at column {front}, 1e16 in all other columns and where a value is missing"
    ends = ("rows from j_end on are 1e16 too, whatever n_library is: untiled steps and lanes read past j_end "
            "and do not check")  # fmt: skip
    place = (f"[library][query row / {v['lanes']}][neighbour][{v['lanes']}], neighbours padded to a multiple of four"
             if weights else "[library][query row][neighbour]")  # fmt: skip
    return Usage(
        problem=_PROBLEM,
        derived={
            "front": str(front),
            "library_stride": "front + round_up(n_library + 32, 16)",
            "query_stride": "front + round_up(n_query + 32, 16)",
            "n_rows": "n_query",
            "j_begin": f"max(max({(dims[0] - 1) * tau}, -Tp), 0)",
            "j_end": "max(min(n_library, n_library - Tp), 0)",
            "searched": "max(j_end - j_begin, 1)",
            "n_tiles": f"ceil_div(n_query, {rows})",
            "table_rows": f"round_up(n_query, {v['lanes'] if weights else 1})",
            "rows_per_slot": "table_rows * n_series",
            "enough": f"odd(max({5 * max(counts) // 2 + 4}, 15))",
            "most": "enough * 4 / 3",
            **_bound(v),
        },
        numbers={"first_library": "0", "task_begin": "0", "task_end": "n_tiles * n_series"},
        meanings={
            **_MEANINGS,
            "library": f"series whose rows are searched: {where}; {ends}",
            "query": f"series whose rows ask: {where}; may be the library where j_end is n_library",
            "penalty_of": "0 for a library row that may be a neighbour, else 1e32" if v["masked"] else "not read",
            "j_end": f"one past the last library row that may be a neighbour; {ends}",
            "out_row": f"rows of the neighbours, nearest first: {place}, one dimension E behind another",
            "out_value": ("weights exp(-d / d_nearest), their sum 1; 0 where there is no neighbour" if weights else
                          "squared distances; 3e38 and the row -1 where there is no neighbour") + f": {place}",
        },
        elements={
            "library": f"n_series * library_stride + {8 * tau}", "query": f"n_series * query_stride + {8 * tau}",
            "penalty_of": "n_library + 32" if v["masked"] else "1",
            "out_row": f"{sum(strides)} * rows_per_slot", "out_value": f"{sum(strides)} * rows_per_slot",
            "scratch": f"groups * {buffers * (2 * sum(v['capacities']) + hot)}",
        },
        work_items=(f"groups * {v['wg']}",),
        local_size=(v["wg"],),
        rules=(
            "Equal distances are ordered by row: the smaller one comes first.",
            "A missing value is 1e16; a state with one is nobody's neighbour and has none.",
            "Values must have magnitudes of at most 1e13. A squared distance adds its lags in ascending order, each "
            "with one rounding (fma), so that results have the same bits on every device.",
        ),
    )  # fmt: skip


KNN = KernelSpec(
    name="knn",
    producer="mako",
    text="knn.cl.mako",
    arguments="""
        knn(const real* library, query, penalty_of; int library_stride, query_stride, front, n_rows, j_begin, j_end,
            groups_per_tile, groups_per_round, exclusion_radius, n_tiles, first_library, task_begin, task_end;
            int* out_row; real* out_value; int table_rows; ulong rows_per_slot; whole* scratch)
    """,
    specialisation=("dims", "counts", "tau", "dtype", "emit", "masked", "capacities", "merged", "sharers"),
    tunables=(
        Tunable("lanes", (1, 4, 8, 16), {"cpu": 16, "gpu": 1}, "query rows of a work-item; a SIMD register on CPUs"),
        Tunable("wg", (1, 32, 64, 128, 256), {"cpu": 1, "gpu": 128}, "work-items of a group; they share a tile"),
        Tunable("unroll", (1, 2, 4, 8, 16), {"cpu": 4, "gpu": 8}, "library rows per step: independent chains"),
        Tunable(
            "tile",
            (0, 256, 512, 1024, 2048, 4096, 8192),
            {"cpu": 0, "gpu": 2048},
            "library rows staged in local memory; 0: none",
        ),
        Tunable(
            "bound_share",
            (1, 2, 3, 4, 8),
            {"cpu": 1, "gpu": 1},
            "one in `bound_share` library tiles (or steps) is swept for the bound",
        ),
        Tunable(
            "hot",
            (32, 64, 128, 256, 512),
            {"cpu": 64, "gpu": 256},
            "rows that a scalar work-item notes before it compares them again",
        ),
        Tunable("dims_per_pass", (3, 5, 7, 10, 20, 32), {"cpu": 32, "gpu": 20}, "dimensions E that share one sweep"),
        Tunable("groups_per_unit", (2, 3, 4, 6, 8, 12, 16), {"cpu": 4, "gpu": 6}, "work-groups per compute unit"),
        Tunable("list_registers", (4, 8, 12, 24), {"cpu": 8, "gpu": 24}, "longest sorted list kept in registers"),
    ),
    constraints=(
        Constraint(lambda v: v["tile"] == 0 or v["lanes"] == 1, "a staged tile is shared by scalar work-items"),
        Constraint(
            lambda v: v["tile"] == 0 or (v["unroll"] % 4 == 0 and v["tile"] % v["unroll"] == 0),
            "staged rows are read four at a time, so steps must be multiples of four and fill the tile",
        ),
        Constraint(
            lambda v: all(
                c >= k + v["unroll"] and c % 4 == 0 for c, k in zip(v["capacities"], v["counts"], strict=True)
            ),
            "a buffer must hold k candidates and one step more, and sorting reads it four at a time",
        ),
        Constraint(
            lambda v: v["lanes"] > 1 or not v.get("lists_in_registers") or max(v["counts"]) <= v["list_registers"],
            "this device gets sorted lists of scalar work-items in memory wrong: keep them in registers",
        ),
        Constraint(
            lambda v: v["sharers"] == 1 or (v["lanes"] == 1 and v["wg"] % v["sharers"] == 0),
            "a group of scalar work-items holds all that share a query row",
        ),
        Constraint(lambda v: v["hot"] > v["unroll"], "rows of a step must fit behind those noted before"),
        Constraint(lambda v: len(v["dims"]) == len(set(v["dims"])) == len(v["counts"]), "one count for each dimension"),
    ),
    oracle="pyedmcl.reference.edm:knn_float32_exact",
    usage=_usage,
)


# The k nearest neighbours within each of many windows that overlap, from distances that are found once.


WINDOW_KNN = KernelSpec(
    name="window_knn",
    producer="mako",
    text="window_knn.cl.mako",
    arguments="""
        window_knn(const real* series; int stride, front; const int* starts; int width, lost, radius;
            const int* cover; int n_tiles, n_libraries, task_begin, task_end, first, last; int* out_row;
            real* out_value; ulong table_begin; int table_rows, k_stride, tile; whole* kept; int most)
    """,
    launches="""
        window_knn | groups | 1
          series: n_libraries * stride
          starts: n_windows
          cover: 2 * n_tiles
          out_row, out_value: table_begin + (last - first) * table_rows * k_stride
          kept: groups * most * 2 * k * lanes
    """,
    specialisation=("E", "tau", "k", "lanes", "dtype"),
    oracle="pyedmcl.reference.edm:knn_float32_exact",
)


# The k nearest of an index's candidates, with the bits of the exhaustive search.


CANDIDATES = KernelSpec(
    name="candidates",
    producer="mako",
    text="candidates.cl.mako",
    arguments="""
        candidates(const real* library; ulong library_first; const real* query; ulong query_first;
            int tau, E, begin, n, m, exclusion_radius; int* rows; real* squared; const real* limit; uchar* open;
            const int* query_rows; int k, stride, tile, spare; ulong table; int* out_row; real* out_value)
        tabulate(const int* rows; real* squared; int n, k, stride, tile, spare; ulong table; int* out_row;
            real* out_value)
        nothing(const int* query_rows; int n, k; int* out_row; real* out_value)
    """,
    launches="""
        candidates | n | any
          library: library_first + n_steps_held
          query: query_first + n_query_steps
          rows, squared: n * m
          limit, open, query_rows: n
          out_row, out_value: table + round_up(n_query_steps, tile) * stride
        tabulate | n | any
          rows, squared: n * k
          out_row, out_value: table + round_up(n, tile) * stride
        nothing | n | any
          query_rows: n
          out_row, out_value: n_query_steps * k
    """,
    specialisation=("dtype", "emit"),
    oracle="pyedmcl.reference.edm:knn_float32_exact",
)


# The k nearest neighbours by a sweep over all pairs that shares sums along diagonals: many dimensions, many states.


SHARED_SUMS = KernelSpec(
    name="shared_sums",
    producer="mako",
    text="shared_sums.cl.mako",
    arguments="""
        shared_sums(const real* library, query; ulong library_first, query_first; const uchar* library_mask, query_mask;
            int n_query, first, last, exclusion_radius, begin; int* out_row; real* out_value)
    """,
    launches="""
        shared_sums | groups * wg | wg
          library: library_first + n_steps_held
          query: query_first + n_query
          library_mask: n_steps_held + side * tau
          query_mask: n_query + side * tau
          out_row, out_value: n_query * k
    """,
    specialisation=("E", "tau", "k", "dtype", "side"),
    tunables=(
        Tunable("lanes", (1, 4, 8, 16), {"cpu": 16, "gpu": 1}, "blocks of queries of a work-item; a SIMD register"),
        Tunable("wg", (1, 32, 64, 128, 256), {"cpu": 1, "gpu": 256}, "work-items of a group"),
    ),
    constraints=(Constraint(lambda v: 1 <= v["side"] <= v["E"], "pairs of a diagonal must have squares in common"),),
    oracle="pyedmcl.reference.edm:knn_float32_exact",
)


# States into an order in space, with boxes around blocks of them: what the pruned search walks through.


PRUNED_ORDER = KernelSpec(
    name="pruned_order",
    producer="mako",
    text="pruned_order.cl.mako",
    arguments="""
        project(const real* series; ulong first; const int* rows; int n, E, tau; real centre, rounding;
            const real* basis; real* coordinates; int* id)
        axes_of(const real* coordinates; int n; const int* id; int log_size, nodes; int* axis; real* place)
        keys_of(const real* coordinates; int n; const int* id; int log_size, place_bits; const int* axis;
            const real* place; uint* key)
        count(const uint* key; int n, shift, parts; int* counts)
        scan(int* counts; int total)
        scatter(const uint* key; const int* id; int n, shift, parts; const int* counts; uint* new_key; int* new_id)
        gather(const int* rows, id; const real* coordinates; int n, padded; int* row; real* ordered)
        leaf_boxes(const int* row; const real* ordered; int n, padded, parents; real* boxes; int* first_row)
        upper_boxes(real* boxes; int* first_row; int below, nodes, here, parents)
    """,
    launches="""
        digits = select(bits > 4, 256, 16)
        scanners = select(wg > 127, 256, wg)
        project | n | any
          series: first + n_steps_held
          rows, id: n
          basis: E * axes
          coordinates: n * (axes + 1)
        axes_of | nodes | any
          coordinates: n * (axes + 1)
          id: n
          axis: nodes
          place: 2 * nodes
        keys_of | n | any
          coordinates: n * (axes + 1)
          id, key: n
          axis: n_nodes
          place: 2 * n_nodes
        count | parts * wg | wg
          key: n
          counts: parts * digits
        scan | scanners | scanners
          counts: total
        scatter | parts * wg | wg
          key, id, new_key, new_id: n
          counts: parts * digits
        gather | padded | any
          rows, id: n
          coordinates: n * (axes + 1)
          row: padded
          ordered: padded * (axes + 1)
        leaf_boxes | parents * 16 | any
          row: padded
          ordered: padded * (axes + 1)
          boxes: parents * 32 * axes
          first_row: parents * 16
        upper_boxes | parents * 16 | any
          boxes: (here + parents) * 32 * axes
          first_row: (here + parents) * 16
    """,
    specialisation=("dtype", "axes", "leaf"),
    tunables=(
        Tunable("wg", (1, 64, 128, 256), {"cpu": 1, "gpu": 128}, "work-items of a group that sorts a part"),
        Tunable("each", (4, 8, 16, 32, 4096, 16384), {"cpu": 4096, "gpu": 8}, "states of a work-item in a pass"),
        Tunable("bits", (4, 8), {"cpu": 8, "gpu": 4}, "bits of a digit; each work-item counts every digit"),
    ),
    constraints=(
        Constraint(lambda v: v["wg"] << v["bits"] <= 8192, "counters of a group take 32 kB of local memory at most"),
        Constraint(
            lambda v: v["wg"] == 1 or v["each"] <= 32, "a group's work-items hold their states' keys in registers"
        ),
    ),
    oracle="pyedmcl.reference.edm:knn_float32_exact",
)


# The k nearest neighbours of a delay embedding, exact, without looking at every pair.


PRUNED = KernelSpec(
    name="pruned",
    producer="mako",
    text="pruned.cl.mako",
    arguments="""
        pruned(const real* library, query; ulong library_first, query_first; const int* library_row; int n_library;
            const real* boxes; const int* first_row, query_row; const real* query_at; int n_padded, exclusion_radius,
            begin, step, most_leaves; int* out_row; real* out_value; int* visited)
    """,
    launches="""
        pruned | groups * wg | wg
          library: library_first + n_steps_held
          query: query_first + n_query_steps
          library_row: n_library_padded
          boxes: n_nodes * 32 * axes
          first_row: n_nodes * 16
          query_row: n_padded
          query_at: n_padded * (axes + 1)
          out_row, out_value: n_query_steps * k
          visited: begin + (groups - 1) * step + 1
    """,
    specialisation=("E", "tau", "k", "dtype", "axes", "excluding"),
    tunables=(
        Tunable("lanes", (1, 4, 8, 16), {"cpu": 16, "gpu": 1}, "queries of a work-item; a SIMD register on CPUs"),
        Tunable("wg", (1, 32, 64, 128), {"cpu": 1, "gpu": 32}, "work-items of a group; they walk together"),
        Tunable("leaf", (8, 16, 32, 64), {"cpu": 16, "gpu": 16}, "states of a leaf; smaller ones prune more"),
        Tunable("unroll", (2, 4, 8), {"cpu": 4, "gpu": 4}, "library rows per step: independent chains"),
        Tunable("list_registers", (4, 8, 12, 24), {"cpu": 24, "gpu": 24}, "longest list unrolled in registers"),
    ),
    constraints=(
        Constraint(lambda v: v["wg"] == 1 or v["lanes"] == 1, "a group shares its walk among scalar work-items"),
        Constraint(lambda v: v["leaf"] % v["unroll"] == 0, "steps must fill a leaf"),
    ),
    oracle="pyedmcl.reference.edm:knn_float32_exact",
)

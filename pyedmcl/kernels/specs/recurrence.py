"""Specs of recurrence quantification: bits, lines, images, order statistics, networks, windows and batches."""

from __future__ import annotations

from ..kernel_spec import Constraint, KernelSpec, Tunable, Usage, Values

# Recurrence bits: cells of a tile, 32 along a diagonal to a word.


_PROBLEM = {
    "n_rows": "points of x, the rows of the matrix", "n_columns": "points of y",
    "i0": "first row of the tile, a multiple of 32",
    "k0": "first diagonal of the tile, a multiple of 32 from -round_up(n_rows - 1, 32) on; cell (i, i + k)",
    "n_words": "words of 32 rows of the tile", "n_diagonals": "diagonals of the tile, a multiple of 32",
    "theiler": "diagonals |k| below it are left white",
}  # fmt: skip
_MEANINGS = {
    "x_stride": "columns of x", "y_stride": "columns of y", "y_front": "column of y's first value",
    "i0": "first row", "k0": "first diagonal", "n_words": "words of 32 rows", "n_diagonals": "diagonals",
    "limit_stride": "columns of limits, where columns have their own",
    "theiler": "white diagonals |k| < theiler",
    "i_end": "rows from it on are left white", "n_columns": "points of y",
    "n_radii": "radii",
}  # fmt: skip


# What a radius is compared as, and what points must be, of the metrics that compare no plain radius and plain points.
_COMPARED = {
    "euclidean": "the square of the radius",
    "cosine": "twice the radius; points must come embedded, and divided by their length",
}


def _arguments(v: Values) -> str:
    deciding = "double" if v["exact"] else "real"  # the type of what decides open cells
    several = "; int n_radii" if v["n_radii"] > 1 else ""
    return f"""
        recurrence_bits(const real* x, y; const {deciding}* x64, y64; const real* limits; const {deciding}* limits64;
            int x_stride, y_stride, y_front, i0, k0, n_words, n_diagonals, limit_stride, theiler, i_end, n_columns;
            uint* bits, rows{several})
    """


def _usage(v: Values) -> Usage:
    reach = 0 if v["embedded"] else (v["m"] - 1) * v["tau"]
    coordinates, several = v["coordinates"], v["n_radii"] > 1
    largest = "1.797e308" if v["dtype"] == "float64" else "3.4028e38"
    limits = f"radius by radius, in the unit of what is compared: {_COMPARED.get(v['metric'], 'the radius')}"
    if v["per_column"]:
        limits = "of each column, which lies where the column does in y, -1 elsewhere"
    if v["exact"]:
        limits += "; two of them: what is surely below, and what may be"
    elements = "y_stride" if v["per_column"] else str(v["n_radii"])
    kinds = v["limits_per_radius"]
    deciding_kinds = 2 if v["corridor"] else 1
    words = f"n_words * n_diagonals * {v['n_radii']}"
    return Usage(
        problem=_PROBLEM,
        derived={
            "edge": "max(32 * n_words, n_diagonals)",
            "y_front": "round_up(max(edge, n_rows), 32) + 64",
            "x_stride": f"n_rows + {reach} + 2 * edge + {reach + 1536}",
            "y_stride": f"y_front + n_columns + {reach} + n_rows + 2 * edge + {reach + 1536}",
            "i_end": "n_rows",
            "limit_stride": "y_stride" if v["per_column"] else "0",
        },
        numbers={"n_radii": str(v["n_radii"])} if several else {},
        meanings={
            **_MEANINGS,
            "x": f"[coordinate][x_stride]: the rows' values from column 0 on, {largest} behind them and where one is "
                 "missing",
            "y": f"[coordinate][y_stride]: the columns' values from column y_front on, -{largest} around them and "
                 "where one is missing",
            "x64": "x in float64" if v["exact"] else "not read; give x",
            "y64": "y in float64" if v["exact"] else "not read; give y",
            "limits": f"limits {limits}",
            "limits64": "the outer limit in float64" if v["exact"] else "not read; give limits",
            "bits": "[radius][word][diagonal]: bit r of word w of diagonal k is the cell (i0 + 32 w + r, "
                    "i0 + 32 w + r + k0 + k); words whose blocks lie behind the last column are not written",
            "rows": "words along rows" if v["transposed"] else "not written; any buffer",
        },
        elements={
            "x": f"{coordinates} * x_stride", "y": f"{coordinates} * y_stride",
            "x64": f"{coordinates} * x_stride", "y64": f"{coordinates} * y_stride",
            "limits": f"{kinds} * {elements}", "limits64": f"{deciding_kinds} * {elements}",
            "bits": words, "rows": words,
        },
        work_items=(f"ceil_div(n_diagonals, {v['wg'] * v['lanes']}) * {v['wg']}", f"ceil_div(n_words, {v['words']})"),
        local_size=(v["wg"], 1),
        rules=(
            "A distance equal to the radius is " + ("not recurrent." if v["strict"] else "recurrent."),
            "A missing value recurs with nothing: x and y mark it with numbers of opposite sign.",
            "Terms of a distance are added in the order of the lags, each product and sum rounded for itself, so that "
            "cells are the same on every device.",
        ),
    )  # fmt: skip


RECURRENCE_BITS = KernelSpec(
    name="recurrence_bits",
    producer="mako",
    text="recurrence_bits.cl.mako",
    arguments=_arguments,
    specialisation=(
        "m", "tau", "metric", "dtype", "embedded", "exact", "strict", "corridor", "per_column", "second_partner",
        "n_radii", "limits_per_radius", "coordinates",
    ),
    tunables=(
        Tunable("wg", (1, 32, 64, 128, 256), {"cpu": 1, "gpu": 128}, "work-items of a group, side by side"),
        Tunable("lanes", (1, 4, 8, 16), {"cpu": 16, "gpu": 1}, "diagonals of a work-item; a SIMD register on CPUs"),
        Tunable("words", (1, 2, 4, 8, 16, 32), {"cpu": 32, "gpu": 8}, "words of 32 rows that a group goes through"),
        Tunable("staged", (False, True), {"cpu": False, "gpu": True}, "keep a group's values in local memory"),
        Tunable("transposed", (False, True), {"cpu": False, "gpu": True}, "make words along rows, without a launch"),
        Tunable("most_shared", (0, 64, 96), {"cpu": 96, "gpu": 96}, "terms kept for a word; more are found anew"),
        Tunable(
            "edge", (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072), {"cpu": 4096, "gpu": 65536},
            "rows and diagonals of a tile",
        ),
    ),
    constraints=(
        Constraint(lambda v: not v["staged"] or v["lanes"] == 1, "staged values are read by scalar work-items"),
        Constraint(
            lambda v: not v["transposed"] or (v["lanes"] == 1 and v["wg"] % 32 == 0),
            "blocks of 32 words are transposed by a group of scalar work-items",
        ),
        Constraint(lambda v: v["dtype"] == "float32" or not v["exact"], "sweeps in float64 are exact already"),
        Constraint(lambda v: not v["per_column"] or v["n_radii"] == 1, "columns have one limit each"),
        Constraint(lambda v: not (v["per_column"] and v["corridor"]), "a corridor is one for all columns"),
        Constraint(lambda v: v["edge"] % 32 == 0, "tiles hold whole words"),
    ),
    oracle="pyedmcl.reference.recurrence:recurrence_matrix",
    usage=_usage,
)


# Words of recurrence bits along diagonals transposed into words along rows and along columns.


RECURRENCE_TRANSPOSE = KernelSpec(
    name="recurrence_transpose",
    producer="mako",
    text="recurrence_transpose.cl.mako",
    arguments="""
        transpose_to_rows(const uint* bits; uint* rows; int n_words, n_diagonals, columns_left; ulong begin)
        transpose_to_columns(const uint* rows; uint* columns; int n_words, n_diagonals, columns_left, own_diagonal;
            ulong begin)
    """,
    launches="""
        staged_group = select(staged, wg, 0)
        transpose_to_rows | n_diagonals / 32; n_words | any
          bits, rows: begin + n_words * n_diagonals
        transpose_to_columns | select(staged, round_up(n_diagonals / 32 + 1, wg), n_diagonals / 32 + n_words);
          n_words | staged_group; 1
          rows: begin + n_words * n_diagonals
          columns: n_words * (n_diagonals + 32 * n_words)
    """,
    specialisation=(),
    tunables=(
        Tunable("wg", (1, 32, 64, 128), {"cpu": 1, "gpu": 64}, "work-items of a group, a block each"),
        Tunable("staged", (False, True), {"cpu": False, "gpu": True}, "blocks pass through local memory"),
    ),
    oracle="pyedmcl.reference.recurrence:recurrence_matrix",
)


# Lines of a tile of recurrence bits, joined with those of earlier tiles.


RECURRENCE_LINES = KernelSpec(
    name="recurrence_lines",
    producer="mako",
    text="recurrence_lines.cl.mako",
    arguments="""
        recurrence_lines(const uint* bits, rows, columns; int n_words, n_diagonals, i0, k0, n_rows, n_columns,
            k_first, k_end, theiler, groups_diagonals, groups_rows; int* diagonal_segments, row_segments,
            column_segments;
            uint* histograms; int longest; ulong bits_begin)
        recurrence_fold(uint* counts; ulong* sums; int n)
        recurrence_clear(int* segments; ulong n)
        recurrence_zero(uint* numbers; ulong n)
    """,
    launches="""
        recurrence_lines | (groups_diagonals + groups_rows + ceil_div(n_diagonals + 32 * n_words, wg * lanes)) * wg | wg
          bits, rows: bits_begin + n_words * n_diagonals
          columns: n_words * (n_diagonals + 32 * n_words)
          diagonal_segments: 5 * (k_end - k_first)
          row_segments: select(groups_rows > 0, 5 * n_rows, 1)
          column_segments: 5 * n_columns
          histograms: 4 * (longest + 1)
        recurrence_fold | n | any
          counts, sums: n
        recurrence_clear | n | any
          segments: 5 * n
        recurrence_zero | n | any
          numbers: n
    """,
    specialisation=(),
    tunables=(
        Tunable("wg", (1, 32, 64, 128, 256), {"cpu": 1, "gpu": 256}, "work-items of a group; they share histograms"),
        Tunable("lanes", (1, 4, 8, 16), {"cpu": 16, "gpu": 1}, "lines of a work-item, side by side"),
        Tunable("batch", (1, 2, 4, 8, 16), {"cpu": 1, "gpu": 8}, "words of a line that are loaded together"),
        Tunable(
            "bitwise",
            (0, 1, 2, 3, 4),
            {"cpu": 0, "gpu": 2},
            "runs of up to this many cells are counted by bit operations on a whole word",
        ),
        Tunable("bins", (64, 256, 512, 1024, 2048), {"cpu": 1024, "gpu": 1024}, "line lengths counted in local memory"),
    ),
    constraints=(
        Constraint(lambda v: v["lanes"] == 1 or v["bitwise"] == 0, "lanes of a vector list their edges one by one"),
        Constraint(lambda v: v["lanes"] == 1 or v["batch"] == 1, "lanes of a vector load their words together"),
    ),
    oracle="pyedmcl.reference.recurrence:line_counts",
)


# The ends of all lines of a recurrence matrix, once it is known whole.
#
# A thousandth of the work: nothing of it is tuned, so it is none of :data:`pyedmcl.kernels.NAMES`.


RECURRENCE_FINISH = KernelSpec(
    name="recurrence_finish",
    producer="mako",
    text="recurrence_finish.cl.mako",
    arguments="""
        finish_diagonals(const int* segments; ulong n; long k_first; int theiler; uint* lengths)
        finish_join(int* a; const int* b; ulong n, first, held; long k_first; int theiler, verticals; uint* counts;
            ulong n_lengths)
        finish_columns(int* columns; const int* rows; int n, n_rows, symmetric; uint* counts; ulong n_lengths;
            ulong* totals)
        finish_begin(uint* counts; int* longest; ulong n)
        finish_end(const uint* counts; ulong* sums; int* longest; ulong n)
    """,
    launches="""
        finish_diagonals | groups * wg | wg
          segments: 5 * n
          lengths: 4 * n_lengths_held
        finish_join | groups * wg | wg
          a: 5 * n
          b: 5 * held
          counts: 4 * n_lengths
        finish_columns | groups * wg | wg
          columns: 5 * n
          rows: select(symmetric, 5 * n, 1)
          counts: 4 * n_lengths
          totals: 5 * groups
        finish_begin | n | any
          counts: 4 * n
          longest: 4
        finish_end | groups * wg; 4 | wg; 1
          counts, sums: 4 * n
          longest: 4
    """,
    specialisation=("wg",),
    oracle="pyedmcl.reference.recurrence:line_counts",
)


# Recurrent cells, or the sum of distances, per pixel of a recurrence plot: no matrix, whatever the length.


MOST_COLUMNS = 8192  # of a group: each has a place in local memory


def _recurrence_image_arguments(v: Values) -> str:
    sides = ("limit", "inner") if v["corridor"] else ("limit",)
    sweeps = (0, 1) if v["exact"] else (0,)  # limits that surely hold, and that may hold
    names = [f"{side}{sweep}" for side in sides for sweep in sweeps]
    if v["mode"] == "mean":
        declared = ["real scale"]
    elif v["per_column"]:
        declared = ["const real* " + ", ".join(f"{name}s" for name in names)]
    else:
        declared = ["real " + ", ".join(names)]
    if v["listed"]:
        declared.append("int4* open_cells; uint* n_open")
    elif v["exact"]:
        declared.append("const double* rows64, columns64")
        declared.append("const double* limits64" if v["per_column"] else "double limit64")
        declared += ["double inner64"] if v["corridor"] else []
    return f"""
        recurrence_image(const real* rows; int row_stride; const real* columns; int column_stride, n_columns;
            const int4* pieces; int piece_begin, piece_end, per_group, chunk_begin, pixels, symmetric; uint* image;
            {"; ".join(declared)})
        clear_image(uint* image; ulong n)
    """


RECURRENCE_IMAGE = KernelSpec(
    name="recurrence_image",
    producer="mako",
    text="recurrence_image.cl.mako",
    arguments=_recurrence_image_arguments,
    launches="""
        chunk_columns = wg * lanes * vectors
        pixel_words = select(wide, 2, 1)
        series_of_points = select(embedded, m, 1)
        clear_image | n | any
          image: n
        recurrence_image | (ceil_div(n_columns, chunk_columns) - chunk_begin) * wg;
          ceil_div(piece_end - piece_begin, per_group) | wg; 1
          rows, rows64: series_of_points * row_stride
          columns, columns64: series_of_points * column_stride
          pieces: 4 * piece_end
          image: rows_here * pixels * pixel_words
          open_cells: 4 * room
          n_open: 1
          limit0s, limit1s, inner0s, inner1s, limits64, inners64: n_columns
    """,
    specialisation=("m", "tau", "metric", "dtype", "mode", "embedded", "exact", "corridor", "per_column",
                    "listed", "wide"),
    tunables=(
        Tunable("wg", (1, 2, 32, 64, 128, 256), {"cpu": 1, "gpu": 128}, "work-items of a group, side by side"),
        Tunable("lanes", (1, 4, 8, 16), {"cpu": 16, "gpu": 1}, "columns of a SIMD vector"),
        Tunable("vectors", (1, 2, 4, 8, 16), {"cpu": 4, "gpu": 4}, "vectors of a work-item: they share a row's value"),
        Tunable("tile", (32, 64, 128, 256, 512), {"cpu": 128, "gpu": 128}, "rows between two looks at the open cells"),
        Tunable("staged", (0, 1), {"cpu": 0, "gpu": 1}, "whether a group stages its rows in local memory"),
        Tunable("piece", (256, 512, 1024, 2048), {"cpu": 1024, "gpu": 1024}, "rows of a group, about"),
    ),
    constraints=(
        Constraint(
            lambda v: v["wg"] * v["lanes"] * v["vectors"] <= MOST_COLUMNS,
            f"a group has at most {MOST_COLUMNS} columns (wg * lanes * vectors)",
        ),
        Constraint(lambda v: v["mode"] in ("count", "mean"), "mode is 'count' or 'mean'"),
        Constraint(
            lambda v: not v["exact"] or (v["dtype"] == "float32" and v["mode"] == "count"),
            "only counts swept in float32 are decided in float64 afterwards",
        ),
        Constraint(lambda v: v["exact"] or not v["listed"], "only open cells are listed"),
        Constraint(lambda v: v["mode"] == "count" or v["wide"], "sums need the wide image"),
        Constraint(lambda v: not (v["corridor"] and v["per_column"]), "a corridor is one for all columns"),
    ),
    oracle="pyedmcl.reference.recurrence:recurrence_counts",
)


# Cells of a recurrence matrix at or below a few limits, counted per column; distances between two limits.


RECURRENCE_RANKS = KernelSpec(
    name="recurrence_ranks",
    producer="mako",
    text="recurrence_ranks.cl.mako",
    arguments="""
        recurrence_ranks(const real* x, y, limits; uint* counts; int row_begin, row_end, column_begin, n_columns,
            window, lower)
        recurrence_gather(const real* x, y, limits; uint* counts; real* found; int* filled; int bands, capacity,
            row_begin, row_end, n_columns, window, lower)
        recurrence_next(const real* x, y, lows; real* found; int row_begin, row_end, column_begin, n_columns, window,
            lower)
    """,
    launches="""
        reach_of_point = (m - 1) * step
        recurrence_ranks | round_up(n_columns, wg) | wg
          x: (row_end - 1) * stride + reach_of_point + 1
          y: (column_begin + n_columns - 1) * stride + reach_of_point + 1
          limits: select(per_column, n_columns, 1) * candidates
          counts: n_columns * candidates
        recurrence_gather | round_up(n_columns, wg) | wg
          x: (row_end - 1) * stride + reach_of_point + 1
          y: (n_columns - 1) * stride + reach_of_point + 1
          limits: 2 * bands
          counts: 2 * bands * n_columns
          found: bands * capacity
          filled: bands
        recurrence_next | round_up(n_columns, wg) | wg
          x: (row_end - 1) * stride + reach_of_point + 1
          y: (n_columns - 1) * stride + reach_of_point + 1
          lows: n_columns
          found: n_columns * next
    """,
    specialisation=("m", "step", "stride", "metric", "dtype", "per_column"),
    tunables=(
        Tunable("wg", (16, 32, 64, 128, 256), {"cpu": 16, "gpu": 64}, "work-items of a group, a column each"),
        Tunable("candidates", (7, 15, 31), {"cpu": 15, "gpu": 15}, "limits counted at once; more mean fewer sweeps"),
        Tunable("next", (1, 4, 8, 16), {"cpu": 8, "gpu": 8}, "distances of a column that the last sweep sorts"),
    ),
    oracle="pyedmcl.reference.recurrence:compared",
)


# Adjacency of a recurrence network as bits, and its triangles.


RECURRENCE_NETWORK = KernelSpec(
    name="recurrence_network",
    producer="mako",
    text="recurrence_network.cl.mako",
    arguments="""
        recurrence_network(const real* x; uint* bits; int row_begin, n, words, window; real limit)
        recurrence_triangles(const uint* bits; ulong* closed; int row_begin, words)
    """,
    launches="""
        reach_of_point = (m - 1) * step
        recurrence_network | round_up(words, wg); rows_here | wg; 1
          x: (n - 1) * stride + reach_of_point + 1
          bits: (row_begin + rows_here) * words
        recurrence_triangles | groups * wg | wg
          bits: n_values * words
          closed: groups
    """,
    specialisation=("m", "step", "stride", "metric", "dtype", "strict"),
    tunables=(Tunable("wg", (8, 16, 32, 64, 128, 256), {"cpu": 16, "gpu": 64}, "work-items of a group, a word each"),),
    oracle="pyedmcl.reference.recurrence:network",
)


# Recurrence quantification of overlapping windows, from bits that are evaluated once for all of them.


RECURRENCE_WINDOWS = KernelSpec(
    name="recurrence_windows",
    producer="mako",
    text="recurrence_windows.cl.mako",
    arguments="""
        column_bits(const real* x; uint* columns; int n, words, reach, dropped; real inner, outer; int word_begin)
        diagonal_bits(const real* x; uint* diagonals; int n, words, reach, dropped; real inner, outer;
            int word_begin)
        recurrence_windows(const uint* columns, diagonals; uint* histograms, per_column, per_diagonal; ulong* sums;
            int words, size, step, theiler, first_window)
    """,
    launches="""
        reach_of_point = (m - 1) * step
        column_bits | round_up(n, wg); rows_here | wg; 1
          x: (n - 1) * stride + reach_of_point + 1
          columns: n * words
        diagonal_bits | round_up(reach, wg); rows_here | wg; 1
          x: (n - 1) * stride + reach_of_point + 1
          diagonals: reach * words
        recurrence_windows | groups * counting_wg | counting_wg
          columns: ((first_window + groups - 1) * step + size) * words
          diagonals: size * words
          histograms: (first_window + groups) * 4 * (size + 1)
          per_column, per_diagonal: (first_window + groups) * size
          sums: (first_window + groups) * 4 * counting_wg
    """,
    specialisation=("m", "step", "stride", "metric", "dtype", "strict"),
    tunables=(
        Tunable("wg", (8, 16, 32, 64, 128, 256), {"cpu": 16, "gpu": 64}, "work-items of a group that evaluates cells"),
        Tunable("counting_wg", (1, 32, 64, 128, 256), {"cpu": 1, "gpu": 128}, "work-items that count a window's lines"),
    ),
    oracle="pyedmcl.reference.recurrence:line_counts",
)


# Recurrence quantification of many short matrices in a launch: each group takes one after the other.


RECURRENCE_BATCH = KernelSpec(
    name="recurrence_batch",
    producer="mako",
    text="recurrence_batch.cl.mako",
    arguments="""
        recurrence_batch(const real* x, y; const int* shapes; const real* limits; int step_x, step_y, theiler, dropped;
            uint* scratch; ulong scratch_words; int longest; uint* taken; uint end; ulong* heads; uint* lines;
            ushort* per_column, per_diagonal)
    """,
    launches="""
        recurrence_batch | groups * wg | wg
          x, y: n_values
          shapes, heads: 6 * end
          limits: select(screened, 6, 2) * end
          scratch: groups * scratch_words
          taken: 2
          lines, per_column, per_diagonal: room
    """,
    specialisation=("m", "metric", "dtype", "strict", "corridor", "symmetric", "screened", "embedded", "lanes", "wg"),
    constraints=(
        Constraint(lambda v: v["lanes"] > 1 or not v["screened"], "float32 screens cells in vectors only"),
    ),
    oracle="pyedmcl.reference.recurrence:line_counts",
)

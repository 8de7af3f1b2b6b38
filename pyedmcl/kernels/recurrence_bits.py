"""Recurrence bits: cells of a tile, 32 along a diagonal to a word."""

from ..codegen.spec import Constraint, KernelSpec, Tunable, Values
from ..codegen.usage import Usage

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


SPEC = KernelSpec(
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
    oracle="pyedmcl.reference.rqa:recurrence_matrix",
    usage=_usage,
)

"""Meanings of arguments and specialisations, and the tables of parameters at the head of the templates.

    python -m pyedmcl.kernels.describe --write
    python -m pyedmcl.kernels.describe --check    # ends with 1 and the names of templates whose table is not current

A table stands between two marker lines; a template without one gets it behind its first comment. Comments of Mako are
no part of a kernel's digest, so tuned parameters stay valid. This needs a checkout.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from . import FAMILIES
from . import spec as spec_of
from .kernel_spec import KernelSpec, Tunable

# What the values mean that kernels are specialised by, for the tables at the head of the templates.
#
# A word means the same in every kernel; where one kernel cannot help but use it otherwise, it has an entry of its own.


MEANINGS = {
    "E": "embedding dimension: values in a state",
    "axes": "principal axes along which states are put in order",
    "capacities": "entries (distance, row) that the buffer of a query row holds, for each dimension",
    "centred": "the regressors were centred on the query row",
    "coordinates": "coordinates of a state",
    "column_parts": "parts of a column's rows whose sums are made side by side",
    "corridor": "a cell counts between two radii, not up to one",
    "chunk": "rows of which a work-item adds up skill",
    "counts": "k of each dimension",
    "dims": "embedding dimensions that one pass searches, ascending",
    "dtype": "number type of data and distances: float32 or float64",
    "embedded": "a point is a row of several coordinates; else it is made of lags of one series",
    "emit": "what tables hold: neighbours, with squared distances, or weights",
    "exact": "cells that float32 cannot decide are decided in float64",
    "excluding": "rows near in time are no neighbours of each other (exclusion radius)",
    "gaps": "a library or target has gaps, so that not all rows count",
    "halves": "matrix units multiply numbers split into halves, with less precision; else they compute in double",
    "k": "number of neighbours",
    "lanes": "columns of a matrix that a work-item takes: a vector on processors",
    "leaf": "states of a leaf",
    "library_parts": "parts of a library's query rows that are counted side by side",
    "limited": "a fit takes the nearest rows only, a number of them",
    "limits_per_radius": "numbers that a distance is compared with for each radius",
    "listed": "open cells are listed, and decided on the host",
    "m": "coordinates of a point",
    "masked": "a library mask says which rows may be neighbours",
    "matrix_units": "products are made on matrix units",
    "local_sums": "between two chunks, local memory holds: 0 nothing; 1 the rounding errors of the sums; 2 the errors "
                  "and the sums",
    "merged": "row groups of the library that count as one in the bound, for each dimension",
    "metric": "distance of two points: a row of pyedmcl/recurrence/arguments.py",
    "mode": "what a pixel shows: count, the cells that are recurrent, or mean, the mean distance",
    "most_ratio": "square of what 16 bits may change rho by, in parts of the estimate's factor",
    "n_radii": "radii that are swept together; texts for several are alike",
    "penalised": "slopes are penalised (ridge)",
    "slopes": "the inverse of each row's system is written, for mean slopes",
    "per_column": "each column has a radius of its own",
    "regressors": "regressors of a fit, the intercept among them",
    "precision": "full; compact: targets of 16 bits; again: full, for the pairs that compact has marked",
    "rows": "query rows whose moments lie together",
    "screened": "nearly all cells are decided in float32, and the others in the precision of data",
    "second_partner": "the second series of a joint recurrence: its words are combined with those of the first",
    "sharers": "scalar work-items that share a query row, where there are few of these",
    "side": "pairs of a diagonal whose sums are taken together, and as many diagonals",
    "stage_rows": "rows of targets in local memory; 0: targets are read from the caches",
    "step": "numbers from one coordinate of a point to the next",
    "strict": "a cell is recurrent below the radius, not at it",
    "stride": "numbers from one point to the next",
    "symmetric": "rows and columns are the same points",
    "table_tile": "query rows of a tile of the neighbour tables",
    "narrow_rows": "the rows that tables name are numbers of 16 bits",
    "tau": "lag: rows between the values of a state",
    "wg": "work-items of a group",
    "wide": "a pixel has two words, for numbers of 64 bits",
}
#: (kernel, name) to what the name means there.
SPECIAL = {
    ("window_knn", "lanes"): "query rows of a work-item; a SIMD register on CPUs",
    ("lookup", "k"): "number of neighbours; 0: an argument, for maps of many dimensions with few targets each",
    ("recurrence_bits", "coordinates"): "series that a point is read from: one for each coordinate, or a single one",
}


def meaning(kernel: str, name: str) -> str:
    """What a value of a kernel's specialisation means."""
    return SPECIAL.get((kernel, name), MEANINGS[name])


# What the arguments of kernels mean, for who launches exported ones.
#
# A word means the same in every kernel; where a kernel cannot help but use it otherwise, it has an entry of its own,
# and so has one entry point of a program. The comments of the exported text say how buffers are laid out in full.


ARGUMENT_MEANINGS = {
    # Series and rows
    "E": "embedding dimension", "Tp": "steps from a row to what it predicts",
    "tau": "lag between the values of a state", "k": "number of neighbours",
    "raw": "series as they came, [step][series], NaN for gaps", "n_series": "series in raw",
    "series": "series, [series][stride], with gaps (1e15 and more) around the data", "n_steps": "rows of a series",
    "library": "series whose rows are neighbours", "query": "series whose rows ask", "n_query": "query rows",
    "library_stride": "elements from one library series to the next",
    "query_stride": "elements from one query series or coordinate to the next",
    "library_first": "element of row 0 of the library", "query_first": "element of row 0 of the query",
    "front": "column of row 0", "stride": "elements from one series, table or list to the next",
    "target_front": "column of row 0",
    "exclusion_radius": "rows as near in time are no neighbours of each other; -1: all may be",
    "radius": "rows as near in time are no neighbours of each other", "n": "entries that the launch works on",
    "n_rows": "rows", "n_library": "library rows or states", "n_libraries": "libraries",
    "first_library": "number of the first library", "first_series": "number of the first series",
    "begin": "first entry of the launch", "end": "one past the last entry of the launch",
    "first": "first row or element", "last": "one past the last", "t_begin": "first row that is predicted",
    "t_end": "one past the last row that is predicted",
    "n_all": "series of the whole call", "column_of": "column of each series",
    "centred": "whether series are shifted and scaled", "shift": "what is taken from each series or coordinate",
    "exponent": "binary exponent by which data were divided",
    "scored_from": "first row of each series that counts in its mean",
    "n_scored": "rows that count, or one past the last of them",
    # Tables of neighbours
    "rows": "rows of neighbours", "weights": "weights of neighbours", "squared": "squared distances",
    "distances": "distances", "indices": "rows of neighbours, -1 for none",
    "out_row": "rows of neighbours, nearest first", "out_value": "squared distances or weights of neighbours",
    "table": "element at which a table begins", "table_begin": "element at which tables begin",
    "table_rows": "query rows that a table has room for",
    "table_rows_per_slot": "query rows of the tables of a dimension",
    "rows_per_slot": "query rows of a dimension, of all series",
    "tile": "query rows whose entries lie side by side in a table", "spare": "row that stands for no neighbour",
    "k_stride": "entries of a query row in a table",
    "near": "rows of sorted neighbours, or library states for distances",
    "dist": "squared distances of sorted neighbours, then distances", "entries": "sorted neighbours of a query row",
    # Surrogates
    "keys": "two words of each random stream, of 32 surrogates, [series][stream][2]",
    "n_groups": "random streams of a series", "turns": "the 65,536 phases that there are, cosines and sines",
    "spectra": "magnitudes of the transforms of series", "each": "surrogates of a series",
    "amplitudes": "transforms of surrogates, [frequency from 1 on][draw][2]",
    "roots": "cosine and sine of each step of a turn", "of_series": "five numbers of each series",
    "bases": "what is added to each step of the surrogates of a series",
    "wanted": "1 where a pair is wanted, [library][span]", "span_of": "span of each column", "n_spans": "spans",
    "span_begins": "first column of each span, and the end of the last", "best": "highest rho so far, [library][width]",
    "own": "highest rho of the series itself, [library][span]", "reached": "surrogates that have as much",
    "valid": "surrogates that have a rho",
    "marked": "not 0 where the host has to transform", "picked": "transforms of some draws, [i][frequency][2]",
    "draws": "draws of the launch that are picked",
    # Candidates and searches
    "m": "candidates of a query row", "limit": "squared distance that rows which are no candidates have at least",
    "open": "1 where a row that is no candidate could be a neighbour",
    "library_mask": "1 for rows that may be neighbours", "query_mask": "1 for rows whose neighbours are sought",
    "library_row": "library rows in the order in space, -1 behind the last",
    "query_row": "query rows in the order in space, -1 behind the last",
    "query_at": "their coordinates, and roundings behind", "boxes": "[parent][axis][low, high][child]",
    "first_row": "smallest row below each child", "most_leaves": "leaves after which a tile stops",
    "visited": "leaves that each tile has computed", "coordinates": "coordinates of states along the axes",
    "id": "numbers of the states in their order", "basis": "axes, or regressors in terms of coordinates",
    "centre": "mean of the series", "rounding": "rounding of a value",
    "log_size": "binary logarithm of the states of a node", "nodes": "nodes of the level",
    "axis": "widest axis of each node", "place": "low end and inverse length of each node's axis",
    "place_bits": "bits of a key that say where a state lies", "key": "keys to sort by",
    "new_key": "keys after a step of the sort", "new_id": "states after that step", "parts": "parts of the states",
    "total": "counts of all parts", "padded": "states with those that fill the last leaf",
    "row": "rows in the order of the tree", "ordered": "coordinates in the order of the tree",
    "parents": "nodes whose children are made", "below": "first node of the level below",
    "here": "first node of this level", "starts": "first row of each window, ascending", "width": "rows of a window",
    "lost": "rows of a window before its first state", "cover": "first window and end, of each tile of rows",
    "task_begin": "first task", "task_end": "one past the last task", "n_tiles": "tiles of query rows",
    "kept": "working memory", "most": "windows of a tile at most",
    # Skill
    "targets": "targets, [row][target_stride]", "target_stride": "columns of targets",
    "target": "values that are predicted", "target_of": "place of each column in the result",
    "column_begin": "first column", "column_end": "one past the last column",
    "predicted": "predictions, NaN where there is none", "variance": "weighted spread of what neighbours lead to",
    "observed": "series that are compared with", "observed_of": "number of the observed series of each pair",
    "observed_stride": "elements from one observed series to the next",
    "observed_offset": "element of the first observed row", "pair_begin": "first pair", "n_pairs": "pairs",
    "n_chunks": "chunks of rows", "sums": "sums of which skill is made",
    "sums_stride": "elements from one sum to the next", "rho": "Pearson's rho", "rho_stride": "columns of rho",
    "out": "rho in the caller's array", "wrong": "counts answers that cannot be",
    "first_index": "first element of indices", "first_distance": "first element of distances",
    "first_out": "first element of out", "first_count": "first element of counts", "codes": "targets in 16 bits",
    "scales": "shift, scale and error of each column", "used": "how often each row is a neighbour",
    "repeats": "how often the same rows are", "n_predicted": "rows that are predicted",
    # Sub-libraries
    "columns": "columns, described by twelve numbers each", "n_columns": "columns",
    "rows_of": "lists of rows to draw from", "members": "a word for each row, a bit for each of 16 samples",
    "lists": "members of samples, ascending", "sample_of": "numbers of samples", "n_sampled": "samples of the launch",
    "n_scanned": "columns that are scanned", "most_choices": "rows to draw from at most",
    "future_targets": "what each row leads to", "future_stride": "elements from one future target to the next",
    "least": "members without which nothing is predicted",
    # S-map
    "states": "coordinates and regressors of library rows", "theta": "localisation", "thetas": "localisations",
    "n_thetas": "localisations", "penalty": "what is added to the matrix of a fit",
    "strength": "of the penalty, by library", "work": "working memory in double", "fits": "solved fits",
    "doubtful": "1 where a system is nearly singular", "records": "inverse, centre and reach of each fit",
    "slopes": "what each row adds to the mean slopes", "uses": "what rows are for, as bits",
    "uses_stride": "rows from one library's bits to the next",
    "series_stride": "elements from one series to the next", "lag": "elements from one value of a state to the next",
    "first_tile": "first tile of rows", "n_padded": "rows with those that fill the last vector",
    "query_rows": "row and radius of each query", "library_rows": "rows of the library, ascending",
    "regressors": "regressors and target of library rows", "query_z": "regressors of queries",
    "nearest_of": "distance of the nearest row", "rate_of": "one over the mean distance",
    "squared_of": "squared distance of the last neighbour", "row_of": "row of the last neighbour",
    "nearest": "distance of the nearest row", "rate": "one over the mean distance",
    "out_nearest": "distance of the nearest row", "out_rate": "one over the mean distance",
    "out_count": "rows that may be neighbours", "out_squared": "squared distance of the last neighbour",
    "row_steps": "steps of the search for a row", "n_parts": "parts of the library",
    "n_slots": "tiles of the first part", "n_head": "tiles that come in one part",
    "moments": "sums of products of regressors and target", "points": "data of the queries",
    "start": "element of the first state", "step": "elements from one state to the next",
    "unit": "scale of coordinates", "target_shift": "what is taken from targets", "target_unit": "factor of targets",
    "target_scale": "back to the unit of the target", "coefficients": "intercepts and slopes",
    # Recurrence
    "x": "points of the rows", "y": "points of the columns", "bits": "cells, 32 to a word",
    "words": "words of a line of cells", "n_words": "words of 32 rows", "n_diagonals": "diagonals of the tile",
    "i0": "first row of the tile", "k0": "first diagonal of the tile", "k_first": "first diagonal of the matrix",
    "k_end": "one past its last diagonal", "theiler": "diagonals nearer than that do not count",
    "groups_diagonals": "groups that walk diagonals",
    "groups_rows": "groups that walk rows; 0 where the matrix is not symmetric",
    "diagonal_segments": "what is known of the ends of diagonals", "row_segments": "of rows",
    "column_segments": "of columns", "histograms": "lines by kind and length",
    "longest": "longest line that is counted, or was found", "bits_begin": "first word of the radius",
    "numbers": "numbers that become 0", "segments": "what is known of the ends of lines",
    "lengths": "lines by length", "counts": "what is counted", "a": "ends of lines",
    "b": "ends of the same lines behind", "held": "lines that b has", "verticals": "whether they are columns or rows",
    "n_lengths": "lengths that are counted, with 0", "totals": "sums of each group",
    "symmetric": "whether rows and columns are the same points", "columns_left": "columns from the tile's first on",
    "own_diagonal": "0 where the tile holds the main diagonal of a symmetric matrix, else -1", "image": "pixels",
    "pieces": "row of pixels, first row, end, first row of pixels, of each piece", "piece_begin": "first piece",
    "piece_end": "one past the last piece", "per_group": "pieces of a group", "chunk_begin": "first chunk of columns",
    "pixels": "pixels of a row", "row_stride": "elements from one coordinate of rows to the next",
    "column_stride": "elements from one coordinate of columns to the next",
    "limit0": "radius, as distances are compared", "limit1": "other end of the guard band",
    "limit64": "radius in double", "limit0s": "radius of each column",
    "limit1s": "other end of the guard band of each column", "limits64": "radii in double", "inner0": "inner radius",
    "inner1": "other end of its guard band", "inner0s": "inner radius of each column",
    "inner1s": "other end of its guard band", "inner64": "inner radius in double",
    "inners64": "inner radii in double", "rows64": "rows in double", "columns64": "columns in double",
    "open_cells": "runs of cells that float32 cannot decide", "n_open": "how many runs",
    "scale": "steps of a fixed-point sum to a unit of distance", "closed": "pairs of linked neighbours of each row",
    "row_begin": "first row", "row_end": "one past the last row", "window": "cells nearer in time do not count",
    "limits": "radii", "lower": "whether only cells below the main diagonal count",
    "found": "distances that were found", "filled": "how many were found", "capacity": "how many there is room for",
    "bands": "intervals of distances",
    "lows": "distance above which the next ones are wanted, of each column", "reach": "diagonals of a window",
    "dropped": "diagonals nearer than that are white", "inner": "inner radius, -1 for none", "outer": "outer radius",
    "word_begin": "first word", "diagonals": "cells along diagonals", "size": "points of a window",
    "first_window": "first window", "per_column": "recurrent cells of each column",
    "per_diagonal": "recurrent cells of each diagonal",
    "shapes": "first point and points of both sides, and places in per_column and per_diagonal, of each matrix",
    "step_x": "elements from one coordinate of x to the next",
    "step_y": "elements from one coordinate of y to the next", "scratch": "working memory",
    "scratch_words": "words of a group's working memory",
    "taken": "matrices that were begun, and lengths that were written",
    "heads": "where a matrix's lengths begin and how many, and its sums", "lines": "length and count of lines",
}  # fmt: skip
#: (kernel or entry point, name) to what the name means there.
SPECIAL_ARGUMENT_MEANINGS = {
    ("deliver_skill", "begin"): "element of rho to begin with",
    ("deliver_skill", "most"): "magnitude that no correlation passes",
    ("transpose_to_rows", "begin"): "first word of the radius",
    ("transpose_to_columns", "begin"): "first word of the radius",
    ("candidates", "query_rows"): "query rows", ("pruned", "step"): "from one tile of queries to the next",
    ("recurrence_windows", "step"): "points from one window to the next",
    ("recurrence_network", "limit"): "radius, as distances are compared",
    ("count", "shift"): "lowest bit of the digit", ("scatter", "shift"): "lowest bit of the digit",
    ("compact_parts", "parts"): "what is known of parts of the rows",
    ("compact_scales", "parts"): "what is known of parts of the rows",
    ("compact_used", "parts"): "sums of parts of the rows", ("compact_repeats", "parts"): "sums of parts of the rows",
    ("waves", "begin"): "first draw of the launch: surrogate draw % each of series draw / each",
    ("waves", "end"): "one past the last draw of the launch", ("waves", "first"): "number of the first surrogate",
    ("waves", "stride"): "draws of the launch, rounded up to groups", ("waves", "series"): "series, [series][n_steps]",
    ("waves", "columns"): "column of the targets of each series",
    ("waves", "width"): "columns that hold series and surrogates",
    ("highest", "width"): "columns that hold series and surrogates",
    ("highest", "rho"): "rho of a lag, [library][width]", ("highest", "most"): "magnitude that no correlation passes",
    ("recurrence_finish", "columns"): "ends of columns", ("recurrence_finish", "rows"): "ends of rows",
    ("recurrence_image", "rows"): "points of the rows, gaps +inf",
    ("recurrence_image", "columns"): "points of the columns, gaps -inf, padded to whole chunks",
    ("recurrence_lines", "rows"): "cells along rows", ("recurrence_lines", "columns"): "cells along columns",
    ("recurrence_transpose", "rows"): "cells along rows", ("recurrence_transpose", "columns"): "cells along columns",
    ("recurrence_windows", "columns"): "cells along columns", ("smap_gram", "columns"): "states by columns",
    ("smap_map", "columns"): "states by columns", ("smap_slopes", "columns"): "states by columns",
    ("smap_white", "columns"): "states by columns", ("smap_scale", "out_row"): "row of the last neighbour",
    ("stage", "rows"): "query rows that are not predicted", ("project", "rows"): "rows of the states",
    ("gather", "rows"): "rows of the states", ("pruned_order", "counts"): "how often each digit occurs in each part",
    ("stage_library", "x"): "values of the library's states", ("stage_points", "x"): "values of the queries' states",
    ("recurrence_windows", "sums"): "period and gap, and how many, of each work-item",
    ("recurrence_fold", "sums"): "counts in 64 bits", ("finish_end", "sums"): "counts in 64 bits",
    ("window_knn", "first"): "first table", ("window_knn", "last"): "one past the last table",
    ("ccm", "t_begin"): "first row that is predicted", ("skill", "t_begin"): "first row of each pair",
    ("skill", "t_end"): "one past the last row of each pair", ("ccm", "library"): "library series",
    ("recurrence_image", "limit1"): "other end of the guard band", ("lookup_narrow", "narrow"): "the same in 16 bits",
    ("stage_series", "first"): "first series", ("finish_join", "first"): "first line that b has",
}  # fmt: skip

#: Numbers in formulas of launches that no argument says.
FREE = {
    "groups": "work-groups: parts of the work, which several launches may share",
    "libraries": "libraries of the launch",
    "lists": "rows of all lists together",
    "n_choices": "rows of all lists to draw from",
    "n_columns_held": "columns (sub-libraries) that there is room for",
    "n_libraries_held": "libraries that are held",
    "n_draws_held": "different draws of the columns that there is room for",
    "n_lengths_held": "lengths that are counted, with 0",
    "n_library_padded": "padded states of the library's order",
    "n_nodes": "nodes of the tree, with 16 children each",
    "n_query_steps": "rows of the query series, with those that have no state",
    "n_series_held": "series that are held",
    "n_steps_held": "rows of the library series, with those that have no state",
    "n_tables": "libraries of the tables at hand",
    "n_targets_held": "targets that are held",
    "n_values": "numbers of the data",
    "n_windows": "windows of the whole call",
    "room": "entries that there is room for; more are not written, or demand more room",
    "rows_here": "rows of the launch",
    "slots": "tiles whose moments are kept",
    "width": "columns of the launch",
}


def argument_meaning(kernel: str, entry: str, name: str) -> str:
    """What an argument of an entry point means."""
    return (
        SPECIAL_ARGUMENT_MEANINGS.get((entry, name))
        or SPECIAL_ARGUMENT_MEANINGS.get((kernel, name))
        or ARGUMENT_MEANINGS[name]
    )


#     python -m pyedmcl.kernels.describe --write
#     python -m pyedmcl.kernels.describe --check    # ends with 1 and the names of templates whose table is not current
#
# A table stands between two marker lines; a template without one gets it behind its first comment. Comments of Mako are
# no part of a kernel's digest, so tuned parameters stay valid. This needs a checkout.


TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
BEGIN = "## ---- parameters (python -m pyedmcl.kernels.describe --write) ----\n"
END = "## ---- end of parameters ----\n"
_WIDTH = 118


def specs() -> Iterator[KernelSpec]:
    """The specs of all templates."""
    for kernel in map(spec_of, sorted(FAMILIES)):
        if kernel.producer == "mako":
            yield kernel


def table(spec: KernelSpec) -> str:
    """The table of a kernel, with its markers; empty where a kernel has no parameters."""
    lines: list[str] = []
    names = [*spec.specialisation, *(tunable.name for tunable in spec.tunables)]
    if not names:
        return ""
    width = max(map(len, names))
    if spec.specialisation:
        lines.append("## Given by the problem:")
        for name in spec.specialisation:
            lines += _entry(name, meaning(spec.name, name), width)
    if spec.tunables:
        lines.append("## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):")
        for tunable in spec.tunables:
            lines += _entry(tunable.name, f"{tunable.why} ({_values(tunable)})", width)
    return BEGIN + "".join(line + "\n" for line in lines) + END


def _entry(name: str, text: str, width: int) -> list[str]:
    indent = "##   " + " " * width + "  "
    return textwrap.wrap(
        text, _WIDTH, initial_indent=f"##   {name:<{width}}  ", subsequent_indent=indent, break_on_hyphens=False
    )


def _values(tunable: Tunable) -> str:
    tried = " ".join(_shown(value) for value in tunable.values)
    return f"{tried}; {_shown(tunable.default['cpu'])}, {_shown(tunable.default['gpu'])}"


def _shown(value: object) -> str:
    return {"True": "yes", "False": "no"}.get(str(value), str(value))


def described(text: str, spec: KernelSpec) -> str:
    """A template with the table of its spec."""
    if BEGIN in text:
        before, _, rest = text.partition(BEGIN)
        _, _, after = rest.partition(END)
        return before + table(spec) + after
    lines = text.splitlines(keepends=True)
    head = next(number for number, line in enumerate(lines) if not line.startswith("##"))
    return "".join(lines[:head]) + table(spec) + "".join(lines[head:])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Tables of parameters at the head of the templates.")
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", action="store_true")
    mode.add_argument("--check", action="store_true")
    write = parser.parse_args(arguments).write
    stale = 0
    for spec in specs():
        path = TEMPLATES / spec.text
        text = path.read_text(encoding="utf-8")
        current = described(text, spec)
        if current == text:
            continue
        stale += 1
        print(f"{spec.text} {'written' if write else 'has not the table of its spec'}")
        if write:
            path.write_text(current, encoding="utf-8", newline="\n")
    return int(bool(stale) and not write)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

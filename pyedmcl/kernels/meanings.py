"""What the values mean that kernels are specialised by, for the tables at the head of the templates.

A word means the same in every kernel; where one kernel cannot help but use it otherwise, it has an entry of its own.
"""

from __future__ import annotations

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
    "metric": "distance of two points: a row of pyedmcl/recurrence/metrics.py",
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

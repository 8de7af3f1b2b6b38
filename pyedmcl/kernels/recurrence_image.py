"""Recurrent cells, or the sum of distances, per pixel of a recurrence plot: no matrix, whatever the length."""

from ..codegen.spec import Constraint, KernelSpec, Tunable, Values

MOST_COLUMNS = 8192  # of a group: each has a place in local memory


def _arguments(v: Values) -> str:
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


SPEC = KernelSpec(
    name="recurrence_image",
    producer="mako",
    text="recurrence_image.cl.mako",
    arguments=_arguments,
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
    oracle="pyedmcl.reference.image:recurrence_counts",
)

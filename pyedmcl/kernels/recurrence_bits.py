"""Recurrence bits: cells of a tile, 32 along a diagonal to a word."""

from ..codegen.spec import Constraint, KernelSpec, Tunable, Values


def _arguments(v: Values) -> str:
    deciding = "double" if v["exact"] else "real"  # the type of what decides open cells
    several = "; int n_radii" if v["n_radii"] > 1 else ""
    return f"""
        recurrence_bits(const real* x, y; const {deciding}* x64, y64; const real* limits; const {deciding}* limits64;
            int x_stride, y_stride, y_front, i0, k0, n_words, n_diagonals, limit_stride, theiler, i_end, n_columns;
            uint* bits, rows{several})
    """


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
)

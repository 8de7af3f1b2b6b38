"""S-map's moments for many regressors: work-items of a group share the sums of a tile of query rows."""

from ..codegen.spec import Constraint, KernelSpec, Tunable, Values
from .smap import MOMENTS


def _slices(v: dict[str, int]) -> int:
    """Work-items that compute weights for the same query row; 0 where they do not come out even."""
    queries = v["wg"] // v["lanes_p"] * v["rq"]
    return v["wg"] // queries if queries and v["wg"] % queries == 0 else 0


def local_bytes(v: Values) -> int:
    """Local memory of a group."""
    regressors, queries = int(v["regressors"]), int(v["wg"] // v["lanes_p"] * v["rq"])
    near = -(-int(v["coordinates"]) // 4) * 4 * (4 if v["dtype"] == "float32" else 8) + 4
    if v["matrix_units"]:  # states and regressors of three tiles, weights of two, with room so that banks differ
        of_rows = int(v["coordinates"]) * queries * (4 if v["dtype"] == "float32" else 8)
        return int(v["tile"]) * (3 * (8 * (regressors + 16) + near) + 2 * 8 * (queries + 4)) + of_rows
    sums = regressors * (regressors + 1) // 2 + regressors
    width = min(int(v["lanes_p"] * v["rp"]), sums + 2 * int(v["lanes_p"]))
    return int(v["tile"]) * (8 * (regressors + 1 + queries + width) + near)


def largest_tile(v: Values, local: int) -> int:
    """The largest tile up to that of ``v`` with which a group takes at most ``local`` bytes; 0 if there is none."""
    tiles = next(tunable.values for tunable in SPEC.tunables if tunable.name == "tile")
    fitting = [t for t in tiles if _slices(dict(v)) <= t <= v["tile"] and local_bytes({**v, "tile": t}) <= local]
    return max(fitting, default=0)


def _sub(v: Values) -> int:
    """Work-items along the sums, of the 32 that run in lockstep; matrix units prescribe four."""
    return 4 if v["matrix_units"] else int(v["sub_p"])


SPEC = KernelSpec(
    name="smap_shared",
    producer="mako",
    text="smap_shared.cl.mako",
    arguments="""
        smap_shared(const real* query; const whole* query_rows; int query_stride; const real* library;
            const int* library_rows; const moment* regressors, query_z; int n_library, radius; const real* nearest_of,
            rate_of, squared_of; const whole* row_of; const real* thetas; int n_thetas, n_parts, first_tile, n_tiles,
            n_slots, task_begin; moment* moments)
    """,
    launches=MOMENTS.format(name="smap_shared", tile_rows="wg / lanes_p * rq"),
    specialisation=("coordinates", "regressors", "limited", "matrix_units", "dtype"),
    tunables=(
        Tunable("wg", (64, 128, 256), {"cpu": 64, "gpu": 256}, "work-items of a group"),
        Tunable("lanes_p", (8, 16, 32), {"cpu": 32, "gpu": 32}, "work-items along the sums of a query row"),
        Tunable("sub_p", (4, 8, 16, 32), {"cpu": 32, "gpu": 8}, "of these, how many among 32 that run in lockstep"),
        Tunable("rq", (2, 4, 8), {"cpu": 4, "gpu": 8}, "query rows of a work-item"),
        Tunable("rp", (4, 6, 8), {"cpu": 8, "gpu": 8}, "sums of a work-item per query row, at most"),
        Tunable("tile", (8, 16, 32), {"cpu": 16, "gpu": 16}, "library rows at a time in local memory"),
        Tunable("steps", (1, 2, 4), {"cpu": 1, "gpu": 2}, "library rows whose sums are unrolled"),
        Tunable("parts", (1, 2, 4, 8, 16), {"cpu": 2, "gpu": 16}, "parts of the library for a last, small wave"),
    ),
    constraints=(
        Constraint(lambda v: v["wg"] % v["lanes_p"] == 0, "work-items must fill a rectangle of query rows by sums"),
        Constraint(lambda v: _slices(dict(v)) > 0, "query rows must share the work-items evenly"),
        Constraint(
            lambda v: v["lanes_p"] % _sub(v) == 0 and v["wg"] // v["lanes_p"] % (32 // _sub(v)) == 0,
            "the work-items that run in lockstep form a rectangle of query rows by sums",
        ),
        Constraint(
            lambda v: not v["matrix_units"] or (v["sub_p"], v["steps"]) == (8, 2),
            "matrix units prescribe which work-items run in lockstep and how sums are unrolled: the two change nothing",
        ),
        Constraint(lambda v: v["rp"] % 2 == 0, "sums are taken in pairs"),
        Constraint(lambda v: v["tile"] >= _slices(dict(v)), "the last sums need a row of the tile for each slice"),
    ),
    same_bits=False,
    oracle="pyedmcl.reference.smap:moments",
    exact=False,
)

"""S-map's moments: weighted sums of products over the library for each query row and theta."""

from ..codegen.spec import Constraint, KernelSpec, Tunable

#: Launches of this kernel and of smap_shared, which take the same.
MOMENTS = """
    near = round_up(coordinates, 4)
    entries = regressors * (regressors + 1) / 2 + regressors + 3
    tile_rows = {tile_rows}
    {name} | groups * wg | wg
      query: coordinates * query_stride
      query_rows, nearest_of, rate_of, squared_of, row_of: query_stride
      library: n_library * near
      library_rows: n_library
      regressors: n_library * regressors
      query_z: (regressors - 1) * query_stride
      thetas: n_thetas
      moments: slots * n_thetas * entries * tile_rows
"""

SPEC = KernelSpec(
    name="smap",
    producer="mako",
    text="smap.cl.mako",
    arguments="""
        smap(const real* query; const whole* query_rows; int query_stride; const real* library;
            const int* library_rows; const moment* regressors, query_z; int n_library, radius; const real* nearest_of,
            rate_of, squared_of; const whole* row_of; const real* thetas; int n_thetas, n_parts, first_tile, n_tiles,
            n_slots, task_begin; moment* moments)
    """,
    launches=MOMENTS.format(name="smap", tile_rows="wg * lanes"),
    specialisation=("coordinates", "regressors", "limited", "dtype"),
    tunables=(
        Tunable("lanes", (1, 4, 8, 16), {"cpu": 16, "gpu": 1}, "query rows of a work-item; a SIMD register on CPUs"),
        Tunable("wg", (1, 32, 64, 128, 256), {"cpu": 1, "gpu": 64}, "work-items of a group"),
        Tunable("tile", (0, 32, 64, 128), {"cpu": 64, "gpu": 0}, "library rows whose distances serve all thetas"),
        Tunable("wide", (1, 4, 8), {"cpu": 8, "gpu": 1}, "lanes whose sums of doubles are taken together"),
        Tunable("chunk", (8, 12, 16, 20, 24), {"cpu": 16, "gpu": 24}, "sums that are kept in registers at a time"),
        Tunable("share_from", (4, 6, 8, 9, 10, 12, 48), {"cpu": 48, "gpu": 9}, "regressors from which sums are shared"),
        Tunable("parts", (1, 2, 4, 8, 16, 32), {"cpu": 1, "gpu": 16}, "parts of the library, swept side by side"),
    ),
    constraints=(
        Constraint(lambda v: v["tile"] > 0 or v["lanes"] == 1, "without a tile a work-item has one query row"),
        Constraint(lambda v: v["lanes"] % min(v["wide"], v["lanes"]) == 0, "sums are taken for parts of the lanes"),
        Constraint(
            lambda v: v["tile"] == 0 or v["wg"] == 1, "the distances of a tile lie in the memory of a single work-item"
        ),
    ),
    same_bits=False,
    oracle="pyedmcl.reference.smap:moments",
    exact=False,
)

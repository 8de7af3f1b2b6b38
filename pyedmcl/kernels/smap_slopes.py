"""Maps of S-map: what each library row adds to the mean slopes of the fits around all rows."""

from ..codegen.spec import Constraint, KernelSpec, Tunable

SPEC = KernelSpec(
    name="smap_slopes",
    producer="mako",
    text="smap_slopes.cl.mako",
    arguments="""
        smap_slopes(const real* states, columns, records; int n_rows, n_padded, first_tile, radius; moment* slopes)
    """,
    launches="""
        state_columns = 2 * E + gaps
        state = round_up(state_columns, 4)
        record = round_up((E + 1) * (E + 1) + 1, 4)
        smap_slopes | groups * wg; libraries | wg; 1
          states: libraries * n_padded * state
          columns: libraries * state_columns * n_padded
          records: libraries * n_padded * record
          slopes: libraries * E * n_padded
    """,
    specialisation=("E", "gaps", "dtype"),
    tunables=(
        Tunable("lanes", (1, 4, 8, 16), {"cpu": 16, "gpu": 1}, "library rows of a work-item; a SIMD register on CPUs"),
        Tunable("wg", (1, 32, 64, 128), {"cpu": 1, "gpu": 64}, "work-items of a group"),
    ),
    constraints=(Constraint(lambda v: v["wg"] * v["lanes"] <= 128, "rows are padded to 128"),),
    oracle="pyedmcl.reference.smap:map_slopes",
    exact=False,
    same_bits=False,
)


def record_numbers(E: int) -> int:
    """What ``smap_gram`` writes of each row for ``smap_slopes``: RECORD of ``clkernels/smap_map.clh``."""
    return (E * (E + 1) + E + 2 + 3) // 4 * 4

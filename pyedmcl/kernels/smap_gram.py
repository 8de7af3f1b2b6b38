"""Maps of S-map: what each row of a library predicts with, for all targets at once."""

from ..codegen.spec import Constraint, KernelSpec, Tunable

SPEC = KernelSpec(
    name="smap_gram",
    producer="mako",
    text="smap_gram.cl.mako",
    arguments="""
        smap_gram(const real* states, columns; int n_rows, n_padded, first_tile, radius; real theta;
            const moment* penalty; real* fits; int* doubtful; real* records)
    """,
    launches="""
        state_columns = 2 * E + gaps
        state = round_up(state_columns, 4)
        record = round_up((E + 1) * (E + 1) + 1, 4)
        smap_gram | groups * wg; libraries | wg; 1
          states: libraries * n_padded * state
          columns: libraries * state_columns * n_padded
          penalty: select(penalised, libraries * E * E, 1)
          fits: libraries * n_padded * (E + 3)
          doubtful: libraries
          records: select(slopes, libraries * n_padded * record, 0)
    """,
    specialisation=("E", "gaps", "penalised", "slopes", "dtype"),
    tunables=(
        Tunable("lanes", (1, 4, 8, 16), {"cpu": 16, "gpu": 1}, "rows of a work-item; a SIMD register on CPUs"),
        Tunable("wg", (1, 32, 64, 128), {"cpu": 1, "gpu": 64}, "work-items of a group; several share library rows"),
    ),
    constraints=(
        Constraint(lambda v: v["wg"] * v["lanes"] <= 128, "rows are padded to 128"),
        Constraint(lambda v: 1 in (v["wg"], v["lanes"]), "work-items that share library rows are scalar"),
    ),
    oracle="pyedmcl.reference.smap:map_rho",
    exact=False,
    same_bits=False,
)

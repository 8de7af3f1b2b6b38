"""S-map's local fits: a small symmetric system per query row and theta."""

from ..codegen.spec import Constraint, KernelSpec, Tunable

SPEC = KernelSpec(
    name="smap_solve",
    producer="mako",
    text="smap_solve.cl.mako",
    arguments="""
        smap_solve(const moment* moments; int n_parts, n_head, n_thetas, n_rows, n_padded; const moment* penalty,
            points; long start; int step, lag; const moment* query_z; const real* nearest, rate, thetas;
            const moment* basis; moment target_shift, target_scale; moment* fits, coefficients)
    """,
    launches="""
        entries = regressors * (regressors + 1) / 2 + regressors + 3
        tile_rows = rows
        smap_solve | groups * wg | wg
          moments: slots * n_thetas * entries * tile_rows
          penalty: regressors * regressors
          points: n_values
          query_z: (regressors - 1) * n_padded
          nearest, rate: n_padded
          thetas: n_thetas
          basis: coordinates * (regressors - 1)
          fits: 3 * n_thetas * n_rows
          coefficients: n_thetas * n_rows * (coordinates + 1)
    """,
    specialisation=("coordinates", "regressors", "rows", "penalised", "centred", "dtype"),
    tunables=(Tunable("wg", (1, 8, 16, 32, 64), {"cpu": 1, "gpu": 32}, "work-items that solve a system together"),),
    constraints=(
        Constraint(
            lambda v: v.get("shared_solves", True) or v["wg"] == 1,
            "a work-item solves a system alone where a device must not share it (quirk shared_solves)",
        ),
    ),
    same_bits=False,
    oracle="pyedmcl.reference.smap:solve",
    exact=False,
)

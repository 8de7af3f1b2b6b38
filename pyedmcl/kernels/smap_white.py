"""Maps of S-map: states of libraries, with regressors in which each library is white."""

from ..codegen.spec import KernelSpec, Tunable

SPEC = KernelSpec(
    name="smap_white",
    producer="mako",
    text="smap_white.cl.mako",
    arguments="""
        smap_white(const moment* series; int first_library, series_stride, first, lag, n_rows, n_padded;
            const uchar* uses; int uses_stride; moment theta; const moment* strength; moment* work;
            real* states, columns; moment* penalty)
    """,
    launches="""
        state_columns = 2 * E + gaps
        state = round_up(state_columns, 4)
        smap_white | groups * wg | wg
          series: (first_library + groups) * series_stride
          uses: select(gaps, n_rows + (first_library + groups - 1) * uses_stride, 1)
          strength: select(penalised, first_library + groups, 1)
          work: (first_library + groups) * (E + 1) * n_padded
          states: (first_library + groups) * n_padded * state
          columns: (first_library + groups) * state_columns * n_padded
          penalty: select(penalised, (first_library + groups) * E * E, 1)
    """,
    specialisation=("E", "gaps", "penalised", "dtype"),
    tunables=(Tunable("wg", (1, 64, 128, 256), {"cpu": 1, "gpu": 256}, "work-items that share a library"),),
    oracle="pyedmcl.reference.smap:map_rho",
    exact=False,
    same_bits=False,
)

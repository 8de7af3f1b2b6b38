"""Skill of many random sub-libraries, found by scanning each row's sorted neighbours for their members."""

from ..codegen.spec import KernelSpec, Tunable

SAMPLES = 16  # of a column: the bits of a word, as in ccm.clh
CHUNK = 64  # rows whose sums are taken together
SUMS = 6

SPEC = KernelSpec(
    name="ccm",
    producer="mako",
    text="ccm.cl.mako",
    arguments="""
        ccm_prepare(int* near; real* dist; ulong begin, end; int n_rows)
        ccm(const int* near; const real* dist; int entries; const real* library; int library_stride, front;
            const real* future_targets; int future_stride; const int* columns, rows_of; const ushort* members;
            int stride; const int* column_of; int n_scanned, n_rows, t_begin, t_end, E, tau, exclusion_radius, least,
            n_chunks; ulong begin, end; real* sums)
        ccm_rho(const real* sums; int n_columns, n_chunks; real* rho)
    """,
    launches="""
        ccm_prepare | ceil_div(end - begin, 64) | any
          near, dist: end
        ccm | round_up(end - begin, wg) | wg
          near, dist: n_tables * n_rows * entries
          library: n_tables * library_stride
          future_targets: n_targets_held * future_stride
          columns: 13 * n_columns_held
          rows_of: n_choices
          members: n_draws_held * stride
          column_of: n_scanned
          sums: n_columns_held * n_chunks * 96
        ccm_rho | n_columns * 16 / lanes | any
          sums: n_columns * n_chunks * 96
          rho: n_columns * 16
    """,
    specialisation=("k", "dtype"),
    tunables=(
        Tunable("lanes", (1, 4, 8, 16), {"cpu": 16, "gpu": 1}, "samples of a work-item; a SIMD register on CPUs"),
        Tunable("wg", (1, 16, 32, 64, 128, 256), {"cpu": 1, "gpu": 64}, "work-items of a group"),
        Tunable("row_chains", (1, 2, 3, 4), {"cpu": 3, "gpu": 1}, "query rows that a work-item scans side by side"),
        Tunable("unroll", (1, 2, 4, 8), {"cpu": 2, "gpu": 4}, "neighbours looked at between two tests for the end"),
    ),
    oracle="pyedmcl.reference.ccm:ccm_skill",
    exact=False,
)

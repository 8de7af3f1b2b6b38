"""Skill of many small random sub-libraries, by distances to all their members."""

from ..codegen.spec import KernelSpec, Tunable

SPEC = KernelSpec(
    name="ccm_direct",
    producer="mako",
    text="ccm_direct.cl.mako",
    arguments="""
        ccm_direct(const real* library; int library_stride; const real* query; int query_stride, front;
            const real* future_targets; int future_stride; const int* columns, lists, sample_of; int n_sampled,
            t_begin, t_end, tau, exclusion_radius, least, n_chunks; ulong begin, end; real* sums)
    """,
    launches="""
        ccm_direct | round_up(end - begin, wg) | wg
          library: n_tables * library_stride
          query: n_tables * query_stride
          future_targets: n_targets_held * future_stride
          columns: 13 * n_columns_held
          lists: lists
          sample_of: n_sampled
          sums: n_columns_held * n_chunks * 96
    """,
    specialisation=("E", "k", "dtype"),
    tunables=(
        Tunable("lanes", (1, 4, 8, 16), {"cpu": 16, "gpu": 4}, "query rows of a work-item; a SIMD register on CPUs"),
        Tunable("vectors", (1, 2, 3, 4), {"cpu": 2, "gpu": 1}, "vectors of rows of a work-item, side by side"),
        Tunable("wg", (1, 32, 64, 128, 256), {"cpu": 1, "gpu": 64}, "work-items of a group"),
    ),
    oracle="pyedmcl.reference.ccm:ccm_skill",
    exact=False,
)

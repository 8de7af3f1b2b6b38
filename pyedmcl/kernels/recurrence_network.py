"""Adjacency of a recurrence network as bits, and its triangles."""

from ..codegen.spec import KernelSpec, Tunable

SPEC = KernelSpec(
    name="recurrence_network",
    producer="mako",
    text="recurrence_network.cl.mako",
    arguments="""
        recurrence_network(const real* x; uint* bits; int row_begin, n, words, window; real limit)
        recurrence_triangles(const uint* bits; ulong* closed; int row_begin, words)
    """,
    launches="""
        reach_of_point = (m - 1) * step
        recurrence_network | round_up(words, wg); rows_here | wg; 1
          x: (n - 1) * stride + reach_of_point + 1
          bits: (row_begin + rows_here) * words
        recurrence_triangles | groups * wg | wg
          bits: n_values * words
          closed: groups
    """,
    specialisation=("m", "step", "stride", "metric", "dtype", "strict"),
    tunables=(Tunable("wg", (8, 16, 32, 64, 128, 256), {"cpu": 16, "gpu": 64}, "work-items of a group, a word each"),),
    oracle="pyedmcl.reference.rqa:network",
)

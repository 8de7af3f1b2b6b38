"""Recurrence quantification of many short matrices in a launch: each group takes one after the other."""

from ..codegen.spec import Constraint, KernelSpec

SPEC = KernelSpec(
    name="recurrence_batch",
    producer="mako",
    text="recurrence_batch.cl.mako",
    arguments="""
        recurrence_batch(const real* x, y; const int* shapes; const real* limits; int step_x, step_y, theiler, dropped;
            uint* scratch; ulong scratch_words; int longest; uint* taken; uint end; ulong* heads; uint* lines;
            ushort* per_column, per_diagonal)
    """,
    launches="""
        recurrence_batch | groups * wg | wg
          x, y: n_values
          shapes, heads: 6 * end
          limits: select(screened, 6, 2) * end
          scratch: groups * scratch_words
          taken: 2
          lines, per_column, per_diagonal: room
    """,
    specialisation=("m", "metric", "dtype", "strict", "corridor", "symmetric", "screened", "embedded", "lanes", "wg"),
    constraints=(
        Constraint(lambda v: v["lanes"] > 1 or not v["screened"], "float32 screens cells in vectors only"),
    ),
    oracle="pyedmcl.reference.rqa:line_counts",
)

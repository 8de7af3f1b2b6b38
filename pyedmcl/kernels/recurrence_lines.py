"""Lines of a tile of recurrence bits, joined with those of earlier tiles."""

from ..codegen.spec import Constraint, KernelSpec, Tunable

SPEC = KernelSpec(
    name="recurrence_lines",
    producer="mako",
    text="recurrence_lines.cl.mako",
    headers=("segments.clh",),
    specialisation=(),
    tunables=(
        Tunable("wg", (1, 32, 64, 128, 256), {"cpu": 1, "gpu": 256}, "work-items of a group; they share histograms"),
        Tunable("lanes", (1, 4, 8, 16), {"cpu": 16, "gpu": 1}, "lines of a work-item, side by side"),
        Tunable("batch", (1, 2, 4, 8, 16, 32), {"cpu": 1, "gpu": 8}, "words of a line that are looked at together"),
        Tunable("listed", (False, True), {"cpu": False, "gpu": False}, "note words where runs end, visit only those"),
        Tunable("bins", (64, 256, 512, 1024, 2048), {"cpu": 1024, "gpu": 1024}, "line lengths counted in local memory"),
    ),
    constraints=(Constraint(lambda v: not v["listed"] or v["lanes"] == 1, "lone lanes note words of their own"),),
    oracle="pyedmcl.reference.rqa:line_counts",
)

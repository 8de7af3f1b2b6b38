"""The demo's recurrence part: a system that drifts from a regular to a chaotic rhythm, its plot and its measures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .output import Talk, write_table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_STEPS = 20_000
_SPACING = 0.15  # time between two values, which is also the step of the integration
_POINTS: dict[str, Any] = {"m": 3, "tau": 10, "radius": 1.3}
_SHOWN = ("RR", "DET", "L", "Lmax", "ENTR", "LAM", "TT")


def roessler(n_steps: int = _STEPS) -> NDArray[np.float64]:
    """x of the Roessler system while its parameter c rises from 3.5 (a regular cycle) to 6.5 (chaos), shape (n_steps,).

    dx = -y - z, dy = x + 0.2 y, dz = 0.2 + z (x - c), by the fourth-order Runge-Kutta method.
    """
    import numpy as np

    out = np.empty(n_steps)
    state: tuple[float, ...] = (1.0, 1.0, 0.0)
    for step in range(-1000, n_steps):
        c = 3.5 + 3.0 * max(step, 0) / n_steps
        state = _step(state, c, _SPACING)
        if step >= 0:
            out[step] = state[0]
    return out


def _step(state: tuple[float, ...], c: float, h: float) -> tuple[float, ...]:
    def slope(s: tuple[float, ...]) -> tuple[float, ...]:
        return (-s[1] - s[2], s[0] + 0.2 * s[1], 0.2 + s[2] * (s[0] - c))

    def moved(k: tuple[float, ...], by: float) -> tuple[float, ...]:
        return tuple(a + by * b for a, b in zip(state, k, strict=True))

    one = slope(state)
    two = slope(moved(one, h / 2))
    three = slope(moved(two, h / 2))
    four = slope(moved(three, h))
    rises = zip(state, one, two, three, four, strict=True)
    return tuple(s + h / 6 * (a + 2 * b + 2 * c_ + d) for s, a, b, c_, d in rises)


def show(folder: Path, talk: Talk, device: str | None) -> dict[str, Any]:
    """Write series and picture into ``folder``, say what was found, and return it for a script."""
    import time

    from ..recurrence.images import recurrence_plot
    from ..recurrence.rqa import rqa

    x = roessler()
    write_table(folder / "roessler.csv", ("x",), [(value,) for value in x.tolist()])
    start = time.perf_counter()
    halves: list[Any] = [rqa(part, **_POINTS, device=device) for part in (x[: _STEPS // 2], x[_STEPS // 2 :])]
    picture = folder / "recurrence.png"
    plot = recurrence_plot(x, **_POINTS, pixels=500, device=device)
    seconds = time.perf_counter() - start
    plot.plot(picture, title="Roessler system that drifts from a regular cycle to chaos")
    talk.summary(f"\nrecurrence of the Roessler system, {_STEPS:,} steps, from a regular cycle to chaos:")
    rows = [(name, *(f"{half[name]:.5g}" for half in halves)) for name in _SHOWN]
    if not talk.quiet:
        talk.table(("measure", "first half", "second half"), rows, right=("first half", "second half"))
    talk.summary(f"recurrence plot: {picture}, {plot.n_rows**2:,} cells; both in {seconds:.1f} s")
    return {
        "picture": str(picture),
        "first_half": halves[0].to_dict(),
        "second_half": halves[1].to_dict(),
        "recurrent": int(plot.counts.sum()),
    }

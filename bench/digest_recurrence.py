"""The calls of recurrence analysis whose results digests.py compares: one generator for each public function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from digest_case import Case, case
from digest_series import lorenz, noise, quantised, roessler, with_constants, with_gaps

CONVENTIONS = ("pyrqa", "accrqa", "recurrenceanalysis", "crqa")


def rqa() -> Iterator[Case]:
    x = roessler(500)[:, 0]
    state = {"m": 3, "tau": 6}
    for convention in CONVENTIONS:
        yield case(convention, x, radius=1.5, convention=convention, **state)
    for convention in ("pyrqa", "recurrenceanalysis", "crqa"):
        yield case(f"{convention}-theiler0", x, radius=1.5, theiler=0, convention=convention, **state)
        yield case(f"{convention}-theiler9", with_gaps(x), radius=1.5, theiler=9, lmin=4, vmin=3, wmin=5,
                   convention=convention, **state)  # fmt: skip
        yield case(f"{convention}-cross", x, lorenz(350)[:, 0] / 2, radius=2.0, theiler=4, convention=convention, m=2)
    for metric in ("maximum", "manhattan"):
        yield case(metric, x, radius=1.5, metric=metric, **state)
    yield case("not-exact", x, radius=1.5, exact=False, **state)
    yield case("float64", x, radius=1.5, dtype="float64", **state)
    yield case("float64-not-exact", x, radius=1.5, dtype="float64", exact=False, **state)
    for convention in ("pyrqa", "accrqa"):
        yield case(f"ties-{convention}", quantised(x, 6), radius=2.0, convention=convention, m=2)
    yield case("radii", x, radius=[1.0, 0.5, 3.0], m=2, tau=3)
    yield case("radii-maximum-cross", x, noise(300) * 10, radius=[2.0, 4.0], metric="maximum", m=2)
    yield case("corridors", x, radius=[(0.5, 1.5), (0.2, 3.0)], threshold="corridor", **state)
    yield case("rates", x, radius=[0.1, 0.03], threshold="recurrence_rate", theiler=3, **state)
    yield case("rate-cross", x, lorenz(350)[:, 0], radius=0.1, threshold="recurrence_rate", metric="manhattan")
    yield case("neighbours", with_gaps(x), radius=[5, 12], threshold="neighbours", theiler=2, **state)
    yield case("neighbours-cross", x, lorenz(350)[:, 0], radius=7, threshold="neighbours", metric="maximum", m=2)
    yield case("constants", with_constants(x), radius=0.8, m=2)
    yield case("columns", roessler(400), radius=2.0, m=2, tau=3)
    yield case("embedded", roessler(400), radius=2.0, embedded=True)
    for n in (30, 3_000, 9_000):
        yield case(f"{n}-points", lorenz(n)[:, 0], radius=1.0, m=2, tau=3)
    yield case("tiles", with_gaps(lorenz(2_000)[:, 0]), radius=[1.0, 2.0], m=2, tau=3, tile=256)
    yield case("checkpoint", x, radius=1.5, tile=128, checkpoint=Path("rows.npz"), **state)
    yield case("m20", lorenz(600)[:, 0], radius=6.0, m=20)
    yield case("offset", x + 1e6, radius=1.5, **state)
    yield case("cached", x, radius=1.5, tune="cached", **state)


def joint_rqa() -> Iterator[Case]:
    x, y = roessler(400)[:, 0], lorenz(400)[:, 0]
    for convention in ("pyrqa", "recurrenceanalysis"):
        yield case(convention, x, y, radius=3.0, m=2, tau=2, theiler=5, convention=convention)
    yield case("different", x[:397], with_gaps(y), radius=[2.0, 4.0], radius_y=[5.0, 3.0], m=2, m_y=3, tau_y=2, tau=1,
               metric_y="maximum")  # fmt: skip
    yield case("rates", x, y, radius=0.3, threshold="recurrence_rate", convention="crqa", theiler=2)
    yield case("neighbours", x, y, radius=9, threshold="neighbours", m=2)
    yield case("corridors", x, y, radius=[(0.5, 3.0), (1.0, 5.0)], threshold="corridor", tile=96)
    yield case("not-exact", x, y, radius=3.0, exact=False, metric="manhattan")


def windowed_rqa() -> Iterator[Case]:
    x = roessler(1_500)[:, 0]
    yield case("overlap", x, 300, 50, radius=1.5, m=2, tau=6)
    yield case("gaps-crqa", with_gaps(x), 200, 90, radius=1.5, convention="crqa", theiler=4, metric="maximum")
    yield case("apart", lorenz(6_000)[:, 0], 2_600, 1_700, radius=2.0, m=2)
    yield case("corridor-float64", x, 250, 125, radius=(0.3, 2.0), threshold="corridor", dtype="float64", m=2)
    yield case("blocks", x, 300, 20, radius=1.5, m=2, tau=6, memory=1_000_000)


def recurrence_network() -> Iterator[Case]:
    x = roessler(500)[:, 0]
    yield case("fixed", x, m=3, tau=6, radius=2.0)
    yield case("rate-gaps", with_gaps(x), m=2, tau=6, radius=0.05, threshold="recurrence_rate", theiler=6)
    yield case("ties", quantised(x), radius=2.0, metric="manhattan", strict=False, m=2)
    yield case("float64", x, radius=1.0, dtype="float64", m=2)
    yield case("embedded-not-exact", lorenz(2_100), radius=3.0, embedded=True, metric="maximum", exact=False)


def recurrence_plot() -> Iterator[Case]:
    x = roessler(300)[:, 0]
    yield case("matrix", x, m=3, tau=6, radius=1.5)
    yield case("crqa-gaps-ties", with_gaps(quantised(roessler(300)[:, 0])), radius=2.0, convention="crqa")
    yield case("image", lorenz(3_000)[:, 0], m=2, tau=3, radius=1.5, pixels=200)
    yield case("image-cross", x, lorenz(450)[:, 0], m=2, radius=2.0, metric="maximum", pixels=(60, 45))
    yield case("image-rate", x, m=2, radius=0.1, threshold="recurrence_rate", theiler=3, pixels=64)
    yield case("neighbours", x, m=2, radius=8, threshold="neighbours", theiler=2)
    yield case("not-exact", x, radius=1.5, exact=False, metric="manhattan", pixels=50)
    yield case("float64-corridor", x, radius=(0.5, 2.0), threshold="corridor", dtype="float64", m=2, pixels=80)


def distance_plot() -> Iterator[Case]:
    x = roessler(300)[:, 0]
    yield case("matrix", x, m=3, tau=6)
    yield case("image-gaps", with_gaps(lorenz(3_000)[:, 0]), m=2, tau=3, pixels=150)
    yield case("cross", x, lorenz(450)[:, 0], m=2, metric="maximum", pixels=(60, 45))
    yield case("float64", roessler(200), embedded=True, metric="manhattan", dtype="float64")


FUNCTIONS: tuple[Callable[[], Iterator[Case]], ...] = (
    rqa, joint_rqa, windowed_rqa, recurrence_network, recurrence_plot, distance_plot,
)  # fmt: skip

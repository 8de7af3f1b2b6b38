"""The calls whose results digests.py compares: one generator for each public function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import digest_recurrence
import numpy as np
from digest_case import Case, case
from digest_series import lorenz, maps, mask, noise, quantised, roessler, with_constants, with_gaps


def knn() -> Iterator[Case]:
    x = lorenz(400)[:, 0]
    long = lorenz(20_000)[:, 0]
    for E in range(1, 21):
        yield case(f"E{E}", x, E=E)
    for E in (1, 3, 10):
        yield case(f"E{E}-float64", x, E=E, dtype="float64")
    for n in (30, 64, 1_000, 5_000):
        yield case(f"{n}-steps", maps(n, 2)[:, 0], E=3, tau=2)
    yield case("long-E3", long, E=3)
    yield case("long-E10-blocks", long, E=10, memory=4_000_000)
    yield case("long-noise-E10-k1", noise(20_000), E=10, k=1)
    yield case("float32-data", x.astype(np.float32), E=3, tau=7)
    yield case("offset", x + 1e5, E=3)
    yield case("tiny", x * 1e-20, E=3)
    yield case("Tp5", x, E=3, Tp=5)
    yield case("Tp-3-radius10", x, E=3, Tp=-3, exclusion_radius=10)
    for k in (1, 30, 150):
        yield case(f"k{k}", x, E=2, k=k)
    yield case("few-legal", x[:40], E=2, k=60, exclusion_radius=12)
    yield case("query", x, E=3, query=roessler(150)[:, 0], Tp=2)
    yield case("gaps", with_gaps(x), E=3, Tp=1)
    yield case("ties", quantised(x), E=3)
    yield case("ties-float64", quantised(x), E=3, dtype="float64")
    yield case("constants", with_constants(x), E=2, exclusion_radius=3)
    yield case("cached", maps(2_000, 2)[:, 0], E=3, tune="cached")
    yield case("cached-E20", lorenz(2_000)[:, 0], E=20, tune="cached")
    for name in ("pruned", "kdtree", "auto"):
        yield case(f"{name}-E3", lorenz(5_000)[:, 0], E=3, neighbors=name)
        yield case(f"{name}-E10-gaps", with_gaps(lorenz(5_000)[:, 0]), E=10, Tp=2, exclusion_radius=50, neighbors=name)
        yield case(f"{name}-ties", quantised(lorenz(2_000)[:, 0]), E=2, neighbors=name)
        yield case(f"{name}-query", lorenz(3_000)[:, 0], E=4, tau=3, query=noise(500), neighbors=name)
    yield case("pruned-float64", lorenz(3_000)[:, 0], E=3, dtype="float64", neighbors="pruned")
    yield case("pruned-E1-k20", noise(3_000), E=1, k=20, neighbors="pruned")
    yield case("pruned-long-E20", long, E=20, neighbors="pruned")
    yield case("auto-long", long, E=3, neighbors="auto")
    for name in ("ivf", "hnsw"):
        yield case(name, lorenz(3_000)[:, 0], E=3, neighbors=name)
    yield case("shared-sums", lorenz(210_000)[:, 0], E=10, gpu=True)


def simplex() -> Iterator[Case]:
    x = lorenz(600)[:, 0]
    table = roessler(600)
    yield case("E3", x, E=3)
    yield case("E3-float64", x, E=3, dtype="float64")
    yield case("E8-tau3-Tp-2", x, E=8, tau=3, Tp=-2, exclusion_radius=5)
    yield case("cross-map", x, E=3, target=lorenz(600)[:, 2], Tp=0)
    yield case("train-test", x[:400], x[400:], E=3, Tp=4)
    yield case("gaps", with_gaps(x), E=3)
    yield case("ties", quantised(x), E=2, knn=5)
    yield case("constants", with_constants(x), E=2)
    yield case("ranges", x, E=3, lib_range=[(0, 200), (250, 400)], pred_range=(380, 600))
    yield case("masks", x, E=3, lib_range=mask(600), pred_range=~mask(600), valid_lib=np.arange(600) < 500)
    yield case("columns", table, E=2, target=table[:, 0])
    yield case("embedded", table, embedded=True, target=table[:, 1], Tp=2, lib_range=(0, 300), pred_range=(300, 600))
    yield case("generate", x, E=3, generate_steps=40)
    yield case("knn40", x, E=2, knn=40)
    yield case("long", lorenz(20_000)[:, 0], E=3)
    yield case("pruned", lorenz(5_000)[:, 0], E=4, neighbors="pruned")
    yield case("kdtree-columns", table, E=2, target=table[:, 0], neighbors="kdtree")
    yield case("cached", x, E=3, tune="cached")


def embed_dimension() -> Iterator[Case]:
    x = maps(500, 5)
    yield case("one", x[:, 0])
    yield case("all-float64", x, E_max=6, dtype="float64")
    yield case("all-gaps", with_gaps(x), E_max=10, tau=2, Tp=3, exclusion_radius=4)
    yield case("constant-series", np.column_stack([x[:, 0], np.ones(500)]), E_max=4)
    yield case("cross-map", x[:, 0], target=x[:, 1], Tp=0, E_max=8, lib_range=(0, 250), pred_range=(250, 500))
    yield case("valid", x[:, 2], E_max=5, valid_lib=mask(500), knn=6)
    yield case("many", maps(100, 300), E_max=3)
    yield case("pruned", lorenz(3_000)[:, 0], E_max=4, neighbors="pruned")


def xmap() -> Iterator[Case]:
    x = maps(300, 12)
    mixed = [1 + 5 * i % 12 for i in range(12)]
    yield case("E3", x, E=3)
    yield case("auto", x, E_max=8)
    yield case("mixed", x, E=mixed)
    yield case("mixed-float64", x, E=mixed, dtype="float64")
    yield case("mixed-blocks", maps(300, 70), E=[1 + i % 3 for i in range(70)], memory=2_000_000)
    yield case("many", maps(60, 1_100), E=1)
    yield case("many-store", maps(60, 1_100), E=2, out=Path("map"))
    yield case("long", np.column_stack([lorenz(6_000), roessler(6_000)]), E=3, tau=4)
    yield case("Tp2-radius6", x, E=2, tau=3, Tp=2, exclusion_radius=6)
    yield case("Tp-1-knn9", x, E=2, Tp=-1, knn=9)
    yield case("gaps", with_gaps(x), E=3)
    yield case("ties", quantised(x), E=2)
    yield case("constant-series", np.column_stack([x[:, :3], np.ones(300)]), E=2)
    yield case("columns", x, E=2, columns=[4, 1, 7])
    yield case("store", x, E=mixed, out=Path("map"))
    yield case("auto-store", x, E_max=4, out=Path("map"))
    for name in ("pruned", "kdtree", "auto"):
        yield case(f"mixed-{name}", lorenz(3_000), E=[1, 3, 6], neighbors=name)
    yield case("cached", x, E=3, tune="cached")
    yield case("cached-mixed", maps(1_000, 40), E=[1 + i % 20 for i in range(40)], tune="cached")
    yield from _xmap_by_smap()


def _xmap_by_smap() -> Iterator[Case]:
    x, flows = maps(300, 12), np.column_stack([lorenz(1_500), roessler(1_500)])
    mixed = [1 + 5 * i % 12 for i in range(12)]
    for dtype in ("float32", "float64"):
        yield case(f"smap-E3-{dtype}", x, E=3, method="smap", theta=2.0, dtype=dtype)
        yield case(f"smap-mixed-{dtype}", x, E=mixed, method="smap", dtype=dtype)
        yield case(f"smap-thetas-{dtype}", x[:, :7], E=2, method="smap", theta=[0, 0.5, 8], dtype=dtype)
        yield case(f"smap-flows-{dtype}", flows, E=6, tau=4, method="smap", theta=4.0, dtype=dtype)
        yield case(f"smap-gaps-{dtype}", with_gaps(x), E=3, Tp=1, exclusion_radius=4, method="smap", dtype=dtype)
    yield case("smap-E20", maps(400, 5), E=20, method="smap", theta=0.5)
    yield case("smap-wide", maps(150, 300), E=2, method="smap")
    yield case("smap-blocks", maps(300, 40), E=2, method="smap", memory=2_000_000)
    yield case("smap-ties", quantised(x, 4), E=2, method="smap", theta=4.0)
    yield case("smap-constant-series", np.column_stack([x[:, :3], np.ones(300)]), E=2, method="smap")
    yield case("smap-ridge", x, E=3, tau=2, Tp=-1, method="smap", ridge=0.3)
    compact = {"method": "smap", "precision": "compact"}
    yield case("smap-compact-E3", x, E=3, theta=2.0, **compact)
    yield case("smap-compact-mixed", x, E=mixed, **compact)
    yield case("smap-compact-flows", flows, E=6, tau=4, theta=4.0, **compact)
    yield case("smap-compact-wide", maps(150, 300), E=2, theta=0.5, **compact)


def ccm() -> Iterator[Case]:
    x, y = maps(500, 2).T
    sizes = {"lib_sizes": [15, 60, 200, 450], "sample": 20, "seed": 3}
    yield case("E2", x, y, E=2, **sizes)
    yield case("E3-E5-tau2", x, y, E=(3, 5), tau=2, Tp=-1, exclusion_radius=4, **sizes)
    yield case("float64", x, y, E=2, dtype="float64", **sizes)
    yield case("gaps", with_gaps(x), y, E=2, knn=5, Tp=1, **sizes)
    yield case("ties", quantised(x), quantised(y), E=2, **sizes)
    yield case("ranges", x, y, E=2, lib_range=[(0, 150), (200, 420)], valid_lib=mask(500), lib_sizes=[20, 100], seed=1)
    yield case("embedded", lorenz(500)[:, :2], roessler(500)[:, :2], embedded=True, **sizes)
    yield case("smap", x[:150], y[:150], E=2, method="smap", theta=1.5, lib_sizes=[30, 90], sample=4, seed=2)
    yield case("long", *lorenz(4_000)[:, :2].T, E=3, lib_sizes=[30, 300, 3_000], sample=20, seed=4)
    for name in ("pruned", "kdtree", "auto"):
        few = {"lib_sizes": [300, 3_000], "sample": 8, "seed": 4}
        yield case(name, *lorenz(4_000)[:, :2].T, E=3, neighbors=name, **few)
    yield case("default-sizes", x[:200], y[:200], E=2, sample=5, seed=0)
    yield case("blocks", x, y, E=2, memory=1_000_000, **sizes)
    yield case("cached", x, y, E=2, tune="cached", **sizes)


def ccm_lagged() -> Iterator[Case]:
    x, y = maps(400, 2).T
    yield case("whole", x, y, E=2, Tp=range(-3, 4))
    yield case("sampled-gaps", x, with_gaps(y), E=(2, 3), Tp=(-4, 0, 2), lib_size=120, sample=10, seed=5, tau=2)
    yield case("ranges", x, y, E=2, Tp=(-1, 1), lib_range=(50, 300), knn=4, exclusion_radius=2)


def ccm_matrix() -> Iterator[Case]:
    x = maps(250, 6)
    sizes = {"lib_sizes": [20, 80, 200], "sample": 8, "seed": 1}
    yield case("auto", x, E_max=4, **sizes)
    yield case("store", x, E=2, out=Path("matrix"), **sizes)
    yield case("many", maps(120, 36), E=2, lib_sizes=[20, 100], sample=2, seed=1)
    yield case("mixed-gaps", with_gaps(x), E=[1, 2, 3, 1, 2, 3], tau=2, Tp=1, exclusion_radius=3, **sizes)
    yield case("float64-columns", x, E=2, columns=[0, 3, 5], dtype="float64", **sizes)


def ccm_significance() -> Iterator[Case]:
    x, y = maps(300, 2).T
    yield case("phase", x, y, E=2, n=19, seed=1)
    yield case("seasonal-sampled", x, y, E=(2, 3), n=9, surrogate="seasonal", period=7, lib_size=100, sample=5, seed=1)
    yield case("twin-ranges", x, y, E=2, n=9, surrogate="twin", lib_range=(0, 200), valid_lib=mask(300), Tp=1, seed=1)


def xmap_significance() -> Iterator[Case]:
    x = maps(200, 4)
    yield case("auto", x, E_max=4, n=19, seed=1)
    yield case("shuffle-gaps", with_gaps(x), E=2, surrogate="shuffle", n=9, exclusion_radius=3, Tp=1, seed=2)
    yield case("mixed-float64", x, E=[1, 3, 2, 3], surrogate="iaaft", n=5, dtype="float64", seed=3)


def surrogate() -> Iterator[Case]:
    x = lorenz(301)[:, 0]
    for method in ("shuffle", "phase", "iaaft", "twin"):
        yield case(method, x, method, n=3, seed=1)
    yield case("twin-E3", x, "twin", n=2, seed=1, E=3, tau=2, recurrence=0.2)
    yield case("seasonal-gaps", with_gaps(x), "seasonal", period=12, n=3, seed=1)


def false_discovery() -> Iterator[Case]:
    p = np.random.RandomState(2).random_sample((6, 7))
    yield case("nan", np.where(p > 0.9, np.nan, p))


def smap() -> Iterator[Case]:
    x = lorenz(400)[:, 0]
    table = roessler(400)
    thetas = [0, 0.5, 2, 8]
    yield case("E3", x, E=3, theta=thetas)
    yield case("E3-float64", x, E=3, theta=thetas, dtype="float64")
    for E in (1, 8, 14, 20):
        yield case(f"E{E}", maps(400, 3)[:, 1], E=E, theta=[0, 3])
    yield case("gaps", with_gaps(x), E=3, theta=2.0, Tp=-2, tau=2)
    yield case("knn-radius", x, E=2, theta=1.0, knn=30, exclusion_radius=8)
    yield case("ties", quantised(x, 4), E=2, theta=[0, 4])
    yield case("constants", with_constants(x), E=3, theta=[0, 4])
    yield case("ridge", x, E=4, theta=[0, 2], solver="ridge", alpha=0.3)
    yield case("lasso", x[:120], E=2, theta=1.0, solver="lasso", alpha=0.01)
    yield case("singular-values", x, E=3, theta=[0, 2], singular_values=True)
    yield case("train-test", x[:250], x[250:], E=3, theta=2.0, Tp=3)
    yield case("embedded-ranges", table, embedded=True, target=table[:, 0], theta=2.0, lib_range=[(0, 100), (120, 250)],
               pred_range=(200, 400), valid_lib=mask(400))  # fmt: skip
    yield case("columns", table, E=2, target=table[:, 2], theta=1.0, Tp=0)
    yield case("generate", maps(200, 2)[:, 0], E=2, theta=2.0, generate_steps=15)
    yield case("long", lorenz(4_000)[:, 0], E=3, theta=4.0)
    yield case("cached", x, E=3, theta=thetas, tune="cached")


def predict_nonlinear() -> Iterator[Case]:
    x = maps(300, 2)[:, 0]
    yield case("E2", x, E=2)
    yield case("ridge", with_gaps(x), E=2, theta=[0, 1, 4], solver="ridge", alpha=0.1, lib_range=(0, 150))
    yield case("embedded", roessler(300), embedded=True, target=roessler(300)[:, 0], theta=[0, 2], exclusion_radius=5)


def predict_interval() -> Iterator[Case]:
    x = lorenz(400)[:, 0]
    yield case("E3", x, E=3)
    yield case("train-test", x[:250], x[250:], E=2, Tp=[1, 3], exclusion_radius=2)
    yield case("gaps-ranges", with_gaps(x), E=2, Tp=[-2, 0, 5], lib_range=(0, 250), pred_range=(200, 400), knn=6)
    yield case("float64-embedded", roessler(300), embedded=True, target=roessler(300)[:, 1], Tp=[1, 4], dtype="float64")


def predict_exclusion_radius() -> Iterator[Case]:
    x = lorenz(400)[:, 0]
    yield case("E3", x, E=3)
    yield case("cross-map", x, target=lorenz(400)[:, 1], E=2, tau=3, Tp=0, exclusion_radius=[0, 10, 40], knn=5)


def multiview() -> Iterator[Case]:
    x = maps(300, 4)
    yield case("E2", x, 0, E=2, D=3)
    ranges = {"lib_range": (0, 150), "pred_range": (140, 300)}
    yield case("ranges", with_gaps(x), 1, E=2, D=2, Tp=2, exclude_target=True, **ranges)
    flow = roessler(300)
    yield case("float64", flow, 0, E=2, D=2, n_views=4, knn=5, exclusion_radius=4, columns=[0, 2], dtype="float64")


def embed() -> Iterator[Case]:
    yield case("E3", maps(40, 2), E=3, tau=2)
    yield case("gaps-columns", with_gaps(maps(60, 3)).astype(np.float32), E=2, columns=[2, 0])


FUNCTIONS: tuple[Callable[[], Iterator[Case]], ...] = (
    knn, simplex, embed_dimension, xmap, ccm, ccm_lagged, ccm_matrix, ccm_significance, xmap_significance, surrogate,
    false_discovery, smap, predict_nonlinear, predict_interval, predict_exclusion_radius, multiview, embed,
    *digest_recurrence.FUNCTIONS,
)  # fmt: skip


def all_cases() -> dict[str, tuple[str, Case]]:
    """ "function/label" -> name of the function in pyedmcl, and the call."""
    return {f"{f.__name__}/{one.label}": (f.__name__, one) for f in FUNCTIONS for one in f()}

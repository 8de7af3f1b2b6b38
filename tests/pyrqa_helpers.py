"""What tests do alike with PyRQA and with our adapter: settings, runs, and comparisons of what comes out."""

from __future__ import annotations

import importlib
import inspect
from types import SimpleNamespace

import numpy as np

MODULES = ("analysis_type", "computation", "exceptions", "image_generator", "metric", "neighbourhood", "opencl",
           "processing_order", "result", "runtimes", "selector", "settings", "time_series")  # fmt: skip
HISTOGRAMS = ("recurrence_points", "diagonal_frequency_distribution", "vertical_frequency_distribution",
              "white_vertical_frequency_distribution")  # fmt: skip
METRICS = ("EuclideanMetric", "MaximumMetric", "TaxicabMetric")


def names_of(package):
    """All classes of a package's modules, and the modules, as one namespace."""
    found = {}
    for name in MODULES:
        module = importlib.import_module(f"{package}.{name}")
        found[name] = module
        found |= {key: value for key, value in vars(module).items() if inspect.isclass(value)}
    return SimpleNamespace(**found)


def walk(n, rng):
    return np.cumsum(rng.standard_normal(n)) / 3


def settings_in(package, x, y, *, kind, metric, near, theiler, m, tau, dtype, embedded):
    """The same settings in either package."""

    def series(values, lag):
        if embedded:
            count = len(values) - m + 1
            return package.EmbeddedSeries(np.stack([values[e : e + count] for e in range(m)], axis=1), dtype=dtype)
        return package.TimeSeries(values, dtype=dtype, embedding_dimension=m, time_delay=lag)

    given = series(x, tau) if kind == "Classic" else (series(x, tau), series(y, tau + 1))
    condition = package.FixedRadius(near) if isinstance(near, float) else package.RadiusCorridor(*near)
    return package.Settings(given, analysis_type=getattr(package, kind), neighbourhood=condition,
                            similarity_measure=getattr(package, metric), theiler_corrector=theiler)  # fmt: skip


def run(package, made, name, **options):
    return getattr(package, name).create(made, opencl=package.environment, **options).run()


def draw(rng, kind, corridor):
    """Random arguments of settings, short of PyRQA's defects (docs/pyrqa.md)."""
    return {
        "kind": kind, "metric": str(rng.choice(METRICS)),
        "near": (0.3, float(rng.uniform(0.8, 2))) if corridor else float(rng.uniform(0.4, 1.5)),
        "theiler": 1 if corridor else int(rng.integers(0, 2 if kind == "Cross" else 6)),
        "m": int(rng.choice([1, 3])), "tau": int(rng.choice([1, 2])),
        "dtype": np.float64 if rng.random() < 0.5 else np.float32, "embedded": bool(rng.random() < 0.3),
    }  # fmt: skip


def compare(ours, other):
    for name in HISTOGRAMS:
        one, two = getattr(ours, name), getattr(other, name)
        assert one.dtype == two.dtype, name
        np.testing.assert_array_equal(one, two, err_msg=name)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(ours.to_array(), other.to_array(), rtol=2e-6)

"""Runs PyRQA's own tests, from its installed package, with ``pyedmcl.compat.pyrqa`` bound to the name pyrqa.

The tests compare engines with PyRQA's plain Python loops over all cells, which are kept; the engines are ours. With
"all" as argument everything runs (some twenty minutes); else, with shorter series, one test of each kind of matrix,
series and neighbourhood, and of every sixteenth kind of joint matrix.
"""

from __future__ import annotations

import importlib
import os
import random
import sys
import types
import unittest
import zlib
from importlib import metadata

import numpy as np

from pyedmcl.compat.pyrqa import computation, time_series

MODULES = (
    "analysis_type", "computation", "exceptions", "image_generator", "metric", "neighbourhood", "opencl",
    "processing_order", "result", "runtimes", "selector", "settings", "time_series",
)  # fmt: skip
KINDS = {
    "rp.radius": computation.RPComputation,
    "rp.unthresholded": computation.RPComputation,
    "rqa.radius": computation.RQAComputation,
    "jrp.radius": computation.JRPComputation,
    "jrqa.radius": computation.JRQAComputation,
}
CHOSEN = {"rp.radius": "test_embedding_parameters", "rqa.radius": "test_partition"}


class Variants(types.ModuleType):
    """A module with any class: PyRQA's implementations, all of which ours stands for."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def bind(home):
    """Our modules, engines and no variants under PyRQA's names; its tests and loops from its own files."""
    package = types.ModuleType("pyrqa")
    package.__path__ = [home]
    sys.modules["pyrqa"] = package
    for name in MODULES:
        module = importlib.import_module(f"pyedmcl.compat.pyrqa.{name}")
        sys.modules[f"pyrqa.{name}"] = module
        setattr(package, name, module)
    for kind, made in KINDS.items():
        sys.modules[f"pyrqa.variants.{kind}.engine"] = engine = types.ModuleType("engine")
        engine.Engine = made
        for file in os.listdir(os.path.join(home, "variants", *kind.split("."))):
            if file.startswith(("column_", "row_")):
                name = f"pyrqa.variants.{kind}.{file.removesuffix('.py')}"
                sys.modules[name] = Variants(name)


def remember(kind):
    """The plain loops ask for all vectors at each cell."""
    compute, known = kind.get_vectors_as_rows, {}

    def get(self):
        key = (id(self), self.embedding_dimension, getattr(self, "time_delay", 0), self.dtype)
        if key not in known:
            known[key] = (compute(self), self)  # the series, too, so that its id stays its own
        return known[key][0]

    kind.get_vectors_as_rows = get


def shorten(case):
    """Series of 80 to 111 values: its loops take a while."""
    choose = case.setUpTimeSeriesLength

    def chosen(cls):
        choose.__func__(cls)
        for name in ("time_series_length", "time_series_length_x", "time_series_length_y"):
            if hasattr(cls, name):
                setattr(cls, name, 80 + getattr(cls, name) % 32)

    case.setUpTimeSeriesLength = classmethod(chosen)


def main(everything):
    home = str(metadata.distribution("pyrqa").locate_file("pyrqa"))
    bind(home)
    for kind in (time_series.TimeSeries, time_series.EmbeddedSeries):
        remember(kind)
    for kind in KINDS:
        module = importlib.import_module(f"pyrqa.variants.{kind}.test")
        module.VARIANTS = module.VARIANTS[:1]  # one stands for all
        cases = [value for name, value in vars(module).items()
                 if name.endswith("TestCase") and getattr(value, "__module__", "") == module.__name__]  # fmt: skip
        for case in cases if everything or not kind.startswith("j") else cases[::16]:
            if not everything and not kind.startswith("j"):
                shorten(case)
            names = unittest.TestLoader().getTestCaseNames(case)
            for name in names if everything else (CHOSEN.get(kind, "test_default"),):
                number = zlib.crc32(f"{case.__name__}.{name}".encode())
                random.seed(number)
                np.random.seed(number)
                result = unittest.TestResult()
                unittest.TestSuite([case(name)]).run(result)
                word = "SKIPPED" if result.skipped else "PASSED" if result.wasSuccessful() else "FAILED"
                print(word, f"{kind}::{case.__name__}::{name}", flush=True)
                for _, text in result.failures + result.errors:
                    print(text)


if __name__ == "__main__":
    main("all" in sys.argv[1:])

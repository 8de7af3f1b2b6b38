"""Small calls that together launch every kernel, for a simulator that watches each access, or with poisoned memory.

usage: python tests/fuzz/watched_calls.py DEVICE PARAMETERS [CALL ...]

PARAMETERS are those of ``bench/portability_run.py``, for the simulator, or, for any device, a byte with which every new
buffer is filled. Prints a JSON line for each call: its name, the kernels that it built, seconds, an error if there was
one, a digest of what was found, and the kernels that left the size of their groups open and were launched with another
number of work-items than ``open_size`` gives.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
import time
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import portability_run as run

import pyedmcl
from pyedmcl.device import memory, opencl
from pyedmcl.engines.targets import COMPACT_LEAST
from pyedmcl.kernels import build
from pyedmcl.launch.staging import open_size
from pyedmcl.tuning import defaults


def batch(*given, **options):
    """The rows of a batch: the counts behind them lie in the order in which groups ended."""
    return list(pyedmcl.rqa_batch(*given, **options))


N = 48
X, Y = np.random.default_rng(0).random((2, N))
TABLE = np.column_stack([X, Y, X * Y])
GAPS = np.where(np.arange(N) % 17 == 5, np.nan, X)
LONG = np.random.default_rng(1).random(150)
WAVES = np.sin(np.outer(np.arange(220), (0.7, 1.1)))  # long and narrow enough for 16 bits
CALLS = {
    "knn": partial(pyedmcl.knn, GAPS, E=2),
    "knn64": partial(pyedmcl.knn, X, E=2, tau=2, dtype="float64"),
    "pruned": partial(pyedmcl.knn, LONG, E=3, neighbors="pruned"),
    "kdtree": partial(pyedmcl.knn, LONG, E=3, neighbors="kdtree"),
    "simplex": partial(pyedmcl.simplex, X, E=2, knn=3),
    "smap": partial(pyedmcl.smap, X, E=2, theta=[0.0, 2.0]),
    "smap_knn": partial(pyedmcl.smap, X, E=2, theta=1.0, knn=10, solver="ridge"),
    "embed_dimension": partial(pyedmcl.embed_dimension, TABLE, E_max=3),
    "multiview": partial(pyedmcl.multiview, TABLE, 0, D=2),
    "xmap": partial(pyedmcl.xmap, TABLE, E=[1, 2, 2]),
    "xmap_windows": partial(pyedmcl.xmap, TABLE.astype("float32"), E=2, windows=(20, 3)),
    "xmap_compact": partial(pyedmcl.xmap, WAVES, targets=np.tile(WAVES, (1, COMPACT_LEAST)), E=2, precision="compact"),
    "xmap_smap": partial(pyedmcl.xmap, TABLE, E=2, method="smap", theta=2.0, ridge=0.1, coefficients="mean"),
    "ccm": partial(pyedmcl.ccm, X, Y, E=2, lib_sizes=[8, 40], sample=3, seed=1),
    "ccm_smap": partial(pyedmcl.ccm, X, Y, E=2, lib_sizes=[20], sample=1, seed=1, method="smap"),
    "ccm_matrix": partial(pyedmcl.ccm_matrix, TABLE, E=2, lib_sizes=[10, 40], sample=2, seed=1),
    "ccm_significance": partial(pyedmcl.ccm_significance, X, Y, E=2, n=3, seed=1, lib_size=20, sample=2),
    "xmap_significance": partial(pyedmcl.xmap_significance, TABLE, E=2, n=2, seed=1),
    "partial_ccm": partial(pyedmcl.partial_ccm, X, Y, given=X * Y, E=2, Tp=-1, n=2, seed=1),
    "rqa": partial(pyedmcl.rqa, GAPS, m=2, radius=[0.2, 0.4]),
    "rqa_cross": partial(pyedmcl.rqa, X, Y[:40], m=2, radius=0.3, exact=False),
    "rqa_rate": partial(pyedmcl.rqa, X, m=2, radius=0.1, threshold="recurrence_rate"),
    "rqa_neighbours": partial(pyedmcl.rqa, X, radius=4, threshold="neighbours", metric="maximum"),
    "joint_rqa": partial(pyedmcl.joint_rqa, X, Y, radius=0.3, convention="crqa", theiler=2),
    "windowed_rqa": partial(pyedmcl.windowed_rqa, X, 20, 7, radius=0.3, metric="manhattan"),
    "rqa_batch": partial(batch, [X, GAPS], m=2, radius=[0.2, 0.4]),
    "rqa_batch_cross": partial(batch, [X, Y], [Y[:40], X], m=2, radius=0.3, convention="crqa", theiler=2),
    "recurrence_plot": partial(pyedmcl.recurrence_plot, X, m=2, radius=0.3, pixels=10),
    "distance_plot": partial(pyedmcl.distance_plot, X, Y, m=2, pixels=10),
    "recurrence_network": partial(pyedmcl.recurrence_network, X, m=2, radius=0.3),
}


def as_on_gpus():
    """Have every kernel take the default parameters of GPUs: those of processors have vectors of 16 numbers, of which
    the simulator cannot tell what is initialised."""  # fmt: skip
    of_device = defaults.defaults

    def of_gpu(spec, specialisation, info, most, sizes=None):
        if spec.name == "smap_solve":  # refuses groups on what says that it is a processor
            return of_device(spec, specialisation, info, most, sizes)
        return of_device(spec, specialisation, replace(info, kind="gpu", runtime="other"), most, sizes)

    defaults.defaults = of_gpu


def fill_new_buffers(byte):
    """Whatever a kernel reads before it is written is this byte, over and over."""
    allocate = opencl.OpenCLExecutor.allocate

    def poisoned(self, nbytes):
        buffer = allocate(self, nbytes)
        self.upload(np.full(int(nbytes), byte, np.uint8), buffer)
        buffer.itemsize = 0  # what a kernel takes it for is still to be seen
        return buffer

    opencl.OpenCLExecutor.allocate = poisoned
    memory.BufferSets.take = lambda self, key: memory.BufferSet()  # all that a call uses is new


def note_ragged(into):
    """Add the names of kernels whose open launches are no whole groups of 64."""
    launch = opencl.OpenCLExecutor.launch

    def noted(self, kernel, size, local, /, **arguments):
        if local is None and size != open_size(*size):
            into.add(kernel.name)
        return launch(self, kernel, size, local, **arguments)

    opencl.OpenCLExecutor.launch = noted


def digest(result):
    """SHA-256 of all numbers in a result."""
    state = hashlib.sha256()

    def take(value):
        if isinstance(value, np.ndarray):
            state.update(np.ascontiguousarray(value).tobytes())
        elif dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                if field.name != "provenance":
                    take(getattr(value, field.name))
        elif isinstance(value, (tuple, list)):
            for one in value:
                take(one)
        elif isinstance(value, (int, float)):
            state.update(repr(value).encode())

    take(list(result) if hasattr(result, "labels") else result)
    return state.hexdigest()


def main(device, parameters, *names):
    if parameters.isdigit():
        fill_new_buffers(int(parameters))
    else:
        run.patch(parameters, True, True)
        if parameters != "default":
            as_on_gpus()
    warnings.simplefilter("ignore")
    built, ragged = set(), set()
    note_ragged(ragged)
    text_of = build._kept_source

    def noted(spec, values):
        built.add(spec.name)
        return text_of(spec, values)

    build._kept_source = noted
    for name in names or CALLS:
        built.clear()
        ragged.clear()
        build._text.cache_clear()
        begun = time.monotonic()
        trouble = found = None
        try:
            found = digest(CALLS[name](device=device, tune="never"))
        except pyedmcl.errors.PyedmclError as error:
            trouble = str(error)
        line = [name, sorted(built), round(time.monotonic() - begun, 2), trouble, found, sorted(ragged)]
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""What the tests of the store share: a manifest, a result, and the files of a folder by their digests."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from pyedmcl.jobs import Manifest, XmapStore

N, ROWS = 37, 5


def make_manifest(n=N, block_rows=ROWS, **changes):
    fields = {
        "input_digest": "ab" * 32,
        "names": [f"cell {i}" for i in range(n)],
        "block_rows": block_rows,
        "parameters": {"E": [3] * n, "tau": 1, "Tp": 0, "exclusion_radius": 0, "knn": None, "dtype": "float32"},
        "version": "0.1.0",
        "kernels": {"knn": "k" * 16},
        "device": {"name": "GPU A", "driver": "1.0"},
    }
    return Manifest(**{**fields, **changes})


def values(n=N):
    rng = np.random.default_rng(7)
    return rng.uniform(-1, 1, (n, n)).astype(np.float32)


def write_blocks(store, rho, blocks=None):
    for block in store.pending() if blocks is None else blocks:
        start, stop = store.rows(block)
        store.write(block, rho[start:stop])


def tree(path):
    """Every file below ``path`` with its digest."""
    return {
        str(f.relative_to(path)): hashlib.sha256(f.read_bytes()).hexdigest()
        for f in sorted(Path(path).rglob("*"))
        if f.is_file()
    }


def chunks(path):
    return {name: digest for name, digest in tree(path).items() if "/c." in name}


def finish(path):
    """A complete store at ``path``."""
    with XmapStore.create_or_resume(path, make_manifest()) as store:
        store.set_E(np.arange(1, N + 1))
        write_blocks(store, values())
    return path

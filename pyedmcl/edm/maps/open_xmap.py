"""Opening the folder of a map of all pairs."""

from __future__ import annotations

import os

from ...errors import warn
from ...files import path_of
from ...jobs.opening import open_store
from ...jobs.provenance import entries_by_kind
from . import xmap_run
from .xmap_edges import XmapEdges
from .xmap_result import XmapResult


def open_xmap(path: str | os.PathLike[str]) -> XmapResult | XmapEdges:
    """Open a result that ``xmap(..., out=path)`` or the command line wrote; rho is read when it is looked at.

    Parameters
    ----------
    path : path
        The folder that was given as ``out``.

    Returns
    -------
    XmapResult
        Arrays are read from the folder when they are used. An ``XmapEdges`` where edges were kept.

    Raises
    ------
    StoreForeignError
        The path is not such a result.

    Warns
    -----
    RuntimeWarning
        Edges were kept, and some are missing since the run has not finished.

    See Also
    --------
    xmap : makes such a result.

    Notes
    -----
    Cost: reads the manifest only.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = pyedmcl.xmap(network.values, E=3, out=f"{folder}/map.zarr")
    ...     again = pyedmcl.open_xmap(f"{folder}/map.zarr")
    ...     bool((np.asarray(again.rho) == np.asarray(first.rho)).all())
    True
    """
    store = open_store(path_of(path))
    if store.keep is not None and not store.complete:  # a map shows this by NaN
        warn(
            f"{path} is not finished: {len(store.pending())} of {store.n_blocks} blocks of libraries are missing, and "
            "so are their edges; run the same xmap call again, which continues it"
        )
    found = store.manifest.provenance(**entries_by_kind(store.searched))
    return xmap_run.result_of_store(store, store.dimensions(), found)

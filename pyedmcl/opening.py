"""Open whatever a function of the package has written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .atomic_files import path_of
from .convergence.matrix import open_ccm_matrix, sizes_there
from .crossmap.grid import is_grid, open_xmap_grid
from .crossmap.xmap import open_xmap
from .errors import InputError, StoreForeignError
from .jobs.records import IDENTITY, METADATA, digest_in, require_plain
from .network.verdicts import NETWORK_FILE
from .results.saved import read_result
from .significance.xmap_significance import SIGNIFICANCE_FILE


def open_result(path: str | os.PathLike[str]) -> Any:
    """Open a result that ``result.save(path)`` wrote, or the folder of a function with ``out=``.

    Parameters
    ----------
    path : path
        A file that ends in ``.edm``, or such a folder.

    Returns
    -------
    XmapResult, SimplexResult, ...
        An object of the class that was saved, with the same values.

    Raises
    ------
    InputError
        There is nothing of that name.
    StoreForeignError
        It is no result of ours.
    StoreMismatchError
        Another version of pyedmcl wrote it, in a way that this one does not know.
    StoreError
        It is damaged: a checksum differs, or something is missing.

    See Also
    --------
    open_xmap, open_ccm_matrix : open a folder of that kind only.

    Notes
    -----
    Cost: reads a file as a whole, of a folder the manifest only. Nothing in a file is executed, so that one from
    elsewhere may be opened. The file is a zip archive of NumPy arrays and a description in JSON: ``numpy.load`` reads
    its arrays, too.

    Examples
    --------
    >>> import tempfile
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saved = pyedmcl.xmap(network.values, E=3).save(f"{folder}/map.edm")
    ...     pyedmcl.open_result(saved).rho.shape
    (4, 4)
    """
    place = path_of(path)
    if not os.path.lexists(place):
        raise InputError(f"{place}: there is no such file or folder")
    if not place.is_dir():
        return read_result(place)
    require_plain(place)
    if (place / METADATA).exists():
        return open_xmap(place)
    saved = saved_in(place)
    if saved is not None:
        return read_result(saved, of=digest_in(place))
    if is_grid(place):
        return open_xmap_grid(place)
    try:
        stored = bool(sizes_there(place))
    except StoreForeignError:
        stored = False
    if not stored and (place / IDENTITY).exists():
        raise InputError(
            f"{place} holds parts of a run, and no result that can be opened: the same call continues there and "
            "returns the result"
        )
    if not stored:
        raise StoreForeignError(
            f"{place} is a folder that neither pyedmcl xmap, xmap-grid, ccm-matrix nor network wrote; name a folder of "
            "theirs, or a file that save() wrote"
        )
    return open_ccm_matrix(place)


def saved_in(folder: Path) -> Path | None:
    """The file of the whole result in the folder of a run that has ended; None where results are stores."""
    places = (folder / name for name in (NETWORK_FILE, SIGNIFICANCE_FILE))
    return next((place for place in places if place.exists()), None)

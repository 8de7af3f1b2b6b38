"""The public function that writes a report."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..data.arguments import boolean, real
from ..edm.open_result import open_result, saved_in
from ..errors import InputError, shown
from ..files import output_path, path_of, writing
from ..jobs.opening import open_store
from ..jobs.status import stores_of
from .content import Curves, Section, Wishes
from .document import document
from .pictures import require_matplotlib
from .sections import section_of

SUFFIXES = (".html", ".htm")
_MOST = 20_000  # rows of a table, beyond which pages are slow


def report(
    result: Any,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    top: int = 500,
    cluster: bool = False,
    pairs: Sequence[tuple[str, str]] | None = None,
    rate: float = 0.05,
) -> Path:
    """Write what there is to see of a result as one HTML file, which needs no network.

    It shows what was run (data and its digest, arguments, versions, device), and of maps a heat map that can be zoomed,
    a table of the strongest links that can be sorted and downloaded, with p and q values where the result has them, a
    network with a slider for its threshold, a histogram of E, and curves of convergence or of skill against lag. Plots
    of recurrence can be zoomed, too. Other results show their picture and their table.

    Parameters
    ----------
    result : result, path, or several of them
        What a function returned, or a file or folder that :func:`open_result` opens, finished or not. Several become
        sections of one page.
    path : path
        Ends in ``.html``. A file that is there is replaced, once the new one is complete.
    title : str, optional
        Of the page.
    top : int
        Rows of a table: the strongest links.
    cluster : bool
        Put the series of maps in order of likeness (average linkage of their rows and columns). Needs SciPy.
    pairs : sequence of (str, str), optional
        (cause, effect), whose curves are shown first; by default the strongest.
    rate : float
        False discovery rate at which links count as significant, for the switch beside the network.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    OutputError
        Another suffix, or a folder that is not there.
    StoreWriteError
        The file cannot be written; one that was there is kept.
    InputError
        There is nothing at a path, ``result`` is no result, or an argument cannot be used.
    StoreForeignError, StoreMismatchError, StoreError
        As for :func:`open_result`.
    MissingExtraError
        matplotlib, or for ``cluster`` SciPy, is not installed.

    See Also
    --------
    open_result : opens what was stored.

    Notes
    -----
    Cost: reads a map twice, part by part; a map of more than 700 series is shown by means of blocks. The file is
    the same each time, and has a few MB.

    Examples
    --------
    >>> import tempfile
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.xmap(network.values, E=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = pyedmcl.report(result, f"{folder}/map.html")
    ...     page.read_text(encoding="utf-8").startswith("<!doctype html>")
    True
    """
    place = output_path(path, SUFFIXES, "a report")
    if isinstance(top, bool) or not isinstance(top, (int, np.integer)) or not 1 <= top <= _MOST:
        raise InputError(f"top={shown(top)}: an integer of 1 to {_MOST:,} rows is needed")
    if title is not None and not isinstance(title, str):
        raise InputError(f"title={shown(title)}: a text is needed")
    share = real("rate", rate, "a number between 0 and 1", lambda value: 0 < value < 1)
    wishes = Wishes(int(top), boolean("cluster", cluster), _pairs(pairs), share)
    require_matplotlib()
    several = isinstance(result, (list, tuple)) and not hasattr(result, "provenance")
    results = list(result) if several else [result]
    if not results:
        raise InputError("result: there is none; name one at least")
    sections = [_section(one, wishes) for one in results]
    if wishes.pairs and not any(isinstance(part, Curves) for section in sections for part in section.parts):
        raise InputError("pairs: there are no curves of pairs here; those of convergence, lags and grids have some")
    page = document(sections, title)
    with writing(place, "the report") as draft:
        draft.write(page)
    return place


def _pairs(pairs: Any) -> tuple[tuple[str, str], ...]:
    if pairs is None:
        return ()
    named = [tuple(pair) if isinstance(pair, (list, tuple)) else () for pair in pairs] if isinstance(
        pairs, (list, tuple)) else [()]  # fmt: skip
    if not all(len(pair) == 2 and all(isinstance(name, str) for name in pair) for pair in named):
        raise InputError(f"pairs={shown(pairs)}: pairs (cause, effect) of names are needed, such as [('x', 'y')]")
    return tuple((str(cause), str(effect)) for cause, effect in named)


def _section(one: Any, wishes: Wishes) -> Section:
    """The section of a result, or of what lies at a path."""
    if not isinstance(one, (str, os.PathLike)):
        return section_of(one, wishes)
    where = path_of(one, "result")
    opened = open_result(where)
    section = section_of(opened, wishes)
    remarks = (*_unfinished(where), *section.remarks)
    return replace(section, remarks=remarks, facts={"result": str(where), **section.facts})


def _unfinished(where: Path) -> tuple[str, ...]:
    """What to say of a folder whose run has not ended."""
    if not where.is_dir() or saved_in(where) is not None:
        return ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # who opened it was warned already
        stores = [open_store(store.path) for store in stores_of(where)]
    pending, total = sum(len(store.pending()) for store in stores), sum(store.n_blocks for store in stores)
    if not pending:
        return ()
    return (
        f"This result is not finished: {pending:,} of {total:,} blocks are missing, and are blank here. Run its "
        "command again, which continues it, and write the report anew.",
    )

"""The folder of surrogate tests, which keeps what is finished, and in which several processes compute them together.

Each round is cut into blocks of targets, which are files of the private folder of those who share it; the next round
follows from all of the last one, so that everybody makes the same. In the end the counts alone are kept.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...jobs import durable
from ...jobs.blocks import Record, cut, default_block_rows
from ...jobs.claims import Member
from ...jobs.ownership import digest_of_identity, mark
from ...jobs.parts import END, StageSink, end_of, found, packed
from ...jobs.records import as_searched
from ...jobs.seeded import seeded_folder
from ..shared import arguments

if TYPE_CHECKING:
    from .lagged_significance_problem import LaggedSignificanceProblem
    from .xmap_significance_problem import XmapSignificanceProblem

# Each block searches the neighbours of all libraries anew: it has at least this many targets, and there are at least
# this many blocks where there are targets enough, so that each process gets some.
_FEWEST_TARGETS, _BLOCKS = 32, 16

Layers = list[NDArray[Any]]


class RoundSink(StageSink):
    """The targets of a round, and of the search for E that comes before the first one."""

    def __init__(self, folder: SurrogateFolder, name: str, n: int, rows: int) -> None:
        place = folder.member.folder / name
        super().__init__(place, name, cut(n, rows, 3), folder.member, folder.begin, folder.of)
        self._tests = folder
        self.E: NDArray[np.int_] | None = None
        durable.inner_folder(place)
        mark(place, len(self._blocks), {}, "out")

    def set_E(self, E: ArrayLike, record: Record) -> None:
        self.E = np.asarray(E, int)

    def stage(self, name: str, n: int, blocks: Any) -> RoundSink:
        return RoundSink(self._tests, name, n, default_block_rows(n))

    def kept(self) -> str:
        n, left = len(self._blocks), len(self.pending())
        where = self._tests.member.folder.parent
        return f"{n - left} of {n} blocks of a round of surrogates are kept in {where}; the same call continues there"


class SurrogateFolder:
    """Where the rounds of surrogate tests go, for one process or several.

    Parameters
    ----------
    path : Path
    member : Member
    begin : float
        Where this process begins, from :func:`pyedmcl.jobs.turns.begin_of`.
    seed : int
        Of the surrogates.
    of : str
        Digest of the question.
    """

    def __init__(self, path: Path, member: Member, begin: float, seed: int, of: str) -> None:
        self._path, self.member, self.begin, self.seed, self.of = path, member, begin, seed, of

    def sink(self, problem: XmapSignificanceProblem | LaggedSignificanceProblem) -> RoundSink:
        """Where a round goes, cut into blocks that all who share the folder cut alike."""
        n = problem.total
        rows = min(len(problem.blocks()[0]), max(-(-n // _BLOCKS), _FEWEST_TARGETS))
        return RoundSink(self, f"round-{problem.first}", n, rows)

    def result(self) -> tuple[Record, Layers] | None:
        """E, skill, how many surrogates reach it, and how many there are, once all rounds are done."""
        part = found(self._path / END, end_of(self.of))
        if part is None:
            return None
        head, arrays = part
        searched = tuple(as_searched(one) for one in head["searched"])
        return Record(searched=searched), list(arrays.values())

    def keep(self, record: Record, layers: Layers) -> None:
        """Keep the result.

        Raises
        ------
        StoreWriteError
            It cannot be written.
        """
        named = {f"array{place}": layer for place, layer in enumerate(layers)}
        head = {"searched": [dict(one) for one in record.searched]}
        advice = ", then run the same command again: it goes on from there"
        with durable.explained(f"{self._path} cannot be written", advice):
            durable.write_file(self._path / END, packed(named, head, end_of(self.of)))

    def settle(self) -> None:
        """Clear up behind all who shared the folder, once nothing more is written there."""
        self.member.settle(lambda: durable.remove_temporaries(self._path))


@contextlib.contextmanager
def folder_for(
    path: Path, begin: float | None, device: str, asked: dict[str, Any], seed: int | None, data: str
) -> Iterator[SurrogateFolder]:
    """The folder of some tests, for this process alone (``begin`` None) or as one of several.

    Parameters
    ----------
    path : Path
    begin : float or None
        From :func:`pyedmcl.jobs.turns.begin_of`.
    device : str
        Its name, to be told to others.
    asked : dict
        What decides the answer, beside seed, data and version.
    seed : int or None
        None: that of the tests that are there, or of who began first.
    data : str
        Digest of the series.

    Raises
    ------
    StoreForeignError, StoreMismatchError, StoreWriteError
        The folder is not ours, belongs to other data or arguments, or cannot be written.
    StoreError
        Joined processes work there, and this one has not joined.
    """
    from ... import __version__

    def identity(seed: int) -> dict[str, str]:
        named = {**asked, "seed": seed, "version of pyedmcl": __version__}
        return {"data": data, **{name: json.dumps(value, default=int) for name, value in named.items()}}

    with seeded_folder(path, begin, device, seed, identity) as (member, stored_seed):
        of = digest_of_identity(identity(stored_seed))
        yield SurrogateFolder(path, member, begin or 0.0, arguments.stream(stored_seed), of)

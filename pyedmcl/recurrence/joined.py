"""Counts of a long sweep that several processes share by a folder; what each has finished is kept there.

The folder holds ``parts.json`` (what is counted) and a file for each range of bands that is done; neighbouring ones are
joined as they come, to one file in the end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ..jobs import durable
from ..jobs.claims import Member
from ..jobs.ownership import digest_of_identity, is_ours, mark
from ..jobs.parts import PartsSink
from ..jobs.runner import Runner
from .checkpoint import identity_of, packed_parts, unpacked_parts
from .counts import Counts
from .engine import CountingProblem, combine, join_rows, require_consistent
from .partial import Partial
from .problem import RqaProblem

# Bands are cut by the matrix alone, so that all who join cut them alike: not so small that writing one takes longer
# than counting it, and enough for many processes.
_CELLS_OF_A_BAND = 1 << 34
_FEWEST, _MOST = 16, 256


def quantify_joined(
    folder: Path, begin: float, runner: Runner, problem: RqaProblem, x: Any, y: Any, *,
    tile: int | None,
) -> list[Counts]:  # fmt: skip
    """As :func:`~pyedmcl.recurrence.engine.quantify`, together with all who do the same in a folder.

    Parameters
    ----------
    folder : Path
    begin : float
        Where this process begins, from :func:`pyedmcl.jobs.turns.begin_of`.
    runner, problem, x, y, tile
        As for the engine.

    Raises
    ------
    StoreForeignError
        The folder holds something else.
    StoreMismatchError
        It belongs to other data or parameters; the message says which differ.
    StoreWriteError
        It cannot be written.
    Interrupted
        Ctrl-C; the message says what is kept. Others go on.
    """
    counting = CountingProblem(problem, x, y, tile, partial=True)
    cells = counting.total
    blocks = counting.blocks(min(max(cells // _CELLS_OF_A_BAND, _FEWEST), _MOST))
    identity = _identity(problem, x, y)
    is_ours(folder, identity, "checkpoint")  # before anything is touched
    with Member(folder, runner.infos[0].name) as member:
        member.enter()
        mark(folder, len(blocks), identity, "checkpoint")
        sink = BandsSink(counting, folder, blocks, member, begin, digest_of_identity(identity))
        runner.run(counting, sink)
        counts = require_consistent(runner.infos, problem, combine(problem, sink.results(), x))
        member.settle(lambda: durable.remove_temporaries(folder))
        return counts


class BandsSink(PartsSink):
    """Bands of rows of a recurrence matrix, in a folder."""

    joins = True

    def __init__(self, problem: CountingProblem, folder: Path, *given: Any) -> None:
        super().__init__(folder, "band", *given)
        self._problem = problem

    def _result(self, arrays: Mapping[str, NDArray[Any]]) -> list[Partial]:
        return unpacked_parts(arrays)

    def _arrays(self, result: Sequence[Partial]) -> dict[str, NDArray[Any]]:
        return packed_parts(result)

    def _joined(self, results: Sequence[Sequence[Partial]]) -> list[Partial]:
        return join_rows(self._problem.matrix, results)

    def kept(self) -> str:
        n, left = len(self._blocks), len(self.pending())
        return f"{n - left} of {n} bands are kept in {self._folder}; the same call goes on from there"


def _identity(problem: RqaProblem, x: Any, y: Any) -> dict[str, str]:
    from .. import __version__

    return {**identity_of(problem, x, y), "version of pyedmcl": json.dumps(__version__)}

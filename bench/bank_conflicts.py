"""How often neighbours of rows that are looked up at once meet in a bank of local memory.

usage: python bench/bank_conflicts.py [--device NAME] [--shape 8528] [--E 20] [--bytes 16] [--out FILE]

Targets lie in local memory, --bytes of them for each row, and row ``r`` begins at byte ``r * bytes``. NVIDIA GPUs
serve 128 bytes at once, unless two different words lie in one of 32 banks of 4 bytes. The factor says how many times as
long the lookup's reads of neighbours take as without such conflicts. The tables are those of two libraries.
"""

from __future__ import annotations

import numpy as np
from common import Report, parser
from numpy.typing import NDArray
from workloads import coupled_maps

import pyedmcl
from pyedmcl.device.select import select

_ROWS, _SERVED, _WORD, _BANKS = 8, 128, 4, 32


def factor(rows: NDArray[np.int64], nbytes: int) -> float:
    """Reads of a bank that follow each other, on average, where there would be one.

    Parameters
    ----------
    rows : array, (query rows, neighbours)
    nbytes : int
        Bytes of a row's targets, a part of 128.
    """
    at_once = min(_SERVED // nbytes, _ROWS)
    rows = rows[: len(rows) // _ROWS * _ROWS].reshape(-1, at_once, rows.shape[1])
    rows = rows.transpose(0, 2, 1).reshape(-1, at_once)
    words = (rows * nbytes // _WORD)[..., None] + np.arange(nbytes // _WORD)
    words = np.sort(words.reshape(len(rows), -1), axis=1)
    distinct = np.diff(words, axis=1, prepend=-1) != 0  # one read serves all that ask for the same word
    meeting = np.zeros((len(rows), _BANKS), np.int64)
    row, place = np.nonzero(distinct)
    np.add.at(meeting, (row, words[row, place] % _BANKS), 1)
    return float(meeting.max(axis=1).mean())


def main() -> None:
    command = parser(__doc__, repeat=1)
    command.add_argument("--shape", type=int, default=8528, help="steps of a series")
    command.add_argument("--E", type=int, default=20)
    command.add_argument("--bytes", type=int, default=16, help="bytes of a row's targets in local memory")
    options = command.parse_args()
    report = Report(select(options.device).device, options.out)
    x, factors = coupled_maps(8, options.shape), []
    for series in x.T[:2]:
        rows = pyedmcl.knn(series, E=options.E, k=options.E + 1, device=options.device).indices
        factors.append(factor(np.asarray(rows[rows.min(axis=1) >= 0], np.int64), options.bytes))
    report.add(steps=options.shape, E=options.E, bytes=options.bytes, factor=round(float(np.mean(factors)), 2))


if __name__ == "__main__":
    main()

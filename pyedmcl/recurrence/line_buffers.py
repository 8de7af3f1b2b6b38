"""What a device keeps of the lines of one matrix, and how it lies in memory.

A segment is what is kept of a line; ``clkernels/segments.clh`` explains it, and :mod:`.partial` names its fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..launch.sizes import open_size
from .partial import FIELDS

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor

#: Kinds of counted lines: diagonal, black and white vertical, white at the border of the matrix.
LINE_KINDS = 4
#: The first of these are counted by a walk over tiles; those at the border are counted when all rows have been seen.
WALKED_KINDS = 3
_SEGMENT_BYTES = 4 * FIELDS


@dataclass(frozen=True)
class LineBuffers:
    """What a device keeps of one matrix.

    Attributes
    ----------
    diagonals, rows, columns : Buffer
        Segments of all lines, int32 [fields][lines].
    counts, sums : Buffer
        Lines by kind and length, [LINE_KINDS][longest + 1]. ``counts`` (uint32) has those that were counted since
        ``recurrence_fold`` ran last, which adds them to ``sums`` (uint64).
    """

    diagonals: Buffer
    rows: Buffer
    columns: Buffer
    counts: Buffer
    sums: Buffer

    @staticmethod
    def sizes(lines: Sequence[int], longest: int) -> dict[str, int]:
        """Bytes of each buffer.

        Parameters
        ----------
        lines : (int, int, int)
            Diagonals, rows and columns that segments are kept of.
        longest : int
            Length of the longest line that is possible.
        """
        lengths = LINE_KINDS * (longest + 1)
        sizes = dict(zip(("diagonals", "rows", "columns"), map(segment_bytes, lines), strict=True))
        return {**sizes, "counts": 4 * lengths, "sums": 8 * lengths}

    @classmethod
    def allocated(cls, allocate: Callable[[int], Buffer], lines: Sequence[int], longest: int) -> LineBuffers:
        """New buffers of these :meth:`sizes`."""
        return cls(**{name: allocate(nbytes) for name, nbytes in cls.sizes(lines, longest).items()})

    def clear(self, executor: Executor, kernels: Mapping[str, Any]) -> None:
        """Forget all lines and counts; ``kernels`` has the entries ``recurrence_clear`` and ``recurrence_zero``."""
        for segments in (self.diagonals, self.rows, self.columns):
            n = lines_in(segments)
            executor.launch(kernels["recurrence_clear"], open_size(n), None, segments=segments, n=n)
        for numbers in (self.counts, self.sums):
            n = numbers.nbytes // 4
            executor.launch(kernels["recurrence_zero"], open_size(n), None, numbers=numbers, n=n)


def segment_bytes(lines: int) -> int:
    """Bytes of the segments of ``lines`` lines."""
    return _SEGMENT_BYTES * lines


def lines_in(segments: Buffer) -> int:
    """How many lines a buffer has segments of."""
    return segments.nbytes // _SEGMENT_BYTES


def field_offset(segments: Buffer, field: int, line: int = 0) -> int:
    """The byte at which a field of a line's segment lies."""
    return 4 * (field * lines_in(segments) + line)

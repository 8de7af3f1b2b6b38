"""What PyRQA's computations return."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...recurrence.counts import Counts, sum_of
from . import matrix
from .analysis_type import Cross, Joint

Frequencies = NDArray[np.uint64]
Path = str | os.PathLike[str]

# Attribute, what PyRQA calls it where it is printed, and how.
_PRINTED = (
    ("min_diagonal_line_length", "Minimum diagonal line length (L_min)", "d"),
    ("min_vertical_line_length", "Minimum vertical line length (V_min)", "d"),
    ("min_white_vertical_line_length", "Minimum white vertical line length (W_min)", "d"),
    ("recurrence_rate", "Recurrence rate (RR)", "f"),
    ("determinism", "Determinism (DET)", "f"),
    ("average_diagonal_line", "Average diagonal line length (L)", "f"),
    ("longest_diagonal_line", "Longest diagonal line length (L_max)", "d"),
    ("divergence", "Divergence (DIV)", "f"),
    ("entropy_diagonal_lines", "Entropy diagonal lines (L_entr)", "f"),
    ("laminarity", "Laminarity (LAM)", "f"),
    ("trapping_time", "Trapping time (TT)", "f"),
    ("longest_vertical_line", "Longest vertical line length (V_max)", "d"),
    ("entropy_vertical_lines", "Entropy vertical lines (V_entr)", "f"),
    ("average_white_vertical_line", "Average white vertical line length (W)", "f"),
    ("longest_white_vertical_line", "Longest white vertical line length (W_max)", "d"),
    ("longest_white_vertical_line_inverse", "Longest white vertical line length inverse (W_div)", "f"),
    ("entropy_white_vertical_lines", "Entropy white vertical lines (W_entr)", "f"),
    ("ratio_determinism_recurrence_rate", "Ratio determinism / recurrence rate (DET/RR)", "f"),
    ("ratio_laminarity_determinism", "Ratio laminarity / determinism (LAM/DET)", "f"),
)
_HEADS = {Cross: "CRQA Result:\n============\n", Joint: "JRQA Result:\n============\n"}


class RPResult:
    """A recurrence plot.

    Attributes
    ----------
    settings : Settings or JointSettings
    matrix_runtimes : MatrixRuntimes
    recurrence_matrix : ndarray (vectors of y, vectors of x)
        Zeros and ones (uint8), or distances.
    """

    def __init__(self, settings: Any, matrix_runtimes: Any, recurrence_matrix: Any = None) -> None:
        self.settings, self.matrix_runtimes = settings, matrix_runtimes
        self.recurrence_matrix = np.array([], np.uint32) if recurrence_matrix is None else recurrence_matrix

    @property
    def recurrence_matrix_reverse(self) -> NDArray[Any]:
        """Its last row first: as a plot, time runs upwards."""
        out: NDArray[Any] = self.recurrence_matrix[::-1]
        return out

    @property
    def recurrence_matrix_reverse_normalized(self) -> NDArray[Any]:
        """The same divided by the largest value, so that all lie between 0 and 1."""
        largest = self.recurrence_matrix.max()
        out: NDArray[Any] = self.recurrence_matrix[::-1] / (largest if largest > 0 else 1)
        return out


class RQAResult:
    """Recurrence quantification: counts, and the measures that follow from them.

    Attributes
    ----------
    settings : Settings or JointSettings
    matrix_runtimes : MatrixRuntimes
    recurrence_points : ndarray of uint32
        Recurrent cells of each column.
    diagonal_frequency_distribution, vertical_frequency_distribution, white_vertical_frequency_distribution : ndarray
        Number (uint64) of lines of length 1, 2, ...
    min_diagonal_line_length, min_vertical_line_length, min_white_vertical_line_length : int
        Least lengths; measures follow when they are changed.
    """

    def __init__(
        self, settings: Any, matrix_runtimes: Any, recurrence_points: Any = None,
        diagonal_frequency_distribution: Any = None, vertical_frequency_distribution: Any = None,
        white_vertical_frequency_distribution: Any = None, min_diagonal_line_length: int = 2,
        min_vertical_line_length: int = 2, min_white_vertical_line_length: int = 2,
    ) -> None:  # fmt: skip
        def or_none(values: Any) -> Any:
            return np.array([], np.uint32) if values is None else values

        self.settings, self.matrix_runtimes = settings, matrix_runtimes
        self.recurrence_points = or_none(recurrence_points)
        self.diagonal_frequency_distribution = or_none(diagonal_frequency_distribution)
        self.vertical_frequency_distribution = or_none(vertical_frequency_distribution)
        self.white_vertical_frequency_distribution = or_none(white_vertical_frequency_distribution)
        self.min_diagonal_line_length = min_diagonal_line_length
        self.min_vertical_line_length = min_vertical_line_length
        self.min_white_vertical_line_length = min_white_vertical_line_length

    @classmethod
    def of_counts(cls, settings: Any, counts: Counts) -> RQAResult:
        """The result of counted cells."""
        size = max(counts.n_rows, counts.n_columns)
        points = np.zeros(size, np.uint32)
        points[: counts.n_columns] = counts.columns
        white = sum_of(counts.whites, counts.white_borders)
        return cls(
            settings, None, points, by_length(counts.diagonals, size), by_length(counts.verticals, size),
            by_length(white, size),
        )  # fmt: skip

    # How much recurs.

    @property
    def number_of_recurrence_points(self) -> int:
        """Recurrent cells."""
        return int(np.sum(self.recurrence_points, dtype=np.uint64))

    @property
    def recurrence_rate(self) -> float:
        """RR: share of the cells that are recurrent."""
        cells = self.settings.number_of_vectors_x * self.settings.number_of_vectors_y
        return matrix.ratio(self.number_of_recurrence_points, cells)

    # Diagonal lines.

    def number_of_diagonal_lines(self, min_length: int) -> int:
        """Diagonal lines of at least a length."""
        return matrix.count(self.diagonal_frequency_distribution, min_length)

    def number_of_diagonal_lines_points(self, min_length: int) -> int:
        """Cells on such lines."""
        return matrix.points(self.diagonal_frequency_distribution, min_length)

    @property
    def determinism(self) -> float:
        """DET: share of the cells on diagonal lines that are on long enough ones."""
        return matrix.share(self.diagonal_frequency_distribution, self.min_diagonal_line_length)

    @property
    def average_diagonal_line(self) -> float:
        """L: mean length of long enough diagonal lines."""
        return matrix.average(self.diagonal_frequency_distribution, self.min_diagonal_line_length)

    @property
    def longest_diagonal_line(self) -> int:
        """L_max."""
        return matrix.longest(self.diagonal_frequency_distribution)

    @property
    def divergence(self) -> float:
        """DIV: 1 / L_max."""
        return matrix.ratio(1, self.longest_diagonal_line)

    @property
    def entropy_diagonal_lines(self) -> float:
        """L_entr: Shannon entropy of the lengths of long enough diagonal lines, in nats."""
        return matrix.entropy(self.diagonal_frequency_distribution, self.min_diagonal_line_length)

    # Vertical lines.

    def number_of_vertical_lines(self, min_length: int) -> int:
        """Vertical lines of at least a length."""
        return matrix.count(self.vertical_frequency_distribution, min_length)

    def number_of_vertical_lines_points(self, min_length: int) -> int:
        """Cells on such lines."""
        return matrix.points(self.vertical_frequency_distribution, min_length)

    @property
    def laminarity(self) -> float:
        """LAM: share of the recurrent cells that are on long enough vertical lines."""
        return matrix.share(self.vertical_frequency_distribution, self.min_vertical_line_length)

    @property
    def trapping_time(self) -> float:
        """TT: mean length of long enough vertical lines."""
        return matrix.average(self.vertical_frequency_distribution, self.min_vertical_line_length)

    @property
    def longest_vertical_line(self) -> int:
        """V_max."""
        return matrix.longest(self.vertical_frequency_distribution)

    @property
    def entropy_vertical_lines(self) -> float:
        """V_entr: as L_entr, of vertical lines."""
        return matrix.entropy(self.vertical_frequency_distribution, self.min_vertical_line_length)

    # White vertical lines.

    def number_of_white_vertical_lines(self, min_length: int) -> int:
        """White vertical lines of at least a length."""
        return matrix.count(self.white_vertical_frequency_distribution, min_length)

    def number_of_white_vertical_lines_points(self, min_length: int) -> int:
        """Cells on such lines."""
        return matrix.points(self.white_vertical_frequency_distribution, min_length)

    @property
    def average_white_vertical_line(self) -> float:
        """W: mean length of long enough white vertical lines."""
        return matrix.average(self.white_vertical_frequency_distribution, self.min_white_vertical_line_length)

    @property
    def longest_white_vertical_line(self) -> int:
        """W_max."""
        return matrix.longest(self.white_vertical_frequency_distribution)

    @property
    def longest_white_vertical_line_inverse(self) -> float:
        """W_div: 1 / W_max."""
        return matrix.ratio(1, self.longest_white_vertical_line)

    @property
    def entropy_white_vertical_lines(self) -> float:
        """W_entr: as L_entr, of white vertical lines."""
        return matrix.entropy(self.white_vertical_frequency_distribution, self.min_white_vertical_line_length)

    # Ratios.

    @property
    def ratio_determinism_recurrence_rate(self) -> float:
        """DET / RR."""
        return matrix.ratio(self.determinism, self.recurrence_rate)

    @property
    def ratio_laminarity_determinism(self) -> float:
        """LAM / DET."""
        return matrix.ratio(self.laminarity, self.determinism)

    # Columns, files, texts.

    def indices_by_local_recurrence_rate(self, threshold: float) -> NDArray[np.int64]:
        """Vectors of x that recur with at most this share of the vectors of y."""
        share = self.recurrence_points[: self.settings.number_of_vectors_x] / self.settings.number_of_vectors_y
        return np.nonzero(share <= threshold)[0]

    def indices_by_number_of_local_recurrence_points(self, threshold: float) -> NDArray[np.int64]:
        """Vectors of x that recur with at most ``threshold`` vectors of y."""
        return np.nonzero(self.recurrence_points[: self.settings.number_of_vectors_x] <= threshold)[0]

    def persist_diagonal_frequency_distribution(self, file_path: Path) -> None:
        """Write a line ``length: number`` for each length."""
        matrix.persist(self.diagonal_frequency_distribution, file_path)

    def persist_vertical_frequency_distribution(self, file_path: Path) -> None:
        """Write a line ``length: number`` for each length."""
        matrix.persist(self.vertical_frequency_distribution, file_path)

    def persist_white_vertical_frequency_distribution(self, file_path: Path) -> None:
        """Write a line ``length: number`` for each length."""
        matrix.persist(self.white_vertical_frequency_distribution, file_path)

    def to_array(self) -> NDArray[np.float64]:
        """Minimum lengths and all measures, in the order in which they are printed."""
        return np.array([getattr(self, name) for name, _, _ in _PRINTED], np.float64)

    def to_json(self) -> str:
        """The same as JSON, by their printed names."""
        return json.dumps({said: getattr(self, name) for name, said, _ in _PRINTED}, indent=4)

    def __str__(self) -> str:
        head = _HEADS.get(self.settings.analysis_type, "RQA Result:\n===========\n")
        said = [f"{text}: {getattr(self, name):{kind}}\n" for name, text, kind in _PRINTED]
        return head + "\n" + "".join(said[:3]) + "\n" + "".join(said[3:17]) + "\n" + "".join(said[17:])


def by_length(histogram: NDArray[np.int64], size: int) -> Frequencies:
    """Numbers of lines of length 1, ..., size from a histogram that begins with length 0."""
    out = np.zeros(size, np.uint64)
    out[: len(histogram) - 1] = histogram[1:]
    return out

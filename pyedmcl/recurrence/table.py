"""Recurrence quantification of several matrices side by side."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, overload

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..io.labels import Label
from ..io.result import Result
from .measures import MEASURE_LABELS, SHORT_NAMES
from .result import RecurrenceResult, labelled_frame


@dataclass(frozen=True, eq=False, repr=False)
class RecurrenceTable(Result, Sequence[RecurrenceResult]):
    """Recurrence quantification of several matrices: of several radii, or of windows along a series.

    Attributes
    ----------
    results : tuple of RecurrenceResult
    label : str
        What tells them apart: "radius" or "start".
    labels : tuple
        Its value for each.
    time : ndarray, optional
        The middle of each window, as a date or number, where the series have a time.

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(500) * 0.2)
    >>> table = pyedmcl.windowed_rqa(x, 200, 100, m=2, tau=8, radius=0.2)
    >>> table.label, table.labels  # row at which each window begins
    ('start', (0, 100, 200, 300))
    >>> table.measure("RR").round(2).tolist()
    [0.06, 0.06, 0.06, 0.06]
    >>> bool(table[0].RR == table.measure("RR")[0])
    True
    """

    column_labels: ClassVar = {"time": Label("", "the middle of the window"), **MEASURE_LABELS}

    results: tuple[RecurrenceResult, ...]
    label: str
    labels: tuple[Any, ...]
    time: NDArray[Any] | None = None

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Where the results come from, which is the same for all."""
        return self.results[0].provenance if self.results else {}

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[RecurrenceResult]:
        return iter(self.results)

    @overload
    def __getitem__(self, index: int) -> RecurrenceResult: ...
    @overload
    def __getitem__(self, index: slice) -> RecurrenceTable: ...
    def __getitem__(self, index: int | slice) -> RecurrenceResult | RecurrenceTable:
        if isinstance(index, slice):
            time = None if self.time is None else self.time[index]
            return RecurrenceTable(self.results[index], self.label, self.labels[index], time)
        return self.results[operator.index(index)]

    def measure(self, name: str) -> NDArray[Any]:
        """One measure (short or long name) of all matrices as an array."""
        if name not in SHORT_NAMES and name not in SHORT_NAMES.values():
            raise InputError(f"measure {name!r} is not known; choose one of {', '.join(SHORT_NAMES)} or a long name")
        return np.array([result[name] for result in self.results])

    def with_minimum(
        self, *, lmin: int | None = None, vmin: int | None = None, wmin: int | None = None
    ) -> RecurrenceTable:
        """As :meth:`RecurrenceResult.with_minimum`, for all."""
        changed = tuple(result.with_minimum(lmin=lmin, vmin=vmin, wmin=wmin) for result in self.results)
        return replace(self, results=changed)

    def to_dict(self, *, short: bool = False) -> dict[str, list[Any]]:
        """Lists of the labels and of all measures."""
        rows = [result.to_dict(short=short) for result in self.results]
        names = SHORT_NAMES if short else SHORT_NAMES.values()
        return {self.label: list(self.labels), **{name: [row[name] for row in rows] for name in names}}

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row per matrix, the time of windows that have one, and a column per measure."""
        columns = self.to_dict()
        labels = columns.pop(self.label)
        timed: dict[str, Any] = {} if self.time is None else {"time": self.time}
        return labelled_frame({**timed, **columns}, self.label, labels)

    def lag_profile(self, lags: int | None = None) -> Any:
        """The lag profile of each matrix, as :meth:`RecurrenceResult.lag_profile`: of windows, who leads when."""
        from .profile_result import profile_of

        return profile_of(self.results, lags, {self.label: self.labels}, self.provenance)

    def plot(self, path: str | None = None, *, names: Sequence[str] = ("RR", "DET", "LAM", "ENTR")) -> Any:
        """Measures over the label, or the time of the windows; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.recurrence import measure_curves

        return measure_curves(self, names, path)

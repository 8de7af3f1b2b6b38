"""What the recurrence quantification of many series returns: a table whose rows are made when they are asked for."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, shown
from ..io.labels import Label, common
from ..io.optional import need
from ..io.result import Result, brief
from .arguments import minimum
from .batch_counts import BatchCounts
from .batch_lines import Ints
from .batch_measures import MeasuresOfMany
from .batch_sides import Side
from .conventions import Convention
from .measures import MEASURE_LABELS, SHORT_NAMES
from .result import RecurrenceResult


@dataclass(frozen=True, eq=False, repr=False)
class RqaBatch(Result, Sequence[RecurrenceResult]):
    """Recurrence quantification of many series: a row for each series and radius.

    Item ``i`` is the :class:`RecurrenceResult` of row ``i``, series by series and radius by radius of each.

    Attributes
    ----------
    labels : mapping of str to tuple
        What tells the series apart, a value for each: groups and "series".
    asked : ndarray (series, radii) or (series, radii, 2)
        What was asked for of each series, in the unit that was asked for.
    used : ndarray of float64 (series, radii) or (series, radii, 2)
        The radii in the unit of the data, pairs for a corridor; NaN where each point has its own.
    counts : BatchCounts
        In the order in which they were computed.
    places : ndarray of int (rows,)
        Where among these a row's are.
    failed : mapping of int to str
        Numbers of series that could not be used, and why; all their measures are NaN.
    x, y : Side
    convention : Convention
    theiler, lmin, vmin, wmin : int
    provenance : mapping

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(500)[:, None] * np.linspace(0.1, 0.3, 8))  # 8 series
    >>> batch = pyedmcl.rqa_batch(x, m=2, tau=8, radius=0.2, radius_unit="std")
    >>> len(batch), batch.measure("DET").shape
    (8, (8,))
    >>> bool(batch[7].DET == batch.measure("DET")[7])
    True
    >>> batch.to_frame().columns.tolist()[:4]
    ['series', 'radius', 'radius_used', 'recurrence_rate']
    """

    series_label: ClassVar = Label("", "what tells the series apart")
    column_labels: ClassVar = {**common("radius", "radius_used"), **MEASURE_LABELS}

    labels: Mapping[str, tuple[Any, ...]]
    asked: NDArray[Any]
    used: NDArray[np.float64]
    counts: BatchCounts
    places: Ints
    x: Side
    y: Side
    convention: Convention
    theiler: int
    lmin: int
    vmin: int
    wmin: int
    failed: Mapping[int, str] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def radii(self) -> tuple[Any, ...]:
        """What was asked for of each series; of the first one, where each has its own."""
        return tuple(tuple(one) if isinstance(one, list) else one for one in self.asked[0].tolist())

    def __repr__(self) -> str:
        series, radii = len(self.x), len(self.radii)
        return f"RqaBatch({series:,} series, {radii} {'radius' if radii == 1 else 'radii'}, {self.convention.name!r})"

    def _facts(self) -> dict[str, str]:
        return {"series": f"{len(self.x):,}", "radii": brief(self.radii), "convention": self.convention.name}

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[RecurrenceResult]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        row = operator.index(index)
        row += len(self) if row < 0 else 0
        if not 0 <= row < len(self):
            raise IndexError(f"row {index}: there are {len(self)}")
        series, radius = divmod(row, self.asked.shape[1])
        used = self.used[series, radius]
        return RecurrenceResult(
            counts=self.counts.of(int(self.places[row])), convention=self.convention,
            radius=float(used) if used.ndim == 0 else tuple(used.tolist()), theiler=self.theiler, lmin=self.lmin,
            vmin=self.vmin, wmin=self.wmin, complete=(self.y.complete(series), self.x.complete(series)),
            symmetric=self.x is self.y, provenance={**self.provenance, "wanted": self._wanted(series, radius)},
        )  # fmt: skip

    def measure(self, name: str) -> NDArray[Any]:
        """One measure (short or long name) of all rows as an array."""
        long = SHORT_NAMES.get(name, name) if isinstance(name, str) else name
        if long not in SHORT_NAMES.values():
            raise InputError(
                f"measure {shown(name)} is not known; choose one of {', '.join(SHORT_NAMES)} or a long name"
            )
        of_long = self._measures.measure(long)
        if of_long is None:
            return np.array([result[long] for result in self])
        out: NDArray[Any] = of_long[self.places]
        for row in self.rows_with_gaps:
            out[row] = self[row][long]
        if self.failed:
            out = out.astype(np.float64)
            out[np.isin(np.arange(len(self)) // self.asked.shape[1], list(self.failed))] = np.nan
        return out

    def _wanted(self, series: int, radius: int) -> Any:
        wanted = self.asked[series, radius].tolist()
        return tuple(wanted) if isinstance(wanted, list) else wanted

    @cached_property
    def _measures(self) -> MeasuresOfMany:
        return MeasuresOfMany(
            self.counts, self.convention, theiler=self.theiler, lmin=self.lmin, vmin=self.vmin, wmin=self.wmin,
            symmetric=self.x is self.y, corridor=self.used.ndim == 3,
        )  # fmt: skip

    @cached_property
    def rows_with_gaps(self) -> list[int]:
        """Rows whose denominators gaps change."""
        gaps = self.x.gaps() if self.x is self.y else self.x.gaps() | self.y.gaps()
        return np.flatnonzero(np.repeat(gaps, self.asked.shape[1])).tolist()

    def lag_profile(self, lags: int | None = None) -> Any:
        """The lag profile of each row, as :meth:`RecurrenceResult.lag_profile`."""
        from .profile_result import profile_of

        times = self.asked.shape[1]
        labels = {name: tuple(np.repeat(np.array(values, object), times)) for name, values in self.labels.items()}
        return profile_of(self, lags, labels, self.provenance)

    def with_minimum(self, *, lmin: int | None = None, vmin: int | None = None, wmin: int | None = None) -> RqaBatch:
        """The same matrices with other least lengths of lines; nothing is computed anew on a device."""
        return replace(
            self,
            lmin=self.lmin if lmin is None else minimum("lmin", lmin),
            vmin=self.vmin if vmin is None else minimum("vmin", vmin),
            wmin=self.wmin if wmin is None else minimum("wmin", wmin),
        )

    def to_dict(self, *, short: bool = False) -> dict[str, list[Any]]:
        """Lists of labels, radii as asked for and as used (in the unit of the data), and all measures."""
        times = self.asked.shape[1]
        out = {name: [value for value in values for _ in range(times)] for name, values in self.labels.items()}
        out["radius"] = [self._wanted(series, radius) for series in range(len(self.x)) for radius in range(times)]
        used = self.used.reshape(len(self), -1)
        out["radius_used"] = used[:, 0].tolist() if used.shape[1] == 1 else list(map(tuple, used.tolist()))
        for symbol, name in SHORT_NAMES.items():
            out[symbol if short else name] = self.measure(name).tolist()
        return out

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row per series and radius; columns for labels, radii and measures."""
        return need("pandas", "to_frame()").DataFrame(self.to_dict())

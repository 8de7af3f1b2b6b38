"""What recurrence quantification returns: frozen integer counts, and every measure computed from them when asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ..io.optional import need
from ..io.result import Result, brief
from .arguments import minimum
from .measures import MEASURE_LABELS, SHORT_NAMES, Measures


@dataclass(frozen=True, eq=False, repr=False)
class RecurrenceResult(Measures, Result):
    """Recurrence quantification of one matrix.

    Every measure is an attribute by its long and its short name (``result.determinism``, ``result.DET``) and an item
    (``result["DET"]``). A mean over no lines is NaN. Points that touch a gap belong to no cell: they are left out of
    the denominators, black lines end there, white lines run through them.

    Attributes
    ----------
    counts : Counts
        The integers that all follows from.
    convention : Convention
    radius : float or tuple
        The radius of this matrix (in the data's unit); (inner, outer) for a corridor; NaN where each point has its own.
    theiler : int
        Cells with |i - j| < theiler are left out, of what, the convention says.
    lmin, vmin, wmin : int
        Least lengths of diagonal, vertical and white vertical lines; see :meth:`with_minimum`.
    complete : tuple of two ndarrays of bool
        Which rows and which columns are points without a gap.
    symmetric : bool
        Rows and columns stand for the same points.
    provenance : mapping

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(500) * 0.2)
    >>> result = pyedmcl.rqa(x, m=2, tau=8, radius=0.2)
    >>> round(result.determinism, 2), result.DET == result["DET"] == result.determinism
    (1.0, True)
    >>> list(result.to_dict(short=True))[:3]
    ['RR', 'DET', 'L']
    >>> result.with_minimum(lmin=100).DET < result.DET  # shorter lines do not count
    True
    """

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={self[name]:.6g}" for name in ("RR", "DET", "L", "Lmax", "ENTR", "LAM", "TT"))
        size = f"{self.counts.n_rows} x {self.counts.n_columns}"
        return f"RecurrenceResult({size}, radius={self.radius!r}, convention={self.convention.name!r}, {shown})"

    def _facts(self) -> dict[str, str]:
        size = f"{self.counts.n_rows} x {self.counts.n_columns}"
        facts = {"points": size, "radius": brief(self.radius), "convention": self.convention.name}
        return facts | {name: brief(value) for name, value in self.to_dict().items()}

    def __getattr__(self, name: str) -> Any:
        if name in SHORT_NAMES:
            return getattr(self, SHORT_NAMES[name])
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *SHORT_NAMES]

    def __getitem__(self, name: str) -> Any:
        long = SHORT_NAMES.get(name, name)
        if long not in SHORT_NAMES.values():
            raise KeyError(f"no measure {name!r}; there are {', '.join(SHORT_NAMES)} and their long names")
        return getattr(self, long)

    def with_minimum(
        self, *, lmin: int | None = None, vmin: int | None = None, wmin: int | None = None
    ) -> RecurrenceResult:
        """The same matrix with other least lengths of lines; nothing is computed anew on a device.

        Parameters
        ----------
        lmin, vmin, wmin : int, optional
            At least 1; those left out stay.

        Raises
        ------
        InputError
            For anything else.
        """
        return replace(
            self,
            lmin=self.lmin if lmin is None else minimum("lmin", lmin),
            vmin=self.vmin if vmin is None else minimum("vmin", vmin),
            wmin=self.wmin if wmin is None else minimum("wmin", wmin),
        )

    def to_dict(self, *, short: bool = False) -> dict[str, Any]:
        """All measures as plain numbers, by their long (or ``short``) names."""
        return {s if short else long: getattr(self, long) for s, long in SHORT_NAMES.items()}

    column_labels: ClassVar = MEASURE_LABELS

    def to_frame(self) -> Any:
        """A pandas DataFrame: one row, a column per measure."""
        columns = {name: [value] for name, value in self.to_dict().items()}
        return labelled_frame(columns, "radius", (self.radius,))

    def lag_profile(self, lags: int | None = None) -> Any:
        """The recurrence rate of each diagonal up to ``lags`` to either side, by the lag of y after x: a
        :class:`pyedmcl.recurrence.profile_result.LagProfile`. Cells that a Theiler window leaves out do not recur."""
        from .profile_result import profile_of

        return profile_of([self], lags, {}, self.provenance)

    def plot(self, path: str | None = None) -> Any:
        """Histograms of the lines; saved to ``path`` if given. Needs matplotlib."""
        from ..plot.recurrence import line_histograms

        return line_histograms(self, path)


def labelled_frame(columns: Mapping[str, Sequence[Any]], label: str, labels: Sequence[Any]) -> Any:
    """A pandas DataFrame of measures, a row for each of the matrices that ``labels`` tell apart."""
    frame = need("pandas", "to_frame()").DataFrame(columns)
    frame.index = list(labels)
    frame.index.name = label
    return frame

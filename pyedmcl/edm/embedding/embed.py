"""Delay embedding as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...data.group_labels import take_groups
from ...data.series import as_series, check_embedding
from ...errors import InputError
from ...io.fields import labelled
from ...io.labels import Label
from ...io.optional import pandas_for
from ...io.result import Result
from ...jobs.function import public_function
from ...jobs.provenance import origin
from ..shared.states import embed as delays


@dataclass(frozen=True, repr=False)
class EmbedResult(Result):
    """Delay coordinates.

    Attributes
    ----------
    values : ndarray (n_steps, n_series * E)
        Each series' lags in turn, newest first; NaN where a lag lies before the first row.
    names : tuple of str
        ``x(t-0)``, ``x(t-tau)``, ... of each series.
    time : ndarray or None
        Of the rows, where the data had it.
    provenance : mapping

    Examples
    --------
    >>> import pyedmcl
    >>> result = pyedmcl.embed([1.0, 2.0, 3.0, 4.0], E=2)
    >>> result.names, result.values[1:].tolist()
    (('x0(t-0)', 'x0(t-1)'), [[2.0, 1.0], [3.0, 2.0], [4.0, 3.0]])
    """

    series_label: ClassVar = Label("data", "value of the series this many rows before")

    values: NDArray[np.floating[Any]]
    names: tuple[str, ...]
    time: NDArray[Any] | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def to_xarray(self) -> Any:
        """An xarray DataArray (time, coordinate), or (row, coordinate) where the data have no time."""
        rows = ("row", np.arange(len(self.values))) if self.time is None else ("time", self.time)
        return labelled(self.values, [rows, ("coordinate", self.names)], "values")

    def to_frame(self) -> Any:
        """A pandas DataFrame, with the time as its index where there is one."""
        return pandas_for("to_frame()").DataFrame(self.values, columns=list(self.names), index=self.time)

    def plot(self, path: str | None = None) -> Any:
        """The path through the first coordinates, up to three; saved to ``path`` if given. Needs matplotlib."""
        from ...plot.states import delay_path

        return delay_path(self, path)


@public_function
def embed(
    data: Any, *, E: int, tau: int = 1, columns: Sequence[str | int] | str | int | None = None, groups: Any = None,
    regular: str | None = None,
) -> EmbedResult:
    """Delay coordinates of one or several series: what ``embedded=True`` takes.

    Parameters
    ----------
    data : array_like (n_steps,) or (n_steps, n_series)
        Time along the first axis, NaN for gaps.
    E, tau : int
        Lags of each series, and steps between them; at least 1.
    columns : optional
        Which series to take, by name or position.
    groups : str, sequence of str, or labels (n_steps,), optional
        Recordings that stand one below the other, as for :func:`pyedmcl.simplex`: the first rows of each have no lags.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows are not regular, as for :func:`pyedmcl.xmap`.

    Returns
    -------
    EmbedResult

    Raises
    ------
    InputError
        An argument cannot be used, or no row has all its lags.

    See Also
    --------
    simplex : takes such coordinates with ``embedded=True``.

    Notes
    -----
    Cost: copies the data E times.

    Examples
    --------
    >>> import pyedmcl
    >>> pyedmcl.embed([1.0, 2.0, 3.0, 4.0], E=2).values.tolist()
    [[1.0, nan], [2.0, 1.0], [3.0, 2.0], [4.0, 3.0]]
    """
    E, tau = check_embedding(E, tau)
    rest, of = take_groups(data, groups, "data")
    series = as_series(rest, columns=columns)
    if series.n_steps <= (E - 1) * tau:
        raise InputError(
            f"data: E={E}, tau={tau} needs at least {(E - 1) * tau + 1} rows, there are {series.n_steps}; use a "
            "smaller E or tau"
        )
    names = tuple(f"{name}(t-{e * tau})" for name in series.names for e in range(E))
    if of is None:
        return EmbedResult(delays(series.values, E, tau), names, series.time, origin())
    layout = of.layout(E=E, tau=tau, Tp=[0])
    return EmbedResult(delays(layout.series(series).values, E, tau)[layout.order], names, series.time, origin())

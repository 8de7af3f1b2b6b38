"""What all results have in common: a short text in a terminal, a table in a notebook, and a file."""

from __future__ import annotations

import dataclasses
import html
import importlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..errors import InputError
from ..registry import FUNCTIONS
from .labels import Label, told_frame, told_xarray
from .on_device import OnDevice
from .style import styled

_FEW = 4  # values of an array, or names, that are shown one by one
_MANY = 1_000_000  # values of an array whose range would take a while to find


class Result:
    """Base of the frozen dataclasses that functions return.

    Its methods that draw (``plot``, ``plot_network``, ...) take ``ax``, ``cmap``, ``figsize``, ``dpi`` and ``title``,
    see :class:`pyedmcl.io.style.Style`. What ``to_frame`` and ``to_xarray`` give says units and meanings in its
    ``attrs``.

    Examples
    --------
    >>> import tempfile
    >>> import pyedmcl
    >>> result = pyedmcl.embed([1.0, 2.0, 3.0, 4.0], E=2)
    >>> result
    EmbedResult(values=<4 x 2: 1 to 4>, names=('x0(t-0)', 'x0(t-1)'))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = pyedmcl.open_result(result.save(f"{folder}/embedded.edm"))
    >>> type(again).__name__, again.names == result.names
    ('EmbedResult', True)
    """

    #: Units and meanings of columns and variables, where these differ from :data:`pyedmcl.io.labels.COMMON`.
    column_labels: ClassVar[Mapping[str, Label]] = {}
    #: Of the columns of a table that are named after series or coordinates; then ``column_labels`` has all others.
    series_label: ClassVar[Label | None] = None
    #: The column of a table that is the dimension of :meth:`to_xarray`, where no value comes twice.
    row_column: ClassVar[str] = ""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, method in list(vars(cls).items()):
            if name == "plot" or name.startswith("plot_"):
                setattr(cls, name, styled(method))
        for name, told in (("to_frame", told_frame), ("to_xarray", told_xarray)):
            if name in vars(cls):
                setattr(cls, name, told(vars(cls)[name]))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the whole result to a file that :func:`pyedmcl.open_result` opens.

        Parameters
        ----------
        path : path
            Ends in ``.edm``. A file that is there is replaced, once the new one is complete.

        Returns
        -------
        pathlib.Path

        Raises
        ------
        OutputError
            Another suffix, or a folder that is not there.
        StoreWriteError
            The file cannot be written.
        """
        from .saved import save_result

        return save_result(self, path)

    @told_xarray
    def to_xarray(self) -> Any:
        """An xarray.Dataset with a variable for each column of ``to_frame()``. Needs xarray and pandas.

        Raises
        ------
        InputError
            A result of this kind has no table.
        MissingExtraError
            xarray or pandas is not installed.
        """
        from .fields import dataset_of

        if not hasattr(self, "to_frame"):
            raise InputError(f"a {type(self).__name__} has no table, which to_xarray() needs")
        return dataset_of(self.to_frame(), self.row_column)

    def write_netcdf(self, path: str | os.PathLike[str]) -> Path:
        """Write :meth:`to_xarray` as NetCDF (version 4), with units, meanings and provenance as attributes.

        Parameters
        ----------
        path : path
            Ends in ``.nc``. A file that is there is replaced, once the new one is complete.

        Returns
        -------
        pathlib.Path

        Raises
        ------
        OutputError
            Another suffix, or a folder that is not there.
        StoreWriteError
            The file cannot be written.
        MissingExtraError
            xarray or h5netcdf is not installed.
        """
        from .netcdf import write_netcdf

        return write_netcdf(self.to_xarray, path)

    def report(
        self, path: str | os.PathLike[str], *, title: str | None = None, top: int = 500, cluster: bool = False,
        pairs: Sequence[tuple[str, str]] | None = None, rate: float = 0.05,
    ) -> Path:  # fmt: skip
        """Write what there is to see of it as one HTML file; see :func:`pyedmcl.report`.

        Parameters
        ----------
        path : path
            Ends in ``.html``. A file that is there is replaced, once the new one is complete.
        title, top, cluster, pairs, rate
            As for :func:`pyedmcl.report`, and so is what is raised.

        Returns
        -------
        pathlib.Path
        """
        # The room that writes reports knows all results; this one is found by its name only when it is called.
        write = importlib.import_module(f"pyedmcl.{FUNCTIONS['report']}").report
        written: Path = write(self, path, title=title, top=top, cluster=cluster, pairs=pairs, rate=rate)
        return written

    def held(self) -> Any:
        """The same result in memory: without references to files of a run, and nothing of it on a device."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        values = {field.name: getattr(self, field.name) for field in fields}
        copied = {name: np.asarray(value) for name, value in values.items() if isinstance(value, OnDevice)}
        return dataclasses.replace(self, **copied) if copied else self  # type: ignore[type-var]

    def _facts(self) -> dict[str, str]:
        """What there is to say in a line, by the names of the fields."""
        shown = (field for field in dataclasses.fields(self) if field.repr and field.name != "provenance")  # type: ignore[arg-type]
        values = ((field.name, getattr(self, field.name)) for field in shown)
        return {name: brief(value) for name, value in values if value is not None}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={text}' for name, text in self._facts().items())})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
            for name, text in self._facts().items()
        )
        return f"<table><caption><b>{html.escape(type(self).__name__)}</b></caption>{rows}</table>"


def brief(value: Any) -> str:
    """A value in a few words: small ones as they are, arrays by shape and range, sequences by their first items."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return _brief_array(value, shape)
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    if isinstance(value, (tuple, list)):
        items = [brief(item) for item in value[:_FEW]]
        more = f", ... {len(value)} in all" if len(value) > _FEW else ""
        ends = "()" if isinstance(value, tuple) else "[]"
        return f"{ends[0]}{', '.join(items)}{more}{ends[1]}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {brief(item)}' for key, item in value.items())}}}"
    if isinstance(value, np.generic):
        return str(value)
    if isinstance(value, (str, int, type(None))):
        text = repr(value)
        return text if len(text) <= 60 else f"{text[:57]}..."
    return type(value).__name__


def _brief_array(value: Any, shape: tuple[int, ...]) -> str:
    size = " x ".join(map(str, shape))
    if not isinstance(value, np.ndarray):
        return f"<{size}>"
    if value.ndim == 1 and value.size <= _FEW:
        return f"[{', '.join(brief(item) for item in value)}]"
    if value.dtype.kind not in "biuf" or value.size > _MANY or not value.size:
        return f"<{size}>"
    finite = value[np.isfinite(value)] if value.dtype.kind == "f" else value
    ends = f" {brief(finite.min())} to {brief(finite.max())}" if finite.size else " all NaN"
    return f"<{size}:{ends}>"

"""What all results share: how they show themselves, units and meanings of what they hold, and ways to other tools."""

from __future__ import annotations

import dataclasses
import functools
import html
import importlib
import importlib.util
import inspect
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, need, shown
from ..functions import FUNCTIONS
from ..series.arrays import OnDevice
from ..series.fields import Grid

# How a picture of a result is to look: ``ax=``, ``cmap=``, ``figsize=``, ``dpi=`` and ``title=`` of every ``.plot``.
#
# They travel beside the calls to the functions that make figures, so that each picture has them in the same way.


@dataclass(frozen=True)
class Style:
    """What a caller asked for; None for what the picture has by itself."""

    # Draw here instead of in a new figure: axes, one for each panel, or a SubFigure.
    ax: Any = None
    cmap: Any = None
    # (float, float) or None. Inches.
    figsize: Any = None
    # Dots per inch of the file.
    dpi: Any = None
    title: Any = None
    # Of all series, or of each by its name; by default those that the data told of.
    units: Any = None

    def __post_init__(self) -> None:
        one = not isinstance(self.ax, (list, tuple, np.ndarray))
        several = [self.ax] if one else list(np.ravel(np.array(self.ax, object)))
        usable = (hasattr(ax, "get_subplotspec") or (one and hasattr(ax, "subfigures")) for ax in several)
        if self.ax is not None and not (several and all(usable)):
            raise InputError(
                f"ax={shown(self.ax)}: axes of matplotlib are needed, as plt.subplots() gives them, one for each "
                "panel, or a SubFigure"
            )
        if self.figsize is not None:
            try:
                size = [float(side) for side in self.figsize]
            except (TypeError, ValueError):
                size = []
            if len(size) != 2 or not all(0.5 <= side <= 200 for side in size):
                raise InputError(f"figsize={shown(self.figsize)}: width and height in inches are needed, 0.5 to 200")
        if self.dpi is not None:
            good = isinstance(self.dpi, (int, float)) and not isinstance(self.dpi, bool) and 10 <= self.dpi <= 2400
            if not good:
                raise InputError(f"dpi={shown(self.dpi)}: dots per inch are needed, 10 to 2400")
        if self.title is not None and not isinstance(self.title, str):
            raise InputError(f"title={shown(self.title)}: a text is needed")
        units = "" if self.units is None else self.units
        named = units.items() if isinstance(units, Mapping) else [("", units)]
        if not all(isinstance(part, str) for pair in named for part in pair):
            raise InputError(f"units={shown(self.units)}: a text such as 'degC' is needed, or one for each name")


_NAMES = tuple(field.name for field in fields(Style))
_style: ContextVar[Style | None] = ContextVar("style", default=None)
_PLAIN = Style()


def style() -> Style:
    """Of the picture that is being drawn."""
    return _style.get() or _PLAIN


def told_units(result: Any) -> dict[str, str] | None:
    """Units of series that the data of a result told of."""
    described = getattr(result, "provenance", {}).get("data", {})
    held = described.values() if isinstance(described, Mapping) else ()
    units: dict[str, str] = {}
    for one in held:
        units |= one.get("units") or {} if isinstance(one, Mapping) else {}
    return units or None


def unit_of(name: str) -> str:
    """The unit of a series of the picture that is being drawn; empty where none is known."""
    units = style().units
    return units if isinstance(units, str) else (units or {}).get(name, "")


def titled(figure: Any) -> None:
    """Give a figure the title that was asked for, over its first axes."""
    if style().title is not None:
        ax = style().ax
        (ax if hasattr(ax, "set_title") else figure.axes[0]).set_title(style().title)


def styled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method that draws take the fields of :class:`Style` as keywords."""
    signature = inspect.signature(function)
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
        for name in _NAMES if name not in signature.parameters
    ]  # fmt: skip

    @functools.wraps(function)
    def draw(self: Any, *args: Any, **kwargs: Any) -> Any:
        chosen = {name: kwargs.pop(name) for name in _NAMES if name in kwargs}
        if chosen.get("units") is None:
            chosen["units"] = told_units(self)
        token = _style.set(Style(**chosen))
        try:
            kept = {name: value for name, value in chosen.items() if name in signature.parameters and value is not None}
            figure = function(self, *args, **kwargs, **kept)
            titled(getattr(figure, "whole", figure))
            return getattr(figure, "whole", figure).figure
        finally:
            _style.reset(token)

    draw.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *added])  # type: ignore[attr-defined]
    return draw


# Units and meanings of what tables and labelled arrays hold: a row for each name that results share.
#
# A class of results whose names mean something else, or are those of series, says so in ``column_labels`` and
# ``series_label`` (:class:`pyedmcl.results.result.Result`).


class Label(NamedTuple):
    """What a column holds; the unit is "1" for plain numbers, "data" for that of the series, "" for text."""

    unit: str
    meaning: str


_OF_DATA = {"data": "{}", "data^2": "({})^2"}
COMMON = {
    "cause": Label("", "series that drives the effect, if the skill means a link: the target of the cross map"),
    "effect": Label("", "series that is driven: the library of the cross map"),
    "library": Label("", "series whose states predict"),
    "target": Label("", "series that is predicted"),
    "series": Label("", "name or number of the series"),
    "group": Label("", "label of the recording"),
    "rho": Label("1", "skill: correlation of predicted and observed values, or the measure that was asked for"),
    "mean": Label("1", "mean skill of the random libraries"),
    "median": Label("1", "median skill of the random libraries"),
    **{f"q{q:02d}": Label("1", f"{q} % quantile of the skill of the random libraries") for q in (5, 25, 75, 95)},
    "mae": Label("data", "mean absolute error"),
    "rmse": Label("data", "root mean square error"),
    "E": Label("1", "embedding dimension"),
    "E_of": Label("", "whose embedding dimension E is: that of the cause or of the effect"),
    "dimension": Label("1", "embedding dimension that was tried"),
    "tau": Label("rows", "lag between coordinates of a state"),
    "Tp": Label("rows", "interval from a state to what it predicts"),
    "theta": Label("1", "localisation of S-map"),
    "exclusion_radius": Label("rows", "neighbours in time up to this far apart are left out"),
    "lib_size": Label("rows", "size of the library"),
    "sample": Label("", "number of the random library"),
    "p_value": Label("1", "p-value against surrogates"),
    "q_value": Label("1", "p-value adjusted for the false discovery rate"),
    "draws": Label("1", "surrogates that the p-value counts"),
    "surrogates": Label("1", "surrogates that were drawn"),
    "surrogates_q95": Label("1", "95 % quantile of the skill of surrogates"),
    "gain": Label("1", "skill at the largest library less that at the smallest"),
    "p_gain": Label("1", "p-value of that gain against those of surrogates"),
    "trend": Label("1", "Kendall's tau of mean skill against library size; it describes, and is no test"),
    "verdict": Label("", "direct, link, indirect, unordered or none"),
    "reasons": Label("", "reasons of the verdict, as codes"),
    "best_lag": Label("rows", "interval Tp of the highest skill"),
    "rho_at_best_lag": Label("1", "the highest skill of all intervals"),
    "lag_allows": Label("", "whether a cause may have that interval"),
    "p_lag": Label("1", "p-value of the best interval of a cause against all later ones"),
    "other": Label("", "series through which the link may pass"),
    "rho_through_other": Label("1", "skill of the estimate through that series"),
    "partial": Label("1", "partial correlation that is left without the estimate through other series"),
    "p_partial": Label("1", "p-value of the partial correlation against surrogates of the cause"),
    "p_forecast": Label("1", "p-value of the cause improving forecasts of the effect"),
    "given": Label("", "series through which the link may pass"),
    "direction": Label("", "cause -> effect"),
    "time": Label("rows, or as in the data", "time as the data have it, else the row number, counted from 0"),
    "start": Label("rows", "first row of the window"),
    "end": Label("rows", "row behind the last one of the window"),
    "row": Label("1", "number of the row, counted from 0"),
    "observed": Label("data", "value that was observed"),
    "predicted": Label("data", "value that was predicted"),
    "variance": Label("data^2", "weighted variance of what the prediction is made from"),
    "C0": Label("data", "intercept of the local fit"),
    "lag": Label("rows", "interval between the values of a pair"),
    "radius": Label("as asked for", "states nearer than this are recurrent"),
    "radius_used": Label("data", "radius in the unit of the data"),
    "degree": Label("1", "recurrences of the point: links of the node"),
    "clustering": Label("1", "share of pairs of neighbours that are linked"),
    "code": Label("", "kind of the remark"),
    "text": Label("", "the remark"),
}


def labels_of(result: Any, names: Any) -> dict[str, Label]:
    """Labels of some names, as far as there are any, by the rules of the result's class."""
    kind = type(result)
    label_by_name: Mapping[str, Label] = {**({} if kind.series_label else COMMON), **kind.column_labels}
    label_of = {str(name): label_by_name.get(str(name), kind.series_label) for name in names}
    unit = _unit_of_data(result)
    return {
        name: label._replace(unit=_OF_DATA[label.unit].format(unit)) if unit and label.unit in _OF_DATA else label
        for name, label in label_of.items() if label is not None
    }  # fmt: skip


def _unit_of_data(result: Any) -> str:
    """The unit of what a result is of, where the data told of one; empty where that is not known, or not one."""
    units = told_units(result) or {}
    name = getattr(result, "name", "")
    return units.get(name, "") if name else ""


def common(*names: str) -> dict[str, Label]:
    """Some rows of :data:`COMMON`, for a class of results whose other columns are named by data."""
    return {name: COMMON[name] for name in names}


def told_frame(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let ``to_frame`` say in ``attrs`` of its frame what made it, and units and meanings of its columns."""

    @functools.wraps(method)
    def to_frame(self: Any, *args: Any, **kwargs: Any) -> Any:
        frame = method(self, *args, **kwargs)
        index = [] if frame.index.name is None else [frame.index.name]
        labels = labels_of(self, [*index, *frame.columns])
        frame.attrs = {
            **_origin(self), "units": {name: label.unit for name, label in labels.items()},
            "meanings": {name: label.meaning for name, label in labels.items()},
        }  # fmt: skip
        return frame

    return to_frame


def told_xarray(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let ``to_xarray`` say in ``attrs`` what made the array, its provenance, and units and meanings of variables."""

    @functools.wraps(method)
    def to_xarray(self: Any, *args: Any, **kwargs: Any) -> Any:
        array = method(self, *args, **kwargs)
        provenance = json.dumps(dict(getattr(self, "provenance", {})), default=str)
        labels = {**COMMON, **type(self).column_labels}
        values = array.data_vars if hasattr(array, "data_vars") else {array.name: array}
        for name, variable in {**array.coords, **values}.items():
            if name in labels:
                label = labels[name]
                units = {"units": label.unit} if label.unit and variable.dtype.kind not in "mM" else {}
                variable.attrs.update({"long_name": label.meaning, **units})  # xarray writes units of dates itself
        array.attrs.update(_origin(self), provenance=provenance)
        return array

    return to_xarray


def _origin(result: Any) -> dict[str, str]:
    from .. import __version__

    return {"result": type(result).__name__, "source": f"pyedmcl {__version__}"}


# Results over series, or over the cells of a field, as labelled arrays.


def dataset_of(frame: Any, dimension: str = "") -> Any:
    """An ``xarray.Dataset`` of the columns of a table.

    Parameters
    ----------
    dimension : str
        The column whose values label the rows, where it is there and none comes twice; else the index, or "row".
    """
    dataset = need("xarray", "to_xarray()").Dataset
    if dimension in frame and frame[dimension].is_unique:
        frame = frame.set_index(dimension)
    elif not frame.index.is_unique:
        frame = frame.reset_index()
    if frame.index.nlevels > 1 or frame.index.dtype == object:  # of pairs, such as the radii of corridors
        frame.index = frame.index.map(str).rename(frame.index.name)
    mixed = [name for name in frame if frame[name].dtype == object]
    frame = frame.assign(**{name: frame[name].map(str) for name in mixed})
    return dataset.from_dataframe(frame.rename_axis(index=frame.index.name or "row"))


def labelled(values: NDArray[Any], axes: Sequence[tuple[str, Any]], name: str) -> Any:
    """An ``xarray.DataArray``.

    Parameters
    ----------
    axes : sequence of (str, sequence or Grid)
        Name and labels of each axis. A grid stands for its own dimensions, which bear the name of the axis before
        theirs where two axes have dimensions of one name.
    """
    xarray = need("xarray", "to_xarray()")
    all_dims = [dim for _, labels in axes if isinstance(labels, Grid) for dim in labels.dims]
    twice = len(set(all_dims)) < len(all_dims)
    dims: list[str] = []
    coords: dict[str, Any] = {}
    out = np.asarray(values)
    for axis, labels in axes:
        if not isinstance(labels, Grid):
            coords[axis] = list(labels) if isinstance(labels, tuple) else labels
            dims.append(axis)
            continue
        named = [f"{axis}_{dim}" if twice else dim for dim in labels.dims]
        out = labels.spread(out, len(dims))
        coords |= {new: labels.coords[dim] for new, dim in zip(named, labels.dims, strict=True) if dim in labels.coords}
        dims += named
    return xarray.DataArray(out, dims=dims, coords=coords, name=name)


# How results show themselves: a line that says what they are, and the answer as a small table.


def printable(value: object) -> str:
    """A value as text without control characters, and without signs that turn the direction of what follows."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in str(value))


class Answer(NamedTuple):
    """The rows of a result that a reader wants to see first."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    # Rows that there are in all.
    total: int
    # What to call for all of them.
    all_in: str = "to_frame()"

    def cells(self) -> list[list[str]]:
        """Texts of the rows that are shown."""
        return [[cell_text(value) for value in row] for row in self.rows]

    def more(self) -> str:
        """How many rows are not shown, and where they are; empty where all are."""
        left = self.total - len(self.rows)
        return f"{left:,} more: {self.all_in}" if left > 0 else ""


def cell_text(value: Any) -> str:
    """A value in a cell of such a table."""
    if value is None or value != value:
        return "\N{EN DASH}"
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}"
    text = printable(value)
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS - 1]}…"


_LETTERS = 90  # of a cell
ANSWER_ROWS = 8  # that are shown of an answer
_FIRST = 8  # columns that are shown where all are alike
SMALL = 40_000  # values of a result of which a table is made to show its first rows
_FEW = 4  # values of an array, or names, that are shown one by one
_MANY = 1_000_000  # values of an array whose range would take a while to find


class Result:
    """Base of the frozen dataclasses that functions return.

    Its methods that draw (``plot``, ``plot_network``, ...) take ``ax``, ``cmap``, ``figsize``, ``dpi`` and ``title``,
    see :class:`pyedmcl.results.result.Style`. What ``to_frame`` and ``to_xarray`` give says units and meanings in its
    ``attrs``.

    Examples
    --------
    >>> import tempfile
    >>> import pyedmcl
    >>> result = pyedmcl.embed([1.0, 2.0, 3.0, 4.0], E=2)
    >>> result
    EmbedResult(values=<4 x 2: 1 to 4>, names=('x0(t-0)', 'x0(t-1)'))
    >>> pyedmcl.embed_dimension([t * t % 7.3 for t in range(100)], E_max=9).answer().columns
    ('series', 'E', 'rho')
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = pyedmcl.open_result(result.save(f"{folder}/embedded.edm"))
    >>> type(again).__name__, again.names == result.names
    ('EmbedResult', True)
    """

    #: Units and meanings of columns and variables, where these differ from :data:`pyedmcl.results.result.COMMON`.
    column_labels: ClassVar[Mapping[str, Label]] = {}
    #: Of the columns of a table that are named after series or coordinates; then ``column_labels`` has all others.
    series_label: ClassVar[Label | None] = None
    #: Columns of ``to_frame()`` that are the answer; "-" before the one by which rows are sorted, the highest first, or
    #: "+" for the lowest first. "*" stands for the first columns, whatever they are called.
    answer_columns: ClassVar[tuple[str, ...]] = ()
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
        from ..files.formats import write_netcdf

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
        # The package that writes reports knows all results; this one is found by its name only when it is called.
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

    def _headline(self, alone: bool) -> str:
        """What it is, in a line; ``alone`` where no table follows, which holds its arrays."""
        facts = {
            name: text for name, text in self._facts().items()
            if alone or (text not in ("''", "nan")
                         and isinstance(getattr(self, name, ()), (int, float, str, Mapping, np.generic)))
        }  # fmt: skip
        listed = ", ".join(f"{name}={text}" for name, text in facts.items())
        return f"{type(self).__name__}({listed})" if listed or alone else type(self).__name__

    def answer(self) -> Answer | None:
        """The first rows of what was found; None where a result has none, or is too large to look for them."""
        columns = [name.lstrip("+-") for name in self.answer_columns]
        if not columns or not self._is_small() or importlib.util.find_spec("pandas") is None:
            return None
        frame = self.to_frame()  # type: ignore[attr-defined]
        columns = [frame.index.name, *columns] if frame.index.name else columns
        frame = frame.reset_index() if frame.index.name else frame
        columns = list(frame.columns[:_FIRST]) if "*" in columns else columns
        for sign, name in ((name[0], name[1:]) for name in self.answer_columns if name[0] in "+-"):
            frame = frame.sort_values(name, ascending=sign == "+", kind="stable")
        held = [name for name in columns if name in frame]
        rows = [[frame[name].iloc[row] for name in held] for row in range(min(len(frame), ANSWER_ROWS))]
        return Answer(held, rows, len(frame))

    def _is_small(self) -> bool:
        """Whether all of it is in memory, and soon looked through."""
        values = [getattr(self, field.name) for field in dataclasses.fields(self)]  # type: ignore[arg-type]
        arrays = [value for value in values if getattr(value, "shape", ())]
        return (
            all(isinstance(value, np.ndarray) and value.size <= SMALL for value in arrays)
            and getattr(self, "store", None) is None and len(getattr(self, "names", ())) ** 2 <= SMALL
        )  # fmt: skip

    def __repr__(self) -> str:
        answer = self.answer()
        if answer is None:
            return self._headline(True)
        table = [list(answer.columns), *answer.cells()]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        numbers = [all(_is_number(row[place]) for row in answer.rows) for place in range(len(widths))]
        lines = [
            "  ".join(
                text.rjust(width) if number else text.ljust(width)
                for text, width, number in zip(row, widths, numbers, strict=True)
            ).rstrip()
            for row in table
        ]  # fmt: skip
        more = [f"... {answer.more()}"] if answer.more() else []
        return "\n  ".join([self._headline(False), *(lines if answer.rows else ["nothing"]), *more])

    def _repr_html_(self) -> str:
        answer = self.answer()
        if answer is None:
            head, rows, more = [], [[name, text] for name, text in self._facts().items()], ""
            line = type(self).__name__
        else:
            head, rows, more, line = list(answer.columns), answer.cells(), answer.more(), self._headline(False)
        listed = [("th", head)] if head else []
        body = "".join(
            "<tr>" + "".join(f"<{tag} style='text-align:left'>{html.escape(text)}</{tag}>" for text in row) + "</tr>"
            for tag, row in [*listed, *(("td", row) for row in rows)]
        )
        end = f"<tr><td colspan='{len(head)}'>{html.escape(more)}</td></tr>" if more else ""
        return f"<table><caption><b>{html.escape(line)}</b></caption>{body}{end}</table>"


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float, np.number)) and not isinstance(value, bool))


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

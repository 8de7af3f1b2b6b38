"""Options that say how a file is read, which every command has that reads one, and the reading itself."""

from __future__ import annotations

import functools
import inspect
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from ..errors import GroupsWarning, InputError, PyedmclWarning, StoreForeignError
from .exits import running
from .remarks import remark_on
from .streams import printable

if TYPE_CHECKING:
    from ..data.series import Series

_PANEL = "Reading"
_SAID = "pyedmcl.readings"


def _option(metavar: str | None, help: str, kind: Any = str | None, *names: str) -> Any:
    return Annotated[
        kind, typer.Option(*names, metavar=metavar, help=help, show_default=False, rich_help_panel=_PANEL)
    ]


#: Arguments of ``read_series`` that are options of all commands that read a file, and their defaults.
OPTIONS: dict[str, tuple[Any, Any]] = {
    "missing": (_option("CODE,...", "Cells that stand for a missing value, such as -9999,ND; < for limits as <0.05."),
                None),
    "decimal": (_option(".|,", "The decimal mark, where cells leave it open."), None),
    "thousands": (_option("MARK", "The mark between thousands, where cells leave it open."), None),
    "time_format": (_option("FORM", "Form of times: %d.%m.%Y, or words such as day/month/year; number for numbers."),
                    None),
    "header": (_option("LINE|none", "The line that holds the names, counted from 1; none where there is none."), None),
    "skip_rows": (_option("N|A:B,...", "Leave out N lines at the top, or these lines, counted from 1."), None),
    "comment": (_option("MARK", "Leave out lines that begin so (default #)."), None),
    "names": (_option("FILE", "A text file with a name for each column, for data that have none.", Path | None), None),
    "standardize": (
        _option(None, "Each series in units of its standard deviation.", bool, "--standardize"), False
    ),
    "transpose": (_option(None, "Each row of the file is a series.", bool, "--transpose"), False),
}  # fmt: skip


def with_reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a command with options for reading, where it reads a file of series.

    They are looked up where the file is read, so that no command hands them on.
    """
    signature = inspect.signature(command)
    if not {"input", "dataset"} <= signature.parameters.keys():
        return command
    hints = get_type_hints(command, include_extras=True)
    own = [p.replace(annotation=hints.get(name, p.annotation)) for name, p in signature.parameters.items()]
    place = list(signature.parameters).index("dataset") + 1
    added = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=kind)
        for name, (kind, default) in OPTIONS.items()
    ]

    @functools.wraps(command)
    def run(**given: Any) -> Any:
        return command(**{name: value for name, value in given.items() if name not in OPTIONS})

    parameters = [*own[:place], *added, *own[place:]]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def load(path: Path, columns: list[str] | None, time_column: str | None, dataset: str | None) -> Series:
    """Read the series of a file, and say once in a command how it was read.

    Raises
    ------
    InputError
        As for :func:`pyedmcl.io.read_series`, and for a result of our own.
    """
    from ..jobs.layout import read_attributes

    if os.path.isdir(path):
        try:
            ours = read_attributes(path) is not None
        except StoreForeignError:
            ours = False
        if ours:
            raise InputError(
                f"{path} is a result of 'pyedmcl xmap', not a file of series. To look at it: pyedmcl plot {path} "
                f"-o map.png; to get its values: pyedmcl export {path} -o map.csv"
            )
    context = running()
    said = {} if context is None else context.meta.setdefault(_SAID, {})
    with warnings.catch_warnings():
        if context is not None and context.params.get("groups") is not None:
            warnings.simplefilter("ignore", GroupsWarning)
        if os.fspath(path) in said:  # what is inferred is told once
            warnings.simplefilter("ignore", PyedmclWarning)
        series = read(path, columns, time_column, dataset)
    _say(series, path, said)
    remark_on(series)
    return series


def read(path: Path, columns: list[str] | None, time_column: str | None, dataset: str | None) -> Series:
    """Read a file with the options of the command at work."""
    from ..io import read_series

    context = running()
    given = {} if context is None else {
        name: value for name in OPTIONS if (value := context.params.get(name)) not in (None, False)
    }  # fmt: skip
    return read_series(path, columns=columns, time_column=time_column, dataset=dataset, **given)


def _say(series: Series, path: Path, said: dict[str, Any]) -> None:
    """A line on what was found in a file, but for what has been told in a warning."""
    context = running()
    reading = series.reading
    if context is None or reading is None or os.fspath(path) in said or context.info_name == "check":
        return
    said[os.fspath(path)] = reading
    parts = [part for part in reading.parts() if part.partition(":")[0] in ("time", "passed over")]
    if parts and not context.params.get("quiet"):
        typer.echo(printable(f"{path}: {'; '.join(parts)}"), err=True)

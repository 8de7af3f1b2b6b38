"""Commands that derive from public functions: their options, the reading of the input, the call, and what is written.

A command is a function that is decorated with :func:`derived`. It says only which data the functions get and what is
told of the result; each argument of the functions that has a line of help in :mod:`pyedmcl.parameters` is an option.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from ..errors import PyedmclWarning
from . import options
from .options import beside_groups, client_at, given, load, load_groups, option_of, parse_columns, read, value_of
from .output import PICTURES, Talk, check_pictures, check_result, write_result

if TYPE_CHECKING:
    from ..parameters import Argument
    from ..series.series import Series

Body = Callable[..., None]


class Asked:
    """What a command was asked for.

    Attributes
    ----------
    input : Path
    words : dict
        The arguments of the functions, by their names. Where a command looks rows up, ``groups`` are labels of rows.
    columns : list of str or None
        What ``--columns`` and ``--exclude`` say.
    output, picture : Path or None
        What ``--output`` and ``--plot`` name.
    talk : Talk
    """

    def __init__(self, functions: Sequence[str], rows: dict[str, Argument], values: dict[str, Any]) -> None:
        self._functions, self._rows = functions, rows
        self.words = {name: value_of(row, values[name]) for name, row in rows.items()}
        self.input: Path = values["input"]
        self._time_column, self._dataset = values["time_column"], values["dataset"]
        self.columns = parse_columns(values.get("columns"))
        self.output: Path | None = values.get("output")
        self.picture: Path | None = values.get("picture")
        self.talk = Talk(quiet=values["quiet"], as_json=values["json"], progress=values["progress"])

    def load(self, columns: list[str] | None) -> Series:
        """Series of the input."""
        return load(self.input, columns, self._time_column, self._dataset)

    def label(self, columns: list[str] | None, needed: str = "--columns") -> None:
        """Look up to which group each row belongs; ``needed`` is the option that says which columns hold values."""
        self.words["groups"] = load_groups(self.input, columns, self.words.get("groups"), self._dataset, needed=needed)

    def table(self) -> Series:
        """The series that ``--columns`` and ``--exclude`` choose, without the columns that name groups."""
        columns = self.columns
        for keys in (self.words.get("groups"), self.words.get("valid_lib")):
            columns = beside_groups(columns, keys)
        self.label(columns)
        return self.load(columns)

    def targets(self, text: str | None) -> Series | None:
        """The series of ``--targets``: a file, where there is one of this name, or columns of the input."""
        return None if text is None else options.targets_of(self.input, text, self._time_column, self._dataset)

    def refuse_unused(self, function: str) -> None:
        """Refuse an option that the one of several functions which is called lacks: it would be without effect."""
        import pyedmcl

        taken = inspect.signature(getattr(pyedmcl, function)).parameters
        for name, row in self._rows.items():
            if name not in taken and given(name):
                raise typer.BadParameter(f"{row.flag}: {function}(), which computes this, has none; leave it out")

    def call(self, *data: Any, doing: str, function: str | None = None, **own: Any) -> Any:
        """Call a function, by default the first, with those words that it takes; ``own`` ones come before these."""
        import pyedmcl

        called = getattr(pyedmcl, function or self._functions[0])
        taken = inspect.signature(called).parameters
        words = {name: value for name, value in {**self.words, **own}.items() if name in taken}
        if isinstance(words.get("valid_lib"), str):
            words["valid_lib"] = self._marked(words["valid_lib"])
        with client_at(words.pop("client", None)) as workers, self.talk.progress(doing) as report:
            running = {"client": workers, "progress": report}
            return called(*data, **words, **{name: value for name, value in running.items() if name in taken})

    def _marked(self, column: str) -> Any:
        """The rows in which a column of the input is neither 0 nor empty."""
        import numpy as np

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PyedmclWarning)  # the series themselves have been read, and told of
            marks = read(self.input, [column], None, self._dataset, standardize=False)
        return np.nan_to_num(marks.values[:, 0]) != 0

    def draw(self, plot: Callable[..., Any], what: str = "", **more: Any) -> None:
        """Draw the picture of ``--plot``, if it was asked for; ``what`` is told of it."""
        if self.picture is not None:
            plot(str(self.picture), **more)
            self._tell(self.picture, what)

    def write(self, result: Any, header: Sequence[str], rows: Iterable[Sequence[Any]], what: str = "") -> None:
        """Write the file of ``--output``, if it was asked for; ``what`` is told of it."""
        if self.output is not None:
            write_result(self.output, result, header, rows)
            self._tell(self.output, what)

    def _tell(self, path: Path, what: str) -> None:
        if what:
            self.talk.summary(f"{path}: {what}")

    def where(self, what: str) -> str:
        """The end of a sentence: the file in which something is."""
        return "" if self.output is None else f"; {what} in {self.output}"

    def document(self, value: dict[str, Any]) -> None:
        """The result for a script, and where it was written."""
        self.talk.document({**value, "output": None if self.output is None else str(self.output)})


class Derived:
    """A command that has yet to be made: its functions are imported for that."""

    def __init__(
        self, body: Body, functions: tuple[str, ...], file: tuple[str, str] | None, table: bool, without: Sequence[str]
    ) -> None:
        self._body, self.functions, self._file, self._table, self._without = body, functions, file, table, without
        self.__name__, self.__doc__ = body.__name__, body.__doc__

    def made(self) -> Body:
        """The function of the command, with all of its options."""
        body, hints = self._body, get_type_hints(self._body, include_extras=True)
        own = [_parameter(p.name, hints[p.name], p.default)
               for p in list(inspect.signature(body).parameters.values())[1:]]  # fmt: skip
        if self._file is not None:
            own.insert(0, _parameter("output", _file(*self._file), None))
        if self._table:
            own += [_parameter("columns", options.Columns, None), _parameter("exclude", options.Exclude, None)]
        names = {p.name for p in own}
        rows, asked = _rows(self.functions, names | set(self._without))
        running = [_parameter(name, kind, default) for name, (kind, default) in options.RUNNING.items()]
        reading = [_parameter(name, kind, default) for name, (kind, default) in options.OPTIONS.items()]
        last = [one for one in asked if rows[one.name].panel == options.RUN]
        parameters = [_parameter("input", options.Input), *own, *(one for one in asked if one not in last),
                      _parameter("time_column", options.TimeColumn, None),
                      _parameter("dataset", options.Dataset, None), *reading, *last, *running]  # fmt: skip
        taken = set(inspect.signature(body).parameters)

        @functools.wraps(body)
        def run(**values: Any) -> None:
            if self._file is not None:
                check_result(values["output"])
            check_pictures(*(values[name] for name, hint in hints.items() if _draws(hint)))
            body(Asked(self.functions, rows, values), **{name: values[name] for name in names & taken})

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        return run


def derived(
    *functions: str, file: tuple[str, str] | None = None, table: bool = False, without: Sequence[str] = ()
) -> Callable[[Body], Derived]:
    """Derive a command from functions. What is decorated takes an :class:`Asked`, and options of the command's own.

    Parameters
    ----------
    *functions : str
        Public functions whose arguments are the options; the first decides on defaults.
    file : (str, str), optional
        What ``--output`` is called in the help, and what it holds beside the whole result.
    table : bool
        Whether series are chosen by ``--columns`` and ``--exclude``.
    without : sequence of str
        Arguments that are no options.
    """
    return lambda body: Derived(body, functions, file, table, without)


def made(command: Body | Derived) -> Body:
    """The function of a command, derived or not."""
    return command.made() if isinstance(command, Derived) else command


def _parameter(name: str, kind: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _rows(functions: Sequence[str], without: set[str]) -> tuple[dict[str, Argument], list[inspect.Parameter]]:
    """Rows of the arguments that are options, and these options; words stand for defaults that a shell cannot hold."""
    import pyedmcl

    from ..parameters import arguments_of

    rows: dict[str, Argument] = {}
    asked = []
    called = [getattr(pyedmcl, name) for name in functions]
    signatures = [inspect.signature(function).parameters for function in called]
    for function, known in zip(called, signatures, strict=True):
        for name, row in arguments_of(function).items():
            if row.help and name not in rows and name not in without:
                rows[name] = row
                default = _in_words(known[name].default) if row.kind.cast is str else known[name].default
                if default is inspect.Parameter.empty and not all(name in one for one in signatures):
                    default = None  # without it, it is the other function that is asked for
                asked.append(_parameter(name, option_of(row, default), default))
    return rows, asked


def _in_words(default: Any) -> Any:
    """The default of an argument as one types it: ``1:10`` for range(1, 11)."""
    if default is None or default is inspect.Parameter.empty or isinstance(default, str):
        return default
    if isinstance(default, (int, float)):
        return str(default)
    values = list(default)
    together = len(values) > 1 and values == list(range(int(values[0]), int(values[0]) + len(values)))
    return f"{values[0]}:{values[-1]}" if together else ",".join(map(str, values))


def _file(metavar: str, what: str) -> Any:
    return Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar=metavar, show_default=False,
                     help=f"Write {what} (.csv, .tsv, .json), or the whole result (.edm)."),
    ]  # fmt: skip


def _draws(hint: Any) -> bool:
    """Whether an option names a picture."""
    flags = {flag for one in getattr(hint, "__metadata__", ()) for flag in (one.default, *(one.param_decls or ()))}
    return not PICTURES.isdisjoint(flag for flag in flags if isinstance(flag, str))

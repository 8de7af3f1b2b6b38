"""What a command prints and writes: results, remarks, errors and exit codes, tables and pictures in files."""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import json
import math
import os
import re
import sys
import tempfile
import traceback
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from .. import errors
from ..errors import OutputError, StoreError, StoreWriteError, warn

if TYPE_CHECKING:
    from ..launch.progress import Report
    from ..series.series import Series


# The streams of a command: what they cannot take is an error with a message, and text is shown as text.


#: Exit code where the reader of standard output ended first: that of a tool which SIGPIPE ends (128 + 13).
UNREAD = 141

_KEPT = "\n\t"
_HIDDEN = {"Cc", "Cf", "Cs"}  # control characters, those that change the order of text, halves of characters


def printable(text: str) -> str:
    """``text`` without control sequences, by which a name in a file could change what a terminal shows.

    Examples
    --------
    >>> printable("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    if text.isprintable():
        return text
    return "".join(
        sign if sign in _KEPT or unicodedata.category(sign) not in _HIDDEN else sign.encode("unicode_escape").decode()
        for sign in text
    )


def shown(text: str) -> str:
    """:func:`printable` text as standard output will have it, with escapes for what its encoding lacks.

    Tables are laid out by the width of their cells, which escapes make wider.
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return printable(text).encode(encoding, "backslashreplace").decode(encoding)


class Stdout(io.TextIOWrapper):
    """Standard output. A full disk is a StoreWriteError, which has an exit code and a message.

    A pipe that its reader has closed, as ``head`` does, ends the command without a message.
    """

    def write(self, text: str) -> int:
        with _told():
            return super().write(text)

    def flush(self) -> None:
        with _told():
            super().flush()


class Stderr(io.TextIOWrapper):
    """Standard error. Remarks that nobody can read must not end the work."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            return super().write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            super().flush()


@contextlib.contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        _discard_the_rest()
        raise SystemExit(UNREAD) from None
    except OSError as error:
        raise StoreWriteError(
            f"standard output cannot be written: {error.strerror or error}. Write to a file, or free some space"
        ) from error


def run(command: Callable[[], Any], code_of: Callable[[BaseException], int], message_of: Callable[[Any], str]) -> int:
    """Run a command line and return its exit code.

    Parameters
    ----------
    command : callable
        Ends with SystemExit.
    code_of, message_of : callable
        Of an error that was raised outside any command, while help was printed, say.
    """
    _open_closed_ones()
    sys.stdout, sys.stderr = _wrapped(sys.stdout, Stdout), _wrapped(sys.stderr, Stderr)
    code = 0
    try:
        command()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except StoreWriteError as error:
        code = _failed(error, code_of, message_of)
    try:
        sys.stdout.flush()
    except StoreWriteError as error:
        code = code or _failed(error, code_of, message_of)
    except SystemExit:
        code = code or UNREAD
    return code


def _failed(error: StoreWriteError, code_of: Callable[[BaseException], int], message_of: Callable[[Any], str]) -> int:
    sys.stderr.write(f"error: {message_of(error)}\n")
    _discard_the_rest()
    return code_of(error)


def _discard_the_rest() -> None:
    """Send standard output nowhere: what is left in its buffer would fail again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _open_closed_ones() -> None:
    """Give the three streams a place, so that no file of a result gets the number of one that was closed."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _wrapped(stream: Any, kind: Callable[..., Any]) -> Any:
    """``stream`` with errors of ours; a text that it cannot encode is written with escapes."""
    number = 1 if kind is Stdout else 2
    if stream is None:  # closed before Python began
        return kind(os.fdopen(number, "wb", closefd=False), encoding="utf-8", errors="backslashreplace")
    encoding = stream.encoding
    lines = stream.isatty() or kind is Stderr
    return kind(stream.detach(), encoding=encoding, errors="backslashreplace", line_buffering=lines)


# ``--plot show``: a picture in the system's viewer instead of a file that the user names.


#: What stands for a window in place of the name of a picture.
SHOW = Path("show")
#: Options that name a picture.
PICTURES = {"--plot", "--plot-coefficients", "--network", "--lines"}


def has_display() -> bool:
    """Whether there is a screen that a viewer can open a window on."""
    return sys.platform in ("win32", "darwin") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


@contextmanager
def shown_pictures(ctx: Any) -> Iterator[None]:
    """Let the command draw into temporary files what is to be shown, and open these afterwards.

    Raises
    ------
    OutputError
        There is no display.
    """
    pictures = [parameter for parameter in ctx.command.params if _is_to_be_shown(ctx, parameter)]
    if not pictures:
        yield
        return
    option = pictures[0].opts[0]
    if not has_display():
        raise OutputError(f"{option} {SHOW}: there is no display; name a file, such as {option} picture.png")
    folder = Path(tempfile.mkdtemp(prefix="pyedmcl-"))  # stays: a viewer may read it at any time
    drawn = [folder / f"{parameter.name}.png" for parameter in pictures]
    for parameter, path in zip(pictures, drawn, strict=True):
        ctx.params[parameter.name] = path
    yield
    for path in drawn:
        if path.exists() and typer.launch(str(path)):
            typer.echo(f"No viewer of pictures was found; the picture is {path}", err=True)


def _is_to_be_shown(ctx: Any, parameter: Any) -> bool:
    pictures = {"--output"} if ctx.command.name == "plot" else PICTURES
    return ctx.params.get(parameter.name) == SHOW and not pictures.isdisjoint(parameter.opts)


# Exit codes, and how an error is told.


OK = 0
UNEXPECTED = 1
USAGE = 2
INPUT = 3
DEVICE = 4
OUTPUT = 5
COMPUTE = 6
MISSING = 7
INTERRUPTED = 130

HELP = (
    "Exit codes: 0 ok; 1 an unexpected failure (a bug: please report it); 2 wrong usage; 3 the input or a parameter "
    "cannot be used; 4 no such device; 5 the output was refused or cannot be written; 6 device out of memory or a "
    "kernel failed; 7 an optional package is not installed; 130 interrupted by Ctrl-C (the message says how to "
    "resume); 141 the reader of a pipe closed it before all was written."
)

# The first class that fits decides; several of these are also built-in errors.
_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (KeyboardInterrupt, INTERRUPTED),
    (errors.DeviceNotFoundError, DEVICE),
    (errors.StoreError, OUTPUT),
    (errors.DeviceMemoryError, COMPUTE),
    (errors.BuildError, COMPUTE),
    (errors.LaunchError, COMPUTE),
    (errors.WrongResultError, COMPUTE),
    (errors.ClientError, COMPUTE),
    (errors.MissingExtraError, MISSING),
    (errors.PyedmclError, INPUT),
    (MemoryError, COMPUTE),
)

_DEBUG = "pyedmcl.debug"
#: What Python calls some parameters of commands.
_OTHERWISE = {"output": ("out",), "pair": ("pairs",)}
#: Options that some commands have, which warnings name in all.
_ELSEWHERE = ("groups", "surrogate", "regular")
#: Arguments whose values are words of ours, which need no quotes in a shell; names of columns may.
_OF_WORDS = ("E", "n", "regular", "season", "surrogate")

_running: ContextVar[Any] = ContextVar("running", default=None)


def running() -> Any:
    """The context of the command at work; None outside of one."""
    return _running.get()


def ask_for_traceback(context: typer.Context, value: bool) -> bool:
    """Callback of ``--debug``, which may stand before or after the command."""
    if value:
        context.find_root().meta[_DEBUG] = True
    return value


def code_of(error: BaseException) -> int:
    """The exit code of an error; 1 for one that is not ours."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), UNEXPECTED)


def message_of(error: BaseException) -> str:
    """What to print for an error that has an exit code of its own."""
    if isinstance(error, errors.PyedmclError):
        return printable(str(error))
    if isinstance(error, KeyboardInterrupt):
        return "Interrupted. Run the same command to start again."
    return f"This machine has not enough free memory: {error or 'an allocation failed'}. Use fewer series (--columns)."


def in_options(message: str, command: Any, others: Sequence[str] = ()) -> str:
    """A message that names arguments of Python (``columns=``) with the options of a command (``--columns``) instead.

    Parameters
    ----------
    message : str
    command : click.Command or None
    others : sequence of str
        Arguments that are options of other commands.
    """
    parameters = command.params if command is not None else ()
    for name in others:
        message = _as_option(message, name, f"--{name.replace('_', '-')}")
    for parameter in parameters:
        option = next((name for name in parameter.opts if name.startswith("--")), None)
        if option is None:
            continue
        for name in arguments_of(str(parameter.name)):
            if parameter.is_flag:
                message = re.sub(rf"(?<![\w-]){name}=True\b", option, message)
                off = next(iter(parameter.secondary_opts), None)
                message = message if off is None else re.sub(rf"(?<![\w-]){name}=False\b", off, message)
            else:
                message = _as_option(message, name, option)
    if any(parameter.name == "exclude" for parameter in parameters):
        message = re.sub(r"--columns ('?)-", r"--exclude \1", message)
    if command is not None and not any(parameter.name == "groups" for parameter in parameters):
        message = re.sub(r"(?<![\w-])groups=('[^']*')(?! of)", r"--groups \1 of rqa-batch", message)
    return message


def arguments_of(parameter: str) -> tuple[str, ...]:
    """What the argument of a function may be called that a parameter of a command stands for."""
    return (parameter, *_OTHERWISE.get(parameter, ()))


def _as_option(message: str, name: str, option: str) -> str:
    """A message with an option, and its value, in place of an argument and its value."""
    # A remedy: "use a smaller E_max or tau".
    message = re.sub(rf"(\b(?:smaller|larger) (?:[\w-]+(?:, | or ))*){name}\b", rf"\1{option}", message)
    if "_" in name:  # no series, such as x, which may stand there too
        message = re.sub(rf"^{name}(?=: )", option, message)
    if f"{name}=" not in message:
        return message
    message = re.sub(rf"(?<![\w-]){name}=None\b", option, message)
    if name in _OF_WORDS:
        message = re.sub(rf"(?<![\w-]){name}='([a-z]+)'", rf"{option} \1", message)
    message = re.sub(rf"(?<![\w-]){name}=(?=[\w'\"(\[-])", f"{option} ", message)
    return re.sub(rf"(?<![\w-]){name}=(?!=)", option, message)


class Commands(TyperGroup):
    """A group whose commands end with one clear message and an exit code for every error that we know."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        call: Callable[[Any], Any] = super().invoke
        try:
            return call(ctx)
        except tuple(kind for kind, _ in _CODES) as error:
            if ctx.find_root().meta.get(_DEBUG):
                typer.echo(printable(traceback.format_exc()), err=True)
            if isinstance(error, KeyboardInterrupt):
                typer.echo(message_of(error), err=True)
            else:
                command = self.get_command(ctx, ctx.invoked_subcommand) if ctx.invoked_subcommand else None
                text = in_options(message_of(error), command)
                typer.echo(typer.style("error: ", fg="red", bold=True) + text, err=True)
            raise typer.Exit(code_of(error)) from None
        except typer.BadParameter as error:
            error.message = printable(error.message)
            raise  # itself: that an argument is missing is said by its class, not by its message


class Command(TyperCommand):
    """A command that does not write over what it reads, nor two of its results to one place."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command.

        Raises
        ------
        OutputError
            A file that is to be written is an input, lies in one that is a folder, or is named twice.
        """
        token = _running.set(ctx)
        try:
            with shown_pictures(ctx):
                return self._run(ctx)
        finally:
            _running.reset(token)

    def _run(self, ctx: Any) -> Any:
        inputs, outputs = _paths(ctx, "argument"), _paths(ctx, "option")
        for place, output in enumerate(outputs):
            for given in inputs:
                if _same(given, output) or (os.path.isdir(given) and given.resolve() in output.resolve().parents):
                    raise errors.OutputError(f"{output}: this is {given}, which is read; name another place")
            if any(_same(output, other) for other in outputs[:place]):
                raise errors.OutputError(f"{output}: two results cannot be written to one place; name another one")
        leave_out(ctx.params)
        with warnings.catch_warnings():
            warnings.simplefilter("always", errors.PyedmclWarning)
            warnings.showwarning = functools.partial(_tell, ctx)
            return super().invoke(ctx)


def leave_out(params: dict[str, Any]) -> None:
    """Say ``--exclude a,b`` as ``--columns -a,-b``, which is what commands read.

    Raises
    ------
    typer.BadParameter
        Both are given.
    """
    names = params.get("exclude")
    if names is None:
        return
    if params.get("columns") is not None:
        raise typer.BadParameter("--exclude and --columns: name what is left out, or what is used")
    items = next(csv.reader([names], skipinitialspace=True), [])
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([f"-{item.strip()}" for item in items])
    params["columns"] = line.getvalue()


def _tell(ctx: Any, message: Warning | str, category: type[Warning], *place: Any, **_: Any) -> None:
    """Show a warning as a remark of the command. Those of other packages mean nothing to a user: --debug shows them."""
    if issubclass(category, errors.PyedmclWarning):
        if not ctx.params.get("quiet"):
            text = printable(in_options(str(message), ctx.command, _ELSEWHERE))
            typer.echo(typer.style("warning: ", fg="yellow", bold=True) + text, err=True)
    elif ctx.find_root().meta.get(_DEBUG):
        typer.echo(printable(warnings.formatwarning(message, category, *place[:2])), err=True)


def _paths(ctx: Any, kind: str) -> list[Path]:
    """What was given for the arguments or options that take a path."""
    path_values = [ctx.params.get(p.name) for p in ctx.command.params if p.param_type_name == kind]
    flat = [one for value in path_values for one in (value if isinstance(value, (list, tuple)) else [value])]
    return [path.expanduser() for path in flat if isinstance(path, Path)]


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except (OSError, ValueError):  # one of them is not there, or no path
        return os.path.abspath(one) == os.path.abspath(other)


# What a command says and where: results on stdout, remarks and progress on stderr, JSON for scripts.


_NAMED = 8  # series of a sentence


class Talk:
    """How one command talks.

    Parameters
    ----------
    quiet : bool
        No progress, no remarks, no summary.
    as_json : bool
        The result goes to stdout as one JSON document, which is then all of stdout.
    progress : bool or None
        Force or forbid progress; None shows it where stderr is a terminal.
    """

    def __init__(self, *, quiet: bool = False, as_json: bool = False, progress: bool | None = None) -> None:
        self.quiet = quiet
        self.as_json = as_json
        self._progress = progress

    def remark(self, text: str) -> None:
        """Something worth knowing, on stderr."""
        if not self.quiet:
            typer.echo(printable(text), err=True)

    def remark_on_arrows(self, n_series: int, arrows: int) -> None:
        """What arrows between pairs do not say, where one may pass through other series."""
        if arrows and n_series > 2:
            self.remark(
                "an arrow says that the cause is upstream of the effect, perhaps through other series: 'pyedmcl "
                "network' tells direct links from those"
            )

    def remark_on_surrogates(self, names: Sequence[str], reasons: Sequence[str]) -> None:
        """What the surrogates of each series keep; what is the same of several is said once. None have no reasons."""
        alike: dict[str, list[str]] = {}
        for name, reason in zip(names, reasons, strict=bool(reasons)):
            alike.setdefault(reason, []).append(name)
        for reason, own in alike.items():
            more = f" and {len(own) - _NAMED:,} more" if len(own) > _NAMED else ""
            self.remark(f"surrogates of {', '.join(own[:_NAMED])}{more}: {reason}")

    def summary(self, text: str) -> None:
        """The outcome in words, on stdout; left out for --quiet and --json."""
        if not (self.quiet or self.as_json):
            typer.echo(printable(text))

    def document(self, value: Any) -> None:
        """The result for a script: one JSON document on stdout, if it was asked for."""
        if self.as_json:
            typer.echo(json.dumps(plain(value), indent=1, allow_nan=False))

    def table(self, header: Sequence[str], rows: Sequence[Sequence[object]], right: Sequence[str] = ()) -> None:
        """A table that was asked for, on stdout; left out for --json. Columns named in ``right`` hold numbers."""
        if self.as_json:
            return
        from rich import box
        from rich.console import Console
        from rich.table import Table

        # A pipe gets whole lines, whatever their length, and no frame.
        terminal = sys.stdout.isatty()
        console = Console(markup=False, highlight=False, emoji=False, width=None if terminal else 10_000)
        table = Table(box=box.SIMPLE_HEAD if terminal else None, pad_edge=False)
        for name in header:
            table.add_column(shown(name), justify="right" if name in right else "left", overflow="fold")
        for row in rows:
            table.add_row(*(shown(str(cell)).replace("\n", "\\n") for cell in row))
        console.print(table)

    def cut(self, there: int, shown: int) -> None:
        """Say how many rows of a table were not shown, where there are more of them."""
        if there > shown and not self.as_json:
            self.remark(f"and {there - shown:,} more; -o writes all of them")

    def progress(self, label: str) -> AbstractContextManager[Report | None]:
        """A context that gives what to pass as ``progress=``: a report, or None where nothing is to be shown."""
        terminal = sys.stderr.isatty()
        if self.quiet or self._progress is False or (self._progress is None and not terminal):
            return nullcontext(None)
        from ..launch.progress import bar, lines

        return bar(label) if terminal else lines(label)


def plain(value: Any) -> Any:
    """``value`` in the types of JSON: NumPy's numbers as Python's, NaN and infinity as null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, (str, int, bool)) else str(value)


# Tables written by commands: whole or not at all.


_TABLES = (".csv", ".tsv", ".json")


def check_table(path: Path, what: str = "a table", others: Sequence[str] = ()) -> None:
    """Refuse, before anything is computed, a path that no table can be written to. Raises OutputError.

    ``what`` is written there, for messages; ``others`` are suffixes that it may have beside those of tables.
    """
    from ..atomic_files import output_path

    output_path(path, (*_TABLES, *others), what)


def check_result(path: Path | None, what: str = "a table", others: Sequence[str] = ()) -> None:
    """As :func:`check_table`, where the whole result may be written, too; None is fine."""
    from ..results.saved import SUFFIX

    if path is not None:
        check_table(path, what, (*others, SUFFIX))


def check_place(path: Path) -> None:
    """Refuse a file in a folder that is not there, or whose name is a folder. Raises OutputError."""
    from ..atomic_files import output_path

    output_path(path)


def finished(path: Path) -> bool:
    """Whether an earlier run has left a complete result here, of which this one computes nothing again."""
    from ..jobs.status import Observer

    try:
        return Observer(path).look().complete
    except StoreError:  # nothing yet, or what the run itself will refuse, with its reason
        return False


def check_pictures(*paths: Path | None) -> None:
    """Refuse, before anything is computed, paths that no picture can be written to; None is fine. Raises OutputError.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.
    """
    pictures = [path for path in paths if path is not None]
    if not pictures:
        return
    from ..plot.figure import check_format, new_figure

    for path in pictures:
        check_format(path)
    new_figure(1, 1)  # a missing matplotlib is told now and not after the work


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table as .csv, .tsv or .json (a list of objects).

    Numbers keep the digits that restore them; NaN is NaN in text and null in JSON.

    Raises
    ------
    OutputError
        For another suffix, or a folder that is not there.
    StoreWriteError
        If the file cannot be written; a file that was there is kept then.
    """
    from ..results.tables import row_writer, text_cell

    check_table(path)
    suffix = path.suffix.lower()
    if suffix == ".json":
        text = json.dumps([dict(zip(header, plain(list(row)), strict=True)) for row in rows], indent=1) + "\n"
    else:
        memory = io.StringIO(newline="")
        writer = row_writer(memory, "\t" if suffix == ".tsv" else ",")
        writer.writerow(map(text_cell, header))
        for row in rows:
            writer.writerow(["NaN" if cell != cell else text_cell(cell) for cell in row])
        text = memory.getvalue()
    write_bytes(path, text.encode(errors="surrogatepass"))


def table_of_windows(result: Any) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Header and rows of a result of windows, dates as text."""
    columns = result.columns()
    held = [(values.astype(str) if values.dtype.kind == "M" else values).tolist() for values in columns.values()]
    return tuple(columns), list(zip(*held, strict=True))


def write_result(path: Path, result: Any, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a result as a whole (.edm), for ``plot``, ``export`` and ``report``, or a table of it by its suffix.

    Raises
    ------
    OutputError, StoreWriteError
        As for :func:`write_table`.
    """
    from ..results.saved import SUFFIX

    if path.suffix.lower() == SUFFIX:
        result.save(path)
    else:
        write_table(path, header, rows)


def write_bytes(path: Path, data: bytes | memoryview) -> None:
    """Write a file of a command. Raises StoreWriteError; a file that was there is kept then."""
    from ..atomic_files import writing

    with writing(path) as draft:
        draft.write(data)


# What ``pyedmcl check`` would say of a table, as remarks of a command that computes something from it.


_THEMSELVES = ("check", "network")  # commands that say it themselves
_PAIRS = ("xmap", "xmap-grid", "ccm", "ccm-matrix", "surrogate-test")
#: Commands that look for rows which come back: what cross mapping takes for a fault is their subject.
RECURRENCE = (
    "rqa", "rqa-batch", "recurrence-plot", "joint-rqa", "windowed-rqa", "recurrence-network", "lag-profile",
    "mutual-information", "demo-recurrence",
)  # fmt: skip
_MOST = 100  # series that are looked at, spread over all of them: some milliseconds each
_OF_SIZE = ("few-rows", "on-its-side")
_OF_TABLE = ("stray", "labels", "copies", "repeats", "few-returns")
_OF_SERIES = {
    "trend": "with a trend, which others that have one seem to follow",
    "wanders": "without a mean to which they return: two such series seem to be linked by chance",
    "ties": "with few different values, so that many states are equal",
}
_TOLD = "pyedmcl.remarks"


def remark_on(series: Series) -> None:
    """Warn, once in a command, of what misleads in a table: seasons that series share, trends, ties, too few rows.

    And copies of a series, rows that occur again, codes of gaps, labels, and series that hardly return.
    """
    context = running()
    if context is None or context.info_name in _THEMSELVES or context.params.get("groups") is not None:
        return
    if series.categories:  # what is said of numbers is not said of codes
        return
    remarked = context.meta.setdefault(_TOLD, set())
    if context.params.get("quiet") or series.names in remarked:
        return
    remarked.add(series.names)
    from ..table_check import check, remarks_on_size

    few = len(series.names) <= _MOST
    purpose = "recurrence" if context.info_name in RECURRENCE else "maps"
    looked_at = check(series if few else _some(series), E_max=1, purpose=purpose).remarks
    remarks = [remark for remark in looked_at if remark.code not in _OF_SIZE]
    of_some = "" if few else f" (of {_MOST} of the {series.n_series:,} series, which were looked at)"
    kept = context.params.get("surrogate") in ("auto", "seasonal")  # the season is kept by what is asked for
    of_pairs = context.info_name in _PAIRS and not kept
    # Of few rows the function itself warns.
    of_size = [one for one in remarks_on_size(series, 1) if purpose == "maps" and one.code != "few-rows"]
    for text in _lines([*of_size, *remarks], of_pairs, of_some):
        warn(text)


def _some(series: Series) -> Series:
    """The ``_MOST`` series that are looked at, the first and the last among them."""
    import numpy as np

    from ..series.series import build_series

    places = np.linspace(0, series.n_series - 1, _MOST).astype(int)
    return build_series(series.values[:, places], [series.names[place] for place in places])


def _lines(remarks: Any, of_pairs: bool, of_some: str) -> list[str]:
    """Each kind of remark in a sentence; ``of_some`` says what was looked at where that is not all."""
    from ..arguments import some

    lines = []
    for remark in remarks:
        if remark.code == "common-season" and of_pairs:
            said = remark.text.partition(". Test")[0]
            lines.append(f"{said}{of_some}. Test with 'pyedmcl surrogate-test --surrogate auto', or 'pyedmcl network'")
        elif remark.code in _OF_SIZE:
            lines.append(remark.text.partition("; take")[0])
        elif remark.code in _OF_TABLE:
            lines.append(f"{remark}{of_some}")
    for code, words in _OF_SERIES.items():
        names = [remark.series for remark in remarks if remark.code == code]
        if names:
            lines.append(f"{some(names)}: {'a' if len(names) == 1 else len(names)} series {words}{of_some}")
    return lines

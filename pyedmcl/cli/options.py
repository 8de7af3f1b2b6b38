"""Options that several commands share, and from the words of a command line to series, dimensions and results."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ClientError, GroupsWarning, InputError, PyedmclWarning, StoreForeignError, missing_extra
from ..parameters import Argument, names
from .output import RECURRENCE, ask_for_traceback, printable, remark_on, running

if TYPE_CHECKING:
    from ..jobs import XmapStore
    from ..series.series import Series


#: The heading of options that say how a command runs.
RUN = "Running"

Input = Annotated[
    Path,
    typer.Argument(
        metavar="INPUT",
        help="Series with time along the rows: CSV, TSV, NPY, NPZ, HDF5, Parquet, Feather, NetCDF, Zarr, MATLAB or "
        "Excel.",
        show_default=False,
    ),
]
Result = Annotated[Path, typer.Argument(metavar="RESULT", help="A folder that 'pyedmcl xmap' wrote.")]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="A,B,...",
        help="Series to use, by name; digits that are no name are positions in the file from 0. A name with a comma "
        "goes in double quotes.",
    ),
]
Exclude = Annotated[
    str | None,
    typer.Option(
        "--exclude", metavar="A,B,...", show_default=False,
        help="Columns to leave out, such as notes; all others are used. In place of --columns.",
    ),
]  # fmt: skip
TimeColumn = Annotated[
    str | None,
    typer.Option(
        "--time-column", metavar="NAME,...", help="The column of the time, or its parts, if they are not recognised."
    ),
]
Dataset = Annotated[
    str | None, typer.Option("--dataset", metavar="NAME", help="Which array of an NPZ, HDF5 or Zarr file to read.")
]
Targets = Annotated[
    str | None,
    typer.Option("--targets", metavar="FILE|NAME,...", show_default=False,
                 help="What is predicted, where that is not the libraries: a file of series over the same rows, or "
                 "columns."),
]  # fmt: skip
Picture = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE", help="Draw the result (.png, .pdf, .svg, or show: in a window).",
                 show_default=False),
]
Network = Annotated[
    Path | None,
    typer.Option("--network", metavar="FILE", show_default=False,
                 help="Draw the pairs that pass the test as arrows from cause to effect."),
]  # fmt: skip
Layout = Annotated[
    str,
    typer.Option("--layout", metavar="circle|force",
                 help="Of a network: series on a circle, or near those that they are linked to."),
]
Clusters = Annotated[
    str | None,
    typer.Option("--clusters", metavar="auto|NAME=A,B;...", show_default=False,
                 help="Of a network: colour series by cluster and put those of one together, as in HVC=n1,n2;RA=n3; "
                 "auto finds clusters from the links."),
]  # fmt: skip
Dtype = Annotated[
    str, typer.Option("--dtype", metavar="float32|float64", help="Arithmetic on the device.", rich_help_panel=RUN)
]
_DEVICES = ("gpu", "cpu", "nvidia", "amd", "intel", "pocl", "sycl", "gpus", "all")


def _some_devices(incomplete: str) -> list[str]:
    """Requests that begin so, for a shell: without a look at the devices, which takes a while."""
    return [word for word in _DEVICES if word.startswith(incomplete)]


Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="DEVICE",
        help="gpu, cpu, nvidia, a part of a name or an id such as 0:0 (see 'pyedmcl devices'); gpus, all or 0:0,0:1 "
        "for several. "
        "Default: PYEDMCL_DEVICE, else the best one.",
        show_default=False,
        rich_help_panel=RUN,
        autocompletion=_some_devices,
    ),
]
Progress = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress",
        help="Show progress on stderr; by default where that is a terminal.",
        show_default=False,
        rich_help_panel=RUN,
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress and no remarks; errors are still told.", rich_help_panel=RUN)
]
Json = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON, and nothing else on stdout.", rich_help_panel=RUN)
]
Debug = Annotated[
    bool,
    typer.Option("--debug", help="Show the traceback of an error.", callback=ask_for_traceback, rich_help_panel=RUN),
]


# Options of the commands about cross mapping, and their words as numbers.



First = Annotated[
    str | None,
    typer.Option("--x", metavar="X", help="The first variable: a name, or digits for a position from 0.",
                 show_default=False),
]  # fmt: skip
Second = Annotated[str | None, typer.Option("--y", metavar="Y", help="The second one.", show_default=False)]


# Options that say how a file is read, which every command has that reads one, and the reading itself.


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

#: How a command runs and talks: options of all derived commands, and their defaults.
RUNNING: dict[str, tuple[Any, Any]] = {
    "progress": (Progress, None), "quiet": (Quiet, False), "json": (Json, False), "debug": (Debug, False),
}  # fmt: skip


def option_of(row: Argument, default: Any) -> Any:
    """The option for an argument of a function; ``default`` is that of the command."""
    flag = row.flag
    asked = typer.Option(
        f"{flag}/--no-{flag[2:]}" if default is True else flag, help=row.help, rich_help_panel=row.panel,
        metavar=row.metavar or row.kind.metavar, show_default=default not in (None, inspect.Parameter.empty),
        autocompletion=_some_devices if row.name == "device" else None,
    )  # fmt: skip
    return Annotated[row.kind.cast if default is not None else row.kind.cast | None, asked]


def value_of(row: Argument, text: Any) -> Any:
    """What the text of an option stands for. Raises typer.BadParameter."""
    if row.kind.read is None or not isinstance(text, str):
        return text
    try:
        return row.kind.read(text)
    except ValueError:
        raise typer.BadParameter(f"{row.flag} {text!r}: {row.kind.form} needed") from None


def load(path: Path, columns: list[str] | None, time_column: str | None, dataset: str | None) -> Series:
    """Read the series of a file, and say once in a command how it was read.

    Raises
    ------
    InputError
        As for :func:`pyedmcl.files.read_series`, and for a result of our own.
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


def read(
    path: Path, columns: list[str] | None, time_column: str | None, dataset: str | None, **other: Any
) -> Series:  # fmt: skip
    """Read a file with the options of the command at work, in place of which come ``other`` ones."""
    from ..files import read_series

    context = running()
    given = {} if context is None else {
        name: value for name in OPTIONS if (value := context.params.get(name)) not in (None, False)
    }  # fmt: skip
    given["categories"] = context is not None and context.info_name in RECURRENCE
    return read_series(path, columns=columns, time_column=time_column, dataset=dataset, **{**given, **other})


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


# From the words of a command line to series, dimensions and stored results.


__all__ = ["load", "read"]

#: Endings of files: no folder of a result has such a name.
FILES = (".csv", ".tsv", ".txt", ".npy", ".npz", ".h5", ".hdf5", ".parquet", ".feather", ".png", ".pdf", ".json")


def parse_columns(text: str | None) -> list[str] | None:
    """The items of a comma-separated list; double quotes keep a comma within a name."""
    try:
        return None if text is None else names(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r}: names or positions are needed, such as x,y or 0,3") from None


_DIGITS = re.compile(r"\d+")
_SHOWN = 8  # names of series in a message


def part_of(series: Series, *places: int) -> Series:
    """Those series of several that stand at some places, with all that is known of them."""
    return series.part(*places)


def shown_names(series: Series) -> str:
    """The names of the first series, for a message."""
    return ", ".join(series.names[:_SHOWN]) + (", ..." if series.n_series > _SHOWN else "")


def parse_clusters(text: str | None) -> str | dict[str, str] | None:
    """``auto``, or ``HVC=n1,n2;RA=n3`` as the label of each series."""
    if text is None or text.strip().lower() == "auto":
        return None if text is None else "auto"
    label_of: dict[str, str] = {}
    for part in text.split(";"):
        label, equals, members = part.partition("=")
        names = parse_columns(members) if equals and members.strip() else None
        if not label.strip() or names is None or label_of.keys() & set(names):
            raise typer.BadParameter(
                f"--clusters {text!r}: 'auto', or names and their series such as HVC=n1,n2;RA=n3, each once, are needed"
            )
        label_of |= dict.fromkeys(names, label.strip())
    return label_of


def beside_groups(columns: list[str] | None, groups: str | None) -> list[str] | None:
    """The columns that hold values: those that were named, or all but the ones that name groups."""
    keys, chosen = parse_columns(groups), columns or []
    if keys is None or any(_DIGITS.fullmatch(key) for key in keys) or not all(item[0] == "-" for item in chosen):
        return columns
    return [*chosen, *(f"-{key}" for key in keys if f"-{key}" not in chosen)]


def load_groups(
    path: Path, columns: list[str] | None, groups: str | None, dataset: str | None, *, needed: str = "--columns"
) -> list[Any] | None:
    """Of each row its values in the columns that name its group, which may be text; None without ``groups``.

    Parameters
    ----------
    columns : list of str or None
        Columns that hold values, such as :func:`beside_groups` gives.
    needed : str
        The option that says so.
    """
    keys = parse_columns(groups)
    if keys is None:
        return None
    if columns is None:
        raise typer.BadParameter(f"--groups needs {needed}, which says which columns hold values")
    held = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PyedmclWarning)  # the series themselves are read, and told of, afterwards
        column = list(read(path, columns, None, dataset).names[:1]) if columns[0].startswith("-") else columns[:1]
        for key in keys:
            time = read(path, column, key, dataset).time
            held.append([] if time is None else time.tolist())
    return held[0] if len(held) == 1 else list(zip(*held, strict=True))


def targets_of(input: Path, targets: str, time_column: str | None, dataset: str | None) -> Series:
    """The series of a file, where there is one of this name, or columns of the input."""
    if Path(targets).exists():
        return load(Path(targets), None, time_column, dataset)
    if Path(targets).suffix.lower() in FILES:
        raise InputError(f"--targets {targets}: there is no such file")
    return load(input, parse_columns(targets), time_column, dataset)


def result_in(store: XmapStore) -> Any:
    """The map of a result of xmap, or the edges that it kept."""
    from ..crossmap.xmap import result_of_store

    return result_of_store(store, store.dimensions(), store.manifest.provenance())


def open_result(path: Path, *, partial: bool) -> XmapStore:
    """Open a result of xmap for reading.

    Parameters
    ----------
    path : pathlib.Path
    partial : bool
        Take a result that is not finished; its missing rows are NaN.

    Raises
    ------
    InputError
        It is no result of ours, not finished, or nothing of it is there yet.
    """
    from ..jobs import open_store

    try:
        store = open_store(path)
    except StoreForeignError as error:
        if not os.path.lexists(path):
            raise InputError(f"{path}: there is no such file or folder") from error
        raise InputError(
            f"{path} is no result that this command reads; name the folder that xmap, xmap-grid, ccm-matrix or "
            "network wrote, or a function with out=, or a file that save() of a result wrote (.edm)"
        ) from error
    pending = len(store.pending())
    if store.E is None:
        raise InputError(f"{path} holds no values yet; run its xmap command again, which continues it")
    if pending and not partial:
        raise InputError(
            f"{path} is not finished: {pending} of {store.n_blocks} blocks are missing. Run its xmap command again, "
            "which continues it, or add --partial to use what is there, with NaN in the missing rows"
        )
    return store


# Results that are no map of ``pyedmcl xmap``: those that ``save`` wrote, and folders of other functions (``out=``).


_TABLES = (".csv", ".tsv", ".json", ".parquet")
_ARRAYS = (".nc",)


def other_result(path: Path) -> Any:
    """The result at ``path``; None for what a map of ``pyedmcl xmap`` may be.

    Raises
    ------
    InputError, StoreError
        As for :func:`pyedmcl.open_result`.
    """
    from ..errors import StoreForeignError
    from ..jobs.records import METADATA
    from ..results.saved import SUFFIX

    if (path / METADATA).exists() if os.path.isdir(path) else path.suffix.lower() != SUFFIX:
        return None
    from ..opening import open_result

    try:
        return open_result(path)
    except StoreForeignError:
        if os.path.isdir(path):  # the commands say what they read
            return None
        raise


def given(name: str) -> bool:
    """Whether an option stands in the command line."""
    context = running()
    source = None if context is None else context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def draw(
    result: Any, output: Path, *, network: bool, options: dict[str, Any], title: str | None, dpi: int,
    cluster: bool = False,
) -> str:  # fmt: skip
    """Draw a result; says what it is. ``asked`` are arguments of pictures of networks.

    Raises
    ------
    InputError
        It has no picture of this kind, or none whose series could be put in order.
    """
    kind = type(result).__name__
    picture = getattr(result, "plot_network" if network else "plot", None)
    if network and picture is None and kind == "CausalNetwork":
        picture = result.plot
    if picture is None:
        raise InputError(f"a {kind} has no {'network' if network else 'picture'}")
    taken = inspect.signature(picture).parameters
    unused = [name for name in options if name not in taken and given(name)]
    if unused:
        raise InputError(f"{unused[0]}=: the picture of a {kind} has none; leave it out")
    options = {name: value for name, value in options.items() if name in taken}
    if cluster:
        if "cluster" not in taken:
            raise InputError(f"cluster=True: the picture of a {kind} has no series in rows and columns; leave it out")
        options["cluster"] = True
    picture(str(output), **options, title=title, dpi=dpi)
    return kind


def write(result: Any, output: Path, *, edges: bool = False, top: int = 100) -> tuple[str, int | None]:
    """Write the table, links, graph or arrays of a result, as the suffix asks; says what, and rows of a table.

    Raises
    ------
    OutputError
        The suffix is none of those that a result of this kind is written as.
    InputError
        It has no table.
    """
    import numpy as np

    from ..atomic_files import output_path, writing
    from ..results.edges import GRAPHS
    from .output import write_table

    if edges and not hasattr(result, "edges"):
        raise InputError(f"--edges: a {type(result).__name__} has no pairs; leave it out for its table")
    if edges and "top" not in inspect.signature(result.edges).parameters:
        if given("top"):
            raise InputError(f"--top: all links of a {type(result).__name__} are written; leave it out")
        top = 0
    pixels = getattr(result, "_pixels", None)
    more = () if pixels is None else (".npy",)
    graphs = GRAPHS if hasattr(result, "write_graph") else ()
    place = output_path(output, (*_TABLES, *_ARRAYS, *graphs, *more), f"a {type(result).__name__}")
    if place.suffix.lower() in graphs:
        result.write_graph(place)
        return "graph", None
    if place.suffix.lower() in _ARRAYS:
        result.write_netcdf(place)
        return "arrays", None
    if place.suffix.lower() == ".npy":
        with writing(place, "the pixels") as draft:
            np.save(draft, np.asarray(pixels))
        return "pixels", None
    if edges:
        found = result.edges(top) if top else result.edges()
        rows = [edge.named() for edge in found] if top else found.to_dict("records")
        write_table(place, list(rows[0]) if rows else ["source", "target"], [list(row.values()) for row in rows])
        return "links", len(rows)
    if pixels is not None:
        write_table(place, [str(at) for at in range(pixels.shape[1])], pixels.tolist())
        return "pixels", len(pixels)
    if not hasattr(result, "to_frame"):
        raise InputError(f"a {type(result).__name__} has no table")
    return "table", _write_table(result, place)


def _write_table(result: Any, place: Path) -> int:
    from ..atomic_files import writing

    frame = result.to_frame()
    suffix, whole = place.suffix.lower(), frame.index.name is not None or not _numbered(frame.index)
    if suffix == ".parquet":
        with writing(place, "the table") as draft:
            frame.to_parquet(draft)
        return len(frame)
    from .output import write_table

    frame = frame.reset_index() if whole else frame
    write_table(place, [str(name) for name in frame.columns], frame.astype(object).to_numpy().tolist())
    return len(frame)


def _numbered(index: Any) -> bool:
    return type(index).__name__ == "RangeIndex"


# Workers of a cluster for commands: ``--client``.


_SECONDS = 30


@contextlib.contextmanager
def client_at(address: str | None) -> Iterator[Any]:
    """A client of the Dask scheduler at an address, while the block lasts; None for None.

    Raises
    ------
    InputError
        It is no address.
    MissingExtraError
        Dask is not installed.
    ClientError
        Nobody answers there.
    """
    if address is None:
        yield None
        return
    if not re.fullmatch(r"(tcp|tls|ws|wss|ucx)://[^/\s]+:\d+", address):
        raise InputError(f"--client {address}: the address of a Dask scheduler is needed, such as tcp://head:8786")
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError as error:
        raise missing_extra("distributed", "dask", "--client") from error
    try:
        client = distributed.Client(address, timeout=_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClientError(f"--client {address}: no Dask scheduler answers there ({error})") from error
    with client:
        yield client

"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .exits import ask_for_traceback

_EMBEDDING = "Embedding"
_RUN = "Running"

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
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups", metavar="A,B,...", show_default=False,
        help="Columns whose combinations tell recordings apart that stand one below the other, such as site,plot: no "
        "state crosses a border. Say which columns hold values, too.",
    ),
]  # fmt: skip
Draw = Annotated[
    str,
    typer.Option(
        "--draw", metavar="rows|groups", help="Draw libraries from single rows, or from whole groups of --groups."
    ),
]
Windows = Annotated[
    str | None,
    typer.Option(
        "--windows", metavar="WIDTH,STEP", show_default=False,
        help="Skill within windows of WIDTH rows, each STEP rows after the one before.",
    ),
]  # fmt: skip
Skill = Annotated[
    str,
    typer.Option(
        "--skill", metavar="MEASURE",
        help="What is shown of each pair: pearson, spearman, rmse, mae or nrmse. Columns called rho hold it.",
    ),
]  # fmt: skip
Regular = Annotated[
    str | None,
    typer.Option(
        "--regular", metavar="insert|ignore", show_default=False,
        help="Where times say that rows are missing or uneven, which is refused: insert puts empty rows between, "
        "ignore takes the rows as they come.",
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
Tau = Annotated[int, typer.Option("--tau", help="Lag into the past, in steps.", rich_help_panel=_EMBEDDING)]
Exclusion = Annotated[
    int,
    typer.Option(
        "--exclusion-radius",
        metavar="STEPS",
        help="Neighbours up to this many steps away in time are left out; 0 leaves out the row itself.",
        rich_help_panel=_EMBEDDING,
    ),
]
Knn = Annotated[
    int | None,
    typer.Option("--knn", help="Neighbours (default: E + 1).", show_default=False, rich_help_panel=_EMBEDDING),
]
Neighbors = Annotated[
    str,
    typer.Option(
        "--neighbors", metavar="SEARCH",
        help="exact (the fastest of exhaustive, pruned, kdtree, with the same bits), auto, ivf, hnsw (may miss some).",
        rich_help_panel=_RUN,
    ),
]  # fmt: skip
Recall = Annotated[
    float,
    typer.Option(
        "--recall",
        help="Share of the true neighbours that ivf and hnsw must find; without effect on other searches.",
        rich_help_panel=_RUN,
    ),
]
EMax = Annotated[int, typer.Option("--E-max", help="Largest E that is tried.", rich_help_panel=_EMBEDDING)]
ERule = Annotated[
    str,
    typer.Option(
        "--E-rule", metavar="RULE", rich_help_panel=_EMBEDDING,
        help="Which E is taken where it is searched: best; one-se, the smallest within a standard error of the best; "
        "or a tolerance of rho such as 0.02.",
    ),
]  # fmt: skip
Library = Annotated[
    str | None,
    typer.Option("--lib", metavar="A:B[,C:D]", help="Library rows, from A up to but not B, counted from 0.",
                 show_default=False, rich_help_panel="Rows"),
]  # fmt: skip
Predicted = Annotated[
    str | None,
    typer.Option("--pred", metavar="A:B[,C:D]", help="Rows that are predicted, likewise.", show_default=False,
                 rich_help_panel="Rows"),
]  # fmt: skip
Folds = Annotated[
    int | None,
    typer.Option("--folds", metavar="K", help="Predict K stretches of rows, each from the others; the mean skill.",
                 show_default=False, rich_help_panel="Rows"),
]  # fmt: skip
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
Join = Annotated[
    bool,
    typer.Option("--join", help="Compute together with all who run the same command on this folder, on any machine.",
                 rich_help_panel=_RUN),
]  # fmt: skip
Part = Annotated[
    str | None,
    typer.Option("--part", metavar="I/N", show_default=False, rich_help_panel=_RUN,
                 help="This is the I-th (from 1) of N that join, and begins at its share. Implies --join; by default "
                 "as the scheduler says."),
]  # fmt: skip
Dtype = Annotated[
    str, typer.Option("--dtype", metavar="float32|float64", help="Arithmetic on the device.", rich_help_panel=_RUN)
]
Precision = Annotated[
    str,
    typer.Option("--precision", metavar="full|compact", rich_help_panel=_RUN,
                 help="compact is faster on some GPUs, and skill may change by up to 2e-5."),
]  # fmt: skip
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
        rich_help_panel=_RUN,
        autocompletion=_some_devices,
    ),
]
Client = Annotated[
    str | None,
    typer.Option(
        "--client",
        metavar="ADDRESS",
        help="Have the workers of this Dask scheduler compute, such as tcp://head:8786; each opens --device where it "
        "runs.",
        show_default=False,
        rich_help_panel=_RUN,
    ),
]
Progress = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress",
        help="Show progress on stderr; by default where that is a terminal.",
        show_default=False,
        rich_help_panel=_RUN,
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress and no remarks; errors are still told.", rich_help_panel=_RUN)
]
Json = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON, and nothing else on stdout.", rich_help_panel=_RUN)
]
Debug = Annotated[
    bool,
    typer.Option("--debug", help="Show the traceback of an error.", callback=ask_for_traceback, rich_help_panel=_RUN),
]

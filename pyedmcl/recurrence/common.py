"""The common path of all recurrence functions: points and options -> problem -> counts -> results."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ..device.select import DeviceNames
from ..device.session import open_devices
from ..errors import InputError
from ..files import path_of
from ..jobs import provenance as jobs
from ..jobs.client import ClientRunner
from ..jobs.runner import LocalRunner, Runner
from ..launch import progress
from . import arguments
from .conventions import Convention
from .engine import counted
from .points import Points
from .problem import RqaProblem
from .result import RecurrenceResult
from .units import unit_named

if TYPE_CHECKING:
    from .counts import Counts

Progress = progress.Progress
Device = DeviceNames
Checkpoint = str | os.PathLike[str] | None
SWEEP = ("recurrence_bits", "recurrence_transpose", "recurrence_lines")


@dataclass(frozen=True)
class Options:
    """Checked options that all recurrence functions share."""

    convention: Convention
    lmin: int
    vmin: int
    wmin: int
    dtype: str
    exact: bool
    tile: int | None
    radius_unit: str = "data"

    @property
    def arithmetic(self) -> str:
        """The precision that decides which cells are recurrent."""
        return "float64" if self.exact else self.dtype


def options_of(
    *, convention: Any, lmin: Any, vmin: Any, wmin: Any, dtype: Any, exact: Any, tile: Any,
    radius_unit: Any = "data", threshold: str = "fixed",
) -> Options:
    """Check them; see :func:`pyedmcl.recurrence.rqa.rqa`."""
    from .conventions import convention_named

    return Options(
        convention_named(convention),
        arguments.minimum("lmin", lmin),
        arguments.minimum("vmin", vmin),
        arguments.minimum("wmin", wmin),
        arguments.precision(dtype),
        exact,
        None if tile is None else arguments.integer("tile", tile, 1),
        unit_named(radius_unit, threshold),
    )


def runner_of(device: Device, options: Options, client: Any = None) -> Runner:
    """What runs jobs on the named devices, those of the workers of ``client`` where it is given.

    Each must compute in what the options ask for.
    """
    runner: Runner = LocalRunner(open_devices(device)) if client is None else ClientRunner(client, device)
    for info in runner.infos:
        arguments.precision(options.dtype, info.fp64, info.name)
    return runner


def problem_of(
    rows: Points, columns: Points | None, options: Options, *, theiler: int
) -> RqaProblem:
    """The problem of two sides (``columns`` None: of one series with itself), radii still to come."""
    other = rows if columns is None else columns
    return RqaProblem(
        m=rows.m, tau=rows.tau, metric=rows.embedding.metric.name, dtype=options.dtype,
        exact=options.exact, radii=(), inner=None, strict=options.convention.strict, theiler=theiler,
        theiler_everywhere=options.convention.theiler_everywhere, n_rows=rows.n, n_columns=other.n,
        symmetric=columns is None, embedded=rows.embedded, n_features=rows.n_features, exponent=rows.exponent,
    )  # fmt: skip


def count(
    runner: Runner, problem: RqaProblem, rows: Any, columns: Any, options: Options,
    checkpoint: Checkpoint = None, begin: float | None = None,
) -> list[Counts]:  # fmt: skip
    """Counts of each radius: the one way from here to the devices.

    ``rows`` and ``columns`` are :class:`Points`, or pairs of them for a joint problem. ``begin`` is where a process
    begins that shares the folder ``checkpoint`` with others.
    """
    if problem.joint is None:
        x, y = rows.values, columns.values
    else:
        x, y = tuple(side.values for side in rows), tuple(side.values for side in columns)
    other = None if problem.symmetric else y
    if checkpoint is not None and begin is not None:
        from .joined import quantify_joined

        folder = path_of(checkpoint, "checkpoint")
        return quantify_joined(folder, begin, runner, problem, x, other, tile=options.tile)
    if checkpoint is not None:
        from .checkpoint import quantify_with_checkpoint

        return quantify_with_checkpoint(checkpoint, runner, problem, x, other, tile=options.tile)
    return counted(runner, problem, x, other, tile=options.tile)


def one_pass(passes: Sequence[Any], checkpoint: Checkpoint, *, join: bool = False) -> None:
    """Refuse what names no file (to ``join``, no folder), and a checkpoint for several sweeps: it holds one."""
    if checkpoint is not None:
        checkpoint = path_of(checkpoint, "checkpoint")
    if checkpoint is not None and join and os.path.exists(checkpoint) and not os.path.isdir(checkpoint):
        raise InputError(f"checkpoint={str(checkpoint)!r} is a file; processes that join share a folder: name one")
    if checkpoint is not None and not join and os.path.isdir(checkpoint):
        raise InputError(f"checkpoint={str(checkpoint)!r} is a folder; name a file in it")
    if checkpoint is not None and len(passes) > 1:
        raise InputError(
            f"checkpoint={str(checkpoint)!r}: {len(passes)} sweeps are needed for these thresholds, and a checkpoint "
            "holds one; call once for each, with one of its own"
        )


def result_of(
    counts: Counts, radius: Any, problem: RqaProblem, options: Options, complete: tuple[NDArray[Any], NDArray[Any]],
    origin: dict[str, Any],
) -> RecurrenceResult:  # fmt: skip
    """The frozen result of one matrix.

    Parameters
    ----------
    complete : (ndarray of bool, ndarray of bool)
        Which points of the rows and of the columns have no gap.
    origin : dict
        From :func:`provenance`; results of one call may share it, each has a copy.
    """
    return RecurrenceResult(
        counts=counts,
        convention=options.convention,
        radius=radius,
        theiler=problem.theiler,
        lmin=options.lmin,
        vmin=options.vmin,
        wmin=options.wmin,
        complete=complete,
        symmetric=problem.symmetric,
        provenance=dict(origin),
    )


def provenance(runner: Runner, points: Points, options: Options, **more: Any) -> dict[str, Any]:
    """What would be needed to get the same counts again; see :func:`pyedmcl.jobs.provenance.provenance`."""
    return jobs.provenance(
        runner.infos, runner.tuning or SWEEP, runner.tuning, **points.embedding.described, dtype=options.dtype,
        exact=options.exact, convention=options.convention.name, tile=options.tile,
        radius_unit=options.radius_unit, **more,
    )  # fmt: skip

"""From the problem of a map to its result: in memory, as a list of edges, or in a folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...data.grid import grids_from
from ...data.groups import Layout
from ...device.foreign_arrays import ForeignArray
from ...io.edges import own_targets
from ...io.on_device import OnDevice
from ...jobs.blocks import Record, default_block_rows, shared_block_rows
from ...jobs.device_results import KERNEL, DeviceSink
from ...jobs.opening import open_store, open_to_write
from ...jobs.runner import Runner
from ...jobs.shared import SharedSink, sink_at
from ...jobs.sinks import ArraySink
from ...jobs.store import XmapStore
from ...launch.delivery import DeviceRows
from ..shared import arguments
from ..shared.measures import check_room
from .keep import Keep
from .kept_problem import EdgeSink, KeptProblem
from .linear_fits import theta_of
from .map_precision import tell_in_full
from .pairs import with_dimensions
from .xmap_edges import HeldParts, XmapEdges, edges_of_store
from .xmap_problem import XmapProblem
from .xmap_result import XmapResult


def stored_block_rows(shape: tuple[int, int], n_steps: int, rule: Keep | None, processes: int) -> int:
    """Libraries of a block in a folder, of a map of this shape that ``processes`` share."""
    rows = shared_block_rows(default_block_rows(*shape), shape[0], shape[1] * n_steps, processes)
    return rows if rule is None else rule.block_rows(shape[0], rows)


def map_in_memory(problem: XmapProblem, runner: Runner, layout: Layout | None) -> XmapResult:
    """Compute a map, or one for each theta or fold.

    Parameters
    ----------
    problem : XmapProblem
    runner : Runner
    layout : Layout or None
        Of recordings that stand one below the other: where the rows of predictions belong.
    """
    series, target_series = problem.data.series, problem.target_data.series
    shape, dtype = (series.n_series, target_series.n_series), problem.data.dtype
    fits = problem.fits
    # Behind the maps there may be one more array, of another shape: predictions (there is one map of skill then), or
    # mean slopes.
    predicted: Any = None
    slopes: Any = None
    if problem.predictions:
        predicted = check_room((*shape, series.n_steps), dtype, "take fewer libraries or targets at a time")
    elif fits is not None and fits.slopes:
        slopes = arguments.room("coefficients", (*shape, problem.highest), np.float64)
    further = [layer for layer in (predicted, slopes) if layer is not None]
    layers = np.empty((problem.layers - len(further), *shape), np.dtype(dtype))
    sink = ArraySink(problem.blocks(), [*layers, *further])
    problem = with_dimensions(problem, runner, sink)
    record = runner.run(problem, sink)
    lags = None
    if slopes is not None:
        lags = tuple(problem.tau * e for e in range(max(problem.E or (1,))))
        slopes = slopes[..., : len(lags)]
    if predicted is not None and layout is not None:
        predicted = predicted[..., layout.order]
    return XmapResult(
        # The layers: of theta="best" the largest rho and its theta; of several theta a map each; of folds the mean, and
        # then each fold; else one map.
        layers if fits is not None and fits.several else layers[0],
        np.array(problem.E, int), series.names, None, _provenance(problem, runner, record, sink.record),
        layers[1] if fits is not None and fits.best else theta_of(problem.arguments()),
        _target_names(problem), layers[1:] if problem.each_fold else None, problem.skill, predicted,
        (series.grid, target_series.grid), slopes, lags,
    )  # fmt: skip


def map_on_device(problem: XmapProblem, runner: Runner, array: ForeignArray) -> XmapResult:
    """Compute a map into an array of the caller on the device."""
    sink = DeviceSink(problem.blocks(), [DeviceRows.of(array, runner.executor)])
    problem = with_dimensions(problem, runner, sink)
    record = runner.run(problem, sink)
    used = _provenance(problem, runner, record, sink.record, more=(KERNEL,))
    return XmapResult(
        OnDevice(array.array), np.array(problem.E, int), problem.data.series.names, None, used,
        targets=_target_names(problem), grids=(problem.data.series.grid, problem.target_data.series.grid),
    )  # fmt: skip


def edges_in_memory(problem: XmapProblem, runner: Runner, rule: Keep) -> XmapEdges:
    """Compute a map block by block and keep the edges that a rule chooses."""
    job = _reduced(problem, rule)
    sink = EdgeSink(problem.blocks(), rule, job.itself, job.n_targets, problem.data.dtype)
    problem = with_dimensions(problem, runner, sink)
    record = runner.run(_reduced(problem, rule), sink)
    used = _provenance(problem, runner, record, sink.record, rule)
    return XmapEdges(
        str(rule), np.array(problem.E, int), problem.data.series.names, problem.data.dtype, HeldParts(sink.parts()),
        None, used, _target_names(problem),
    )  # fmt: skip


def map_in_folder(
    problem: XmapProblem, runner: Runner, folder: Path, rule: Keep | None, begin: float | None, *, resume: bool
) -> XmapResult | XmapEdges:
    """Compute what a store lacks of a map or of its edges.

    ``begin`` is where among the blocks this process begins, as a share of them, together with other processes that
    share the folder; None where it works alone.
    """
    info = runner.alike(problem.kernels)
    manifest = problem.manifest(info, **_named(rule))
    opened = sink_at(
        folder, info.name, begin, lambda member: [open_to_write(folder, manifest, member, resume=resume)]
    )
    with opened as sink:
        problem = with_dimensions(problem, runner, sink)
        record = runner.run(problem if rule is None else _reduced(problem, rule), sink)
    store = sink.stores[0] if isinstance(sink, SharedSink) else open_store(folder)
    earlier = sink.record if begin is None else replace(sink.record, searched=tuple(store.searched))  # also of others
    used = _provenance(problem, runner, record, earlier, rule)
    return result_of_store(store, np.array(problem.E, int), used)


def result_of_store(store: XmapStore, E: Any, provenance: dict[str, Any]) -> XmapResult | XmapEdges:
    """What a store holds, read when it is looked at."""
    if store.keep is not None:
        return edges_of_store(store, E, provenance)
    theta = theta_of(store.manifest.parameters)
    skill = store.manifest.parameters.get("skill", "pearson")
    return XmapResult(
        store.rho, E, store.names, store, provenance, theta, store.targets, skill=skill,
        grids=grids_from(store.manifest.grids),
    )  # fmt: skip


def _reduced(problem: XmapProblem, rule: Keep) -> KeptProblem:
    """The same problem, of whose blocks only edges are kept."""
    own_target = own_targets(problem.data.series.names, _target_names(problem))
    return KeptProblem(problem, rule, problem.data.dtype, own_target, problem.target_data.series.n_series)


def _target_names(problem: XmapProblem) -> tuple[str, ...] | None:
    """Of targets that are not the libraries."""
    return None if problem.targets is None else problem.targets.series.names


def _named(rule: Keep | None) -> dict[str, str]:
    return {} if rule is None else {"keep": str(rule)}


def _provenance(
    problem: XmapProblem, runner: Runner, record: Record, earlier: Record, rule: Keep | None = None,
    more: tuple[str, ...] = (),
) -> dict[str, Any]:  # fmt: skip
    """Where the result comes from. Its searches are also those for E, and those of blocks of earlier runs."""
    record = replace(record, searched=earlier.searched)
    provenance = runner.provenance((*problem.kernels, *more), record, arguments=problem.arguments() | _named(rule))
    tell_in_full(provenance)
    return provenance

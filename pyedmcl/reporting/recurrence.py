"""Sections of recurrence analysis: plots of recurrences and distances, and tables of measures."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..io.result import brief
from ..plot.recurrence import darkest
from ..plot.reduce import block_means
from ..recurrence.measures import SHORT_NAMES
from .cells import SIDE
from .content import Layer, Map, Section, Table, Wishes
from .pictures import picture

_FAR = 99.0  # percentile of the distances that is drawn white
_NEAR = "Dark where the points of two moments are near each other."


def of_recurrence_plot(result: Any, wishes: Wishes) -> Section:
    """A RecurrencePlot."""
    cells, _ = block_means(result.density, SIDE)
    layer = Layer("share of recurrent cells", cells, "Greys", 0.0, darkest(cells))
    facts = {"radius": brief(result.radius)}
    return _plotted("Recurrence plot", result, layer, facts)


def of_distance_plot(result: Any, wishes: Wishes) -> Section:
    """A DistancePlot."""
    cells, _ = block_means(result.means, SIDE)
    finite = cells[np.isfinite(cells)]
    far = float(np.percentile(finite, _FAR)) if finite.size else 0.0
    layer = Layer("mean distance", cells, "Greys_r", 0.0, far or 1.0)
    return _plotted("Distance plot", result, layer, {})


def _plotted(title: str, result: Any, layer: Layer, facts: dict[str, str]) -> Section:
    shape = result.n_rows, result.n_columns
    same = not result.provenance.get("cross", False)
    sides = ("point", "point") if same else ("point of y", "point of x")
    drawn = Map(title, (layer,), (), (), shape, 1, *sides, upwards=True)
    facts = {"points": " x ".join(f"{side:,}" for side in shape), **facts}
    return Section(f"{title} of {max(shape):,} points", _NEAR, facts, (drawn,), provenance=result.provenance)


def of_matrix(result: Any, wishes: Wishes) -> Section:
    """A RecurrenceResult."""
    rows = [(short, long.replace("_", " "), getattr(result, long)) for short, long in SHORT_NAMES.items()]
    size = f"{result.counts.n_rows:,} x {result.counts.n_columns:,}"
    parts = (
        Table("Measures", ("symbol", "measure", "value"), rows),
        picture("Lines", "Histograms of the lengths of diagonal, vertical and white vertical lines.", result.plot),
    )
    facts = {"points": size, "radius": brief(result.radius), "convention": result.convention.name,
             "Theiler window": str(result.theiler),
             "least lines": f"{result.lmin} diagonal, {result.vmin} vertical, {result.wmin} white"}  # fmt: skip
    lead = "How often, how long and how regularly the dynamics return to where they were."
    return Section(f"Recurrence quantification of {size} points", lead, facts, parts, provenance=result.provenance)


def of_matrices(result: Any, wishes: Wishes) -> Section:
    """A RecurrenceTable or an RqaBatch: a row for each matrix."""
    columns = result.to_dict(short=True)
    if getattr(result, "time", None) is not None:
        first, *rest = columns.items()
        columns = dict([first, ("middle of the window", result.time.astype(object).tolist()), *rest])
    rows = list(zip(*columns.values(), strict=True))[: wishes.top]
    note = "" if len(rows) == len(result) else f"The first {len(rows):,} of {len(result):,}."
    parts: list[Any] = [Table("Measures", tuple(columns), rows, note)]
    if hasattr(result, "plot") and len(result) > 1:
        parts.append(picture("Measures", "Recurrence measures of all matrices.", result.plot))
    provenance = getattr(result, "provenance", None)
    if provenance is None:
        provenance = result[0].provenance if len(result) else {}
    lead = "How often, how long and how regularly the dynamics return to where they were."
    facts = {"matrices": f"{len(result):,}"}
    return Section(f"Recurrence quantification of {len(result):,} matrices", lead, facts, tuple(parts),
                   provenance=provenance)  # fmt: skip


def of_network(result: Any, wishes: Wishes) -> Section:
    """A RecurrenceNetwork: the numbers of the whole network, then its points."""
    rows = [(name.replace("_", " "), value) for name, value in result.to_dict().items()]
    frame = result.to_frame().head(wishes.top)
    points = list(zip(frame.index.tolist(), *(frame[name].tolist() for name in frame), strict=True))
    note = "" if len(points) == len(result.degree) else f"The first {len(points):,} of {len(result.degree):,}."
    parts = (Table("Measures", ("measure", "value"), rows), Table("Points", ("point", *frame), points, note))
    facts = {"points": f"{len(result.degree):,}", "links": f"{int(result.degree.sum()) // 2:,}",
             "radius": brief(result.radius)}  # fmt: skip
    lead = "Which states are near each other: points are nodes, recurrences are links."
    return Section(f"Recurrence network of {len(result.degree):,} points", lead, facts, parts,
                   provenance=result.provenance)  # fmt: skip

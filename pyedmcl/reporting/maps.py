"""Sections of cross maps: of all pairs, of the pairs that were kept, and with significance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..edm.shared.measures import ERRORS
from ..io.edges import EDGE_COLUMNS, blank_itself, own_targets
from ..io.roles import ROLES, roles
from ..plot.order import likeness_order
from ..plot.reduce import block_maxima
from .cells import SIDE, reduced, side_limit
from .content import Layer, Map, Part, Picture, Section, Table, Wishes
from .links import Links, network_of, of_total, strongest_links
from .pictures import histogram

LEAD = (
    "How well the states of one series (the library, the effect) predict another one (the target, the cause). A high "
    "skill says that the cause left its trace in the effect: evidence that the cause drives it."
)
#: Label, cells, colours of matplotlib, and the values at both ends of these.
RawLayer = tuple[str, Any, str, float, float]
#: Of networks of skill alone.
UNTESTED = "Skill alone is no test: links of high skill may be chance or a shared season."


def skill_map(
    title: str, layers: Sequence[RawLayer], names: Sequence[str],
    targets: Sequence[str] | None, wishes: Wishes, note: str = "",
) -> Map:  # fmt: skip
    """A map of pairs, of arrays over libraries and targets."""
    columns = names if targets is None else targets
    first = layers[0][1]
    order = likeness_order(first, names, targets) if wishes.cluster else None
    itself = own_targets(list(names), targets)
    shown, limit, size = [], side_limit(len(layers)), 1
    for label, matrix, colours, low, high in layers:
        cells, size = reduced(matrix, limit, itself, order)
        shown.append(Layer(label, cells, colours, low, high))
    rows = tuple(names) if order is None else tuple(names[i] for i in order[0])
    across = tuple(columns) if order is None else tuple(columns[j] for j in order[1])
    notes = [note, "Series are in order of likeness." if order is not None else "",
             f"Each cell is the mean of {size} x {size} pairs." if size > 1 else ""]  # fmt: skip
    return Map(title, tuple(shown), rows, across, (len(names), len(columns)), size, note=" ".join(filter(None, notes)))


def size_facts(names: Sequence[str], targets: Sequence[str] | None, E: Any = None, whose: str = "") -> dict[str, str]:
    """How many series and pairs there are, and which E."""
    facts = {"series": f"{len(names):,}"} if targets is None else {
        "libraries": f"{len(names):,}", "targets": f"{len(targets):,}"}  # fmt: skip
    facts["pairs"] = f"{pairs_of(names, targets):,}"
    if E is not None and np.size(E):
        low, high = int(np.min(E)), int(np.max(E))
        span = f"{low}" if low == high else f"{low} to {high}, median {np.median(E):g}"
        facts[f"E{whose}"] = span
    return facts


def pairs_of(names: Sequence[str], targets: Sequence[str] | None) -> int:
    """Pairs of a series with another."""
    itself = own_targets(list(names), targets)
    return len(names) * len(names if targets is None else targets) - int(np.count_nonzero(itself >= 0))


def between_only(table: Any, names: Sequence[str], targets: Sequence[str] | None) -> Any:
    """A table in memory without what a series says of itself."""
    values = np.array(table, np.float64)
    blank_itself(values, own_targets(list(names), targets), 0)
    return values


def chosen_layer(axis: str, chosen: Any) -> RawLayer:
    """What was chosen for each pair, such as E."""
    finite = chosen[np.isfinite(chosen)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    return f"chosen {axis}", chosen, "viridis", low, max(high, low + 1e-9)


def histogram_of_E(E: Any, what: str = "series") -> tuple[Picture, ...]:
    """Bars of E; nothing where there is none."""
    values = np.ravel(np.asarray(E, np.float64))
    values = values[np.isfinite(values)]
    return (histogram(values, "E", what),) if values.size > 1 else ()


def of_xmap(result: Any, wishes: Wishes) -> Section:
    """An XmapResult."""
    names, targets, error = result.names, result.targets, result.skill in ERRORS
    word = "rho" if result.skill == "pearson" else result.skill
    best = result.rho
    layers: list[RawLayer] = [(f"skill ({word})", best, "RdBu_r", -1.0, 1.0)]
    if np.ndim(result.theta) == 2:
        layers.append(chosen_layer("theta", np.asarray(result.theta, np.float64)))
    if len(result.rho.shape) > 2:
        whole = np.asarray(result.rho)
        layers = [(f"{word}, theta = {theta:g}", one, "RdBu_r", -1.0, 1.0)
                  for theta, one in zip(np.ravel(result.theta), whole, strict=True)]  # fmt: skip
        best = np.fmax.reduce(whole, axis=0)
    if error:
        top = float(np.nanmax(np.asarray(best), initial=0.0)) or 1.0
        layers = [(f"error ({result.skill})", best, "viridis", 0.0, top)]
    links = strongest_links(-np.asarray(best) if error else best, names, targets, wishes.top)
    links = links._replace(strength=-links.strength) if error else links
    parts = [skill_map("Map of all pairs", layers, names, targets, wishes),
             _link_table(links, result, word), *([] if error else _network(links, result, word)),
             *histogram_of_E(result.E, "targets")]  # fmt: skip
    title = f"Cross map of {len(names):,} series" + ("" if targets is None else f" and {len(targets):,} targets")
    facts = size_facts(names, targets, result.E, " of targets")
    return Section(title, LEAD, facts, tuple(parts), provenance=result.provenance)


def _link_table(links: Links, result: Any, word: str) -> Table:
    columns = result.targets or result.names
    rows = [(*roles(result.names[i], columns[j]), value, int(result.E[j]), "cause") for i, j, value in links.each()]
    total = pairs_of(result.names, result.targets)
    return Table("Strongest links", (*ROLES, word, "E", "E_of"), rows, of_total(len(rows), total))


def _network(links: Links, result: Any, word: str) -> tuple[Any, ...]:
    columns = result.targets or result.names
    return network_of(links.arrows(result.names, columns), f"skill ({word})", note=UNTESTED)


def of_edges(result: Any, wishes: Wishes) -> Section:
    """An XmapEdges."""
    columns = result.targets or result.names
    shape = len(result.names), len(columns)
    cells, size = block_maxima(result.parts(), shape, SIDE)
    note = f"Pairs that were kept ({result.keep}); others are grey."
    note += f" Each cell is the largest kept rho of {size} x {size} pairs." if size > 1 else ""
    edges = list(result.edges(wishes.top))
    kept = len(result)
    rows = [edge.row() for edge in edges]
    parts: tuple[Part, ...] = (
        Map("Map of the kept pairs", (Layer("skill (rho)", cells),), result.names, columns, shape, size, note=note),
        Table("Strongest links", EDGE_COLUMNS, rows, of_total(len(rows), kept, "kept pairs")),
        *network_of([(edge.target, edge.library, edge.rho, None) for edge in edges], "skill (rho)", note=UNTESTED),
        *histogram_of_E(result.E, "targets"),
    )  # fmt: skip
    facts = {**size_facts(result.names, result.targets, result.E, " of targets"), "kept pairs": f"{kept:,}",
             "rule": result.keep}  # fmt: skip
    remarks = ("The order by likeness needs the whole map, and kept pairs are none.",) if wishes.cluster else ()
    return Section(f"Strongest pairs of {shape[0]:,} series", LEAD, facts, parts, remarks, result.provenance)


def of_significance(result: Any, wishes: Wishes) -> Section:
    """An XmapSignificance."""
    names = result.names
    links = strongest_links(result.rho, names, None, wishes.top)
    rows = [
        (*roles(names[i], names[j]), value, float(result.p_value[i, j]), float(result.q_value[i, j]),
         int(result.draws[i, j]) if np.ndim(result.draws) == 2 else int(result.n), int(result.E[j]),
         "cause")
        for i, j, value in links.each()
    ]  # fmt: skip
    heads = (*ROLES, "rho", "p_value", "q_value", "surrogates", "E", "E_of")
    layers = [("skill (rho)", result.rho, "RdBu_r", -1.0, 1.0), ("q-value", result.q_value, "magma", 0.0, 0.2),
              ("p-value", result.p_value, "magma", 0.0, 0.2)]  # fmt: skip
    n_significant = int(result.significant(wishes.rate).sum())
    facts = {**size_facts(names, None, result.E, " of causes"), "surrogates": f"{result.method}, up to {result.n:,}",
             f"significant at a false discovery rate of {wishes.rate:g}": f"{n_significant:,}"}  # fmt: skip
    parts: tuple[Part, ...] = (
        skill_map("Map of all pairs", layers, names, None, wishes),
        Table("Strongest links", heads, rows, of_total(len(rows), pairs_of(names, None))),
        *network_of(links.arrows(names, names, result.q_value), "skill (rho)", wishes.rate),
        *histogram_of_E(result.E),
    )  # fmt: skip
    title = f"Significance of the cross map of {len(names):,} series"
    lead = LEAD + " Each skill is compared with those for surrogates of the cause."
    return Section(title, lead, facts, parts, provenance=result.provenance)

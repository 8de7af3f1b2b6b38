"""Sections of cross maps, grids, convergent cross mapping, causal networks and recurrence analysis."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..convergence.results import PAIR_COLUMNS
from ..errors import InputError, shown
from ..network.verdicts import COLUMNS, DIRECT, IN_DOUBT, LINK, MEANINGS, opening, statement
from ..plot.pairs import block_maxima, block_means, likeness_order
from ..plot.recurrence import darkest
from ..recurrence.measures import SHORT_NAMES
from ..results.edges import EDGE_COLUMNS, Strongest, between_series, blank_itself, own_targets
from ..results.result import brief
from ..results.tables import ROLES, roles
from ..states.arguments import ERRORS
from .content import (
    SIDE,
    Curves,
    Layer,
    Map,
    Network,
    Part,
    Picture,
    Section,
    Table,
    Wishes,
    Words,
    histogram,
    of_all_maps,
    picture,
    reduced,
    side_limit,
)

# The strongest links of a map that may be larger than memory, as tables, networks and chosen curves.


_CURVES = 6  # pairs whose curves are shown where none were named
_SELECTABLE = 200  # pairs whose curves can be chosen in the page


#: Of networks of skill alone.
UNTESTED = (
    "No arrow was tested: skill alone may be chance, a shared season or a shared driver. causal_network() tests pairs."
)
#: Cause, effect, strength, and q-value or None.
Arrow = tuple[str, str, float, float | None]


class Links(NamedTuple):
    """Positions of effects (libraries) and causes (targets) and the strength of each link, the strongest first."""

    effects: NDArray[np.int_]
    causes: NDArray[np.int_]
    strength: NDArray[np.float64]

    def each(self) -> list[tuple[int, int, float]]:
        """Position of the effect, position of the cause, and strength."""
        return list(zip(self.effects.tolist(), self.causes.tolist(), self.strength.tolist(), strict=True))

    def arrows(self, effects: Sequence[str], causes: Sequence[str], q_value: Any = None) -> list[Arrow]:
        """As a network takes them; ``q_value`` is a map."""
        return [(causes[j], effects[i], value, None if q_value is None else float(q_value[i, j]))
                for i, j, value in self.each()]  # fmt: skip


def strongest_links(matrix: Any, names: Sequence[str], targets: Sequence[str] | None, top: int) -> Links:
    """The ``top`` largest values of a series with another."""
    n, strongest = matrix.shape[1], Strongest(top)
    for start, values in between_series(matrix, own_targets(list(names), targets)):
        strongest.add(values.reshape(-1), start * n)
    return Links(strongest.cells // n, strongest.cells % n, strongest.values)


def network_of(
    links: Sequence[Arrow], label: str, rate: float = 0.05, note: str = "", *, total: int = 0, warning: str = UNTESTED
) -> tuple[Network, ...]:
    """A network of links of strength above 0; nothing where there are none.

    Parameters
    ----------
    total : int
        Links there are in all, where ``links`` are the strongest of them.
    warning : str
        What stands above it; empty where its arrows were tested.
    """
    drawn = [(cause, effect, float(value), None if q is None or q != q else float(q))
             for cause, effect, value, q in links if value > 0]  # fmt: skip
    less = len(links) - len(drawn)
    note += f" Not drawn: {less:,} of {len(links):,} whose value is 0 or less." if less else ""
    return (Network(drawn, label, rate, note, max(total, len(links)), warning),) if drawn else ()


def of_total(kept: int, total: int, what: str = "pairs") -> str:
    """How many rows a table has of how many."""
    return f"All {total:,} {what}." if kept >= total else f"The {kept:,} strongest of {total:,} {what}."


def pairs_with_curves(
    wishes: Wishes, causes: Sequence[str], effects: Sequence[str], strongest: Sequence[tuple[str, str]]
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Pairs (cause, effect) whose curves the page holds, and those that it shows first.

    Parameters
    ----------
    causes, effects : sequence of str
        Names that there are.
    strongest : sequence of (str, str)
    """
    for cause, effect in wishes.pairs:
        if cause not in causes or effect not in effects or cause == effect:
            names = ", ".join(map(repr, causes[:8])) + (", ..." if len(causes) > 8 else "")
            raise InputError(
                f"pairs: there is no pair with cause {shown(cause)} and effect {shown(effect)}; series are {names}"
            )
    held = list(dict.fromkeys([*wishes.pairs, *strongest[:_SELECTABLE]]))
    listed, both = set(), []
    for cause, effect in held:  # a chart shows both directions
        if (effect, cause) not in listed:
            listed.add((cause, effect))
            both.append((cause, effect))
    chosen = list(wishes.pairs) or both[:_CURVES]
    return both, chosen


def both_directions(
    pairs: Sequence[tuple[str, str]], causes: Sequence[str], effects: Sequence[str]
) -> list[tuple[tuple[str, str], int, int]]:
    """Each pair and its opposite, where there is one, with the positions of effect (row) and cause (column)."""
    rows = {name: place for place, name in enumerate(effects)}
    columns = {name: place for place, name in enumerate(causes)}
    links = []
    for cause, effect in pairs:
        for one, other in ((cause, effect), (effect, cause)):
            if one in columns and other in rows:
                links.append(((one, other), rows[other], columns[one]))
    return links


LEAD = (
    "How well the states of one series (the library, the effect) predict another one (the target, the cause). A high "
    "skill says that the cause left its trace in the effect: evidence that the cause drives it."
)
#: Label, cells, colours of matplotlib, and the values at both ends of these.
RawLayer = tuple[str, Any, str, float, float]


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
    return Section(title, LEAD, facts, tuple(parts), (), result.provenance, _highest(links, names, targets, word))


def _highest(links: Links, names: Sequence[str], targets: Sequence[str] | None, word: str) -> tuple[str, ...]:
    """Sentences on a map that nothing was tested of."""
    columns, best = targets or names, links.each()[:1]
    said = [f"The strongest of {pairs_of(names, targets):,} pairs: the states of {names[i]} estimate {columns[j]} with "
            f"{word} = {value:.2f}." for i, j, value in best]  # fmt: skip
    return (*said, UNTESTED)


def _link_table(links: Links, result: Any, word: str) -> Table:
    columns = result.targets or result.names
    rows = [(*roles(result.names[i], columns[j]), value, int(result.E[j]), "cause") for i, j, value in links.each()]
    total = pairs_of(result.names, result.targets)
    return Table("Strongest links", (*ROLES, word, "E", "E_of"), rows, of_total(len(rows), total))


def _network(links: Links, result: Any, word: str) -> tuple[Any, ...]:
    columns = result.targets or result.names
    total = pairs_of(result.names, result.targets)
    return network_of(links.arrows(result.names, columns), f"skill ({word})", total=total)


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
        *network_of([(edge.target, edge.library, edge.rho, None) for edge in edges], "skill (rho)", total=kept),
        *histogram_of_E(result.E, "targets"),
    )  # fmt: skip
    facts = {**size_facts(result.names, result.targets, result.E, " of targets"), "kept pairs": f"{kept:,}",
             "rule": result.keep}  # fmt: skip
    remarks = ("The order by likeness needs the whole map, and kept pairs are none.",) if wishes.cluster else ()
    title = f"Strongest pairs of {shape[0]:,} series"
    return Section(title, LEAD, facts, parts, remarks, result.provenance, (UNTESTED,))


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
    pairs = pairs_of(names, None)
    parts: tuple[Part, ...] = (
        *network_of(links.arrows(names, names, result.q_value), "skill (rho)", wishes.rate, total=pairs, warning=""),
        Table("Strongest links", heads, rows, of_total(len(rows), pairs)),
        skill_map("Map of all pairs", layers, names, None, wishes), *histogram_of_E(result.E),
    )  # fmt: skip
    title = f"Significance of the cross map of {len(names):,} series"
    lead = LEAD + " Each skill is compared with those for surrogates of the cause."
    answer = (
        f"{n_significant:,} of {pairs:,} pairs are significant at a false discovery rate of {wishes.rate:g}.",
        "A significant skill is no chance, and may still come from a shared driver or run the other way: "
        "causal_network() compares lags, convergence and other series, too.",
    )
    return Section(title, lead, facts, parts, (), result.provenance, answer)


# Sections of grids of cross maps, and of what is chosen along one of their axes.


_LAYERS = 12  # maps of a grid that a page holds
_READ = 25_000_000  # pairs of a map that is read as a whole for curves


def of_choice(result: Any, wishes: Wishes) -> Section:
    """A GridChoice of one map."""
    links = strongest_links(result.rho, result.names, result.targets, wishes.top)
    columns = result.targets or result.names
    rows = [(*roles(result.names[i], columns[j]), value, _plain(result.chosen[i, j]))
            for i, j, value in links.each()]  # fmt: skip
    pairs = pairs_of(result.names, result.targets)
    heads = (*ROLES, "rho", result.axis)
    chosen = between_only(result.chosen, result.names, result.targets)
    layers: list[RawLayer] = [("skill (rho)", result.rho, "RdBu_r", -1.0, 1.0), chosen_layer(result.axis, chosen)]
    parts: tuple[Part, ...] = (
        skill_map(f"Skill at the chosen {result.axis}", layers, result.names, result.targets, wishes),
        Table("Strongest links", heads, rows, of_total(len(rows), pairs)),
        *network_of(links.arrows(result.names, columns), "skill (rho)", total=pairs),
        *(histogram_of_E(chosen, "pairs") if result.axis == "E" else ()),
    )
    facts = {**size_facts(result.names, result.targets), "chosen": result.axis, "tolerance": f"{result.tolerance:g}"}
    answer = _highest(links, result.names, result.targets, "rho")
    return Section(f"{result.axis} of each pair", LEAD, facts, parts, (), result.provenance, answer)


def of_grid(result: Any, wishes: Wishes) -> Section:
    """An XmapGrid."""
    names, targets = result.names, result.targets
    columns = targets or names
    small = len(names) * len(columns) <= _READ
    grid = result.mean("fold") if "fold" in result.axes and small else result
    places = [dict(zip(grid.axes, values, strict=True)) for values in itertools.product(*grid.axes.values())]
    maps = [_map_at(grid, place) for place in places]
    shown = range(len(maps)) if len(maps) <= _LAYERS else np.linspace(0, len(maps) - 1, _LAYERS).astype(int)
    layers: list[RawLayer] = [(_named(places[i]) or "skill (rho)", maps[i], "RdBu_r", -1.0, 1.0) for i in shown]
    axis = _main_axis(grid) if small else None
    chosen = None
    if axis is not None:
        best, chosen = _best(grid, axis)
        chosen = between_only(chosen, names, targets)
        layers = [("best skill (rho)", best, "RdBu_r", -1.0, 1.0), chosen_layer(axis, chosen), *layers]
    links = strongest_links(layers[0][1], names, targets, wishes.top)
    rows: list[tuple[Any, ...]] = [(*roles(names[i], columns[j]), value) for i, j, value in links.each()]
    heads: tuple[str, ...] = (*ROLES, "rho" if axis is None else "best rho")
    if axis is not None and chosen is not None:
        heads += (axis,)
        rows = [(*row, _plain(chosen[i, j])) for row, (i, j, _) in zip(rows, links.each(), strict=True)]
    note = f"{len(maps):,} maps; {len(shown)} of them are shown." if len(maps) > len(shown) else ""
    facts = {**size_facts(names, targets), **{name: ", ".join(map(str, own)) for name, own in result.axes.items()},
             **{name: str(value) for name, value in result.fixed.items()}}  # fmt: skip
    parts: tuple[Part, ...] = (
        skill_map("Maps of the grid", layers, names, targets, wishes, note),
        Table("Strongest links", heads, rows, of_total(len(rows), pairs_of(names, targets)) + " " + _rule(axis)),
        *network_of(links.arrows(names, columns), heads[len(ROLES)], total=pairs_of(names, targets)),
        *_grid_curves(maps, places, axis, links, names, columns, wishes),
        *(histogram_of_E(chosen, "pairs") if axis == "E" else ()),
    )
    remarks = () if small else (f"Links are those of the first map: {layers[0][0]}.",)
    lead = LEAD + " Maps for all combinations of the parameters below."
    title = f"Grid of cross maps of {len(names):,} series"
    stored = "manifest" in result.provenance
    run = of_all_maps(result.provenance, list(result.axes)) if stored else result.provenance
    return Section(title, lead, facts, parts, remarks, run, _highest(links, names, targets, "rho"))


def _main_axis(grid: Any) -> str | None:
    """The axis along which something is chosen for each pair: E, or the first one of several values."""
    several = [name for name, values in grid.axes.items() if len(values) > 1] or list(grid.axes)
    return "E" if "E" in several else next(iter(several), None)


def _rule(axis: str | None) -> str:
    if axis is None:
        return ""
    return "E is the smallest within 0.02 of the best skill." if axis == "E" else f"{axis} is that of the best skill."


def _best(grid: Any, axis: str) -> tuple[Any, Any]:
    """Of each pair the highest skill of what is chosen along an axis, over all others, and that choice."""
    choice = grid.saturation() if axis == "E" else grid.best(axis)
    shape = choice.rho.shape[-2:]
    skill, chosen = (np.asarray(table, np.float64).reshape(-1, *shape) for table in (choice.rho, choice.chosen))
    place = np.argmax(np.where(np.isnan(skill), -np.inf, skill), axis=0)[None]
    return tuple(np.take_along_axis(table, place, axis=0)[0] for table in (skill, chosen))


def _grid_curves(
    maps: Sequence[Any], places: Sequence[Mapping[str, Any]], axis: str | None, links: Links, names: Sequence[str],
    columns: Sequence[str], wishes: Wishes,
) -> tuple[Curves, ...]:  # fmt: skip
    if axis is None or len(names) * len(columns) > _READ:
        return ()
    strongest = [(columns[j], names[i]) for i, j in zip(links.effects, links.causes, strict=True)]
    held, chosen = pairs_with_curves(wishes, columns, names, strongest)
    both = both_directions(held, columns, names)
    if not both:
        return ()
    rows, across = np.array([one[1] for one in both]), np.array([one[2] for one in both])
    values = sorted({place[axis] for place in places})
    best = np.full((len(values), len(both)), np.nan)
    for place, one in zip(places, maps, strict=True):
        at = values.index(place[axis])
        best[at] = np.fmax(best[at], np.asarray(one[:], np.float64)[rows, across])
    others = [name for name in places[0] if name != axis]
    title = f"Skill against {axis}" + (f" (the best over {', '.join(others)})" if others else "")
    curves = {pair: best[:, number].tolist() for number, (pair, _, _) in enumerate(both)}
    return (Curves(title, axis, "skill (rho)", tuple(map(float, values)), curves, chosen),)


def _map_at(grid: Any, place: Mapping[str, Any]) -> Any:
    rho = grid.sel(**place).rho if place else grid.rho
    return rho.maps[0] if hasattr(rho, "maps") else rho


def _named(place: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in place.items())


def _plain(value: Any) -> Any:
    number = value
    return int(number) if number.is_integer() else number


# Sections of convergent cross mapping of all pairs and of causal networks.


_TESTED = 2_000  # series up to which the trend of every pair is computed, in memory
_TESTS = ("p_value", "q_value")


def of_ccm_matrix(result: Any, wishes: Wishes) -> Section:
    """A CcmMatrixResult."""
    names, sizes = result.names, np.sort(result.lib_sizes)
    order = np.argsort(result.lib_sizes)
    smallest, largest = result.matrices[order[0]], result.matrices[order[-1]]
    links = strongest_links(largest, names, None, wishes.top)
    several, tested = len(sizes) > 1, len(sizes) > 1 and len(names) <= _TESTED
    layers = [(f"skill (rho), {sizes[-1]:,} rows", largest, "RdBu_r", -1.0, 1.0)]
    if several:
        layers.append((f"skill (rho), {sizes[0]:,} rows", smallest, "RdBu_r", -1.0, 1.0))
    if several and len(names) <= _TESTED:
        layers.insert(1, ("gain of skill", result.gain, "RdBu_r", -1.0, 1.0))
    trend = None
    remarks = []
    if tested:
        trend = result.trend
        layers.insert(2, ("trend (Kendall's tau)", trend, "RdBu_r", -1.0, 1.0))
    elif several:
        remarks.append(f"Trends are computed for at most {_TESTED:,} series, so there are none here.")
    ends = [_rows_of(matrix, links) for matrix in (smallest, largest)]
    rows = [
        (*roles(names[i], names[j]), float(high), float(high - low) if several else None,
         None if trend is None else float(trend[i, j]), int(result.E[i]), "effect")
        for i, j, low, high in zip(links.effects, links.causes, *ends, strict=True)
    ]  # fmt: skip
    note = "A link needs a skill that grows with the library, too: see gain and trend (Kendall's tau); no tests."
    pairs = pairs_of(names, None)
    parts: tuple[Part, ...] = (
        *network_of(links.arrows(names, names), f"skill (rho) of {sizes[-1]:,} rows", wishes.rate, total=pairs,
                    warning=UNTESTED),
        Table("Strongest links", PAIR_COLUMNS, rows, of_total(len(rows), pairs) + " " + note),
        *_convergence(result, links, wishes), skill_map("Map of all pairs", layers, names, None, wishes),
        *histogram_of_E(result.E),
    )  # fmt: skip
    answer: tuple[str, ...] = _highest(links, names, None, "rho")
    if trend is not None:
        answer = (
            f"The skill of {int(result.converging().sum()):,} of {pairs:,} pairs grows steadily with the library: "
            "no test of a link.",
            "Series that share a season or a driver converge, too: causal_network() also tests against surrogates and "
            "compares lags.",
        )
    facts = {**size_facts(names, None, result.E, " of libraries"), "library sizes": ", ".join(map(str, sizes)),
             "samples": f"{result.sample:,} of each size, seed {result.seed}"}  # fmt: skip
    lead = LEAD + " Where it does, the skill also converges: it grows with the number of library rows."
    title = f"Convergent cross mapping of {len(names):,} series"
    run = of_all_maps(result.provenance, ["lib_size"])
    return Section(title, lead, facts, parts, tuple(remarks), run, answer)


def _rows_of(matrix: Any, links: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Values of a map at links, of which only those rows are read that have one."""
    values = np.full(len(links.effects), np.nan)
    for row in np.unique(links.effects):
        at = links.effects == row
        values[at] = np.asarray(matrix[int(row) : int(row) + 1], np.float64)[0, links.causes[at]]
    return values


def _convergence(result: Any, links: Any, wishes: Wishes) -> tuple[Curves, ...]:
    names, order = result.names, np.argsort(result.lib_sizes)
    strongest = [(names[j], names[i]) for i, j in zip(links.effects, links.causes, strict=True)]
    held, chosen = pairs_with_curves(wishes, names, names, strongest)
    both = both_directions(held, names, names)
    if len(order) < 2 or not both:
        return ()
    places = links._replace(effects=np.array([one[1] for one in both]), causes=np.array([one[2] for one in both]))
    values = np.array([_rows_of(result.matrices[place], places) for place in order])
    curves = {pair: values[:, number].tolist() for number, (pair, _, _) in enumerate(both)}
    return (Curves("Convergence", "library rows", "skill (rho)", tuple(map(float, result.lib_sizes[order])), curves,
                   chosen),)  # fmt: skip


def of_network(result: Any, wishes: Wishes) -> Section:
    """A CausalNetwork."""
    names = result.names
    # What a test says stands beside the skill.
    heads = [*COLUMNS[:4], *_TESTS, *(name for name in COLUMNS[4:] if name not in _TESTS)]
    order = [COLUMNS.index(name) for name in heads]
    rows = result.rows()
    counts = f"{len(rows):,} pairs, by verdict and then by skill."
    if len(rows) > wishes.top:
        counts = f"The first {wishes.top:,} of " + counts
    linked = np.isin(result.verdict.astype(str), [DIRECT, LINK])
    layers = [("highest skill (rho)", result.skill, "RdBu_r", -1.0, 1.0),
              ("that of links", np.where(linked, result.skill, np.nan), "RdBu_r", -1.0, 1.0)]  # fmt: skip
    if np.isfinite(result.q_value).any():
        layers.append(("q-value", result.q_value, "magma", 0.0, 0.2))
    places = {name: number for number, name in enumerate(names)}
    # Of a row: cause, effect, verdict, ..., as COLUMNS say.
    # The verdict has all tests in it: no switch may hide one of these links.
    arrows: list[Arrow] = [(row[0], row[1], result.skill[places[row[1]], places[row[0]]], None)
                           for row in rows if row[2] in (DIRECT, LINK)]  # fmt: skip
    arrows.sort(key=lambda arrow: -arrow[2])
    held = dict.fromkeys(row[2] for row in rows[: wishes.top])
    counts += " " + " ".join(f"{word}: {MEANINGS[word]}." for word in held)
    parts: tuple[Part, ...] = (
        *network_of(arrows, "highest skill (rho)", wishes.rate, "Pairs whose verdict is direct or link.", warning=""),
        Table("Links and their evidence", tuple(heads), [tuple(row[i] for i in order) for row in rows[: wishes.top]],
              counts),
        *_lags(result, rows, wishes), skill_map("Map of all pairs", layers, names, None, wishes),
        *histogram_of_E(result.E), Words("Methods", result.methods()),
    )  # fmt: skip
    told = dict.fromkeys([*wishes.pairs, *((row[0], row[1]) for row in rows if row[2] in (DIRECT, LINK))])
    answer: tuple[str | tuple[str, str], ...] = (
              f"Of {len(rows):,} pairs: {result.summary()}.",
              "An arrow is evidence, not proof: a driver that is not in the table is not excluded.",
              *(_told(result, places[cause], places[effect]) for cause, effect in told))  # fmt: skip
    facts = {**size_facts(names, None, result.E), "rows": f"{result.n_steps:,}", "verdicts": result.summary(),
             "surrogates": result.surrogate or "none", "false discovery rate": f"{result.rate:g}"}  # fmt: skip
    lead = LEAD + " The verdict on each pair follows from all tests together."
    title = f"Causal network of {len(names):,} series"
    return Section(title, lead, facts, parts, (), result.provenance, answer)


def _told(result: Any, cause: int, effect: int) -> tuple[str, str]:
    """Who drives whom and how sure that is, and all other sentences of the pair."""
    verdict, whole = opening(result, cause, effect), statement(result, cause, effect)
    rest = whole.removeprefix(verdict).strip()
    if result.hidden_driver and verdict.startswith(IN_DOUBT):  # the first line says it of all links
        verdict, rest = verdict.removeprefix(IN_DOUBT).strip(), f"{IN_DOUBT} {rest}"
    named = {"rho": result.skill, "q": result.q_value, "lag": result.lag}
    numbers = [f"{name} = {table[effect, cause]:.2g}" for name, table in named.items()
               if table is not None and np.isfinite(table[effect, cause])]  # fmt: skip
    said = f"{verdict.removesuffix('.')} ({', '.join(numbers)})." if numbers else verdict
    return said, rest


def _lags(result: Any, rows: list[tuple[Any, ...]], wishes: Wishes) -> tuple[Curves, ...]:
    strongest = [(row[0], row[1]) for row in rows]
    held, chosen = pairs_with_curves(wishes, result.names, result.names, strongest)
    if len(result.lags) < 2 or not len(held):
        return ()
    both = both_directions(held, result.names, result.names)
    order = np.argsort(result.lags)
    lags = tuple(float(result.lags[place]) for place in order)
    curves = {pair: result.by_lag[order, row, column].tolist() for pair, row, column in both}
    return (Curves("Skill against lag", "Tp (negative: the cause comes first)", "skill (rho)", lags, curves, chosen),)


# Sections of recurrence analysis: plots of recurrences and distances, and tables of measures.


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


def recurrence_of_network(result: Any, wishes: Wishes) -> Section:
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

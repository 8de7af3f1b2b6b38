"""Sections of convergent cross mapping of all pairs and of causal networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..edm.causes.causal_network_result import COLUMNS
from ..edm.causes.verdicts import DIRECT, LINK
from ..edm.ccm.ccm_matrix_result import PAIR_COLUMNS
from ..edm.shared.false_discovery import false_discovery
from ..io.roles import roles
from .content import Curves, Part, Section, Table, Wishes, Words
from .links import both_directions, network_of, of_total, pairs_with_curves, strongest_links
from .maps import LEAD, histogram_of_E, pairs_of, size_facts, skill_map
from .provenance import of_all_maps

_TESTED = 2_000  # series up to which the trend of every pair is tested, in memory
_TESTS = ("p_value", "q_value")


def of_ccm_matrix(result: Any, wishes: Wishes) -> Section:
    """A CcmMatrixResult."""
    names, sizes = result.names, np.sort(result.lib_sizes)
    order = np.argsort(result.lib_sizes)
    smallest, largest = result.matrices[order[0]], result.matrices[order[-1]]
    links = strongest_links(largest, names, None, wishes.top)
    several, tested = len(sizes) > 1, len(sizes) > 2 and len(names) <= _TESTED
    layers = [(f"skill (rho), {sizes[-1]:,} rows", largest, "RdBu_r", -1.0, 1.0)]
    if several:
        layers.append((f"skill (rho), {sizes[0]:,} rows", smallest, "RdBu_r", -1.0, 1.0))
    if several and len(names) <= _TESTED:
        layers.insert(1, ("gain of skill", result.gain, "RdBu_r", -1.0, 1.0))
    tau = p_value = q_value = None
    remarks = []
    if tested:
        tau, p_value = result.trend()
        q_value = false_discovery(p_value)
        layers.insert(2, ("q-value of the trend", q_value, "magma", 0.0, 0.2))
    elif len(sizes) > 2:
        remarks.append(f"Trends are tested for at most {_TESTED:,} series, so there are no p-values here.")
    ends = [_rows_of(matrix, links) for matrix in (smallest, largest)]
    rows = [
        (*roles(names[i], names[j]), float(high), float(high - low) if several else None,
         *(None if table is None else float(table[i, j]) for table in (tau, p_value, q_value)), int(result.E[i]),
         "effect")
        for i, j, low, high in zip(links.effects, links.causes, *ends, strict=True)
    ]  # fmt: skip
    note = "A link needs a skill that grows with the library, too: see gain, and tau (Kendall's), p and q of the trend."
    parts: tuple[Part, ...] = (
        skill_map("Map of all pairs", layers, names, None, wishes),
        Table("Strongest links", PAIR_COLUMNS, rows, of_total(len(rows), pairs_of(names, None)) + " " + note),
        *network_of(links.arrows(names, names, q_value), f"skill (rho) of {sizes[-1]:,} rows", wishes.rate),
        *_convergence(result, links, wishes), *histogram_of_E(result.E),
    )  # fmt: skip
    facts = {**size_facts(names, None, result.E, " of libraries"), "library sizes": ", ".join(map(str, sizes)),
             "samples": f"{result.sample:,} of each size, seed {result.seed}"}  # fmt: skip
    lead = LEAD + " Where it does, the skill also converges: it grows with the number of library rows."
    title = f"Convergent cross mapping of {len(names):,} series"
    return Section(title, lead, facts, parts, tuple(remarks), of_all_maps(result.provenance, ["lib_size"]))


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
    arrows = [(row[0], row[1], result.skill[places[row[1]], places[row[0]]], row[COLUMNS.index("q_value")])
              for row in rows if row[2] in (DIRECT, LINK)]  # fmt: skip
    arrows.sort(key=lambda arrow: -arrow[2])
    parts: tuple[Part, ...] = (
        skill_map("Map of all pairs", layers, names, None, wishes),
        Table("Links and their evidence", tuple(heads), [tuple(row[i] for i in order) for row in rows[: wishes.top]],
              counts),
        *network_of(arrows, "highest skill (rho)", wishes.rate, "Pairs whose verdict is direct or link."),
        *_lags(result, rows, wishes), *histogram_of_E(result.E), Words("Methods", result.methods()),
    )  # fmt: skip
    facts = {**size_facts(names, None, result.E), "rows": f"{result.n_steps:,}", "verdicts": result.summary(),
             "surrogates": result.surrogate or "none", "false discovery rate": f"{result.rate:g}"}  # fmt: skip
    lead = LEAD + " The verdict on each pair follows from all tests together."
    return Section(f"Causal network of {len(names):,} series", lead, facts, parts, provenance=result.provenance)


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

"""Sections of grids of cross maps, and of what is chosen along one of their axes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..io.roles import ROLES, roles
from .content import Curves, Part, Section, Table, Wishes
from .links import Links, both_directions, network_of, of_total, pairs_with_curves, strongest_links
from .maps import (
    LEAD,
    UNTESTED,
    RawLayer,
    between_only,
    chosen_layer,
    histogram_of_E,
    pairs_of,
    size_facts,
    skill_map,
)
from .provenance import of_all_maps

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
        *network_of(links.arrows(result.names, columns), "skill (rho)", note=UNTESTED),
        *(histogram_of_E(chosen, "pairs") if result.axis == "E" else ()),
    )
    facts = {**size_facts(result.names, result.targets), "chosen": result.axis, "tolerance": f"{result.tolerance:g}"}
    return Section(f"{result.axis} of each pair", LEAD, facts, parts, provenance=result.provenance)


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
        *network_of(links.arrows(names, columns), heads[len(ROLES)], note=UNTESTED),
        *_grid_curves(maps, places, axis, links, names, columns, wishes),
        *(histogram_of_E(chosen, "pairs") if axis == "E" else ()),
    )
    remarks = () if small else (f"Links are those of the first map: {layers[0][0]}.",)
    lead = LEAD + " Maps for all combinations of the parameters below."
    title = f"Grid of cross maps of {len(names):,} series"
    stored = "manifest" in result.provenance
    run = of_all_maps(result.provenance, list(result.axes)) if stored else result.provenance
    return Section(title, lead, facts, parts, remarks, run)


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

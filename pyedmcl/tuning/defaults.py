"""Defaults bent to problem and device, and whether tuned parameters fit them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..device.info import DeviceInfo
from ..device.quirks import quirks_for
from ..kernels import loopy_source
from ..kernels.kernel_spec import GROUP, Constraint, KernelSpec, group

# Columns computed in vain that wider vectors repay.
_PADDING = 1.125
# A lookup with staged targets: 16-byte loads, work-items of a group and those along the query rows.
_STAGED_LANES = 4
_STAGED_GROUP = 1024
_STAGED_ROWS = 16
_ROWS_EACH = 96
# Bytes of what a work-item of a GPU holds of its query rows: coordinates, and distances and rows of neighbours. CCM by
# distances took half of the time with four query rows at once (H100 and H200, E = 3); too many numbers leave registers.
_REGISTERS = 256


def defaults(
    spec: KernelSpec,
    specialisation: Mapping[str, Any],
    info: DeviceInfo,
    most: int,
    sizes: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Safe parameters for a device, adapted to the problem, in groups of at most ``most`` work-items.

    float64 halves the lanes of a SIMD register.
    """
    quirks, rows = quirks_for(info), (sizes or {}).get("rows", 0)
    scalar = quirks.scalar_work_items
    chosen = spec.defaults(quirks.defaults_for)
    if specialisation.get("dtype") == "float64" and chosen.get("lanes", 1) > 8:
        chosen["lanes"] = 8
    # Groups should share a unit's local memory.
    if chosen.get("tile") and _tile_bytes(chosen, specialisation) > quirks.local_bytes // 4:
        _fit_tile(spec, chosen, specialisation, quirks.local_bytes)
    if scalar and "unroll" in chosen and "dims" in specialisation:
        # Sweeps over several dimensions are long programs already; more steps at once overflow the instruction cache.
        chosen["unroll"] = 16 if len(specialisation["dims"]) == 1 else 4
    if scalar and "unroll" in chosen and int(specialisation.get("simplexes", 1)) > 1:
        # Many neighbours of a row are neighbours in time. Where a step's rows share a minimum, it stands for several
        # of them and the bound is loose: ccm of 4,000 steps took 84 ms on an H200 instead of 18.
        chosen.update(unroll=1, tile=0, wg=min(chosen["wg"], 32))
    if scalar and chosen.get("lanes", 1) > 1 and {"E", "k"} <= specialisation.keys():
        numbers = chosen["lanes"] * (specialisation["E"] + 2 * specialisation["k"])
        if numbers * (8 if specialisation.get("dtype") == "float64" else 4) > _REGISTERS:
            chosen["lanes"] = 1
    if "columns" in specialisation and not scalar:
        _fit_vectors(chosen, specialisation["columns"])
        while chosen["lanes"] > 4 and chosen["lanes"] // 2 >= specialisation["columns"]:
            chosen["lanes"] //= 2
    if "columns" in specialisation and scalar:
        itemsize = 8 if specialisation.get("dtype") == "float64" else 4
        _fit_lookup(chosen, specialisation["columns"], rows, quirks.local_bytes // itemsize)
    if "tile" in chosen and scalar and rows:
        while chosen["wg"] > 32 and chosen["wg"] // 2 >= rows:
            chosen["wg"] //= 2
    while group(chosen) > max(most, 1):
        widest = max((name for name in GROUP if name in chosen), key=lambda name: int(chosen[name]))
        chosen[widest] //= 2
    _obey(spec, chosen, {**specialisation, **quirks.values})
    if not _obtainable(spec, specialisation, chosen) and "wg" in chosen:
        groups = sorted(v for t in spec.tunables if t.name == "wg" for v in t.values if v <= chosen["wg"])
        fitting = [wg for wg in groups if _obtainable(spec, specialisation, {**chosen, "wg": wg})]
        chosen["wg"] = fitting[-1] if fitting else chosen["wg"]
    return chosen


def _obtainable(spec: KernelSpec, specialisation: Mapping[str, Any], chosen: Mapping[str, Any]) -> bool:
    """Whether there is a text for these parameters, here: loopy, which writes some of them, may not be installed."""
    return spec.producer != "loopy" or loopy_source.obtainable(spec.text, {**specialisation, **chosen})


def _obey(spec: KernelSpec, chosen: dict[str, Any], known: Mapping[str, Any]) -> None:
    """Change the one parameter, as little as will do, by which defaults are what a quirk of the device forbids.

    Defaults are those of a kind of device, and a quirk may hold for one device of it only.
    """
    if not any(_unmet(spec.constraints, {**known, **chosen})):
        return
    for tunable in spec.tunables:
        for value in sorted(tunable.values, key=lambda value: _steps(tunable.values, value, chosen[tunable.name])):
            if not any(_unmet(spec.constraints, {**known, **chosen, tunable.name: value})):
                chosen[tunable.name] = value
                return


def _steps(values: Sequence[Any], one: Any, other: Any) -> int:
    """How many values lie between two of them; of one that is none of them, as from the first."""
    places = [values.index(value) if value in values else 0 for value in (one, other)]
    return abs(places[0] - places[1])


def _fit_vectors(chosen: dict[str, Any], columns: int) -> None:
    """Fewer vectors where targets would fill them badly: a block is computed whole."""

    def padded(vectors: int) -> int:
        width = int(chosen["lanes"]) * vectors
        return -(-columns // width) * width

    # More vectors share a neighbour's row and weight, which is worth a little padding.
    while chosen["vectors"] > 1 and (
        columns <= chosen["lanes"] * chosen["vectors"] // 2
        or padded(chosen["vectors"]) > _PADDING * padded(chosen["vectors"] // 2)
    ):
        chosen["vectors"] //= 2


def _fit_tile(spec: KernelSpec, chosen: dict[str, Any], specialisation: Mapping[str, Any], local: int) -> None:
    """The largest tile in a quarter of the local memory, else the smallest one, else none."""
    values = next(sorted(v for v in t.values if v) for t in spec.tunables if t.name == "tile")
    need = {tile: _tile_bytes({"tile": tile}, specialisation) for tile in values if tile <= chosen["tile"]}
    fitting = [tile for tile in need if need[tile] <= local // 4] or [t for t in list(need)[:1] if need[t] <= local]
    chosen["tile"] = fitting[-1] if fitting else 0


def _fit_lookup(chosen: dict[str, Any], width: int, rows: int, places: int) -> None:
    """Stage a tile of targets in local memory of ``places`` numbers; else take one that narrow classes fill."""
    fit = places // max(rows, 1)
    if rows and fit >= _STAGED_LANES and width >= _STAGED_LANES:
        lanes = _STAGED_LANES
        target_lanes = row_lanes = 1
        # Half of the memory is left to a second group, or to the sums.
        while target_lanes < 8 and 2 * target_lanes * lanes <= min(width, 2 * fit // 3):
            target_lanes *= 2
        # The sums of row lanes are put together at the end, which short series do not repay.
        while row_lanes < _STAGED_ROWS and row_lanes * _ROWS_EACH < rows:
            row_lanes *= 2
        libraries = max(min(_STAGED_GROUP // (target_lanes * row_lanes), 32), 1)
        chosen.update(stage=True, lanes=lanes, vectors=1, target_lanes=target_lanes, row_lanes=row_lanes)
        chosen["library_lanes"] = libraries
        return
    while chosen["target_lanes"] > 1 and chosen["lanes"] * chosen["target_lanes"] // 2 >= width:
        chosen["target_lanes"] //= 2
        chosen["row_lanes"] = min(2 * chosen["row_lanes"], 128)


def limits(
    spec: KernelSpec, specialisation: Mapping[str, Any], info: DeviceInfo, most: int,
    sizes: Mapping[str, int] | None = None,
) -> tuple[Constraint, ...]:  # fmt: skip
    """What a device demands of a configuration beside the constraints of the SPEC: groups of at most ``most``
    work-items, and no more local memory than it has."""
    names = {tunable.name for tunable in spec.tunables}
    local, rows = quirks_for(info).local_bytes, (sizes or {}).get("rows", 0)
    sides = [name for name in GROUP if name in names]
    demands = []
    if sides:
        demands.append(Constraint(
            lambda v: group({name: v[name] for name in sides}) <= most,
            f"groups have at most {most:,} work-items on this device",
        ))  # fmt: skip
    if "tile" in names:
        demands.append(Constraint(
            lambda v: not v["tile"] or _tile_bytes(v, specialisation) <= local,
            f"a tile has at most {local:,} bytes of local memory on this device",
        ))  # fmt: skip
    if "stage" in names:
        demands.append(Constraint(
            lambda v: not v["stage"] or _staged_bytes(v, specialisation, rows) <= local,
            f"staged targets have at most {local:,} bytes of local memory on this device",
        ))  # fmt: skip
    return tuple(demands)


def objections(
    spec: KernelSpec, chosen: Mapping[str, Any], values: Mapping[str, Any], constraints: Iterable[Constraint]
) -> Iterator[str]:
    """What speaks against parameters: names and values that the SPEC does not have, and constraints that do not hold.

    ``values`` are what is known beside them; constraints on others are left to the build.
    """
    tunables = {tunable.name: tunable for tunable in spec.tunables}
    if set(chosen) != set(tunables):
        yield f"they name {', '.join(sorted(chosen)) or 'nothing'}, the kernel has {', '.join(sorted(tunables))}"
        return
    for name, value in chosen.items():
        # True and 1.0 equal 1, and would be other text in a source.
        if type(value) is not type(tunables[name].values[0]) or value not in tunables[name].values:
            yield f"{name} = {value!r} is none of {', '.join(map(repr, tunables[name].values))}"
    yield from _unmet(constraints, {**values, **chosen})


def _unmet(constraints: Iterable[Constraint], values: Mapping[str, Any]) -> Iterator[str]:
    """The constraints that do not hold, as far as the values are known that they are about."""
    for constraint in constraints:
        with contextlib.suppress(KeyError):
            if not constraint.holds(values):
                yield constraint.reason


def unfit(
    spec: KernelSpec, chosen: Mapping[str, Any], specialisation: Mapping[str, Any], info: DeviceInfo, most: int,
    sizes: Mapping[str, int] | None = None,
) -> str | None:  # fmt: skip
    """Why tuned parameters cannot be used here, or None where nothing speaks against them."""
    values = {**specialisation, **quirks_for(info).values}
    constraints = (*limits(spec, specialisation, info, most, sizes), *spec.constraints)
    why = next(objections(spec, chosen, values, constraints), None)
    if why is None and not _obtainable(spec, specialisation, chosen):
        why = "their text is not shipped, and no loopy is installed that could write it: pip install 'pyedmcl[loopy]'"
    return why


def unfit_recorded(
    spec: KernelSpec, chosen: Mapping[str, Any], specialisation: Mapping[str, Any], info: DeviceInfo, most: int,
    sizes: Mapping[str, int] | None = None,
) -> str | None:  # fmt: skip
    """As :func:`unfit`, for parameters that a job was given when it began, which may be bent defaults."""
    why = unfit(spec, chosen, specialisation, info, most, sizes)
    limit = most
    while why is not None and limit:
        bent = defaults(spec, specialisation, info, limit, sizes)
        if chosen == bent and all(type(value) is type(bent[name]) for name, value in chosen.items()):
            return None
        limit = (1 << limit.bit_length() - 1) // 2 if limit & (limit - 1) == 0 else 1 << limit.bit_length() - 1
    return why


def operations_per_second(info: DeviceInfo) -> float:
    """What a device might do, within a factor of a few: enough to tell seconds from hours."""
    return info.compute_units * quirks_for(info).unit_rate


def _tile_bytes(chosen: Mapping[str, Any], specialisation: Mapping[str, Any]) -> int:
    """Local memory of a tile, staged with the rows that its oldest lags reach back to."""
    halo = (max(specialisation.get("dims", (1,))) - 1) * int(specialisation.get("tau", 1))
    return (int(chosen["tile"]) + int(halo)) * (8 if specialisation.get("dtype") == "float64" else 4)


def _staged_bytes(chosen: Mapping[str, Any], specialisation: Mapping[str, Any], rows: int) -> int:
    """Local memory of a lookup that stages its targets: what was tuned on shorter series may not fit longer ones."""
    columns = int(chosen["target_lanes"]) * int(chosen["lanes"]) * int(chosen["vectors"])
    sums = 2 * int(chosen["row_lanes"]) * int(chosen["library_lanes"]) + 2
    return (-(-rows // 256) * 256 + sums) * columns * (8 if specialisation.get("dtype") == "float64" else 4)

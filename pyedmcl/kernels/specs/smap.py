"""Specs of S-map: local linear fits of single series, and maps of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..kernel_spec import Constraint, KernelSpec, Tunable, Values

# Coordinates into the layouts of S-map's kernels: the program holds stage_library and stage_points.


SMAP_STAGE = KernelSpec(
    name="smap_stage",
    producer="mako",
    text="smap_stage.cl.mako",
    arguments="""
        stage_library(const moment* x; long start; int step, lag; const moment* target; int n; const moment* shift,
            basis; moment unit, target_shift, target_unit; real* near; moment* regressors)
        stage_points(const moment* x; long start; int step, lag, n, n_padded; const moment* shift, basis; moment unit;
            real* query; moment* query_z)
    """,
    launches="""
        near = round_up(coordinates, 4)
        stage_library | n | any
          x: n_values
          target: n
          shift: coordinates
          basis: coordinates * (regressors - 1)
          near: n * near
          regressors: n * regressors
        stage_points | n_padded | any
          x: n_values
          shift: coordinates
          basis: coordinates * (regressors - 1)
          query: coordinates * n_padded
          query_z: (regressors - 1) * n_padded
    """,
    specialisation=("coordinates", "regressors", "dtype"),
    same_bits=False,
    oracle="pyedmcl.engines.smap_device:basis_of",
    exact=False,
)


# Scales of S-map's weights: nearest and mean distance of each query row, and its k-th nearest library row.


SMAP_SCALE = KernelSpec(
    name="smap_scale",
    producer="mako",
    text="smap_scale.cl.mako",
    arguments="""
        smap_scale(const real* query; const whole* query_rows; int query_stride; const real* library;
            const int* library_rows; int n_library, radius, k, row_steps, first_tile; real* out_nearest, out_rate;
            int* out_count; real* out_squared; whole* out_row)
    """,
    launches="""
        near = round_up(coordinates, 4)
        smap_scale | groups * wg | wg
          query: coordinates * query_stride
          query_rows, out_nearest, out_rate, out_count, out_squared, out_row: query_stride
          library: n_library * near
          library_rows: n_library
    """,
    specialisation=("coordinates", "limited", "dtype"),
    tunables=(
        Tunable("lanes", (1, 4, 8, 16), {"cpu": 16, "gpu": 1}, "query rows of a work-item; a SIMD register on CPUs"),
        Tunable("wg", (1, 64, 128, 256), {"cpu": 1, "gpu": 256}, "work-items of a group"),
        Tunable("slices", (1, 2, 4, 8, 16), {"cpu": 1, "gpu": 16}, "work-items that share a query row"),
    ),
    constraints=(Constraint(lambda v: v["wg"] % v["slices"] == 0, "each query row has the same number of work-items"),),
    same_bits=False,
    oracle="pyedmcl.reference.edm:scales",
    exact=False,
)


#: Launches of this kernel and of smap_shared, which take the same.
MOMENTS = """
    near = round_up(coordinates, 4)
    entries = regressors * (regressors + 1) / 2 + regressors + 3
    tile_rows = {tile_rows}
    {name} | groups * wg | wg
      query: coordinates * query_stride
      query_rows, nearest_of, rate_of, squared_of, row_of: query_stride
      library: n_library * near
      library_rows: n_library
      regressors: n_library * regressors
      query_z: (regressors - 1) * query_stride
      thetas: n_thetas
      moments: slots * n_thetas * entries * tile_rows
"""

SMAP = KernelSpec(
    name="smap",
    producer="mako",
    text="smap.cl.mako",
    arguments="""
        smap(const real* query; const whole* query_rows; int query_stride; const real* library;
            const int* library_rows; const moment* regressors, query_z; int n_library, radius; const real* nearest_of,
            rate_of, squared_of; const whole* row_of; const real* thetas; int n_thetas, n_parts, first_tile, n_tiles,
            n_slots, task_begin; moment* moments)
    """,
    launches=MOMENTS.format(name="smap", tile_rows="wg * lanes"),
    specialisation=("coordinates", "regressors", "limited", "dtype"),
    tunables=(
        Tunable("lanes", (1, 4, 8, 16), {"cpu": 16, "gpu": 1}, "query rows of a work-item; a SIMD register on CPUs"),
        Tunable("wg", (1, 32, 64, 128, 256), {"cpu": 1, "gpu": 64}, "work-items of a group"),
        Tunable("tile", (0, 32, 64, 128), {"cpu": 64, "gpu": 0}, "library rows whose distances serve all thetas"),
        Tunable("wide", (1, 4, 8), {"cpu": 8, "gpu": 1}, "lanes whose sums of doubles are taken together"),
        Tunable("chunk", (8, 12, 16, 20, 24), {"cpu": 16, "gpu": 24}, "sums that are kept in registers at a time"),
        Tunable("share_from", (4, 6, 8, 9, 10, 12, 48), {"cpu": 48, "gpu": 9}, "regressors from which sums are shared"),
        Tunable("parts", (1, 2, 4, 8, 16, 32), {"cpu": 1, "gpu": 16}, "parts of the library, swept side by side"),
    ),
    constraints=(
        Constraint(lambda v: v["tile"] > 0 or v["lanes"] == 1, "without a tile a work-item has one query row"),
        Constraint(lambda v: v["lanes"] % min(v["wide"], v["lanes"]) == 0, "sums are taken for parts of the lanes"),
        Constraint(
            lambda v: v["tile"] == 0 or v["wg"] == 1, "the distances of a tile lie in the memory of a single work-item"
        ),
    ),
    same_bits=False,
    oracle="pyedmcl.reference.edm:moments",
    exact=False,
)


# S-map's moments for many regressors: work-items of a group share the sums of a tile of query rows.


def _slices(v: dict[str, int]) -> int:
    """Work-items that compute weights for the same query row; 0 where they do not come out even."""
    queries = v["wg"] // v["lanes_p"] * v["rq"]
    return v["wg"] // queries if queries and v["wg"] % queries == 0 else 0


def local_bytes(v: Values) -> int:
    """Local memory of a group."""
    regressors, queries = int(v["regressors"]), int(v["wg"] // v["lanes_p"] * v["rq"])
    near = -(-int(v["coordinates"]) // 4) * 4 * (4 if v["dtype"] == "float32" else 8) + 4
    if v["matrix_units"]:  # states and regressors of three tiles, weights of two, with room so that banks differ
        of_rows = int(v["coordinates"]) * queries * (4 if v["dtype"] == "float32" else 8)
        return int(v["tile"]) * (3 * (8 * (regressors + 16) + near) + 2 * 8 * (queries + 4)) + of_rows
    sums = regressors * (regressors + 1) // 2 + regressors
    width = min(int(v["lanes_p"] * v["rp"]), sums + 2 * int(v["lanes_p"]))
    return int(v["tile"]) * (8 * (regressors + 1 + queries + width) + near)


def largest_tile(v: Values, local: int) -> int:
    """The largest tile up to that of ``v`` with which a group takes at most ``local`` bytes; 0 if there is none."""
    tiles = next(tunable.values for tunable in SMAP_SHARED.tunables if tunable.name == "tile")
    fitting = [t for t in tiles if _slices(dict(v)) <= t <= v["tile"] and local_bytes({**v, "tile": t}) <= local]
    return max(fitting, default=0)


def _sub(v: Values) -> int:
    """Work-items along the sums, of the 32 that run in lockstep; matrix units prescribe four."""
    return 4 if v["matrix_units"] else int(v["sub_p"])


SMAP_SHARED = KernelSpec(
    name="smap_shared",
    producer="mako",
    text="smap_shared.cl.mako",
    arguments="""
        smap_shared(const real* query; const whole* query_rows; int query_stride; const real* library;
            const int* library_rows; const moment* regressors, query_z; int n_library, radius; const real* nearest_of,
            rate_of, squared_of; const whole* row_of; const real* thetas; int n_thetas, n_parts, first_tile, n_tiles,
            n_slots, task_begin; moment* moments)
    """,
    launches=MOMENTS.format(name="smap_shared", tile_rows="wg / lanes_p * rq"),
    specialisation=("coordinates", "regressors", "limited", "matrix_units", "dtype"),
    tunables=(
        Tunable("wg", (64, 128, 256), {"cpu": 64, "gpu": 256}, "work-items of a group"),
        Tunable("lanes_p", (8, 16, 32), {"cpu": 32, "gpu": 32}, "work-items along the sums of a query row"),
        Tunable("sub_p", (4, 8, 16, 32), {"cpu": 32, "gpu": 8}, "of these, how many among 32 that run in lockstep"),
        Tunable("rq", (2, 4, 8), {"cpu": 4, "gpu": 8}, "query rows of a work-item"),
        Tunable("rp", (4, 6, 8), {"cpu": 8, "gpu": 8}, "sums of a work-item per query row, at most"),
        Tunable("tile", (8, 16, 32), {"cpu": 16, "gpu": 16}, "library rows at a time in local memory"),
        Tunable("steps", (1, 2, 4), {"cpu": 1, "gpu": 2}, "library rows whose sums are unrolled"),
        Tunable("parts", (1, 2, 4, 8, 16), {"cpu": 2, "gpu": 16}, "parts of the library for a last, small wave"),
    ),
    constraints=(
        Constraint(lambda v: v["wg"] % v["lanes_p"] == 0, "work-items must fill a rectangle of query rows by sums"),
        Constraint(lambda v: _slices(dict(v)) > 0, "query rows must share the work-items evenly"),
        Constraint(
            lambda v: v["lanes_p"] % _sub(v) == 0 and v["wg"] // v["lanes_p"] % (32 // _sub(v)) == 0,
            "the work-items that run in lockstep form a rectangle of query rows by sums",
        ),
        Constraint(
            lambda v: not v["matrix_units"] or (v["sub_p"], v["steps"]) == (8, 2),
            "matrix units prescribe which work-items run in lockstep and how sums are unrolled: the two change nothing",
        ),
        Constraint(lambda v: v["rp"] % 2 == 0, "sums are taken in pairs"),
        Constraint(lambda v: v["tile"] >= _slices(dict(v)), "the last sums need a row of the tile for each slice"),
    ),
    same_bits=False,
    oracle="pyedmcl.reference.edm:moments",
    exact=False,
)


# S-map's local fits: a small symmetric system per query row and theta.


SMAP_SOLVE = KernelSpec(
    name="smap_solve",
    producer="mako",
    text="smap_solve.cl.mako",
    arguments="""
        smap_solve(const moment* moments; int n_parts, n_head, n_thetas, n_rows, n_padded; const moment* penalty,
            points; long start; int step, lag; const moment* query_z; const real* nearest, rate, thetas;
            const moment* basis; moment target_shift, target_scale; moment* fits, coefficients)
    """,
    launches="""
        entries = regressors * (regressors + 1) / 2 + regressors + 3
        tile_rows = rows
        smap_solve | groups * wg | wg
          moments: slots * n_thetas * entries * tile_rows
          penalty: regressors * regressors
          points: n_values
          query_z: (regressors - 1) * n_padded
          nearest, rate: n_padded
          thetas: n_thetas
          basis: coordinates * (regressors - 1)
          fits: 3 * n_thetas * n_rows
          coefficients: n_thetas * n_rows * (coordinates + 1)
    """,
    specialisation=("coordinates", "regressors", "rows", "penalised", "centred", "dtype"),
    tunables=(Tunable("wg", (1, 8, 16, 32, 64), {"cpu": 1, "gpu": 32}, "work-items that solve a system together"),),
    constraints=(
        Constraint(
            lambda v: v.get("shared_solves", True) or v["wg"] == 1,
            "a work-item solves a system alone where a device must not share it (quirk shared_solves)",
        ),
    ),
    same_bits=False,
    oracle="pyedmcl.reference.edm:solve",
    exact=False,
)


# Maps of S-map: states of libraries, with regressors in which each library is white.


SMAP_WHITE = KernelSpec(
    name="smap_white",
    producer="mako",
    text="smap_white.cl.mako",
    arguments="""
        smap_white(const moment* series; int first_library, series_stride, first, lag, n_rows, n_padded;
            const uchar* uses; int uses_stride; moment theta; const moment* strength; moment* work;
            real* states, columns; moment* penalty)
    """,
    launches="""
        state_columns = 2 * E + gaps
        state = round_up(state_columns, 4)
        smap_white | groups * wg | wg
          series: (first_library + groups) * series_stride
          uses: select(gaps, n_rows + (first_library + groups - 1) * uses_stride, 1)
          strength: select(penalised, first_library + groups, 1)
          work: (first_library + groups) * (E + 1) * n_padded
          states: (first_library + groups) * n_padded * state
          columns: (first_library + groups) * state_columns * n_padded
          penalty: select(penalised, (first_library + groups) * E * E, 1)
    """,
    specialisation=("E", "gaps", "penalised", "dtype"),
    tunables=(Tunable("wg", (1, 64, 128, 256), {"cpu": 1, "gpu": 256}, "work-items that share a library"),),
    oracle="pyedmcl.reference.edm:map_rho",
    exact=False,
    same_bits=False,
)


# Maps of S-map: what each row of a library predicts with, for all targets at once.


SMAP_GRAM = KernelSpec(
    name="smap_gram",
    producer="mako",
    text="smap_gram.cl.mako",
    arguments="""
        smap_gram(const real* states, columns; int n_rows, n_padded, first_tile, radius; real theta;
            const moment* penalty; real* fits; int* doubtful; real* records)
    """,
    launches="""
        state_columns = 2 * E + gaps
        state = round_up(state_columns, 4)
        record = round_up((E + 1) * (E + 1) + 1, 4)
        smap_gram | groups * wg; libraries | wg; 1
          states: libraries * n_padded * state
          columns: libraries * state_columns * n_padded
          penalty: select(penalised, libraries * E * E, 1)
          fits: libraries * n_padded * (E + 3)
          doubtful: libraries
          records: select(slopes, libraries * n_padded * record, 0)
    """,
    specialisation=("E", "gaps", "penalised", "slopes", "dtype"),
    tunables=(
        Tunable("lanes", (1, 4, 8, 16), {"cpu": 16, "gpu": 1}, "rows of a work-item; a SIMD register on CPUs"),
        Tunable("wg", (1, 32, 64, 128), {"cpu": 1, "gpu": 64}, "work-items of a group; several share library rows"),
    ),
    constraints=(
        Constraint(lambda v: v["wg"] * v["lanes"] <= 128, "rows are padded to 128"),
        Constraint(lambda v: 1 in (v["wg"], v["lanes"]), "work-items that share library rows are scalar"),
    ),
    oracle="pyedmcl.reference.edm:map_rho",
    exact=False,
    same_bits=False,
)


# Maps of S-map: predictions of all targets from one library, reduced to Pearson's rho on the fly.


#: Rows and columns of a group's tile of predictions, at most: data and memory are padded to that.
MOST_ROWS, MOST_COLUMNS, MOST_STEP = 128, 256, 64

#: The layout that matrix units prescribe (``templates/smap_map_units.mako``): a product has 8 targets, of which each
#: work-item has two, for two rows.
ON_MATRIX_UNITS = {
    "lanes": 1, "width": 2, "vectors": 13, "rows_each": 2, "target_lanes": 4, "row_lanes": 128, "row_tiles": 1,
    "target_tiles": 1, "step": 64, "rows_local": False,
}  # fmt: skip
_PRESCRIBED = ("lanes", "width", "rows_each", "target_lanes", "row_tiles", "target_tiles")
# Products side by side. Of halves, a group of 512 work-items has 128 registers for each, which hold 13; one of 256 has
# 255, which hold 25. In double these hold 20, and a group of 128 work-items leaves room for a second one.
_OF_512, _OF_256, _IN_DOUBLE = 13, 25, 20
_MOST_IN_REGISTERS = 6  # E, up to which what H is made of fits into registers, too


def on_matrix_units(E: int, n_targets: int, halves: bool) -> dict[str, Any]:
    """The parameters that matrix units prescribe: as few blocks of targets as can be, all about as wide."""
    eights = -(-n_targets // 8)
    vectors = -(-eights // -(-eights // (_OF_256 if halves else _IN_DOUBLE)))
    row_lanes = (128 if vectors <= _OF_512 else 64) if halves else 32
    return {**ON_MATRIX_UNITS, "vectors": vectors, "row_lanes": row_lanes, "rows_local": E > _MOST_IN_REGISTERS}


def tile_rows(v: Mapping[str, Any]) -> int:
    """Rows of a group's tile of predictions."""
    return int(v["row_lanes"] * v["row_tiles"] * v["rows_each"])


def tile_columns(v: Mapping[str, Any]) -> int:
    """Targets of a group's tile of predictions."""
    return int(v["target_lanes"] * v["target_tiles"] * v["vectors"] * v["width"])


def local_numbers(v: Mapping[str, Any]) -> int:
    """Numbers in local memory of a group."""
    rows, columns, step = tile_rows(v), tile_columns(v), int(v["step"])
    state, of_rows = 2 * int(v["E"]) + 4, (3 * int(v["E"]) + 3) * rows * bool(v["rows_local"])
    if v["matrix_units"]:  # twice states and targets, or predictions; and sums
        sums = 3 * max(int(v["row_lanes"]) * 4, columns)
        return max(2 * step * (state + columns), rows * (columns + 32)) + sums + of_rows
    numbers = step * rows
    if v["target_lanes"] * v["row_lanes"] > 1:  # states, targets, and sums of the row lanes
        numbers += step * (state + columns) + int(v["row_lanes"]) * columns + of_rows
    if v["row_tiles"] * v["target_tiles"] > 1:  # predictions
        numbers += rows * columns
    return numbers


def fit(chosen: dict[str, Any], given: Mapping[str, Any], local: int) -> None:
    """Change parameters of a specialisation so that a group has local memory enough, of ``local`` numbers.

    Work-items that wait for each other need a second group beside theirs, unless steps become small.
    """

    def numbers(**changes: Any) -> int:
        return local_numbers({**given, **chosen, **changes})

    if given["matrix_units"]:
        shrinking: tuple[tuple[str, int, int], ...] = (("step", 16, 1),)
    else:
        at_once = 2 if chosen["target_lanes"] * chosen["row_lanes"] > 1 else 1
        shrinking = ("step", 32, at_once), ("target_tiles", 1, 1), ("step", 8, 1)
    chosen["rows_local"] = chosen["rows_local"] and numbers(target_tiles=1, step=8) <= local
    for name, least, groups in shrinking:
        while chosen[name] > least and numbers() * groups > local:
            chosen[name] //= 2


def _arguments(v: Values) -> str:
    units, halves = v.get("matrix_units"), v.get("halves")
    arrange = f"""
        smap_arrange(const real* targets; int target_stride, first, n_rows, column_begin, column_end; uint* arranged
            {"; real* scales" if halves else ""})
    """
    return f"""
        {arrange if units else ""}
        smap_map(const real* states, columns, fits; int n_rows, n_padded, first_tile, n_tiles, radius;
            const real* targets; int target_stride, first, column_begin, column_end;
            {"const uint* arranged;" if units else ""} {"const real* scales;" if halves else ""}
            real* sums; int sums_stride)
        smap_score(const real* sums; int sums_stride, n_tiles, column_begin, column_end; const int* target_of;
            int first_library, rho_stride; real* rho)
    """


SMAP_MAP = KernelSpec(
    name="smap_map",
    producer="mako",
    text="smap_map.cl.mako",
    arguments=_arguments,
    launches="""
        state_columns = 2 * E + gaps
        state = round_up(state_columns, 4)
        tile_columns = target_lanes * target_tiles * vectors * width
        map_group = target_lanes * row_lanes
        smap_map | ceil_div(column_end - column_begin, tile_columns) * map_group; groups; libraries | map_group; 1; 1
          states: libraries * n_padded * state
          columns: libraries * state_columns * n_padded
          fits: libraries * n_padded * (E + 3)
          targets: (first + n_rows) * target_stride
          sums: libraries * n_tiles * 6 * sums_stride
          arranged: round_up(n_rows, step) * round_up(column_end - column_begin, tile_columns)
          scales: round_up(column_end - column_begin, tile_columns)
        smap_arrange | round_up(column_end - column_begin, tile_columns) / 8 * 256 | 256
          targets: (first + n_rows) * target_stride
          arranged: round_up(n_rows, step) * round_up(column_end - column_begin, tile_columns)
          scales: round_up(column_end - column_begin, tile_columns)
        smap_score | column_end - column_begin; libraries | any
          sums: libraries * n_tiles * 6 * sums_stride
          target_of: column_end
          rho: (first_library + libraries) * rho_stride
    """,
    specialisation=("E", "gaps", "matrix_units", "halves", "dtype"),
    tunables=(
        Tunable("lanes", (1, 4, 8, 16), {"cpu": 16, "gpu": 1}, "rows whose H a work-item makes at once"),
        Tunable("width", (2, 4, 8, 16), {"cpu": 16, "gpu": 4}, "adjacent targets in one vector"),
        Tunable("vectors", (1, 2, 3, 4), {"cpu": 4, "gpu": 2}, "vectors of targets of a work-item's tile"),
        Tunable("rows_each", (4, 6, 8), {"cpu": 4, "gpu": 8}, "rows of a work-item's tile"),
        Tunable("target_lanes", (1, 8, 16, 32), {"cpu": 1, "gpu": 32}, "work-items of a group along the targets"),
        Tunable("row_lanes", (1, 8, 16), {"cpu": 1, "gpu": 8}, "work-items of a group along the rows"),
        Tunable("row_tiles", (1, 8, 16), {"cpu": 16, "gpu": 1}, "tiles of a work-item along the rows"),
        Tunable("target_tiles", (1, 2, 4), {"cpu": 2, "gpu": 1}, "tiles of a work-item along the targets"),
        Tunable("step", (8, 16, 32, 64), {"cpu": 32, "gpu": 64}, "library rows at a time"),
        Tunable(
            "rows_local",
            (False, True),
            {"cpu": False, "gpu": True},
            "work-items keep what H is made of in local memory; else in registers",
        ),
    ),
    constraints=(
        Constraint(
            lambda v: (v["target_lanes"] * v["row_lanes"] == 1) or (v["row_tiles"] * v["target_tiles"] == 1),
            "work-items that share a group have one tile each, which they keep in registers",
        ),
        Constraint(
            lambda v: (v["matrix_units"] or tile_rows(v) <= MOST_ROWS) and tile_columns(v) <= MOST_COLUMNS,
            "memory is padded to the largest tile that is known",
        ),
        Constraint(lambda v: v["matrix_units"] or MOST_ROWS % tile_rows(v) == 0, "rows are padded to whole tiles"),
        Constraint(
            lambda v: (
                not v["matrix_units"]
                or (v["dtype"] == "float32" and all(v[name] == ON_MATRIX_UNITS[name] for name in _PRESCRIBED))
            ),
            "matrix units prescribe which work-item has which numbers of a tile",
        ),
        Constraint(lambda v: v["matrix_units"] or v["width"] > 2, "vectors of two are those of matrix units"),
        Constraint(
            lambda v: (
                tile_rows(v) % v["lanes"] == 0
                and (
                    v["target_lanes"] * v["row_lanes"] * v["lanes"] % tile_rows(v) == 0
                    or tile_rows(v) % (v["target_lanes"] * v["row_lanes"] * v["lanes"]) == 0
                )
            ),
            "H of a tile is shared evenly among the work-items",
        ),
    ),
    oracle="pyedmcl.reference.edm:map_rho",
    exact=False,
    same_bits=False,
)


# Maps of S-map: what each library row adds to the mean slopes of the fits around all rows.


SMAP_SLOPES = KernelSpec(
    name="smap_slopes",
    producer="mako",
    text="smap_slopes.cl.mako",
    arguments="""
        smap_slopes(const real* states, columns, records; int n_rows, n_padded, first_tile, radius; moment* slopes)
    """,
    launches="""
        state_columns = 2 * E + gaps
        state = round_up(state_columns, 4)
        record = round_up((E + 1) * (E + 1) + 1, 4)
        smap_slopes | groups * wg; libraries | wg; 1
          states: libraries * n_padded * state
          columns: libraries * state_columns * n_padded
          records: libraries * n_padded * record
          slopes: libraries * E * n_padded
    """,
    specialisation=("E", "gaps", "dtype"),
    tunables=(
        Tunable("lanes", (1, 4, 8, 16), {"cpu": 16, "gpu": 1}, "library rows of a work-item; a SIMD register on CPUs"),
        Tunable("wg", (1, 32, 64, 128), {"cpu": 1, "gpu": 64}, "work-items of a group"),
    ),
    constraints=(Constraint(lambda v: v["wg"] * v["lanes"] <= 128, "rows are padded to 128"),),
    oracle="pyedmcl.reference.edm:map_slopes",
    exact=False,
    same_bits=False,
)


def record_numbers(E: int) -> int:
    """What ``smap_gram`` writes of each row for ``smap_slopes``: RECORD of ``clkernels/smap_map.clh``."""
    return (E * (E + 1) + E + 2 + 3) // 4 * 4

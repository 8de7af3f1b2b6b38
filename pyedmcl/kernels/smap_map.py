"""Maps of S-map: predictions of all targets from one library, reduced to Pearson's rho on the fly."""

from collections.abc import Mapping
from typing import Any

from ..codegen.spec import Constraint, KernelSpec, Tunable, Values

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


SPEC = KernelSpec(
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
    oracle="pyedmcl.reference.smap:map_rho",
    exact=False,
    same_bits=False,
)

"""Cross-map lookup: predictions of all targets from one library's table, reduced to Pearson's rho on the fly."""

from ..codegen.spec import Constraint, KernelSpec, Tunable, Values, group
from ..codegen.usage import Usage

# Columns of targets that a group may own.
MOST_COLUMNS = 128
#: Into which the rows of a sum are dealt, as in templates/lookup.cl.mako.
STRANDS = 8
#: Of clkernels/compact.clh.
TOP_BYTE, MARKED = 0x3F000000, 2
# Rules of each.
_PRECISIONS = {
    "full": (),
    "compact": (
        "rho is 2 where the targets' 16 bits may not suffice; another text (precision again) computes these pairs.",
    ),
    "again": ("Only what is 2 in rho is computed.",),
}
_PROBLEM = {
    "n_steps": "rows of a series", "n_targets": "targets", "n_libraries": "libraries whose tables there are",
    "E": "embedding dimension of the tables", "tau": "lag of the tables",
    "Tp": "rows that predictions look ahead",
    "n_slices": "groups that share a column tile, 1 to n_libraries: of n, group i has the libraries i, i + n, ..",
}  # fmt: skip
_MEANINGS = {
    "target_of": "column of rho that each target goes to", "rho": "[library][rho_stride]: Pearson's rho",
    "target_stride": "columns of targets", "column_begin": "first target of this launch",
    "column_end": "one past the last target", "n_rows": "rows of a series",
    "t_begin": "first query row", "t_end": "one past the last query row", "Tp": "rows ahead that are predicted",
    "n_libraries": "libraries of this launch", "first_library": "row of rho of the first library",
    "rho_stride": "columns of rho", "table_begin": "element at which the tables begin",
    "table_rows": "query rows that a table has room for", "n_slices": "groups that share a column tile",
}  # fmt: skip


def _usage(v: Values) -> Usage:
    tile, k_stride = v["table_tile"], -(-v["k"] // 4) * 4
    columns = v["target_lanes"] * v["lanes"] * v["vectors"]
    table = (f"[library][query row / {tile}][neighbour][{tile}]" if tile > 1 else "[library][query row][neighbour]"
             ) + f", {k_stride} neighbours"  # fmt: skip
    compact = v["precision"] == "compact"
    values = ("[row][target_stride]: values of the targets, less their mean over the rows t + Tp that are observed and "
              "divided by a power of two so that none exceeds 1; 1e16 where one is missing, 0 behind the last column "
              "and row")  # fmt: skip
    codes = ("[row][target_stride]: targets in 16 bits, those behind the first 8 of the float32 that each is after its "
             "range was shifted and scaled to [0.5, 1.9999]; 0 behind the last column and row")  # fmt: skip
    of_codes = {"centres": "about the mean of each target after that", "top_byte": "the first 8 of these bits"}
    return Usage(
        problem=_PROBLEM,
        derived={
            "target_stride": "round_up(n_targets, 16)",
            "target_rows": f"round_up(n_steps + ceil_div({MOST_COLUMNS}, target_stride), 16)",
            "n_rows": "n_steps",
            "t_begin": "max((E - 1) * tau, -Tp)",
            "t_end": "min(n_steps, n_steps - Tp)",
            "table_rows": f"round_up(n_steps, {tile})",
            "rho_stride": "n_targets",
        },
        numbers={"column_begin": "0", "column_end": "n_targets", "first_library": "0", "table_begin": "0",
                 **({"top_byte": str(TOP_BYTE)} if compact else {})},
        meanings={
            **_MEANINGS,
            "targets": codes if compact else values, **(of_codes if compact else {}),
            "rows": f"rows of the neighbours: {table}, as the kernel knn writes them with emit=weights"
                    + (", in 16 bits" if v["narrow_rows"] else ""),
            "weights": f"their weights: {table}; 0 where a row has no neighbour",
        },
        elements={
            "targets": "target_rows * target_stride", "rows": f"n_libraries * table_rows * {k_stride}",
            "weights": f"n_libraries * table_rows * {k_stride}", "target_of": f"n_targets + {MOST_COLUMNS}",
            "rho": "n_libraries * rho_stride",
            **({"centres": f"target_stride + {MOST_COLUMNS}"} if compact else {}),
        },
        work_items=(f"ceil_div(n_targets, {columns}) * n_slices * {group(v)}",),
        local_size=(group(v),),
        rules=(
            *_PRECISIONS[v["precision"]],
            "rho is NaN where a side is constant or fewer than three rows have both a prediction and an observation.",
            "A missing value is 1e16; the rows in which a target has one do not count." if v["gaps"] else
            "Targets and libraries have no missing values; another text (gaps) takes these.",
            "Sums over rows are added in an order of their own, so that rho has the same bits on every device.",
        ),
    )  # fmt: skip


def _arguments(v: Values) -> str:
    rows = "ushort" if v.get("narrow_rows") else "int"
    compact = v.get("precision") == "compact"
    targets, more = ("ushort", "; const real* centres; uint top_byte") if compact else ("real", "")
    more += "" if v.get("k", 1) else ", any_k"
    return f"""
        {"lookup_narrow(const int* rows; ushort* narrow; ulong n)" if v.get("narrow_rows") else ""}
        lookup(const {targets}* targets; const {rows}* rows; const real* weights; const int* target_of; real* rho;
            int target_stride, column_begin, column_end, n_rows, t_begin, t_end, Tp, n_libraries, first_library,
            rho_stride; ulong table_begin; int table_rows, n_slices{more})
    """


SPEC = KernelSpec(
    name="lookup",
    producer="mako",
    text="lookup.cl.mako",
    arguments=_arguments,
    specialisation=("k", "dtype", "gaps", "stage_rows", "table_tile", "narrow_rows", "precision", "local_sums"),
    tunables=(
        Tunable("lanes", (1, 2, 4, 8, 16), {"cpu": 16, "gpu": 2}, "adjacent targets in one vector"),
        Tunable("vectors", (1, 2, 4), {"cpu": 4, "gpu": 1}, "vectors of targets that share rows and weights"),
        Tunable(
            "target_lanes", (1, 2, 3, 4, 8, 16, 32), {"cpu": 1, "gpu": 16}, "work-items of a group along the targets"
        ),
        Tunable(
            "row_lanes", (1, 4, 8, 16, 32, 64, 128), {"cpu": 1, "gpu": 8}, "work-items of a group along the query rows"
        ),
        Tunable("library_lanes", (1, 2, 4, 8, 16, 32), {"cpu": 1, "gpu": 1}, "libraries that a group looks up at once"),
        Tunable("stage", (False, True), {"cpu": False, "gpu": False}, "keep a group's targets in local memory"),
        Tunable("unroll", (1, 2, 4), {"cpu": 1, "gpu": 4}, "query rows per step"),
        Tunable("quads", (False, True), {"cpu": False, "gpu": True}, "load rows and weights four at a time"),
    ),
    constraints=(
        Constraint(
            lambda v: v["target_lanes"] * v["row_lanes"] * v["library_lanes"] <= 1024,
            "a group has at most 1,024 work-items",
        ),
        Constraint(
            lambda v: v["target_lanes"] * v["lanes"] * v["vectors"] <= MOST_COLUMNS,
            "the last group reads past the last target, where the padding is that wide",
        ),
        Constraint(
            lambda v: v["k"] > 0 or v["precision"] == "full",
            "where k is an argument (0), targets have 32 bits",
        ),
        Constraint(
            lambda v: not v["local_sums"] or v["row_lanes"] == STRANDS,
            "sums wait in local memory where each work-item along the rows has a strand of its own",
        ),
        Constraint(lambda v: v["precision"] in _PRECISIONS, f"precision is one of {', '.join(_PRECISIONS)}"),
        Constraint(
            lambda v: v["precision"] != "compact" or (v["dtype"] == "float32" and not v["gaps"]),
            "only targets of float32 without gaps can have 16 bits",
        ),
    ),
    oracle="pyedmcl.reference.edm:skill",
    exact=False,
    usage=_usage,
)

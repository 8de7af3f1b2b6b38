"""Specs of cross maps, predictions and skill, and of the data that they read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..kernel_spec import Constraint, KernelSpec, Tunable, Usage, Values, group

# Raw data into the layouts of the other kernels, and rows out of tables: the program holds centre, stage_targets,
# stage_series, widen_series and hide_rows.


STAGE = KernelSpec(
    name="stage",
    producer="mako",
    text="stage.cl.mako",
    arguments="""
        centre(const real* raw; int n_series, n_steps; const int* scored_from; int n_scored; real* shift;
            int* exponent)
        stage_targets(const real* raw; int n_series, begin, n_all, n_steps; const int* column_of; int target_stride;
            const real* shift; const int* exponent; real* targets)
        stage_series(const real* raw; int n_series, first, front, end, stride, centred; const real* shift;
            const int* exponent; real* series)
        widen_series(const float* raw; int n_series, first, n_steps; real* series)
        hide_rows(const int* rows; int n_rows; ulong table_begin; int table_rows, stride, tile; real* weights)
    """,
    launches="""
        centre | n_series | any
          raw: n_series * n_steps
          scored_from, shift, exponent: n_series
        stage_targets | width; rows_here | any
          raw: n_series * n_steps
          column_of: begin + n_series
          shift, exponent: n_series
          targets: rows_here * target_stride
        stage_series | stride; groups | any
          raw: n_series * end
          shift, exponent: n_series
          series: groups * stride
        widen_series | n_steps; groups | any
          raw: n_series * n_steps
          series: groups * n_steps
        hide_rows | n_rows; libraries | any
          rows: n_rows
          weights: table_begin + libraries * table_rows * stride
    """,
    specialisation=("dtype",),
    oracle="pyedmcl.series.scaling:condition",
)


# Cross-map lookup: predictions of all targets from one library's table, reduced to Pearson's rho on the fly.


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


LOOKUP = KernelSpec(
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
            lambda v: v["k"] > 0 or v["precision"] != "compact",
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


# Targets in half the bytes: the program makes their codes, and counts how often rows of a library are neighbours.


#: What 16 bits may change rho by.
MOST_ERROR = 2e-5
#: The estimate d of an error is this times range / sqrt(S); what was measured was below 2 d (docs/design/lookup.md).
ERROR = 5.0e-5
#: What the program is made for.
VALUES: Mapping[str, Any] = {
    "dtype": "float32", "column_parts": 64, "library_parts": 64, "most_ratio": (MOST_ERROR / ERROR) ** 2,
}  # fmt: skip

COMPACT = KernelSpec(
    name="compact",
    producer="mako",
    text="compact.cl.mako",
    arguments="""
        compact_parts(const real* targets; int target_stride, n_steps, first, end; real* parts)
        compact_scales(const real* parts; int target_stride, n_scored; real* scales)
        compact(const real* targets; int target_stride; const real* scales; ushort* codes)
        compact_clear(int* used; int n_rows)
        compact_used(const int* rows; const real* weights; ulong table_begin; int table_rows, k, stride, tile, t_begin,
            t_end, n_rows; int* used; ulong* parts)
        compact_repeats(const ulong* parts; int n_libraries, n_predicted; real* repeats)
        compact_mark(const real* scales; int target_stride, column_begin, column_end; const int* target_of;
            const real* repeats; int first_library, rho_stride; real* rho)
    """,
    launches="""
        compact_parts | target_stride; column_parts | any
          targets: n_steps * target_stride
          parts: 4 * column_parts * target_stride
        compact_scales | target_stride | any
          parts: 4 * column_parts * target_stride
          scales: 3 * target_stride
        compact | target_stride; rows_here | any
          targets, codes: rows_here * target_stride
          scales: 3 * target_stride
        compact_clear | n_rows; libraries | any
          used: libraries * n_rows
        compact_used | library_parts; libraries | any
          rows, weights: table_begin + libraries * table_rows * stride
          used: libraries * n_rows
          parts: 2 * library_parts * libraries
        compact_repeats | n_libraries | any
          parts: 2 * library_parts * n_libraries
          repeats: n_libraries
        compact_mark | column_end - column_begin; libraries | any
          scales: 3 * target_stride
          target_of: column_end
          repeats: libraries
          rho: (first_library + libraries) * rho_stride
    """,
    specialisation=("dtype", "column_parts", "library_parts", "most_ratio"),
    constraints=(Constraint(lambda v: v["dtype"] == "float32", "only targets of float32 can have 16 bits"),),
    oracle="pyedmcl.reference.edm:compacted",
    exact=False,
)


# Simplex projection: a weighted mean of the neighbours' targets for each query row, and its variance.


def _launches(v: Values) -> str:
    n_dims, k_padded = len(v["counts"]), sum(-(-k // 4) * 4 for k in v["counts"])
    return f"""
        predict | round_up({n_dims} * rows_per_slot, wg) | wg
          targets: target_front + (first_series + rows_per_slot / n_rows - 1) * target_stride + n_rows
          rows, weights: {k_padded} * table_rows_per_slot
          predicted, variance: {n_dims} * rows_per_slot
    """


PREDICT = KernelSpec(
    name="predict",
    producer="mako",
    text="predict.cl.mako",
    arguments="""
        predict(const real* targets; int target_stride, target_front, first_series; const int* rows;
            const real* weights; int n_rows, Tp; ulong rows_per_slot; int table_rows; ulong table_rows_per_slot;
            real* predicted, variance)
    """,
    launches=_launches,
    specialisation=("counts", "dtype", "table_tile"),
    # On GPUs groups of 32 took 0.48 (H100) and 0.54 (H200) of the time of 64, for 528 x 2,000 and E = 1 to 20; a small
    # problem has as many rows under way with either.
    tunables=(Tunable("wg", (1, 16, 32, 64, 128), {"cpu": 16, "gpu": 32}, "work-items of a group, a query row each"),),
    oracle="pyedmcl.reference.edm:simplex_predict",
    exact=False,
)


# Prediction skill of many pairs of series: partial sums for rho, MAE and RMSE, added up on the host in float64.


# Rows of a chunk, added up in the working precision. One number for all devices, so that sums have the same bits.
CHUNK = 256

SKILL = KernelSpec(
    name="skill",
    producer="loopy",
    text="skill",
    arguments="""
        skill(const real* predicted, observed; const int* observed_of, t_begin, t_end; real* sums; long pair_begin,
            n_pairs, n_chunks, n_rows, observed_stride, observed_offset)
    """,
    launches="""
        skill | n_pairs * wg; ceil_div(n_chunks, wg) | wg; 1
          predicted: (pair_begin + n_pairs) * n_rows
          observed: n_series_held * observed_stride
          observed_of, t_begin, t_end: pair_begin + n_pairs
          sums: n_pairs * n_chunks * 8
    """,
    example="generated/skill-float32-chunk256-wg64.cl",
    specialisation=("dtype", "chunk"),
    tunables=(
        Tunable("wg", (1, 16, 32, 64, 128), {"cpu": 1, "gpu": 64}, "work-items of a group, a chunk each"),
    ),
    oracle="pyedmcl.reference.edm:pearson",
    exact=False,
)


# Surrogates with random phases as targets on the device: wave_turns, wave_sums, wave_pick, wave_place,
# wave_border.
#
# Nothing is tuned: it is none of :data:`pyedmcl.kernels.NAMES`.


#: Surrogates, and steps, that a work-group of ``wave_sums`` computes, and how many work-items it has.
EDGE, WG = 64, 256
#: All that the text is made for: its arithmetic is in float64, the targets that it writes are float32.
WAVES_VALUES = {"dtype": "float64"}

WAVES = KernelSpec(
    name="waves",
    producer="mako",
    text="waves.cl.mako",
    arguments="""
        wave_turns(const ulong* keys; int n_groups; const double* turns, spectra; int n_steps, begin, end, first, each,
            stride; double* amplitudes)
        wave_sums(const double* amplitudes, roots, of_series, bases; int n_steps, begin, end, each, stride,
            target_stride; float* targets; int* marked)
        wave_pick(const double* amplitudes; const int* draws; int n_steps, stride; double* picked)
        wave_place(const float* series; const int* columns; int n_steps, target_stride; float* targets)
        wave_border(int n_steps, width, target_stride; float* targets)
    """,
    launches="""
        wave_turns | stride; n_steps / 2 | any
          keys: 2 * n_series_held * n_groups
          turns: 2 * 65536
          spectra: n_series_held * (n_steps / 2 + 1)
          amplitudes: 2 * (n_steps / 2) * stride
        wave_sums | stride * 4; n_steps / 2 / 64 + 1 | 256; 1
          amplitudes: 2 * (n_steps / 2) * stride
          roots: 2 * n_steps
          of_series: 5 * n_series_held
          bases: n_series_held * n_steps
          targets: n_steps * target_stride
          marked: stride
        wave_pick | n_steps / 2 + 1; n_draws_held | any
          amplitudes: 2 * (n_steps / 2) * stride
          draws: n_draws_held
          picked: 2 * n_draws_held * (n_steps / 2 + 1)
        wave_place | n_steps; n_series_held | any
          series: n_series_held * n_steps
          columns: n_series_held
          targets: n_steps * target_stride
        wave_border | target_stride; rows_here | any
          targets: rows_here * target_stride
    """,
    specialisation=("dtype",),
    oracle="pyedmcl.surrogates.makers:phases",
)


# The highest rho of several lags, and how many surrogates reach it: highest_begin, highest_keep, highest_count.
#
# Nothing is tuned: it is none of :data:`pyedmcl.kernels.NAMES`.


#: Work-items that count the surrogates of a pair.
HIGHEST_WG = 64

HIGHEST = KernelSpec(
    name="highest",
    producer="mako",
    text="highest.cl.mako",
    arguments="""
        highest_begin(const uchar* wanted; const int* span_of; int n_spans, width; real* best, rho)
        highest_keep(real most; int width; real* best, rho)
        highest_count(const uchar* wanted; const int* span_begins; int n_spans, width; const real* best; real* own;
            int* reached, valid; uint* wrong)
    """,
    launches="""
        highest_begin | width; n_libraries_held | any
          wanted: n_libraries_held * n_spans
          span_of: width
          best, rho: n_libraries_held * width
        highest_keep | width; n_libraries_held | any
          best, rho: n_libraries_held * width
        highest_count | n_spans * 64; n_libraries_held | 64; 1
          wanted: n_libraries_held * n_spans
          span_begins: n_spans + 1
          best: n_libraries_held * width
          own, reached, valid: n_libraries_held * n_spans
          wrong: 1
    """,
    specialisation=("dtype",),
    oracle="pyedmcl.statistics:counts",
)


# Results into arrays of the caller on the device: deliver_neighbours, deliver_skill, deliver_counts, deliver_means.
#
# A copy, of which nothing is tuned, so it is none of :data:`pyedmcl.kernels.NAMES`.


_ARGUMENTS = """
    deliver_neighbours(const int* rows; const real* squared; ulong n; int n_library, exponent; int* indices;
        ulong first_index; real* distances; ulong first_distance; uint* wrong)
    deliver_skill(const real* rho; ulong begin, n; real most; real* out; ulong first_out; uint* wrong)
    deliver_counts(const uint* image; int n_columns, symmetric, words; long* counts; ulong first_count)
"""
_MEANS = """
    deliver_means(const uint* image; int n_columns, symmetric, words; const double* present_rows, present_columns;
        int exponent; double* means; ulong first_mean)
"""


def _deliver_arguments(values: Values) -> str:
    return _ARGUMENTS + (_MEANS if values["dtype"] == "float64" else "")


DELIVER = KernelSpec(
    name="deliver",
    producer="mako",
    text="deliver.cl.mako",
    arguments=_deliver_arguments,
    launches="""
        deliver_neighbours | n | any
          rows, squared: n
          indices: first_index + n
          distances: first_distance + n
          wrong: 1
        deliver_skill | n | any
          rho: begin + n
          out: first_out + n
          wrong: 1
        deliver_counts | n_columns; rows_here | any
          image: rows_here * n_columns * words
          counts: first_count + rows_here * n_columns
        deliver_means | n_columns; rows_here | any
          image: rows_here * n_columns * words
          present_rows: rows_here
          present_columns: n_columns
          means: first_mean + rows_here * n_columns
    """,
    specialisation=("dtype",),
    oracle="pyedmcl.reference.edm:knn_float32_exact",
)


# Random sub-libraries: words of membership, sixteen samples at a time, and lists of members.


CCM_DRAW = KernelSpec(
    name="ccm_draw",
    producer="mako",
    text="ccm_draw.cl.mako",
    arguments="""
        ccm_draw(const int* columns, rows_of; int n_columns, n_rows, stride, most_choices; ushort* members)
        ccm_list(const int* columns, rows_of; int n_columns, stride; const ushort* members; int* lists)
    """,
    launches="""
        ccm_draw | round_up(n_columns * 16 / lanes, wg) | wg
          columns: 13 * n_columns
          rows_of: n_choices
          members: n_columns * stride
        ccm_list | n_columns * 16 | any
          columns: 13 * n_columns
          rows_of: n_choices
          members: n_columns * stride
          lists: lists
    """,
    specialisation=(),
    tunables=(
        Tunable("lanes", (1, 16), {"cpu": 16, "gpu": 1}, "samples of a work-item"),
        Tunable("wg", (1, 16, 32, 64, 128), {"cpu": 1, "gpu": 64}, "work-items of a group"),
    ),
    constraints=(
        Constraint(
            lambda v: v["lanes"] > 1 or v["wg"] % 16 == 0, "the samples of a word meet in the memory of one group"
        ),
    ),
    oracle="pyedmcl.reference.edm:sub_library",
)


# Skill of many random sub-libraries, found by scanning each row's sorted neighbours for their members.


SAMPLES = 16  # of a column: the bits of a word, as in ccm.clh
CCM_CHUNK = 64  # rows whose sums are taken together
SUMS = 6

CCM = KernelSpec(
    name="ccm",
    producer="mako",
    text="ccm.cl.mako",
    arguments="""
        ccm_prepare(int* near; real* dist; ulong begin, end; int n_rows)
        ccm(const int* near; const real* dist; int entries; const real* library; int library_stride, front;
            const real* future_targets; int future_stride; const int* columns, rows_of; const ushort* members;
            int stride; const int* column_of; int n_scanned, n_rows, t_begin, t_end, E, tau, exclusion_radius, least,
            n_chunks; ulong begin, end; real* sums)
        ccm_rho(const real* sums; int n_columns, n_chunks; real* rho)
    """,
    launches="""
        ccm_prepare | ceil_div(end - begin, 64) | any
          near, dist: end
        ccm | round_up(end - begin, wg) | wg
          near, dist: n_tables * n_rows * entries
          library: n_tables * library_stride
          future_targets: n_targets_held * future_stride
          columns: 13 * n_columns_held
          rows_of: n_choices
          members: n_draws_held * stride
          column_of: n_scanned
          sums: n_columns_held * n_chunks * 96
        ccm_rho | n_columns * 16 / lanes | any
          sums: n_columns * n_chunks * 96
          rho: n_columns * 16
    """,
    specialisation=("k", "dtype"),
    tunables=(
        Tunable("lanes", (1, 4, 8, 16), {"cpu": 16, "gpu": 1}, "samples of a work-item; a SIMD register on CPUs"),
        Tunable("wg", (1, 16, 32, 64, 128, 256), {"cpu": 1, "gpu": 64}, "work-items of a group"),
        Tunable("row_chains", (1, 2, 3, 4), {"cpu": 3, "gpu": 1}, "query rows that a work-item scans side by side"),
        Tunable("unroll", (1, 2, 4, 8), {"cpu": 2, "gpu": 4}, "neighbours looked at between two tests for the end"),
    ),
    oracle="pyedmcl.reference.edm:ccm_skill",
    exact=False,
)


# Skill of many small random sub-libraries, by distances to all their members.


CCM_DIRECT = KernelSpec(
    name="ccm_direct",
    producer="mako",
    text="ccm_direct.cl.mako",
    arguments="""
        ccm_direct(const real* library; int library_stride; const real* query; int query_stride, front;
            const real* future_targets; int future_stride; const int* columns, lists, sample_of; int n_sampled,
            t_begin, t_end, tau, exclusion_radius, least, n_chunks; ulong begin, end; real* sums)
    """,
    launches="""
        ccm_direct | round_up(end - begin, wg) | wg
          library: n_tables * library_stride
          query: n_tables * query_stride
          future_targets: n_targets_held * future_stride
          columns: 13 * n_columns_held
          lists: lists
          sample_of: n_sampled
          sums: n_columns_held * n_chunks * 96
    """,
    specialisation=("E", "k", "dtype"),
    tunables=(
        Tunable("lanes", (1, 4, 8, 16), {"cpu": 16, "gpu": 4}, "query rows of a work-item; a SIMD register on CPUs"),
        Tunable("vectors", (1, 2, 3, 4), {"cpu": 2, "gpu": 1}, "vectors of rows of a work-item, side by side"),
        Tunable("wg", (1, 32, 64, 128, 256), {"cpu": 1, "gpu": 64}, "work-items of a group"),
    ),
    oracle="pyedmcl.reference.edm:ccm_skill",
    exact=False,
)

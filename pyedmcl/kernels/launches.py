"""How many work-items a launch of each kernel has, and how many elements each of its buffers, as formulas.

A text has a paragraph for each entry point of a kernel's program (:func:`pyedmcl.codegen.launches.launches_of`)::

    entry | work-items; of a second dimension | of a group; of a second dimension
      buffer, another: elements

Formulas are those of :mod:`pyedmcl.codegen.usage`. They name numbers among the kernel's arguments, what its text is
made for (its values, and :func:`constants` of them) and numbers of :data:`FREE`, which the caller chooses. "any" or 0:
the driver may choose the size of groups, work-items behind the last one idle, and a multiple of 64 suits all devices.
Of ``knn``, ``lookup`` and ``recurrence_bits`` the SPECs say more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .smap_map import tile_columns

#: Numbers in formulas that no argument says.
FREE: Mapping[str, str] = {
    "groups": "work-groups: parts of the work, which several launches may share",
    "libraries": "libraries of the launch",
    "lists": "rows of all lists together",
    "n_choices": "rows of all lists to draw from",
    "n_columns_held": "columns (sub-libraries) that there is room for",
    "n_lengths_held": "lengths that are counted, with 0",
    "n_library_padded": "padded states of the library's order",
    "n_nodes": "nodes of the tree, with 16 children each",
    "n_query_steps": "rows of the query series, with those that have no state",
    "n_series_held": "series that are held",
    "n_steps_held": "rows of the library series, with those that have no state",
    "n_tables": "libraries of the tables at hand",
    "n_targets_held": "targets that are held",
    "n_values": "numbers of the data",
    "n_windows": "windows of the whole call",
    "room": "entries that there is room for; more are not written, or demand more room",
    "rows_here": "rows of the launch",
    "slots": "tiles whose moments are kept",
    "width": "columns of the launch",
}

_SMAP = """
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
LAUNCHES: Mapping[str, str] = {
    "candidates": """
    candidates | n | any
      library: library_first + n_steps_held
      query: query_first + n_query_steps
      rows, squared: n * m
      limit, open, which: n
      out_row, out_value: table + round_up(n_query_steps, tile) * stride
    tabulate | n | any
      rows, squared: n * k
      out_row, out_value: table + round_up(n, tile) * stride
    nothing | n | any
      which: n
      out_row, out_value: n_query_steps * k
    """,
    "ccm": """
    ccm_prepare | ceil_div(end - begin, 64) | any
      near, dist: end
    ccm | round_up(end - begin, wg) | wg
      near, dist: n_tables * n_rows * entries
      library: n_tables * library_stride
      future_targets: n_targets_held * future_stride
      columns: 12 * n_columns_held
      rows_of: n_choices
      members: n_columns_held * stride
      column_of: n_scanned
      sums: n_columns_held * n_chunks * 96
    ccm_rho | n_columns * 16 / lanes | any
      sums: n_columns * n_chunks * 96
      rho: n_columns * 16
    """,
    "ccm_direct": """
    ccm_direct | round_up(end - begin, wg) | wg
      library: n_tables * library_stride
      query: n_tables * query_stride
      future_targets: n_targets_held * future_stride
      columns: 12 * n_columns_held
      lists: lists
      sample_of: n_sampled
      sums: n_columns_held * n_chunks * 96
    """,
    "ccm_draw": """
    ccm_draw | round_up(n_columns * 16 / lanes, wg) | wg
      columns: 12 * n_columns
      rows_of: n_choices
      members: n_columns * stride
    ccm_list | n_columns * 16 | any
      columns: 12 * n_columns
      rows_of: n_choices
      members: n_columns * stride
      lists: lists
    """,
    "compact": """
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
    "deliver": """
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
    """,
    "predict": """
    predict | round_up(n_dims * rows_per_slot, wg) | wg
      targets: target_front + (first_series + rows_per_slot / n_rows - 1) * target_stride + n_rows
      rows, weights: k_padded * table_rows_per_slot
      predicted, variance: n_dims * rows_per_slot
    """,
    "pruned": """
    pruned | groups * wg | wg
      library: library_first + n_steps_held
      query: query_first + n_query_steps
      library_row: n_library_padded
      boxes: n_nodes * 32 * axes
      first_row: n_nodes * 16
      query_row: n_padded
      query_at: n_padded * (axes + 1)
      out_row, out_value: n_query_steps * k
      visited: begin + (groups - 1) * step + 1
    """,
    "pruned_order": """
    project | n | any
      series: first + n_steps_held
      rows, id: n
      basis: E * axes
      coordinates: n * (axes + 1)
    axes_of | nodes | any
      coordinates: n * (axes + 1)
      id: n
      axis: nodes
      place: 2 * nodes
    keys_of | n | any
      coordinates: n * (axes + 1)
      id, key: n
      axis: n_nodes
      place: 2 * n_nodes
    count | parts * wg | wg
      key: n
      counts: parts * digits
    scan | scanners | scanners
      counts: total
    scatter | parts * wg | wg
      key, id, new_key, new_id: n
      counts: parts * digits
    gather | padded | any
      rows, id: n
      coordinates: n * (axes + 1)
      row: padded
      ordered: padded * (axes + 1)
    leaf_boxes | parents * 16 | any
      row: padded
      ordered: padded * (axes + 1)
      boxes: parents * 32 * axes
      first_row: parents * 16
    upper_boxes | parents * 16 | any
      boxes: (here + parents) * 32 * axes
      first_row: (here + parents) * 16
    """,
    "recurrence_batch": """
    recurrence_batch | groups * wg | wg
      x, y: n_values
      shapes, heads: 6 * end
      limits: 2 * end
      scratch: groups * scratch_words
      taken: 2
      lines, per_column, per_diagonal: room
    """,
    "recurrence_finish": """
    finish_diagonals | groups * wg | wg
      segments: 5 * n
      lengths: 4 * n_lengths_held
    finish_join | groups * wg | wg
      a: 5 * n
      b: 5 * held
      counts: 4 * n_lengths
    finish_columns | groups * wg | wg
      columns, rows: 5 * n
      counts: 4 * n_lengths
      totals: 5 * groups
    finish_begin | n | any
      counts: 4 * n
      longest: 4
    finish_end | groups * wg; 4 | wg; 1
      counts, sums: 4 * n
      longest: 4
    """,
    "recurrence_image": """
    clear_image | n | any
      image: n
    recurrence_image | (ceil_div(n_columns, chunk_columns) - chunk_begin) * wg;
      ceil_div(piece_end - piece_begin, per_group) | wg; 1
      rows, rows64: series_of_points * row_stride
      columns, columns64: series_of_points * column_stride
      pieces: 4 * piece_end
      image: rows_here * pixels * pixel_words
      open_cells: 4 * room
      n_open: 1
      limit0s, limit1s, inner0s, inner1s, limits64, inners64: n_columns
    """,
    "recurrence_lines": """
    recurrence_lines | (groups_diagonals + groups_rows + ceil_div(n_diagonals + 32 * n_words, wg * lanes)) * wg | wg
      bits, rows: bits_begin + n_words * n_diagonals
      columns: n_words * (n_diagonals + 32 * n_words)
      diagonal_segments: 5 * (k_end - k_first)
      row_segments: select(groups_rows > 0, 5 * n_rows, 1)
      column_segments: 5 * n_columns
      histograms: 4 * (longest + 1)
    recurrence_fold | n | any
      counts, sums: n
    recurrence_clear | n | any
      segments: 5 * n
    recurrence_zero | n | any
      numbers: n
    """,
    "recurrence_network": """
    recurrence_network | round_up(words, wg); rows_here | wg; 1
      x: (n - 1) * stride + reach_of_point + 1
      bits: (row_begin + rows_here) * words
    recurrence_triangles | groups * wg | wg
      bits: n_values * words
      closed: groups
    """,
    "recurrence_ranks": """
    recurrence_ranks | round_up(n_columns, wg) | wg
      x: (row_end - 1) * stride + reach_of_point + 1
      y: (column_begin + n_columns - 1) * stride + reach_of_point + 1
      limits: select(per_column, n_columns, 1) * candidates
      counts: n_columns * candidates
    recurrence_gather | round_up(n_columns, wg) | wg
      x: (row_end - 1) * stride + reach_of_point + 1
      y: (n_columns - 1) * stride + reach_of_point + 1
      limits: 2
      found: capacity
      filled: 1
    recurrence_next | round_up(n_columns, wg) | wg
      x: (row_end - 1) * stride + reach_of_point + 1
      y: (n_columns - 1) * stride + reach_of_point + 1
      lows: n_columns
      found: n_columns * next
    """,
    "recurrence_transpose": """
    transpose_to_rows | n_diagonals / 32; n_words | any
      bits, rows: begin + n_words * n_diagonals
    transpose_to_columns | select(staged, round_up(n_diagonals / 32 + 1, wg), n_diagonals / 32 + n_words);
      n_words | staged_group; 1
      rows: begin + n_words * n_diagonals
      columns: n_words * (n_diagonals + 32 * n_words)
    """,
    "recurrence_windows": """
    column_bits | round_up(n, wg); rows_here | wg; 1
      x: (n - 1) * stride + reach_of_point + 1
      columns: n * words
    diagonal_bits | round_up(reach, wg); rows_here | wg; 1
      x: (n - 1) * stride + reach_of_point + 1
      diagonals: reach * words
    recurrence_windows | groups * counting_wg | counting_wg
      columns: ((first_window + groups - 1) * step + size) * words
      diagonals: size * words
      histograms: (first_window + groups) * 4 * (size + 1)
      per_column, per_diagonal: (first_window + groups) * size
      sums: (first_window + groups) * 4 * counting_wg
    """,
    "shared_sums": """
    shared_sums | groups * wg | wg
      library: library_first + n_steps_held
      query: query_first + n_query
      may: n_steps_held + side * tau
      asked: n_query + side * tau
      out_row, out_value: n_query * k
    """,
    "skill": """
    skill | n_pairs * wg; ceil_div(n_chunks, wg) | wg; 1
      predicted: (pair_begin + n_pairs) * n_rows
      observed: n_series_held * observed_stride
      observed_of, t_begin, t_end: pair_begin + n_pairs
      sums: n_pairs * n_chunks * 8
    """,
    "smap": _SMAP.format(name="smap"),
    "smap_shared": _SMAP.format(name="smap_shared"),
    "smap_stage": """
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
    "smap_scale": """
    smap_scale | groups * wg | wg
      query: coordinates * query_stride
      query_rows, out_nearest, out_rate, out_count, out_squared, out_row: query_stride
      library: n_library * near
      library_rows: n_library
    """,
    "smap_solve": """
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
    "smap_white": """
    smap_white | groups * wg | wg
      series: (first_library + groups) * series_stride
      allowed: n_rows + (first_library + groups - 1) * allowed_stride
      strength: select(penalised, first_library + groups, 1)
      work: (first_library + groups) * (E + 1) * n_padded
      states: (first_library + groups) * n_padded * state
      columns: (first_library + groups) * state_columns * n_padded
      penalty: select(penalised, (first_library + groups) * E * E, 1)
    """,
    "smap_gram": """
    smap_gram | groups * wg; libraries | wg; 1
      states: libraries * n_padded * state
      columns: libraries * state_columns * n_padded
      penalty: select(penalised, libraries * E * E, 1)
      fits: libraries * n_padded * (E + 3)
      doubtful: libraries
      records: select(slopes, libraries * n_padded * record, 0)
    """,
    "smap_map": """
    smap_map | ceil_div(column_end - column_begin, tile_columns) * map_group; groups; libraries | map_group; 1; 1
      states: libraries * n_padded * state
      columns: libraries * state_columns * n_padded
      fits: libraries * n_padded * (E + 3)
      targets: (first + n_rows) * target_stride
      sums: libraries * n_tiles * 6 * sums_stride
    smap_score | column_end - column_begin; libraries | any
      sums: libraries * n_tiles * 6 * sums_stride
      target_of: column_end
      rho: (first_library + libraries) * rho_stride
    """,
    "smap_slopes": """
    smap_slopes | groups * wg; libraries | wg; 1
      states: libraries * n_padded * state
      columns: libraries * state_columns * n_padded
      records: libraries * n_padded * record
      slopes: libraries * E * n_padded
    """,
    "stage": """
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
    hide_rows | n_rows; libraries | any
      rows: n_rows
      weights: table_begin + libraries * table_rows * stride
    """,
    "window_knn": """
    window_knn | groups | 1
      series: n_libraries * stride
      starts: n_windows
      cover: 2 * n_tiles
      out_row, out_value: table_begin + (last - first) * table_rows * k_stride
      kept: groups * most * 2 * k * lanes
    """,
}


def constants(kernel: str, values: Mapping[str, Any]) -> dict[str, int]:
    """What a specialised text is made for, as numbers that formulas may name."""
    v = values
    found = {name: int(value) for name, value in v.items() if isinstance(value, int)}
    if "counts" in v:
        found |= {"n_dims": len(v["counts"]), "k_padded": sum(-(-k // 4) * 4 for k in v["counts"])}
    if "bits" in v:
        found |= {"digits": 1 << v["bits"], "scanners": 256 if v["wg"] >= 128 else v["wg"]}
    if "coordinates" in v:
        found["near"] = -(-v["coordinates"] // 4) * 4
    if "E" in v and "gaps" in v:
        found |= {"state": -(-(2 * v["E"] + v["gaps"]) // 4) * 4, "state_columns": 2 * v["E"] + v["gaps"],
                  "record": ((v["E"] + 1) ** 2 + 4) // 4 * 4}  # fmt: skip
    if "regressors" in v:
        k = v["regressors"]
        found |= {"entries": k * (k + 1) // 2 + k + 3, "tile_rows": _tile_rows(kernel, v)}
    if "m" in v and "step" in v:
        found["reach_of_point"] = (v["m"] - 1) * v["step"]
    if kernel == "recurrence_image":
        found |= {"chunk_columns": v["wg"] * v["lanes"] * v["vectors"], "pixel_words": 2 if v["wide"] else 1,
                  "series_of_points": v["m"] if v["embedded"] else 1}  # fmt: skip
    if kernel == "recurrence_transpose":
        found["staged_group"] = v["wg"] if v["staged"] else 0
    if kernel == "smap_map":
        found |= {"tile_columns": tile_columns(v), "map_group": v["target_lanes"] * v["row_lanes"]}
    return found


def _tile_rows(kernel: str, v: Mapping[str, Any]) -> int:
    """Query rows whose moments of S-map lie together."""
    if kernel == "smap":
        return int(v["wg"] * v["lanes"])
    return int(v["wg"] // v["lanes_p"] * v["rq"]) if kernel == "smap_shared" else int(v.get("rows", 1))

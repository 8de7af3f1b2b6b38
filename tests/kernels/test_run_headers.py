"""Runs of recurrent cells: their headers by themselves, against the oracle's runs of a line."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from fragment_helpers import run_fragment

from pyedmcl.reference.recurrence import runs

# ---- column_runs.clh ----

COLUMN_RUNS = """
#define COUNT(bin, weight) ((bin) += (weight))
#include "column_runs.clh"
"""
COLUMN = """
  global const uchar* restrict cell = cells + i * {longest};
  global uint* restrict vertical = verticals + i * {bins};
  global uint* restrict white = whites + i * {bins};
  global uint* restrict border = borders + i * {bins};
  BEGIN_RUNS;
  for (int at = 0; at < sizes[i]; ++at)
    if (cell[at] != (at ? cell[at - 1] : 0)) {{
      END_RUN(at, cell[at]);
    }}
  END_RUNS(sizes[i]);
  const int left[4] = {{first, last_begin, last, blacks}};
  for (int k = 0; k < 4; ++k) sums[4 * i + k] = left[k];
"""


def columns():
    """All columns of up to eight cells, and some long ones with few and with many black cells."""
    short = [cells for n in range(1, 9) for cells in itertools.product((0, 1), repeat=n)]
    rng = np.random.default_rng(1)
    return [*map(np.array, short), *(rng.random(90) < share for share in (0.02, 0.2, 0.5, 0.8, 0.98) for _ in range(9))]


def test_runs_of_a_column_are_counted_by_length(device):
    several = columns()
    longest = max(map(len, several))
    cells = np.zeros((len(several), longest), np.uint8)
    for row, column in zip(cells, several, strict=True):
        row[: len(column)] = column
    sizes = np.array(list(map(len, several)), np.int32)
    kinds = ("verticals", "whites", "borders")
    outputs = {name: np.zeros((len(several), longest + 1), np.uint32) for name in kinds}
    outputs["sums"] = np.zeros((len(several), 4), np.int32)
    found = run_fragment(
        device, COLUMN_RUNS, COLUMN.format(longest=longest, bins=longest + 1), {"cells": cells, "sizes": sizes},
        outputs, items=len(several),
    )  # fmt: skip
    for place, column in enumerate(several):
        expected, blacks = {name: [0] * (longest + 1) for name in kinds}, []
        for black, begin, length in runs(column):
            at_border = begin == 0 or begin + length == len(column)
            expected["verticals" if black else "borders" if at_border else "whites"][length] += 1
            blacks += [(begin, begin + length - 1)] if black else []
        for name in kinds:
            assert found[name][place].tolist() == expected[name], (name, column)
        assert found["sums"][place, 3] == len(blacks)
        if blacks:
            assert found["sums"][place, :3].tolist() == [blacks[0][0], *blacks[-1]], column


# ---- segments.clh ----

# A line of each work-item is walked piece by piece, its segments are joined two by two in the order of `joins`, and the
# first place has what is left of them.
N_WORDS, PIECES, BEGIN, BINS = 12, 5, 1000, 64
SEGMENTS = """
#define WG ${wg}
#define BITWISE ${bitwise}
#define BINS ${bins}
#include "segments.clh"
"""
LINE = """
  local uint bins[2 * BINS];
  const int lane = get_local_id(0), group = get_group_id(0), n_lines = get_global_size(0);
  for (int b = lane; b < 2 * BINS; b += WG) bins[b] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  tally_ tally;
  tally.black = bins;
  tally.white = bins + BINS;
  tally.all_black = long_black;
  tally.all_white = long_white;
  tally.whites = whites[0];
  for (int length = 0; length <= BITWISE; ++length) tally.short_black[length] = tally.short_white[length] = 0;
  segment_ piece[${pieces}];
  for (int p = 0; p < ${pieces}; ++p) {
    const int first = cuts[i * ${pieces + 1} + p], stop = cuts[i * ${pieces + 1} + p + 1];
    const int position = ${begin} + 32 * first;
    line_ line;
    line.first = 0x7fffffff;
    line.last = position;
    line.count = 0;
    uint before = 0;
    for (int w = first; w < stop; ++w) {
      const uint word = words[w * n_lines + i], edges = word ^ (word << 1 | before >> 31);
      line.count += popcount(word);
      if (edges) count_runs_of_word(&line, &tally, word, edges, (int)before < 0, ${begin} + 32 * w);
      before = word;
    }
    piece[p].first_start = -1;
    piece[p].count = 0;
    if (line.count)
      piece[p] =
          segment_of(line, &tally, words + first * n_lines + i, n_lines, stop - first, position, (int)before < 0);
  }
  for (int k = 0; k < ${pieces - 1}; ++k) {
    const int a = joins[(i * ${pieces - 1} + k) * 2], b = joins[(i * ${pieces - 1} + k) * 2 + 1];
    piece[a] = join(piece[a], piece[b], &tally);
  }
  const segment_ s = piece[0];
  const int fields[5] = {s.first_start, s.first_end, s.last_start, s.last_end, s.count};
  for (int field = 0; field < 5; ++field) segments[i * 5 + field] = fields[field];
  flush_short(&tally);
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int b = lane; b < BINS; b += WG) {
    short_black[group * BINS + b] = bins[b];
    short_white[group * BINS + b] = bins[BINS + b];
  }
"""


def lines():
    """Lines of all densities, of runs that are longer than the bins, and with a single cell or colour."""
    rng, n = np.random.default_rng(2), 32 * N_WORDS
    several = [rng.random(n) < share for share in np.linspace(0.02, 0.98, 28)]
    for shortest, longest in ((1, 2), (2, 4), (30, 60), (BINS - 1, BINS + 1), (BINS, 2 * BINS)):
        for _ in range(6):
            lengths = rng.integers(shortest, longest + 1, n)
            several.append(np.repeat(np.arange(n) % 2, lengths)[:n] == 1)
    several += [np.zeros(n, bool), np.ones(n, bool)]
    several += [np.arange(n) == at for at in (0, 31, 32, n - 1)]
    return np.array(several)


def pieces_of(n_lines):
    """Where each line is cut, and the order in which neighbouring pieces are joined."""
    rng = np.random.default_rng(3)
    cuts = np.zeros((n_lines, PIECES + 1), np.int32)
    joins = np.zeros((n_lines, PIECES - 1, 2), np.int32)
    for line in range(n_lines):
        cuts[line, 1:-1] = np.sort(rng.integers(0, N_WORDS + 1, PIECES - 1))  # some are empty
        cuts[line, -1] = N_WORDS
        left = list(range(PIECES))
        for step in range(PIECES - 1):
            a = int(rng.integers(len(left) - 1))
            joins[line, step] = left[a], left.pop(a + 1)
    return cuts, joins


@pytest.mark.parametrize("whites", [0, 1])
@pytest.mark.parametrize(("wg", "bitwise"), [(1, 0), (1, 1), (1, 2), (1, 4), (16, 2)])
def test_pieces_of_a_line_are_joined_in_any_order(device, wg, bitwise, whites):
    """Final are all runs but the first black one and the last, which may go on elsewhere; they are in the segment."""
    cells = lines()
    n_lines, n = cells.shape
    cuts, joins = pieces_of(n_lines)
    words = np.packbits(cells, axis=1, bitorder="little").view("<u4").astype(np.uint32)
    names = ("short_black", "short_white", "long_black", "long_white")
    outputs = {
        name: np.zeros((n_lines // wg, BINS) if name.startswith("short") else n + 1, np.uint32) for name in names
    }
    outputs["segments"] = np.zeros((n_lines, 5), np.int32)
    found = run_fragment(
        device, SEGMENTS, LINE,
        {"words": words.T, "cuts": cuts, "joins": joins, "whites": np.array([whites], np.int32)}, outputs,
        items=n_lines, group=wg, wg=wg, bitwise=bitwise, bins=BINS, pieces=PIECES, begin=BEGIN,
    )  # fmt: skip
    histograms = {True: np.zeros(n + 1, int), False: np.zeros(n + 1, int)}
    for line, segment in zip(cells, found["segments"].tolist(), strict=True):
        blacks = [(start, start + length) for black, start, length in runs(line) if black]
        if not blacks:
            assert segment[0] == -1 and segment[4] == 0
            continue
        ends = [BEGIN + at for run in (blacks[0], blacks[-1]) for at in run]
        assert segment == [*ends, int(line.sum())]
        for start, end in blacks[1:-1]:
            histograms[True][end - start] += 1
        for (_, end), (start, _) in itertools.pairwise(blacks):
            histograms[False][start - end] += whites
    for black, name in ((True, "black"), (False, "white")):
        np.testing.assert_array_equal(found[f"short_{name}"].sum(axis=0), histograms[black][:BINS])
        np.testing.assert_array_equal(found[f"long_{name}"], np.where(np.arange(n + 1) < BINS, 0, histograms[black]))
        assert histograms[black][BINS:].any() == (black or bool(whites))


def test_the_ends_of_a_run_are_found_in_the_words_around_a_cell(device):
    cells = lines()
    words = np.packbits(cells, axis=1, bitorder="little").view("<u4").astype(np.uint32)
    line, cell = np.nonzero(cells)
    body = f"""
  begins[i] = run_start(words + line[i] * {N_WORDS}, 1, cell[i]);
  ends[i] = run_end(words + line[i] * {N_WORDS}, 1, {N_WORDS}, cell[i]);
"""
    inputs = {"words": words, "line": line.astype(np.int32), "cell": cell.astype(np.int32)}
    outputs = {name: np.zeros(len(cell), np.int32) for name in ("begins", "ends")}
    found = run_fragment(device, SEGMENTS, body, inputs, outputs, items=len(cell), wg=1, bitwise=2, bins=BINS)
    expected = {(k, at): (start, start + length) for k in range(len(cells)) for black, start, length in runs(cells[k])
                for at in range(start, start + length) if black}  # fmt: skip
    assert list(zip(found["begins"], found["ends"], strict=True)) == [
        expected[key] for key in zip(line, cell, strict=True)
    ]


# ---- segment_join.clh ----

# Each work-item joins the segments of two pieces of a line, and counts final runs of both colours in a list of its own.
N_CELLS = 10
JOIN = """
typedef struct {
  global int* final;
  int whites;
} tally_;
inline void count_final(const tally_* tally, const int black, const int length) {
  ++tally->final[2 * length + black];
}
#include "segment_join.clh"
"""
PAIR = """
  const tally_ tally = {{final + i * {bins}, whites[0]}};
  segment_ piece[2];
  for (int p = 0; p < 2; ++p) {{
    global const int* from = pieces + (2 * i + p) * 5;
    piece[p].first_start = from[0];
    piece[p].first_end = from[1];
    piece[p].last_start = from[2];
    piece[p].last_end = from[3];
    piece[p].count = from[4];
  }}
  const segment_ s = join(piece[0], piece[1], &tally);
  const int fields[5] = {{s.first_start, s.first_end, s.last_start, s.last_end, s.count}};
  for (int field = 0; field < 5; ++field) joined[i * 5 + field] = fields[field];
"""


def segment_and_final(cells, begin):
    """The segment of a piece that begins at a position, and its final runs as [length][white, black]."""
    blacks = [(start, start + length) for black, start, length in runs(cells) if black]
    final = np.zeros((N_CELLS + 1, 2), int)
    if not blacks:
        return [-1, 0, 0, 0, 0], final
    for start, end in blacks[1:-1]:
        final[end - start, 1] += 1
    for (_, end), (start, _) in itertools.pairwise(blacks):
        final[start - end, 0] += 1
    return [*(begin + at for run in (blacks[0], blacks[-1]) for at in run), int(np.sum(cells))], final


@pytest.mark.parametrize("whites", [0, 1])
def test_two_pieces_give_the_segment_of_the_line_and_count_what_becomes_final(device, whites):
    """All lines of ten cells, each cut at every place."""
    pieces, expected, finals = [], [], []
    for cells in map(np.array, itertools.product((0, 1), repeat=N_CELLS)):
        whole, final = segment_and_final(cells, 0)
        for cut in range(1, N_CELLS):
            (a, final_a), (b, final_b) = segment_and_final(cells[:cut], 0), segment_and_final(cells[cut:], cut)
            pieces.append([a, b])
            expected.append(whole)
            finals.append((final - final_a - final_b) * [whites, 1])
    found = run_fragment(
        device, JOIN, PAIR.format(bins=2 * (N_CELLS + 1)),
        {"pieces": np.array(pieces, np.int32), "whites": np.array([whites], np.int32)},
        {"joined": np.zeros((len(pieces), 5), np.int32), "final": np.zeros((len(pieces), N_CELLS + 1, 2), np.int32)},
        items=len(pieces),
    )  # fmt: skip
    np.testing.assert_array_equal(found["joined"], expected)
    np.testing.assert_array_equal(found["final"], finals)


# ---- transpose.clh ----


def test_bits_are_transposed(device):
    """Of random blocks, and of each block that has one bit only."""
    random = np.random.default_rng(4).integers(0, 2, (8, 32, 32))
    bits = np.concatenate([random, np.eye(1024, dtype=int).reshape(-1, 32, 32)]).astype(np.uint8)
    body = """
  uint a[32];
  for (int r = 0; r < 32; ++r) a[r] = words[32 * i + r];
  transpose32(a);
  for (int c = 0; c < 32; ++c) transposed[32 * i + c] = a[c];
"""
    words = np.packbits(bits, axis=2, bitorder="little").view("<u4").astype(np.uint32)
    found = run_fragment(
        device,
        '#include "transpose.clh"',
        body,
        {"words": words},
        {"transposed": np.zeros_like(words)},
        items=len(words),
    )["transposed"]
    expected = np.packbits(bits.swapaxes(1, 2), axis=2, bitorder="little").view("<u4")
    np.testing.assert_array_equal(found, expected)

"""The kernels of recurrence analysis one by one, for ragged shapes, tile edges and tuned parameters."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from recurrence_parts import cells_of, count_rows, differences, partial_of, problem_of, reports_of, series

import pyedmcl
from pyedmcl.device.memory import MemoryBudget
from pyedmcl.device.select import open_device
from pyedmcl.errors import DeviceMemoryError
from pyedmcl.kernels import spec
from pyedmcl.kernels.build import text_for
from pyedmcl.recurrence import sweep as finishing
from pyedmcl.recurrence import sweep as sweeps
from pyedmcl.recurrence.engine import combine, quantify
from pyedmcl.recurrence.sweep import Tile, TileSweep
from pyedmcl.tuning.parameters import source


@pytest.fixture
def sweep_of(device):
    """``sweep_of(problem, x, y, tile)``; released after the test."""
    held = []

    def make(*given):
        held.append(TileSweep(open_device(device), *given))
        return held[-1]

    yield make
    for sweep in held:
        sweep.release()


def words(sweep, buffer, shape):
    return sweep.executor.download(buffer, np.empty(shape, np.uint32))


def bit(values, b):
    return (values >> np.uint32(b)).astype(np.uint32) & 1


BITS = [
    {}, {"lanes": 1, "wg": 32, "words": 1, "staged": False, "transposed": False},
    {"lanes": 1, "wg": 64, "words": 4, "staged": True, "transposed": True},
    {"lanes": 8, "wg": 1, "words": 2, "staged": False, "transposed": False},
    {"lanes": 4, "wg": 1, "words": 32, "most_shared": 0, "staged": False, "transposed": False},
]  # fmt: skip


@pytest.mark.parametrize("parameters", BITS, ids=range(len(BITS)))
@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize("shape", [(70, None), (70, 45), (33, 150)])
def test_bits_are_the_cells_of_the_tile(sweep_of, shape, everywhere, parameters):
    n, m = shape
    problem = problem_of(n, m, theiler=3, everywhere=everywhere)
    x, y = series(n, 1), None if m is None else series(m, 2)
    x[9] = np.nan
    with np.errstate(invalid="ignore"):
        cells = cells_of(problem, x, y)
    with source.using(recurrence_bits=parameters):
        sweep = sweep_of(problem, x, y, 64)
    seen = 0
    for tile in sweep.tiles(0, n):
        i0, n_words, k0, n_diagonals = tile
        sweep._find_bits(tile, n)
        found = words(sweep, sweep._bits, (n_words, n_diagonals))
        by_row = words(sweep, sweep._rows, (n_diagonals // 32, n_words, 32)) if sweep._rows_made else None
        for b in range(32):
            for w in range(n_words):
                i, j = i0 + 32 * w + b, i0 + 32 * w + b + k0 + np.arange(n_diagonals)
                wanted = np.zeros(n_diagonals, np.uint32)
                if i < n:
                    inside = (j >= 0) & (j < problem.n_columns)
                    wanted[inside] = cells[i, j[inside]]
                # Blocks of 32 x 32 cells behind the last column are not written, and not read.
                some = np.arange(n_diagonals) // 32 * 32 + i0 + 32 * w + k0 < problem.n_columns
                np.testing.assert_array_equal(bit(found[w], b)[some], wanted[some])
                assert not wanted[~some].any()
                seen += int(wanted.sum())
                if by_row is not None:
                    row = np.array([bit(by_row[k // 32, w, b], k % 32) for k in range(n_diagonals)])
                    np.testing.assert_array_equal(row[some], wanted[some])
    above = np.triu(cells) if m is None else cells
    assert seen == above.sum(), "the tiles hold each cell once"


def test_points_of_many_coordinates_are_staged_too(device):
    """Names of the staged terms once hid an argument from the 64th term on, and nothing compiled on a GPU."""
    x = series(400, 5)
    wanted = pyedmcl.rqa(x, m=12, tau=3, radius=3.0, device=device)
    with source.watching(), source.using(recurrence_bits={**BITS[2], "most_shared": 96}):
        found = pyedmcl.rqa(x, m=12, tau=3, radius=3.0, device=device)
    assert found.provenance["tuning"]["recurrence_bits"][0]["parameters"]["staged"]
    assert 0.05 < wanted.RR < 0.95
    np.testing.assert_array_equal(found.counts.diagonals, wanted.counts.diagonals)


X, Y = series(150, 5), series(150, 6)
GROUP = {"lanes": 1, "wg": 128, "words": 8, "staged": True, "transposed": True}
SEVERAL = {
    "series": ({}, lambda r, **o: pyedmcl.rqa(X, m=3, tau=2, radius=r, **o)),
    "float64": (BITS[3], lambda r, **o: pyedmcl.rqa(X, m=3, tau=2, radius=r, dtype="float64", **o)),
    "not exact": (GROUP, lambda r, **o: pyedmcl.rqa(X, m=3, tau=2, radius=r, exact=False, convention="crqa", **o)),
    "few words": (BITS[2], lambda r, **o: pyedmcl.rqa(X, m=3, tau=2, radius=r, **o)),
    "points": (GROUP, lambda r, **o: pyedmcl.rqa(np.column_stack([X, Y]), radius=r, embedded=True, **o)),
    "corridor": (GROUP, lambda r, **o: pyedmcl.rqa(
        X, m=3, tau=2, radius=[(one / 2, one) for one in r], threshold="corridor", **o)),
    "joint": (GROUP, lambda r, **o: pyedmcl.joint_rqa(X, Y, m=2, radius=r, **o)),
    "cross": (BITS[4], lambda r, **o: pyedmcl.rqa(X, Y[:90], m=3, tau=2, radius=r, **o)),
}  # fmt: skip


@pytest.mark.parametrize("case", SEVERAL)
def test_several_radii_are_counted_as_single_ones(device, case):
    """Their number is an argument of one text; words of 16 radii are transposed together."""
    parameters, call = SEVERAL[case]
    radii = list(np.linspace(0.2, 2.5, 19))
    with source.using(recurrence_bits=parameters):
        found = call(radii, device=device)
        few = call(radii[3:5], device=device)
    for place in (0, 3, 4, 15, 16, 18):
        (wanted,) = call([radii[place]], device=device)
        assert place == 0 or wanted.recurrences.any()
        for one in [found[place], *([few[place - 3]] if place in (3, 4) else [])]:
            for name in ("diagonals", "verticals", "whites", "columns", "per_diagonal"):
                np.testing.assert_array_equal(getattr(one.counts, name), getattr(wanted.counts, name))


def test_radii_are_data_and_not_text(one_device):
    """So that a compiler is not asked again, and the longer the more radii there are."""
    given = {
        "m": 5, "tau": 3, "metric": "euclidean", "dtype": "float32", "embedded": False, "exact": True, "strict": True,
        "corridor": False, "per_column": False, "second_partner": False, "limits_per_radius": 2, "coordinates": 1,
    }  # fmt: skip
    for kind in ("cpu", "gpu"):
        values = spec("recurrence_bits").defaults(kind) | given
        info = open_device(one_device).info
        two, many = (text_for(spec("recurrence_bits"), {**values, "n_radii": n}, info) for n in (2, 48))
        assert two == many


TRANSPOSES = [{"staged": False, "wg": 1}, *({"staged": True, "wg": wg} for wg in (1, 32, 64))]


@pytest.mark.parametrize("parameters", TRANSPOSES, ids=range(len(TRANSPOSES)))
@pytest.mark.parametrize(("n_words", "n_diagonals", "k0"), [(1, 32, 0), (3, 64, 0), (2, 160, 32), (4, 32, -64)])
def test_transposed_words(sweep_of, n_words, n_diagonals, k0, parameters):
    """Random bits: rows hold them by diagonal, columns by column, without the main diagonal where rows have it."""
    problem = problem_of(400, None if k0 >= 0 else 400)
    with source.using(recurrence_transpose=parameters, recurrence_bits={"transposed": False}):
        sweep = sweep_of(problem, series(400, 1), None if k0 >= 0 else series(400, 2), 160)
    assert not sweep._rows_made
    bits = np.random.default_rng(n_words).integers(0, 1 << 32, (n_words, n_diagonals), dtype=np.uint32)
    sweep.executor.upload(bits, sweep._bits)
    sweep._transpose(Tile(0, n_words, k0, n_diagonals), 0)
    rows = words(sweep, sweep._rows, (n_diagonals // 32, n_words * 32))
    width = n_diagonals + 32 * n_words
    columns = words(sweep, sweep._columns, (n_words, width))
    cells = np.zeros((32 * n_words, width), np.uint32)
    for i in range(32 * n_words):
        cells[i, i : i + n_diagonals] = bit(bits[i // 32], i % 32)
        np.testing.assert_array_equal([bit(rows[k // 32, i], k % 32) for k in range(n_diagonals)],
                                      cells[i, i : i + n_diagonals])  # fmt: skip
    if problem.symmetric and k0 == 0:
        cells[np.arange(32 * n_words), np.arange(32 * n_words)] = 0
    for w in range(n_words):
        some = slice(32 * w, 32 * w + 32 + n_diagonals)  # others are not written, and not read
        for b in range(32):
            np.testing.assert_array_equal(bit(columns[w, some], b), cells[32 * w + b, some])


ONE_BY_ONE = {"batch": 1, "bitwise": 0}
LINES = [
    {}, {"lanes": 4, "wg": 1, "bins": 64, **ONE_BY_ONE}, {"lanes": 1, "wg": 1, "batch": 1, "bins": 64, "bitwise": 3},
    {"lanes": 1, "wg": 32, "batch": 8, "bitwise": 0}, {"lanes": 8, "wg": 32, **ONE_BY_ONE},
    {"lanes": 16, "wg": 1, **ONE_BY_ONE},
    {"lanes": 1, "wg": 64, "batch": 16, "bitwise": 4}, {"lanes": 1, "wg": 256, "batch": 2, "bins": 64, "bitwise": 2},
]  # fmt: skip


@functools.cache
def lines_by_hand():
    """Problems with their series, and lines of some of their rows, looked at one by one."""
    found = []
    for at, (n, m, radius, theiler) in enumerate(
        [(150, None, 0.5, 0), (131, None, 100.0, 2), (90, 200, 0.3, 4), (200, 65, 1.0, 0), (40, 1, 0.5, 0)]
    ):
        problem = problem_of(n, m, radius=radius, theiler=theiler)
        x, y = series(n, at), None if m is None else series(m, at + 9)
        cells, quiet = cells_of(problem, x, y), max(theiler, 1) if m is None else theiler
        for rows in ((0, n), (32, min(n, 96))):
            found.append((problem, x, y, rows, partial_of(cells, *rows, symmetric=m is None, theiler=quiet)))
    return found


@pytest.mark.parametrize("parameters", LINES, ids=range(len(LINES)))
def test_lines_of_some_rows(device, parameters):
    """Every first run, last run and histogram of some rows, against lines looked at one by one."""
    executor = open_device(device)
    with source.using(recurrence_lines=parameters):
        for problem, x, y, rows, wanted in lines_by_hand():
            for tile in (32, 64, 4096):
                (found,) = count_rows(executor, problem, x, y, rows, tile=tile)
                assert differences(found, wanted) == [], (len(x), y is None, rows, tile)


@functools.cache
def turning(theiler, kind):
    """A problem and its series, whose lines turn at every cell, with its lines by hand."""
    n = 700
    problem = problem_of(n, theiler=theiler)
    x = np.zeros(n)
    x[1::2] = 5.0  # a checkerboard
    if kind == "diagonals":  # of pairs: cells of a diagonal alternate, too
        x = np.repeat(x[: n // 2], 2)
    return problem, x, partial_of(cells_of(problem, x, None), 0, n, symmetric=True, theiler=max(theiler, 1))


@pytest.mark.parametrize("parameters", LINES, ids=range(len(LINES)))
@pytest.mark.parametrize("theiler", [0, 3])
@pytest.mark.parametrize("kind", ["columns", "diagonals"])
def test_lines_that_turn_at_every_cell(device, parameters, theiler, kind):
    """Whatever a walk lists of a line runs full many times."""
    problem, x, wanted = turning(theiler, kind)
    executor = open_device(device)
    with source.using(recurrence_lines=parameters):
        for tile in (96, 4096):
            (found,) = count_rows(executor, problem, x, None, (0, len(x)), tile=tile)
            assert differences(found, wanted) == [], tile


@pytest.mark.parametrize("radius", [1e-9, 0.3, 1.0, 100.0], ids=["none", "few", "some", "all"])
@pytest.mark.parametrize("theiler", [0, 1, 40, 299])
@pytest.mark.parametrize("shape", [(300, None), (300, 37), (37, 300), (1, 300), (300, 1)])
def test_lines_finished_on_the_device_and_on_the_host(device, shape, theiler, radius, monkeypatch):
    """The last step of one device against that of several: columns without a cell, whole ones, runs across the seam."""
    n, m = shape
    if theiler >= max(n, m or 1):
        theiler = 3
    problem = problem_of(n, m, radius=radius, theiler=theiler, everywhere=theiler == 1)
    x, y = series(n, 1), None if m is None else series(m, 2) + 0.1
    x[n // 3 : n // 3 + 5] = np.nan
    executor = open_device(device)
    wanted = combine(problem, [count_rows(executor, problem, x, y, (0, n), tile=96)], x)
    for groups in ((1, 32), (128, 1024), (32, 2)):
        monkeypatch.setattr(finishing, "_SHAPES", {"cpu": groups, "gpu": groups})
        whole = quantify(executor, problem, x, y, tile=64)
        assert whole == wanted, (groups, whole[0].differences(wanted[0]))
        assert all(getattr(whole[0], name)[0] == 0 for name in ("diagonals", "verticals", "whites", "white_borders"))
        cuts = [*range(0, n, 32), n]
        for bounds in (cuts, cuts[:1] + cuts[2:]) if len(cuts) > 2 else (cuts,):
            parts = [count_rows(executor, problem, x, y, rows, tile=96) for rows in itertools.pairwise(bounds)]
            joined = combine(problem, parts[::-1], x, executor)
            assert joined == wanted, (groups, bounds, joined[0].differences(wanted[0]))


def test_devices_take_rows_in_any_order_and_edge(both_devices):
    problem, x = problem_of(300, theiler=2), series(300, 6)
    executors = [open_device(name) for name in both_devices]
    whole = quantify(executors[0], problem, x)
    ranges = [(256, 300), (32, 160), (0, 32), (160, 256)]
    parts = [
        count_rows(executors[place % 2], problem, x, None, rows, tile=(32, 96, 64, None)[place])
        for place, rows in enumerate(ranges)
    ]
    assert combine(problem, parts, x) == whole
    again, seen = reports_of(lambda: quantify(executors * 8, problem, x, tile=32))
    assert again == whole, "more devices than words of rows"
    assert all(done <= total == 300 * 301 // 2 for done, total, _ in seen)


def test_a_device_that_fails_is_heard(both_devices, monkeypatch):
    executors = [open_device(name) for name in both_devices]
    run = TileSweep.run

    def failing(self, begin, end, told=None):
        if begin:
            raise DeviceMemoryError("the second device is full")
        return run(self, begin, end, told)

    monkeypatch.setattr(TileSweep, "run", failing)
    with pytest.raises(DeviceMemoryError, match="second device"):
        quantify(executors, problem_of(200), series(200, 1))


@pytest.mark.parametrize(("spare", "cells", "edge"), [
    (1 << 30, 1, 320), (0, 1 << 15, 320), (100**2, 1, 96), (0, 200, 160), (0, 1, 32),
])  # fmt: skip
def test_tiles_that_are_not_kept_are_as_large_as_the_matrix_repays(one_device, monkeypatch, spare, cells, edge):
    """The tuned edge of 320 is halved; one that was asked for is not. Counts are the same."""
    executor, problem, x = open_device(one_device), problem_of(500), series(500, 7)
    tuned = TileSweep._values_of
    monkeypatch.setattr(TileSweep, "_values_of", lambda *given, **more: tuned(*given, **more) | {"edge": 320})
    whole = quantify(executor, problem, x)
    monkeypatch.setattr(sweeps, "spare_bytes", lambda info: spare)
    monkeypatch.setattr(sweeps, "_CELLS_A_ROW", cells)
    for tile, expected in ((None, edge), (256, 256)):
        sweep = TileSweep(executor, problem, x, None, tile)
        assert sweep.edge == expected
        sweep.release()
    assert quantify(executor, problem, x) == whole


def test_tiles_shrink_with_memory_and_count_the_same(one_device, monkeypatch):
    executor, problem, x = open_device(one_device), problem_of(500), series(500, 7)
    whole = quantify(executor, problem, x)

    def allow(nbytes):
        monkeypatch.setattr(sweeps, "budget", lambda info: MemoryBudget(nbytes, nbytes))

    allow(100_000)
    sweep = TileSweep(executor, problem, x, None)
    assert 32 <= sweep.edge < 500 and sweep.edge % 32 == 0
    sweep.release()
    assert quantify(executor, problem, x) == whole
    allow(1_000)
    with pytest.raises(DeviceMemoryError, match=r"32 x 32 cells for one radius needs 512 bytes; 500 may be used"):
        quantify(executor, problem, x)
    allow(20_000)
    with pytest.raises(DeviceMemoryError, match=r"500 x 500 cells for one radius need .* bytes on the device"):
        quantify(executor, problem, x)


def test_a_run_goes_on_with_another_device_edge_and_parameters(both_devices, tmp_path, monkeypatch):
    from pyedmcl.errors import Interrupted
    from pyedmcl.recurrence import engine

    monkeypatch.setattr(engine, "_FIRST_CELLS", 1)
    monkeypatch.setattr(engine, "_BLOCK_SECONDS", 0.0)
    write, stops = engine.write, 0

    def killed(*given):
        write(*given)
        raise KeyboardInterrupt

    x, file = series(200, 8), tmp_path / "run"
    whole = pyedmcl.rqa(x, radius=0.5, device=both_devices[0]).counts
    monkeypatch.setattr(engine, "write", killed)
    while True:
        options = {"tile": (32, 64, None)[stops % 3], "device": both_devices[stops % 2]}
        try:
            with source.using(recurrence_lines=LINES[stops % len(LINES)]):
                found = pyedmcl.rqa(x, radius=0.5, checkpoint=file, **options)
        except Interrupted:
            stops += 1
        else:
            break
    assert stops >= 6 and found.counts == whole

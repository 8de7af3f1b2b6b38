"""The order of neighbours, and lists and buffers that are kept in it: headers by themselves, against NumPy."""

from __future__ import annotations

import functools
import itertools
import re

import numpy as np
import pytest
from fragment_helpers import run_fragment

from pyedmcl.kernels import texts
from pyedmcl.kernels.texts import SENTINELS
from pyedmcl.reference.edm import nearest_first

DTYPES = ("float32", "float64")
LANES = (1, 4, 8, 16)
NOWHERE = SENTINELS["NOWHERE"]


def rows_of(dtype):
    """The type of a row number on the device, which is as wide as a distance."""
    return np.int32 if dtype == "float32" else np.int64


def candidates(dtype, count, lanes, seed):
    """Distances with many ties, and as many different rows, as (candidate, lane)."""
    rng = np.random.default_rng(seed)
    distances = rng.integers(0, max(count // 4, 2), (count, lanes)).astype(dtype)
    rows = np.argsort(rng.random((count, lanes)), axis=0).astype(rows_of(dtype))
    return distances, rows


def nearest(distances, rows, k):
    """The k first by (distance, row) of each lane; NOWHERE and -1 where there are fewer."""
    listed = np.full((k, distances.shape[1]), NOWHERE, distances.dtype)
    named = np.full((k, distances.shape[1]), -1, rows.dtype)
    for lane in range(distances.shape[1]):
        ascending = np.argsort(rows[:, lane])
        order = ascending[nearest_first(distances[ascending, lane], k)]
        listed[: len(order), lane], named[: len(order), lane] = distances[order, lane], rows[order, lane]
    return listed, named


def expected_type(dtype, k, lanes):
    return {"listed": np.zeros((k, lanes), dtype), "named": np.zeros((k, lanes), rows_of(dtype))}


# Lists that are kept by sorted insertion: their length, the candidates, whether these come in the order of their rows
# (which need not be compared then), how the loop is written and whether it ends early.
INSERTIONS = {
    "unrolled": (5, 60, "COMES_BEFORE", "UNROLL_LIST", 0), "rolled": (12, 7, "COMES_BEFORE", "ROLL_LIST", 1),
    "single": (1, 9, "COMES_BEFORE", "AS_IT_LIKES", 0), "ascending": (6, 60, "IS_NEARER", "UNROLL_LIST", 0),
}  # fmt: skip
INSERTION = """
  {{
    realv distances[{k}];
    rowv rows_of_list[{k}];
    for (int place = 0; place < {k}; ++place) {{ distances[place] = NOWHERE; rows_of_list[place] = -1; }}
    for (int c = 0; c < {count}; ++c) {{
      const realv new_distance = LOADV(d_{name} + c * LANES);
      const rowv new_row = LOADV(j_{name} + c * LANES);
      INSERT_SORTED({precedes}, {loop}, {ends_early}, {k}, distances, rows_of_list, new_distance, new_row);
    }}
    for (int place = 0; place < {k}; ++place) {{
      STOREV(distances[place], listed_{name} + place * LANES);
      STOREV(rows_of_list[place], named_{name} + place * LANES);
    }}
  }}
"""


def inserting(dtype, lanes, name):
    """Candidates of a row of :data:`INSERTIONS`."""
    k, count, precedes, *_ = INSERTIONS[name]
    d, j = candidates(dtype, count, lanes, k)
    if precedes == "IS_NEARER":
        j = np.repeat(np.arange(count, dtype=rows_of(dtype))[:, None], lanes, axis=1)
    return d, j


@functools.cache
def inserted(device, dtype, lanes):
    """The lists of all rows of :data:`INSERTIONS`, by one program."""
    inputs, outputs, body = {}, {}, ""
    for name, (k, count, precedes, loop, ends_early) in INSERTIONS.items():
        inputs[f"d_{name}"], inputs[f"j_{name}"] = inserting(dtype, lanes, name)
        outputs |= {f"{kind}_{name}": values for kind, values in expected_type(dtype, k, lanes).items()}
        body += INSERTION.format(name=name, k=k, count=count, precedes=precedes, loop=loop, ends_early=ends_early)
    return run_fragment(device, '#include "order.clh"', body, inputs, outputs, dtype=dtype, lanes=lanes)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("name", INSERTIONS)
def test_sorted_insertion_orders_by_distance_and_row(device, dtype, lanes, name):
    found = inserted(device, dtype, lanes)
    listed, named = nearest(*inserting(dtype, lanes, name), INSERTIONS[name][0])
    np.testing.assert_array_equal(found[f"listed_{name}"], listed)
    np.testing.assert_array_equal(found[f"named_{name}"], named)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("stride", [1, 3])
def test_insertion_of_single_numbers(device, dtype, stride):
    k, count = 5, 40
    d, j = candidates(dtype, count, 1, 4)
    body = f"""
  real distances[{k * stride}];
  whole rows_of_list[{k * stride}];
  int held = 0;
  for (int c = 0; c < {count}; ++c) {{
    const int end = {(k - 1) * stride};
    if (held == {k} && !COMES_BEFORE(d[c], j[c], distances[end], rows_of_list[end])) continue;
    const int last = held < {k} ? held++ : {k - 1};
    INSERT_SCALAR(COMES_BEFORE, {stride}, last, distances, rows_of_list, d[c], j[c]);
  }}
  for (int place = 0; place < {k}; ++place) {{
    listed[place] = distances[place * {stride}];
    named[place] = rows_of_list[place * {stride}];
  }}
"""
    found = run_fragment(
        device, '#include "order.clh"', body, {"d": d, "j": j}, expected_type(d.dtype, k, 1), dtype=dtype
    )
    for name, expected in zip(("listed", "named"), nearest(d, j, k), strict=True):
        np.testing.assert_array_equal(found[name], expected)


def test_the_order_of_neighbours_is_that_of_distance_and_then_of_row():
    distances = np.array([[2.0, 1.0, 2.0, 0.0, 1.0], [0.0, 0.0, np.inf, 0.0, np.nan]])
    assert nearest_first(distances).tolist() == [[3, 1, 4, 0, 2], [0, 1, 3, 2, 4]]
    assert nearest_first(distances, 2).tolist() == [[3, 1], [0, 1]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_comes_after_the_last_neighbour_is_what_the_host_leaves_out(device, dtype):
    """Each of 40 candidates, of which a quarter have the distance of another one, is compared with the k-th of them."""
    d, j = candidates(dtype, 40, 1, 5)
    listed, named = nearest(d, j, 40)
    last = np.array([1, 6, 20, 40]) - 1
    inputs = {"d": d, "j": j, "last_distance": listed[last], "last_row": named[last]}
    body = """
  const int candidate = i % 40, k = i / 40;
  after[i] = COMES_AFTER(d[candidate], j[candidate], last_distance[k], last_row[k]);
  before[i] = COMES_BEFORE(d[candidate], j[candidate], last_distance[k], last_row[k]);
  smaller_only[i] = ONLY_SMALLER_ROWS(last_distance[k], last_row[k], j[candidate]);
"""
    outputs = {name: np.zeros((4, 40), np.int32) for name in ("after", "before", "smaller_only")}
    found = run_fragment(device, '#include "order.clh"', body, inputs, outputs, items=160, dtype=dtype)
    place = np.array([named[:, 0].tolist().index(row) for row in j[:, 0]])
    np.testing.assert_array_equal(found["after"] != 0, place > last[:, None])
    np.testing.assert_array_equal(found["before"] != 0, place < last[:, None])
    assert listed[last[0], 0] == 0 < listed[last[-1], 0]
    np.testing.assert_array_equal(found["smaller_only"] != 0, (listed[last] == 0) & (j[:, 0] > named[last]))


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_bound_of_a_full_list_is_a_number_below_its_last_distance(device, dtype, lanes):
    """A list that ends at distance 0 admits nothing, and one with an empty place whatever has a state."""
    number = np.dtype(dtype).type
    kth = np.resize(np.array([0.0, 1e-3, 2.5, NOWHERE], dtype), (4, max(lanes, 4)))
    body = "  STOREV(BOUND_OF_FULL(LOADV(kth + i * LANES)), bound + i * LANES);\n"
    found = run_fragment(
        device, '#include "order.clh"', body, {"kth": kth}, {"bound": np.zeros_like(kth)}, items=kth.size // lanes,
        dtype=dtype, lanes=lanes,
    )  # fmt: skip
    below = np.nextafter(kth, number(-1))
    below[kth == 0], below[kth >= NOWHERE / 2] = -1, SENTINELS["FAR"]
    np.testing.assert_array_equal(found["bound"], below)


def test_the_header_of_the_order_names_all_who_depend_on_it():
    """A text depends on it by the macros that it uses, or by the one that smap.clh makes of them."""
    comment, macros = texts.read_text("clkernels", "order.clh").split("#include", 1)
    names = [*re.findall(r"^#define (\w+)\(", macros, re.MULTILINE), "BEYOND"]
    users = set()
    for folder, suffixes in (("templates", (".mako",)), ("clkernels", (".clh",))):
        for name in (name for suffix in suffixes for name in texts.names_of(folder, suffix)):
            code = re.sub(r"//.*|^\s*##.*", "", texts.read_text(folder, name), flags=re.MULTILINE)
            if name not in ("order.clh", "smap.clh") and re.search(rf"\b({'|'.join(names)})\(", code):
                users.add(name.partition(".")[0])
    assert {user for user in users if not re.search(rf"\b{user}\b", comment)} == set()
    assert {"knn_collect_lanes", "smap", "topk"} <= users


# Buffers by how long a list may be and whether it lies in registers, with the lengths that lists have.
BUFFERS = {"registers": (4, 1, (3, 4)), "memory": (9, 0, (6,))}
COMPACTION = """
  {{
    global whole* buffer = buffer_{k};
    for (int c = 0; c < COUNT; ++c) PUT_CANDIDATE(buffer + ENTRY_AT(c), LOADV(d + c * LANES), LOADV(j + c * LANES));
    realv distances[K_MAX];
    rowv rows_of_list[K_MAX];
    rowv count = LOADV(filled_{k});
    sort_candidates(buffer, {k}, count, distances, rows_of_list);
    for (int place = 0; place < {k}; ++place) {{
      STOREV(distances[place], listed_{k} + place * LANES);
      STOREV(rows_of_list[place], named_{k} + place * LANES);
    }}
    realv bound = FAR;
    compact(buffer, {k}, &count, &bound);
    for (int place = 0; place < {k}; ++place)
      STOREV(CANDIDATE_DISTANCE(buffer + ENTRY_AT(place)), kept_{k} + place * LANES);
    STOREV(count, counts_{k});
    STOREV(bound, bounds_{k});
  }}
"""


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("kind", BUFFERS)
def test_a_buffer_of_candidates_is_compacted(device, dtype, lanes, kind):
    k_max, in_registers, lengths = BUFFERS[kind]
    count, rows = 24, rows_of(dtype)
    d, _ = candidates(dtype, count, lanes, 6)
    d[:, 0] = 0  # nothing is below a full list of zeros
    j = np.repeat(np.arange(count, dtype=rows)[:, None], lanes, axis=1)
    filled = np.array([count - 5 * lane % count for lane in range(lanes)], rows)
    filled[-1] = 2 if lanes > 1 else count  # fewer than k
    inputs, outputs, body = {"d": d, "j": j}, {}, ""
    for k in lengths:
        inputs[f"filled_{k}"] = filled
        arrays = expected_type(dtype, k, lanes) | {
            "buffer": np.zeros(2 * count * lanes, rows), "kept": np.zeros((k, lanes), dtype),
            "counts": np.zeros(lanes, rows), "bounds": np.zeros(lanes, dtype),
        }  # fmt: skip
        outputs |= {f"{name}_{k}": array for name, array in arrays.items()}
        body += COMPACTION.format(k=k)
    head = (f"#define COUNT {count}\n#define K_MAX {k_max}\n#define LIST_IN_REGISTERS {in_registers}\n"
            '#include "topk.clh"')  # fmt: skip
    found = run_fragment(device, head, body, inputs, outputs, group=1, dtype=dtype, lanes=lanes)
    far = np.dtype(dtype).type(SENTINELS["FAR"])
    for k, lane in itertools.product(lengths, range(lanes)):
        here = slice(0, filled[lane]), slice(lane, lane + 1)
        listed, named = nearest(d[here], j[here], k)
        np.testing.assert_array_equal(found[f"listed_{k}"][:, lane], listed[:, 0])
        np.testing.assert_array_equal(found[f"named_{k}"][:, lane], named[:, 0])
        np.testing.assert_array_equal(found[f"kept_{k}"][:, lane], listed[:, 0])
        assert found[f"counts_{k}"][lane] == min(filled[lane], k)
        kth = listed[k - 1, 0]
        bound = far if kth > far else -1 if kth == 0 else np.nextafter(kth, kth.dtype.type(0))
        assert found[f"bounds_{k}"][lane] == bound


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lanes", LANES[1:])
def test_bits_of_lanes(device, dtype, lanes):
    rng = np.random.default_rng(7)
    x = rng.integers(0, 2, (4, lanes)).astype(dtype)
    counts = rng.integers(-9, 99, lanes).astype(rows_of(dtype))
    bits = (1 << rng.integers(0, 30, lanes)).astype(rows_of(dtype))
    step = "LOADV(x + {} * LANES) > (realv)(0)"
    body = f"""
  masks[0] = four_masks({", ".join(step.format(number) for number in range(4))});
  most[0] = largest_lane(LOADV(counts));
  any[0] = any_bits(LOADV(bits));
  STOREV(TO_INTV(LOADV(counts)), ints);
"""
    outputs = {"masks": np.zeros(1, np.uint64), "most": np.zeros(1, np.int32), "any": np.zeros(1, rows_of(dtype)),
               "ints": np.zeros(lanes, np.int32)}  # fmt: skip
    found = run_fragment(
        device, '#include "topk.clh"', body, {"x": x, "counts": counts, "bits": bits}, outputs, dtype=dtype, lanes=lanes
    )
    assert int(found["masks"][0]) == sum(1 << place for place, present in enumerate(x.ravel()) if present)
    assert found["most"][0] == counts.max()
    np.testing.assert_array_equal(found["ints"], counts)
    assert found["any"][0] == np.bitwise_or.reduce(bits)


def test_the_least_of_several_numbers(device):
    head = '<%namespace name="least" file="least.mako"/>\n#include "numeric.clh"'
    for n in (1, 2, 3, 7):
        x = np.random.default_rng(n).permutation(n).astype(np.float32) + 1
        body = 'out[0] = ${least.of(f"x[{number}]" for number in range(n))};'
        assert run_fragment(device, head, body, {"x": x}, {"out": np.zeros(1, np.float32)}, n=n)["out"] == [1]


@pytest.mark.parametrize("lanes", LANES[1:])
def test_rows_before_the_first_and_near_the_query_are_no_candidates(device, lanes):
    """The bits of four steps, bit u * lanes + l for row j + u + l and query row t + l."""
    begin = 3
    j, t, radius = (found.ravel() for found in np.meshgrid(np.arange(-20, 30), [0, 9], [-1, 0, 2]))
    head = """
<%namespace name="distances" file="knn_distances.mako"/>
<%namespace name="collect" file="knn_collect_lanes.mako"/>
#define GROUP_ROWS LANES
#include "topk.clh"
${distances.functions()}
${collect.functions()}
"""
    body = f"""
  const ulong all = ~(ulong)0 >> (64 - 4 * LANES);
  left[i] = without_excluded(all, j[i], {begin}, t[i], radius[i]);
"""
    inputs = {name: a.astype(np.int32) for name, a in (("j", j), ("t", t), ("radius", radius))}
    found = run_fragment(
        device, head, body, inputs, {"left": np.zeros(len(j), np.uint64)}, items=len(j), lanes=lanes, masked=False,
        unroll=4,
    )["left"]  # fmt: skip
    step, lane = np.arange(4 * lanes) // lanes, np.arange(4 * lanes) % lanes
    row = j[:, None] + step + lane
    present = (row >= begin) & (np.abs(row - (t[:, None] + lane)) > radius[:, None])
    expected = [sum(1 << int(place) for place in np.flatnonzero(one)) for one in present]
    assert found.tolist() == expected

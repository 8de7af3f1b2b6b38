"""Each header by itself: its macros and functions on arrays, against NumPy."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from fragment_helpers import run_fragment

from pyedmcl.device.select import open_device
from pyedmcl.kernels.texts import SENTINELS
from pyedmcl.reference import fma32, fma64
from pyedmcl.reference.edm import philox4x32

NUMERIC, DIVISION = '#include "numeric.clh"', '#include "division.clh"'
REDUCE, MOMENT = '#include "reduce.clh"', '#include "moment.clh"'
DTYPES = ("float32", "float64")
LANES = (1, 4, 8, 16)
TYPES = ("real", "whole", "realv", "rowv")
PARTS = {"float32": "float", "float64": "double"}


def numbers(dtype, n, seed=0, spread=3.0):
    """Numbers of both signs over some orders of magnitude."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(n) * 10 ** rng.uniform(-spread, spread, n)).astype(dtype)


def test_numeric_types_and_sentinels(device):
    for dtype in DTYPES:
        body = "\n".join(f"  out[{place}] = {name};" for place, name in enumerate(SENTINELS))
        body += "".join(f"\n  sizes[{place}] = sizeof({kind});" for place, kind in enumerate(TYPES))
        out = {"out": np.zeros(len(SENTINELS), dtype), "sizes": np.zeros(4, np.int32)}
        found = run_fragment(device, NUMERIC, body, {}, out, dtype=dtype, lanes=8)
        np.testing.assert_array_equal(found["out"], np.array(list(SENTINELS.values()), dtype))
        size = np.dtype(dtype).itemsize
        assert found["sizes"].tolist() == [size, size, 8 * size, 8 * size]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lanes", LANES)
def test_bits_of_numbers_and_literals(device, dtype, lanes):
    x = numbers(dtype, lanes, 15)
    bits = x.view(np.int32 if dtype == "float32" else np.int64)
    body = """
  STOREV(AS_WHOLEV(LOADV(x)), bits_of_x);
  STOREV(AS_REALV(LOADV(bits)), x_of_bits);
  literal[0] = LITERAL(0.1);
"""
    outputs = {"bits_of_x": np.zeros_like(bits), "x_of_bits": np.zeros_like(x), "literal": np.zeros(1)}
    found = run_fragment(device, NUMERIC, body, {"x": x, "bits": bits}, outputs, dtype=dtype, lanes=lanes)
    np.testing.assert_array_equal(found["bits_of_x"], bits)
    np.testing.assert_array_equal(found["x_of_bits"], x)
    assert found["literal"] == float(np.dtype(dtype).type(0.1))


def factors(dtype):
    """Factors of both signs, and sums in which the rounding of their product is all that is left, but for a third."""
    n = 16 * 64
    a, b = numbers(dtype, n, 1), numbers(dtype, n, 2)
    c = -(a * b)
    c[::3] = numbers(dtype, len(c[::3]), 3)
    fused = (fma32 if dtype == "float32" else fma64)(a, b, c)
    assert (fused != a * b + c).mean() > 0.5
    return a, b, c, fused


def compared(dtype):
    """Pairs to take the smaller of: some are equal, some are no place at all."""
    n = 16 * 16
    a, b = numbers(dtype, n, 6), numbers(dtype, n, 7)
    b[::5] = a[::5]
    a[1], b[2] = SENTINELS["NOWHERE"], SENTINELS["NOWHERE"]
    return a, b


def divided(dtype):
    n = 16 * 4096
    a, b = numbers(dtype, n, 12, spread=7), numbers(dtype, n, 13, spread=7)
    a[:9] = [0, 1, -1, 3, 1e-12, 1e12, 2, -7, 0.1]
    b[:9] = [5, 1, 3, -3, 1e12, 1e-12, -2, 49, 0.3]
    return a, b


# How a device divides (its own way is exact, or is corrected from a guess that is some units off), and how it takes a
# minimum: a program for each row holds what the tests below look at.
WAYS = {"native-select": (True, "select"), "corrected-fmin": (False, "fmin")}
GUESSES = """
#define GUESS_INVERSE(x) ((realv)(1 + 2 * FLT_EPSILON) / (x))
#define GUESS_ROOT(x) (sqrt(x) * (realv)(1 + 2 * FLT_EPSILON))
"""
OPERATIONS = """
  const size_t at = (size_t)i * LANES;
  STOREV(quotient(LOADV(dividend + at), LOADV(divisor + at)), quotients + at);
  STOREV(root(fabs(LOADV(dividend + at))), roots + at);
  for (int l = 0; l < LANES; ++l) single[at + l] = scalar_root(fabs(dividend[at + l]));
  if (at < N_FUSED) STOREV(FUSED(LOADV(a + at), LOADV(b + at), LOADV(c + at)), fused + at);
  if (at < N_COMPARED) {
    const realv x = LOADV(left + at), y = LOADV(right + at);
    STOREV(MINIMUM(x, y), least + at);
    STOREV(MAXIMUM(x, y), most + at);
    STOREV(CHOOSE(x, y, x < (realv)(0)), chosen + at);
    any_negative[i] = ANYV(x < (realv)(0)) ? 1 : 0;
    all_negative[i] = ALLV(x < (realv)(0)) ? 1 : 0;
  }
"""


@functools.cache
def operations(device, dtype, lanes, way):
    """What the operations of :data:`OPERATIONS` give."""
    exact, minimum = WAYS[way]
    a, b, c, fused = factors(dtype)
    left, right = compared(dtype)
    dividend, divisor = divided(dtype)
    inputs = {"a": a, "b": b, "c": c, "left": left, "right": right, "dividend": dividend, "divisor": divisor}
    outputs = {name: np.zeros_like(dividend) for name in ("quotients", "roots", "single")}
    outputs |= {"fused": np.zeros_like(fused)} | {name: np.zeros_like(left) for name in ("least", "most", "chosen")}
    outputs |= {name: np.zeros(len(left) // lanes, np.int32) for name in ("any_negative", "all_negative")}
    head = f"#define N_FUSED {len(fused)}\n#define N_COMPARED {len(left)}\n{'' if exact else GUESSES}{DIVISION}"
    return run_fragment(
        device, head, OPERATIONS, inputs, outputs, items=len(dividend) // lanes, dtype=dtype, lanes=lanes,
        exact_division=exact, minimum=minimum,
    )  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lanes", LANES)
def test_a_fused_operation_is_rounded_once(device, dtype, lanes, way):
    """As the device does it, contracted or built in."""
    np.testing.assert_array_equal(operations(device, dtype, lanes, way)["fused"], factors(dtype)[3])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lanes", LANES)
def test_where_kernels_ask_for_separate_roundings_fused_ones_stay_fused(device, dtype, lanes):
    a, b, c, fused = factors(dtype)
    body = """
  const size_t at = (size_t)i * LANES;
  STOREV(FUSED(LOADV(a + at), LOADV(b + at), LOADV(c + at)), fused + at);
  STOREV(LOADV(a + at) * LOADV(b + at) + LOADV(c + at), apart + at);
"""
    found = run_fragment(
        device, f"#define UNFUSED\n{NUMERIC}", body, {"a": a, "b": b, "c": c},
        {name: np.ones_like(a) for name in ("fused", "apart")}, items=len(a) // lanes, dtype=dtype, lanes=lanes,
    )  # fmt: skip
    np.testing.assert_array_equal(found["fused"], fused)
    np.testing.assert_array_equal(found["apart"], a * b + c)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lanes", LANES)
def test_minimum_maximum_and_choice(device, dtype, lanes, way):
    a, b = compared(dtype)
    found = operations(device, dtype, lanes, way)
    np.testing.assert_array_equal(found["least"], np.minimum(a, b))
    np.testing.assert_array_equal(found["most"], np.maximum(a, b))
    np.testing.assert_array_equal(found["chosen"], np.where(a < 0, b, a))
    negative = (a < 0).reshape(-1, lanes)
    np.testing.assert_array_equal(found["any_negative"], negative.any(axis=1))
    np.testing.assert_array_equal(found["all_negative"], negative.all(axis=1))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lanes", LANES)
def test_quotients_and_roots_are_rounded_correctly(device, dtype, lanes, way):
    """As devices have them whose own are exact, and corrected for the others, from a guess that is some units off."""
    a, b = divided(dtype)
    found = operations(device, dtype, lanes, way)
    np.testing.assert_array_equal(found["quotients"], a / b)
    np.testing.assert_array_equal(found["roots"], np.sqrt(np.abs(a)))
    np.testing.assert_array_equal(found["single"], found["roots"])


def test_roots_of_distances_are_rounded_correctly_from_their_inverses(one_device):
    """As on devices whose inverse roots are near enough, of which that of a quotient is one here."""
    n = 16 * 4096
    x = np.abs(numbers("float32", n, 14, spread=7))
    x[: n // 2] = np.ldexp(x[: n // 2], np.arange(n // 2) % 126 - 125)  # down to the smallest numbers
    x[:6] = [0, 1e-45, 3e38, 1, 2.0**-100, np.nextafter(np.float32(2.0**-100), np.float32(0))]
    head = """
#define native_rsqrt(x) (1 / sqrt(x))
#define E 2
#define COORDINATES 2
#define GAPS 0
#define STATE 4
#include "smap_map.clh"
"""
    found = run_fragment(
        one_device, head, "  out[i] = ROOT_OF_DISTANCE(x[i]);", {"x": x}, {"out": np.zeros(n, np.float32)}, items=n,
        dtype="float32", lanes=1, inverse_root=True,
    )["out"]  # fmt: skip
    off = np.abs(found.view(np.int32) - np.sqrt(x).view(np.int32))
    assert off.max() <= 1 and np.mean(off == 0) > 0.999  # this guess is twice as far off as that of a device
    assert found[0] == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lanes", [1, 4])
def test_exact_addition_loses_nothing(device, dtype, lanes):
    rows = 200
    x = numbers(dtype, rows * lanes, 8, spread=6).reshape(rows, lanes)
    x[-1] = -x[:-1].sum(axis=0)  # cancels nearly all
    body = f"""
  realv sum = 0, rest = 0;
  for (int row = 0; row < {rows}; ++row) ADD_EXACT(sum, rest, LOADV(x + row * LANES));
  STOREV(sum, sums);
  STOREV(rest, rests);
"""
    outputs = {"sums": np.zeros(lanes, dtype), "rests": np.zeros(lanes, dtype)}
    found = run_fragment(device, REDUCE, body, {"x": x}, outputs, dtype=dtype, lanes=lanes)
    exact = np.array([math.fsum(column) for column in x.T.astype(np.float64)])
    total = found["sums"].astype(np.float64) + found["rests"]
    eps = np.finfo(dtype).eps
    largest = np.abs(x.astype(np.float64)).sum(axis=0)
    # The rests are added in working precision: of second order.
    assert (np.abs(total - exact) <= 4 * rows * eps**2 * largest + eps * np.abs(exact)).all()
    plain = np.add.accumulate(x, axis=0)[-1].astype(np.float64)
    assert (np.abs(plain - exact) > 100 * np.abs(total - exact)).any(), "a plain sum would have done"


def sums_of(p, o):
    return np.array([len(p), p.sum(), o.sum(), (p * p).sum(), (o * o).sum(), (p * o).sum()])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lanes", [1, 8])
def test_pearson(device, dtype, lanes):
    rng = np.random.default_rng(9)
    p = rng.standard_normal((16, 40))
    o = 0.6 * p + rng.standard_normal((16, 40))
    o[1] = p[1]
    o[2] = -3 * p[2]
    o[3] = 0.75  # constant: there is no correlation
    cases = np.array([sums_of(*pair) for pair in zip(p, o, strict=True)])
    cases[4] = sums_of(p[4, :2], o[4, :2])  # two rows: neither
    columns = np.ascontiguousarray(cases.T.astype(dtype))
    body = """
  const size_t at = (size_t)i * LANES;
  const realv squares_p = LOADV(pp + at), squares_o = LOADV(oo + at), products = LOADV(po + at);
  STOREV(pearson(LOADV(n + at), LOADV(p + at), LOADV(o + at), squares_p, squares_o, products), rho + at);
"""
    inputs = dict(zip(("n", "p", "o", "pp", "oo", "po"), columns, strict=True))
    found = run_fragment(
        device, REDUCE, body, inputs, {"rho": np.zeros(16, dtype)}, items=16 // lanes, dtype=dtype, lanes=lanes
    )["rho"]
    assert np.isnan(found[[3, 4]]).all()
    defined = [place for place in range(16) if place not in (3, 4)]
    expected = np.array([np.corrcoef(p[place], o[place])[0, 1] for place in defined])
    np.testing.assert_allclose(found[defined], expected, rtol=0, atol=100 * np.finfo(dtype).eps)
    assert found[1] <= 1 and found[2] >= -1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("lanes", "half"), [(1, 1), (4, 1), (8, 8), (16, 4)])
def test_moments_are_doubles(device, dtype, lanes, half):
    x = numbers(dtype, lanes, 10)
    body = """
  STORE_WEIGHTS(LOADV(x), weights);
  for (int h = 0; h < LANES; h += HALF) {
    const momentv w = LOAD_MOMENTV(weights + h);
    STORE_MOMENTV(w * w, squares + h);
    real part[HALF] __attribute__((aligned(64)));
    for (int l = 0; l < HALF; ++l) part[l] = x[h + l];
    STORE_MOMENTV(CONVERT_MOMENTV(*(const PART*)part), converted + h);
  }
"""
    outputs = {name: np.zeros(lanes) for name in ("weights", "squares", "converted")}
    head = f"#define HALF {half}\n#define PART {PARTS[dtype]}{half if half > 1 else ''}\n{MOMENT}"
    found = run_fragment(device, head, body, {"x": x}, outputs, dtype=dtype, lanes=lanes)
    np.testing.assert_array_equal(found["weights"], x.astype(np.float64))
    np.testing.assert_array_equal(found["squares"], x.astype(np.float64) ** 2)
    np.testing.assert_array_equal(found["converted"], x.astype(np.float64))


@pytest.mark.parametrize("count", ["uint", "uint4", "uint16"])
def test_random_numbers_are_philox(device, count):
    width = int(count[4:] or 1)
    rng = np.random.default_rng(11)
    counters = rng.integers(0, 1 << 32, (4, width), dtype=np.uint32)
    key = rng.integers(0, 1 << 32, 2, dtype=np.uint32)
    counters[:, 0] = 0xFFFFFFFF  # carries everywhere
    load = "vload{0}(0, c + {1} * {0})" if width > 1 else "c[{1}]"
    store = "vstore{0}(c{1}, 0, out + {1} * {0});" if width > 1 else "out[{1}] = c{1};"
    body = "\n".join(f"  COUNT c{word} = {load.format(width, word)};" for word in range(4))
    body += "\n  philox(&c0, &c1, &c2, &c3, key[0], key[1]);\n"
    body += "\n".join(store.format(width, word) for word in range(4))
    found = run_fragment(
        device, f'#define COUNT {count}\n#include "philox.clh"', body, {"c": counters, "key": key},
        {"out": np.zeros((4, width), np.uint32)},
    )["out"]  # fmt: skip
    np.testing.assert_array_equal(found.T, np.array([philox4x32(counter, key) for counter in counters.T]))


def test_declared_functions_are_those_of_opencl(device):
    """Beside the compiler's own header, or instead of it: a function of each group, of numbers and of vectors."""
    if open_device(device).info.kind == "gpu":
        pytest.skip("drivers of GPUs have these functions built in, and take no declaration of them")
    body = """
  const float4 x = vload4(0, f);
  const int4 n = vload4(0, k);
  vstore4(fma(x, x, fabs(x)) + fmax(x, (float4)(2)) + ldexp(x, n & 3), 0, reals);
  vstore4(clz(n) + max(n, 5) + convert_int4(popcount(as_uint4(n))) + select(n, -n, x > (float4)(0)), 0, wholes);
  if (i == 0) wholes[0] += atomic_add(wholes + 4, 7) + any(n == 3) + (int)get_global_size(0);
  barrier(CLK_GLOBAL_MEM_FENCE);
"""
    f, k = np.array([-1.5, 0.25, 3, 9], np.float32), np.array([3, -2, 70, 1 << 20], np.int32)
    outputs = {"reals": np.zeros(4, np.float32), "wholes": np.full(5, 40, np.int32)}
    found = run_fragment(device, '#include "opencl_functions.clh"', body, {"f": f, "k": k}, outputs)
    np.testing.assert_array_equal(found["reals"], f * f + np.abs(f) + np.maximum(f, 2) + np.ldexp(f, k & 3))
    bits = [f"{number & 0xFFFFFFFF:032b}" for number in k.tolist()]
    leading, ones = np.array([(b + "1").index("1") for b in bits]), np.array([b.count("1") for b in bits])
    expected = (leading + np.maximum(k, 5) + ones + np.where(f > 0, -k, k)).tolist()
    assert found["wholes"].tolist() == [expected[0] + 40 + 1 + 1, *expected[1:], 47]

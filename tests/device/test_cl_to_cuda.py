"""OpenCL C as CUDA C++: what is rewritten, what is refused, and that both mean the same."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

from pyedmcl.device.nvrtc import convert, cuda_text
from pyedmcl.device.select import open_device
from pyedmcl.errors import BuildError
from pyedmcl.kernels.kernel_spec import declared

COMPILER = shutil.which("c++") or shutil.which("g++")
REWRITTEN = [
    ("kernel void f(global const float* x, constant int* n) {}",
     'extern "C" __global__ void f( const float* x, const int* n) {}'),
    ("__kernel __attribute__((reqd_work_group_size(WG * 2, 1, 1))) void f(__global uint *x) {}",
     'extern "C" __global__ __launch_bounds__(WG * 2) void f( uint *x) {}'),
    ("constant float table[2] = {1, 2};", "static __constant__ const float table[2] = {1, 2};"),
    ("inline int f() { return 1; }", "static __device__ __forceinline__ int f() { return 1; }"),
    ("static inline int f() { return 1; }", "static __device__ __forceinline__ int f() { return 1; }"),
    ("__attribute__((noinline)) int f() { return 1; }", "__noinline__ int f() { return 1; }"),
    ("#pragma OPENCL EXTENSION cl_khr_fp64 : enable\nint x;", "\nint x;"),
    # Local memory, and pointers to it.
    ("{ local float x[N]; }", "{ __shared__ float x[N]; }"),
    ("{ volatile local int x; }", "{ volatile __shared__ int x; }"),
    ("{ local int x[3], y; }", "{ __shared__ int x[3], y; }"),
    ("{ local float* p = x + 3 * y[2]; }", "{  float* p = x + 3 * y[2]; }"),
    ("void f(local float* x, volatile local int* y) {}", "void f( float* x, volatile  int* y) {}"),
    ("*(local float4*)(x)", "*( float4*)(x)"),
    ("#define SHARED local real xs[2]\n", "#define SHARED __shared__ real xs[2]\n"),
    ("f((uint)(size_t)(to));", "f(local_address(to));"),
    # Literals of vectors: casts before several parts, and no calls.
    ("return (float4)(f(a), b);", "return vector_of<float4>(f(a), b);"),
    ("x = (float4)(a);", "x = (float4)(a);"),
    ("x = (real4)(g(a, b));", "x = (real4)(g(a, b));"),
    ("x = (PASTE(float, 4))(a, b);", "x = vector_of<PASTE(float, 4)>(a, b);"),
    ("x = (float4)(int4)(a, b, c, d);", "x = (float4)vector_of<int4>(a, b, c, d);"),
    ("if (a) f(b, c); else (void)(d, e);", "if (a) f(b, c); else vector_of<void>(d, e);"),
    ("if (a) (int2)(b, c);", "if (a) vector_of<int2>(b, c);"),
    ("x = f(a)(b, c);", "x = f(a)(b, c);"),
    ("x = (a + b) * (c, d);", "x = (a + b) * (c, d);"),
    ("#define PAIR(a, b) (int2)(a, b)\n", "#define PAIR(a, b) vector_of<int2>(a, b)\n"),
    ("#define PAIR (int2)(a, \\\n  b)\nint y;", "#define PAIR vector_of<int2>(a, \\\n  b)\nint y;"),
    # Components.
    ("v.x + v.s3 + v.sF + v.lo.y + p->hi.odd", "v.a[0] + v.a[3] + v.a[15] + v.lo_().a[1] + p->hi_().odd_()"),
    ("point.width + x.s + 1.0f", "point.width + x.s + 1.0f"),
    # Comments and strings are left alone, and lines stay where they are.
    ("/* local\nint2 */ int x; // (int2)(a, b)\nint y;", "int x; int y;"),
    ('asm("mov.b32 %0, %1;" : "=r"(local_y) : "r"(x.x));', 'asm("mov.b32 %0, %1;" : "=r"(local_y) : "r"(x.a[0]));'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), REWRITTEN, ids=[text[:40] for text, _ in REWRITTEN])
def test_tokens_are_rewritten(text, expected):
    assert convert(text).split() == expected.split()


def test_lines_keep_their_numbers():
    text = "#define A(x) \\\n  (int2)(x, \\\n  x)\n/* a\nb */\nkernel void f(global int* x) {\n  x[0] = 1; // c\n}\n"
    assert convert(text).count("\n") == text.count("\n")
    assert cuda_text("int x;").endswith("#line 1\nint x;\n}\n")


@pytest.mark.parametrize(("text", "why"), [
    ("{ local float x[2], *p; }", "declared together"),
    ("kernel __attribute__((reqd_work_group_size(8, 8, 1))) void f() {}", "more than one dimension"),
])  # fmt: skip
def test_text_that_would_silently_become_another_is_refused(text, why):
    with pytest.raises(BuildError, match=why) as caught:
        convert(text)
    assert caught.value.source == text


# CUDA's names for a compiler of the host, which runs work-items one by one.
_HOST = """
#include <cmath>
#include <cstring>
#include <algorithm>
#define __device__
#define __global__
#define __constant__
#define __shared__ static
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(size)
using std::max; using std::min; using std::exp; using std::fabs; using std::floor; using std::fma; using std::fmax;
using std::fmin; using std::rint; using std::sqrt;
struct item { unsigned x, y, z; };
static item threadIdx, blockIdx, blockDim = {8, 1, 1}, gridDim = {1, 1, 1};
static void __syncthreads() {}
static void __threadfence_block() {}
static size_t __cvta_generic_to_shared(const void* p) { return (size_t)p; }
static int __popc(unsigned x) { return __builtin_popcount(x); }
static int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
static int __mulhi(int a, int b) { return (int)((long)a * b >> 32); }
static unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long)a * b >> 32); }
static unsigned long __umul64hi(unsigned long a, unsigned long b) { return (unsigned __int128)a * b >> 64; }
static long __mul64hi(long a, long b) { return (__int128)a * b >> 64; }
#define ATOMIC(name, result) template <class T> T name(T* p, T v) { T old = *p; *p = result; return old; }
ATOMIC(atomicAdd, old + v) ATOMIC(atomicMax, std::max(old, v)) ATOMIC(atomicMin, std::min(old, v))
ATOMIC(atomicOr, old | v) ATOMIC(atomicAnd, old & v) ATOMIC(atomicExch, v)
#undef ATOMIC
template <class T> T atomicCAS(T* p, T was, T v) { T old = *p; if (old == was) *p = v; return old; }
extern "C" void set_item(unsigned i) { blockIdx.x = i / 8; threadIdx.x = i % 8; }
"""
_COMMON = """
#define ALL(e) { T4 v_ = e; PUT(v_.x) PUT(v_.s1) PUT(v_.z) PUT(v_.s3) }
#define PAIR(a, b) (T2)(a, b)
kernel void f(global const T* x, global long* out) {
  const int i = get_global_id(0);
  global long* to = out + COUNT * i;
  int at = 0;
  T4 a = vload4(2 * i, x), b = vload4(2 * i + 1, x), c = a;
  T s = x[8 * i + 3];
  ALL(a + b) ALL(a - s) ALL(s * b) ALL(-a) ALL((T4)(s)) ALL((T4)(1))
  ALL((T4)(a.lo, b.hi)) ALL((T4)(s, a.yz_, b.x)) ALL((T4)(PAIR(a.x, s), PAIR(b.y, 2))) ALL((T4)(a.odd, b.even))
  ALL(select(a, b, a < b)) ALL(select(a, b, a == s)) ALL(select(b, a, !(a >= b))) ALL(select(a, b, s != a && a > b))
  c += b; ALL(c) c -= s; ALL(c) c.z = s; c.s0 = b.w; ALL(c) c[1] = s; ALL(c)
  PUT(select(s, a.x, (I)(s < a.x))) PUT(any(a < b)) PUT(all(a <= a)) PUT(any(a > s)) PUT(all(a != s))
  ALL(min(a, b)) ALL(max(a, (T4)(s))) ALL(clamp(a, (T4)(2), (T4)(s > 2 ? s : 2))) PUT(clamp(s, (T)1, (T)9))
  vstore4(convert_long4(a), 0, to + at); at += 4;
"""
_WHOLE = """
  ALL(a & b) ALL(a | s) ALL(b ^ s) ALL(~a) ALL(a << 3) ALL(a >> 2) PUT((s | 1) / 3) ALL(a / (b | 1))
  ALL(popcount(a)) PUT(popcount(s)) PUT(clz(s)) PUT(abs(s)) ALL(convert_T4(convert_double4(a))) PUT(mul_hi(s, a.x))
  ALL(as_T4(as_U4(a))) PUT(convert_int(a.x))
}
"""
_FLOATING = """
  ALL(fma(a, b, (T4)(s))) ALL(fmin(a, b)) ALL(fmax(a, s * b)) ALL(fabs(a)) ALL(rint(a)) ALL(floor(b)) ALL(sqrt(fabs(a)))
  ALL(a / (b + 100)) PUT(fma(s, a.x, b.y)) ALL(convert_T4(convert_int4(a))) ALL(as_T4(as_I4(a) ^ 5)) PUT((T)M_PI)
}
"""
# T, whole numbers of its size with a sign and without, and how a number is stored.
_TYPES = {
    "int": ("int", "uint", "(long)(e)"), "uint": ("int", "uint", "(long)(e)"), "long": ("long", "ulong", "(long)(e)"),
    "ulong": ("long", "ulong", "(long)(e)"), "float": ("int", "uint", "as_int((float)(e))"),
    "double": ("long", "ulong", "as_long((double)(e))"),
}  # fmt: skip
_DTYPES = {"int": "i4", "uint": "u4", "long": "i8", "ulong": "u8", "float": "f4", "double": "f8"}
_ITEMS, _COUNT = 16, 256


def _text(kind):
    signed, unsigned, stored = _TYPES[kind]
    body = _COMMON + (_FLOATING if kind in ("float", "double") else _WHOLE)
    body = body.replace("a.yz_", "(T2)(a.y, a.z)").replace("convert_T4", f"convert_{kind}4")
    body = body.replace("as_T4", f"as_{kind}4").replace("as_U4", f"as_{unsigned}4").replace("as_I4", f"as_{signed}4")
    heads = [f"#define {name} {value}" for name, value in
             {"T": kind, "T2": f"{kind}2", "T4": f"{kind}4", "I": signed, "COUNT": _COUNT,
              "PUT(e)": f"to[at++] = {stored};"}.items()]  # fmt: skip
    return "\n".join(["#pragma OPENCL FP_CONTRACT OFF", *heads, body])


def _by_host(text, kind, x, folder):
    """What the converted text computes where a compiler of the host takes it."""
    (folder / "kernel.cpp").write_text(_HOST + cuda_text(text))
    library = folder / "kernel.so"
    options = ("-std=c++17", "-O1", "-ffp-contract=off", "-w", "-shared", "-fPIC")
    subprocess.run([COMPILER, *options, "kernel.cpp", "-o", library], cwd=folder, check=True, capture_output=True)
    loaded, out = ctypes.CDLL(str(library)), np.zeros((_ITEMS, _COUNT), np.int64)
    for item in range(_ITEMS):
        loaded.set_item(item)
        loaded.f(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data))
    return out


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("kind", _TYPES)
def test_the_header_means_what_opencl_means(kind, one_device, tmp_path):
    rng, dtype = np.random.default_rng(7), np.dtype(_DTYPES[kind])
    x = rng.normal(0, 50, 8 * _ITEMS) if dtype.kind == "f" else rng.integers(0, 99, 8 * _ITEMS)
    if dtype.kind == "i":
        x = x - 50
    x = x.astype(dtype)
    x[::5] = x[1::5][: len(x[::5])]  # some are equal
    text = _text(kind)
    executor = open_device(one_device)
    slots = declared(f"f(const {kind}* x; long* out)", False)["f"]
    out = executor.upload(np.zeros((_ITEMS, _COUNT), np.int64))
    executor.launch(executor.build(text).kernel("f", slots), (_ITEMS,), (1,), x=executor.upload(x), out=out)
    expected = executor.download(out, np.empty((_ITEMS, _COUNT), np.int64))
    assert np.count_nonzero(expected.any(axis=0)) > 100
    np.testing.assert_array_equal(_by_host(text, kind, x, tmp_path), expected)

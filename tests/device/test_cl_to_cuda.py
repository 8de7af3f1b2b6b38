"""OpenCL C as CUDA C++: what is rewritten, what is refused, and that both mean the same."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import portability_compile as offline
import pytest

from pyedmcl.device import nvrtc
from pyedmcl.device.nvrtc import convert, cuda_text
from pyedmcl.device.select import open_device
from pyedmcl.errors import BuildError
from pyedmcl.kernels.kernel_spec import declared

ROOT = Path(__file__).parents[2]
COMPILER = shutil.which("c++") or shutil.which("g++")
# Functions of OpenCL C 1.2 that give a value, but for those of images, and what NVIDIA's and other compilers add.
_FUNCTIONS = """
acos acosh acospi asin asinh asinpi atan atan2 atanh atanpi atan2pi cbrt ceil copysign cos cosh cospi erfc erf exp
exp2 exp10 expm1 fabs fdim floor fma fmax fmin fmod fract frexp hypot ilogb ldexp lgamma lgamma_r log log2 log10 log1p
logb mad maxmag minmag modf nextafter pow pown powr remainder remquo rint rootn round rsqrt sin sincos sinh sinpi sqrt
tan tanh tanpi tgamma trunc half_cos half_divide half_exp half_exp2 half_exp10 half_log half_log2 half_log10 half_powr
half_recip half_rsqrt half_sin half_sqrt half_tan native_cos native_divide native_exp native_exp2 native_exp10
native_log native_log2 native_log10 native_powr native_recip native_rsqrt native_sin native_sqrt native_tan abs
abs_diff add_sat hadd rhadd clamp clz mad_hi mad_sat max min mul_hi rotate sub_sat upsample popcount mad24 mul24
degrees mix radians smoothstep sign cross dot normalize isequal isnotequal isgreater isgreaterequal isless islessequal
islessgreater isfinite isinf isnan isnormal isordered isunordered signbit bitselect select barrier mem_fence
read_mem_fence write_mem_fence prefetch shuffle shuffle2 atomic_add atomic_sub atomic_xchg atomic_inc atomic_dec
atomic_cmpxchg atomic_min atomic_max atomic_and atomic_or atomic_xor get_work_dim get_global_size get_global_id
get_local_size get_local_id get_num_groups get_group_id get_global_offset
"""
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
    ("v.xyw + v.s3A + f(u).s0123", "v.parts_<0, 1, 3>() + v.parts_<3, 10>() + f(u).parts_<0, 1, 2, 3>()"),
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
using std::exp; using std::exp2; using std::fabs; using std::floor; using std::fma; using std::fmax; using std::fmin;
using std::frexp; using std::ilogb; using std::ldexp; using std::rint; using std::sqrt;
template <class T> using number = std::enable_if_t<std::is_arithmetic<T>::value && sizeof(T) >= 4, T>;
template <class T> number<T> max(T a, T b) { return a < b ? b : a; }
template <class T> number<T> min(T a, T b) { return b < a ? b : a; }
struct item { unsigned x, y, z; };
static item threadIdx, blockIdx, blockDim = {8, 1, 1}, gridDim = {2, 1, 1};
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
ATOMIC(atomicAdd, old + v) ATOMIC(atomicMax, ::max(old, v)) ATOMIC(atomicMin, ::min(old, v))
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


def _by_host(text, x, out, folder):
    """What the converted text computes where a compiler of the host takes it; ``out`` is as it was before."""
    (folder / "kernel.cpp").write_text(_HOST + cuda_text(text))
    library = folder / "kernel.so"
    options = ("-std=c++17", "-O1", "-ffp-contract=off", "-w", "-shared", "-fPIC")
    subprocess.run([COMPILER, *options, "kernel.cpp", "-o", library], cwd=folder, check=True, capture_output=True)
    loaded, out = ctypes.CDLL(str(library)), out.copy()
    for item in range(_ITEMS):
        loaded.set_item(item)
        loaded.f(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data))
    return out


def _by_opencl(text, slots, x, out, device):
    executor = open_device(device)
    written = executor.upload(out)
    kernel = executor.build(text).kernel("f", declared(slots, False)["f"])
    executor.launch(kernel, (_ITEMS,), (8,), x=executor.upload(x), out=written)
    return executor.download(written, np.empty_like(out))


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("kind", _TYPES)
def test_the_header_means_what_opencl_means(kind, one_device, tmp_path):
    rng, dtype = np.random.default_rng(7), np.dtype(_DTYPES[kind])
    x = rng.normal(0, 50, 8 * _ITEMS) if dtype.kind == "f" else rng.integers(0, 99, 8 * _ITEMS)
    if dtype.kind == "i":
        x = x - 50
    x = x.astype(dtype)
    x[::5] = x[1::5][: len(x[::5])]  # some are equal
    text, out = _text(kind), np.zeros((_ITEMS, _COUNT), np.int64)
    expected = _by_opencl(text, f"f(const {kind}* x; long* out)", x, out, one_device)
    assert np.count_nonzero(expected.any(axis=0)) > 100
    np.testing.assert_array_equal(_by_host(text, x, out, tmp_path), expected)


# What kernels may call stands in opencl_functions.clh with all types of numbers: each is called once for each of them.
_DECLARED = (ROOT / "clkernels" / "opencl_functions.clh").read_text()
_HEAD, *_PARTS = re.split(r"^// ---- (.+) ----$", _DECLARED, flags=re.MULTILINE)
_GROUPS = dict(zip(_PARTS[::2], _PARTS[1::2], strict=True))
_NUMBERS = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4", "long": "i8",
            "ulong": "u8", "float": "f4", "double": "f8"}  # fmt: skip
# Bytes of a type's numbers for a work-item; of a call: where it writes what it returns, and what it may write to.
_ROOM, _RESULT, _CALL = 512, 128, 384
# Numbers that are not rounded alike everywhere, and units of the last place within which they are the same.
_NEAR = {"exp": 8, "exp2": 8, "sqrt": 8}
_ONLY_CUDA = ("native_rsqrt",)  # is an instruction of NVIDIA's


_CALLS = "#pragma OPENCL FP_CONTRACT OFF\n" + "".join(
    f"#define {number}_AT {place}\n" for place, number in enumerate(_NUMBERS)
) + f"""
#define FROM(kind, bytes) (x + ({len(_NUMBERS)} * get_global_id(0) + (kind)) * {_ROOM} + (bytes))
#define FROM_LONG16(kind, bytes) *(global const long16*)FROM(kind, bytes)
#define EACH_OF_LONG16(to, from) for (int j = 0; j < 2; ++j) *(global long16*)((to) + 128 * j) = from[j];
kernel void f(global const uchar* x, global uchar* out) {{
  global uchar* mine = out + get_global_id(0) * BYTES;
CALLS
}}
"""


def _signatures(group):
    """Result, name and types of arguments of each function, once for all address spaces."""
    text = subprocess.run([COMPILER, "-E", "-P", "-x", "c", "-"], input=_HEAD + _GROUPS[group], capture_output=True,
                          text=True, check=True).stdout  # fmt: skip
    found = re.findall(r"__attribute__\(\(.*?\)\)\s*(\w+)\s+(\w+)\(([^)]*)\)\s*;", text)
    assert len(found) == text.count(";"), "each declaration is read"
    some = [(result, name, [each.strip() for each in taken.split(",")]) for result, name, taken in found]
    # Atomic functions have no private memory.
    return [each for each in some if not re.search(r"local|(?<!volatile )global", str(each[2]))]


def _calls(signatures):
    """A kernel that calls each function, and the number type of what each returns."""
    lines, results = [], []
    for place, (result, name, taken) in enumerate(signatures):
        given, before, after = [], "", ""
        for at, kind in enumerate(taken):
            number = re.sub(r"\d", "", kind.split()[-1].strip("*"))
            value = f"*(global const {kind}*)FROM({number}_AT, {16 * at} * sizeof({number}))"
            if number == "cl_mem_fence_flags":
                value = "CLK_LOCAL_MEM_FENCE"
            elif number == "size_t" or name.startswith("get_"):
                value = str(int(number == "size_t"))
            elif kind.startswith("volatile"):
                value = f"({kind})(to + {_RESULT})"
            elif kind.endswith("*"):
                before = f"long16 held[2] = {{FROM_LONG16({place % 3}, 0), FROM_LONG16({place % 3}, 128)}}; "
                after = f" EACH_OF_LONG16(to + {_RESULT}, held)"
                value = f"({kind})held"
            elif name == "isnan":
                value = f"sqrt({value})"
            elif name.startswith("convert_u") and number in ("float", "double"):
                value = f"fabs({value})"
            given.append(value)
        if name == "clamp":  # its limits have an order
            given[1:] = [f"{which}({', '.join(given[1:])})" for which in ("min", "max")]
        written = result.replace("size_t", "ulong")
        to = "" if result == "void" else f"*(global {written}*)to = "
        head = f"  {{ global uchar* to = mine + {place * _CALL}; {before}"
        lines.append(f"{head}{to}{name}({', '.join(given)});{after} }}")
        results.append(re.sub(r"\d", "", written))
    return _CALLS.replace("BYTES", str(_CALL * len(signatures))).replace("CALLS", "\n".join(lines)), results


def _all_numbers():
    """64 numbers of each type for each work-item: whole ones of all sizes, and small ones."""
    rng, x = np.random.default_rng(5), np.zeros((_ITEMS, len(_NUMBERS), _ROOM), np.uint8)
    for place, dtype in enumerate(map(np.dtype, _NUMBERS.values())):
        if dtype.kind == "f":
            numbers = rng.uniform(-99, 99, (_ITEMS, 64)).astype(dtype)
        else:
            few = np.iinfo(dtype)
            numbers = rng.integers(few.min, few.max, (_ITEMS, 64), dtype, endpoint=True)
            numbers[::2] %= 50
            numbers[0] = 0
        numbers[:, 16:20] = numbers[:, :4]
        x[:, place, : numbers[0].nbytes] = numbers.view(np.uint8)
    return x


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("group", _GROUPS)
def test_each_function_of_kernels_means_what_it_means_in_opencl(group, one_device, tmp_path):
    signatures = [each for each in _signatures(group) if each[1] not in _ONLY_CUDA]
    text, results = _calls(signatures)
    x, out = _all_numbers(), np.full((_ITEMS, len(signatures), _CALL), 5, np.uint8)
    expected = _by_opencl(text, "f(const uchar* x; uchar* out)", x, out, one_device)
    got = _by_host(text, x, out, tmp_path)
    for place, ((_, name, taken), number) in enumerate(zip(signatures, results, strict=True)):
        both = [each[:, place] for each in (got, expected)]
        np.testing.assert_array_equal(both[0][:, _RESULT:], both[1][:, _RESULT:], f"{name}({taken}) writes")
        if name in _NEAR:
            both = [np.ascontiguousarray(each[:, :_RESULT]).view(_NUMBERS[number]) for each in both]
            near = _NEAR[name] * np.finfo(both[0].dtype).eps
            np.testing.assert_allclose(*both, rtol=near, err_msg=f"{name}({taken})")
        else:
            np.testing.assert_array_equal(both[0], both[1], f"{name}({taken})")


@pytest.mark.parametrize("group", _GROUPS)
def test_nvrtc_takes_each_function_of_kernels(group):
    if offline.nvidia_compiler() is None:
        pytest.skip("NVRTC is not installed: pip install 'pyedmcl[cuda]'")
    text, _ = _calls(_signatures(group))
    assert "f" in nvrtc.entries(offline.ptx_of("sm_75", text))


def test_kernels_call_declared_functions_only():
    """So the tests above are of all that kernels can call."""
    called = set()
    for file in [*(ROOT / "clkernels").glob("*.clh"), *(ROOT / "templates").glob("*.mako")]:
        text = re.sub(r"//[^\n]*|^\s*##[^\n]*", "", file.read_text(), flags=re.MULTILINE)
        if file.name != "opencl_functions.clh":
            called |= set(re.findall(r"\b([a-z_]\w*)\s*\(", text)) & set(_FUNCTIONS.split())
    assert len(called) > 25
    assert called <= {name for group in _GROUPS for _, name, _ in _signatures(group)}


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("part", ["lo", "s01", "xy"])
def test_nothing_is_written_to_a_copy_of_components(part, tmp_path):
    """C++ would let it, and the vector would stay as it was."""
    text = f"kernel void f(global float4* x, global float2* y) {{ x[0].{part} = y[0]; }}"
    with pytest.raises(subprocess.CalledProcessError) as refused:
        _by_host(text, np.zeros(4), np.zeros(4), tmp_path)
    assert b"const" in refused.value.stderr

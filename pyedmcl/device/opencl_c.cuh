// OpenCL C 1.2 for CUDA C++17, as far as pyedmcl's kernels use it. They stand in the namespace opencl, so that its types and
// functions come before CUDA's of the same names. Compiled with -default-device and --fmad=false: all that is fused says fma().

#define FLT_EPSILON 1.1920928955078125e-7f
#define FLT_MAX 3.402823466385288598e38f
#define FLT_MIN 1.1754943508222875e-38f
#define DBL_EPSILON 2.220446049250313e-16
#define DBL_MAX 1.7976931348623157e308
#define DBL_MIN 2.2250738585072014e-308
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define M_PI 3.14159265358979323846
#define M_PI_F 3.14159265358979323846f
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 0xffffffffu
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
#define __OPENCL_C_VERSION__ 120
#define restrict __restrict__

namespace opencl {

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
static_assert(sizeof(long) == 8, "a long of OpenCL has 64 bits");

#define FUNCTION static __device__ __forceinline__

// ---- work-items ----
#define OF_AXIS(name, value) \
  FUNCTION size_t name(uint axis) { return axis == 0 ? value.x : axis == 1 ? value.y : value.z; }
OF_AXIS(get_local_id, threadIdx)
OF_AXIS(get_local_size, blockDim)
OF_AXIS(get_group_id, blockIdx)
OF_AXIS(get_num_groups, gridDim)
#undef OF_AXIS
FUNCTION size_t get_global_id(uint axis) { return get_group_id(axis) * get_local_size(axis) + get_local_id(axis); }
FUNCTION size_t get_global_size(uint axis) { return get_num_groups(axis) * get_local_size(axis); }
FUNCTION void barrier(uint) { __syncthreads(); }
FUNCTION void mem_fence(uint) { __threadfence_block(); }
#ifndef __HIP__  // it is for PTX
// A pointer to local memory is an address there in OpenCL, and a generic one in CUDA.
FUNCTION uint local_address(const void* pointer) { return (uint)__cvta_generic_to_shared(pointer); }
#endif

// ---- vectors ----
template <bool condition, class T = void> struct when { };
template <class T> struct when<true, T> { typedef T type; };
template <class T> struct is_number { enum { yes = 0 }; };
#define NUMBER(T) template <> struct is_number<T> { enum { yes = 1 }; };
NUMBER(bool) NUMBER(char) NUMBER(signed char) NUMBER(uchar) NUMBER(short) NUMBER(ushort) NUMBER(int) NUMBER(uint)
NUMBER(long) NUMBER(ulong) NUMBER(long long) NUMBER(unsigned long long) NUMBER(float) NUMBER(double)
#undef NUMBER
// What a comparison of vectors gives: whole numbers of the same size.
template <int bytes> struct whole;
template <> struct whole<1> { typedef char type; };
template <> struct whole<2> { typedef short type; };
template <> struct whole<4> { typedef int type; };
template <> struct whole<8> { typedef long type; };
template <class T> using whole_of = typename whole<sizeof(T)>::type;
template <int bytes> struct bits;
template <> struct bits<1> { typedef uchar type; };
template <> struct bits<2> { typedef ushort type; };
template <> struct bits<4> { typedef uint type; };
template <> struct bits<8> { typedef ulong type; };
template <class T> using bits_of = typename bits<sizeof(T)>::type;

// One array and nothing beside it: of a union with names the compiler makes whole numbers, which costs instructions. So .x and
// .s0 are written as .a[0], and several of them as functions. To those nothing can be assigned: what they return is const.
#define EACH(count) for (int i = 0; i < (count); ++i)
template <class T, int N> struct vector;
template <class T, int N> struct some { typedef const vector<T, N> type; };
template <class T> struct some<T, 1> { typedef const T type; };
template <class T, int N> struct alignas(N * sizeof(T)) vector {
  T a[N];
  vector() = default;
  template <class S, class = typename when<is_number<S>::yes>::type> __device__ __forceinline__ vector(S x) {
    EACH(N) a[i] = (T)x;
  }
  __device__ __forceinline__ T& operator[](int i) { return a[i]; }
  __device__ __forceinline__ T operator[](int i) const { return a[i]; }
  template <int... at> __device__ __forceinline__ const vector<T, sizeof...(at)> parts_() const {
    vector<T, sizeof...(at)> result;
    T* to = result.a;
    ((*to++ = a[at]), ...);
    return result;
  }
  __device__ __forceinline__ auto lo_() const -> typename some<T, N / 2>::type { return part<0, 1>(); }
  __device__ __forceinline__ auto hi_() const -> typename some<T, N / 2>::type { return part<N / 2, 1>(); }
  __device__ __forceinline__ auto even_() const -> typename some<T, N / 2>::type { return part<0, 2>(); }
  __device__ __forceinline__ auto odd_() const -> typename some<T, N / 2>::type { return part<1, 2>(); }

 private:
  template <int first, int step> __device__ __forceinline__ auto part() const -> typename some<T, N / 2>::type {
    if constexpr (N == 2) {
      return a[first];
    } else {
      vector<T, N / 2> result;
      EACH(N / 2) result.a[i] = a[first + step * i];
      return result;
    }
  }
};
template <class T, int N> using compared = vector<whole_of<T>, N>;

#define WITH_NUMBERS(op, result_of) \
  template <class T, int N, class S> \
  FUNCTION typename when<is_number<S>::yes, result_of<T, N>>::type operator op(vector<T, N> p, S s) { \
    return p op vector<T, N>(s); \
  } \
  template <class T, int N, class S> \
  FUNCTION typename when<is_number<S>::yes, result_of<T, N>>::type operator op(S s, vector<T, N> q) { \
    return vector<T, N>(s) op q; \
  }
// A shift by as many bits as there are, or more, has no meaning here; OpenCL takes it modulo their number.
#define ARITHMETIC(op) \
  template <class T, int N> FUNCTION vector<T, N> operator op(vector<T, N> p, vector<T, N> q) { \
    vector<T, N> result; \
    EACH(N) result.a[i] = p.a[i] op q.a[i]; \
    return result; \
  } \
  WITH_NUMBERS(op, vector) \
  template <class T, int N, class S> FUNCTION vector<T, N>& operator op##=(vector<T, N>& p, S s) { return p = p op s; }
#define COMPARISON(op) \
  template <class T, int N> FUNCTION compared<T, N> operator op(vector<T, N> p, vector<T, N> q) { \
    compared<T, N> result; \
    EACH(N) result.a[i] = p.a[i] op q.a[i] ? -1 : 0; \
    return result; \
  } \
  WITH_NUMBERS(op, compared)
ARITHMETIC(+) ARITHMETIC(-) ARITHMETIC(*) ARITHMETIC(/) ARITHMETIC(%)
ARITHMETIC(&) ARITHMETIC(|) ARITHMETIC(^) ARITHMETIC(<<) ARITHMETIC(>>)
COMPARISON(<) COMPARISON(>) COMPARISON(<=) COMPARISON(>=) COMPARISON(==) COMPARISON(!=) COMPARISON(&&) COMPARISON(||)
#undef ARITHMETIC
#undef COMPARISON
#undef WITH_NUMBERS
template <class T, int N> FUNCTION vector<T, N> operator-(vector<T, N> p) {
  EACH(N) p.a[i] = -p.a[i];
  return p;
}
template <class T, int N> FUNCTION vector<T, N> operator~(vector<T, N> p) {
  EACH(N) p.a[i] = ~p.a[i];
  return p;
}
template <class T, int N> FUNCTION compared<T, N> operator!(vector<T, N> p) { return p == (T)0; }

// (type)(a, b, ...), whose parts may be vectors, too; of a number, C's comma.
template <class T> struct is_vector { enum { yes = 0 }; };
template <class T, int N> struct is_vector<vector<T, N>> { enum { yes = 1 }; };
template <class T, class S> FUNCTION void put(T*& to, S s) { *to++ = (T)s; }
template <class T, class S, int N> FUNCTION void put(T*& to, vector<S, N> v) {
  EACH(N) to[i] = (T)v.a[i];
  to += N;
}
template <class Type, class... Parts> FUNCTION Type vector_of(Parts... parts) {
  if constexpr (is_vector<Type>::yes) {
    Type result;
    auto* to = result.a;
    (put(to, parts), ...);
    return result;
  } else {
    return (Type)((parts, ...));  // of a number, what comma leaves
  }
}

template <class R, class S> FUNCTION R of_same_bits(S s) {
  static_assert(sizeof(R) == sizeof(S), "as_type() needs types of the same size");
  R result;
  memcpy(&result, &s, sizeof(R));
  return result;
}
#define VECTOR_TYPE(T, N) \
  typedef vector<T, N> T##N; \
  template <class S> FUNCTION T##N as_##T##N(S s) { return of_same_bits<T##N>(s); } \
  template <class S> FUNCTION T##N convert_##T##N(vector<S, N> v) { \
    T##N result; \
    EACH(N) result.a[i] = (T)v.a[i]; \
    return result; \
  }
#define TYPE(T) \
  template <class S> FUNCTION T as_##T(S s) { return of_same_bits<T>(s); } \
  template <class S> FUNCTION T convert_##T(S s) { return (T)s; } \
  VECTOR_TYPE(T, 2) VECTOR_TYPE(T, 4) VECTOR_TYPE(T, 8) VECTOR_TYPE(T, 16)
TYPE(char) TYPE(uchar) TYPE(short) TYPE(ushort) TYPE(int) TYPE(uint) TYPE(long) TYPE(ulong) TYPE(float) TYPE(double)
#undef TYPE
#undef VECTOR_TYPE
#define LOADS(N) \
  template <class T> FUNCTION vector<T, N> vload##N(size_t at, const T* from) { \
    vector<T, N> result; \
    EACH(N) result.a[i] = from[N * at + i]; \
    return result; \
  } \
  template <class T> FUNCTION void vstore##N(vector<T, N> v, size_t at, T* to) { EACH(N) to[N * at + i] = v.a[i]; }
LOADS(2) LOADS(4) LOADS(8) LOADS(16)
#undef LOADS

// ---- functions: those that clkernels/opencl_functions.clh declares ----
using ::exp;
using ::exp2;
using ::fabs;
using ::floor;
using ::fma;
using ::fmax;
using ::fmin;
using ::frexp;
using ::ilogb;
using ::ldexp;
using ::max;
using ::min;
using ::rint;
using ::sqrt;
FUNCTION int isnan(float x) { return x != x; }
FUNCTION int isnan(double x) { return x != x; }
template <class T, int N> FUNCTION compared<T, N> isnan(vector<T, N> p) { return p != p; }
// Of a vector the highest bit of each mask decides, of a number whether it is 0.
template <class M> FUNCTION bool is_set(M m) { return (whole_of<M>)m < 0; }
template <class T, class M> FUNCTION typename when<is_number<T>::yes, T>::type select(T no, T yes, M m) { return m ? yes : no; }
template <class T, class M, int N> FUNCTION vector<T, N> select(vector<T, N> no, vector<T, N> yes, vector<M, N> m) {
  EACH(N) no.a[i] = is_set(m.a[i]) ? yes.a[i] : no.a[i];
  return no;
}
template <class M> FUNCTION typename when<is_number<M>::yes, int>::type any(M m) { return is_set(m); }
template <class M> FUNCTION typename when<is_number<M>::yes, int>::type all(M m) { return is_set(m); }
template <class T, int N> FUNCTION int any(vector<T, N> m) {
  int result = 0;
  EACH(N) result |= is_set(m.a[i]);
  return result;
}
template <class T, int N> FUNCTION int all(vector<T, N> m) {
  int result = 1;
  EACH(N) result &= is_set(m.a[i]);
  return result;
}
template <class T> constexpr bool is_signed = (T)-1 < (T)1;
// For numbers; vectors follow below.
#define OF_NUMBERS(R) template <class T> FUNCTION typename when<is_number<T>::yes, R>::type
OF_NUMBERS(T) bitselect(T a, T b, T chosen) {
  typedef bits_of<T> B;
  const B from_a = of_same_bits<B>(a), from_b = of_same_bits<B>(b);
  return of_same_bits<T>((B)(from_a ^ ((from_a ^ from_b) & of_same_bits<B>(chosen))));
}
OF_NUMBERS(T) rotate(T x, T by) {
  const int width = 8 * sizeof(T), left = by & (width - 1), right = -left & (width - 1);
  return (T)((bits_of<T>)x << left | (bits_of<T>)x >> right);
}
OF_NUMBERS(T) popcount(T x) {
  return sizeof(T) == 8 ? (T)__popcll((unsigned long long)x) : (T)__popc((bits_of<T>)x);
}
OF_NUMBERS(T) clz(T x) {
  return sizeof(T) == 8 ? (T)__clzll((long long)x) : (T)(__clz((int)(bits_of<T>)x) - (32 - 8 * (int)sizeof(T)));
}
OF_NUMBERS(T) mul_hi(T a, T b) {
  if constexpr (sizeof(T) < 4) {
    return is_signed<T> ? (T)((int)a * (int)b >> 8 * sizeof(T)) : (T)((uint)a * (uint)b >> 8 * sizeof(T));
  } else if constexpr (sizeof(T) == 4) {
    return is_signed<T> ? (T)__mulhi((int)a, (int)b) : (T)__umulhi((uint)a, (uint)b);
  } else {
    return is_signed<T> ? (T)__mul64hi((long)a, (long)b) : (T)__umul64hi((ulong)a, (ulong)b);
  }
}
OF_NUMBERS(bits_of<T>) abs(T x) { return (bits_of<T>)(is_signed<T> && is_set(x) ? -(bits_of<T>)x : (bits_of<T>)x); }
OF_NUMBERS(bits_of<T>) abs_diff(T a, T b) {
  return (bits_of<T>)(a > b ? (bits_of<T>)a - (bits_of<T>)b : (bits_of<T>)b - (bits_of<T>)a);
}
OF_NUMBERS(T) clamp(T x, T low, T high) { return x < low ? low : x > high ? high : x; }
#undef OF_NUMBERS
// CUDA's own make int of what is smaller.
#define OF_SMALL template <class T> FUNCTION typename when<is_number<T>::yes && sizeof(T) < 4, T>::type
OF_SMALL min(T a, T b) { return b < a ? b : a; }
OF_SMALL max(T a, T b) { return a < b ? b : a; }
#undef OF_SMALL
#ifndef __HIP__  // they are PTX
#define APPROXIMATE(name, instruction) \
  FUNCTION float name(float x) { \
    float y; \
    asm(instruction ".approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); \
    return y; \
  }
APPROXIMATE(native_rsqrt, "rsqrt")
APPROXIMATE(native_sqrt, "sqrt")
APPROXIMATE(native_exp2, "ex2")
#undef APPROXIMATE
#endif
// Of vectors, number by number; R is what a number gives.
#define OF_ONE(name, R) \
  template <class T, int N> FUNCTION vector<R, N> name(vector<T, N> p) { \
    vector<R, N> result; \
    EACH(N) result.a[i] = (R)name(p.a[i]); \
    return result; \
  }
#define OF_TWO(name, R) \
  template <class T, class S, int N> FUNCTION vector<R, N> name(vector<T, N> p, vector<S, N> q) { \
    vector<R, N> result; \
    EACH(N) result.a[i] = (R)name(p.a[i], q.a[i]); \
    return result; \
  }
#define OF_THREE(name) \
  template <class T, int N> FUNCTION vector<T, N> name(vector<T, N> p, vector<T, N> q, vector<T, N> r) { \
    EACH(N) p.a[i] = name(p.a[i], q.a[i], r.a[i]); \
    return p; \
  }
OF_ONE(fabs, T) OF_ONE(sqrt, T) OF_ONE(exp, T) OF_ONE(exp2, T) OF_ONE(floor, T) OF_ONE(rint, T)
OF_ONE(popcount, T) OF_ONE(clz, T) OF_ONE(abs, bits_of<T>)
#ifndef __HIP__
OF_ONE(native_rsqrt, T)
#endif
OF_ONE(ilogb, int)
OF_TWO(fmin, T) OF_TWO(fmax, T) OF_TWO(min, T) OF_TWO(max, T) OF_TWO(ldexp, T) OF_TWO(rotate, T) OF_TWO(mul_hi, T)
OF_TWO(abs_diff, bits_of<T>)
OF_THREE(fma) OF_THREE(clamp) OF_THREE(bitselect)
#undef OF_ONE
#undef OF_TWO
#undef OF_THREE
template <class T, int N> FUNCTION vector<T, N> frexp(vector<T, N> p, vector<int, N>* exponent) {
  EACH(N) p.a[i] = frexp(p.a[i], exponent->a + i);
  return p;
}
#define ATOMIC(T) \
  FUNCTION T atomic_add(volatile T* p, T v) { return atomicAdd((T*)p, v); } \
  FUNCTION T atomic_inc(volatile T* p) { return atomicAdd((T*)p, (T)1); } \
  FUNCTION T atomic_max(volatile T* p, T v) { return atomicMax((T*)p, v); } \
  FUNCTION T atomic_min(volatile T* p, T v) { return atomicMin((T*)p, v); } \
  FUNCTION T atomic_or(volatile T* p, T v) { return atomicOr((T*)p, v); } \
  FUNCTION T atomic_and(volatile T* p, T v) { return atomicAnd((T*)p, v); } \
  FUNCTION T atomic_xchg(volatile T* p, T v) { return atomicExch((T*)p, v); } \
  FUNCTION T atomic_cmpxchg(volatile T* p, T old, T v) { return atomicCAS((T*)p, old, v); }
ATOMIC(int) ATOMIC(uint)
#undef ATOMIC
#undef EACH
#undef FUNCTION

}  // namespace opencl

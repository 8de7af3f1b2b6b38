## What a device can do at most, as far as the kernels of the package are concerned: multiply-adds, copies within its
## memory, reads from local memory. Run by bench/ceilings.py in several shapes, of which the fastest counts.
##
## lanes   values in a vector (1: scalars)                chains  vectors that need not wait for each other
## wg      work-items of a work-group                     rows    vectors of local memory for each work-item
## real    float or double                                contract  fused multiply-adds are written a * b + c
<%
repeats = 8  # of the body of a loop, so that counting does not show
%>
% if real == "double":
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
% endif
% if contract:
#pragma OPENCL FP_CONTRACT ON
#define FUSED(a, b, c) ((a) * (b) + (c))
% else:
#define FUSED(a, b, c) fma(a, b, c)
% endif
typedef ${real} real;
typedef ${real if lanes == 1 else f"{real}{lanes}"} realv;
#define GROUP __attribute__((reqd_work_group_size(${wg}, 1, 1)))

// steps * ${repeats * chains} multiply-adds of a vector in each work-item, in ${chains} chains that need not wait for each other.
kernel GROUP void multiply_add(global realv* restrict out, const real a, const real b, const int steps) {
  const realv av = a, bv = b;
%for c in range(chains):
  realv x${c} = (realv)((real)(get_global_id(0) % 64 + ${c}));
%endfor
  for (int i = 0; i < steps; ++i) {
%for _ in range(repeats):
%for c in range(chains):
    x${c} = FUSED(x${c}, av, bv);
%endfor
%endfor
  }
  out[get_global_id(0)] = ${" + ".join(f"x{c}" for c in range(chains))};
}

// Each group copies a part of its own.
kernel GROUP void copy(global const realv* restrict from, global realv* restrict to, const ulong n, const ulong part) {
  const ulong begin = get_group_id(0) * part;
  if (begin >= n) return;
  const int count = (int)min(part, n - begin);
  from += begin;
  to += begin;
  for (int i = get_local_id(0); i < count; i += ${wg}) to[i] = from[i];
}

// steps * n_rows vectors are read in each work-item, neighbours in the group from neighbouring places. n_rows is ${rows}, but
// the compiler must not know: it could keep all of them in registers.
kernel GROUP void read_local(global realv* restrict out, const int n_rows, const int steps) {
  local realv tile[${rows * wg}];
  const int lane = get_local_id(0);
  for (int r = 0; r < n_rows; ++r) tile[r * ${wg} + lane] = (realv)((real)((r + lane) % 7));
  barrier(CLK_LOCAL_MEM_FENCE);
%for c in range(chains):
  realv x${c} = 0;
%endfor
  for (int i = 0; i < steps; ++i) {
    for (int r = 0; r < n_rows; r += ${chains}) {
%for c in range(chains):
      x${c} += tile[(r + ${c}) * ${wg} + lane];
%endfor
    }
  }
  out[get_global_id(0)] = ${" + ".join(f"x{c}" for c in range(chains))};
}

## A recurrence plot as an image: the recurrent cells of each pixel are counted, or its distances added up, without the matrix.
##
## A work-item keeps the coordinates of its columns in registers and walks down the rows. The matrix is cut like this:
##
##                     chunk 0                chunk 1 ...        chunk: the columns of a group
##      pixels    |   0    |   1    |   2    |   3    | ...       = wg work-items x vectors x lanes
##      piece 0   |  rows piece.y to piece.z - 1,
##      piece 1   |  all within one row of pixels, piece.x
##      ...                                                      A group takes per_group pieces, one after the other,
##                                                               and a piece tile rows at a time.
##
##   1. sweep    A row of a tile takes a difference and a multiply-add for each coordinate, a comparison and an addition.
##   2. recount  In an exact sweep in float32, columns of a tile with open cells, which lie so near a limit that float32 cannot
##               tell, are counted again in float64: here, or on the host where the device has no double precision.
##   3. pixels   After each piece a work-item adds its columns to the pixels of the group in local memory, and the group adds
##               these to the image.
##
## Counts are integers, and distances are added as fixed-point numbers of 64 bits: the order of additions does not matter. In
## a symmetric matrix only pixels on and above the diagonal are computed.
##
## Specialisation
##   m, tau, metric, embedded   as in recurrence_bits
##   dtype          what the sweep computes in
##   mode           "count": recurrent cells; "mean": distances, times `scale`
##   exact          cells are those of float64
##   listed         columns of a tile with open cells are listed for the host, which decides them
##   corridor       there is an inner limit: cells below it do not count
##   per_column     each column has limits of its own
##   wide           a pixel of the image has two words, the lower one first
## Tunables
##   wg, lanes, vectors   work-items of a group, columns of a vector, vectors of a work-item
##   tile           rows that are counted together; with open cells, a column of them is counted again
##   staged         a group reads the rows of a tile once, into local memory
##   piece          rows of a piece at most, about: the host cuts them
##
## Types and names in capitals that are defined neither here nor in a fragment come from numeric.clh (vectors, sentinels) and
## metric.clh (distances).
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   m           coordinates of a point
##   tau         lag: rows between the values of a state
##   metric      distance of two points: a row of pyedmcl/recurrence/arguments.py
##   dtype       number type of data and distances: float32 or float64
##   mode        what a pixel shows: count, the cells that are recurrent, or mean, the mean distance
##   embedded    a point is a row of several coordinates; else it is made of lags of one series
##   exact       cells that float32 cannot decide are decided in float64
##   corridor    a cell counts between two radii, not up to one
##   per_column  each column has a radius of its own
##   listed      open cells are listed, and decided on the host
##   wide        a pixel has two words, for numbers of 64 bits
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   wg          work-items of a group, side by side (1 2 32 64 128 256; 1, 128)
##   lanes       columns of a SIMD vector (1 4 8 16; 16, 1)
##   vectors     vectors of a work-item: they share a row's value (1 2 4 8 16; 4, 4)
##   tile        rows between two looks at the open cells (32 64 128 256 512; 128, 128)
##   staged      whether a group stages its rows in local memory (0 1; 0, 1)
##   piece       rows of a group, about (256 512 1024 2048; 1024, 1024)
## ---- end of parameters ----
<%namespace name="to_pixels" file="recurrence_image_pixels.mako"/>
<%
columns = lanes * vectors            # of a work-item
width = wg * columns                 # of a group
halo = 0 if embedded else (m - 1) * tau  # values behind a point's first one that its other coordinates reach
looped = m > 32  # more coordinates are not written out, but read in a loop, which compiles as fast for any number
each_coordinate = f"EACH_COORDINATE(e, {m})" if looped else f"for (int e = 0; e < {m}; ++e)"
mean = mode == "mean"
sweeps = 2 if exact else 1           # an exact sweep compares with both ends of a guard band
limits = [f"limit{s}" for s in range(sweeps)] + ([f"inner{s}" for s in range(sweeps)] if corridor else [])
# Where float64 decides afterwards, and for means, float32 may be fused. Else a cell is bit for bit what dtype gives.
fused = exact or mean
words = 2 if mean else 1             # of a sum in local memory
total = "ulong" if mean else "uint"  # of a column

def row_at(e):
    """Coordinate e of row r of the tile."""
    if staged:
        return f"xs[{e * tile} + r]" if embedded else f"xs[r + {e * tau}]"
    return f"rows[(size_t){e} * row_stride + i0 + r]" if embedded else f"rows[i0 + r + {e * tau}]"

# Coordinate e, a variable, of row r.
if staged:
    coordinate_of_row = f"xs[e * {tile} + r]" if embedded else f"xs[r + e * {tau}]"
else:
    coordinate_of_row = "rows[(size_t)e * row_stride + i0 + r]" if embedded else f"rows[i0 + r + e * {tau}]"

def of(name, v):
    """A limit, for vector v of columns."""
    return f"{name}_{v}" if per_column else name

def below_outer_only(v, sweep):
    """Cells of vector v that are below the outer limit and not below the inner one, at one end of the guard band."""
    return f"n_limit{sweep}_{v}" + (f" - n_inner{sweep}_{v}" if corridor else "")
%>
#define WIDTH ${width}
#define WIDE ${int(wide)}
%if not fused:
#define UNFUSED  // a cell is a sum of products that are rounded one by one
%endif
#define METRIC ${metric}
#include "metric.clh"
%if looped:
#include "coordinates.clh"
%endif
%if exact and not listed:
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
%endif

${to_pixels.functions()}

kernel void clear_image(global uint* image, const ulong n) {
  const size_t at = get_global_id(0);
  if (at < n) image[at] = 0;
}

%if exact and not listed:
// ---- A column's recurrent cells of some rows as float64 arithmetic finds them: each operation rounded on its own.
__attribute__((noinline)) int recount(global const double* rows64, const int row_stride, global const double* columns64,
                                      const int column_stride, const int i0, const int n, const int j,
                                      const double limit64${", const double inner64" if corridor else ""}) {
#pragma OPENCL FP_CONTRACT OFF
  int count = 0;
  for (int r = 0; r < n; ++r) {
    double a = 0;
    ${each_coordinate} {
%if embedded:
      const double d = rows64[(size_t)e * row_stride + i0 + r] - columns64[(size_t)e * column_stride + j];
%else:
      const double d = rows64[i0 + r + e * ${tau}] - columns64[j + e * ${tau}];
%endif
      const double q = TERM(d);
      a = JOIN_OR_NAN(a, q);
    }
    count += a < limit64;
%if corridor:
    count -= a < inner64;
%endif
  }
  return count;
}
%endif

## ---- Memory steps

## A work-item's columns, and their limits where they have their own, in registers.
<%def name="load_columns()">
%for e in range(0 if looped else m):
%for v in range(vectors):
  const realv y${v}_${e} = LOADV(columns + ${f"(size_t){e} * column_stride" if embedded else e * tau} + j + ${v * lanes});
%endfor
%endfor
%if per_column:
%for name in limits:
%for v in range(vectors):
  const realv ${name}_${v} = LOADV(${name}s + j + ${v * lanes});
%endfor
%endfor
%endif
</%def>

## Global to local memory: n rows of a tile with what lies behind a point's first coordinate; beyond them nothing is near.
<%def name="stage_rows()">
      for (int s = lid; s < ${tile if embedded else tile + halo}; s += ${wg}) {
%if embedded and looped:
        for (int e = 0; e < ${m}; ++e) xs[s + e * ${tile}] = s < n ? rows[(size_t)e * row_stride + i0 + s] : (real)INFINITY;
%endif
%for e in range((0 if looped else m) if embedded else 1):
        xs[s${f" + {e * tile}" if e else ""}] = s < n + ${halo} ? rows[${f"(size_t){e} * row_stride + " if e else ""}i0 + s] : (real)INFINITY;
%endfor
      }
      barrier(CLK_LOCAL_MEM_FENCE);
</%def>

## ---- Stages

## 1. Row r of the tile against all columns of the work-item.
<%def name="sweep_row()">
        realv d, ${", ".join(f"a{v}" for v in range(vectors))};
%if looped:
        EACH_COORDINATE(e, ${m}) {
          const real x = ${coordinate_of_row};
%for v in range(vectors):
          d = x - LOADV(columns + ${"(size_t)e * column_stride" if embedded else f"e * {tau}"} + j + ${v * lanes});
%if fused:
          a${v} = e ? JOIN_FUSED(a${v}, d) : TERM(d);
%else:
          d = TERM(d); a${v} = e ? JOIN(a${v}, d) : d;
%endif
%endfor
        }
%endif
%for e in range(0 if looped else m):
        {
          const real x = ${row_at(e)};
%for v in range(vectors):
          d = x - y${v}_${e};
%if fused:
          a${v} = ${f"JOIN_FUSED(a{v}, d)" if e else "TERM(d)"};
%else:
          d = TERM(d); a${v} = ${f"JOIN(a{v}, d)" if e else "d"};
%endif
%endfor
        }
%endfor
%for v in range(vectors):
%if mean:
          d = DISTANCE(a${v});
          part${v} += CHOOSE((realv)(0), d, d < (realv)(INFINITY));  // what touches a gap is infinite
%else:
%for name in limits:
        n_${name}_${v} ${"+" if lanes == 1 else "-"}= a${v} < ${of(name, v)};  // true is ${1 if lanes == 1 else -1}
%endfor
%endif
%endfor
</%def>

## A tile's distances of vector v as fixed-point numbers.
<%def name="add_distances(v)">
        real out[LANES];
        STOREV(part${v}, out);
        for (int l = 0; l < LANES; ++l) total[${v * lanes} + l] += (ulong)rint(out[l] * scale);
</%def>

## 2. A tile's counts of vector v. A column is open where the two ends of the guard band count differently.
<%def name="add_counts(v)">
        whole out[LANES];
        STOREV(${below_outer_only(v, 0)}, out);
%if exact:
        const rowv open = !(n_limit0_${v} == n_limit1_${v}${f" && n_inner0_{v} == n_inner1_{v}" if corridor else ""});
        whole is_open[LANES];
        STOREV(open, is_open);
        if (ANYV(open))
          for (int l = 0; l < LANES; ++l)
            if (is_open[l]) {
%if listed:
              out[l] = 0;
              open_cells[atomic_inc(n_open)] = (int4)(i0, n, j + ${v * lanes} + l, piece.x);
%else:
              out[l] = recount(rows64, row_stride, columns64, column_stride, i0, n, j + ${v * lanes} + l,
                               ${f"limits64[j + {v * lanes} + l]" if per_column else "limit64"}${", inner64" if corridor else ""});
%endif
            }
%endif
        for (int l = 0; l < LANES; ++l) total[${v * lanes} + l] += (uint)out[l];
</%def>

// ---- Group (x, y) does the ${width} columns of chunk chunk_begin + x, and per_group pieces from piece_begin + y * per_group on.
//
// rows, columns   ${"[coordinate][stride]" if embedded else "the series"}; gaps of rows are +inf and those of columns -inf, so that none is near anything.
//                 Columns are padded likewise to whole chunks.
// pieces          (row of pixels, first row, end, first row of that row of pixels)
// limit0, ...     cells below count${"; 0 and 1 are the ends of the guard band" if exact else ""}${"; one for each column" if per_column else ""}
%if listed:
// open_cells      runs of a column with open cells: (first row, rows, column, row of pixels); n_open: how many
%elif exact:
// rows64, ...     the same in float64
%endif
// image           [pixel row][pixels]${"[2]" if wide else ""}
kernel __attribute__((reqd_work_group_size(${wg}, 1, 1)))
void recurrence_image(global const real* restrict rows, const int row_stride, global const real* restrict columns,
                      const int column_stride, const int n_columns, global const int4* restrict pieces,
                      const int piece_begin, const int piece_end, const int per_group, const int chunk_begin,
                      const int pixels, const int symmetric, global uint* restrict image,
%if mean:
                      const real scale
%else:
                      ${", ".join(f"global const real* restrict {name}s" if per_column else f"const real {name}" for name in limits)}
%endif
%if listed:
                      , global int4* restrict open_cells, volatile global uint* restrict n_open
%elif exact:
                      , global const double* restrict rows64, global const double* restrict columns64,
                      ${"global const double* restrict limits64" if per_column else "const double limit64"}
%if corridor:
                      , const double inner64
%endif
%endif
                      ) {
  local uint sums[WIDTH * ${words}];
  local int place[WIDTH];
%if staged:
  local real xs[${tile * m if embedded else tile + halo}];
%endif
  const int lid = get_local_id(0);
  const int begin = (chunk_begin + (int)get_group_id(0)) * WIDTH, j = begin + lid * ${columns};
  const int first = piece_begin + (int)get_group_id(1) * per_group, end = min(first + per_group, piece_end);
  // Nothing is to do behind the last column or piece, and for columns that lie below the diagonal from the first piece on.
  if (begin >= n_columns || first >= end || (symmetric && begin + WIDTH <= pieces[first].w)) return;
  // The group's pixels: the first of them in a row of pixels, and their number.
  const int left = pixel_of(begin, n_columns, pixels);
  const int places = pixel_of(min(begin + WIDTH, n_columns) - 1, n_columns, pixels) - left + 1;
${to_pixels.prepare(words)}
${load_columns()}
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int p = first; p < end; ++p) {
    const int4 piece = pieces[p];
    if (symmetric && begin + WIDTH <= piece.w) break;  // this chunk lies below the diagonal from here on
    ${total} total[${columns}];
    for (int c = 0; c < ${columns}; ++c) total[c] = 0;
    for (int i0 = piece.y; i0 < piece.z; i0 += ${tile}) {
      const int n = min(${tile}, piece.z - i0);
%if staged:
${stage_rows()}
%endif
%for v in range(vectors):
%if mean:
      realv part${v} = 0;
%else:
      rowv ${", ".join(f"n_{name}_{v} = 0" for name in limits)};
%endif
%endfor
      for (int r = 0; r < n; ++r) {
${sweep_row()}
      }
%for v in range(vectors):
      {
${add_distances(v) if mean else add_counts(v)}
      }
%endfor
%if staged:
      barrier(CLK_LOCAL_MEM_FENCE);
%endif
    }
    {
${to_pixels.add(columns, total)}
    }
    barrier(CLK_LOCAL_MEM_FENCE);
${to_pixels.store()}
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

## A part of knn.cl.mako: squared distances of a step, and the library tile that they may be computed from.

## ---- Which rows may be neighbours ----
##
## The squared distance of a row that may not be a neighbour begins with GAP_SQUARED instead of 0, which puts it beyond every
## bound. `masked`: the library mask comes as a penalty for each row, 0 or GAP_SQUARED.
<%def name="functions()">
#define IS_EXCLUDED(T, J) ((int)abs_diff(T, J) <= exclusion_radius)
%if masked and lanes == 1:
#define PENALTY(J) penalty[J]
%elif masked:
#define PENALTY(J) penalty_at(penalty, J)
// Penalties of rows j to j + LANES - 1. Lanes also meet rows before 0, which have no penalty and are left out by themselves: they
// read that of row 0.
inline realv penalty_at(global const real* restrict penalty, const int j) {
  if (j >= 0) return LOADV(penalty + j);
  real each[LANES];
  for (int l = 0; l < LANES; ++l) each[l] = penalty[max(j + l, 0)];
  return LOADV(each);
}
%endif
</%def>

## ---- The library tile ----
##
## tile > 0: the work-items of a group copy TILE library rows from jt on to local memory, and the HALO numbers before them
## that the lags of these rows reach. Behind the last library row lie gaps.
##
##   tile:  | HALO numbers before jt | x[jt] x[jt + 1] .. x[jt + TILE - 1] |
<%def name="load_tile()">
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int i = get_local_id(0); i < TILE + HALO; i += WG) {
        const int from = jt - HALO + i;
        xs[i] = from < j_end ? x[from] : GAP;
      }
      barrier(CLK_LOCAL_MEM_FENCE);
</%def>

## ---- The distances ----
##
## A step compares the query rows with library rows j to j + unroll - 1; lane l compares row t0 + l with rows l further on.
## squared0, squared1, .. are the squared distances so far, one for each of the step's rows. After each dimension that the
## pass is asked for comes what visit(s) writes, where s is the dimension's number in `dims`.
##
## A sum over the lags is a chain in which each addition waits for the one before. The step's rows are independent chains
## and are interleaved, so that the device has something to do meanwhile.
##
## Where a library value comes from
##   tile > 0                from local memory (xt points at row j), four at a time: offset -3 is element 1 of quad -1
##   lanes > 1               from the series, a vector at a time; rows and lags that need the same vector share a register
##   else                    from the series, through the caches
<%def name="step(visit)">
<%
E_max, staged, rows = max(dims), tile > 0, range(unroll)
# Whether a sum may begin with a penalty. Scalar work-items leave out rows near the query here; lanes do it when they take a
# candidate, which is rarer.
begins = masked or lanes == 1

def register(offset):
    """Name of the variable with what lies `offset` vectors (or quads) from row j on."""
    return f"x_behind{-offset}" if offset < 0 else f"x_at{offset}"

def value(offset):
    """The library's value at row j + offset."""
    if staged:
        return f"{register(offset // 4)}.s{offset % 4}"
    return register(offset) if lanes > 1 else f"x[j + {offset}]"

loaded = set()
%>
  realv difference;
%for u in rows:
  realv squared${u}${f", begin{u} = {f'PENALTY(j + {u})' if masked else 0}" if begins else ""};
%endfor
%if lanes == 1:
  if (j > near_begin && j < near_end) {  // few steps are so near the query
%for u in rows:
    begin${u} = CHOOSE(begin${u}, (realv)(GAP_SQUARED), IS_EXCLUDED(t0, j + ${u}));
%endfor
  }
%endif
%for e in range(E_max):
<%
offsets = [u - e * tau for u in rows]
missing = sorted({offset // 4 if staged else offset for offset in offsets} - loaded) if staged or lanes > 1 else []
loaded.update(missing)
%>
%for at in missing:
%if staged:
  const real4 ${register(at)} = *(local const real4*)(xt + ${4 * at});
%else:
  const realv ${register(at)} = LOADV(x + j + ${at});
%endif
%endfor
%for u in rows:
  difference = q${e} - ${value(offsets[u])};
%if e:
  squared${u} = FUSED(difference, difference, squared${u});
%elif begins:
  squared${u} = FUSED(difference, difference, begin${u});
%else:
  squared${u} = difference * difference;
%endif
%endfor
%if e + 1 in dims:
  ${visit(dims.index(e + 1))}
%endif
%endfor
</%def>

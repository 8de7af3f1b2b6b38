## A part of recurrence_bits.cl.mako: cells that float32 cannot decide are decided in float64.
##
## A sweep in float32 compares what it has joined with both ends of a guard band around each limit, which is wide enough for
## all that float32 may round (recurrence/problem.py). Bit b of `in` is then set where cell b of a word is surely
## recurrent, and bit b of `open` where it may be. Only cells that are open and not in are computed once more here, so that
## the matrix is what float64 gives.
<%def name="functions()">
// One cell in float64, as the definition says: what is compared with the limits. x and y are at the first coordinate of the
// two points; the others follow a stride apart where points are embedded, and tau rows apart where they are lags of a series.
<%
each_coordinate = f"EACH_COORDINATE(e, {m})" if m > 32 else f"for (int e = 0; e < {m}; ++e)"
%>\
double exact_cell(global const double* restrict x, global const double* restrict y, const int x_stride,
                  const int y_stride) {
  double s = 0;
%if embedded:
  ${each_coordinate} {
    const double d = x[(size_t)e * x_stride] - y[(size_t)e * y_stride];
%else:
  ${each_coordinate} {
    const double d = x[e * ${tau}] - y[e * ${tau}];
%endif
    const double q = TERM(d);
    s = JOIN_OR_NAN(s, q);
  }
  return s;
}
</%def>

## Decides the open cells of word w, where each lane has a diagonal of its own, and sets their bits in `in`. These cells are
## rare: a vector is tested as a whole, and then lanes and bits are taken one by one.
<%def name="open_cells()">
<%
below, above = ("<", ">") if strict else ("<=", ">=")
first, second = ("2 * r", "2 * r + 1") if n_radii > 1 else (0, 1)  # the limits of a corridor
%>
    open &= ~in;
    if (${"open" if lanes == 1 else f"any(as_int{lanes}(open != 0))"}) {
      uint undecided[LANES], decided[LANES];
%if lanes == 1:
      undecided[0] = open; decided[0] = in;
%else:
      vstore${lanes}(open, 0, undecided); vstore${lanes}(in, 0, decided);
%endif
      for (int l = 0; l < LANES; ++l)
        while (undecided[l]) {
          // The lowest bit that is left, which is then removed.
          const int b = 31 - (int)clz(undecided[l] & -undecided[l]);
          undecided[l] &= undecided[l] - 1;
          // x has row 0 first, y has column 0 at y_front; lane l has diagonal k + l.
          const size_t row = i0 + 32 * w + b, column = y_front + row + k + l;
          const double s = exact_cell(x64 + row, y64 + column, x_stride, y_stride);
%if per_column:
          if (s ${below} limits64[column]) decided[l] |= 1u << b;
%elif corridor:
          if (s ${below} limits64[${first}] && s ${above} limits64[${second}])
            decided[l] |= 1u << b;
%else:
          if (s ${below} limits64[${"r" if n_radii > 1 else 0}]) decided[l] |= 1u << b;
%endif
        }
      in = ${"decided[0]" if lanes == 1 else f"vload{lanes}(0, decided)"};
    }
</%def>

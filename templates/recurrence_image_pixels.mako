## A part of recurrence_image.cl.mako: which pixel a column belongs to, and sums of its cells, from a work-item's columns to
## the group's pixels in local memory and from there to the image.
##
##   place       the pixel of each column of the group, counted from the group's first one
##   sums        of these pixels: a word each, or two of a mean

<%def name="functions()">
// ---- Sums of two words, to which several work-items add: who makes the low word overflow carries.

inline void add_local(volatile local uint* at, ulong value) {
  const uint low = (uint)value, before = atomic_add(at, low);
  const uint high = (uint)(value >> 32) + (before + low < before ? 1u : 0u);
  if (high) atomic_add(at + 1, high);
}
inline void add_global(volatile global uint* at, ulong value) {
  const uint low = (uint)value, before = atomic_add(at, low);
#if WIDE
  const uint high = (uint)(value >> 32) + (before + low < before ? 1u : 0u);
  if (high) atomic_add(at + 1, high);
#endif
}

// The pixel of a column: pixel p holds columns p * n / pixels, ..., (p + 1) * n / pixels - 1.
inline int pixel_of(int column, int n, int pixels) { return (int)((((ulong)column + 1) * pixels - 1) / n); }
</%def>

## The pixel of each column of the group, counted from the group's first one, and empty sums.
<%def name="prepare(words)">
  for (int c = lid; c < WIDTH; c += ${wg}) {
    place[c] = begin + c < n_columns ? pixel_of(begin + c, n_columns, pixels) - left : places - 1;
%for word in range(words):
    sums[c + ${word} * WIDTH] = 0;
%endfor
  }
</%def>

## A work-item's totals to the group's pixels: neighbouring columns mostly share one, and are added up first.
<%def name="add(columns, total)">
<%
add_to_pixel = "add_local(sums + 2 * at, run)" if mode == "mean" else "atomic_add((volatile local uint*)sums + at, run)"
%>
      int at = place[lid * ${columns}];
      ${total} run = 0;
      for (int c = 0; c < ${columns}; ++c) {
        const int to = place[lid * ${columns} + c];
        if (to != at) {
          if (run) ${add_to_pixel};
          run = 0;
          at = to;
        }
        run += total[c];
      }
      if (run) ${add_to_pixel};
</%def>

## The group's pixels to the image, and empty again.
<%def name="store()">
    for (int k = lid; k < places; k += ${wg}) {
%if mode == "mean":
      const ulong value = sums[2 * k] | ((ulong)sums[2 * k + 1] << 32);
      sums[2 * k] = sums[2 * k + 1] = 0;
%else:
      const uint value = sums[k];
      sums[k] = 0;
%endif
      if (value && !(symmetric && left + k < piece.x))
        add_global(image + ((size_t)piece.x * pixels + left + k) * ${2 if wide else 1}, value);
    }
</%def>

## A part of recurrence_bits.cl.mako: words to global memory, along diagonals and, where transposed, along rows.
##
## What is transposed waits in local memory, in HELD(place, work-item): `n_held` words of each work-item.

## A work-item's word of a radius to global memory, and where transposed to local memory.
<%def name="word()">
    const int rows_left = i_end - (i0 + 32 * w);
    in &= rows_left < 32 ? (1u << rows_left) - 1 : ~0u;
    {
      global uint* at = bits + ${"((size_t)r * n_words + w)" if n_radii > 1 else "(size_t)w"} * n_diagonals + k_local;
%if lanes == 1:
      if (abs(k) < theiler) in = 0;
%if transposed:
      if (k_local < n_diagonals) {
        ${"in &= *at;" if second_partner else ""}
        *at = in;
      }
      HELD(${"n_held" if n_radii > 1 else "w - first"}, (int)get_local_id(0)) = k_local < n_diagonals ? in : 0;
%else:
      *at = ${"*at & " if second_partner else ""}in;
%endif
%else:
      uint word[LANES];
      vstore${lanes}(in, 0, word);
      for (int l = 0; l < LANES && k < theiler && k + LANES > -theiler; ++l)
        if (abs(k + l) < theiler) word[l] = 0;
      vstore${lanes}(vload${lanes}(0, word)${f" & vload{lanes}(0, at)" if second_partner else ""}, 0, at);
%endif
    }
</%def>

## The blocks of words that wait, transposed where they are.
<%def name="transpose_held(blocks)">
  barrier(CLK_LOCAL_MEM_FENCE);
  const int blocks = ${blocks};
  for (int block = get_local_id(0); block < blocks; block += WG) {
    uint a[32];
#pragma unroll
    for (int p = 0; p < 32; ++p) a[p] = held[33 * block + p];
    transpose32(a);
#pragma unroll
    for (int p = 0; p < 32; ++p) held[33 * block + p] = a[p];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
</%def>

## The group's words, transposed block by block, to global memory: rows, [radius][word of 32 diagonals][row].
<%def name="rows()">
${transpose_held("WORDS * (WG / 32)")}
  for (int i = get_local_id(0); i < 32 * blocks; i += WG) {
    const int block = i / 32, w = first + block / (WG / 32);
    const int q = (int)get_group_id(0) * (WG / 32) + block % (WG / 32);
    if (w < end && 32 * q < n_diagonals)
      rows[((size_t)q * n_words + w) * 32 + i % 32] = held[33 * block + i % 32];
  }
</%def>

## The same where words of several radii are held, radius by radius of a row's word; the next one to be stored is that of
## the radius r_stored and of the row w_stored. A work-item stores one row of each.
<%def name="rows_of_radii()">
  {
${transpose_held("n_held * (WG / 32)")}
    const int q = (int)(get_group_id(0) * WG + get_local_id(0)) / 32, row = get_local_id(0) % 32;
    for (int at = 0; at < n_held; ++at) {
      if (32 * q < n_diagonals)
        rows[(((size_t)r_stored * (n_diagonals / 32) + q) * n_words + w_stored) * 32 + row] = HELD(at, (int)get_local_id(0));
      if (++r_stored == n_radii) { r_stored = 0; ++w_stored; }
    }
    n_held = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
</%def>

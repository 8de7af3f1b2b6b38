## A part of smap_gram.cl.mako: its sweeps over all library rows.
##
## A work-item has LANES rows t of its own, and meets the library rows s one after another, each the same for all lanes. Sums over
## s are taken in real for CHUNK rows, then added to what the sweep has so far: rounding grows with the length of a chunk, not
## of the library. Each sweep below says what is done before a chunk, for a row s of it, and after it:
##
##   for each chunk:  before()
##                      for each row s of it:  body()    state_ is its state, d its distance, excluded whether it is too near
##                    after()
##
## Where a group has several work-items, they bring the states of a chunk into local memory together.
<%def name="sweep(before, body, after)">
  for (int jb = 0; jb < n_rows; jb += CHUNK) {
    const int stop = min(CHUNK, n_rows - jb);
%if wg > 1:
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_local_id(0); i < stop * STATE; i += WG) staged_states[i] = states[(size_t)jb * STATE + i];
    barrier(CLK_LOCAL_MEM_FENCE);
%endif
    ${before()}
%if wg > 1:
#pragma unroll 4
%endif
    for (int i = 0; i < stop; ++i) {
      READ_STATE(${"local, staged_states + i * STATE" if wg > 1 else "global, states + (size_t)(jb + i) * STATE"});
      STATE_DISTANCE(d);
      const rowv excluded = TOO_NEAR(jb + i);
      ${body()}
    }
    ${after()}
  }
</%def>

## ---- Sweep 1: nearest, the least distance of a neighbour; total, all distances; count, neighbours ----
<%def name="distances()">
  ${sweep(begin_distances, add_distance, end_distances)}
</%def>
<%def name="begin_distances()">
    realv part = 0;
</%def>
<%def name="add_distance()">
%if gaps:
      const rowv out = excluded || (rowv)(state_[2 * E] == 0);
%else:
      const rowv out = excluded;
%endif
      part += CHOOSE(d, (realv)(0), out);
      nearest = CHOOSE(MINIMUM(nearest, d), nearest, out);
      count += CHOOSE((realv)(1), (realv)(0), out);
</%def>
<%def name="end_distances()">
    total += part;
</%def>

## ---- Sweep 2: the system A, the sum of W^2 (1, z)(1, z)' ----
## The packed triangle of A is K (K + 1) / 2 sums. A compiler keeps them in registers where each has a name: s2_1 for row 2 and
## column 1, row 0 being the constant; and sum4 for the same one in double, by its place in the triangle. From E = 11 on there are
## so many names that it takes too long: then they are arrays.
<%!
def packed(K):
    """(row, column) of the packed triangle, in its order."""
    return [(a, b) for a in range(K) for b in range(a + 1)]
%>
<%def name="declare_system()">
%if E <= 10:
  momentv ${", ".join(f"sum{i} = 0" for i in range(len(packed(E + 1))))};
%else:
  momentv sum[N_PACKED];
  for (int i = 0; i < N_PACKED; ++i) sum[i] = 0;
%endif
</%def>
<%def name="system()">
  ${sweep(begin_system, add_products, end_system)}
</%def>
<%def name="begin_system()">
%if E <= 10:
    realv ${", ".join(f"s{a}_{b} = 0" for a, b in packed(E + 1))};
%else:
    realv s[N_PACKED];
    for (int i = 0; i < N_PACKED; ++i) s[i] = 0;
%endif
</%def>
<%def name="add_products()">
      const realv w = STATE_COUNTS(STATE_WEIGHT(d), excluded);
%if E <= 10:
%for e in range(1, E + 1):
      const realv z${e} = state_[E + ${e - 1}] - centre[${e - 1}], w${e} = w * z${e};
%endfor
%for a, b in packed(E + 1):
%if b == 0:
      s${a}_0 += ${f"w{a}" if a else "w"};
%else:
      s${a}_${b} = FUSED(w${a}, z${b}, s${a}_${b});
%endif
%endfor
%else:
      realv z[K];
      z[0] = 1;
      for (int e = 0; e < E; ++e) z[e + 1] = state_[E + e] - centre[e];
      _Pragma("unroll 1") for (int a = 0; a < K; ++a) {
        const realv wa = w * z[a];
        _Pragma("unroll 1") for (int b = 0; b <= a; ++b) s[PACKED(a, b)] = FUSED(wa, z[b], s[PACKED(a, b)]);
      }
%endif
</%def>
<%def name="end_system()">
%if E <= 10:
%for i, (a, b) in enumerate(packed(E + 1)):
    sum${i} += CONVERT_MOMENTV(s${a}_${b});
%endfor
%else:
    for (int i = 0; i < N_PACKED; ++i) sum[i] += CONVERT_MOMENTV(s[i]);
%endif
</%def>
## To memory, where a row's triangle can be had: number i of lane l at ${into}[i * LANES + l].
<%def name="store_system(into)">
%for i in range(len(packed(E + 1))):
  STORE_MOMENTV(${f"sum{i}" if E <= 10 else f"sum[{i}]"}, ${into} + ${i} * LANES);
%endfor
</%def>

## ---- Sweep 3: the sum of H (1, z), with the very numbers H that smap_map will have; number i is added to ${rest}[i * LANES + l] ----
<%def name="predicted()">
      ${sweep(begin_predicted, add_predicted, end_predicted)}
</%def>
<%def name="begin_predicted()">
      realv ${", ".join(f"r{a} = 0" for a in range(E + 1))};
</%def>
<%def name="add_predicted()">
      PREDICTS_WITH(h, STATE_WEIGHT(d), excluded);
      r0 += h;
%for e in range(1, E + 1):
      r${e} = FUSED(h, state_[E + ${e - 1}] - centre[${e - 1}], r${e});
%endfor
</%def>
<%def name="end_predicted()">
%for e in range(E + 1):
      STORE_MOMENTV(LOAD_MOMENTV(rest + ${e} * LANES) + CONVERT_MOMENTV(r${e}), rest + ${e} * LANES);
%endfor
</%def>

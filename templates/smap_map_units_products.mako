## A part of smap_map_units.mako: H times the targets, on the matrix units, and what of p each work-item keeps.
##
## A product adds what 16 library rows say of 16 rows and 8 targets. `vectors` products lie side by side, so that H, which is
## made once for all of them, serves all targets of the group. Product v has four sums in each work-item:
##
##   p<v>_0, p<v>_1   row t0, targets i % 4 * 2 and i % 4 * 2 + 1 of the eight number v       (i: the work-item of 32)
##   p<v>_2, p<v>_3   row t1, the same targets
##
## With halves, H y is the sum of three products: low H times high y, high H times low y, and high H times high y. That of both
## low halves, the least of the four, is left out.

## The sums of all products, which begin at 0.
<%def name="begin()">
  ${"real" if halves else "double"} ${", ".join(f"p{v}_{i} = 0" for v in range(vectors) for i in range(4))};  // two targets of either row
%if halves:
  volatile real total[${4 * vectors}];  // not in registers, of which p takes many
  for (int i = 0; i < ${4 * vectors}; ++i) total[i] = 0;
%endif
</%def>

## Adds the products of 16 library rows, whose targets lie at y. Four products share a scope: their targets are read first, and
## then multiplied.
<%def name="add()">
%if halves:
        uint high0, high1, high2, high3, low0, low1, low2, low3;
        SPLIT_IN_HALVES(high0, low0, h0[0], h0[1]);
        SPLIT_IN_HALVES(high1, low1, h1[0], h1[1]);
        SPLIT_IN_HALVES(high2, low2, h0[2], h0[3]);
        SPLIT_IN_HALVES(high3, low3, h1[2], h1[3]);
%endif
%for v0 in range(0, vectors, 4):
        {
<% four = range(v0, min(v0 + 4, vectors)) %>
%for v in four:
          const uint4 y${v} = y[${32 * v}];
%endfor
%if not halves:
%for v in four:
          PRODUCT_IN_DOUBLE(p${v}_0, p${v}_1, p${v}_2, p${v}_3, h0, h1, as_float4(y${v}));
%endfor
%else:
%for of_h, of_y in (("low", "xy"), ("high", "zw"), ("high", "xy")):
%for v in four:
          PRODUCT_OF_HALVES(p${v}_0, p${v}_1, p${v}_2, p${v}_3, ${", ".join(f"{of_h}{i}" for i in range(4))}, y${v}.${of_y[0]}, y${v}.${of_y[1]});
%endfor
%endfor
%endif
        }
%endfor
</%def>

## Adds p to its total and begins anew, once in 512 library rows. In halves only: sums in double are long enough.
<%def name="add_to_total()">
      // A matrix unit cuts off what a sum cannot hold, always towards zero, so that sums of thousands of rows would drift.
      if (from / STEP % ${512 // step} == ${512 // step - 1}) {
%for v in range(vectors):
        total[${4 * v}] += p${v}_0;
        total[${4 * v + 1}] += p${v}_1;
        total[${4 * v + 2}] += p${v}_2;
        total[${4 * v + 3}] += p${v}_3;
        p${v}_0 = p${v}_1 = p${v}_2 = p${v}_3 = 0;
%endfor
      }
</%def>

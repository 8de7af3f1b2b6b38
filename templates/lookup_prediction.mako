## A part of lookup.cl.mako: the predictions of a row, from its neighbours' rows and weights in the table.
##
## The prediction of a target is the sum of its values at the neighbours' rows, each times the neighbour's weight. `at` is where
## the table has the row's nearest neighbour; p0, p1, ... become the predictions of a work-item's vectors of targets. Each
## neighbour's row and weight are loaded once and serve all of these vectors. Neighbours are added in the order of the table,
## however they are loaded, so that the bits do not depend on the parameters.
##
## Where the neighbours of a row are adjacent (table_tile == 1), they can be loaded four at a time (quads). The table is padded
## to four neighbours, so that the last four can be read even where k is no multiple of four.
<%def name="of_row(target)">
<%
by_fours = quads and table_tile == 1
row_type = "ushort" if narrow_rows else "int"

def four(name, at):
    """Four adjacent numbers of the table `name`, rows as int."""
    loaded = f"*(global const {'PASTE(REAL_NAME, 4)' if name == 'weights' else row_type + '4'}*)({name} + {at})"
    return f"{'convert_int4' if narrow_rows else ''}({loaded})" if name == "rows" else loaded
%>
%if by_fours and k:
%for q in range(-(-k // 4)):
        const int4 row${q} = ${four("rows", f"at + {4 * q}")};
        const PASTE(REAL_NAME, 4) weight${q} = ${four("weights", f"at + {4 * q}")};
%endfor
%endif
## The weights of a row add to 1: a sum that begins at -centre is centred without further work.
%for v in range(vectors):
        realv p${v} = ${f"-centre{v}" if precision == "compact" else "0"};
%endfor
%for i in range(k):
        ${add_neighbour(target, *((f"weight{i // 4}.s{i % 4}", f"row{i // 4}.s{i % 4}") if by_fours else in_table(i * table_tile)))}
%endfor
%if not k and by_fours:
        // The last four may be fewer than four neighbours: the padding behind them is loaded, but never used.
        for (int i = 0; i < any_k; i += 4) {
          const int4 row4 = ${four("rows", "at + i")};
          const PASTE(REAL_NAME, 4) weight4 = ${four("weights", "at + i")};
%for j in range(4):
          ${f"if (any_k > i + {j})" if j else ""} ${add_neighbour(target, f"weight4.s{j}", f"row4.s{j}")}
%endfor
        }
%elif not k:
        for (int i = 0; i < any_k; ++i) ${add_neighbour(target, *in_table(f"i * {table_tile}"))}
%endif
</%def>
<%!
def in_table(offset):
    """The weight and the row of a neighbour, `offset` numbers after the nearest one's."""
    return f"weights[at + {offset}]", f"rows[at + {offset}]"
%>
## Adds one neighbour to the predictions of all vectors; `target` gives the expression of a vector of targets at a row.
<%def name="add_neighbour(target, weight, row)">
        {
          const realv w = ${weight};
          const int row = ${row};
%for v in range(vectors):
          p${v} = FUSED(w, ${target("row", v)}, p${v});
%endfor
        }
</%def>

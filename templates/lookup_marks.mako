## A part of lookup.cl.mako: a launch with precision "again" computes the pairs whose rho is MARKED, and no others.
##
## Marks are rare. A group therefore looks for one among all pairs of its column tile before it fetches targets, and mostly ends
## there; a group that has one passes over those libraries that have none. All work-items of a group come to the same decision,
## since they meet the same barriers afterwards.

## Ends the group where none of its pairs is marked.
<%def name="end_unless_marked()">
<%
group_columns = target_lanes * vectors * lanes
wg = target_lanes * row_lanes * library_lanes
%>
  local int any_marked;
  if (get_local_id(0) == 0) any_marked = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int first = slice * ${library_lanes}; first < n_libraries; first += n_slices * ${library_lanes})
    for (int i = get_local_id(0); i < ${library_lanes * group_columns}; i += ${wg}) {
      const int library = first + i / ${group_columns}, c = tile_begin + i % ${group_columns};
      if (library < n_libraries && c < column_end)
        if (rho[(size_t)(first_library + library) * rho_stride + target_of[c]] == MARKED) any_marked = 1;
    }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (!any_marked) return;
</%def>

## Goes on to the next libraries of the group where none of the pairs at hand is marked.
<%def name="continue_unless_marked()">
<%
group_columns = target_lanes * vectors * lanes
%>
    int marked = 0;
    for (int i = 0; i < ${library_lanes * group_columns}; ++i) {
      const int other = min(first + i / ${group_columns}, n_libraries - 1), c = tile_begin + i % ${group_columns};
      if (c < column_end) marked |= rho[(size_t)(first_library + other) * rho_stride + target_of[c]] == MARKED;
    }
    if (!marked) continue;
</%def>

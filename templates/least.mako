## The least of several numbers, as one expression of OpenCL C. It is a balanced tree, so that few minima wait for others:
## least.of(["a", "b", "c"]) is MINIMUM(MINIMUM(a, b), c).
<%def name="of(names)">\
<%
names = list(names)
if len(names) == 1:
    return names[0]
half = (len(names) + 1) // 2
return f"MINIMUM({of(names[:half])}, {of(names[half:])})"
%>
</%def>

"""Names of public functions in the text of pages, `xmap` or `pyedmcl.xmap(x)`, as links to their descriptions."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

import pyedmcl

#: Names that are words of a shell or of other packages as often as ours are linked only with "pyedmcl." before them.
AMBIGUOUS = {"check", "embed"}
NAMES = set(pyedmcl.__all__) - {"__version__"}

_CALL = re.compile(r"(pyedmcl\.)?(\w+)(?:\(.*\))?")


def setup(app):
    app.add_transform(LinkNames)
    app.connect("source-read", list_functions)
    app.connect("autodoc-process-docstring", qualify_see_also, priority=400)  # before numpydoc
    return {"parallel_read_safe": True}


class LinkNames(SphinxTransform):
    default_priority = 200

    def apply(self):
        for literal in list(self.document.findall(nodes.literal)):
            match = _CALL.fullmatch(literal.astext())
            name = match and match[2]
            if name not in NAMES or (name in AMBIGUOUS and not match[1]):
                continue
            if isinstance(literal.parent, (nodes.title, nodes.reference, addnodes.pending_xref)):
                continue
            link = addnodes.pending_xref(
                "", reftype="obj", refdomain="py", reftarget=f"pyedmcl.{name}", refexplicit=True,
                refdoc=self.env.docname, refwarn=True,
            )  # fmt: skip
            literal.replace_self(link)
            link += literal


def list_functions(app, docname, source):
    """A table of all functions, each with the first sentence of its docstring."""
    names = "\n".join(f"   pyedmcl.{name}" for name in pyedmcl.__all__ if name in NAMES)
    table = f"```{{eval-rst}}\n.. autosummary::\n   :nosignatures:\n\n{names}\n```"
    source[0] = source[0].replace("<!-- functions -->", table)


def qualify_see_also(app, what, name, obj, options, lines):
    """help() shows plain names under "See Also"; here each leads to its description."""
    if "See Also" in lines:
        start = lines.index("See Also") + 2
        for i, line in enumerate(lines[start:], start):
            lines[i] = re.sub(r"^(\w+) : ", r"pyedmcl.\1 : ", line)
            if not line.strip():
                break

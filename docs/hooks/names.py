"""Names of public functions in the text of pages, such as `xmap` or `pyedmcl.xmap`, as links to their descriptions."""

from __future__ import annotations

import inspect
import re

import pyedmcl

#: Names that are words of a shell or of other packages as often as ours are linked only with "pyedmcl." before them.
AMBIGUOUS = {"__version__", "check", "embed"}

_NAMES = set(pyedmcl.__all__) - {"__version__"}
_CODE = re.compile(r"(?<![`\[])`(pyedmcl\.)?(\w+)(\([^`\n]*\))?`(?![`\]])")
_LINK = r"\[[^\[\]]*\](?:\([^()]*\)|\[[^\[\]]*\])"
_UNTOUCHED = re.compile(rf"(^ *```.*?^ *```$|^#+ .*?$|{_LINK}|<!--.*?-->)", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown, page, config, files):
    if page.file.src_uri.startswith("notebooks/"):
        return markdown
    markdown = markdown.replace("<!-- functions -->", summary())
    parts = _UNTOUCHED.split(markdown)
    parts[::2] = [_CODE.sub(linked, part) for part in parts[::2]]
    return "".join(parts)


def linked(match):
    prefix, name = match[1], match[2]
    if name not in _NAMES or (name in AMBIGUOUS and not prefix):
        return match[0]
    return f"[{match[0]}][pyedmcl.{name}]"


def summary():
    """A table of all functions, each with the first sentence of its docstring."""
    lines = ["| function | what it does |", "| --- | --- |"]
    for name in pyedmcl.__all__:
        if name != "__version__":
            text = " ".join(inspect.getdoc(getattr(pyedmcl, name)).split("\n\n")[0].split())
            lines.append(f"| [`{name}`][pyedmcl.{name}] | {text} |")
    return "\n".join(lines)

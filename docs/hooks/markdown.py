"""What GitHub's Markdown allows and Python-Markdown does not, written as both read it.

A list or a table may follow a line of text, and an item a paragraph of the one before: an empty line is put between.
What belongs to an item may stand two columns to the right of it: here four. And lines that say why code is not run in
the tests become small print.
"""

from __future__ import annotations

import re

_ITEM = re.compile(r" *(?:[*-]|\d+\.) ")
_ROW = re.compile(r" *\|")
_FENCE = re.compile(r" *```")
_NOT_RUN = re.compile(r"^\*(Not run in the tests: .+)\*$", re.MULTILINE)


def on_page_markdown(markdown, page, config, files):
    return "\n".join(lines_for_python(_NOT_RUN.sub("\n\\1\n{: .not-run }\n", markdown).split("\n")))


def lines_for_python(lines):
    before, in_code, in_list, loose = "", False, False, False
    for line in lines:
        fence = bool(_FENCE.match(line))
        item = bool(_ITEM.match(line))
        if not in_code:
            if line.strip() and not line.startswith(" "):
                in_list = item
            loose = in_list and (loose or not line.strip())
            if not fence and (opens(line, item, before) or (item and loose and before.strip())):
                yield ""
        yield "  " * ((len(line) - len(line.lstrip())) // 2) + line if in_list else line
        before, in_code = line, in_code != fence


def opens(line, item, before):
    """Does a list or a table begin here, right below something else?"""
    if not before.strip():
        return False
    if item:
        return not _ITEM.match(before) and not before.startswith(" ")
    return bool(_ROW.match(line)) and not _ROW.match(before)

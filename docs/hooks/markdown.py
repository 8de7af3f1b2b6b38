"""What GitHub's Markdown allows and Python-Markdown does not: lists and tables right below a line of text.

And lines that say why code is not run in the tests, as small print.
"""

from __future__ import annotations

import re

_FENCE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
_LIST = re.compile(r"^(?![*+-] |\d+\. | |\||#|$|<!--)(.+)\n(?=[*-] |1\. )", re.MULTILINE)
_TABLE = re.compile(r"^(?!\||$)(.+)\n(?=\|)", re.MULTILINE)
_NOT_RUN = re.compile(r"^\*(Not run in the tests: .+)\*$", re.MULTILINE)


def on_page_markdown(markdown, page, config, files):
    markdown = _NOT_RUN.sub("\n\\1\n{: .not-run }\n", markdown)
    parts = _FENCE.split(markdown)
    parts[::2] = [_TABLE.sub(r"\1\n\n", _LIST.sub(r"\1\n\n", part)) for part in parts[::2]]
    return "".join(parts)

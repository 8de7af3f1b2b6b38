"""Pages of the site that lie outside of docs/, and links that lead out of docs/.

In the repository pages link to each other's files, as GitHub shows them. Sphinx follows links between pages of docs/. A
link to a page outside of docs/ is written anew for the place of its copy, and a link to anything else, such as a
program, becomes a link into the public repository. A link whose text is the name of a page shows that page's title.
Lines that say why code is not run in the tests become small print.
"""

from __future__ import annotations

import os.path
import posixpath
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: Folder within docs/ where pages lie while the site is built that are not kept there.
COPIES = "_copies"

#: Files of the repository that are pages of the site, and the names of their copies.
OUTSIDE = {
    "CHANGELOG.md": "changelog",
    "CODE_OF_CONDUCT.md": "conduct",
    "CONTRIBUTING.md": "contributing",
    "SECURITY.md": "security",
    "bench/README.md": "results",
}
URL = re.search(r'^Source = "(.+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)[1]

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s:#]+)(#[^()\s]*)?\)")
_FILE = re.compile(r"[\w/.-]+\.md")
_NOT_RUN = re.compile(r"^\*(Not run in the tests: .+)\*$", re.MULTILINE)
_FENCE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)


def setup(app):
    app.connect("builder-inited", copy_pages)
    app.connect("build-finished", lambda app, exception: shutil.rmtree(Path(app.srcdir) / COPIES))
    app.connect("source-read", rewrite_links)
    app.connect("autodoc-process-docstring", link_pages)
    return {"parallel_read_safe": True}


def copy_pages(app):
    folder = Path(app.srcdir) / COPIES
    folder.mkdir(exist_ok=True)
    for path, name in OUTSIDE.items():
        (folder / f"{name}.md").write_text((ROOT / path).read_text(encoding="utf-8"), encoding="utf-8")


def rewrite_links(app, docname, source):
    origin = {f"{COPIES}/{name}": path for path, name in OUTSIDE.items()}.get(docname, f"docs/{docname}")
    here = posixpath.dirname(f"docs/{docname}")

    def rewritten(match):
        mark, text, target, anchor = match[1], match[2], match[3], match[4] or ""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), target))
        if path == "README.md":
            path = "docs/index.md"
        if path in OUTSIDE:
            place = f"docs/{COPIES}/{OUTSIDE[path]}.md"
        elif path.startswith("docs/") and (ROOT / path).is_file() and not path.startswith("docs/hooks/"):
            place = path
        elif (ROOT / path).exists():
            return f"[{text}]({URL}/blob/main/{path})"
        else:
            return match[0]  # Sphinx names it
        shown = "" if _FILE.fullmatch(text) and not anchor else text
        return f"{mark}[{shown}]({os.path.relpath(place, here)}{anchor})"

    parts = _FENCE.split(source[0])
    parts[::2] = [_LINK.sub(rewritten, part) for part in parts[::2]]
    source[0] = _NOT_RUN.sub(r"\n{.not-run}\n\1\n", "".join(parts))


def link_pages(app, what, name, obj, options, lines):
    """A docstring names a page by its file, and writes |t - j| and (*axes, n): help() shows both as they stand."""
    for i, line in enumerate(lines):
        parts = re.split(r"(``.*?``)", re.sub(r"``docs/([\w/]+)\.md``", r":doc:`/\1`", line))
        parts[::2] = [re.sub(r"\|(?=\S)|(?<=\()\*", r"\\\g<0>", part) for part in parts[::2]]
        lines[i] = "".join(parts)

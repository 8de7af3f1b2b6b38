"""Pages of the site that lie outside of docs/, and the links between all pages.

In the repository pages link to each other's files, as GitHub shows them. Here a link is followed from the file that it
stands in, and written anew for the place that the page has on the site. What the site does not hold, such as a program,
becomes a link into the public repository. A link whose text is the name of a page shows that page's title.
"""

from __future__ import annotations

import os.path
import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]

#: Files of the repository that are pages of the site, and their places there.
OUTSIDE = {
    "CHANGELOG.md": "CHANGELOG.md",
    "CODE_OF_CONDUCT.md": "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "SECURITY.md": "SECURITY.md",
    "bench/README.md": "bench/results.md",
}

#: Files that have no page of their own, and the page that says the same.
INSTEAD = {"README.md": "index.md"}

#: Not mkdocs' `repo_url`: with that, pages would ask the host of the repository for numbers to show.
URL = re.search(r'^Source = "(.+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)[1]

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s:#]+)(#[^()\s]*)?\)")
_FILE = re.compile(r"[\w/.-]+\.md")
_FENCE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)


def on_files(files, config):
    for path, place in OUTSIDE.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown, page, config, files):
    source = page.file.src_uri
    from_outside = {place: path for path, place in OUTSIDE.items()}
    folder = posixpath.dirname(from_outside.get(source, posixpath.join("docs", source)))

    def written(match):
        mark, text, target, anchor = match[1], match[2], match[3], match[4] or ""
        path = posixpath.normpath(posixpath.join(folder, target))
        place = place_on_site(path, files)
        if place is not None:
            if _FILE.fullmatch(text):
                text = title(ROOT / path)
            return f"{mark}[{text}]({os.path.relpath(place, posixpath.dirname(source) or '.')}{anchor})"
        if not (ROOT / path).exists():
            return match[0]  # the strict build names it
        return f"[{text}]({URL}/blob/main/{path})"

    parts = _FENCE.split(markdown)
    parts[::2] = [_LINK.sub(written, part) for part in parts[::2]]
    return "".join(parts)


def title(path):
    return re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)[1]


def place_on_site(path, files):
    """Where a file of the repository is on the site; None where the site does not hold it."""
    place = {**INSTEAD, **OUTSIDE}.get(path, path.removeprefix("docs/") if path.startswith("docs/") else None)
    return place if place is not None and files.get_file_from_path(place) is not None else None

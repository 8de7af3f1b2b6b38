"""The notebooks: listed in the order of their names under their titles, and run in a folder of their own."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

_folders = []  # where the notebook is run that is being rendered, and where the build goes on


def on_config(config):
    paths = sorted(Path(config.docs_dir).glob("notebooks/*.py"))
    pages = [{title(path): f"notebooks/{path.name}"} for path in paths]
    at = next(i for i, entry in enumerate(config.nav) if "How-to" in entry)
    config.nav.insert(at, {"Notebooks": ["notebooks/index.md", *pages]})
    return config


def title(path):
    return re.search(r"^# # (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)[1]


def on_page_markdown(markdown, page, config, files):
    """Called right before a page is rendered: what a notebook writes shall not lie about in the checkout."""
    if page.file.src_uri.endswith(".py"):
        _folders.append((tempfile.TemporaryDirectory(), os.getcwd()))
        os.chdir(_folders[-1][0].name)


def on_page_content(html, page, config, files):
    if page.file.src_uri.endswith(".py"):
        folder, before = _folders.pop()
        os.chdir(before)
        folder.cleanup()

"""The list of notebooks: their index, and each docs/notebooks/*.py under the title that it begins with."""

from __future__ import annotations

import re
from pathlib import Path


def on_config(config):
    paths = sorted(Path(config.docs_dir).glob("notebooks/*.py"))
    pages = [{title(path): f"notebooks/{path.name}"} for path in paths]
    if pages:
        at = next(i for i, entry in enumerate(config.nav) if "How-to" in entry)
        config.nav.insert(at, {"Notebooks": ["notebooks/index.md", *pages]})
    return config


def title(path):
    return re.search(r"^# # (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)[1]

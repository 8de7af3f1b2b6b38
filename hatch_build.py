"""The description on PyPI: README.md with links that lead into the repository, at the tag of the version."""

from __future__ import annotations

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")


class ReadmeHook(MetadataHookInterface):
    """Fills in the field ``readme`` of the project's metadata."""

    def update(self, metadata: dict[str, object]) -> None:
        """See hatchling."""
        root = Path(self.root)
        (version,) = re.findall(r'^__version__ = "(.*)"$', (root / "pyedmcl/__init__.py").read_text(), re.MULTILINE)
        urls = metadata["urls"]
        assert isinstance(urls, dict)
        text = absolute((root / "README.md").read_text(encoding="utf-8"), urls["Source"], f"v{version}")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def absolute(text: str, repository: str, tag: str) -> str:
    """Links into the checkout as addresses of the repository; those of images as addresses of the files themselves."""

    def written(match: re.Match[str]) -> str:
        mark, words, target = match.groups()
        return f"{mark}[{words}]({repository}/{'raw' if mark else 'blob'}/{tag}/{target})"

    return _LINK.sub(written, text)

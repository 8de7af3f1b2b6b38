"""Docstrings as pages show them: roles, the names under "See Also" and pages that are named become links."""

from __future__ import annotations

import re

import griffe

import pyedmcl

_ROLE = re.compile(r":(?:func|class|meth|mod|attr):`~?(?:pyedmcl\.)?([\w.]+)`")
_SEE_ALSO = re.compile(r"^See Also\n-+\n((?:.+\n?)+)", re.MULTILINE)
_ENTRY = re.compile(r"^(\w+) : ", re.MULTILINE)
_PAGE = re.compile(r"``docs/([\w/]+)\.md``")


class Links(griffe.Extension):
    """Rewrites each docstring before it is taken apart."""

    def on_instance(self, *, obj, **_):
        if obj.docstring is not None:
            obj.docstring.value = with_links(obj.docstring.value)


def with_links(text):
    text = _SEE_ALSO.sub(lambda match: "See Also\n--------\n" + _ENTRY.sub(r"* [`\1`][pyedmcl.\1]: ", match[1]), text)
    text = _ROLE.sub(lambda match: reference(match[1]), text)
    return _PAGE.sub(r"[\1](../\1.md)", text)


def reference(name):
    return f"[`{name}`][pyedmcl.{name}]" if name in pyedmcl.__all__ else f"`{name}`"

"""Docstrings as pages show them: links in the place of roles, of names under "See Also" and of pages that are named.

And heads of parameters in a form in which griffe finds the default of each in the signature: it takes the first of
{"a", "b"} for the default, and gives all names of "a, b : int" that of the first.
"""

from __future__ import annotations

import re

import griffe

import pyedmcl

_ROLE = re.compile(r":(?:func|class|meth|mod|attr):`~?(?:pyedmcl\.)?([\w.]+)`")
_SEE_ALSO = re.compile(r"^See Also\n-+\n((?:.+\n?)+)", re.MULTILINE)
_ENTRY = re.compile(r"^(\w+) : ", re.MULTILINE)
_PAGE = re.compile(r"``docs/([\w/]+)\.md``")
_PARAMETERS = re.compile(r"(?<=^Parameters\n----------\n).*?(?=^\w[\w ]*\n---|\Z)", re.MULTILINE | re.DOTALL)
_CHOICES = re.compile(r"^(\w+(?:, \w+)*) : \{(.*?)(?:, ([^,{}]*))?\}", re.MULTILINE)
_SEVERAL = re.compile(r"^(\w+(?:,\s\w+)+)((?: : .*)?\n(?:(?: {4}.*)?\n|(?: {4}.*)\Z)+)", re.MULTILINE)


class Links(griffe.Extension):
    """Rewrites each docstring before it is taken apart."""

    def on_instance(self, *, obj, **_):
        if obj.docstring is not None:
            obj.docstring.value = with_links(with_plain_heads(obj.docstring.value))


def with_links(text):
    text = _SEE_ALSO.sub(lambda match: "See Also\n--------\n" + _ENTRY.sub(r"* [`\1`][pyedmcl.\1]: ", match[1]), text)
    text = _ROLE.sub(lambda match: reference(match[1]), text)
    return _PAGE.sub(r"[\1](../\1.md)", text)


def reference(name):
    return f"[`{name}`][pyedmcl.{name}]" if name in pyedmcl.__all__ else f"`{name}`"


def with_plain_heads(text):
    return _PARAMETERS.sub(lambda match: _SEVERAL.sub(apart, _CHOICES.sub(listed, match[0])), text)


def listed(match):
    return f"{match[1]} : {match[2]}" + (f" or {match[3]}" if match[3] else "")


def apart(match):
    return "".join(f"{name}{match[2]}" for name in re.split(r",\s", match[1]))

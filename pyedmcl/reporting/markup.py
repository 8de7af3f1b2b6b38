"""HTML whose every value is escaped: names of series are data, whatever they look like."""

from __future__ import annotations

import base64
import html
import json
from typing import Any

_VOID = ("img", "input")  # elements that have no content


def printable(value: object) -> str:
    """A value as text without control characters, and without signs that turn the direction of what follows."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in str(value))


def text(value: object) -> str:
    """A value as text of a page or of an attribute in double quotes."""
    return html.escape(printable(value), quote=True)


def element(name: str, *content: str, **attributes: object) -> str:
    """An element of ``content``, which is HTML already, and attributes, which are values.

    ``class_`` is the attribute class, and other underscores are hyphens; True is an attribute without a value, and
    those of None or False are left out.
    """
    shown = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{text(value)}"')
        for key, value in attributes.items() if value is not None and value is not False
    )  # fmt: skip
    return f"<{name}{shown}>" if name in _VOID else f"<{name}{shown}>{''.join(content)}</{name}>"


def data(content: Any, **attributes: object) -> str:
    """Plain data for a script of the page, which no text in it can end."""
    dumped = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    # Within a script element only these begin anything.
    safe = dumped.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return element("script", safe, type="application/json", **attributes)


def data_uri(kind: str, content: bytes) -> str:
    """Bytes as an address that needs no network."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def number(value: float) -> str:
    """A number in four digits, as a table shows it."""
    return "\N{EN DASH}" if value != value else f"{value:.4g}"

"""``pyedmcl help``: the pages of the documentation and some of their sections, in a terminal."""

from __future__ import annotations

import difflib
import os
import re
import sys
from typing import Annotated

import typer

from . import options
from .talk import Talk

#: Sections that are topics of their own: page and heading.
SECTIONS = {
    "files": ("cli", "Input"),
    "maps": ("cli", "Reading a map"),
    "runs": ("cli", "Long runs"),
    "exit-codes": ("cli", "In scripts"),
    "devices": ("install", "Which device is used"),
    "terms": ("index", "Terms"),
    "sources": ("conventions", "Sources"),
}
_FENCE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
_NOT_TEXT = re.compile(r"<!--.*?-->|[ \t]*\{: [^}\n]*\}", re.DOTALL)


def complete(incomplete: str) -> list[str]:
    """Topics that begin so, for a shell."""
    return [name for name in topics() if name.startswith(incomplete)]


def help(
    context: typer.Context,
    topic: Annotated[
        str | None,
        typer.Argument(metavar="[TOPIC]", help="A topic, or a command.", autocompletion=complete, show_default=False),
    ] = None,
    debug: options.Debug = False,
) -> None:
    """Read about a topic (conventions, devices, exit-codes, files, glossary, ...); without one, list all topics."""
    if topic is None:
        Talk().table(("topic", "about"), list(topics().items()))
        return
    name = topic.strip().lower().removesuffix(".md").replace(" ", "-")
    if name in topics():
        _show(text_of(name))
        return
    parent = context.find_root()
    command = parent.command.get_command(parent, topic)  # type: ignore[attr-defined]
    if command is None:
        near = difflib.get_close_matches(name, topics(), 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise typer.BadParameter(f"no topic {topic!r}; {hint}'pyedmcl help' lists all", param_hint="TOPIC")
    with command.make_context(topic, [], parent=parent, resilient_parsing=True) as topic_context:
        typer.echo(command.get_help(topic_context))


def topics() -> dict[str, str]:
    """All topics with their titles: sections first, then pages."""
    return {name: heading for name, (_, heading) in SECTIONS.items()} | {page: _title(_page(page)) for page in _pages()}


def text_of(topic: str) -> str:
    """Text of a topic as Markdown, in which links to other pages say how to read those."""
    page, heading = SECTIONS.get(topic, (topic, None))
    text = _page(page)
    parts = _FENCE.split(text if heading is None else section(text, heading))
    parts[::2] = [_NOT_TEXT.sub("", _LINK.sub(_link, part)) for part in parts[::2]]
    return "".join(parts).strip() + "\n"


def section(text: str, heading: str) -> str:
    """A section of a page with its heading; empty where there is none."""
    parts = re.split(r"^(?=## )", _FENCE.sub(lambda fence: fence[0].replace("\n#", "\n\0#"), text), flags=re.MULTILINE)
    sections = (part for part in parts if part.partition("\n")[0].strip() == f"## {heading}")
    return next(sections, "").replace("\0", "")


def _pages() -> tuple[str, ...]:
    from ..codegen.texts import names_of

    return tuple(name.removesuffix(".md") for name in names_of("docs", ".md"))


def _page(name: str) -> str:
    from ..codegen.texts import read_text

    return read_text("docs", f"{name}.md")


def _title(text: str) -> str:
    return next((line[2:] for line in text.splitlines() if line.startswith("# ")), "")


def _link(match: re.Match[str]) -> str:
    picture, text, target = match.groups()
    if picture:
        return f"(picture: {text})"
    page = target.partition("#")[0]
    if "://" in target:
        return f"{text} <{target}>"
    name = page.removesuffix(".md")
    return f"{text} ('pyedmcl help {name}')" if page.endswith(".md") and name in _pages() else text


def _show(text: str) -> None:
    """In a terminal laid out and page by page, else as it is written."""
    if not sys.stdout.isatty():
        typer.echo(text, nl=False)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    os.environ.setdefault("LESS", "-FRX")  # colours, and no paging of what fits on the screen
    console = Console()
    with console.pager(styles=True):
        console.print(Markdown(text, hyperlinks=False))

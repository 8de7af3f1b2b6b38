"""The streams of a command: what they cannot take is an error with a message, and text is shown as text."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import StoreWriteError

#: Exit code where the reader of standard output ended first: that of a tool which SIGPIPE ends (128 + 13).
UNREAD = 141

_KEPT = "\n\t"
_HIDDEN = {"Cc", "Cf", "Cs"}  # control characters, those that change the order of text, halves of characters


def printable(text: str) -> str:
    """``text`` without control sequences, by which a name in a file could change what a terminal shows.

    Examples
    --------
    >>> printable("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    if text.isprintable():
        return text
    return "".join(
        sign if sign in _KEPT or unicodedata.category(sign) not in _HIDDEN else sign.encode("unicode_escape").decode()
        for sign in text
    )


def shown(text: str) -> str:
    """:func:`printable` text as standard output will have it, with escapes for what its encoding lacks.

    Tables are laid out by the width of their cells, which escapes make wider.
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return printable(text).encode(encoding, "backslashreplace").decode(encoding)


class Stdout(io.TextIOWrapper):
    """Standard output. A full disk is a StoreWriteError, which has an exit code and a message.

    A pipe that its reader has closed, as ``head`` does, ends the command without a message.
    """

    def write(self, text: str) -> int:
        with _told():
            return super().write(text)

    def flush(self) -> None:
        with _told():
            super().flush()


class Stderr(io.TextIOWrapper):
    """Standard error. Remarks that nobody can read must not end the work."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            return super().write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            super().flush()


@contextlib.contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        _discard_the_rest()
        raise SystemExit(UNREAD) from None
    except OSError as error:
        raise StoreWriteError(
            f"standard output cannot be written: {error.strerror or error}. Write to a file, or free some space"
        ) from error


def run(command: Callable[[], Any], code_of: Callable[[BaseException], int], message_of: Callable[[Any], str]) -> int:
    """Run a command line and return its exit code.

    Parameters
    ----------
    command : callable
        Ends with SystemExit.
    code_of, message_of : callable
        Of an error that was raised outside any command, while help was printed, say.
    """
    _open_closed_ones()
    sys.stdout, sys.stderr = _wrapped(sys.stdout, Stdout), _wrapped(sys.stderr, Stderr)
    code = 0
    try:
        command()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except StoreWriteError as error:
        code = _failed(error, code_of, message_of)
    try:
        sys.stdout.flush()
    except StoreWriteError as error:
        code = code or _failed(error, code_of, message_of)
    except SystemExit:
        code = code or UNREAD
    return code


def _failed(error: StoreWriteError, code_of: Callable[[BaseException], int], message_of: Callable[[Any], str]) -> int:
    sys.stderr.write(f"error: {message_of(error)}\n")
    _discard_the_rest()
    return code_of(error)


def _discard_the_rest() -> None:
    """Send standard output nowhere: what is left in its buffer would fail again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _open_closed_ones() -> None:
    """Give the three streams a place, so that no file of a result gets the number of one that was closed."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _wrapped(stream: Any, kind: Callable[..., Any]) -> Any:
    """``stream`` with errors of ours; a text that it cannot encode is written with escapes."""
    number = 1 if kind is Stdout else 2
    if stream is None:  # closed before Python began
        return kind(os.fdopen(number, "wb", closefd=False), encoding="utf-8", errors="backslashreplace")
    encoding = stream.encoding
    lines = stream.isatty() or kind is Stderr
    return kind(stream.detach(), encoding=encoding, errors="backslashreplace", line_buffering=lines)

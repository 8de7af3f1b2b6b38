"""Answers of the policy that a job keeps: a job that is continued gets the parameters that it began with.

Sums are split as tuned parameters say, so other parameters may give other last digits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, MutableMapping
from contextvars import ContextVar
from typing import Any

from .key import canonical

#: A question as text (kernel, specialisation, sizes) to the parameters that answered it.
Answers = MutableMapping[str, dict[str, Any]]

_answers: ContextVar[Answers | None] = ContextVar("answers", default=None)


@contextlib.contextmanager
def keeping(answers: Answers) -> Iterator[None]:
    """Within the block, a question that ``answers`` knows is answered from there; new answers are added to it.

    Parameters
    ----------
    answers : mutable mapping
        Holds text and types of JSON only, so that it can be stored.
    """
    token = _answers.set(answers)
    try:
        yield
    finally:
        _answers.reset(token)


def known(kernel: str, specialisation: Mapping[str, Any], sizes: Mapping[str, int]) -> Mapping[str, Any] | None:
    """The recorded answer to a question; None where there is none, or nothing is kept."""
    answers = _answers.get()
    return None if answers is None else answers.get(_question(kernel, specialisation, sizes))


def note(
    kernel: str, specialisation: Mapping[str, Any], sizes: Mapping[str, int], parameters: Mapping[str, Any]
) -> None:  # fmt: skip
    """Record an answer, where answers are kept."""
    answers = _answers.get()
    if answers is not None:
        answers[_question(kernel, specialisation, sizes)] = dict(parameters)


def _question(kernel: str, specialisation: Mapping[str, Any], sizes: Mapping[str, int]) -> str:
    return canonical({"kernel": kernel, "specialisation": specialisation, "sizes": sizes})

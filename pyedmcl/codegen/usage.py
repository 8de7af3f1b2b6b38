"""How a kernel is called from another program: what arguments mean, and sizes and launches as formulas.

A SPEC's ``usage`` makes one for each specialisation. Formulas are integer expressions that C and Python read alike:
names, numbers, ``+ - * /`` (a division of numbers that are not negative leaves its remainder out), comparisons, and the
functions of :data:`FUNCTIONS`. :func:`evaluate` computes them, and the header of an exported kernel repeats them in C.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import BuildError

#: What formulas may call, and the same as macros of C.
FUNCTIONS: dict[str, tuple[Callable[..., int], str]] = {
    "ceil_div": (lambda a, b: -(-a // b), "ceil_div(A, B) (((A) + (B) - 1) / (B))"),
    "round_up": (lambda a, b: -(-a // b) * b, "round_up(A, B) (ceil_div(A, B) * (B))"),
    "min": (min, "min(A, B) ((A) < (B) ? (A) : (B))"),
    "max": (max, "max(A, B) ((A) > (B) ? (A) : (B))"),
    "odd": (lambda a: a | 1, "odd(A) ((A) | 1)"),
    "select": (lambda yes, a, b: a if yes else b, "select(YES, A, B) ((YES) ? (A) : (B))"),
}
_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv,
    ast.Gt: operator.gt, ast.Lt: operator.lt,
}  # fmt: skip


@dataclass(frozen=True)
class Usage:
    """A specialised kernel, for who calls it.

    Attributes
    ----------
    problem : mapping
        Numbers that the caller chooses, and what they mean.
    derived : mapping
        Numbers that follow, each a formula of the problem and of those before it.
    meanings : mapping
        What each argument means.
    numbers : mapping
        Formulas of the arguments that are numbers, where these are neither of the problem nor derived.
    elements : mapping
        Formulas of how many elements each buffer has room for.
    work_items : tuple of str
        Formulas of their number in each dimension, those of whole groups where there are groups.
    local_size : tuple of int or None
        Work-items of a group in each dimension; None where the driver may choose.
    rules : tuple of str
        Ties, gaps and what else a caller must know.
    """

    problem: Mapping[str, str]
    derived: Mapping[str, str]
    meanings: Mapping[str, str]
    elements: Mapping[str, str]
    work_items: tuple[str, ...]
    local_size: tuple[int, ...] | None
    rules: tuple[str, ...] = ()
    numbers: Mapping[str, str] = field(default_factory=dict)

    def plan(self, **problem: int) -> dict[str, int]:
        """All numbers of a problem: the derived ones, ``elements_...``, ``global_size_0`` and so on.

        Raises
        ------
        BuildError
            A number of the problem is missing, or there is none of that name.
        """
        if set(problem) != set(self.problem):
            raise BuildError(f"the numbers {', '.join(self.problem)} are needed, not {', '.join(problem) or 'none'}")
        names: dict[str, int] = dict(problem)
        for name, formula in {**self.derived, **self.numbers}.items():
            names[name] = evaluate(formula, names)
        sizes = {f"elements_{name}": evaluate(formula, names) for name, formula in self.elements.items()}
        sizes |= {f"global_size_{axis}": evaluate(formula, names) for axis, formula in enumerate(self.work_items)}
        return {**names, **sizes}


def evaluate(formula: str, names: Mapping[str, int]) -> int:
    """The value of a formula. Raises BuildError for what is none, and for a name that has no value."""
    try:
        return int(_value(ast.parse(formula, mode="eval").body, names))
    except (SyntaxError, KeyError, TypeError, ZeroDivisionError) as error:
        raise BuildError(f"{formula!r} is no formula of {', '.join(names)} ({error!r})") from error


def _value(node: ast.AST, names: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.BinOp):
        return int(_OPERATORS[type(node.op)](_value(node.left, names), _value(node.right, names)))
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return int(_OPERATORS[type(node.ops[0])](_value(node.left, names), _value(node.comparators[0], names)))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, names)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return FUNCTIONS[node.func.id][0](*(_value(each, names) for each in node.args))
    raise TypeError(f"{type(node).__name__} is no part of a formula")

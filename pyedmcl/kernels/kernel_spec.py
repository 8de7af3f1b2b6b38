"""What a kernel is: its text, specialisation, tunables, arguments, launches and constraints."""

from __future__ import annotations

import ast
import functools
import math
import operator
import re
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..device.info import Slot
from ..errors import BuildError

# What the kernels of a program take, from the declarations in a SPEC.
#
# A declaration reads like a prototype of OpenCL C without its qualifiers, with the arguments of one type together::
#
#     predict(const real* targets; int target_stride, target_front; real* predicted, variance)
#
# ``const`` marks a buffer that is only read. ``real``, ``whole`` and ``moment`` are the types of ``clkernels``.


_PROTOTYPE = re.compile(r"(\w+)\s*\(([^()]*)\)")
_OF_ONE_TYPE = re.compile(r"\s*(const\s+)?(\w+)(\s*\*\s*|\s+)((?:\w+\s*,\s*)*\w+)\s*")
_TYPES = {
    "char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4", "long": "i8", "ulong": "u8",
    "float": "f4", "double": "f8", "moment": "f8", "int4": "i4",
}  # fmt: skip
_BY_PRECISION = {"real": ("f4", "f8"), "whole": ("i4", "i8")}


@functools.lru_cache(maxsize=256)
def declared(prototypes: str, double: bool) -> dict[str, tuple[Slot, ...]]:
    """Kernel to its slots.

    Parameters
    ----------
    prototypes : str
        One declaration for each kernel of a program.
    double : bool
        Whether ``real`` is double.
    """
    slots = {name: _slots(name, inside, double) for name, inside in _PROTOTYPE.findall(prototypes)}
    rest = _PROTOTYPE.sub("", prototypes).strip()
    if rest:
        raise BuildError(f"{rest!r} is no declaration of a kernel's arguments: name(type one, two; type three)")
    return slots


def element_type(name: str, double: bool) -> np.dtype[np.generic]:
    """The NumPy type of a number of OpenCL C; that of the components of a vector type."""
    if name in _BY_PRECISION:
        return np.dtype(_BY_PRECISION[name][double])
    if name not in _TYPES:
        raise BuildError(f"{name!r} is no type of an argument; there are {', '.join([*_BY_PRECISION, *_TYPES])}")
    return np.dtype(_TYPES[name])


def _slots(kernel: str, inside: str, double: bool) -> tuple[Slot, ...]:
    slots: list[Slot] = []
    for group in inside.split(";"):
        match = _OF_ONE_TYPE.fullmatch(group)
        if match is None:
            raise BuildError(f"kernel {kernel}: {group.strip()!r} is no declaration such as 'const real* x, y'")
        const, kind, star, names = match.groups()
        dtype = element_type(kind, double)
        slots += [Slot(name.strip(), dtype, bool(star.strip()), bool(const)) for name in names.split(",")]
    return tuple(slots)


# How a kernel is called from another program: what arguments mean, and sizes and launches as formulas.
#
# A SPEC's ``usage`` makes one for each specialisation. Formulas are integer expressions that C and Python read alike:
# names, numbers, ``+ - * /`` (a division of numbers that are not negative leaves its remainder out), comparisons, and
# the functions of :data:`FUNCTIONS`. :func:`evaluate` computes them, and the header of an exported kernel repeats them
# in C.


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
    """A specialised kernel, for who calls it."""

    # Numbers that the caller chooses, and what they mean.
    problem: Mapping[str, str]
    # Numbers that follow, each a formula of the problem and of those before it.
    derived: Mapping[str, str]
    # What each argument means.
    meanings: Mapping[str, str]
    # Formulas of how many elements each buffer has room for.
    elements: Mapping[str, str]
    # Formulas of their number in each dimension, those of whole groups where there are groups.
    work_items: tuple[str, ...]
    # Work-items of a group in each dimension; None where the driver may choose.
    local_size: tuple[int, ...] | None
    # Ties, gaps and what else a caller must know.
    rules: tuple[str, ...] = ()
    # Formulas of the arguments that are numbers, where these are neither of the problem nor derived.
    numbers: Mapping[str, str] = field(default_factory=dict)

    def plan(self, **problem: int) -> dict[str, int]:
        """All numbers of a problem: the derived ones, ``elements_...``, ``global_size_0`` and so on."""
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


# How many work-items a launch of each kernel has, and how many elements its buffers, as formulas of a SPEC.
#
# A SPEC's ``launches`` has a paragraph for each entry point of its program, and before them definitions::
#
#     name = formula
#     entry | work-items; of a second dimension | of a group; of a second dimension
#       buffer, another: elements
#
# Formulas are those of :mod:`pyedmcl.kernels.kernel_spec`. They name numbers among the entry's arguments, values that
# the text
# is made for (truth values count as 0 and 1), what was defined of these, and numbers of
# :data:`pyedmcl.kernels.describe.FREE`, which the caller chooses. "any" or 0: the driver may choose the size of
# groups, work-items behind the last one idle, and a multiple of 64 suits all devices. Of ``knn``, ``lookup`` and
# ``recurrence_bits`` the SPECs say more: see their ``usage``.


_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Launch:
    """How an entry point of a program is launched."""

    # Formulas of their number in each dimension, those of whole groups where there are groups.
    work_items: tuple[str, ...]
    # Work-items of a group in each dimension; None where the driver may choose.
    local_size: tuple[int, ...] | None
    # Formulas of how many elements each buffer has room for, at least.
    elements: Mapping[str, str]

    @property
    def names(self) -> set[str]:
        """Numbers that the formulas name."""
        formulas = (*self.work_items, *self.elements.values())
        return {name for formula in formulas for name in _WORD.findall(formula)} - set(FUNCTIONS)


def launch_of(text: str, values: Mapping[str, Any], entry: str, arguments: Collection[str]) -> Launch:
    """The launch of one entry point.

    Parameters
    ----------
    text : str
        As the head of this module describes it.
    values : mapping
        What the program's text is made for; these numbers are put into the formulas.
    arguments : collection of str
        The names of its arguments, which go before values of the same names. Formulas of other buffers are left out.
    """
    numbers = {name: int(value) for name, value in values.items() if isinstance(value, int)}
    for paragraph in re.split(r"\n(?=\S)", textwrap.dedent(text).strip()):
        head, *lines = [line.strip() for line in paragraph.splitlines()]
        if "|" not in head:
            name, _, formula = head.partition(" = ")
            numbers[name] = evaluate(formula, numbers)
        elif head.split(" ", 1)[0] == entry:
            while head.count("|") < 2:
                head += " " + lines.pop(0)
            fixed = {name: value for name, value in numbers.items() if name not in arguments}
            _, sizes, local = ([_put(part.strip(), fixed) for part in parts.split(";")] for parts in head.split("|"))
            group = () if local == ["any"] else tuple(evaluate(part, {}) for part in local)
            elements = dict(pair for line in lines for pair in _elements(line, entry, fixed) if pair[0] in arguments)
            return Launch(tuple(sizes), group if group and group[0] else None, elements)
    raise BuildError(f"nothing is said of launches of {entry}")


def _elements(line: str, entry: str, known: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    names, colon, formula = line.partition(": ")
    if not colon:
        raise BuildError(f"{line!r} is no formula for a buffer of {entry}")
    for name in names.split(","):
        yield name.strip(), _put(formula, known)


def _put(formula: str, known: Mapping[str, int]) -> str:
    """A formula with numbers in the place of what is known."""
    return _WORD.sub(lambda word: str(known.get(word[0], word[0])), formula)


# What a kernel is: its text, what it is specialised by, what may be tuned, and what it must agree with.


Values = Mapping[str, Any]
#: Values whose product is the number of work-items in a group.
GROUP = ("wg", "target_lanes", "row_lanes", "library_lanes")


def group(values: Values) -> int:
    """Work-items of a group; 1 for kernels that leave it to the driver."""
    return math.prod(int(values[name]) for name in GROUP if name in values)


@dataclass(frozen=True)
class Tunable:
    """A parameter that changes speed and never the answer."""

    name: str
    # What a tuner may try.
    values: tuple[Any, ...]
    # "cpu" and "gpu" to a value that is safe there; a device's quirks say which of them suits it.
    default: Mapping[str, Any]
    # What it does.
    why: str

    def __hash__(self) -> int:
        return hash((self.name, self.values))


@dataclass(frozen=True)
class Constraint:
    """A relation that specialisation and tuned parameters must satisfy, with its reason."""

    holds: Callable[[Values], bool]
    reason: str


@dataclass(frozen=True)
class KernelSpec:
    """One kernel."""

    # Also the kernel's entry point in the source.
    name: str
    # "mako" or "loopy": who writes the source.
    producer: str
    # File in ``templates/`` or name of a loopy maker.
    text: str
    # Values without which there is no source.
    specialisation: tuple[str, ...]
    # What each kernel of the program takes, declared as :mod:`pyedmcl.kernels.kernel_spec` says; a function of the
    # values where they decide what it takes. Launches give arguments by these names.
    arguments: str | Callable[[Values], str] = ""
    # How many work-items each of them has and how many elements its buffers, as formulas that
    # :mod:`pyedmcl.kernels.kernel_spec` describes. Empty where ``usage`` says more.
    launches: str | Callable[[Values], str] = ""
    # tunables, constraints: The search space.
    tunables: tuple[Tunable, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    # ``module:function`` of the slow reference.
    oracle: str = ""
    # Whether every configuration must equal the oracle bit for bit.
    exact: bool = True
    # Whether results have the same bits on every device and with all parameters: each operation is rounded once, and
    # sums are added in an order of their own.
    same_bits: bool = True
    # Of a loopy kernel: one of its texts in ``clkernels/``, which stands for its maker in the digest.
    example: str = ""
    # Of the values of a specialisation: how another program calls the kernel. None: not written down.
    usage: Callable[[Values], Usage] | None = None

    def __hash__(self) -> int:
        return hash(self.name)  # specs are keys of what is kept for each launch

    def defaults(self, defaults_for: str) -> dict[str, Any]:
        """The safe parameters for a "cpu" or "gpu"; see ``defaults_for`` of :class:`pyedmcl.device.quirks.Quirks`."""
        return {tunable.name: tunable.default[defaults_for] for tunable in self.tunables}

    def check(self, values: Values) -> None:
        """Raise BuildError unless ``values`` are complete and satisfy every constraint."""
        missing = [n for n in (*self.specialisation, *(t.name for t in self.tunables)) if n not in values]
        if missing:
            raise BuildError(f"kernel {self.name}: no value for {', '.join(missing)}")
        for constraint in self.constraints:
            if not constraint.holds(values):
                shown = {k: values[k] for k in sorted(values)}
                raise BuildError(f"kernel {self.name}: {constraint.reason} ({shown})")

    def entries(self, values: Values) -> Mapping[str, tuple[Slot, ...]]:
        """The kernels of the program to their arguments, in their order."""
        text = self.arguments if isinstance(self.arguments, str) else self.arguments(values)
        return declared(text, values.get("dtype") == "float64")

    def slots(self, entry: str, values: Values) -> tuple[Slot, ...]:
        """The arguments of the kernel ``entry`` in their order. Raises BuildError where none is declared."""
        kernels = self.entries(values)
        if entry not in kernels:
            raise BuildError(f"the spec {self.name} declares no kernel {entry!r}; it has {', '.join(kernels)}")
        return kernels[entry]

    def launch(self, entry: str, values: Values) -> Launch:
        """How the kernel ``entry`` is launched, as formulas. Raises BuildError where that is not said."""
        text = self.launches if isinstance(self.launches, str) else self.launches(values)
        return launch_of(text, values, entry, [slot.name for slot in self.slots(entry, values)])

    def digest(self) -> str:
        """Identity of the kernel's text and search space, as hex: results and tuned parameters are tied to it."""
        from .texts import digest

        return digest(self)

"""What a kernel is: its text, what it is specialised by, what may be tuned, and what it must agree with."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..device.slots import Slot
from ..errors import BuildError
from .arguments import declared
from .launches import Launch, launch_of
from .usage import Usage

Values = Mapping[str, Any]
#: Values whose product is the number of work-items in a group.
GROUP = ("wg", "target_lanes", "row_lanes", "library_lanes")


def group(values: Values) -> int:
    """Work-items of a group; 1 for kernels that leave it to the driver."""
    return math.prod(int(values[name]) for name in GROUP if name in values)


@dataclass(frozen=True)
class Tunable:
    """A parameter that changes speed and never the answer.

    Attributes
    ----------
    name : str
    values : tuple
        What a tuner may try.
    default : mapping
        "cpu" and "gpu" to a value that is safe there; a device's quirks say which of them suits it.
    why : str
        What it does.
    """

    name: str
    values: tuple[Any, ...]
    default: Mapping[str, Any]
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
    """One kernel.

    Attributes
    ----------
    name : str
        Also the kernel's entry point in the source.
    producer : str
        "mako" or "loopy": who writes the source.
    text : str
        File in ``templates/`` or name of a loopy maker.
    specialisation : tuple of str
        Values without which there is no source.
    arguments : str or callable
        What each kernel of the program takes, declared as :mod:`pyedmcl.codegen.arguments` says; a function of the
        values where they decide what it takes. Launches give arguments by these names.
    launches : str or callable
        How many work-items each of them has and how many elements its buffers, as formulas that
        :mod:`pyedmcl.codegen.launches` describes. Empty where ``usage`` says more.
    tunables, constraints
        The search space.
    oracle : str
        ``module:function`` of the slow reference.
    exact : bool
        Whether every configuration must equal the oracle bit for bit.
    same_bits : bool
        Whether results have the same bits on every device and with all parameters: each operation is rounded once, and
        sums are added in an order of their own.
    usage : callable or None
        Of the values of a specialisation: how another program calls the kernel. None: not written down.
    example : str
        Of a loopy kernel: one of its texts in ``clkernels/``, which stands for its maker in the digest.
    """

    name: str
    producer: str
    text: str
    specialisation: tuple[str, ...]
    arguments: str | Callable[[Values], str] = ""
    launches: str | Callable[[Values], str] = ""
    tunables: tuple[Tunable, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    oracle: str = ""
    exact: bool = True
    same_bits: bool = True
    example: str = ""
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
        from .identity import digest

        return digest(self)

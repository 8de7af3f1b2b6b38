"""A kernel's OpenCL C, specialised and tuned, as a text that stands alone, with a description made from its SPEC."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import __version__
from ..codegen.build import text_for
from ..codegen.local_memory import local_bytes
from ..codegen.sentinels import SENTINELS
from ..codegen.spec import KernelSpec
from ..codegen.usage import Usage
from ..data.arguments import choice
from ..device.info import DeviceInfo
from ..device.programs import BASELINE
from ..device.quirks import quirks_for
from ..device.slots import Slot
from ..errors import BuildError, InputError, OutputError, shown
from ..files import path_of, writing
from ..kernels import spec as spec_of
from ..kernels.meanings import meaning
from ..tuning.parameters import source as parameter_source
from .header import header
from .targets import info_of
from .usages import usages_of
from .values import usual_values, values_for

LICENCE = "Apache-2.0"
FORMULAS = ("integers; / leaves the remainder out; ceil_div, round_up, min, max, odd(a) = a | 1, "
            "select(condition, yes, no)")  # fmt: skip
_TYPES = {"b": "char", "B": "uchar", "h": "short", "H": "ushort", "i": "int", "I": "uint", "l": "long", "L": "ulong",
          "q": "long", "Q": "ulong", "f": "float", "d": "double"}  # fmt: skip
_ATTRIBUTE = r"(?:__attribute__\s*\(\(.*?\)\)\s*)?"
_ENTRY = re.compile(rf"\b(?:__)?kernel\s+{_ATTRIBUTE}void\s+{_ATTRIBUTE}(\w+)\s*\(", re.DOTALL)


@dataclass(frozen=True)
class KernelSource:
    """A kernel to take away.

    Attributes
    ----------
    kernel : str
        Its name, which is that of its entry point.
    text : str
        OpenCL C without includes.
    options : tuple of str
        What the compiler needs to be told.
    description : dict
        What :meth:`save` writes as JSON: arguments, sizes and launches as formulas, rules, licence.
    """

    kernel: str
    text: str
    options: tuple[str, ...]
    description: dict[str, Any]
    _usages: Mapping[str, Usage] = field(repr=False)

    def plan(self, entry: str | None = None, /, **problem: int) -> dict[str, int]:
        """Elements of the buffers and global sizes for a problem, and numbers that follow from others.

        Parameters
        ----------
        entry : str, optional
            An entry point of the text, where there is not only the one that is called as the kernel.
        **problem : int
            The numbers under ``"problem"`` of the description.

        Raises
        ------
        BuildError
            There is no such entry point, or other numbers are needed.
        """
        usage = self._usages.get(self.kernel if entry is None else entry)
        if usage is None:
            raise BuildError(f"the name of an entry point of {self.kernel} is needed: {', '.join(self._usages)}")
        return usage.plan(**problem)

    def save(self, folder: Any) -> list[Path]:
        """Write ``<kernel>.cl``, ``<kernel>.json`` and a C header ``<kernel>.h``.

        Parameters
        ----------
        folder : path
            Made where it is not there.

        Returns
        -------
        list of pathlib.Path
            The files.
        """
        place = path_of(folder, "folder")
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{place}: the folder cannot be made ({error.strerror or error})") from error
        contents = {
            "cl": self.text, "json": json.dumps(self.description, indent=1) + "\n",
            "h": header(self.kernel, self._usages, self.options),
        }  # fmt: skip
        paths = []
        for suffix, content in contents.items():
            paths.append(place / f"{self.kernel}.{suffix}")
            with writing(paths[-1], "the kernel") as stream:
                stream.write(content.encode())
        return paths


def kernel_source(
    kernel: str, E: int | Sequence[int] | None = None, tau: int | None = None, k: int | None = None,
    dtype: str | None = None, *, device: str | None = None, target: str | None = None, tune: str | None = None,
    **values: Any,
) -> KernelSource:  # fmt: skip
    """OpenCL C of a kernel for a device, specialised and tuned, to be used without pyedmcl.

    Parameters
    ----------
    kernel : str
        "knn", "lookup", "recurrence_bits" or any other kernel of the package.
    E : int or sequence of int, optional
        Embedding dimension, of "knn" one or more.
    tau : int, optional
        Lag into the past, in steps.
    k : int, optional
        Number of neighbours.
    dtype : {"float32", "float64"}, optional
        Arithmetic on the device.
    device : str, optional
        Whose parameters and quirks the text has; see ``pyedmcl devices``. A device that is not there stands for the
        target of the same name.
    target : str, optional
        A device that is not at hand: gfx90a, gfx942, gfx1100, gfx1201, Gen9, Xe-LP, Xe-HPG, Xe-HPC, nvidia, amd,
        intel-gpu or cpu.
    tune : {"never", "cached"}, optional
        Whether tuned parameters are used or the defaults.
    values
        By their names, what else the text is made for: of "knn" ``emit`` ("neighbours" or "weights") and ``masked``, of
        "lookup" ``gaps`` and ``table_tile``, of "recurrence_bits" ``m``, ``metric``, ``strict``; of any kernel its
        parameters, as the table at the head of its template lists them.

    Returns
    -------
    KernelSource
        With ``.text``, ``.options``, ``.description``, ``.plan(...)`` and ``.save(folder)``.

    Raises
    ------
    InputError
        There is no such kernel, target or value, or a value is impossible.
    DeviceNotFoundError
        There is no such device.

    See Also
    --------
    knn : the nearest neighbours themselves

    Notes
    -----
    Cost: some milliseconds; nothing is compiled. The text needs the build options that the description names, and
    nothing of pyedmcl. Its results have the bits that pyedmcl computes.

    References
    ----------
    .. [1] Khronos OpenCL Working Group, The OpenCL Specification, version 1.2, 2012.

    Examples
    --------
    >>> import pyedmcl
    >>> found = pyedmcl.kernel_source("knn", E=3, tau=1, k=4, target="nvidia")
    >>> found.description["arguments"][0]["type"]
    'global const float*'
    >>> found.plan(n_series=1, n_library=500, n_query=500, Tp=0, exclusion_radius=0, groups=4)["elements_out_row"]
    2000
    """
    if not isinstance(kernel, str):
        raise InputError(f"kernel={shown(kernel)}: the name of a kernel is needed")
    if tune is not None:  # measuring belongs to: pyedmcl tune
        choice("tune", tune, ("never", "cached"))
    named = {"E": E, "tau": tau, "k": k, "dtype": dtype}
    values |= {name: value for name, value in named.items() if value is not None}
    info = info_of(device, target)
    with parameter_source.mode(tune):
        return of_values(kernel, values_for(kernel, values, info), info, target)


def every_source(device: str | None = None, target: str | None = None) -> Iterator[KernelSource]:
    """A text of each kernel, as a usual problem has it, but for those that need a precision that the device lacks."""
    info = info_of(device, target)
    with parameter_source.mode("cached"):
        values_of = usual_values(info)
        for kernel in sorted(values_of):
            with contextlib.suppress(NoDoubleError):
                yield of_values(kernel, values_of[kernel], info, target)


class NoDoubleError(InputError):
    """A kernel computes in double precision, which the device does not have."""


def _needs_double(spec: KernelSpec, values: Mapping[str, Any], text: str) -> bool:
    """Whether a text has arguments of double precision, or sums that clkernels/moment.clh declares."""
    double = any(slot.dtype.char == "d" for slots in spec.entries(values).values() for slot in slots)
    return double or "typedef double moment" in text


def of_values(kernel: str, values: Mapping[str, Any], info: DeviceInfo, target: str | None) -> KernelSource:
    """The text and the description for all values of a kernel. Raises InputError for impossible ones."""
    spec, quirks = spec_of(kernel), quirks_for(info)
    place = target or info.name or "any device"
    try:
        produced = text_for(spec, values, info)
    except BuildError as error:
        raise InputError(f"kernel {kernel} cannot be made for these values: {error}") from error
    if not info.fp64 and _needs_double(spec, values, produced):
        raise NoDoubleError(
            f"kernel {kernel} computes in double precision for these values, which {place} does not have"
        )
    lines = [line for line in produced.splitlines() if not line.startswith("#line ")]
    text = (
        f"// The kernel {kernel} of pyedmcl {__version__}, specialised for {place}.\n"
        f"// SPDX-License-Identifier: {LICENCE}\n" + "\n".join(lines) + "\n"
    )
    options = (BASELINE, *quirks.build_options)
    entries = {entry: spec.slots(entry, values) for entry in dict.fromkeys(_ENTRY.findall(text))}
    usages = usages_of(spec, values, entries)
    shown_values = {**{name: meaning(spec.name, name) for name in spec.specialisation},
                    **{tunable.name: tunable.why for tunable in spec.tunables}}  # fmt: skip
    described: dict[str, Any] = {
        "kernel": kernel, "pyedmcl": __version__, "digest": spec.digest(), "licence": LICENCE,
        "device": target or info.name, "runtime": info.runtime, "build_options": list(options),
        "values": {name: {"value": values[name], "meaning": said} for name, said in shown_values.items()},
        "sentinels": dict(SENTINELS), "formulas": FORMULAS,
    }  # fmt: skip
    by_entry = {entry: _told(usage, entries[entry], local_bytes(text, entry)) for entry, usage in usages.items()}
    described |= by_entry[kernel] if spec.usage else {"kernels": by_entry}
    return KernelSource(kernel, text, options, described, usages)


def _told(usage: Usage, slots: Sequence[Slot], local: int) -> dict[str, Any]:
    """What is told of an entry point."""
    formulas = {**usage.derived, **usage.numbers}
    arguments = [
        {**_argument(slot), "meaning": usage.meanings[slot.name],
         **({"elements": usage.elements[slot.name]} if slot.is_buffer else
            {"value": formulas[slot.name]} if slot.name in formulas else {})}
        for slot in slots
    ]  # fmt: skip
    return {
        "arguments": arguments, "problem": dict(usage.problem), "derived": dict(usage.derived),
        "global_size": list(usage.work_items), "local_size": usage.local_size and list(usage.local_size),
        "local_memory_bytes": local, "rules": list(usage.rules),
    }  # fmt: skip


def _argument(slot: Slot) -> dict[str, str]:
    kind = _TYPES[slot.dtype.char]
    if slot.is_buffer:
        kind = f"global {'const ' if slot.is_const else ''}{kind}*"
    return {"name": slot.name, "type": kind}

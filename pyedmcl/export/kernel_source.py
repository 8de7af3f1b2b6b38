"""A kernel's OpenCL C as a text that stands alone, for devices at hand or not, with a description and a C header."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..arguments import choice
from ..atomic_files import path_of, writing
from ..device import select
from ..device.executor import Argument, Buffer, Kernel
from ..device.info import DeviceInfo, Slot, check
from ..device.memory import BufferSets, MemoryUse
from ..device.programs import BASELINE
from ..device.quirks import quirks_for
from ..errors import BuildError, DeviceNotFoundError, InputError, OutputError, shown
from ..kernels import spec
from ..kernels import spec as spec_of
from ..kernels.build import local_bytes, noting, text_for
from ..kernels.describe import FREE, argument_meaning, meaning
from ..kernels.kernel_spec import FUNCTIONS, KernelSpec, Launch, Usage
from ..kernels.specs import maps
from ..kernels.texts import SENTINELS
from ..recurrence.arguments import metric_named
from ..recurrence.sweep import staging_fits
from ..search.plan import KnnPass, SearchProblem, with_enough_groups
from ..tuner.problem import TuningCase
from ..tuner.problems import names, problem
from ..tuning.parameters import parameters, source

# A C header for an exported kernel: options, sizes and launches, from the formulas of its SPEC.


def header(name: str, usages: Mapping[str, Usage], options: Sequence[str]) -> str:
    """The text of ``name.h``: for each entry point a struct of all its numbers, and a function that fills it."""
    macros = "".join(f"#define PYEDMCL_{definition}\n" for _, definition in FUNCTIONS.values())
    lines = [
        f"/* Sizes and launches of the kernel {name}, written by pyedmcl from its specification.",
        "   elements_BUFFER: how many elements it has at least. local_size 0: the driver may choose. */",
        "#include <stddef.h>", "#ifndef PYEDMCL_FORMULAS", "#define PYEDMCL_FORMULAS",
        re.sub(r"(\W)ceil_div\(A", r"\1PYEDMCL_ceil_div(A", macros) + "#endif",
        f"#ifndef {name.upper()}_H", f"#define {name.upper()}_H",
        f'#define {name.upper()}_OPTIONS "{" ".join(options)}"',
        *(f"#define {name.upper()}_{sign} {value:g}" for sign, value in SENTINELS.items()),
        *(line for entry, usage in usages.items() for line in _plan(entry, usage)),
        "#endif", "",
    ]  # fmt: skip
    return "\n".join(lines)


def _plan(entry: str, usage: Usage) -> Iterator[str]:
    """The struct and the function of an entry point."""
    elements = {f"elements_{buffer}": formula for buffer, formula in usage.elements.items()}
    formulas = {**usage.derived, **usage.numbers, **elements}
    axes = len(usage.work_items)
    yield (f"typedef struct {{ long long {', '.join([*usage.problem, *formulas])}; "
           f"size_t global_size[{axes}], local_size[{axes}]; }} {entry}_plan;")  # fmt: skip
    taken = ", ".join(f"long long {number}" for number in usage.problem)
    yield f"static inline {entry}_plan plan_{entry}({taken or 'void'}) {{"
    yield f"  {entry}_plan p;"
    yield from (f"  p.{number} = {number};" for number in usage.problem)
    yield from (f"  p.{number} = {_in_c(formula)};" for number, formula in formulas.items())
    for axis, (formula, local) in enumerate(zip(usage.work_items, usage.local_size or [0] * axes, strict=True)):
        yield f"  p.global_size[{axis}] = (size_t)({_in_c(formula)}); p.local_size[{axis}] = {local};"
    yield "  return p;"
    yield "}"


def _in_c(formula: str) -> str:
    """A formula with its names as members of the struct, and its functions as macros."""

    def said(word: re.Match[str]) -> str:
        return f"PYEDMCL_{word[0]}" if word[0] in FUNCTIONS else f"p.{word[0]}"

    return re.sub(r"[A-Za-z_]\w*", said, formula)


# How the kernels of an exported text are called: what the SPEC says, or the formulas of all launches.


Entries = Mapping[str, Sequence[Slot]]


def usages_of(spec: KernelSpec, values: Mapping[str, Any], entries: Entries) -> dict[str, Usage]:
    """Entry point to its usage.

    Parameters
    ----------
    values : mapping
        What the text is made for.
    entries : mapping
        Entry points of the text to their arguments.
    """
    if spec.usage is not None:
        return {spec.name: spec.usage(values)}
    return {entry: _of_launch(spec.name, entry, spec.launch(entry, values), slots) for entry, slots in entries.items()}


def _of_launch(kernel: str, entry: str, launch: Launch, slots: Sequence[Slot]) -> Usage:
    meanings = {slot.name: argument_meaning(kernel, entry, slot.name) for slot in slots}
    work_items = launch.work_items
    if launch.local_size is None:
        work_items = (f"round_up({work_items[0]}, 64)", *work_items[1:])
    return Usage(
        problem={name: meanings[name] if name in meanings else FREE[name] for name in sorted(launch.names)},
        derived={}, meanings=meanings, elements=launch.elements, work_items=work_items, local_size=launch.local_size,
    )  # fmt: skip


# Devices that need not be at hand: descriptions that are enough for default parameters and quirks.


_GIB = 1 << 30
_GPU = DeviceInfo(
    id="0:0", name="offline", vendor="", platform="", version="", driver="", kind="gpu", runtime="other",
    compute_units=64, max_work_group=1024, clock_mhz=1000, local_bytes=64 << 10, global_bytes=16 * _GIB,
    max_alloc_bytes=4 * _GIB, fp64=True, fp16=False, subgroups=False, opencl_c="OpenCL C 1.2",
)  # fmt: skip
_AMD = replace(_GPU, runtime="amd")
_INTEL = replace(_GPU, runtime="intel-gpu", name="")

#: Target to what is known of it. AMD's are named as its compiler names them, Intel's by their architecture.
TARGETS: dict[str, DeviceInfo] = {
    "gfx90a": _AMD, "gfx942": _AMD, "gfx1100": _AMD, "gfx1201": _AMD,
    "Gen9": _INTEL, "Xe-LP": replace(_INTEL, fp64=False), "Xe-HPG": replace(_INTEL, fp64=False),
    "Xe-HPC": replace(_INTEL, name="Intel(R) Data Center GPU Max 1550"),
    "nvidia": replace(_GPU, runtime="nvidia", local_bytes=48 << 10, name="an NVIDIA GPU"),
    "amd": replace(_AMD, name="an AMD GPU"), "intel-gpu": replace(_INTEL, name="an Intel GPU"),
    "cpu": replace(_GPU, kind="cpu", runtime="intel-cpu", name="a processor", max_work_group=8192, compute_units=8),
}  # fmt: skip


def info_of(device: str | None, target: str | None = None) -> DeviceInfo:
    """What is known of a target, or of the device that a request names.

    A request for a device that is not there stands for the target of the same name, if there is one.
    """
    targets = {name.lower(): info for name, info in TARGETS.items()}
    if target is not None:
        if not isinstance(target, str) or target.lower() not in targets:
            raise InputError(f"target={shown(target)}: one of {', '.join(TARGETS)} is needed")
        return targets[target.lower()]
    try:
        return select.select(device).device
    except DeviceNotFoundError:
        if device is None or device.strip().lower() not in targets:
            raise
        return targets[device.strip().lower()]


# An executor that computes nothing: engines show on it what they would build on a device that is not at hand.


class DryBuffer:
    """Memory that is not there."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.itemsize = 0

    def release(self) -> None:
        """Nothing."""


class _DryEvent:
    seconds = 0.0  # as of drivers that report none: a second would have launches split until each does one unit of work

    def wait(self) -> None:
        pass


@dataclass(frozen=True)
class _DryKernel:
    name: str
    slots: tuple[Slot, ...]


class _DryProgram:
    def kernel(self, name: str, slots: Sequence[Slot]) -> _DryKernel:
        return _DryKernel(name, tuple(slots))


class _DryMemory:
    held = peak = 0


class DryExecutor:
    """An executor (:class:`pyedmcl.device.executor.Executor`) that computes nothing: all that it returns is zero.

    Parameters
    ----------
    info : DeviceInfo
        The device that it stands for.
    """

    def __init__(self, info: DeviceInfo) -> None:
        self.info, self.memory = info, _DryMemory()
        self.sets = BufferSets(-1, MemoryUse())

    def unmeasured(self) -> DryExecutor:
        return self

    def build(self, source: str, options: Sequence[str] = ()) -> _DryProgram:
        return _DryProgram()

    def build_ahead(self, sources: Sequence[str], options: Sequence[str] = ()) -> None:
        pass

    def build_meanwhile(self, source: str, options: Sequence[str] = ()) -> bool:
        return True

    def settle(self) -> None:
        """Nothing is compiled."""

    def allocate(self, nbytes: int) -> DryBuffer:
        return DryBuffer(max(int(nbytes), 1))

    def upload(self, array: np.ndarray[Any, Any], into: Buffer | None = None, offset: int = 0) -> Buffer:
        return into or DryBuffer(offset + array.nbytes)

    def download(self, buffer: Buffer, into: np.ndarray[Any, Any], offset: int = 0) -> np.ndarray[Any, Any]:
        into[...] = 0
        return into

    def join(self, buffers: Sequence[Buffer]) -> None:
        """Buffers that hold nothing lie nowhere."""

    def reaches(self, context: Any) -> bool:
        return False

    def borrow(self, memory: Any, nbytes: int) -> DryBuffer:
        return DryBuffer(nbytes)

    def launch(
        self, kernel: Kernel, global_size: Sequence[int], local_size: Sequence[int] | None, /, **arguments: Argument
    ) -> _DryEvent:
        check(kernel.name, kernel.slots, arguments)
        return _DryEvent()

    def follow(self, queue: Any) -> None:
        """Nothing is queued."""

    def finish(self) -> None:
        """Nothing is queued."""

    def close(self) -> None:
        """Nothing is held."""


# Specialisation and parameters of a kernel for a device, as the engines would choose them.


Given = dict[str, Any]
_MOST = 1_000_000
# Kernels that ask for parameters before they run, and are then launched until something is found, which takes long on a
# device that finds nothing; with the values that they decide while they run.
_ASKED_FIRST: Mapping[str, Mapping[str, Any]] = {"recurrence_ranks": {"per_column": False}}
# What is unrolled in a text must not make it endless.
_LARGEST = {"E": 100, "k": 1000, "m": 100, "n_radii": 1000}
#: Kernels of which nothing is tuned, and that no tuning problem launches.
UNTUNED: Mapping[str, Mapping[str, Any]] = {
    "compact": maps.VALUES,
    "deliver": {"dtype": "float32"},
    "highest": {"dtype": "float32"},
    "recurrence_finish": {"wg": 128},
    "recurrence_batch": {
        "m": 3, "metric": "euclidean", "dtype": "float32", "strict": True, "corridor": False, "symmetric": True,
        "screened": False, "embedded": False, "lanes": 1, "wg": 128,
    },
    "waves": maps.WAVES_VALUES,
    "window_knn": {"E": 3, "tau": 1, "k": 4, "lanes": 1, "dtype": "float32"},
}  # fmt: skip


def values_for(kernel: str, given: Mapping[str, Any], info: DeviceInfo) -> dict[str, Any]:
    """All values of a kernel's text.

    Parameters
    ----------
    given : mapping
        What the caller wants; the rest is as the engines have it for a usual problem.
    """
    maker = _MAKERS.get(kernel)
    if maker is not None:
        return maker(info, dict(given))
    values = dict(usual_values(info, kernel)[kernel])
    _take(kernel, values, dict(given))
    return values


def usual_values(info: DeviceInfo, *kernels: str) -> dict[str, dict[str, Any]]:
    """Kernel to the values of a usual problem, for some kernels or all.

    Engines run these problems on an executor that computes nothing, which shows what they build. Of what several
    problems build, the first counts.
    """
    values_of: dict[str, dict[str, Any]] = {}
    for name in names():
        if kernels and set(kernels) <= set(values_of):
            break
        with noting() as noted, source.watching() as questions:
            for case in problem(name).cases("rapid", info)[:1]:
                _run(name, DryExecutor(info), case)
        if name in _ASKED_FIRST:
            noted += [(q.spec, {**_ASKED_FIRST[name], **q.specialisation, **q.choice.parameters})
                      for q in questions.values()]  # fmt: skip
        for built, values in noted:
            if built.name == name:  # what the kernel's own problem asks for comes before what others need of it
                values_of[name] = values
                break
        for built, values in noted:
            values_of.setdefault(built.name, values)
    for name, fixed in UNTUNED.items():
        values_of.setdefault(name, dict(fixed))
    lacking = sorted(set(kernels) - set(values_of))
    if lacking:
        raise InputError(f"kernel={shown(lacking[0])}: one of {', '.join(sorted(values_of))} is needed")
    return values_of


def _run(name: str, executor: DryExecutor, case: TuningCase) -> None:
    with problem(name).open(executor, case) as go:
        if name not in _ASKED_FIRST:
            go()


def _take(kernel: str, values: Given, given: Given) -> None:
    """Put what is given in the place of usual values; of a name that there is none of, InputError."""
    unknown = [name for name in given if name not in values]
    if unknown:
        raise InputError(f"{unknown[0]}={shown(given[unknown[0]])}: kernel {kernel} has no such value; "
                         f"there are {', '.join(values)}")  # fmt: skip
    tried = {tunable.name: tunable.values for tunable in spec(kernel).tunables}
    for name, value in given.items():
        usual = values[name]
        if type(value) is not type(usual):
            raise InputError(f"{name}={shown(value)}: kernel {kernel} needs a value like {usual!r}")
        if name in tried and value not in tried[name]:
            raise InputError(f"{name}={shown(value)}: kernel {kernel} knows {', '.join(map(str, tried[name]))}")
        if name in _LARGEST:
            _whole(name, value)
        if isinstance(value, int) and not -1 <= value <= _MOST:
            raise InputError(f"{name}={shown(value)}: kernel {kernel} needs a number up to {_MOST:,}")
        values[name] = value


def _chosen(
    kernel: KernelSpec, specialisation: Given, info: DeviceInfo, given: Given, sizes: Mapping[str, int]
) -> Given:
    """Tuned parameters, less those that are given."""
    chosen = dict(parameters(kernel, specialisation, info, sizes).parameters)
    mine = {name: given.pop(name) for name in list(given) if name in chosen}
    _take(kernel.name, chosen, mine)
    return chosen


def _knn(info: DeviceInfo, given: Given) -> Given:
    E = given.pop("E", 3)
    dims = tuple(sorted({_whole("E", each) for each in (E if isinstance(E, (list, tuple)) else [E])}))
    if not dims:
        raise InputError(f"E={shown(E)}: at least one dimension is needed")
    k = given.pop("k", None)
    counts = tuple(dim + 1 if k is None else _whole("k", k) for dim in dims)
    tau, dtype = _whole("tau", given.pop("tau", 1)), _dtype(given, info)
    rows = _whole("rows", given.pop("rows", 2000))
    emit, masked = given.pop("emit", "neighbours"), given.pop("masked", False)
    if not isinstance(emit, str) or emit not in ("neighbours", "weights"):
        raise InputError(f"emit={shown(emit)}: neighbours or weights is needed")
    search = SearchProblem(dims, counts, tau, 0, 0, rows, rows, dtype)
    specialisation = {"dtype": dtype, "dims": dims, "tau": tau, "simplexes": search.simplexes}
    chosen = _chosen(spec("knn"), specialisation, info, given, {"rows": rows, "library": rows})
    values = KnnPass(search, emit, with_enough_groups(chosen, search)).values(bool(masked))
    _take("knn", values, given)
    return values


def _lookup(info: DeviceInfo, given: Given) -> Given:
    k, dtype = _whole("k", given.pop("k", 4)), _dtype(given, info)
    rows, targets = (_whole(name, given.pop(name, usual)) for name, usual in (("rows", 2000), ("targets", 1000)))
    values: Given = {"k": k, "dtype": dtype, "gaps": False, "stage_rows": 0, "table_tile": 1,
                     "narrow_rows": False, "precision": "full", "local_sums": 0}  # fmt: skip
    sizes = {"rows": rows, "targets": targets}
    values |= _chosen(spec("lookup"), {"dtype": dtype, "k": k, "columns": targets}, info, given, sizes)
    _take("lookup", values, given)
    return values


def _recurrence(info: DeviceInfo, given: Given) -> Given:
    exact = given.pop("exact", False)
    values: Given = {
        "m": 3, "tau": 1, "metric": "euclidean", "dtype": _dtype(given, info), "embedded": False, "exact": bool(exact),
        "strict": True, "corridor": False, "per_column": False, "second_partner": False, "n_radii": 1,
    }  # fmt: skip
    _take("recurrence_bits", values, {name: given.pop(name) for name in list(given) if name in values})
    for name in ("m", "tau", "n_radii"):
        _whole(name, values[name])
    metric_named(values["metric"])
    values["limits_per_radius"] = (2 if values["exact"] else 1) * (2 if values["corridor"] else 1)
    values["coordinates"] = values["m"] if values["embedded"] else 1
    values |= _chosen(spec("recurrence_bits"), values, info, given, {"rows": 10_000, "columns_of_matrix": 10_000})
    _take("recurrence_bits", values, given)
    if not staging_fits(values, info):
        values["staged"] = False
    return values


_MAKERS: dict[str, Callable[[DeviceInfo, Given], Given]] = {
    "knn": _knn, "lookup": _lookup, "recurrence_bits": _recurrence,
}  # fmt: skip


def _whole(name: str, value: Any) -> int:
    most = _LARGEST.get(name, _MOST)
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 1 <= value <= most:
        raise InputError(f"{name}={shown(value)}: a whole number from 1 to {most:,} is needed")
    return int(value)


def _dtype(given: Given, info: DeviceInfo) -> str:
    dtype = given.pop("dtype", "float32")
    if not isinstance(dtype, str) or dtype not in ("float32", "float64"):
        raise InputError(f"dtype={shown(dtype)}: float32 or float64 is needed")
    if dtype == "float64" and not info.fp64:
        raise InputError(f"dtype='float64': {info.name or 'the target'} has no double precision")
    return str(dtype)


LICENCE = "Apache-2.0"
FORMULAS = ("integers; / leaves the remainder out; ceil_div, round_up, min, max, odd(a) = a | 1, "
            "select(condition, yes, no)")  # fmt: skip
_TYPES = {"b": "char", "B": "uchar", "h": "short", "H": "ushort", "i": "int", "I": "uint", "l": "long", "L": "ulong",
          "q": "long", "Q": "ulong", "f": "float", "d": "double"}  # fmt: skip
_ATTRIBUTE = r"(?:__attribute__\s*\(\(.*?\)\)\s*)?"
_ENTRY = re.compile(rf"\b(?:__)?kernel\s+{_ATTRIBUTE}void\s+{_ATTRIBUTE}(\w+)\s*\(", re.DOTALL)


@dataclass(frozen=True)
class KernelSource:
    """A kernel to take away."""

    # Its name, which is that of its entry point.
    kernel: str
    # OpenCL C without includes.
    text: str
    # What the compiler needs to be told.
    options: tuple[str, ...]
    # What :meth:`save` writes as JSON: arguments, sizes and launches as formulas, rules, licence.
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
    with source.mode(tune):
        return of_values(kernel, values_for(kernel, values, info), info, target)


def every_source(device: str | None = None, target: str | None = None) -> Iterator[KernelSource]:
    """A text of each kernel, as a usual problem has it, but for those that need a precision that the device lacks."""
    info = info_of(device, target)
    with source.mode("cached"):
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

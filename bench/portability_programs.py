"""The OpenCL C that each kernel is compiled from on a device that is not at hand.

The engines produce it themselves: every tuning problem runs on an executor that computes nothing, and each program that
is built on the way is noted. A kernel that has a tuning problem is therefore covered without being listed here, and
:func:`uncovered` names the kernels that are not. The problems run twice: with the default parameters, and with
parameters that were tuned on another GPU. The first program of each kernel is then varied, one value at a time, so that
the other metrics, number types and options are compiled too.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from portability_place import DIMS, DTYPES, LAGS
from untuned import every_problem

from pyedmcl import kernels
from pyedmcl.device.info import DeviceInfo
from pyedmcl.device.quirks import quirks_for
from pyedmcl.errors import BuildError
from pyedmcl.export.kernel_source import UNTUNED, DryExecutor
from pyedmcl.kernels import build, loopy_source
from pyedmcl.kernels.kernel_spec import KernelSpec
from pyedmcl.kernels.texts import read_text
from pyedmcl.tuning import defaults
from pyedmcl.tuning.parameters import source
from pyedmcl.tuning.records import Entry, TuningKey, key_from, ranked

# Numbers that most tuning problems leave at 1, although the text is another one where they are larger.
NUMBERS: Mapping[str, Sequence[int]] = {"tau": (1, 3), "stride": (1, 2)}
# Values that an engine derives from others, by kernel: a variant must derive them anew.
DERIVED: Mapping[str, Mapping[str, Callable[[Mapping[str, Any]], int]]] = {
    "recurrence_bits": {
        "limits_per_radius": lambda v: (2 if v["exact"] else 1) * (2 if v["corridor"] else 1),
        "coordinates": lambda v: v["m"] if v["embedded"] else 1,
    },
    # Local memory holds half as many numbers of float64.
    "smap_map": {"step": lambda v: max(v["step"] // 2, 8) if v["dtype"] == "float64" else v["step"]},
}
#: What a kernel's tuning problem is given for E, tau and a number type. Problems are small: only texts are wanted.
GRID: Mapping[str, Callable[[int, int, str], Mapping[str, Any]]] = {
    "knn": lambda E, tau, dtype: {"dims": (E,), "rows": 1000, "tau": tau, "dtype": dtype},
    "lookup": lambda E, tau, dtype: {"k": E + 1, "rows": 1000, "targets": 100, "libraries": 100, "dtype": dtype},
    **dict.fromkeys(("predict", "skill", "stage"), lambda E, tau, dtype: {"dtype": dtype}),
    **dict.fromkeys(("smap_scale", "smap", "smap_shared", "smap_solve", "smap_stage"),
                    lambda E, tau, dtype: {"n": 500, "E": E, "dtype": dtype}),
    **dict.fromkeys(("smap_white", "smap_gram", "smap_map"),
                    lambda E, tau, dtype: {"E": E, "rows": 500, "targets": 100, "dtype": dtype}),
    "recurrence_bits": lambda E, tau, dtype: {"n": 1000, "m": E, "tau": tau, "dtype": dtype, "exact": False},
    "recurrence_image": lambda E, tau, dtype: {"n": 1000, "m": E, "tau": tau, "dtype": dtype, "exact": False},
    **dict.fromkeys(("recurrence_ranks", "recurrence_network"),
                    lambda E, tau, dtype: {"n": 1000, "m": E, "step": tau, "dtype": dtype}),
    "recurrence_windows": lambda E, tau, dtype: {"n": 4, "m": E, "step": tau, "dtype": dtype},
    **dict.fromkeys(("ccm", "ccm_direct"), lambda E, tau, dtype: {"n": 1000, "E": E, "dtype": dtype}),
    **dict.fromkeys(("pruned", "shared_sums"),
                    lambda E, tau, dtype: {"rows": 2000, "E": E, "tau": tau, "dtype": dtype}),
    "candidates": lambda E, tau, dtype: {"E": E, "dtype": dtype},
}  # fmt: skip
# Values that follow from the rest of a label and would only make it long.
_UNSAID = frozenset({"dtype", "capacities", "merged", "limits_per_radius"})
# Its parameters stand for those that another GPU might be given.
_WISDOM = "nvidia.jsonl"


@dataclass(frozen=True)
class Program:
    """A program to compile.

    Attributes
    ----------
    kernel : str
    label : str
        The specialisation, and the parameters that are not the kernel's defaults for a GPU.
    dtype : str
        Empty where the kernel knows no floating-point numbers.
    code : str
        OpenCL C.
    options : tuple of str
        Options of the compiler.
    """

    kernel: str
    label: str
    dtype: str
    code: str
    options: tuple[str, ...]

    @property
    def digest(self) -> str:
        """The first digits of a digest of all that a compiler is given."""
        return hashlib.sha256(repr((self.code, self.options)).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Request:
    """A kernel that an engine wants to be built, with its specialisation and parameters."""

    spec: KernelSpec
    values: Mapping[str, Any]


def kernel_names() -> tuple[str, ...]:
    """All kernels of the package: those of :data:`pyedmcl.kernels.NAMES`, then those of which nothing is tuned."""
    return tuple(dict.fromkeys((*kernels.NAMES, *sorted(kernels.FAMILIES))))


def uncovered(programs: Iterable[Program]) -> list[str]:
    """Kernels of which there is no program."""
    covered = {program.kernel for program in programs}
    return [name for name in kernel_names() if name not in covered]


def programs_for(info: DeviceInfo, mode: str = "exhaustive", only: Sequence[str] = ()) -> list[Program]:
    """All programs to compile for a device, each text once.

    Parameters
    ----------
    info : DeviceInfo
    mode : {"rapid", "normal", "exhaustive"}
        How many tuning problems are run. "rapid" gives a few programs for each kernel, with default parameters only.
    only : sequence of str
        Kernels whose tuning problems are run; all of them where empty.
    """
    texts: dict[str, Program] = {}
    for request in requests_for(info, mode, only, varied=mode != "rapid"):
        program = _program(request, info)
        # Public functions refuse float64 where the device has none.
        if info.fp64 or program.dtype != "float64":
            texts.setdefault(program.code, program)
    # A variant may differ from an engine's program in derived values only. The engine's comes first, and stays.
    labelled = {(program.kernel, program.label, program.dtype): program for program in reversed(texts.values())}
    return list(labelled.values())[::-1]


def requests_for(info: DeviceInfo, mode: str, only: Sequence[str] = (), *, varied: bool) -> list[Request]:
    """What engines want to be built for a device, and variants of it where these are asked for."""
    requests: list[Request] = []
    with source.mode("never"):
        for name, problem in every_problem().items():
            for case in problem.cases(mode, info) if not only or name in only else ():
                requests += _requests_of(case, info, tuned=mode != "rapid")
    with source.mode("never"):
        requests += _grid(info, only) if mode == "exhaustive" else []
    requests += [Request(kernels.spec(name), UNTUNED[name]) for name in UNTUNED if not only or name in only]
    return requests + (list(_variants(requests, info)) if varied else [])


def _grid(info: DeviceInfo, only: Sequence[str]) -> list[Request]:
    """What engines build for each E, tau and number type of the matrix."""
    cells = list(itertools.product(DIMS, LAGS, DTYPES if info.fp64 else DTYPES[:1]))
    requests: list[Request] = []
    for kernel, arguments in GRID.items():
        problem = every_problem()[kernel]
        wanted = [arguments(*cell) for cell in cells] if not only or kernel in only else []
        for place, given in enumerate(wanted):
            if given not in wanted[:place]:
                requests += _built(problem, problem.case(info, **given), info)
    if not only or "recurrence_batch" in only:
        spec, usual = kernels.spec("recurrence_batch"), UNTUNED["recurrence_batch"]
        requests += [Request(spec, {**usual, "m": E, "dtype": dtype}) for E, _, dtype in cells]
    if info.fp64 and (not only or "deliver" in only):
        requests.append(Request(kernels.spec("deliver"), {"dtype": "float64"}))
    return requests


def _built(problem: Any, case: Any, info: DeviceInfo) -> list[Request]:
    """What a case builds of its own kernel."""
    with build.noting() as noted, problem.open(DryExecutor(info), case) as go:
        if case.kernel != "recurrence_ranks":  # it builds first, and then waits for a rank that nobody finds here
            go()
    return [Request(spec, values) for spec, values in noted if spec.name == case.kernel]


def _requests_of(case: Any, info: DeviceInfo, *, tuned: bool) -> list[Request]:
    """All that a case of a tuning problem builds, the case's own kernel first."""
    problem = every_problem()[case.kernel]
    with build.noting() as noted, source.watching() as questions:
        problem.run(DryExecutor(info), case)
    requests = [Request(*each) for each in noted]
    parameters = _tuned_parameters(case.kernel, tuple(questions.values())) if tuned else None
    if parameters is not None:
        with build.noting() as more, source.using(**{case.kernel: parameters}):
            problem.run(DryExecutor(info), case)
        requests += [Request(*each) for each in more]
    return sorted(requests, key=lambda request: request.spec.name != case.kernel)


def _tuned_parameters(kernel: str, questions: Sequence[Any]) -> Mapping[str, Any] | None:
    """The parameters that the wisdom of another GPU holds for a similar problem; None where none of them fit.

    Whether the wisdom belongs to today's text of the kernel does not matter here: its parameters are legal or not.
    """
    for question in questions:
        if question.spec.name != kernel:
            continue
        key, most = question.key(), quirks_for(question.info).max_work_group
        entries = [Entry(replace(tuned, device=key.device, digest=key.digest), parameters)
                   for tuned, parameters in _wisdom() if tuned.kernel == kernel]  # fmt: skip
        for _, entry in ranked(entries, key):
            place = question.spec, entry.parameters, question.specialisation, question.info, most, question.sizes
            if defaults.unfit(*place) is None and dict(entry.parameters) != dict(question.choice.parameters):
                return entry.parameters
    return None


@functools.cache
def _wisdom() -> tuple[tuple[TuningKey, Mapping[str, Any]], ...]:
    records = [json.loads(line) for line in read_text("tuning/wisdom", _WISDOM).splitlines() if line.strip()]
    return tuple((key_from(record), record["parameters"]) for record in records)


def _variants(requests: Sequence[Request], info: DeviceInfo) -> Iterator[Request]:
    """The first program of each kernel with one value changed, where the kernel's constraints allow that.

    Each truth value is turned, each word is replaced by those that other programs have in its place.
    """
    words: dict[str, set[str]] = {}
    for request in requests:
        for name in request.spec.specialisation:
            if isinstance(request.values[name], str):
                words.setdefault(name, set()).add(request.values[name])
    first = {request.spec.name: request for request in reversed(requests)}
    for request in first.values():
        spec, values = request.spec, request.values
        for name in spec.specialisation:
            alternatives: Iterable[Any] = NUMBERS.get(name, sorted(words.get(name, ())))
            if isinstance(values[name], bool):
                alternatives = (not values[name],)
            for alternative in alternatives:
                changed = {**values, name: alternative}
                changed |= {derived: of(changed) for derived, of in DERIVED.get(spec.name, {}).items()}
                if alternative != values[name] and _legal(spec, changed, info):
                    yield Request(spec, changed)


def _legal(spec: KernelSpec, values: Mapping[str, Any], info: DeviceInfo) -> bool:
    """Whether the constraints allow the values and, where loopy writes the kernel, the text can be had here."""
    quirks = quirks_for(info)
    if values.get("matrix_units") and not quirks.matrix_units:
        return False  # engines ask for them nowhere else
    try:
        spec.check({**values, **quirks.values})
    except BuildError:
        return False
    return spec.producer != "loopy" or loopy_source.obtainable(spec.text, values)


def _program(request: Request, info: DeviceInfo) -> Program:
    spec, values, quirks = request.spec, request.values, quirks_for(info)
    usual = spec.defaults(quirks.defaults_for)
    shown = [name for name in spec.specialisation if name not in _UNSAID]
    shown += [name for name in usual if values[name] != usual[name]]
    label = " ".join(filter(None, (_in_words(name, values[name]) for name in shown)))
    code = build.text_for(spec, values, info)
    return Program(spec.name, label, values.get("dtype", ""), code, quirks.build_options)


def _in_words(name: str, value: Any) -> str:
    """A value with its name; a word stands for itself, a truth value is its name or nothing."""
    if isinstance(value, bool):
        return name if value else ""
    if isinstance(value, str):
        return value
    if isinstance(value, (tuple, list)):
        steps = {b - a for a, b in itertools.pairwise(value)}
        value = f"{value[0]}-{value[-1]}" if len(value) > 2 and steps == {1} else ",".join(map(str, value))
    return f"{name}={value}"

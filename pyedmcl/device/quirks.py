"""The table of differences between devices that kernels and plans must know, each with its reason, and one that is
measured.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from .info import DeviceInfo, Slot
from .runtimes import ProgramCache

if TYPE_CHECKING:
    from .executor import Executor


# Whether a driver keeps its word: ``fma()`` of doubles rounds once, as OpenCL demands and some drivers do not.
#
# Mesa's rusticl computes it by a product and a sum on processors (25.0). Results would differ in the last bit from
# those of other devices, so that such a device gets ``clkernels/software_fma.clh``. A device is asked when it is
# opened, and the answer is kept with its driver's version; drivers that were tested are not asked.


#: Runtimes that round once: tested on these, or for AMD what each of its GPUs does.
_TRUSTED = ("intel-cpu", "nvidia", "amd", "pocl", "oclgrind")
_TEXT = """
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
kernel void fused(global const double* a, global const double* b, global const double* c, global double* out) {
  const int i = get_global_id(0);
  out[i] = fma(a[i], b[i], c[i]);
}
"""
_SLOTS = (*(Slot(name, np.dtype(np.float64), is_buffer=True, is_const=True) for name in "abc"),
          Slot("out", np.dtype(np.float64), is_buffer=True))  # fmt: skip
_COUNT = 64
_OPTIONS = ("probe",)
# What was found in this process, by device.
_found: dict[DeviceInfo, bool] = {}


def rounds_once(info: DeviceInfo) -> bool:
    """Whether ``fma()`` of doubles is one operation there, as far as that is known: if it is not, it counts as one."""
    if not info.fp64 or info.runtime in _TRUSTED:
        return True
    if info not in _found:
        kept = ProgramCache(info).load(_TEXT, _OPTIONS)
        if kept is None:
            return True
        _found[info] = kept == b"1"
    return _found[info]


def ask(executor: Executor) -> bool:
    """Find it out, where it is not known yet; whether something was found that was not expected.

    Raises what an executor raises.
    """
    info = executor.info
    if not info.fp64 or info.runtime in _TRUSTED or info in _found:
        return False
    kept = ProgramCache(info)
    answer = kept.load(_TEXT, _OPTIONS)
    if answer is None:
        answer = b"%d" % _computed(executor)
        kept.keep(_TEXT, _OPTIONS, answer)
    _found[info] = answer == b"1"
    return not _found[info]


def _computed(executor: Executor) -> bool:
    """What products leave over when they are rounded: exactly that, or 0 where the sum gets the rounded product."""
    random = np.random.default_rng(1)
    a, b = (1 + random.integers(0, 1 << 20, _COUNT) * 2.0**-30 for _ in range(2))
    expected = [float(Fraction(x) * Fraction(y) - Fraction(x * y)) for x, y in zip(a, b, strict=True)]
    inputs = {name: executor.upload(values) for name, values in (("a", a), ("b", b), ("c", -(a * b)))}
    out = executor.allocate(8 * _COUNT)
    kernel = executor.build(_TEXT).kernel("fused", _SLOTS)
    executor.launch(kernel, (_COUNT,), None, **inputs, out=out)
    return bool((executor.download(out, np.empty(_COUNT)) == expected).all())


#: Where a current PoCL comes from: its newest wheel on PyPI is the one that the table below calls unusable.
POCL_FROM = "apt install pocl-opencl-icd, dnf install pocl, or conda install -c conda-forge pocl"


@dataclass(frozen=True)
class Quirks:
    """How to treat a device."""

    # How to write a fast multiply-add with one rounding: "builtin" is ``fma(a, b, c)``; "contract" is ``a * b + c`` in
    # a function whose first line is ``#pragma OPENCL FP_CONTRACT ON``; "contract-vectors" is that for vector types, and
    # ``fma(a, b, c)`` for scalars.
    fma: str = "builtin"
    # Whether ``fma()`` of doubles rounds once; where it does not, programs begin with ``clkernels/software_fma.clh``.
    fused_double: bool = True
    # How to write a fast minimum of two numbers that are not NaN: "fmin" or "select" (``a < b ? a : b``).
    minimum: str = "fmin"
    # Whether quotients and square roots of floats are rounded correctly; where they are not, ``clkernels/division.clh``
    # corrects them.
    exact_division: bool = False
    # Whether a permutation of the bytes of two words is one instruction, and to be written in PTX.
    byte_permute: bool = False
    # Whether the native inverse square root is so near that one step from it gives the square root of a float correctly
    # rounded.
    inverse_root: bool = False
    # Whether S-map may use matrix units, which are to be written in PTX: those of double precision, and for maps of
    # less precision those of numbers of type half.
    matrix_units: bool = False
    # Whether it is so quick in double precision that it draws surrogates sooner than the host.
    draws_waves: bool = False
    # Whose default parameters suit it, "gpu" or "cpu": each tunable of a kernel's SPEC has one for either.
    defaults_for: str = "gpu"
    # Whether thousands of scalar work-items run side by side and share local memory, as on GPUs; on processors one
    # work-item fills the SIMD registers of a core.
    scalar_work_items: bool = True
    # Whether it is the processor that the code of the host runs on, too.
    on_host: bool = False
    # Lane operations per second, on the slow side: how large the first launch of a kernel may be.
    first_rate: float = 1e12
    # Operations per second of a compute unit, roughly and rather too many: enough to tell seconds from hours.
    unit_rate: float = 0.0
    # Work-groups that run side by side on a compute unit, where local memory does not say it.
    groups_at_once: int = 16
    # Whether sorted lists of a scalar work-item must be kept in registers, since those in memory come out wrong.
    lists_in_registers: bool = False
    # Whether several work-items of a group may solve a system of equations together.
    shared_solves: bool = True
    # Numbers that a work-item reads before it looks at the first, where they come one by one from far away.
    reads_ahead: int = 32
    # Compiler options that every program needs on this device.
    build_options: tuple[str, ...] = ()
    # What every program begins with there; :func:`pyedmcl.kernels.texts.prelude` writes it out.
    prelude: str = ""
    # What programs begin with as well whose groups are single work-items.
    lone_prelude: str = ""
    # Whether lookups of many neighbours are bound by reading the tables, and pay for making these narrower.
    narrow_tables: bool = False
    # Embedding dimensions that the compiler can take in one pass of the neighbour search; 0: as many as pay.
    most_dimensions: int = 0
    # Largest work-group worth asking for, at most what the device reports.
    max_work_group: int = 256
    # Part of the reported memory that may be planned with, before the user's own PYEDMCL_MEMORY_FRACTION.
    memory_share: float = 1.0
    # Largest single allocation in bytes.
    largest_bytes: int = 0
    # Local memory, in bytes, that the arrays declared in a kernel may take.
    local_bytes: int = 0
    # Bytes of cache that a unit keeps when a group takes all of this local memory, of which both are parts.
    cache_beside: int = 0
    # The reported largest allocation is no real limit; ``largest_bytes`` is all of the memory then.
    whole_memory_in_one: bool = False
    # Programs that are compiled side by side, where several are needed; from two on, also beside other work.
    compilers: int = 1
    # Whether compiled programs are kept in the user's cache folder, since the runtime itself keeps none.
    keep_programs: bool = False
    # Work-items of a group, at most, where a launch leaves their number open; 0: the driver chooses.
    group_left_open: int = 0
    # Whether buffers that were given back serve again.
    reuse_buffers: bool = True
    # Why no kernel can run on it; None where it works. Such a device is never chosen unasked.
    unusable: str | None = None
    # What to do about an unusable device.
    instead: str = ""
    # Why the rows apply that did.
    reasons: tuple[str, ...] = ()

    def __hash__(self) -> int:
        # A text is looked up by it in each launch.
        return hash((self.defaults_for, self.max_work_group, self.local_bytes, self.reasons))

    @property
    def values(self) -> dict[str, Any]:
        """What the texts and the constraints of kernels may ask about a device, by name."""
        return {
            "fma": self.fma,
            "minimum": self.minimum,
            "exact_division": self.exact_division,
            "byte_permute": self.byte_permute,
            "inverse_root": self.inverse_root,
            "lists_in_registers": self.lists_in_registers,
            "shared_solves": self.shared_solves,
            "reads_ahead": self.reads_ahead,
        }


@dataclass(frozen=True)
class Row:
    """``change`` holds the fields that differ where ``applies`` says yes; later rows win."""

    applies: Callable[[DeviceInfo], bool]
    change: dict[str, Any]
    reason: str


def _on_host(info: DeviceInfo) -> bool:
    return info.kind in ("cpu", "simulator")


TABLE: tuple[Row, ...] = (
    Row(
        _on_host,
        {"defaults_for": "cpu", "scalar_work_items": False, "on_host": True, "first_rate": 1e10, "unit_rate": 2e10,
         "groups_at_once": 4},
        "a core runs one work-group at a time and is fast where a work-item fills its SIMD registers; a few groups for "
        "each core share the work evenly",
    ),
    Row(
        _on_host,
        {"reads_ahead": 8},
        "a processor reads ahead by itself: means of 1,000 series took the same time with 8 as with 32 reads that were "
        "unrolled, which Intel's compiler needs 0.12 seconds longer for",
    ),
    Row(
        _on_host,
        {"shared_solves": False},
        "work-items of a processor that solve a system together only wait for each other, and what PoCL 3.1 makes of "
        "groups of 16 is wrong",
    ),
    Row(
        _on_host,
        {"minimum": "select", "memory_share": 0.5},
        "on a processor fmin() calls a library function for its NaN rule while a comparison is one vector "
        "instruction, and the memory is the host's, which the arrays of the caller share",
    ),
    Row(
        lambda info: info.runtime == "pocl" and info.kind == "cpu",
        {"fma": "contract"},
        "PoCL's fma() is up to half as fast as a*b+c, which its compiler fuses under FP_CONTRACT",
    ),
    Row(
        lambda info: info.runtime == "pocl",
        {"build_options": ("-w",)},
        "PoCL counts the warnings of its compiler on stderr, such as that a loop could not be unrolled",
    ),
    Row(
        lambda info: info.runtime == "pocl" and info.kind == "cpu" and re.match(r"3\.1(\D|$)", info.driver) is not None,
        {"build_options": ("-w", "-D_OPENCL_H_"), "prelude": '#include "opencl_functions.clh"\n'},
        "PoCL (3.1) reads a header of 900 KB twice for each program, which takes 0.09 seconds: the option leaves it "
        "out, and the prelude declares the functions that kernels call",
    ),
    Row(
        lambda info: info.runtime == "pocl",
        {"group_left_open": 64},
        "PoCL compiles a kernel for each size of its groups, in some 0.1 seconds, and by itself chooses another size "
        "for nearly every number of work-items: each new length of a series would have it compile several kernels",
    ),
    Row(
        lambda info: info.runtime == "rusticl" and info.kind == "cpu",
        {"defaults_for": "gpu"},
        "Mesa's compiler for processors takes minutes for searches with vectors of 16 numbers (22.3), and seconds for "
        "the scalar work-items that suit a GPU",
    ),
    Row(
        lambda info: not rounds_once(info),
        {"fused_double": False},
        "its fma() of doubles rounds the product, too, as a look at it has shown when the device was opened",
    ),
    Row(
        lambda info: info.runtime == "intel-cpu",
        {"fma": "contract-vectors"},
        "scalar fma() is as fast as a*b+c, which is not fused everywhere in groups of few work-items (sums of a lookup "
        "of one lane, in groups below 16, had other bits); fma() of vector types was 20 times slower (2026.2)",
    ),
    Row(
        lambda info: info.executor == "spirv",
        {"fma": "builtin"},
        "a kernel in SPIR-V may fuse all of its products with sums or none of them, so fused ones are named",
    ),
    Row(
        lambda info: info.runtime == "intel-cpu",
        {"lone_prelude": "#define reqd_work_group_size(X, Y, Z) reqd_work_group_size(X, Y, Z), vec_type_hint(int4)\n"},
        "the compiler also makes a version of each kernel that runs several work-items at once, and takes three times "
        "as long for it (2026.2); groups of one work-item never use that version, and the hint has it left out",
    ),
    Row(
        lambda info: info.runtime == "intel-cpu",
        {"keep_programs": True},
        "each process compiles anew, 0.1 to 1 second a kernel, where loading what was compiled takes some 10 ms; PoCL "
        "and the drivers of GPUs keep programs themselves",
    ),
    Row(
        lambda info: info.runtime == "intel-cpu",
        {"lists_in_registers": True},
        "the vectoriser (2026.2) gets sorted lists of scalar work-items in memory wrong",
    ),
    Row(
        lambda info: info.runtime in ("nvidia", "amd"),
        {"build_options": ("-cl-fp32-correctly-rounded-divide-sqrt",), "exact_division": True},
        "division and square root are off in the last bits otherwise (a third of all quotients on an H200), and "
        "results must be the same bits on every device",
    ),
    Row(
        lambda info: info.runtime == "nvidia",
        {"byte_permute": True},
        "prmt makes a float of 16 bits in one instruction: a lookup of such targets took 10.7 ms with it and 15.9 with "
        "shifts and masks (H200, 3,780 steps, E = 3)",
    ),
    Row(
        lambda info: info.runtime == "nvidia",
        {"inverse_root": True},
        "sqrt() branches for numbers below 2^-101, which takes a third of the time of sums over pairs of rows (systems "
        "of S-map maps, H200); without a branch all 2^31 floats have the same root",
    ),
    Row(
        lambda info: info.runtime == "nvidia",
        {"narrow_tables": True},
        "lookups took 0.79 to 0.88 of their time for E = 10 and 20 with tables whose rows have 16 bits (H200, 1,600 to "
        "8,528 steps); docs/design/lookup.md",
    ),
    Row(
        lambda info: info.runtime == "intel-cpu" or (info.runtime == "pocl" and info.kind == "cpu"),
        {"exact_division": True},
        "both take the processor's own instructions, which round correctly, though only PoCL promises it; a test of "
        "division.clh compares a million quotients and roots of each",
    ),
    Row(
        lambda info: info.runtime == "intel-gpu" and "Data Center GPU Max" in info.name,
        {
            "build_options": ("-cl-intel-256-GRF-per-thread",),
            "prelude": "#define kernel __attribute__((intel_reqd_sub_group_size(16))) __kernel\n",
            "most_dimensions": 4,
        },
        "the compiler takes 32 lanes with 128 registers and ends without a message where these overflow by much; 16 "
        "lanes with 256 registers hold four dimensions at once (compiled with ocloc 22.43, not executed)",
    ),
    Row(
        lambda info: info.runtime == "nvidia",
        {"compilers": 4},
        "the 22 programs of a first map in 20 dimensions took 7.3 s one after the other, 5.0 s in two threads, 4.9 in "
        "four and 6.2 in eight (H200, 16 cores): parts of the compiler run side by side",
    ),
    Row(
        lambda info: info.executor == "cuda",
        {"keep_programs": True, "group_left_open": 256},
        "the driver keeps what it assembles, but NVRTC compiles anew in each process, some 0.5 seconds a text; and "
        "CUDA chooses no size of groups",
    ),
    Row(
        lambda info: info.runtime == "nvidia",
        {"whole_memory_in_one": True},
        "the driver reports a quarter of the memory but grants nearly all of it: one buffer of 145 of 150 GB was "
        "written at its end",
    ),
    Row(
        lambda info: info.runtime == "nvidia",
        {"max_work_group": 1024},
        "one group may fill a multiprocessor: it shares what is staged in local memory",
    ),
    Row(
        lambda info: info.runtime == "nvidia" and re.search(r"\b(H100|H200|GH200)\b", info.name) is not None,
        {"local_bytes": 227 << 10, "cache_beside": 28 << 10, "draws_waves": True},
        "Hopper: the driver reports 48 KiB of local memory and grants arrays declared in a kernel all that a "
        "multiprocessor has for one group (227 KiB), beside 28 KiB of cache; and double precision takes twice the time "
        "of single, not 32 times",
    ),
    Row(
        lambda info: info.runtime == "nvidia" and re.search(r"\b(H100|H200)\b", info.name) is not None,
        {"matrix_units": True},
        "on those of doubles predictions of S-map maps take 0.57 to 0.68 of their time, and sums of smap half of it; "
        "on those of halves maps take 0.31 to 0.38, with errors of rho up to 2e-6 instead of 2e-7 (H200; an H100 "
        "passes the same tests); other GPUs of NVIDIA have them, too, but were not tried",
    ),
    Row(
        lambda info: info.runtime == "pocl" and re.search(r"x86_64\S*-generic$", info.version) is not None,
        {
            "unusable": "the compiler inside this PoCL does not know the processor and refuses every kernel "
            "(unknown target CPU 'generic')",
            "instead": f"use the Intel CPU runtime (pip install 'pyedmcl[cpu]') or a newer PoCL ({POCL_FROM})",
        },
        "LLVM names a processor that it does not know 'generic', which its x86 back end rejects",
    ),
    Row(
        lambda info: info.runtime == "pocl" and re.match(r"3\.0(\D|$)", info.driver) is not None,
        {
            "unusable": "PoCL 3.0 gives wrong distances with some parameters of the neighbour search",
            "instead": "pip uninstall pocl-binary-distribution, and use the Intel CPU runtime (pip install "
            f"'pyedmcl[cpu]') or PoCL 3.1 or newer ({POCL_FROM})",
        },
        "with one query row for each work-item its compiler (3.0-rc2) loses the first half of int2 stores: the rows of "
        "neighbours are right, their distances are garbage; 3.1, with the same LLVM 14, compiles the same text rightly",
    ),
    Row(
        lambda info: info.kind == "simulator",
        {"max_work_group": 64, "reuse_buffers": False},
        "an interpreter: every work-item costs, so problems must be tiny; and it watches for reads of memory that was "
        "never written, which it cannot see in a buffer that served before",
    ),
)


# Of a compute unit of a GPU: lanes that are busy, and the clock where the driver does not tell it.
_BUSY_LANES = 128 * 0.4
_CLOCK_MHZ = 1500


@functools.lru_cache(maxsize=64)
def quirks_for(info: DeviceInfo) -> Quirks:
    """The quirks of a device: defaults, then each row of the table that applies."""
    quirks = Quirks()
    for row in TABLE:
        if row.applies(info):
            quirks = replace(quirks, **row.change, reasons=(*quirks.reasons, row.reason))
    return replace(
        quirks,
        max_work_group=max(1, min(quirks.max_work_group, info.max_work_group)),
        local_bytes=quirks.local_bytes or info.local_bytes,
        unit_rate=quirks.unit_rate or _BUSY_LANES * (info.clock_mhz or _CLOCK_MHZ) * 1e6,
        largest_bytes=info.global_bytes if quirks.whole_memory_in_one else info.max_alloc_bytes,
    )

"""Runs a piece of OpenCL C by itself: macros and functions of a header, or a fragment of a template, on arrays."""

from __future__ import annotations

import numpy as np

from pyedmcl.device.info import Slot
from pyedmcl.device.quirks import quirks_for
from pyedmcl.device.select import open_device
from pyedmcl.kernels import texts

_C_NAMES = {
    "float32": "float", "float64": "double", "int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort",
    "int32": "int", "uint32": "uint", "int64": "long", "uint64": "ulong",
}  # fmt: skip


def run_fragment(device, head, body, inputs, outputs, *, items=1, group=None, **values):
    """Run ``body`` in each of ``items`` work-items, and return what it wrote.

    Parameters
    ----------
    device : str
        As the fixtures ``device`` and ``one_device`` give it.
    head : str
        What stands before the kernel: defines, ``#include "numeric.clh"``, a ``<%namespace>``. It may use all of Mako.
    body : str
        Statements of a kernel, which may use Mako as well. ``i`` is the work-item; each array goes by its name in
        ``inputs`` or ``outputs``, as a pointer to its first number.
    inputs : mapping
        Name to an array.
    outputs : mapping
        Name to an array of the result's shape and type, whose content the kernel finds.
    items : int or tuple of int
        Work-items, along each dimension.
    group : int, optional
        How many of them form a work-group, along the first dimension; the driver chooses where it is left out.
    **values
        What head and body use in ``${...}``. ``dtype``, ``lanes``, ``fma``, ``minimum`` and ``exact_division`` mean
        what they mean to :func:`pyedmcl.kernels.texts.prologue`; the last three are the device's own where left out.

    Returns
    -------
    dict
        The outputs by name.
    """
    arrays = _contiguous({**inputs, **outputs})
    pointers = ", ".join(
        f"global {'' if name in outputs else 'const '}{_C_NAMES[array.dtype.name]}* restrict {name}"
        for name, array in arrays.items()
    )
    text = f"{head}\nkernel void fragment({pointers}) {{\n  const int i = get_global_id(0);\n{body}\n}}\n"
    return _run(device, text, "fragment", arrays, outputs, items, group, values)


def run_kernel(device, text, entry, arguments, outputs, *, items=1, group=None, **values):
    """Run a kernel that a fragment defines, and return what it wrote.

    Parameters
    ----------
    device, items, group, **values
        As those of :func:`run_fragment`.
    text : str
        The kernel and what stands before it; it may use all of Mako.
    entry : str
        The kernel's name.
    arguments : mapping
        All of its arguments in their order: arrays, and numbers as NumPy's scalars.
    outputs : sequence of str
        The arrays that it writes.
    """
    return _run(device, text, entry, _contiguous(arguments), outputs, items, group, values)


def _contiguous(arguments):
    return {name: np.ascontiguousarray(value) if np.ndim(value) else value for name, value in arguments.items()}


def _run(device, text, entry, arguments, outputs, items, group, values):
    executor = open_device(device)
    quirks = quirks_for(executor.info)
    values = {**quirks.values, **values}
    filled = texts._filled(texts._compiled(text, "fragment"), "fragment", values)
    source = texts.prelude(quirks) + texts.prologue(values) + texts.expand_includes(filled, set())
    arrays = {name: value for name, value in arguments.items() if np.ndim(value)}
    slots = [
        Slot(name, value.dtype, name in arrays, name in arrays and name not in outputs)
        for name, value in arguments.items()
    ]
    kernel = executor.build(source, quirks.build_options).kernel(entry, slots)
    buffers = {name: executor.upload(array) for name, array in arrays.items()}
    sizes = tuple(np.atleast_1d(items).tolist())
    local_size = None if group is None else (group, *(1 for _ in sizes[1:]))
    executor.launch(kernel, sizes, local_size, **{**arguments, **buffers}).wait()
    results = {name: executor.download(buffers[name], np.empty_like(arrays[name])) for name in outputs}
    for buffer in buffers.values():
        buffer.release()
    return results

"""Runs a piece of OpenCL C by itself: macros and functions of a header, or a fragment of a template, on arrays."""

from __future__ import annotations

import numpy as np

from pyedmcl.codegen import render
from pyedmcl.device.quirks import quirks_for
from pyedmcl.device.session import open_device
from pyedmcl.device.slots import Slot

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
    items, group : int
        Work-items, and how many of them form a work-group (the driver chooses where ``group`` is left out).
    **values
        What head and body use in ``${...}``. ``dtype``, ``lanes``, ``fma``, ``minimum`` and ``exact_division`` mean
        what they mean to :func:`pyedmcl.codegen.render.prologue`; the last three are the device's own where left out.

    Returns
    -------
    dict
        The outputs by name.
    """
    executor = open_device(device)
    quirks = quirks_for(executor.info)
    values = {**quirks.values, **values}
    arrays = {name: np.ascontiguousarray(array) for name, array in {**inputs, **outputs}.items()}
    pointers = ", ".join(
        f"global {'' if name in outputs else 'const '}{_C_NAMES[array.dtype.name]}* restrict {name}"
        for name, array in arrays.items()
    )
    text = f"{head}\nkernel void fragment({pointers}) {{\n  const int i = get_global_id(0);\n{body}\n}}\n"
    filled = render._filled(render._compiled(text, "fragment"), "fragment", values)
    source = render.prelude(quirks) + render.prologue(values) + render.expand_includes(filled, set())
    slots = [Slot(name, array.dtype, True, name in inputs) for name, array in arrays.items()]
    kernel = executor.build(source, quirks.build_options).kernel("fragment", slots)
    buffers = {name: executor.upload(array) for name, array in arrays.items()}
    local_size = None if group is None else (group,)
    executor.launch(kernel, (items,), local_size, **buffers).wait()
    results = {name: executor.download(buffers[name], np.empty_like(arrays[name])) for name in outputs}
    for buffer in buffers.values():
        buffer.release()
    return results

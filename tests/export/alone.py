"""Launches of exported kernels by their texts and descriptions alone, with plain PyOpenCL."""

from __future__ import annotations

import json
import re

import numpy as np
import pyopencl as cl

from pyedmcl.kernels.kernel_spec import FUNCTIONS, evaluate

_TYPES = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4", "long": "i8",
          "ulong": "u8", "float": "f4", "double": "f8"}  # fmt: skip
_GUARD = 4096  # bytes behind each buffer, which nobody may write
_MOST = 1 << 40


class Alone:
    """Programs of exported kernels on an OpenCL device, used as what :meth:`KernelSource.save` writes says.

    Parameters
    ----------
    device : pyopencl.Device
    """

    def __init__(self, device):
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        self.device = device
        self._kernels = {}

    def kernel(self, source, entry):
        """PyOpenCL's kernel of an entry point, and what the description says of it."""
        key = (source.text, source.options, entry)
        if key not in self._kernels:
            description = json.loads(json.dumps(source.description))
            program = cl.Program(self.context, source.text).build(options=description["build_options"], cache_dir=False)
            told = description.get("kernels", {entry: description})[entry]
            self._kernels[key] = cl.Kernel(program, entry), told
        return self._kernels[key]

    def local_bytes(self, source, entry):
        """Local memory that the driver has for a group."""
        return self.kernel(source, entry)[0].get_work_group_info(cl.kernel_work_group_info.LOCAL_MEM_SIZE, self.device)

    def launch(self, source, entry, numbers, contents):
        """Launch an entry point; gives what is in its buffers afterwards.

        Parameters
        ----------
        source : KernelSource
        entry : str
        numbers : mapping
            Of the arguments that are no buffers and of others that formulas name.
        contents : mapping
            Buffer to array of its bytes; what is behind the elements that the description says is not given.
        """
        kernel, told = self.kernel(source, entry)
        arguments, buffers = [], {}
        for argument in told["arguments"]:
            name, kind = argument["name"], _TYPES[re.fullmatch(r"(?:global (?:const )?)?(\w+)\*?", argument["type"])[1]]
            if argument["type"].endswith("*"):
                bare = contents[name][: max(evaluate(argument["elements"], numbers), 0) * np.dtype(kind).itemsize]
                guarded = np.concatenate([bare, np.full(_GUARD, 0x7B, np.uint8)])
                flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
                buffers[name] = cl.Buffer(self.context, flags, hostbuf=guarded), len(bare)
                arguments.append(buffers[name][0])
            else:
                arguments.append(np.dtype(kind).type(numbers[name]))
        kernel.set_args(*arguments)
        size = [evaluate(formula, numbers) for formula in told["global_size"]]
        cl.enqueue_nd_range_kernel(self.queue, kernel, size, told["local_size"])
        found = {}
        for name, (buffer, held) in buffers.items():
            after = np.empty(held + _GUARD, np.uint8)
            cl.enqueue_copy(self.queue, after, buffer)
            assert (after[held:] == 0x7B).all(), f"{source.kernel}.{entry} writes behind {name}"
            found[name] = after[:held]
        return found


def deduced(told, numbers, contents):
    """The numbers that the caller has chosen, the largest with which formulas stay within what the buffers hold."""
    known = dict(numbers)
    for argument in told["arguments"]:
        unknown = _names(argument.get("elements", "")) - set(known)
        if len(unknown) == 1:
            item = np.dtype(_TYPES[argument["type"].split()[-1].rstrip("*")]).itemsize
            room = len(contents[argument["name"]]) // item
            (name,) = unknown
            known[name] = _largest(argument["elements"], known, name, room)
    return known


def _names(formula):
    return set(re.findall(r"[A-Za-z_]\w*", formula)) - set(FUNCTIONS)


def _largest(formula, known, name, room):
    low, high = 0, _MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if evaluate(formula, {**known, name: middle}) <= room else (low, middle)
    return low

"""``pyedmcl kernel``: write kernels as texts (or SPIR-V) that other programs use without pyedmcl."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError, PyedmclError
from . import options
from .talk import Talk

if TYPE_CHECKING:
    from ..export.kernel_source import KernelSource


def kernel(
    kernel: Annotated[
        str | None, typer.Argument(metavar="[KERNEL]", show_default=False, help="knn, lookup, recurrence_bits, ...")
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="A folder; made where it is not there.")
    ] = Path("kernels"),
    E: Annotated[
        str | None, typer.Option("--E", metavar="E[:E]", show_default=False, help="Dimension, or first and last.")
    ] = None,
    tau: Annotated[int | None, typer.Option("--tau", help="Lag into the past, in steps.", show_default=False)] = None,
    k: Annotated[int | None, typer.Option("--k", help="Neighbours.", show_default=False)] = None,
    dtype: options.Dtype = "float32",
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", show_default=False, help="Any other value; may be repeated."),
    ] = None,
    device: options.Device = None,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="NAME", show_default=False,
                     help="A device that is not at hand: gfx90a, gfx942, gfx1100, gfx1201, Gen9, Xe-LP, Xe-HPG, "
                          "Xe-HPC, nvidia, amd, intel-gpu, cpu."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All kernels, as usual problems have them.")] = False,
    spirv: Annotated[
        bool, typer.Option("--spirv/--text", help="Write a SPIR-V module as well, with ocloc or clang and llvm-spirv.")
    ] = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:  # fmt: skip
    """Write a kernel's OpenCL C for a device, specialised and tuned, with a description and a C header."""
    talk = Talk(quiet=quiet, as_json=json)
    if every == (kernel is not None):
        raise InputError("the name of a kernel or --all is needed, and not both")
    from ..export.kernel_source import every_source, kernel_source

    if kernel is not None:
        named = {"E": _dimensions(E), "tau": tau, "k": k}
        values_by_name = {name: value for name, value in named.items() if value is not None} | _values(values or [])
        if dtype != "float32":
            values_by_name["dtype"] = dtype
        sources = [kernel_source(kernel, device=device, target=target, **values_by_name)]
    else:
        if E or tau or k or values or dtype != "float32":
            raise InputError("--all writes kernels as usual problems have them; name one kernel to give it values")
        sources = list(every_source(device, target))
    written, failed = [], []
    for source in sources:
        files = source.save(output)
        if spirv:
            try:
                files.append(_compiled(source, output))
            except PyedmclError as error:
                if not every:
                    raise
                failed.append({"kernel": source.kernel, "reason": str(error)})
        written.append({"kernel": source.kernel, "files": [str(path) for path in files]})
        talk.summary(f"{source.kernel:<22} {', '.join(path.name for path in files)}")
    for failure in failed:
        talk.summary(f"{failure['kernel']}: no SPIR-V, {failure['reason']}")
    talk.document({"folder": str(output), "kernels": written, "failed": failed})


def _compiled(source: KernelSource, folder: Path) -> Path:
    from ..device.spirv import compile_spirv
    from ..files import writing

    path = folder / f"{source.kernel}.spv"
    module = compile_spirv(source.text, source.options)
    with writing(path, "the module") as stream:
        stream.write(module)
    return path


def _dimensions(text: str | None) -> int | tuple[int, ...] | None:
    if text is None:
        return None
    first, _, last = text.partition(":")
    try:
        numbers = tuple(range(int(first), int(last or first) + 1))
    except ValueError:
        raise InputError(f"--E {text}: a whole number, or the first and the last as 1:5") from None
    if not 0 < len(numbers) <= 100:
        raise InputError(f"--E {text}: between 1 and 100 dimensions, the smaller one first")
    return numbers[0] if len(numbers) == 1 else numbers


def _values(words: list[str]) -> dict[str, Any]:
    """NAME=VALUE as Python values: numbers, true, false, or text."""
    parsed: dict[str, Any] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign or not name.isidentifier():
            raise InputError(f"--set {word}: NAME=VALUE is needed")
        try:
            parsed[name] = json_module.loads(text)
        except (ValueError, RecursionError):
            parsed[name] = text
    for own in ("kernel", "device", "target", "tune"):
        if own in parsed:
            raise InputError(f"--set {own}=...: this is an option of its own")
    return parsed

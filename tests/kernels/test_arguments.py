"""What a SPEC declares is what the text takes, and every engine launches by these names: no device is needed."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from device_helpers import NVIDIA

from pyedmcl.device.info import Slot
from pyedmcl.errors import BuildError
from pyedmcl.kernels import build, spec
from pyedmcl.kernels.kernel_spec import declared, element_type

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import portability_programs

PROTOTYPE = re.compile(r"\b(?:__)?kernel\b\s*(?:__attribute__\s*\(\(.*?\)\)\)\s*)?void\s*"
                       r"(?:__attribute__\s*\(\(.*?\)\)\)\s*)?(\w+)\s*\(([^{]*)\)\s*\{", re.DOTALL)  # fmt: skip
SPACES_AND_QUALIFIERS = re.compile(r"\b(?:__)?(?:global|restrict|volatile|restrict__)\b|\*")


def taken(text, double):
    """Kernel to slots, from the text itself."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/|^\s*#[^\n]*", "", text, flags=re.DOTALL | re.MULTILINE)
    kernels = {}
    for name, inside in PROTOTYPE.findall(text):
        slots = []
        for argument in filter(str.strip, inside.split(",")):
            words = SPACES_AND_QUALIFIERS.sub(" ", argument).split()
            buffer, const = "*" in argument, "const" in words
            kind, argument_name = (word for word in words if word != "const")
            slots.append(Slot(argument_name, element_type(kind, double), buffer, buffer and const))
        kernels[name] = tuple(slots)
    return kernels


@pytest.fixture(scope="module")
def requests():
    """Every kernel with several specialisations, from the engines: their launches are checked on the way."""
    return portability_programs.requests_for(NVIDIA, "rapid", varied=True)


def test_all_kernels_are_covered(requests):
    assert {request.spec.name for request in requests} == set(portability_programs.kernel_names())


def test_declarations_are_those_of_the_texts(requests):
    """Order, names, kinds and types of all arguments of all kernels of a program."""
    for request in requests:
        text = build.text_for(request.spec, request.values, NVIDIA)
        double = request.values.get("dtype") == "float64"
        for entry, slots in taken(text, double).items():
            assert request.spec.slots(entry, request.values) == slots, (request.spec.name, entry, request.values)
        shown = request.spec.arguments
        shown = shown if isinstance(shown, str) else shown(request.values)
        assert list(declared(shown, double)) >= list(taken(text, double)), "no kernel is declared that is not there"


def test_a_wrong_declaration_would_be_noticed():
    predict = spec("predict")
    values = {"counts": (3,), "dtype": "float32", "table_tile": 1, "wg": 64}
    text = build.text_for(predict, values, NVIDIA)
    right = taken(text, False)["predict"]
    for wrong in (
        predict.arguments.replace("int target_stride, target_front", "int target_front, target_stride"),
        predict.arguments.replace("const real* targets", "real* targets"),
        predict.arguments.replace("ulong rows_per_slot", "uint rows_per_slot"),
        predict.arguments.replace("real* predicted, variance", "real* predicted"),
    ):
        assert wrong != predict.arguments
        assert replace(predict, arguments=wrong).slots("predict", values) != right
    assert predict.slots("predict", values) == right


def test_declarations():
    kernels = declared("a(const real* x, y; int n; whole* z)\n b(double s)", True)
    assert kernels == {
        "a": (Slot("x", np.dtype("f8"), True, True), Slot("y", np.dtype("f8"), True, True),
              Slot("n", np.dtype("i4")), Slot("z", np.dtype("i8"), True)),
        "b": (Slot("s", np.dtype("f8")),),
    }  # fmt: skip
    for wrong, said in (
        ("a(int n) and more", "'and more' is no declaration"), ("a(int)", "kernel a: 'int' is no declaration"),
        ("a(integer n)", "'integer' is no type"),
    ):  # fmt: skip
        with pytest.raises(BuildError, match=said):
            declared(wrong, False)
    with pytest.raises(BuildError, match="the spec predict declares no kernel 'other'; it has predict"):
        spec("predict").slots("other", {})

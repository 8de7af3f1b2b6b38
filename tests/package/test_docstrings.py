"""What the pages of docs/api show: a complete numpydoc docstring, whose example runs and shows what it says."""

from __future__ import annotations

import doctest
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import pyedmcl

API = Path(__file__).resolve().parents[2] / "docs" / "api"
_SHOWN = re.compile(r"^\.\. auto\w+:: pyedmcl\.([\w.]+)$", re.MULTILINE)
_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)

FUNCTIONS = sorted(name for name in pyedmcl.__all__ if callable(getattr(pyedmcl, name)))
#: What the pages show beside these, by its name within the package; modules that are shown as a whole are left out.
BESIDE = sorted(
    name for path in API.glob("*.md") for name in _SHOWN.findall(path.read_text(encoding="utf-8"))
    if name not in FUNCTIONS and name != "errors" and not name.startswith("compat.")
)  # fmt: skip
OF_MODULES = [name for name in BESIDE if name.rpartition(".")[2].islower()]
CLASSES = sorted(set(BESIDE) - set(OF_MODULES))


def described(name):
    """A function or class by its name within the package."""
    if name.startswith("estimators."):
        pytest.importorskip("sklearn", reason="estimators need it; pip install 'pyedmcl[sklearn]' brings it")
    return pkgutil.resolve_name(f"pyedmcl.{name}")


def sections(name):
    """Text of each section of a docstring by its title; what stands before the first one under ""."""
    parts = _SECTION.split(inspect.getdoc(described(name)))
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def test_there_is_something_to_look_at():
    assert {"knn", "xmap", "rqa"} <= set(FUNCTIONS)
    assert {"files.read_series", "simulate.coupled_maps"} <= set(OF_MODULES)
    assert {"crossmap.results.XmapResult", "simulate.Network"} <= set(CLASSES)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_docstring_has_all_sections(name):
    found = sections(name)
    wanted = {"Parameters", "Returns", "See Also", "Notes", "Examples"}
    assert wanted <= set(found)
    assert "Cost: " in found["Notes"]
    assert all(text.strip() for text in found.values())


@pytest.mark.parametrize("name", OF_MODULES)
def test_a_docstring_of_a_function_of_a_module_has_all_sections(name):
    found = sections(name)
    returned = inspect.signature(described(name)).return_annotation != "None"
    assert {"Parameters", "Raises", "Examples", *(["Returns"] if returned else [])} <= set(found)
    assert all(text.strip() for text in found.values())


@pytest.mark.parametrize("name", FUNCTIONS + OF_MODULES)
def test_every_argument_is_described(name):
    heads = re.findall(r"^(\w[^\n]*?)(?: :[^\n]*)?$", sections(name)["Parameters"], re.MULTILINE)
    words = [word for head in heads for word in re.split(r",\s*", head)]
    assert set(inspect.signature(described(name)).parameters) <= set(words)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_pointed_at_exists(name):
    for other in re.findall(r"^(\w+) :", sections(name)["See Also"], re.MULTILINE):
        assert other in FUNCTIONS


@pytest.mark.parametrize("name", CLASSES)
def test_each_public_method_of_a_class_says_what_it_does(name):
    methods = {key: held for key, held in vars(described(name)).items() if not key.startswith("_")}
    methods = {key: held for key, held in methods.items() if callable(held) or isinstance(held, property)}
    assert [key for key, held in methods.items() if not (held.__doc__ or "").strip()] == []


@pytest.mark.parametrize("name", FUNCTIONS + BESIDE)
def test_the_example_shows_what_happens(name, one_device, monkeypatch):
    monkeypatch.setenv("PYEDMCL_DEVICE", one_device)
    text = sections(name)["Examples"]
    if "_frame()" in text:
        pytest.importorskip("pandas", reason="its table needs pandas; pip install 'pyedmcl[io]' brings it")
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert example.examples
    report = []
    assert doctest.DocTestRunner().run(example, out=report.append).failed == 0, "".join(report)

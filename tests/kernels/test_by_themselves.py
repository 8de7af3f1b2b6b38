"""Each header and each fragment of a template has a test of its own in this folder, which uses all that it offers."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from pyedmcl.kernels import texts

HERE = Path(__file__).resolve().parent
PARTS = (HERE.parent / "knn_parts.py").read_text(encoding="utf-8")
TESTS = [file.read_text(encoding="utf-8") for file in HERE.glob("test_*.py")]
TESTS = [f"{test}\n{PARTS}" if "from knn_parts import" in test else test for test in TESTS]
NO_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|^\s*##[^\n]*", re.MULTILINE | re.DOTALL)
# What has no test here: why, and the tests that it has.
ELSEWHERE = {
    "ccm.clh": ("numbers that kernels share with the host", "engines/test_kernel_ccm.py"),
    "software_fma.clh": ("a function that some devices lack", "device/test_probe.py"),
    "matrix_units.clh": ("instructions of some GPUs only", "engines/test_smap_map_units.py"),
    "matrix_units_double.clh": ("instructions of some GPUs only", "engines/test_smap_units.py"),
    "smap_map_units.mako": ("kernels, made of fragments that have tests", "engines/test_smap_map_units_emulated.py"),
}
HEADERS = texts.names_of("clkernels", ".clh")
FRAGMENTS = [name for name in texts.names_of("templates", ".mako") if not name.endswith(".cl.mako")]


def offered(text):
    """Macros with arguments, functions and defs of a text that nothing else in it calls, by name or put together."""
    text = NO_COMMENT.sub("", text)
    defs = re.findall(r'<%def name="(\w+)\(', text)
    macros = re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(", text, re.MULTILINE)
    functions = re.findall(r"^(?:[\w*${}]+[ \t]+)+\**(?!__attribute__)(\w+)\([^;{}]*\)\s*\{", text, re.MULTILINE)
    # A macro may be defined in two ways. Parts of names that are put together are called by them.
    names = Counter((*defs, *macros, *functions))
    begins, ends = tuple(re.findall(r"PASTE\((\w+),", text)), tuple(re.findall(r"PASTE\(PASTE.*, (\w+)\)\(", text))
    called = {name for name, n in names.items() if len(re.findall(rf"\b{name}(?=[(),\n]| if )", text)) > n}
    return {name for name in names.keys() - called if not name.startswith(begins) and not name.endswith(ends)}


@pytest.mark.parametrize("name", [*HEADERS, *FRAGMENTS])
def test_what_a_file_offers_is_used_by_a_test_that_takes_it(name):
    takes = f'#include "{name}"' if name.endswith(".clh") else f'file="{name}"'
    users = "\n".join(test for test in TESTS if takes in test)
    assert bool(users) != (name in ELSEWHERE), f"{name}: {ELSEWHERE.get(name, 'no test takes it by itself')}"
    if not users:
        assert (HERE.parent / ELSEWHERE[name][1]).is_file()
    else:
        folder = "clkernels" if name.endswith(".clh") else "templates"
        assert {one for one in offered(texts.read_text(folder, name)) if not re.search(rf"\b{one}\b", users)} == set()


def test_what_a_text_offers():
    text = """
// #define GONE(x) x
#define ONE(x) INNER(x) + PASTE(TERM_, METRIC)(x)
#define INNER(x) (x)
#define TERM_cosine(d) (d)
inline realv two(realv x) {
  return helper(x);
}
static uint${lanes} helper(global const real* x,
                           const int n) {
}
<%def name="three(a)">
${four()}
</%def>
## <%def name="five()">
<%def name="four()">
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void six(const int n) {
}
</%def>
"""
    assert offered(text) == {"ONE", "two", "three", "six"}
    assert {"REACH"} == offered(texts.read_text("clkernels", "reach.clh"))
    assert {"sum_rows"} == offered(texts.read_text("templates", "lookup_sums.mako"))

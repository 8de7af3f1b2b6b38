"""A kernel's digest follows what is compiled, and nothing that only people read."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from pyedmcl.kernels import NAMES, spec, texts

REKEY = Path(__file__).resolve().parents[2] / "tuning" / "rekey.py"


def in_every_text(monkeypatch, change):
    """Serve all texts through ``change``, which is given folder, name and text."""
    read = texts.read_text
    monkeypatch.setattr(texts, "read_text", lambda folder, name: change(folder, name, read(folder, name)))


@pytest.mark.parametrize("name", NAMES)
def test_the_digest_follows_the_text(name, monkeypatch):
    digest = spec(name).digest()
    assert digest == spec(name).digest()
    in_every_text(monkeypatch, lambda folder, file, text: f"{text}\nconstant int changed = 1;\n")
    assert spec(name).digest() != digest


@pytest.mark.parametrize("name", NAMES)
def test_the_digest_ignores_comments_and_space(name, monkeypatch):
    def written_otherwise(folder, file, text):
        if folder == "templates":
            text = text.replace("\n## ", "\n##   Changed: ").replace("<%\n", "<%\n# a comment of Python\n\n")
            text = f"## A new first line.\n{text}"
        text = text.replace(";\n  ", ";  // a comment\n\n      ")
        text = text.replace("{\n", "{\n\n  /* another,\n of two lines */\n")
        return f"// First.\n{text}\n\n"

    digest = spec(name).digest()
    in_every_text(monkeypatch, written_otherwise)
    assert spec(name).digest() == digest


def test_headers_and_fragments_count_wherever_they_are_included(monkeypatch):
    seen = []
    in_every_text(monkeypatch, lambda folder, name, text: seen.append(f"{folder}/{name}") or text)
    spec("ccm").digest()
    headers = ("ccm", "order", "reduce", "weights", "numeric", "division")
    assert seen == ["templates/ccm.cl.mako", *(f"clkernels/{name}.clh" for name in headers)]

    files = {
        "top.cl.mako": '<%namespace name="part" file="part.mako"/>\n${part.sum()}\n', "part.mako": '#include "a.clh"\n',
        "a.clh": "int a;\n",
    }  # fmt: skip
    monkeypatch.setattr(texts, "read_text", lambda folder, name: files[name])
    assert texts._canonical_texts("templates", "top.cl.mako")[1:] == ['#include "a.clh"', "int a ;"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a + b", "a+b"), ("f(a,\n  b)", "f(a, b) // why"), ("#define F(x) \\\n  (x)\n", "#  define  F( x )  (x)\n"),
        ("x = ${a // b};", "x = ${a//b};"), ("%if a:  # why\nx\n%endif", "  %  if a:\nx\n%endif"),
        ("<%\nx = 1  # one\n%>", "<%\n  # one\n  x = 1\n%>"), ("## ${gone\nx", "x"), ("a /* ${b} */ c", "a c"),
    ],
)  # fmt: skip
def test_texts_that_are_the_same(one, other):
    assert texts.canonical_text(one, mako=True) == texts.canonical_text(other, mako=True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a + +b", "a ++b"), ("ab", "a b"), ("sum_${s}", "sum_ ${s}"), ("x = ${a // b};", "x = ${a};"),
        ("#define F(x) x\n", "#define F (x) x\n"), ("#pragma unroll\nx", "#pragma unroll x"), ('f("a  b")', 'f("a b")'),
        ("%for i in range(a // 2):\nx\n%endfor", "%for i in range(a):\nx\n%endfor"), ("1.0f", "1.0 f"),
        ("<%\nif a:\n  x = 1\ny = 1\n%>", "<%\nif a:\n  x = 1\n  y = 1\n%>"), ("${'a  b'}", "${'a b'}"),
        ("  %if a:\nx\n%endif", "%if b:\nx\n%endif"),
    ],
)  # fmt: skip
def test_texts_that_are_not_the_same(one, other):
    assert texts.canonical_text(one, mako=True) != texts.canonical_text(other, mako=True)


def test_division_is_no_comment_in_a_template_and_a_percent_sign_is_none_in_a_header():
    assert "/ / 4" in texts.canonical_text("<% strides = k // 4 %>", mako=True)
    assert texts.canonical_text("a\n% b // c", mako=False) == "a % b"


def test_wisdom_is_rekeyed_for_named_kernels_only():
    rekey = runpy.run_path(str(REKEY))
    stages = spec("predict").defaults("gpu")
    lines = [
        rekey["canonical"]({"kernel": kernel, "digest": "0" * 16, "parameters": parameters, "specialisation": {}})
        for kernel, parameters in (("predict", stages), ("knn", {"wg": 1}))
    ]
    text = "".join(line + "\n" for line in lines)
    assert rekey["stale"](text) == {"predict": 1, "knn": 1}
    after = rekey["rekeyed"](text, ("predict",))
    assert after.splitlines()[1] == lines[1]
    assert after.splitlines()[0] == lines[0].replace("0" * 16, spec("predict").digest())
    assert rekey["stale"](after) == {"knn": 1}
    with pytest.raises(ValueError, match="line 2: knn does not allow this entry: they name wg, the kernel has"):
        rekey["rekeyed"](text, ("knn",))


@pytest.mark.parametrize(
    ("kernel", "changes", "why"),
    [
        ("pruned", {"wg": 7}, "wg = 7 is none of"),
        ("smap", {"tile": 0, "lanes": 4, "wide": 4}, "without a tile a work-item has one query row"),
    ],
)
def test_an_entry_that_the_spec_does_not_allow_is_named(kernel, changes, why):
    rekey = runpy.run_path(str(REKEY))
    fine = spec(kernel).defaults("gpu")
    good, bad = (
        rekey["canonical"]({"kernel": kernel, "digest": "0", "parameters": parameters, "specialisation": {}})
        for parameters in (fine, {**fine, **changes})
    )
    assert spec(kernel).digest() in rekey["rekeyed"](good, (kernel,))
    with pytest.raises(ValueError, match=f"line 2: {kernel} does not allow this entry: {why}"):
        rekey["rekeyed"](f"{good}\n{bad}\n", (kernel,))

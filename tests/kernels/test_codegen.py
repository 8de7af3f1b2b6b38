"""Sources and builds: template lines in driver errors, strict names, constraints, fragments."""

from __future__ import annotations

import re

import pytest
from device_helpers import INTEL, NVIDIA, POCL31

from pyedmcl.device.quirks import quirks_for
from pyedmcl.device.select import open_device
from pyedmcl.errors import BuildError
from pyedmcl.kernels import build, spec, texts
from pyedmcl.kernels.texts import SENTINELS
from pyedmcl.search.plan import KnnPass, SearchProblem
from pyedmcl.tuning.parameters import parameters


def knn_values(device, **changes):
    chosen = parameters(spec("knn"), {"dtype": "float32", "dims": (2, 3)}, open_device(device).info).parameters
    knn_pass = KnnPass(SearchProblem((2, 3), (3, 4), 1, 0, 0, 100, 100), "neighbours", chosen)
    return {**knn_pass.values(masked=False), **changes}


def broken(monkeypatch, name, old, new):
    """Serve template or header ``name`` with ``old`` replaced; returns the number of the line that changed."""
    read, line = texts.read_text, []

    def changed(folder, file):
        text = read(folder, file)
        if file != name:
            return text
        assert old in text
        line.append(text[: text.index(old)].count("\n") + 1)
        return text.replace(old, new, 1)

    for module in (texts, build):
        monkeypatch.setattr(module, "read_text", changed)
    texts._template.cache_clear()
    build._text.cache_clear()
    return line


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    """No text of another test, and none of these for another: what is broken here is not what lies on the disk."""
    monkeypatch.setenv("PYEDMCL_CACHE_DIR", str(tmp_path))
    yield
    texts._template.cache_clear()
    build._text.cache_clear()


@pytest.mark.parametrize(
    ("name", "old"),
    [("knn.cl.mako", "  const int lane0 ="), ("knn.cl.mako", "    const int near_begin ="),
     ("topk.clh", "  const int most = largest_lane"), ("knn_bound.mako", "    realv largest = fabs(q0);"),
     ("knn_emit.mako", "      const int k = K_OF[s];\n      const size_t base")],
)  # fmt: skip
def test_a_drivers_error_names_the_line_of_our_text(device, monkeypatch, name, old):
    line = broken(monkeypatch, name, old, "  undeclared_thing + " + old.lstrip())
    with pytest.raises(BuildError) as caught:
        build.build(open_device(device), spec("knn"), knn_values(device))
    message = str(caught.value)
    assert f"/{name}:{line[0]}\n" in message
    assert re.search(rf">\s+{line[0]} \| .*undeclared_thing", message), "the excerpt marks the line"
    assert "undeclared_thing" in caught.value.log


def test_a_driver_that_counts_the_produced_lines_is_understood(one_device):
    text = texts.render("knn.cl.mako", {**knn_values(one_device), "fma": "builtin", "minimum": "fmin"})
    produced = next(n for n, line in enumerate(text.splitlines(), 1) if "const int most = largest_lane" in line)
    header = texts.read_text("clkernels", "topk.clh").splitlines()
    number = next(n for n, line in enumerate(header, 1) if "const int most = largest_lane" in line)
    assert produced != number
    log = f"<kernel>:{produced}:9: error: no such thing\n  const int most = ...;\n        ^\n1 error generated."
    assert f"clkernels/topk.clh:{number}\n" in build.excerpt(log, text)


def test_every_line_directive_is_true(one_device):
    """Each plain line of the rendered text stands where its directive says, up to expansions."""
    text = texts.render("knn.cl.mako", {**knn_values(one_device), "fma": "builtin", "minimum": "fmin"})
    at, checked = None, 0
    for line in text[text.index("#line") :].splitlines():
        directive = re.match(r'#line (\d+) "(.+)"', line)
        if directive:
            at = (directive[2], int(directive[1]))
            continue
        name, number = at
        source = texts.read_text("templates" if name.endswith(".mako") else "clkernels", name).splitlines()
        if number <= len(source):
            original = source[number - 1]
            if line.strip() and line == original:
                checked += 1
            elif line.strip() and "${" not in original and not original.endswith("\\"):
                assert line == original, (name, number)
        at = (name, number + 1)
    assert checked > 200


def test_an_unknown_name_in_a_template_is_an_error(one_device):
    values = knn_values(one_device)
    with pytest.raises(BuildError, match=r"knn\.cl\.mako"):
        texts.render("knn.cl.mako", {k: v for k, v in values.items() if k != "tau"})
    with pytest.raises(BuildError, match="no value for minimum"):
        texts.render("recurrence_lines.cl.mako", {**spec("recurrence_lines").defaults("gpu"), "fma": "builtin"})


def test_the_prologue_defines_number_types_lanes_and_sentinels():
    text = texts.prologue({"dtype": "float64", "lanes": 8, "fma": "contract", "minimum": "fmin"})
    defined = dict(re.fullmatch(r"#define (\w+) (\S+)", line).groups() for line in text.splitlines())
    assert {name: float(defined.pop(name)) for name in SENTINELS} == SENTINELS
    expected = {"LANES": "8", "REAL_BITS": "64", "FMA_CONTRACT": "1", "MIN_SELECT": "0", "DIVISION_EXACT": "0",
                "INVERSE_ROOT": "0", "BYTE_PERMUTE": "0"}  # fmt: skip
    assert defined == expected
    assert "#define GAP 1e+16f\n" in texts.prologue({"fma": "builtin", "minimum": "fmin"})


def test_values_must_be_complete_and_keep_the_constraints(one_device):
    values = knn_values(one_device)
    with pytest.raises(BuildError, match="no value for tau"):
        build.source(spec("knn"), {k: v for k, v in values.items() if k != "tau"})
    with pytest.raises(BuildError, match="buffer must hold"):
        build.source(spec("knn"), {**values, "capacities": (4, 4)})
    with pytest.raises(BuildError, match="multiples of four"):
        build.source(spec("knn"), {**values, "lanes": 1, "tile": 64, "unroll": 2, "capacities": (64, 64)})


def test_a_text_is_rendered_once(one_device, monkeypatch):
    executor, values = open_device(one_device), knn_values(one_device)
    build.build(executor, spec("knn"), values)
    monkeypatch.setattr(texts, "render", lambda *_: pytest.fail("rendered again"))
    build.build(executor, spec("knn"), values)


def test_groups_of_one_work_item_are_compiled_for_one_at_a_time():
    """Intel's compiler takes several times as long for a version that only larger groups can use."""
    values = {"counts": (3,), "dtype": "float32", "table_tile": 1}
    hint = quirks_for(INTEL).lone_prelude
    assert "vec_type_hint" in hint
    for wg, info, hinted in ((1, INTEL, True), (16, INTEL, False), (1, POCL31, False), (1, NVIDIA, False)):
        assert build.text_for(spec("predict"), {**values, "wg": wg}, info).startswith(hint) == hinted
    given = {"k": 4, "dtype": "float32", "gaps": False, "stage_rows": 0, "table_tile": 1, "narrow_rows": False,
             "precision": "full", "local_sums": 0}  # fmt: skip
    lookup = {**spec("lookup").defaults("cpu"), **given}
    for lanes, hinted in ((1, True), (4, False)):
        assert build.text_for(spec("lookup"), {**lookup, "row_lanes": lanes}, INTEL).startswith(hint) == hinted


def test_a_fragment_is_rendered_with_lines_of_its_own(one_device, monkeypatch):
    files = {
        "top.cl.mako": '<%namespace name="part" file="part.mako"/>\nkernel void top(global int* out) {\n'
        "  ${part.store('total')}\n}\n",
        "part.mako": '## A fragment.\n\n<%def name="store(what)">\n  out[${n}] = ${what};\n</%def>\n',
    }
    monkeypatch.setattr(texts, "read_text", lambda folder, name: files[name])
    text = texts.render("top.cl.mako", {"n": 3, "fma": "builtin", "minimum": "fmin"})
    assert '#line 4 "part.mako"\n  out[3] = total;' in text
    assert '#line 4 "top.cl.mako"\n}' in text


def test_functions_are_declared_as_in_the_header_that_is_left_out(pocl_device):
    """Beside the header each declaration must be one of its own; without it there is no other function."""
    executor = open_device(pocl_device)
    quirks = quirks_for(executor.info)
    if not quirks.prelude:
        pytest.skip(f"PoCL {executor.info.driver} reads its own header")
    declared = texts.prelude(quirks)
    body = "kernel void one(global float* x) {{ x[0] = {}(x[0]); }}\n"
    executor.build(declared + body.format("sinpi"), [option for option in quirks.build_options if "-D" not in option])
    executor.build(declared + body.format("sqrt"), quirks.build_options)
    with pytest.raises(BuildError, match="sinpi"):
        executor.build(declared + body.format("sinpi"), quirks.build_options)

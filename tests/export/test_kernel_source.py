"""Exported kernels: texts that stand alone, descriptions that agree with the engines, a C program that runs them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import pyedmcl
from pyedmcl import kernels
from pyedmcl.cli.app import app
from pyedmcl.device import sycl
from pyedmcl.device.select import open_device
from pyedmcl.errors import BuildError, InputError
from pyedmcl.export import kernel_source as targets
from pyedmcl.export.kernel_source import kernel_source
from pyedmcl.kernels import spec
from pyedmcl.kernels.kernel_spec import evaluate
from pyedmcl.search.plan import KnnPass, SearchProblem

HOST = Path(__file__).parents[2] / "docs" / "kernels" / "host.c"


def run(*words):
    """What the command prints, after it ended well."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.stdout


FORMULAS = {"knn": {"E": 3, "k": 4}, "lookup": {"k": 4}, "recurrence_bits": {"m": 2}}


@pytest.mark.parametrize("target", ["cpu", "nvidia", "gfx942", "Xe-HPG"])
@pytest.mark.parametrize("kernel", FORMULAS)
def test_a_text_stands_alone_and_all_that_it_takes_is_described(kernel, target):
    found = kernel_source(kernel, target=target, **FORMULAS[kernel])
    assert "#include" not in found.text and "#line" not in found.text and "Apache-2.0" in found.text
    description = json.loads(json.dumps(found.description))
    slots = spec(kernel).slots(kernel, {name: row["value"] for name, row in description["values"].items()})
    assert [argument["name"] for argument in description["arguments"]] == [slot.name for slot in slots]
    for argument in description["arguments"]:
        assert argument["meaning"]
        assert ("elements" in argument) == argument["type"].endswith("*")
    for formula in (*description["derived"].values(), *description["global_size"]):
        assert formula
    sizes = found.plan(**dict.fromkeys(description["problem"], 64))
    assert all(f"elements_{slot.name}" in sizes for slot in slots if slot.is_buffer)
    assert all(slot.name in sizes for slot in slots if not slot.is_buffer)
    with pytest.raises(BuildError, match="are needed"):
        found.plan(n_steps=5)


@pytest.mark.parametrize("target", ["cpu", "nvidia"])
@pytest.mark.parametrize("emit", ["neighbours", "weights"])
def test_formulas_of_the_search_are_those_of_its_engine(target, emit):
    for E, tau in ((3, 1), ((1, 5), 2)):
        found = kernel_source("knn", E=E, tau=tau, emit=emit, target=target, tune="never")
        values = {name: row["value"] for name, row in found.description["values"].items()}
        for n_library, n_query, Tp in ((40, 40, 0), (999, 500, 1), (30_000, 30_000, -3), (700_001, 5, 0)):
            problem = SearchProblem(values["dims"], values["counts"], tau, Tp, 0, n_library, n_query)
            engine = KnnPass(problem, emit, {t.name: values[t.name] for t in spec("knn").tunables})
            got = found.plan(n_series=3, n_library=n_library, n_query=n_query, Tp=Tp, exclusion_radius=0, groups=7)
            assert got == got | {
                "front": problem.front, "library_stride": problem.stride(n_library), "n_tiles": engine.tiles,
                "query_stride": problem.stride(n_query), "j_begin": problem.library_begin,
                "j_end": problem.library_end, "groups_per_tile": engine.groups_per_tile,
                "groups_per_round": engine.groups_per_round, "table_rows": engine.table_rows,
                "rows_per_slot": engine.table_rows * 3, "task_end": engine.tiles * 3,
                "elements_out_row": engine.table_bytes(3) // 8, "elements_scratch": 7 * engine.scratch_bytes // 4,
                "global_size_0": 7 * values["wg"],
            }  # fmt: skip


def launch_alone(found, executor, sizes, **arrays):
    """Run an exported kernel by what its description says and nothing else; gives its buffers."""
    arguments = {argument["name"]: argument for argument in found.description["arguments"]}
    values = {name: row["value"] for name, row in found.description["values"].items()}
    buffers = {
        name: executor.upload(arrays.get(name, np.zeros(sizes[f"elements_{name}"], np.float32)))
        for name, argument in arguments.items() if "elements" in argument
    }  # fmt: skip
    numbers = {name: sizes[name] for name, argument in arguments.items() if "elements" not in argument}
    kernel = executor.build(found.text, found.options).kernel(
        found.kernel, spec(found.kernel).slots(found.kernel, values)
    )
    local_size = tuple(found.description["local_size"])
    executor.launch(kernel, (sizes["global_size_0"],), local_size, **buffers, **numbers)
    return buffers


@pytest.mark.parametrize("chosen", [{"target": "cpu", "lanes": 16}, {"target": "nvidia", "tile": 0, "wg": 32}])
def test_a_search_with_a_horizon_finds_no_row_that_has_no_future(chosen, pocl_device):
    """The last row is the nearest of all to row 50, but what it leads to is not there."""
    found = kernel_source("knn", E=3, k=4, emit="neighbours", tune="never", **chosen)
    told = {argument["name"]: argument["meaning"] for argument in found.description["arguments"]}
    for name in ("library", "j_end"):
        assert "rows from j_end on are 1e16 too, whatever n_library is" in told[name]
    n, Tp = 200, 1
    x = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    x[-3:] = x[48:51] + np.float32(1e-4)
    executor = open_device(pocl_device)
    sizes = found.plan(n_series=1, n_library=n, n_query=n, Tp=Tp, exclusion_radius=0, groups=2)

    def laid_out(side, rows):
        values = np.full(sizes[f"elements_{side}"], found.description["sentinels"]["GAP"], np.float32)
        values[sizes["front"] : sizes["front"] + rows] = x[:rows]
        return values

    buffers = launch_alone(
        found, executor, sizes, library=laid_out("library", sizes["j_end"]), query=laid_out("query", n)
    )
    rows = executor.download(buffers["out_row"], np.empty(sizes["elements_out_row"], np.int32)).reshape(-1, 4)
    neighbours = pyedmcl.knn(x, E=3, k=4, Tp=Tp, device=pocl_device).indices
    np.testing.assert_array_equal(rows[2:n], neighbours[2:])
    assert rows.max() < sizes["j_end"] == n - Tp


def test_formulas_are_integers_and_nothing_else():
    assert evaluate("select(a > 3, ceil_div(a, 2), odd(-a)) * 2 + min(7 / 2, max(a, 9))", {"a": 5}) == 9
    for formula in ("b", "a.b", "__import__('os')", "1 / 0", "a if a else 2", "1.5"):
        with pytest.raises(BuildError, match="is no formula"):
            evaluate(formula, {"a": 1})


@pytest.mark.parametrize(("kernel", "values", "said"), [
    ("nothing", {}, "kernel='nothing': one of"), ("knn", {"E": 0}, "E=0"), ("knn", {"k": 2000}, "k=2000"),
    ("knn", {"emit": "distances"}, "emit="), ("knn", {"m": 3}, "m=3: kernel knn has no such value"),
    ("knn", {"unroll": 3}, "unroll=3: kernel knn knows 1, 2, 4"), ("knn", {"lanes": 16, "tile": 256}, "staged tile"),
    ("recurrence_bits", {"metric": "none"}, "metric="),
    ("recurrence_bits", {"exact": True, "dtype": "float64"}, "exact"),
    ("knn", {"dtype": "float16"}, "dtype="), ("knn", {"target": "gfx1"}, "target='gfx1'"),
    ("knn", {"tune": "auto"}, "tune="), ("knn", {"tune": np.ones(3)}, "tune="),
    ("lookup", {"dtype": "float64", "target": "Xe-HPG"}, "no double precision"),
    ("recurrence_bits", {"exact": True, "target": "Xe-HPG"},
     "recurrence_bits computes in double precision for these values, which Xe-HPG does not have"),
    ("smap_map", {"target": "Xe-HPG"}, "smap_map computes in double precision"),
    ("pruned", {"k": 0}, "k=0: a whole number"),
])  # fmt: skip
def test_impossible_exports_say_what_is_possible(kernel, values, said):
    with pytest.raises(InputError, match=said):
        kernel_source(kernel, **{"target": "cpu", **values})


def test_a_device_that_is_not_there_stands_for_its_target(monkeypatch):
    from pyedmcl.device import select

    monkeypatch.setattr(select, "discover", lambda **_: [targets.TARGETS["cpu"]])
    found = kernel_source("lookup", device="nvidia")
    assert found.description["runtime"] == "nvidia"
    assert "-cl-fp32-correctly-rounded-divide-sqrt" in found.options


def test_spir_v_is_made_or_its_compiler_is_asked_for(tmp_path, monkeypatch):
    if shutil.which("ocloc") or sycl._pair():
        run("kernel", "lookup", "--k", 4, "--target", "cpu", "--spirv", "-o", tmp_path)
        assert int.from_bytes((tmp_path / "lookup.spv").read_bytes()[:4], "little") == 0x07230203
        with pytest.raises(BuildError, match="refused a kernel"):
            sycl.compile_spirv("kernel void broken(", ("-cl-std=CL1.2",))
    monkeypatch.setattr(sycl.shutil, "which", lambda name: None)
    with pytest.raises(BuildError, match="no compiler for SPIR-V is installed; one of these is needed: ocloc"):
        sycl.compile_spirv("", ())


@pytest.fixture(scope="module")
def compiler(tmp_path_factory):
    """A function that builds the C program with the headers of a folder."""
    cc = shutil.which(os.environ.get("CC", "cc"))
    probe = tmp_path_factory.mktemp("probe") / "probe.c"
    probe.write_text("#define CL_TARGET_OPENCL_VERSION 120\n#include <CL/cl.h>\n"
                     "int main(void) { return clGetPlatformIDs(0, 0, 0) == 1; }\n")  # fmt: skip
    if cc is None:
        pytest.skip("no C compiler is installed")
    for library in ("-lOpenCL", "-l:libOpenCL.so.1"):
        if not subprocess.run([cc, probe, library, "-o", probe.with_suffix("")], capture_output=True).returncode:
            break
    else:
        pytest.skip("there are no OpenCL headers (opencl-c-headers, ocl-icd-opencl-dev)")

    def build(folder, program=HOST):
        strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-D_POSIX_C_SOURCE=200809L"]
        command = [cc, *strict, "-ffp-contract=off", f"-I{folder}", program, "-o", folder / "host", library, "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return folder / "host"

    return build


def told_of(folder, name):
    """Entry points of a written kernel to what its JSON says of them."""
    described = json.loads((folder / f"{name}.json").read_text())
    return described.get("kernels", {name: described})


def planned(told):
    """A problem of arbitrary numbers, and what follows from it by the formulas: sizes of buffers and of the launch."""
    problem = {name: 70 + number for number, name in enumerate(told["problem"])}
    names = dict(problem)
    for name, formula in told["derived"].items():
        names[name] = evaluate(formula, names)
    formulas = {f"elements_{argument['name']}": argument["elements"] for argument in told["arguments"]
                if "elements" in argument}  # fmt: skip
    formulas |= {f"global_size[{axis}]": formula for axis, formula in enumerate(told["global_size"])}
    return problem, {name: evaluate(formula, names) for name, formula in formulas.items()}


@pytest.fixture(scope="module")
def all_kernels(tmp_path_factory):
    """A folder with all kernels for a GPU, and what the command says of them."""
    folder = tmp_path_factory.mktemp("gfx942")
    shown = json.loads(run("kernel", "--all", "--target", "gfx942", "-o", folder, "--json"))
    return folder, {entry["kernel"] for entry in shown["kernels"]}


def test_all_kernels_are_written_for_a_target(all_kernels):
    folder, written = all_kernels
    assert written == set(kernels.FAMILIES)
    for name in written:
        assert "#include" not in (folder / f"{name}.cl").read_text()
        for told in told_of(folder, name).values():
            assert told["arguments"] and told["global_size"] and told["local_memory_bytes"] >= 0
            assert all(argument["meaning"] for argument in told["arguments"])
    local = {name: max(told["local_memory_bytes"] for told in told_of(folder, name).values()) for name in written}
    assert local["predict"] == local["skill"] == 0
    assert local["smap_scale"] == 256 * 8  # a distance and a row for each work-item
    assert local["knn"] == 4 * (2048 + 4)  # a tile, and what lags reach back to


def test_headers_of_all_kernels_compute_what_the_formulas_say(all_kernels, compiler, tmp_path):
    folder, written = all_kernels
    calls, wanted = [], []
    for name in sorted(written):
        for entry, told in told_of(folder, name).items():
            problem, numbers = planned(told)
            calls.append(f"{{ {entry}_plan p = plan_{entry}({', '.join(map(str, problem.values()))});")
            calls += [f'printf("%lld\\n", (long long)p.{number});' for number in numbers] + ["}"]
            wanted += numbers.values()
    lines = [*(f'#include "{name}.h"' for name in sorted(written)), "#include <stdio.h>", "int main(void) {", *calls]
    (tmp_path / "all.c").write_text("\n".join([*lines, "return 0; }", ""]))
    done = subprocess.run([compiler(folder, tmp_path / "all.c")], capture_output=True, text=True, timeout=60)
    assert list(map(int, done.stdout.split())) == wanted
    assert len(wanted) > 300


def test_a_plan_of_a_text_with_several_kernels_asks_for_the_name_of_one():
    found = kernel_source("recurrence_lines", target="cpu")
    assert found.plan("recurrence_clear", n=100) == {"n": 100, "elements_segments": 500, "global_size_0": 128}
    with pytest.raises(BuildError, match="recurrence_lines is needed: recurrence_lines, recurrence_fold"):
        found.plan("recurrence_folds", n=100)


@pytest.mark.parametrize("target", [None, "nvidia"])
def test_a_c_program_computes_the_same_bits_with_exported_kernels(target, compiler, pocl_device, tmp_path):
    device = pocl_device
    place = {"target": target} if target else {"device": device}
    tables = kernel_source("knn", E=3, k=4, emit="weights", **place)
    tables.save(tmp_path)
    lanes = tables.description["values"]["lanes"]["value"]
    kernel_source("lookup", k=4, table_tile=lanes, **place).save(tmp_path)
    kernel_source("recurrence_bits", m=2, dtype="float64", **place).save(tmp_path)
    n, series = 300, 5
    x = np.cumsum(np.random.default_rng(1).standard_normal((n, series)), axis=0).astype(np.float32)
    x.tofile(tmp_path / "series.f32")
    words = [compiler(tmp_path), tmp_path, "Portable", tmp_path / "series.f32", n, series, 2.5, tmp_path / "out.bin"]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    out, table_rows = (tmp_path / "out.bin").read_bytes(), -(-n // lanes) * lanes
    rows = np.frombuffer(out, np.int32, series * table_rows * 4).reshape(series, -1, 4, lanes)
    rho = np.frombuffer(out, np.float32, series**2, rows.nbytes).reshape(series, series)
    cells = np.frombuffer(out, np.uint8, offset=rows.nbytes + rho.nbytes).reshape(n - 1, n - 1)
    for c in range(series):
        neighbours = pyedmcl.knn(x[:, c], E=3, k=4, device=device).indices
        np.testing.assert_array_equal(rows[c].transpose(0, 2, 1).reshape(-1, 4)[2:n], neighbours[2:])
    np.testing.assert_array_equal(rho, pyedmcl.xmap(x, E=3, device=device).rho)
    points = np.stack([x[:-1, 0], x[1:, 0]], axis=1).astype(np.float64)
    squared = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    np.testing.assert_array_equal(cells, squared < 2.5**2)

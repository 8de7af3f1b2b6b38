"""Digests of the results of every public function on one device, to prove that a change leaves all bits as they were.

usage: python bench/digests.py --device NAME (--record FILE | --check FILE) [--only PATTERN] [--quick]

--record writes digests and, for floating-point results, a summary in float64. Each call is made twice; what differs
between the two is marked and compared by its summary alone. With --only or --quick it adds those cases to FILE, or
renews them. Each case also has a digest of the data that it is given, so that others are not concerned.
--check ends with 1 and a table where results differ, and with 2 where FILE is of another device, driver or processor.
Both use the package that Python finds, so that PYTHONPATH chooses the commit. Kernels take their default parameters
(PYEDMCL_TUNE=never), but shipped ones in the cases called "cached"; the user's database is not read.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
from digest_case import Case
from digest_cases import all_cases

import pyedmcl
from pyedmcl.device.info import device_key
from pyedmcl.device.select import select
from pyedmcl.errors import DeviceMemoryError

FORMAT = 2
DATA = "data"  # what a case is called with, beside the names of its outputs
QUICK = 3  # of each function: the first cases
HOST_ONLY = ("embed", "false_discovery", "surrogate")
Cases = Mapping[str, tuple[str, Case]]
Outputs = dict[str, list[Any]]

_FORECAST = "time observed predicted variance rho mae rmse E"
_SKILL = "values rho mae rmse best E"
# What is compared of each function's result; of methods, what they return.
_ATTRIBUTES = {
    "knn": "indices distances",
    "simplex": _FORECAST,
    "embed_dimension": "E rho names",
    "xmap": "rho E names edges",
    "ccm": "lib_sizes rho n_rows E tau Tp links mean quantiles",
    "ccm_lagged": "Tp rho links best",
    "ccm_matrix": "lib_sizes rho gain E names",
    "ccm_significance": "links rho surrogates p_value q_value",
    "xmap_significance": "rho p_value q_value E names",
    "smap": f"{_FORECAST} theta coefficients singular_values names redone",
    "predict_nonlinear": "theta rho mae rmse best E",
    "predict_interval": _SKILL,
    "predict_exclusion_radius": _SKILL,
    "multiview": f"{_FORECAST} views view_rho view_predictions n_tried",
    "embed": "values names",
    "recurrence_network": "degree closed complete radius clustering transitivity mean_clustering mean_degree density",
    "recurrence_plot": "counts density radius n_rows n_columns",
    "distance_plot": "means n_rows n_columns",
}
_MEASURES = "RR DET L Lmax DIV ENTR LAM TT Vmax VENTR W Wmax WDIV WENTR TREND T1 T2 RTE"


def parts(function: str, result: Any) -> Iterator[tuple[str, Any]]:
    """Name and value of all that is compared of a result."""
    if function in ("rqa", "joint_rqa", "windowed_rqa"):
        matrices = list(result) if hasattr(result, "results") else [result]
        yield "measures", np.array([[one[name] for name in _MEASURES.split()] for one in matrices], float)
        yield "radius", [one.radius for one in matrices]
        for name in ("diagonal_lines", "vertical_lines", "white_vertical_lines", "recurrences"):
            yield name, np.concatenate([getattr(one, name) for one in matrices])
            yield f"len({name})", [len(getattr(one, name)) for one in matrices]
    elif isinstance(result, np.ndarray):
        yield "values", result
    else:
        for name in _ATTRIBUTES[function].split():
            if name == "edges" and result.rho.ndim > 2:
                continue  # a map for each theta has no edges of its own
            value = getattr(result, name)
            yield name, value() if callable(value) else value


def digest(value: Any) -> list[Any]:
    """[type and shape, digest] and, of floating-point numbers, their summary. Digests are the first half of SHA-256's.

    All NaN count as one: the bits in them are no result.
    """
    array = None if _has_text(value) else np.asarray(value)
    if array is None:
        text = json.dumps(value, default=lambda other: other.tolist())
        return ["text", hashlib.sha256(text.encode()).hexdigest()[:32]]
    floating = array.dtype.kind == "f"
    if floating:
        array = np.where(np.isnan(array), array.dtype.type(np.nan), array)
    shape = "x".join(map(str, array.shape))
    found = [f"{array.dtype.name} {shape}".rstrip(), hashlib.sha256(array.tobytes()).hexdigest()[:32]]
    return [*found, summary(array)] if floating else found


def _has_text(value: Any) -> bool:
    """Whether there is a string or a None anywhere in it."""
    return any(map(_has_text, value)) if isinstance(value, (list, tuple)) else isinstance(value, (str, type(None)))


def summary(array: np.ndarray) -> list[float | None]:
    """The numbers themselves if they are few; else how many are finite, and their sum, extremes and quartiles."""
    numbers = array.astype(np.float64).ravel()
    if numbers.size > 7:
        finite = numbers[np.isfinite(numbers)]
        spread = np.quantile(finite, [0, 0.25, 0.5, 0.75, 1]) if finite.size else []
        numbers = np.array([finite.size, finite.sum(), *spread])
    return [float(f"{number:.13g}") if np.isfinite(number) else None for number in numbers]


def distance(one: list[Any], other: list[Any]) -> float:
    """Largest relative difference of the summaries of two outputs; infinite where they cannot be compared."""
    if one[0] != other[0] or len(one) < 3:
        return float("inf")
    pairs = list(zip(one[2], other[2], strict=False))
    if len(one[2]) != len(other[2]) or any((a is None) != (b is None) for a, b in pairs):
        return float("inf")
    return max((abs(a - b) / max(abs(a), abs(b)) for a, b in pairs if a != b), default=0.0)


def run(function: str, one: Case, device: str | None) -> Outputs:
    """Call the function and digest what it returns. Raises ImportError where an optional package is missing."""
    with tempfile.TemporaryDirectory() as folder:
        options = {k: str(Path(folder, v)) if isinstance(v, Path) else v for k, v in one.options.items()}
        if function not in HOST_ONLY:
            options["device"] = device
        if one.memory is not None:
            os.environ["PYEDMCL_MEMORY_LIMIT"] = str(one.memory)
        try:
            result = getattr(pyedmcl, function)(*one.given, **options)
        except DeviceMemoryError as error:
            if one.memory is None:
                raise
            # A limit that cuts the work on one device into blocks may be too small for the work-groups of another.
            return {"refused": digest(type(error).__name__)}
        finally:
            os.environ.pop("PYEDMCL_MEMORY_LIMIT", None)
        found = {name: digest(value) for name, value in parts(function, result)}
        if "out" in options:
            stored = getattr(pyedmcl, f"open_{function}")(options["out"])
            found |= {f"stored {name}": digest(value) for name, value in parts(function, stored)}
    return found


def identity(device: str | None) -> dict[str, Any]:
    """What the bits of S-map may depend on: the device with its driver, and the processor where that is the device."""
    info = select(device).device
    key = device_key(info).as_dict()
    return {**key, "processor": processor()} if info.kind == "cpu" else key


def processor() -> str:
    """The processor's name, family and model, and the sets of instructions that compilers choose by."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        return platform.processor()
    about = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    sets = [name for name in ("fma", "avx2", "avx512f") if name in about.get("flags", "").split()]
    return " ".join([about.get(name, "?") for name in ("model name", "cpu family", "model")] + sets)


def surroundings() -> dict[str, str]:
    """What else there was: no reason to refuse a comparison, but perhaps one for a difference."""
    ask = ["git", "-C", str(Path(pyedmcl.__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        commit = subprocess.run(ask, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        commit = ""
    return {"commit": commit, "host": processor(), "python": platform.python_version(), "numpy": np.__version__}


def digest_of_data(one: Case) -> list[Any]:
    """Of all arrays that a call is given, like the digest of an output."""
    arrays = [value for value in (*one.given, *one.options.values()) if isinstance(value, np.ndarray)]
    total = hashlib.sha256(b"".join(array.tobytes() for array in arrays))
    return [" ".join("x".join(map(str, array.shape)) for array in arrays), total.hexdigest()[:32]]


def chosen(only: str | None, quick: bool, processor_only: bool) -> Cases:
    """The cases that are wanted, and meant for this kind of device."""
    seen: dict[str, int] = {}
    wanted = {}
    for name, (function, one) in all_cases().items():
        seen[function] = seen.get(function, 0) + 1
        left_out = (quick and seen[function] > QUICK) or (one.gpu and processor_only)
        if not left_out and fnmatch(name, only or "*"):
            wanted[name] = function, one
    if not wanted:
        sys.exit(f"no case matches --only {only!r}; names are like {next(iter(all_cases()))}")
    return wanted


def show(at: int, cases: Cases, name: str) -> None:
    """Where it is, on a terminal."""
    if sys.stderr.isatty():
        print(f"{at + 1}/{len(cases)} {name:60}", end="\r", file=sys.stderr, flush=True)


def record(cases: Cases, device: str | None) -> dict[str, Outputs]:
    """Run each case twice; outputs that differ get a tolerance."""
    found = {}
    for at, (name, (function, one)) in enumerate(cases.items()):
        show(at, cases, name)
        try:
            first, second = run(function, one, device), run(function, one, device)
        except ImportError as error:
            print(f"skipped: {name} ({_first_line(error)})")
            continue
        for part, output in first.items():
            if output[1] != second[part][1]:
                off = distance(output, second[part])
                if not off < 1e-2:
                    sys.exit(f"{name}: {part} cannot be compared, two runs differ by more than 1 %")
                output.append(max(100 * off, 1e-5))
                print(f"not stable: {name}: {part} (its summary by {off:.1e})")
        found[name] = {DATA: digest_of_data(one), **first}
    return found


def check(cases: Cases, known: Mapping[str, Outputs], device: str | None) -> list[str]:
    """Lines of a table of what differs."""
    table = []
    same = 0
    for at, (name, (function, one)) in enumerate(cases.items()):
        show(at, cases, name)
        if name not in known:
            print(f"skipped: {name} (not recorded)")
            continue
        if known[name][DATA] != digest_of_data(one):
            table.append(f"{name}: other data than were recorded")
            continue
        try:
            outputs = {part: output for part, output in known[name].items() if part != DATA}
            found = list(differences(outputs, run(function, one, device)))
        except ImportError as error:
            print(f"skipped: {name} ({_first_line(error)})")
            continue
        except Exception as error:  # the other cases are of interest all the same
            found = [f"raises {type(error).__name__}: {_first_line(error)}"]
        same += not found
        table += [f"{name}: {line}" for line in found]
    print(f"{same} cases are as recorded")
    return table


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]


def differences(old: Outputs, new: Outputs) -> Iterator[str]:
    """A line for each output of a case that is not as recorded."""
    for part, output in old.items():
        now = new.get(part)
        if now is None:
            yield f"{part} is not there any more"
        elif now[0] != output[0]:
            yield f"{part} was {output[0]} and is {now[0]}"
        elif now[1] != output[1]:
            off = distance(output, now)
            if len(output) < 3:
                yield f"{part}: bits differ"
            elif len(output) == 3:
                yield f"{part}: bits differ, largest relative difference of the summary {off:.1e}"
            elif not off <= output[3]:
                yield f"{part}: the summary differs by {off:.1e}, allowed {output[3]:.1e}"


def write(path: Path, document: Mapping[str, Any]) -> None:
    """JSON with a line for each case."""
    head = json.dumps({key: value for key, value in document.items() if key != "cases"}, indent=1)
    lines = [f"{json.dumps(name)}: {json.dumps(one, separators=(',', ':'))}" for name, one in document["cases"].items()]
    path.write_text(head.removesuffix("\n}") + ',\n "cases": {\n' + ",\n".join(lines) + "\n}}\n")


def work(asked: argparse.Namespace) -> int:
    """Record or check; returns the exit status."""
    file, whole = asked.record or asked.check, not (asked.only or asked.quick)
    old = json.loads(file.read_text()) if asked.check or (file.exists() and not whole) else None
    head = {"format": FORMAT, "device": identity(asked.device)}
    for key, value in head.items():
        if old is not None and old[key] != value:
            print(f"{file} cannot be used here.\nIts {key}: {old[key]}\nThis one: {value}", file=sys.stderr)
            return 2
    cases = chosen(asked.only, asked.quick, "processor" in head["device"])
    if asked.record:
        found = {**(old["cases"] if old else {}), **record(cases, asked.device)}
        found = {name: found[name] for name in all_cases() if name in found}
        around = [one for one in (old["around"] if old else []) if one != surroundings()]
        write(file, {**head, "around": [*around, surroundings()], "cases": found})
        print(f"{len(found)} cases are in {file}")
        return 0
    table = check(cases, old["cases"], asked.device)
    table += [f"{name}: is no case any more" for name in old["cases"] if whole and name not in cases]
    if table:
        print(*table, sep="\n")
        print("recorded with", *old["around"], f"now {surroundings()}", sep="\n  ")
    return 1 if table else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="which device; see pyedmcl devices")
    todo = parser.add_mutually_exclusive_group(required=True)
    todo.add_argument("--record", type=Path, metavar="FILE")
    todo.add_argument("--check", type=Path, metavar="FILE")
    parser.add_argument("--only", metavar="PATTERN", help="cases whose name matches, as knn/* or */gaps")
    parser.add_argument("--quick", action="store_true", help=f"the first {QUICK} cases of each function")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # of constant series, which are meant
    for name in ("PYEDMCL_DEVICE", "PYEDMCL_MEMORY_FRACTION", "PYEDMCL_MEMORY_LIMIT"):
        os.environ.pop(name, None)
    os.environ["PYEDMCL_TUNE"] = "never"
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PYEDMCL_DATA_DIR"] = folder  # where the database would be
        sys.exit(work(asked))


if __name__ == "__main__":
    main()

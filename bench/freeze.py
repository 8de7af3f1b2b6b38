"""What users see, recorded and compared: help, messages of errors, columns of results; on request times of small calls.

usage: python bench/freeze.py (--record FILE | --check FILE) [--device NAME] [--only PATTERN] [--calls 60] [--times]

Results themselves are compared by ``digests.py``. Cases are ``command/NAME`` (its ``--help``), ``function/NAME`` (its
signature and docstring), ``result/CLASS`` (columns, variables, one line), and ``messages/NAME``: calls of the random
tests that are refused, with what they say. The calls themselves are recorded, so that --check makes the same ones
whatever became of the tests. --check prints what differs and ends with 1 where anything does; an error of other words
is shown with both, since better words are meant to differ. --times adds ``times/CALL`` and prints ratios, which never
count as a difference: versions are to be timed in turn. PYTHONPATH chooses the commit.
"""

from __future__ import annotations

import argparse
import base64
import difflib
import inspect
import json
import os
import pickle
import pkgutil
import re
import sys
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from fnmatch import fnmatch
from functools import partial
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

os.environ.update({"TERMINAL_WIDTH": "100", "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"})

import digests
import small_calls
import typer.main

import pyedmcl
from pyedmcl.errors import PyedmclError
from pyedmcl.functions import FUNCTIONS, PARTS, RESULTS

FORMAT = 1
TESTS = Path(__file__).resolve().parents[1] / "tests"
_FUZZ = "pyedmcl-fuzz-"
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
Case = Callable[[], dict[str, Any]]


def commands(command: Any = None, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Case]]:
    """The command line, each command, and each command of a group."""
    if command is None:
        from pyedmcl.cli.app import app

        command = typer.main.get_command(app)
    yield " ".join(words) or "pyedmcl", partial(_help, command, words)
    for name, one in sorted(getattr(command, "commands", {}).items()):
        yield from commands(one, (*words, name))


def _help(command: Any, words: tuple[str, ...]) -> dict[str, Any]:
    shown = StringIO()
    with redirect_stdout(shown), redirect_stderr(shown), suppress(SystemExit):
        command.main(["--help"], prog_name=" ".join(("pyedmcl", *words)))
    return {"help": [line.rstrip() for line in shown.getvalue().splitlines()]}


def _function(name: str) -> dict[str, Any]:
    function = getattr(pyedmcl, name)
    text = inspect.getdoc(function) or ""
    return {"signature": str(inspect.signature(function)).split(", "), "help": text.splitlines()}


def _result(name: str, device: str | None) -> dict[str, Any]:
    """What a small result has: public attributes, columns of its table, variables over dimensions."""
    import result_makers

    result = result_makers.made(name, device)
    found: dict[str, Any] = {"attributes": [each for each in dir(result) if not each.startswith("_")]}
    for way in ("to_frame", "to_xarray"):
        try:
            table = getattr(result, way)()
        except (AttributeError, PyedmclError, TypeError) as error:
            found[way] = [type(error).__name__]
            continue
        inside = dict(table) if way == "to_frame" or hasattr(table, "data_vars") else {str(table.name): table}
        columns = {**getattr(table, "coords", {}), **inside}
        found[way] = [f"{each}: {one.dtype} {' '.join(getattr(one, 'dims', ()))}" for each, one in columns.items()]
        found[f"{way} attributes"] = sorted(map(str, table.attrs))
    return found


def _refused(name: str, device: str | None, calls: int) -> dict[str, Any]:
    """Random calls that are refused: each with its arguments, and what was said."""
    import strategies
    from hypothesis import HealthCheck, Phase, given, settings

    found: dict[str, Any] = {}

    @settings(max_examples=calls, derandomize=True, database=None, deadline=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(strategies.calls(name))
    def call(case: Any) -> None:
        arguments, odd = case
        try:
            text = base64.b85encode(zlib.compress(pickle.dumps((arguments, "device" in odd)))).decode()
        except (pickle.PicklingError, AttributeError, TypeError):
            return  # an object made for the test, which another process could not read
        said = _said(name, text, device)
        if said is not None:
            found[text] = said

    call()
    return found


class _Arguments(pickle.Unpickler):
    """Arguments of a recorded call; classes of ours are found by their names where their modules have moved."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return super().find_class(module, name)
        except (ImportError, AttributeError):
            return pkgutil.resolve_name(f"pyedmcl.{RESULTS.get(name) or PARTS[name]}:{name}")


def _said(name: str, text: str, device: str | None) -> list[str] | None:
    """What a call says that is refused; None where it is not."""
    arguments, device_given = _Arguments(BytesIO(zlib.decompress(base64.b85decode(text)))).load()
    if "device" in inspect.signature(getattr(pyedmcl, name)).parameters and not device_given:
        arguments["device"] = device
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)  # a text made up at random may name a folder that is written
        for each, value in arguments.items():
            if isinstance(value, (str, Path)) and _FUZZ in str(value):  # a file in a folder of the tests
                arguments[each] = type(value)(Path(folder, Path(value).name))
        try:
            getattr(pyedmcl, name)(**arguments)
        except PyedmclError as error:
            return [type(error).__name__, _ADDRESS.sub("0x...", str(error).replace(folder, "FOLDER"))]
        except Exception as error:
            return [f"not one of ours: {type(error).__name__}", str(error)]
        finally:
            os.chdir(here)
    return None


def cases(device: str | None, calls: int, times: bool) -> dict[str, Case]:
    """Name -> what is recorded of it."""
    found = {f"command/{name}": case for name, case in commands()}
    found |= {f"function/{name}": partial(_function, name) for name in FUNCTIONS}
    found |= {f"result/{name}": partial(_result, name, device) for name in RESULTS}
    found |= {f"messages/{name}": partial(_refused, name, device, calls) for name in FUNCTIONS}
    if times:
        for name, call in small_calls.cases(device).items():
            found[f"times/{name}"] = lambda call=call: {"seconds": small_calls.shortest(call, 50)}
    return found


def differences(name: str, old: dict[str, Any], now: Case, device: str | None) -> Iterator[str]:
    """Lines about what is not as recorded."""
    kind, _, word = name.partition("/")
    if kind == "messages":
        for text, said in old.items():
            again = _said(word, text, device)
            if again != said:
                yield f"  was: {': '.join(said)}\n  now: {'(no error)' if again is None else ': '.join(again)}"
        return
    found = now()
    if kind == "times":
        print(f"{name}: {found['seconds'] / old['seconds']:.2f} of the time")
        return
    for part in dict.fromkeys((*old, *found)):
        yield from list(difflib.unified_diff(old.get(part, []), found.get(part, []), part, part, n=0, lineterm=""))[2:]


def work(asked: argparse.Namespace) -> int:
    """Record or check; returns the exit status."""
    file = asked.record or asked.check
    wanted = {
        name: case for name, case in cases(asked.device, asked.calls, asked.times).items()
        if fnmatch(name, asked.only or "*")
    }  # fmt: skip
    old = json.loads(file.read_text()) if file.exists() else {"cases": {}}
    if asked.record:
        found = {**old["cases"], **{name: case() for name, case in wanted.items()}}
        digests.write(file, {"format": FORMAT, "around": digests.surroundings(), "cases": found})
        print(f"{len(found)} cases are in {file}")
        return 0
    table = []
    for name, recorded in old["cases"].items():
        if not fnmatch(name, asked.only or "*") or (name.startswith("times/") and not asked.times):
            continue
        known = wanted.get(name)
        lines = ["is not there any more"] if known is None else list(differences(name, recorded, known, asked.device))
        table += [f"{name}: {len(lines)} differences", *lines] if lines else []
    table += [f"{name}: is new" for name in wanted if name not in old["cases"]]
    print(*table, f"{len(old['cases'])} cases were recorded with {old['around']}", sep="\n")
    return 1 if table else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    todo = parser.add_mutually_exclusive_group(required=True)
    todo.add_argument("--record", type=Path, metavar="FILE")
    todo.add_argument("--check", type=Path, metavar="FILE")
    parser.add_argument("--device", help="which device; see pyedmcl devices")
    parser.add_argument("--only", metavar="PATTERN", help="cases whose name matches, as messages/* or */xmap")
    parser.add_argument("--calls", type=int, default=60, help="random calls of each function that are recorded")
    parser.add_argument("--times", action="store_true", help="time small calls, too")
    asked = parser.parse_args()
    for file in ("record", "check"):
        if getattr(asked, file):
            setattr(asked, file, getattr(asked, file).resolve())
    os.environ["PYEDMCL_TUNE"] = "never"
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PYEDMCL_DATA_DIR"] = folder
        sys.exit(work(asked))


sys.path += [str(TESTS), str(TESTS / "fuzz")]

if __name__ == "__main__":
    main()

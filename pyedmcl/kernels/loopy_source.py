"""The second producer of OpenCL C texts: loopy, for sums of prediction skill.

    python -m pyedmcl.kernels.loopy_source --write    # make the shipped texts anew, in a checkout
    python -m pyedmcl.kernels.loopy_source --check    # compare them
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Mapping
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import Any

from .. import config
from ..device.runtimes import for_loopy
from ..errors import BuildError, MissingExtraError, missing_extra
from .texts import DTYPES, MAKERS, expand_includes, prologue, read_text

GENERATED = "clkernels/generated"
_MARK = "// pyedmcl text by loopy: "
_HOW = "// Generated: change pyedmcl/kernels/texts.py and run python -m pyedmcl.kernels.loopy_source --write\n"
# islpy 2026 dropped conversions that loopy 2025 leans on (add_inames_for_unused_hw_axes fails).
_REQUIRED = {"loopy": ((2025, 2), (2026,)), "islpy": ((2025, 2, 5), (2026,))}

_lock = threading.Lock()
_bodies: dict[tuple[str, str], str] = {}


def produce(name: str, values: Mapping[str, Any]) -> str:
    """The OpenCL C text of a kernel that loopy writes.

    Parameters
    ----------
    name : str
        A maker: "skill".
    values : mapping
        Specialisation and tuned parameters, and the device's ``fma`` and ``minimum`` as in :func:`.texts.prologue`.
        These two act through numeric.clh, as in the templates, so one text of loopy's serves all devices.

    Returns
    -------
    str
        With numeric.clh inlined, for one query row per work-item (LANES is 1).
    """
    shaping = shaping_values(name, values)
    head = prologue({**shaping, **{n: values[n] for n in ("fma", "minimum") if n in values}})
    head += '#include "numeric.clh"\n'
    return expand_includes(head + f'#line 1 "{file_name(name, shaping)}"\n' + body(name, shaping), set())


def obtainable(name: str, values: Mapping[str, Any]) -> bool:
    """Whether :func:`produce` has the text or could have it made here; True where values are missing or unknown."""
    try:
        shaping = shaping_values(name, values)
    except BuildError:
        return True
    if (name, json.dumps(shaping, sort_keys=True)) in _bodies or _shipped(name, shaping) is not None:
        return True
    with contextlib.suppress(MissingExtraError):
        return bool(_installed(name))
    return False


def shaping_values(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that shape the text of maker ``name``, as plain str and int. Raises BuildError for bad ones."""
    maker = MAKERS.get(name)
    if maker is None:
        raise BuildError(f"there is no loopy maker {name!r}; there are {', '.join(MAKERS)}")
    absent = [n for n in maker.names if n not in values]
    if absent:
        raise BuildError(f"loopy text {name}: no value for {', '.join(absent)}")
    shaping = {n: values[n] if isinstance(values[n], str) else int(values[n]) for n in maker.names}
    for key, value in shaping.items():
        choices: tuple[str, ...] = {"dtype": DTYPES}.get(key, ())
        if choices and value not in choices:
            raise BuildError(f"loopy text {name}: {key} = {value!r} is not one of {', '.join(choices)}")
        if not choices and not (isinstance(value, int) and value >= 1):
            raise BuildError(f"loopy text {name}: {key} = {value!r} must be a whole number from 1 on")
    return shaping


def file_name(name: str, shaping: Mapping[str, Any]) -> str:
    """Where the text lies if it is shipped: readable, one file for each set of values."""
    parts = (value if isinstance(value, str) else f"{key}{value}" for key, value in shaping.items())
    return f"{'-'.join((name, *parts))}.cl"


def body(name: str, shaping: Mapping[str, Any]) -> str:
    """The text as loopy wrote it, under a header line that says for what: shipped, cached, or made now."""
    key = (name, json.dumps(dict(shaping), sort_keys=True))
    with _lock:
        if key not in _bodies:
            _bodies[key] = _shipped(name, shaping) or _cached(name, shaping)
        return _bodies[key]


def _header(name: str, shaping: Mapping[str, Any], text: str) -> str:
    facts = {"name": name, "maker": MAKERS[name].version, "values": dict(shaping)}
    facts["sha256"] = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{_MARK}{json.dumps(facts, sort_keys=True)}\n"


def _fits(whole: str, name: str, shaping: Mapping[str, Any]) -> bool:
    """Whether a file holds, unharmed, the text of this maker's version for these values."""
    header, _, text = whole.partition("\n")
    return f"{header}\n" == _header(name, shaping, text)


def _shipped(name: str, shaping: Mapping[str, Any]) -> str | None:
    try:
        whole = read_text(GENERATED, file_name(name, shaping))
    except BuildError:
        return None
    return whole if _fits(whole, name, shaping) else None


def _cached(name: str, shaping: Mapping[str, Any]) -> str:
    version = _installed(f"the {name} kernel with {_shown(shaping)}")
    parts = json.dumps([name, dict(shaping), MAKERS[name].version, version, _makers_digest()], sort_keys=True)
    path = config.current().cache_dir / "loopy" / f"{hashlib.sha256(parts.encode()).hexdigest()[:24]}.cl"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        whole = path.read_text(encoding="utf-8")
        if _fits(whole, name, shaping):
            return whole
    whole = generate(name, shaping)
    # A cache that cannot be written costs a second at the next start, nothing more.
    with contextlib.suppress(OSError):
        _write(path, whole)
    return whole


def _makers_digest() -> str:
    """So that whoever changes a maker never meets a text of the old one; empty where the source is not installed."""
    with contextlib.suppress(OSError):
        return hashlib.sha256(files(__package__).joinpath("texts.py").read_bytes()).hexdigest()
    return ""


def _write(path: Path, text: str) -> None:
    """Replace ``path`` so that no reader ever sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        Path(scratch).chmod(0o644)  # mkstemp leaves it to its owner alone
        Path(scratch).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(scratch).unlink()
        raise


def _shown(shaping: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in shaping.items())


def _numbers(version: str) -> tuple[int, ...]:
    numbers: list[int] = []
    for part in version.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


def _installed(purpose: str) -> str:
    """Version of an installed loopy that can be used, found without importing it. Raises MissingExtraError."""
    version = {}
    for package, (least, below) in _REQUIRED.items():
        try:
            version[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            raise missing_extra(package, "loopy", purpose) from None
        if not least <= _numbers(version[package]) < below:
            ranges = f"{package}>={'.'.join(map(str, least))},<{'.'.join(map(str, below))}"
            raise MissingExtraError(
                f"{purpose} needs {ranges}, but {package} {version[package]} is installed: pip install 'pyedmcl[loopy]'"
            )
    return version["loopy"]


def _loopy(purpose: str) -> Any:
    try:
        with for_loopy():
            import loopy
    except ImportError as error:
        raise missing_extra("loopy", "loopy", purpose) from error
    return loopy


def generate(name: str, shaping: Mapping[str, Any]) -> str:
    """Let loopy write the text, whatever is shipped or cached.

    Parameters
    ----------
    shaping : mapping
        From :func:`shaping_values`.
    """
    purpose = f"the {name} kernel with {_shown(shaping)}"
    _installed(purpose)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations between loopy and islpy
        lp = _loopy(purpose)
        try:
            # loopy's own cache on disk would hold more than the text and outlive our ranges.
            with lp.CacheMode(False):
                code = lp.generate_code_v2(MAKERS[name].make(lp, shaping)).device_code()
        except Exception as error:
            raise BuildError(f"loopy could not write {purpose}: {type(error).__name__}: {error}") from error
    text = _HOW + "\n".join(line.rstrip() for line in str(code).strip().splitlines()) + "\n"
    return _header(name, shaping, text) + text


def shipped_files() -> dict[str, str]:
    """File name to freshly generated text, for everything that is to lie in ``clkernels/generated``."""
    texts = {}
    for name, maker in MAKERS.items():
        for values in maker.shipped:
            shaping = shaping_values(name, values)
            texts[file_name(name, shaping)] = generate(name, shaping)
    return texts


def _main(arguments: list[str]) -> int:
    folder = Path(__file__).resolve().parents[2].joinpath(*GENERATED.split("/"))
    if arguments not in (["--write"], ["--check"]):
        print("usage: python -m pyedmcl.kernels.loopy_source --write | --check", file=sys.stderr)
        return 2
    if not folder.parent.is_dir():
        print(f"{folder.parent} is not there: run this in a checkout of the sources", file=sys.stderr)
        return 2
    fresh = shipped_files()
    stored = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.cl")}
    changed = sorted(n for n in {*fresh, *stored} if fresh.get(n) != stored.get(n))
    for file in changed:
        if arguments == ["--check"]:
            print(f"{GENERATED}/{file} is not as generated")
        elif file in fresh:
            _write(folder / file, fresh[file])
            print(f"{GENERATED}/{file} written")
        else:
            (folder / file).unlink()
            print(f"{GENERATED}/{file} removed")
    print(f"{len(fresh)} texts, {len(changed)} of {len({*fresh, *stored})} files differed")
    return int(bool(changed) and arguments == ["--check"])


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))

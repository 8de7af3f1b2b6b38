"""What was run, as a reader of a page needs it first, and all of it for those who repeat it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from .markup import element, printable, text

_LONG = 400  # letters of the arguments, beyond which they are only among all of it


def provenance_markup(provenance: Mapping[str, Any]) -> str:
    """A list of the most important, and all of it to be opened; a sentence where there is nothing."""
    plain = _plain(provenance)
    if not plain:
        return element("p", "This result holds no record of how it was made.", class_="note")
    pairs = "".join(element("dt", text(name)) + element("dd", text(value)) for name, value in _first(plain))
    dumped = json.dumps(plain, indent=1, default=str)
    lines = "\n".join(text(line) for line in dumped.split("\n"))
    whole = element("details", element("summary", "All of it, as JSON"), element("pre", lines, tabindex=0))
    return element("section", element("h3", "What was run"), element("dl", pairs, class_="facts"), whole, class_="run")


def _plain(provenance: Any) -> dict[str, Any]:
    """Provenance of one shape; that of some stores is their manifest."""
    manifest = provenance.get("manifest") if isinstance(provenance, Mapping) else None
    if manifest is not None and hasattr(manifest, "provenance"):
        return dict(manifest.provenance())
    return dict(provenance)


def of_all_maps(provenance: Any, differing: Collection[str]) -> dict[str, Any]:
    """What a folder of several maps says, which is of the first one, without the arguments in which they differ."""
    plain = _plain(provenance)
    arguments = plain.get("arguments")
    if isinstance(arguments, Mapping):
        plain["arguments"] = {name: value for name, value in arguments.items() if name not in differing}
    return plain


def _first(plain: Mapping[str, Any]) -> list[tuple[str, str]]:
    entries: list[tuple[str, str]] = []
    for name, data in (plain.get("data") or {}).items():
        if not isinstance(data, Mapping):
            continue
        size = [f"{data[key]:,} {key}" for key in ("rows", "series") if isinstance(data.get(key), int)]
        words = [str(data["file"]) if data.get("file") else "", *size,
                 f"SHA-256 {data['digest']}" if data.get("digest") else ""]  # fmt: skip
        entries.append((name if name != "data" else "input", ", ".join(filter(None, words)) or "unknown"))
    call = _call(plain)
    if call:
        entries.append(("call" if plain.get("function") else "arguments", call))
    for name, label in (("seed", "seed"), ("command", "command line")):
        if plain.get(name) is not None:
            entries.append((label, str(plain[name])))
    versions = {"pyedmcl": plain.get("version"), **(plain.get("versions") or {})}
    entries.append(("versions", ", ".join(f"{name} {value}" for name, value in versions.items() if value)))
    devices = plain.get("devices") or [plain.get("device")]
    names = [one.get("name") if isinstance(one, Mapping) else one for one in devices]
    drivers = plain.get("drivers") or [plain.get("driver")]
    where = [f"{name} (driver {driver})" if driver else str(name)
             for name, driver in zip(names, [*drivers, *[None] * len(names)], strict=False) if name]  # fmt: skip
    if where:
        entries.append(("device", ", ".join(where)))
    if plain.get("dtype") or (plain.get("arguments") or {}).get("dtype"):
        entries.append(("arithmetic", str(plain.get("dtype") or plain["arguments"]["dtype"])))
    return [(name, printable(value)) for name, value in entries if value]


def _call(plain: Mapping[str, Any]) -> str:
    arguments = plain.get("arguments")
    if not isinstance(arguments, Mapping) or not arguments:
        return str(plain.get("function") or "")
    listed = ", ".join(f"{name}={value!r}" for name, value in arguments.items() if value is not None)
    listed = listed if len(listed) <= _LONG else listed[:_LONG] + " …"
    return f"{plain['function']}({listed})" if plain.get("function") else listed

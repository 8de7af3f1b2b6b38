"""A known table in random forms, as people have them, written and read back.

``python bench/reading_forms.py --forms 20000`` writes that many files and reads each with ``read_series``. Plain ones
are also read as frames of texts, and every hundredth by the command ``pyedmcl check --json``. Printed are the shares
that were read equal, equal with a warning ("told"), and cured by an option that the message names: after a refusal
("cured"), or after a warning that doubts what was read ("doubted"). None may be refused without a cure, and none may
differ. ``--seed`` makes other forms.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pyedmcl.errors import InputError, PyedmclWarning
from pyedmcl.files import read_series

NAMES = ["catch", "sst", "n_larvae", "Chl a", "prey", "temp", "ph", "flow", "x_t", "größe"]
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
PREAMBLES = [["Station 12", "Lat 44.1 N"], ["# made by a logger", "# version 2.1"], ["BioWare 5.3", "Subject: 12", ""],
             ["Export of 2021", "", "Unit: see manual"], ["% exported", "% by hand"]]
FOOTERS = [["Source: survey of the lake"], ["", "END"], ["Total rows checked", "by hand"]]
UNITS = {"catch": "t", "sst": "°C", "n_larvae": "1/m3", "Chl a": "mg/m3", "prey": "ind.", "temp": "degC", "ph": "pH",
         "flow": "m3/s", "x_t": "m", "größe": "mm"}
DATES = {
    "iso": "%Y-%m-%d", "slash": "%Y/%m/%d", "german": "%d.%m.%Y", "us": "%m/%d/%Y", "uk": "%d/%m/%Y",
    "month name": "%d-%b-%Y", "two digits": "%m/%d/%y", "compact": "%Y%m%d", "underscores": "%Y_%m_%d",
    "words": "%d %B %Y", "doy": "%Y-%j",
}  # fmt: skip
MONTHLY = {"iso": "%Y-%m", "slash": "%m/%Y", "compact": "%Y%m", "point": "%Y.%m", "word": "%b-%y", "long": "%B %Y"}
TIME_NAMES = ["date", "Date", "Datum", "time", "timestamp", "TIMESTAMP", "Date/Time", "fecha", "sampling_date"]
HOURLY = {"iso": "%Y-%m-%d %H:%M", "t": "%Y-%m-%dT%H:%M:%SZ", "am": "%m/%d/%Y %I:%M %p", "german": "%d.%m.%Y %H:%M",
          "compact": "%Y%m%dT%H%M%S", "digits": "%Y%m%d%H%M"}  # fmt: skip


@dataclass
class Form:
    """One table and the text it is written as.

    Attributes
    ----------
    text : bytes
    suffix : str
    values : ndarray (L, n)
    names : list of str, or None where the text has none
    time : ndarray (L,) or None
        Dates, or numbers; None where the table has no time.
    said : dict
        Options that say what the text alone leaves open, by which a refusal must be cured.
    what : list of str
        Words on the form, for a report.
    """

    text: bytes
    suffix: str
    values: np.ndarray
    names: list[str] | None
    time: np.ndarray | None
    said: dict[str, Any] = field(default_factory=dict)
    what: list[str] = field(default_factory=list)


def make_form(seed: int) -> Form:
    """The form of a seed."""
    rng = np.random.default_rng(seed)

    def pick(choices: Any, *weights: float) -> Any:
        share = np.array(weights) / sum(weights) if weights else None
        return list(choices)[rng.choice(len(choices), p=share)]

    what: list[str] = []
    n, k = int(rng.integers(24, 140)), int(pick([1, 2, 3, 4], 1, 3, 3, 1))
    separator = pick([",", ";", "\t", " ", "|"], 4, 3, 3, 1, 0.3)
    quoted = separator in ",;" and rng.random() < 0.15
    comma = separator != "," and rng.random() < (0.6 if separator == ";" else 0.25)
    thousands = pick(["", "." if comma else ",", "\u00a0", "'"], 6, 2, 0.5, 0.3)
    if separator == "," and thousands == "," and not quoted:
        thousands = ""
    what += [f"separator {separator!r}", "decimal comma" if comma else "decimal point", f"thousands {thousands!r}"]
    columns, values = [], []
    for _ in range(k):
        cells, numbers = _column(rng, n, comma, thousands)
        columns.append(cells)
        values.append(numbers)
    table = np.stack(values, axis=1)
    codes = _gaps(rng, columns, table, separator, what)
    header = pick(["names", "none", "numbers"], 8, 1, 1 if k > 1 else 0)  # of one column a number names nothing
    names = list(rng.choice(NAMES, k, replace=False))
    if separator == " ":
        names = [name.replace(" ", "_") for name in names]
    if header == "numbers":
        names = [str(1001 + i) for i in range(k)]
    times, time_cells, time_names = _times(rng, n, separator, what)
    if header == "none" and time_names is not None and len(time_names) > 1:
        time_cells, time_names, times = [], None, None
    if header == "none" and times is not None and times.dtype.kind != "M":
        time_cells, time_names, times = [], None, None
    rows = [[*time, *cells] for time, *cells in zip(time_cells or [[]] * n, *columns, strict=True)]
    newest_first = times is not None and rng.random() < 0.07
    if newest_first:
        rows.reverse()
        what.append("newest first")
    heads = [*(time_names or []), *names]
    lines: list[list[str]] = [] if header == "none" else [heads]
    what.append(f"header of {header}")
    if header == "names" and rng.random() < 0.12 and separator != " ":
        lines.append(["" for _ in time_names or []] + [UNITS[name] for name in names])
        what.append("units row")
    lines += rows

    def cell(text: str) -> str:
        if quoted or any(mark in text for mark in (separator, '"')):
            return '"' + text.replace('"', '""') + '"'
        return text

    text = [separator.join(map(cell, line)) for line in lines]
    if header != "none" and rng.random() < 0.12:
        text = [*pick(PREAMBLES), *text]
        what.append("preamble")
    if rng.random() < 0.06:
        text += pick(FOOTERS)
        what.append("footer")
    if header != "none" and rng.random() < 0.05:
        place = len(text) - int(rng.integers(2, max(len(rows) - 2, 3)))
        text.insert(place, pick(["# recalibrated", ""]) if k + len(time_names or []) > 1 else "# recalibrated")
        what.append("comment or blank line between rows")
    if separator == ";" and rng.random() < 0.03:
        text.insert(0, "sep=;")
        what.append("separator line")
    end = pick(["\n", "\r\n", "\r"], 6, 3, 0.3)
    encoding = pick(["utf-8", "utf-8-sig", "latin-1", "utf-16"], 7, 2, 1, 0.5)
    encoding = "utf-8" if any(letter > "\xff" for line in text for letter in line) else encoding
    raw = end.join(text) + (end if rng.random() < 0.9 else "")
    what.append(encoding)
    return Form(
        raw.encode(encoding), {",": ".csv", ";": ".csv", "\t": ".tsv"}.get(separator, ".txt"), table,
        None if header == "none" else names, times, codes, what,
    )  # fmt: skip


def _column(rng: np.random.Generator, n: int, comma: bool, thousands: str) -> tuple[list[str], np.ndarray]:
    """Cells of a column and their numbers."""
    kind = rng.choice(["unit", "fixed3", "counts", "few", "exponents", "repr"], p=[0.3, 0.2, 0.2, 0.1, 0.05, 0.15])
    x = np.empty(n)
    x[0] = rng.uniform(0.1, 0.9)
    r = rng.uniform(3.6, 3.95)
    for t in range(1, n):
        x[t] = r * x[t - 1] * (1 - x[t - 1])
    if kind == "counts":
        texts = [f"{round(v * 10 ** rng.uniform(2, 4.5)):d}" for v in x]
    elif kind == "few":
        texts = [f"{round(4 * v):d}" for v in x]
    elif kind == "fixed3":
        texts = [f"{float(rng.choice([1, 30, -8])) * v + 2:.3f}" for v in x]
    elif kind == "exponents":
        texts = [f"{v - 0.5:.6e}" for v in x]
    elif kind == "repr":
        texts = [repr(float(40 * v - 10)) for v in x]
    else:
        texts = [f"{v:.5f}" for v in x]
    numbers = np.array([float(text) for text in texts])
    cells = []
    for text in texts:
        whole, point, fraction = text.partition(".")
        if thousands and "e" not in text and len(whole.lstrip("-")) > 3:
            whole = f"{int(whole):,}".replace(",", thousands)
        cells.append(whole + (("," if comma else ".") + fraction if point else ""))
    if rng.random() < 0.05:
        cells = [cell.replace("-", "\u2212", 1) if cell.startswith("-") else cell for cell in cells]
    return cells, numbers


def _gaps(
    rng: np.random.Generator, columns: list[list[str]], table: np.ndarray, separator: str, what: list[str]
) -> dict[str, Any]:
    """Put codes of gaps into cells; what the user can say of them."""
    if rng.random() < 0.55:
        return {}
    code = str(rng.choice(["", "NA", "NaN", ".", "-", "ND", "#N/A", "-9999", "<0.05", "null", "BDL"]))
    if code == "" and (separator == " " or len(columns) == 1):
        code = "NA"
    for _ in range(int(rng.integers(1, 5))):
        row, column = int(rng.integers(1, len(table))), int(rng.integers(len(columns)))
        columns[column][row] = code
        table[row, column] = np.nan
    what.append(f"gaps {code!r}")
    return {"missing": "<" if code.startswith("<") else code} if code in ("ND", "BDL", "-9999", "<0.05") else {}


def _times(
    rng: np.random.Generator, n: int, separator: str, what: list[str]
) -> tuple[np.ndarray | None, list[list[str]], list[str] | None]:
    """Times, their cells (one or more of each row) and the names of their columns."""
    kind = str(rng.choice(["none", "years", "daily", "monthly", "hourly", "parts", "counter", "quarters"],
                          p=[0.2, 0.12, 0.26, 0.14, 0.12, 0.1, 0.03, 0.03]))  # fmt: skip
    if kind == "none":
        return None, [], None
    keep = np.sort(rng.choice(n + 3, n, replace=False)) if rng.random() < 0.2 else np.arange(n)
    start = int(rng.integers(1950, 2010))
    name = str(rng.choice(TIME_NAMES))
    what.append(f"{kind} times")
    if kind == "counter":
        return np.arange(n), [[str(i)] for i in range(n)], [str(rng.choice(["", "X", "No"]))]
    if kind == "years":
        years = start - 60 + keep
        return years, [[str(y)] for y in years], [str(rng.choice(["year", "Year", "yr", "Jahr", "Year/Année"]))]
    if kind == "quarters":
        dates = (np.datetime64(f"{start}-01") + 3 * keep).astype("M8[us]")
        return dates, [[f"{str(d)[:4]}Q{(int(str(d)[5:7]) + 2) // 3}"] for d in dates], ["quarter"]
    if kind == "monthly" or (kind == "parts" and rng.random() < 0.5):
        dates = (np.datetime64(f"{start}-{int(rng.integers(1, 13)):02}") + keep).astype("M8[us]")
    elif kind == "hourly":
        dates = (np.datetime64(f"{start}-{int(rng.integers(1, 13)):02}-01T00") + keep).astype("M8[us]")
    else:
        first = np.datetime64(f"{start}-{int(rng.integers(1, 13)):02}-{int(rng.integers(1, 29)):02}")
        dates = (first + keep).astype("M8[us]")
    stamps = dates.tolist()
    if kind == "parts":
        monthly = all(stamp.day == 1 for stamp in stamps)
        parts = ["year", "month"] if monthly else ["year", "month", "day"]
        names = [part.title() if rng.random() < 0.3 else part for part in parts]
        words = rng.random() < 0.2
        return dates, [
            [MONTHS[stamp.month - 1] if part == "month" and words else str(getattr(stamp, part)) for part in parts]
            for stamp in stamps
        ], names
    forms = {"monthly": MONTHLY, "hourly": HOURLY}.get(kind, DATES)
    chosen = str(rng.choice([key for key, form in forms.items() if separator != " " or " " not in form]))
    what[-1] += f" ({forms[chosen]})"
    return dates, [[stamp.strftime(forms[chosen])] for stamp in stamps], [name]


# Reading back

_OPTION = re.compile(
    r"\b(missing|decimal|thousands|header|time_format|skip_rows|comment|time_column|transpose)=('[^']*'|\"[^\"]*\"|[\w.\-]+)"
)


def cures(message: str) -> list[dict[str, Any]]:
    """Options that a message names, with their values."""
    found = []
    for name, text in _OPTION.findall(message):
        if text[0] in "'\"":
            value: Any = text[1:-1]
        else:
            value = {"False": False, "True": True}.get(text.rstrip("."), text.rstrip("."))
            if isinstance(value, str) and re.fullmatch(r"-?\d+", value):
                value = int(value)
        found.append({name: value})
    return found


def equal(form: Form, series: Any) -> bool:
    """Whether values, names and times are those that were written."""
    if series.values.shape != form.values.shape or not np.array_equal(series.values, form.values, equal_nan=True):
        return False
    if form.names is not None and list(series.names) != form.names:
        return False
    if form.time is None:
        return series.time is None
    if series.time is None or series.time.shape != form.time.shape:
        return False
    if form.time.dtype.kind == "M":
        return series.time.dtype.kind == "M" and bool((series.time.astype("M8[us]") == form.time).all())
    return bool((series.time == form.time).all())


def outcome(form: Form, read: Any, said: dict[str, Any] | None = None, depth: int = 4) -> tuple[str, str]:
    """What becomes of a form (see the top of this file, and "refused", "different"), and the messages on the way."""
    said = said or {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            series = read(**said)
        except InputError as error:
            messages, series = str(error), None
        else:
            messages = " | ".join(str(one.message) for one in caught if issubclass(one.category, PyedmclWarning))
    if series is not None and equal(form, series):
        return ("told" if messages else "equal"), messages
    if depth:
        for cure in cures(messages):
            name = next(iter(cure))
            merged = {**said, **cure}
            texts = name in said and isinstance(said[name], str) and isinstance(cure[name], str)
            if texts and said[name] != cure[name]:
                merged[name] = f"{said[name]},{cure[name]}"
            if merged == said:
                continue
            result, _ = outcome(form, read, merged, depth - 1)
            if result in ("equal", "told", "doubted", "cured"):
                cured = "cured" if series is None or result == "cured" else "doubted"
                return cured, f"{messages} -> {merged}"
    return ("refused" if series is None else "different"), messages


def read_frame(path: Path, form: Form) -> Any:
    """The same table as a frame of texts, where pandas reads it as it was written; else None."""
    import pandas

    odd = {"preamble", "footer", "separator line", "units row", "comment or blank line between rows", "newest first"}
    if odd & set(form.what) or not {"utf-8", "header of names"} <= set(form.what):
        return None
    separator = next(mark for mark in ("\t", ";", ",", "|", " ") if f"separator {mark!r}" in form.what)
    return pandas.read_csv(path, sep=separator, dtype=str, keep_default_na=False)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forms", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=5, help="forms that are shown of each fault")
    options = parser.parse_args()
    results: Counter[str] = Counter()
    shown: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.seed, options.seed + options.forms):
            form = make_form(seed)
            path = Path(folder, f"table{form.suffix}")
            path.write_bytes(form.text)
            result, messages = outcome(form, lambda path=path, **said: read_series(path, **said))
            results[result] += 1
            frame = read_frame(path, form)
            if frame is not None:
                of_frame, messages_of_frame = outcome(form, lambda frame=frame, **said: read_series(frame, **said))
                results[f"{of_frame} as a frame"] += 1
                if of_frame in ("different", "refused"):
                    result, messages = of_frame, f"frame: {messages_of_frame}"
            if seed % 100 == 0 and result in ("equal", "told"):
                command = [sys.executable, "-m", "pyedmcl", "check", str(path), "--json"]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                said = json.loads(done.stdout)["reading"]["series"] if done.returncode == 0 else done.stderr
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    same = said == list(read_series(path).names)
                results["command agrees" if same else "command differs"] += 1
            if result in ("different", "refused") and shown[result] < options.show:
                shown[result] += 1
                head = form.text[:300].decode("utf-8", "replace")
                print(f"--- seed {seed}: {result}: {', '.join(form.what)}\n{head}\n  {messages}")
    total = options.forms
    print({name: f"{count} ({count / total:.2%})" for name, count in sorted(results.items())})


if __name__ == "__main__":
    main()

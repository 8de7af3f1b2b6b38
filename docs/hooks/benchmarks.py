"""The page of benchmarks: pictures of the lines in bench/results, each with the command that measured them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from repository import COPIES

RESULTS = Path(__file__).resolve().parents[2] / "bench" / "results"
OURS, LIGHT, PEER = "#1f5673", "#7fb2cc", "#c8553d"
DEVICES = {
    "AMD EPYC": "two cores, Intel's runtime",
    "pthread-skylake-avx512-AMD EPYC": "two cores, PoCL",
    "NVIDIA H200": "NVIDIA H200",
}
HEAD = """# Benchmarks

Whole calls, from host array to host result, beside other packages in the same run. Each picture is drawn from the lines
that its commands wrote, and the commands make such lines on your machine. Of several runs the last one is shown. All
tables, with what was measured how and on which machines, are in [Results](results.md).

*Commands of this page are not run in the tests: they measure for minutes.*
"""


def lines(*names):
    """Lines of some files of results, as dictionaries."""
    for name in names:
        for line in (RESULTS / name).read_text(encoding="utf-8").splitlines():
            if line.strip():
                yield json.loads(line)


def last(rows, *keys):
    """Rows by the values of some keys, the last one where several have the same."""
    return {tuple(row[key] for key in keys): row for row in rows}


def cross_maps():
    """Ratio to kEDM of all-pairs maps, by device and shape."""
    found = last(lines("cpu-compare-kedm.jsonl", "h200-compare-kedm.jsonl"), "device", "shape", "case")
    bars = Bars({"E3": OURS, "mixed": LIGHT})
    for (device, shape, case), row in found.items():
        if case in bars.colours:
            bars.add(f"{shape.replace('x', ' x ')}, {DEVICES[device]}", case, row["ratio"], f"{row['ratio']:.0f}x")
    return bars.figure("times as fast as kEDM 0.10.1", {"E3": "E = 3", "mixed": "E = 1 to 20 mixed"})


def recurrence():
    """Cells of the recurrence matrix per second, ours and those of PyRQA's fastest variant."""
    rows = [row for row in lines("cpu-compare-pyrqa.jsonl", "h200-compare-pyrqa.jsonl") if row["case"] == "rqa"]
    ours = last((row for row in rows if row["who"] == "pyedmcl"), "device", "N", "mode")
    peers = {}
    for row in rows:
        if row["who"] != "pyedmcl" and row["N"] > 1000:
            key = row["device"], row["N"]
            peers[key] = max(row["gcells_per_s"], peers.get(key, 0))
    bars = Bars({"float32": LIGHT, "exact": OURS, "peer": PEER})
    for (device, n), peer in peers.items():
        values = {mode: ours[device, n, mode]["gcells_per_s"] for mode in ("float32", "exact")} | {"peer": peer}
        for kind, value in values.items():
            bars.add(f"{n:,} points, {DEVICES[device]}", kind, value, f"{value:,.{0 if value > 10 else 1}f}")
    names = {"float32": "pyedmcl in float32", "exact": "pyedmcl exact", "peer": "PyRQA 8.1.0, fastest variant"}
    return bars.figure("10⁹ cells of the matrix a second", names, log=True)


def other_functions():
    """Ratio to other packages of S-map and of convergent cross mapping."""
    bars = Bars({"kedm": OURS, "pyEDM": LIGHT})
    for row in last(lines("cpu-compare-smap.jsonl", "h200-compare-smap.jsonl"), "device", "case").values():
        rows, _, dimension = row["case"].removeprefix("smap ").partition("x")
        what = f"smap, {int(rows):,} rows, E = {dimension}" if dimension else "predict_nonlinear, 1,000 rows"
        peer = "pyEDM" if row["peer"] == "pyEDM" else "kedm"
        bars.add(f"{what}, {DEVICES[row['device']]}", peer, row["ratio"], f"{row['ratio']:.0f}x")
    for row in lines("cpu-compare-ccm.jsonl"):
        what = f"ccm, {int(row['case'].split()[1]):,} rows, {DEVICES[row['device']]}"
        for peer in ("kedm 0.10.1", "pyEDM 2.5.7"):
            if peer in row:
                bars.add(what, peer.split()[0], row[peer]["ratio"], f"{row[peer]['ratio']:.0f}x")
    return bars.figure("times as fast", {"kedm": "as kEDM 0.10.1", "pyEDM": "as pyEDM 2.5.7"}, log=True)


def devices():
    """Speed-up by several GPUs of one machine."""
    rows = [row for row in lines("h200x8-scale-devices.jsonl") if row["way"] == "devices"]
    figure = Figure(figsize=(7.2, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot([1, 8], [1, 8], color="0.7", linestyle="--", label="each device adds one")
    for case in dict.fromkeys(row["case"] for row in rows):
        chosen = [row for row in rows if row["case"] == case]
        label = f"{case}, {chosen[0]['seconds']:.3g} s on one"
        axes.plot([row["devices"] for row in chosen], [row["ratio"] for row in chosen], "o-", label=label)
    axes.set(xlabel="NVIDIA H200", ylabel="times as fast as one", xticks=[1, 2, 4, 8])
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    return figure


class Bars:
    """Horizontal bars in rows with a label; bars of a row differ in their kind, which has a colour."""

    def __init__(self, colours):
        self.colours = colours
        self.rows = {}

    def add(self, label, kind, value, text):
        self.rows.setdefault(label, {})[kind] = value, text

    def figure(self, label, names, *, log=False):
        height = 0.8 / len(self.colours)
        figure = Figure(figsize=(7.2, 0.9 + 0.2 * len(self.rows) * len(self.colours)), layout="constrained")
        axes = figure.subplots()
        for i, row in enumerate(self.rows.values()):
            for j, kind in enumerate(kind for kind in self.colours if kind in row):
                value, text = row[kind]
                drawn = axes.barh(i + (j - (len(row) - 1) / 2) * height, value, height, color=self.colours[kind])
                axes.bar_label(drawn, [text], padding=3, fontsize=8)
        axes.set_yticks(range(len(self.rows)), list(self.rows), fontsize=8)
        axes.invert_yaxis()
        axes.set(xlabel=label, xscale="log" if log else "linear")
        axes.margins(x=0.12, y=0.02)
        axes.spines[["top", "right"]].set_visible(False)
        handles = [Patch(color=colour, label=names[kind]) for kind, colour in self.colours.items()]
        figure.legend(handles=handles, loc="outside upper right", ncols=len(handles), frameon=False, fontsize=8)
        return figure


#: Pictures in their order: title, what it shows, commands, function.
FIGURES = (
    (
        "All-pairs cross maps",
        "Series x rows of each map. kEDM runs on the same cores, on the H200 as kedm-cuda13x.",
        "python bench/compare_kedm.py --device intel\npython bench/compare_kedm.py --device nvidia "
        "--shapes 154x1600,82x10608,2000x3780,1000x8528,8000x96",
        cross_maps,
    ),
    (
        "Recurrence quantification",
        "m = 5, tau = 3. The axis is logarithmic. What is called exact, the default, decides cells near the radius in "
        "float64.",
        "python bench/compare_pyrqa.py --sizes 20000 --repeat 7\npython bench/compare_pyrqa.py --device nvidia "
        "--sizes 1043112 --variants no_overlap --peer-edges 65000",
        recurrence,
    ),
    (
        "S-map and convergent cross mapping",
        "The axis is logarithmic.",
        "python bench/compare_smap.py --cases 1600x3,4000x3,4000x20,nonlinear\n"
        "python bench/compare_ccm.py --device intel",
        other_functions,
    ),
    (
        "Several devices",
        "One call on 1, 2, 4 and 8 GPUs of one machine: maps of the given series x rows, recurrence of points. "
        "Of the largest map a share of the libraries was measured, and the time of the whole follows from it.",
        "python bench/scale_devices.py --device gpus --ways devices",
        devices,
    ),
)


def setup(app):
    app.connect("builder-inited", write_page)
    return {"parallel_read_safe": True}


def write_page(app):
    folder = Path(app.srcdir) / COPIES
    folder.mkdir(exist_ok=True)
    text = [HEAD]
    for title, what, commands, draw in FIGURES:
        name = f"{draw.__name__}.svg"
        (folder / name).write_text(svg(draw()), encoding="utf-8")
        text += [f"## {title}\n{what}\n", f"![{draw.__doc__}]({name})\n", f"```bash\n{commands}\n```\n"]
    (folder / "benchmarks.md").write_text("\n".join(text), encoding="utf-8")


def svg(figure):
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "pyedmcl"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()

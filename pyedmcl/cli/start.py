"""``pyedmcl devices``, ``doctor``, ``demo``, ``help`` and ``kernel``: what is here, the first steps, and kernels as
texts.
"""

from __future__ import annotations

import difflib
import json as json_module
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DeviceNotFoundError, InputError, PyedmclError
from . import options
from .output import COMPUTE, DEVICE, Talk, write_table

if TYPE_CHECKING:
    from ..device.doctor import Finding
    from ..device.info import DeviceInfo
    from ..device.select import DeviceChoice
    from ..export.kernel_source import KernelSource
    from ..simulate import Network


# ``pyedmcl devices``: what is there, which one would be chosen and why, and what is missing.


_HEADER = ("", "id", "name", "runtime", "kind", "units", "memory", "fp64", "driver")


def devices(
    doctor: Annotated[bool, typer.Option("--doctor", help="Explain what is missing and how to mend it.")] = False,
    device: options.Device = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """List the devices, the one that would be chosen (with --device: for that request), and why."""
    talk = Talk(as_json=json)
    from ..device import select as discover

    trouble: DeviceNotFoundError | None = None
    infos: Sequence[DeviceInfo] = []
    choice: DeviceChoice | None = None
    findings: list[Finding] = []
    try:
        infos = discover.discover_every()
        choice = _choose(device, infos)
    except DeviceNotFoundError as error:
        trouble = error
    if doctor:
        from ..device.doctor import diagnose

        findings = diagnose()
    if infos:
        _table(talk, infos, choice)
    if doctor:
        _doctor(talk, findings)
    talk.document(
        {
            "devices": [_record(info, choice) for info in infos],
            "chosen": None if choice is None else choice.device.id,
            "reason": None if choice is None else choice.reason,
            "problem": None if trouble is None else str(trouble),
            **({"doctor": [vars(finding) for finding in findings]} if doctor else {}),
        }
    )
    if trouble is None:
        return
    if doctor:  # its findings have said the same, with what to do
        raise typer.Exit(DEVICE)
    raise trouble


def _choose(request: str | None, found: Sequence[DeviceInfo]) -> DeviceChoice:
    from ..device.select import select

    return select(request, devices=found)


def _record(info: DeviceInfo, choice: DeviceChoice | None) -> dict[str, Any]:
    from ..device.quirks import quirks_for

    quirks = quirks_for(info)
    return {
        **info.as_dict(),
        "chosen": choice is not None and choice.device == info,
        "unusable": quirks.unusable,
        "instead": quirks.instead or None,
    }


def _table(talk: Talk, found: Sequence[DeviceInfo], choice: DeviceChoice | None) -> None:
    from ..device.quirks import quirks_for

    rows = []
    for info in found:
        mark = "*" if choice is not None and choice.device == info else "x" if quirks_for(info).unusable else ""
        memory = f"{info.global_bytes / (1 << 30):.1f} GiB"
        driver = info.driver if info.driver in info.version else f"{info.driver} ({_short(info.version)})"
        rows.append((mark, info.id, info.name, info.runtime, info.kind, info.compute_units, memory,
                     "yes" if info.fp64 else "no", driver))  # fmt: skip
    talk.table(_HEADER, rows, right=("units", "memory"))
    if choice is not None:
        talk.summary(f"* would be chosen: {choice.device.id} ({choice.reason})")
    for info in found:
        quirks = quirks_for(info)
        if quirks.unusable:
            talk.summary(f"x {info.id} cannot be used: {quirks.unusable}. Instead: {quirks.instead}")


def _short(version: str) -> str:
    return " ".join(version.split()[:2])


def _doctor(talk: Talk, findings: Sequence[Finding]) -> None:
    talk.summary("")
    for finding in findings:
        mend = f"\n         to mend it: {finding.how_to_mend}" if finding.how_to_mend else ""
        talk.summary(f"{finding.level:<7}  {finding.what}{mend}")


# ``pyedmcl doctor``: why a device is not seen, and whether one that is seen computes rightly.


_MOST_SECONDS = 3600


def doctor(
    self_test: Annotated[
        bool, typer.Option("--self-test", help="Compare all kernels with their oracles, and time whole calls.")
    ] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE.md", help="Report of --self-test, to attach to an issue.")
    ] = Path("pyedmcl-self-test.md"),
    seconds: Annotated[float, typer.Option("--seconds", help="How long --self-test goes on beginning steps.")] = 120.0,
    device: options.Device = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:  # fmt: skip
    """Say what keeps a device from being seen; with --self-test, whether a device computes rightly."""
    talk = Talk(quiet=quiet, as_json=json)
    if not 0 < seconds <= _MOST_SECONDS:
        raise InputError(f"--seconds {seconds:g}: a positive number up to {_MOST_SECONDS:,} is needed")
    from ..device.doctor import diagnose

    findings = diagnose()
    if not self_test:
        for finding in findings:
            mend = f"\n         to mend it: {finding.how_to_mend}" if finding.how_to_mend else ""
            talk.summary(f"{finding.level:<7}  {finding.what}{mend}")
        talk.document({"doctor": [vars(finding) for finding in findings]})
        return
    from ..atomic_files import output_path, writing
    from ..device.select import open_device
    from ..tuner.campaign import Outcome, report, summary
    from ..tuner.campaign import self_test as steps

    path = output_path(output, (".md", ".txt"), "the report")
    executor = open_device(device)
    talk.summary(f"{executor.info.id} {executor.info.name}; report: {path}")
    outcomes: list[Outcome] = []
    for outcome in steps(executor, seconds):
        outcomes.append(outcome)
        # Written anew after each step: a driver that takes the process with it leaves what was found.
        with writing(path, "the report") as stream:
            stream.write(report(executor, outcomes, findings).encode())
        talk.summary(f"{outcome.ended:<8} {outcome.name} {outcome.case}".rstrip())
    failed = [outcome for outcome in outcomes if outcome.ended == "failed"]
    talk.document({
        "device": executor.info.as_dict(), "report": str(path),
        "steps": [{"step": o.step, "name": o.name, "case": o.case, "ended": o.ended, "said": o.said,
                   "seconds": None if o.seconds != o.seconds else o.seconds} for o in outcomes],
    })  # fmt: skip
    talk.summary(f"{summary(outcomes)}. Please attach {path} to an issue")
    if failed:
        raise typer.Exit(COMPUTE)


# ``pyedmcl demo``: the main job on a network whose links are known, from nothing to a picture.


_E_MAX = 8  # the maps have few degrees of freedom; larger E would only cost compilation
_TOP = 20


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where to write the files.")
    ] = Path("pyedmcl-demo"),
    device: options.Device = None,
    progress: options.Progress = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Simulate 64 coupled maps, map all pairs and hold the answer against the truth; then quantify recurrence."""
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    start = time.perf_counter()
    _make_folder(output)
    from ..plot.figure import new_figure

    new_figure(1, 1)  # a missing matplotlib is told now and not after the work
    import numpy as np

    import pyedmcl

    from ..plot import heat_map
    from ..simulate import coupled_maps, link_auc

    network = coupled_maps()
    n, names = len(network.names), list(network.names)
    links = _written(network, output)
    talk.summary(f"simulated {n} coupled logistic maps, {len(network.values):,} steps, {len(links)} links")

    data = dict(zip(names, network.values.T, strict=True))
    with talk.progress("finding E") as report:
        scan = pyedmcl.embed_dimension(data, E_max=_E_MAX, progress=report, device=device)
    E = [int(value) for value in scan.E]
    talk.summary(f"embedding dimension: {_counts(E)}")
    with talk.progress("cross mapping") as report:
        result = pyedmcl.xmap(data, E=E, out=output / "map.zarr", resume=False, progress=report, device=device)
    rho = np.asarray(result.rho)
    auc = link_auc(rho, network.links)
    seconds = time.perf_counter() - start

    edges = _judged(result.edges(top=len(links)), network)
    write_table(output / "edges.csv", tuple(edges[0]), [tuple(edge.values()) for edge in edges])
    picture = output / "map.png"
    heat_map(rho, names, picture, links=network.links, title=_title(n, auc))

    if not quiet:
        _tell_strongest(talk, edges, n)
    true = sum(edge["truth"] == "link" for edge in edges)
    talk.summary(
        f"\nROC AUC against the true links: {auc:.3f} (0.5 is guessing, 1 is perfect)\n"
        f"of the {len(edges)} strongest pairs, as many as there are links, {true} are links\n"
        f"{seconds:.1f} s on {_device_name(result.provenance)}, compiling the kernels included\n"
        f"heat map: {picture} (true links are framed); series, links, edges and map are beside it"
    )
    from .demo_recurrence import show

    recurrence = show(output, talk, device)
    talk.summary(
        f"\nnext:     pyedmcl xmap {output / 'series.csv'} -o {output / 'again.zarr'} --edges 10\n"
        f"          pyedmcl rqa {output / 'roessler.csv'} --m 3 --tau 10 --radius 1.3"
    )
    talk.document({
        "output": str(output), "picture": str(picture), "auc": auc, "n_links": len(links),
        "links_among_strongest": true, "E": E, "edges": edges, "seconds": seconds, "recurrence": recurrence,
        "provenance": dict(result.provenance),
    })  # fmt: skip


def _written(network: Network, folder: Path) -> list[tuple[str, str]]:
    """The true links by name; they and the series are written."""
    import numpy as np

    names = list(network.names)
    links = [(names[cause], names[effect]) for cause, effect in np.argwhere(network.links)]
    write_table(folder / "series.csv", names, network.values.tolist())
    write_table(folder / "links.csv", ("cause", "effect"), links)
    return links


def _tell_strongest(talk: Talk, edges: list[dict[str, Any]], n: int) -> None:
    talk.summary(f"\nthe {_TOP} strongest of {n * (n - 1):,} pairs:")
    rows = [(e["cause"], "->", e["effect"], f"{e['rho']:.3f}", e["truth"]) for e in edges[:_TOP]]
    talk.table(("cause", "", "effect", "rho", "in truth"), rows, right=("rho",))


def _make_folder(folder: Path) -> None:
    from ..atomic_files import explained
    from ..errors import StoreForeignError

    if os.path.exists(folder) and not os.path.isdir(folder):
        raise StoreForeignError(f"{folder} exists and is not a folder: name another one with -o")
    if os.path.isdir(folder) and os.listdir(folder) and not os.path.exists(folder / "links.csv"):
        raise StoreForeignError(f"{folder} holds files that no demo has written: name another folder with -o")
    with explained(f"{folder} cannot be created", ", or name another folder with -o"):
        folder.mkdir(parents=True, exist_ok=True)


def _judged(edges: Any, network: Network) -> list[dict[str, Any]]:
    """Edges as cause and effect, each with what it is in truth."""
    place = {name: i for i, name in enumerate(network.names)}
    over_one = network.over_one()
    judged = []
    for edge in edges:
        cause, effect = place[edge.target], place[edge.library]
        truth = "link" if network.links[cause, effect] else "over one other" if over_one[cause, effect] else "no link"
        judged.append({"cause": edge.target, "effect": edge.library, "rho": edge.rho, "E": edge.E, "truth": truth})
    return judged


def _counts(E: list[int]) -> str:
    return ", ".join(f"{E.count(value)} series with E = {value}" for value in sorted(set(E)))


def _title(n: int, auc: float) -> str:
    return f"cross mapping of {n} coupled maps, true links framed, ROC AUC {auc:.3f}"


def _device_name(provenance: Any) -> str:
    device = provenance.get("device", "the device")
    return str(device.get("name", "the device")) if isinstance(device, dict) else str(device)


# ``pyedmcl help``: the pages of the documentation and some of their sections, in a terminal.


#: Sections that are topics of their own: page and heading.
SECTIONS = {
    "files": ("cli", "Input"),
    "maps": ("cli", "Reading a map"),
    "runs": ("cli", "Long runs"),
    "exit-codes": ("cli", "In scripts"),
    "devices": ("install", "Which device is used"),
    "terms": ("guide", "Terms"),
    "sources": ("conventions", "Sources"),
}
_FENCE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
_NOT_TEXT = re.compile(r"<!--.*?-->|^:::\{toctree\}.*?^:::$|^:{3,}.*?$|^:[\w-]+:.*?$", re.DOTALL | re.MULTILINE)


def complete(incomplete: str) -> list[str]:
    """Topics that begin so, for a shell."""
    return [name for name in topics() if name.startswith(incomplete)]


def help(
    context: typer.Context,
    topic: Annotated[
        str | None,
        typer.Argument(metavar="[TOPIC]", help="A topic, or a command.", autocompletion=complete, show_default=False),
    ] = None,
    debug: options.Debug = False,
) -> None:
    """Read about a topic (conventions, devices, exit-codes, files, glossary, ...); without one, list all topics."""
    if topic is None:
        Talk().table(("topic", "about"), list(topics().items()))
        return
    name = topic.strip().lower().removesuffix(".md").replace(" ", "-")
    if name in topics():
        _show(text_of(name))
        return
    parent = context.find_root()
    command = parent.command.get_command(parent, topic)  # type: ignore[attr-defined]
    if command is None:
        near = difflib.get_close_matches(name, topics(), 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise typer.BadParameter(f"no topic {topic!r}; {hint}'pyedmcl help' lists all", param_hint="TOPIC")
    with command.make_context(topic, [], parent=parent, resilient_parsing=True) as topic_context:
        typer.echo(command.get_help(topic_context))


def topics() -> dict[str, str]:
    """All topics with their titles: sections first, then pages."""
    return {name: heading for name, (_, heading) in SECTIONS.items()} | {
        page: _help_title(_page(page)) for page in _pages()
    }


def text_of(topic: str) -> str:
    """Text of a topic as Markdown, in which links to other pages say how to read those."""
    page, heading = SECTIONS.get(topic, (topic, None))
    text = _page(page)
    parts = _FENCE.split(text if heading is None else section(text, heading))
    parts[::2] = [_NOT_TEXT.sub("", _LINK.sub(_link, part)) for part in parts[::2]]
    return "".join(parts).strip() + "\n"


def section(text: str, heading: str) -> str:
    """A section of a page with its heading; empty where there is none."""
    parts = re.split(r"^(?=## )", _FENCE.sub(lambda fence: fence[0].replace("\n#", "\n\0#"), text), flags=re.MULTILINE)
    sections = (part for part in parts if part.partition("\n")[0].strip() == f"## {heading}")
    return next(sections, "").replace("\0", "")


def _pages() -> tuple[str, ...]:
    from ..kernels.texts import names_of

    return tuple(name.removesuffix(".md") for name in names_of("docs", ".md"))


def _page(name: str) -> str:
    from ..kernels.texts import read_text

    return read_text("docs", f"{name}.md")


def _help_title(text: str) -> str:
    return next((line[2:] for line in text.splitlines() if line.startswith("# ")), "")


def _link(match: re.Match[str]) -> str:
    picture, text, target = match.groups()
    if picture:
        return f"(picture: {text})"
    page = target.partition("#")[0]
    if "://" in target:
        return f"{text} <{target}>"
    name = page.removesuffix(".md")
    return f"{text} ('pyedmcl help {name}')" if page.endswith(".md") and name in _pages() else text


def _show(text: str) -> None:
    """In a terminal laid out and page by page, else as it is written."""
    if not sys.stdout.isatty():
        typer.echo(text, nl=False)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    os.environ.setdefault("LESS", "-FRX")  # colours, and no paging of what fits on the screen
    console = Console()
    with console.pager(styles=True):
        console.print(Markdown(text, hyperlinks=False))


# ``pyedmcl kernel``: write kernels as texts (or SPIR-V) that other programs use without pyedmcl.


def kernel(
    kernel: Annotated[
        str | None, typer.Argument(metavar="[KERNEL]", show_default=False, help="knn, lookup, recurrence_bits, ...")
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="A folder; made where it is not there.")
    ] = Path("kernels"),
    E: Annotated[
        str | None, typer.Option("--E", metavar="E[:E]", show_default=False, help="Dimension, or first and last.")
    ] = None,
    tau: Annotated[int | None, typer.Option("--tau", help="Lag into the past, in steps.", show_default=False)] = None,
    k: Annotated[int | None, typer.Option("--k", help="Neighbours.", show_default=False)] = None,
    dtype: options.Dtype = "float32",
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", show_default=False, help="Any other value; may be repeated."),
    ] = None,
    device: options.Device = None,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="NAME", show_default=False,
                     help="A device that is not at hand: gfx90a, gfx942, gfx1100, gfx1201, Gen9, Xe-LP, Xe-HPG, "
                          "Xe-HPC, nvidia, amd, intel-gpu, cpu."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All kernels, as usual problems have them.")] = False,
    spirv: Annotated[
        bool, typer.Option("--spirv/--text", help="Write a SPIR-V module as well, with ocloc or clang and llvm-spirv.")
    ] = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:  # fmt: skip
    """Write a kernel's OpenCL C for a device, specialised and tuned, with a description and a C header."""
    talk = Talk(quiet=quiet, as_json=json)
    if every == (kernel is not None):
        raise InputError("the name of a kernel or --all is needed, and not both")
    from ..export.kernel_source import every_source, kernel_source

    if kernel is not None:
        named = {"E": _dimensions(E), "tau": tau, "k": k}
        values_by_name = {name: value for name, value in named.items() if value is not None} | _values(values or [])
        if dtype != "float32":
            values_by_name["dtype"] = dtype
        sources = [kernel_source(kernel, device=device, target=target, **values_by_name)]
    else:
        if E or tau or k or values or dtype != "float32":
            raise InputError("--all writes kernels as usual problems have them; name one kernel to give it values")
        sources = list(every_source(device, target))
    written, failed = [], []
    for source in sources:
        files = source.save(output)
        if spirv:
            try:
                files.append(_compiled(source, output))
            except PyedmclError as error:
                if not every:
                    raise
                failed.append({"kernel": source.kernel, "reason": str(error)})
        written.append({"kernel": source.kernel, "files": [str(path) for path in files]})
        talk.summary(f"{source.kernel:<22} {', '.join(path.name for path in files)}")
    for failure in failed:
        talk.summary(f"{failure['kernel']}: no SPIR-V, {failure['reason']}")
    talk.document({"folder": str(output), "kernels": written, "failed": failed})


def _compiled(source: KernelSource, folder: Path) -> Path:
    from ..atomic_files import writing
    from ..device.sycl import compile_spirv

    path = folder / f"{source.kernel}.spv"
    module = compile_spirv(source.text, source.options)
    with writing(path, "the module") as stream:
        stream.write(module)
    return path


def _dimensions(text: str | None) -> int | tuple[int, ...] | None:
    if text is None:
        return None
    first, _, last = text.partition(":")
    try:
        numbers = tuple(range(int(first), int(last or first) + 1))
    except ValueError:
        raise InputError(f"--E {text}: a whole number, or the first and the last as 1:5") from None
    if not 0 < len(numbers) <= 100:
        raise InputError(f"--E {text}: between 1 and 100 dimensions, the smaller one first")
    return numbers[0] if len(numbers) == 1 else numbers


def _values(words: list[str]) -> dict[str, Any]:
    """NAME=VALUE as Python values: numbers, true, false, or text."""
    parsed: dict[str, Any] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign or not name.isidentifier():
            raise InputError(f"--set {word}: NAME=VALUE is needed")
        try:
            parsed[name] = json_module.loads(text)
        except (ValueError, RecursionError):
            parsed[name] = text
    for own in ("kernel", "device", "target", "tune"):
        if own in parsed:
            raise InputError(f"--set {own}=...: this is an option of its own")
    return parsed

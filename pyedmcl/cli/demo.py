"""``pyedmcl demo``: the main job on a network whose links are known, from nothing to a picture."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .files import write_table
from .talk import Talk

if TYPE_CHECKING:
    from ..simulate import Network

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
    from ..errors import StoreForeignError
    from ..files import explained

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

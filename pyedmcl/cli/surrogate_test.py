"""``pyedmcl surrogate-test``: is cross-map skill more than chance? One pair, or all pairs of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ..registry import BUDGET
from . import options
from .ccm import two_series
from .ccm_options import First, Interval, Second, Seed, parse_pair_E
from .files import check_pictures, check_result, write_result
from .inputs import load, load_groups, parse_columns, parse_E, parse_or_auto, parse_rule
from .talk import Talk

if TYPE_CHECKING:
    from ..edm.significance.significance import CcmSignificance
    from ..edm.significance.xmap_significance import XmapSignificance

_PAIR = ("cause", "effect", "library", "target", "rho", "surrogates_q95", "p_value", "q_value")
_PAIRS = ("cause", "effect", "library", "target", "rho", "p_value", "q_value", "E", "E_of")
_SHOWN = 20


def surrogate_test(
    input: options.Input,
    E: Annotated[
        str,
        typer.Option("--E", metavar="auto|E|E,E", rich_help_panel="Embedding",
                     help="Embedding dimension: of a pair, or as for xmap (of the targets; auto finds it)."),
    ] = "auto",
    x: First = None,
    y: Second = None,
    surrogate: Annotated[
        str,
        typer.Option("--surrogate", "--method", metavar="auto|phase|shuffle|iaaft|twin|seasonal",
                     help="What surrogates keep; auto looks at each series."),
    ] = "auto",
    n: Annotated[
        str,
        typer.Option("--n", metavar="auto|N",
                     help="Surrogates of each target; auto draws as many as it takes to decide at --rate."),
    ] = "auto",
    budget: Annotated[
        int, typer.Option("--budget", help="For --n auto: surrogates of a pair, as a mean over all pairs.")
    ] = BUDGET,
    seed: Seed = None,
    period: Annotated[
        float | None, typer.Option("--period", help="Rows of a cycle (12, 12.42); looked for by default.",
                          show_default=False)
    ] = None,
    rate: Annotated[
        float, typer.Option("--rate", help="False discovery rate at which pairs are called significant.")
    ] = 0.05,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PAIRS.csv", show_default=False,
                     help="Write skill, p-value and q-value of each pair (.csv, .tsv, .json), or the whole result "
                     "(.edm)."),
    ] = None,
    picture: options.Picture = None,
    network: options.Network = None,
    tau: options.Tau = 1,
    Tp: Interval = 0,
    exclusion_radius: options.Exclusion = 0,
    knn: options.Knn = None,
    E_max: options.EMax = 20,
    E_rule: options.ERule = "best",
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    groups: options.Groups = None,
    regular: options.Regular = None,
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    dtype: options.Dtype = "float32",
    device: options.Device = None,
    progress: options.Progress = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Test whether cross-map skill is more than chance, by random surrogates in the place of the target.

    With --x and --y for one pair in both directions; without for all pairs, adjusted for their number.
    """
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    check_result(output)
    check_pictures(picture, network)
    if not 0 < rate < 1:
        raise typer.BadParameter(f"--rate {rate:g}: a number between 0 and 1 is needed")
    of_pair = x is not None or y is not None
    held = (None if x is None else [x]) if of_pair else parse_columns(columns)
    labels = load_groups(input, held, groups, dataset, needed="--x and --y" if of_pair else "--columns")
    import pyedmcl

    shared: dict[str, Any] = {
        "regular": regular,
        "tau": tau, "Tp": Tp, "surrogate": surrogate, "seed": seed, "period": period, "knn": knn, "dtype": dtype,
        "exclusion_radius": exclusion_radius, "device": device, "n": parse_or_auto(n, "--n", 1), "rate": rate,
        "budget": budget, "E_max": E_max, "E_rule": parse_rule(E_rule), "groups": labels,
    }  # fmt: skip
    tested: _Tested
    if of_pair:
        if columns is not None:
            raise typer.BadParameter("--columns: of a pair only --x and --y are named")
        if network is not None:
            raise typer.BadParameter("--network: a pair has no network; leave --x and --y out for all pairs")
        tested = _of_a_pair(pyedmcl.ccm_significance(
            *two_series(input, x, y, time_column, dataset), E=parse_pair_E(E), **shared
        ))  # fmt: skip
        if picture is not None:
            tested.result.plot(str(picture))
    else:
        series = load(input, parse_columns(columns), time_column, dataset)
        with talk.progress("surrogates") as report:
            tested = _of_all_pairs(pyedmcl.xmap_significance(series, E=parse_E(E), progress=report, **shared))
        if picture is not None:
            tested.result.plot(str(picture), rate)
        if network is not None:
            tested.result.plot_network(str(network), rate)
    result, header, rows = tested.result, tested.header, tested.rows
    if output is not None:
        write_result(output, result, header, rows)
    place = header.index("q_value")
    hits = [row for row in rows if row[place] <= rate]
    where = f"; pairs in {output}" if output is not None else ""
    talk.summary(f"{len(hits)} of {len(rows)} directions are significant at a false discovery rate of {rate:g} "
                 f"({'up to ' if n == 'auto' else ''}{result.n:,} surrogates by {surrogate}, seed {result.seed}; no p "
                 f"can be below {result.smallest_p:.2g}, and no q of a single pair below {result.smallest_q:.2g})"
                 f"{where}")  # fmt: skip
    talk.remark_on_surrogates(tested.targets, result.reasons)
    shown = rows if of_pair else hits[:_SHOWN]
    if shown and not quiet:
        talk.table(header, [[f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row] for row in shown],
                   right=header[4:])  # fmt: skip
    talk.remark_on_arrows(tested.n_series, len(hits))
    talk.document({"surrogate": surrogate, "n": result.n, "seed": result.seed, "rate": rate, "significant": len(hits),
                   "smallest_p": result.smallest_p, "smallest_q": result.smallest_q,
                   "pairs": [dict(zip(header, row, strict=True)) for row in rows],
                   "output": None if output is None else str(output)})  # fmt: skip


class _Tested(NamedTuple):
    """What a test found, as rows of a table below ``header``.

    Attributes
    ----------
    targets : list of str
        Those whose kind of surrogates has a reason; empty where the kind was named.
    """

    result: Any
    header: tuple[str, ...]
    rows: list[list[Any]]
    n_series: int
    targets: list[str]


def _of_a_pair(pair: CcmSignificance) -> _Tested:
    """Both directions."""
    import numpy as np

    from ..io.roles import roles

    rows = [[*roles(*pair.links[d]), float(pair.rho[d]), float(np.nanquantile(pair.surrogates[d], 0.95)),
             float(pair.p_value[d]), float(pair.q_value[d])] for d in (0, 1)]  # fmt: skip
    return _Tested(pair, _PAIR, rows, 2, [link[1] for link in pair.links] if pair.reasons else [])


def _of_all_pairs(result: XmapSignificance) -> _Tested:
    """Pairs off the diagonal, the highest skill first."""
    from ..io.roles import roles

    names, n = result.names, len(result.names)
    rows = [
        [*roles(names[i], names[j]), float(result.rho[i, j]), float(result.p_value[i, j]),
         float(result.q_value[i, j]), int(result.E[j]), "cause"]
        for i in range(n) for j in range(n) if i != j
    ]  # fmt: skip
    rows.sort(key=lambda row: -row[4] if row[4] == row[4] else 2.0)
    return _Tested(result, _PAIRS, rows, n, list(names) if result.reasons else [])

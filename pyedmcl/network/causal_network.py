"""What drives what in a table of series: all tests of all pairs, and a verdict on each."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..convergence.ccm import KERNELS, drawn_from
from ..crossmap.pairs import LaggedMapProblem, PairPredictionsProblem, pairs_in_groups, with_dimensions
from ..device.select import DeviceNames
from ..errors import warn
from ..functions import BUDGET
from ..jobs.claims import begin_of
from ..jobs.runner import ArraySink, Runner, public_function
from ..jobs.steps import KeepingRunner, kept_in
from ..kernels import spec
from ..launch.progress import Progress
from ..results.saved import save_result
from ..series.groups import Layout, take_groups
from ..series.scaling import Prepared
from ..series.series import Series, as_series
from ..states import arguments
from ..surrogates.makers import parts_of
from ..surrogates.surrogate import Seasons, seasons_of, tell_lost
from .legs import (
    Legs,
    LegsOfNetwork,
    check_size,
    lags_asked,
    latest_asked,
    longest_memory,
    memory_of,
    partial_surrogates_asked,
    radius_asked,
)
from .verdicts import HIDDEN, NETWORK_FILE, CausalNetwork

_LEAST_E = 2  # the state of a driven series needs more than its own value
_MEMORIES = 2  # that a state of smooth series spans: few of their rows predict the next one whatever drives them


@public_function
def causal_network(
    data: Any,
    *,
    E: str | int | Sequence[int] = "auto",
    tau: int = 1,
    lags: Sequence[int] | None = (-6, -5, -4, -3, -2, -1, 0, 1, 2, 3),
    latest: int | None = None,
    Tp: int = -1,
    surrogate: str | None = "auto",
    n: int | str = "auto",
    rate: float = 0.05,
    budget: int = BUDGET,
    convergence: bool = True,
    lib_sizes: Any = None,
    sample: int = 10,
    partial: bool = True,
    partial_surrogates: int | None = None,
    forecast: bool = True,
    seed: int | None = None,
    season: str = "remove",
    period: float | None = None,
    recurrence: float = 0.1,
    exclusion_radius: str | int = "auto",
    knn: int | None = None,
    E_max: int = 10,
    E_rule: str | float = "best",
    columns: Sequence[str | int] | str | int | None = None,
    groups: Any = None,
    regular: str | None = None,
    draw: str = "rows",
    out: str | os.PathLike[str] | None = None,
    resume: bool = True,
    join: bool = False,
    part: str | None = None,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: DeviceNames = None,
    client: Any = None,
    tune: str | None = None,
) -> CausalNetwork:
    """Which series drives which, directly or through others, and how is that known?

    A link from cause to effect passes four tests. Its skill, that of the effect's states in estimating the cause, is
    higher than with surrogates of the cause (false discovery rate over all pairs); it grows with the library; it is
    highest at a lag before the effect; and no other series of the table explains it. Each test can be switched off, and
    the result says so. docs/causality.md has the rules.

    Parameters
    ----------
    data : array_like (n_steps, n_series)
        Time along the first axis, NaN for gaps.
    E : "auto", int or sequence of int
        Embedding dimension of each series; its states are what estimates the others. "auto" takes that of the best
        self-prediction, at least 2. Of smooth series (see ``exclusion_radius``) a state spans at least twice the rows
        after which they have forgotten their values (E tau of them), as far as ``E_max`` allows.
    tau : int
        Lag between the coordinates of a state, in steps; at least 1.
    lags : sequence of int or None
        Steps from the states of the effect to the cause (Tp) at which skill is compared; None switches that test off.
    latest : int, optional
        The latest best lag at which a cause is believed. Skill, convergence and surrogates are those of the best lag up
        to there (for surrogates, of each one's own best lag). By default 0 where the series are smooth (half of them
        have a lag-1 autocorrelation above 0.5), since a row then hardly differs from the next one, and -1 elsewhere,
        or where ``lags`` end at 0, so that none would be later (a warning says so).
        With 0 common drivers are told less well.
    Tp : int
        The only lag that is tested where ``lags`` is None.
    surrogate : str or None
        Method of :func:`pyedmcl.surrogate`; None switches that test off.
    n : "auto" or int
        Surrogates of each target. The smallest p-value is 1 / (n + 1): with many pairs, many surrogates are needed.
        "auto" draws them in rounds, and only where it is open whether a pair is significant at the false discovery rate
        ``rate``, until all are decided (but for a chance of 0.001 each) or the ``budget`` is spent.
    rate : float
        False discovery rate at which n="auto" decides; in (0, 1). Also the level of the test of convergence.
    budget : int
        For n="auto": surrogates of a pair, as a mean over all pairs. What pairs that are soon decided leave goes to the
        others, up to 5 times as many for each, and 50 times where no surrogate has reached the skill.
    convergence : bool
        Whether skill must grow with the library: with a gain, and Kendall's tau above 0.5.
    lib_sizes : int or sequence of int, optional
        Rows of a sub-library: more than the neighbours, at most the rows there are; several up to all by default.
    sample : int
        Random sub-libraries of each size.
    partial : bool
        Whether links that others may explain are told from direct ones, by partial cross mapping.
    partial_surrogates : int, optional
        Whether what is left of a link, without the series that explains it best, is also tested against surrogates of
        the cause (``p_partial``): this many of a link, as a mean over all links, at most; fewer where they decide at
        the false discovery rate ``rate``. No verdict depends on it, since of indirect links something is left as well:
        docs/design/networks.md has the figures.
    forecast : bool
        Whether a link that another series explains, or whose order is not clear, is still direct where the cause
        improves forecasts of the effect, beside the effect's own states and its other causes.
    seed : int, optional
        Chooses what is random: the same seed gives the same result, whatever the device. By default a fresh one, which
        the result names.
    season : {"remove", "keep"}
        What is done with a cycle that at least half of the series share, and two at least, and of which there are 10 or
        more: it is removed from these before anything else, or left to the surrogates. A common season is a driver that
        is known.
    period : float, optional
        Rows of a cycle, 12.42 as well as 12, for the surrogates "seasonal" and "auto"; looked for by default, and for
        "seasonal" a warning says what was found. It is also the cycle that ``season`` removes.
    recurrence : float
        Share of pairs of states that count as recurrent in the surrogates "twin"; in (0, 1).
    exclusion_radius : "auto" or int
        Rows that are as near in time or nearer are no neighbours (Theiler 1986). "auto" takes 0, and where the series
        are smooth (half of them have a lag-1 autocorrelation above 0.5) the rows after which they have forgotten
        their values: the lag at which the median of their autocorrelations is below 1 / e.
    knn : int, optional
        Neighbours; the number of coordinates + 1 by default.
    E_max : int
        Largest dimension that is tried for E="auto".
    E_rule : "best", "one-se" or float
        Which E is taken where it is searched: that of the highest rho; the smallest whose rho is at most one standard
        error below it, from the spread of skill over eight parts of the rows; or the smallest within a tolerance of it.
    columns : str, int, or sequence of these, optional
        Which series to take, by name or position; names with a minus before them are left out.
    groups : str, sequence of str, or labels (n_steps,), optional
        Recordings (subjects, plots, replicates) that stand one below the other: columns of the data or levels of its
        index, or a label for each row. No state and no target crosses a border. Each has surrogates of its own rows,
        and a season of its own is removed.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows (an index of dates or numbers, a coordinate, a time column) are not regular,
        which is refused by default. "insert" puts rows of NaN where rows are missing: ranges and masks are moved along,
        and rows of the result are those of the longer table. "ignore" takes the rows as they come. Dates whose index
        has a frequency are regular.
    draw : {"rows", "groups"}
        What sub-libraries are drawn from: single rows of all groups, or whole groups in random order until there are
        enough rows, the last of them in part (Clark et al., Ecology 96, 1174, 2015). Rows of a group resemble each
        other: whole groups tell what the same number of plots or subjects would have told.
    out : path, optional
        Folder in which every finished part of every test is kept, and at last the result, which
        :func:`pyedmcl.open_result` opens. The same call continues there, whatever ended it; one
        with other data or arguments is refused. Without ``seed``, that of the folder is taken.
    resume : bool
        False starts ``out`` afresh.
    join : bool
        Several processes, on any machines that share the folder ``out``, compute one result: each takes blocks that
        nobody has taken, also those of who was lost, and returns when all is done. See ``docs/scale.md``.
    part : str, optional
        "I/N": this process is the I-th (from 1) of N that join, and begins at its share of the blocks; it goes on with
        what others leave. Implies ``join``; by default as the scheduler says (SLURM, Grid Engine, LSF, MPI).
    progress : callable or True, optional
        Called as ``progress(done, total, unit)``, where the unit says what is counted, such as "series"; True shows a
        bar.
    dtype : {"float32", "float64"}
        What the device computes in.
    device : str or sequence of str, optional
        Which device, or several that share the work; see ``pyedmcl devices``.
    client : optional
        Workers of a cluster that compute instead of this process: a ``dask.distributed.Client``, an ``Executor`` of
        ``concurrent.futures`` (spawned processes, MPI, loky), or another object with ``submit``. Each opens ``device``
        where it runs; see ``docs/scale.md``.
    tune : {"never", "cached", "auto", "force"}, optional
        Which tuned parameters kernels take, which changes speed and never the answer; ``PYEDMCL_TUNE`` or "cached" by
        default.

    Returns
    -------
    CausalNetwork
        A table with a row for each pair: ``to_frame()``; sentences: ``statement(cause, effect)``; the network:
        ``plot()``, ``to_networkx()``.

    Raises
    ------
    InputError
        Data or an argument cannot be used; there are fewer than 30 rows.
    DeviceNotFoundError, DeviceMemoryError
        No device matches; a table does not fit.
    StoreForeignError, StoreMismatchError, StoreWriteError
        ``out`` is not ours, belongs to other data or arguments, or cannot be written.
    StoreError
        Others work in the folder ``out``, and this call has not joined.
    Interrupted
        Ctrl-C with ``out``: what was finished is kept.
    ClientError
        Workers of ``client`` cannot be used, or were lost.

    See Also
    --------
    xmap_significance, ccm_matrix, ccm_lagged, partial_ccm : the tests one by one.

    Notes
    -----
    Cost: that of :func:`xmap_significance` and :func:`ccm_matrix`, a cross map for each lag, and for each link that may
    be indirect as many searches as there are series that it may pass through (5 at most), and two for each link that
    a forecast may decide.

    Drivers that are not in the table are not excluded by any of this.

    Sources: cross mapping, Sugihara et al., Science 338, 496 (2012), and its lags, Ye et al., Sci. Rep. 5, 14750
    (2015); exclusion radius, Theiler, Phys. Rev. A 34, 2427 (1986); window of a state, Kugiumtzis, Physica D 95, 13
    (1996); order, Newey and West, Econometrica 55, 703 (1987), and Stouffer et al., The American Soldier, vol. 1,
    Princeton University Press (1949); partial cross mapping, Leng et al., Nat. Commun. 11, 2632 (2020); forecasts,
    Granger, Econometrica 37, 424 (1969); false discovery rate, Benjamini and Hochberg, J. R. Stat. Soc. B 57, 289
    (1995).

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> data = coupled_maps(n_series=4, n_steps=400)
    >>> found = pyedmcl.causal_network(data.values, E=3, seed=1)
    >>> found.verdict.shape  # row = effect, column = cause
    (4, 4)
    """
    where = None if out is None else Path(out)
    begin = begin_of(join, part, where, "out", resume=resume)
    number = None if seed is None and where is not None else arguments.stream(seed)
    legs = Legs(
        surrogate, arguments.surrogates(n),
        rate, budget, convergence,
        sample, lags_asked(lags), 0, partial, forecast,
        partial_surrogates_asked(partial_surrogates, surrogate, partial), number or 0, period, recurrence,
        season, draw,
    )  # fmt: skip
    radius = radius_asked(exclusion_radius)
    rest, of = take_groups(data, groups, "data")
    table = as_series(rest, columns=columns)
    longest = longest_memory(table, of)
    fields, layout = pairs_in_groups(
        table, E=E, tau=tau, Tp=Tp, exclusion_radius=longest if radius is None else radius, knn=knn, E_max=E_max,
        E_rule=E_rule, columns=None, groups=of, dtype=dtype, lags=legs.lags
    )
    check_size(table, fields, legs.lags)
    drawn_from(layout, legs.draw)
    series = fields["data"].series
    seasons = seasons_of(series, legs.surrogate, legs.period, remove=legs.season == "remove", layout=layout)
    parts = [part for _, part in parts_of(seasons.series, layout, "data")]
    tell_lost(parts, legs.surrogate or "")
    memory = memory_of(parts, longest)
    legs = replace(legs, latest=latest_asked(latest, legs.lags, memory))
    if radius is None:
        fields["exclusion_radius"] = memory
    fields["data"] = Prepared(seasons.series, fields["data"].dtype)
    runner = arguments.runner_on(device, fields["data"].dtype, client)
    if where is None:
        return _of(fields, legs, seasons, layout, runner, lib_sizes, memory)
    lagged_problem = LaggedMapProblem(**fields, lags=legs.lags)

    def identity(own: int) -> dict[str, str]:
        return _identity(lagged_problem, replace(legs, seed=own), lib_sizes, series)

    with kept_in(where, begin, runner.infos[0].name, number, identity, resume=resume) as kept:
        legs = replace(legs, seed=arguments.stream(kept.seed))
        keeping = KeepingRunner(runner, kept)
        network = _of(fields, legs, seasons, layout, keeping, lib_sizes, memory)
        save_result(network, where / NETWORK_FILE, of=kept.of)
        keeping.done()
        return network


def _of(
    fields: dict[str, Any], legs: Legs, seasons: Seasons, layout: Layout | None, runner: Runner, lib_sizes: Any,
    memory: int,
) -> CausalNetwork:
    """The network of a table, of which E may still have to be found."""
    problem = with_dimensions(LaggedMapProblem(**fields, lags=()), runner, ArraySink([], []))
    dims = np.array(problem.E, int)
    if problem.E_max is not None:
        dims = np.maximum(dims, min(max(_LEAST_E, -(-_MEMORIES * memory // problem.tau)), problem.E_max))
    fields = fields | {"E": tuple(dims.tolist()), "E_max": None}
    network = LegsOfNetwork(fields, legs, seasons, runner, layout).result(lib_sizes)
    if network.hidden_driver:
        warn(f"of {len(network.names)} series {HIDDEN}: no verdict of this network excludes it")
    return network


def _identity(problem: LaggedMapProblem, legs: Legs, lib_sizes: Any, series: Series) -> dict[str, str]:
    """What decides the network, each as text."""
    from .. import __version__

    sizes = None if lib_sizes is None else [
        arguments.integer("lib_sizes", size) for size in arguments.several("lib_sizes", lib_sizes)
    ]
    kernels = {name: spec(name).digest() for name in (*problem.kernels, *KERNELS, *PairPredictionsProblem.kernels)}
    named = {**problem.arguments(), **asdict(legs), "lib_sizes": sizes, "version of pyedmcl": __version__,
             "kernels": kernels}  # fmt: skip
    return {"data": series.digest(), **{name: json.dumps(value, default=str) for name, value in named.items()}}

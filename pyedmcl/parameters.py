"""The arguments of public functions, a row each: type, check, text of ``help()``, option of the command line, examples.

    python -m pyedmcl.parameters --write
    python -m pyedmcl.parameters --check    # ends with 1 and the names of functions whose docstring is not current

From a row follow the check before a function begins (:func:`checked`), its entry of the Parameters section (the
commands above write it into the file of the function, which needs a checkout), the option of each command that is made
from the function (``cli/methods.py``), and the calls of the tests that try values. An argument that one function has,
or that holds data, describes itself in the docstring of its function: its row has no ``doc``.
"""

from __future__ import annotations

import csv
import functools
import inspect
import math
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ParamSpec, TypeVar

from .errors import InputError, shown
from .functions import LARGEST, MOST_DRAWS, MOST_GENERATED, MOST_NEIGHBOURS, MOST_STEPS

P = ParamSpec("P")
R = TypeVar("R")
Check = Callable[[str, Any], Any]

# Words that arguments take.

SEARCHES = ("exact", "auto", "exhaustive", "pruned", "kdtree", "ivf", "hnsw")
REGULAR = ("insert", "ignore")
FITS = ("simplex", "smap")
MEASURES = ("pearson", "spearman", "rmse", "mae", "nrmse")
DRAWS = ("rows", "groups")
PRECISIONS = ("full", "compact")
SEASONS = ("remove", "keep")
NORMALIZATIONS = ("zscore", "range")
UNITS = ("data", "std", "range", "max_distance", "mean_distance")
THRESHOLDS = ("fixed", "corridor", "recurrence_rate", "neighbours")
CONVENTIONS = ("pyrqa", "accrqa", "recurrenceanalysis", "crqa", "crqa-2.1")
SURROGATES = ("auto", "phase", "shuffle", "iaaft", "twin", "seasonal")
SURROGATES_OF_PROFILES = ("blocks", "shift", "shuffle", "pairs")
INFORMATION = ("binned", "kraskov")

_LONGEST_RANGE = 100_000
_COMMON: tuple[Any, ...] = ("x", "", b"1", object(), {})  # values that hardly any argument takes

# Kinds of values: how they are checked, and written in a shell.


@dataclass(frozen=True)
class Kind:
    """What an argument may be."""

    #: As numpydoc prints it.
    type: str
    #: Name and value -> the value as functions work with it; raises InputError.
    check: Check | None = None
    #: What the option takes: text, unless it is a number, a flag, or a path.
    cast: Any = str
    #: Text of a shell -> value; raises ValueError, after which ``form`` says what is needed.
    read: Callable[[str], Any] | None = None
    form: str = ""
    metavar: str | None = None
    #: Values that are taken, and refused, whatever the data are.
    legal: tuple[Any, ...] = ()
    illegal: tuple[Any, ...] = ()


def whole(least: int | None = None, most: int = LARGEST, meaning: str = "", hint: str = "") -> Kind:
    """An integer."""

    def check(name: str, value: Any) -> int:
        from .arguments import integer

        return integer(name, value, least, meaning, hint, most)

    low = 0 if least is None else least
    beyond = () if least is None else (least - 1,)
    return Kind("int", check, int, legal=(low, low + 1, float(low)), illegal=(*beyond, 0.5, True, math.nan, *_COMMON))


def number(needed: str, allowed: Callable[[float], bool], legal: tuple[float, ...], illegal: tuple[float, ...]) -> Kind:
    """A real number; the message says what is ``needed``."""

    def check(name: str, value: Any) -> float:
        from .arguments import real

        return real(name, value, needed, allowed)

    return Kind("float", check, float, legal=legal, illegal=(*illegal, math.nan, True, *_COMMON))


def word(*words: str, others: str = "") -> Kind:
    """One of some words; ``others`` is what a shell is told where there are too many."""

    def check(name: str, value: Any) -> str:
        from .arguments import choice

        return choice(name, value, words)

    shown = "{" + ", ".join(f'"{one}"' for one in words) + "}"
    return Kind(shown, check, metavar=others or "|".join(words), legal=words, illegal=(1, None, *_COMMON))


def _flag(name: str, value: Any) -> bool:
    from .arguments import boolean

    return boolean(name, value)


def _folder(name: str, value: Any) -> Any:
    from .arguments import folder

    return folder(name, value)


def _reporter(name: str, value: Any) -> Any:
    from .arguments import reporter

    return reporter(name, value)


def _lag(name: str, value: Any) -> int:
    from .arguments import integer

    negative = isinstance(value, int) and value < 0
    hint = f" (pyEDM's tau={value} is tau={-value} here)" if negative else ""
    return integer(name, value, 1, "the lag into the past, in steps", hint, MOST_STEPS)


def _radius(name: str, value: Any) -> int:
    """Steps in time; any that no series is as long as means the same."""
    from .arguments import integer

    return min(integer(name, value, 0), MOST_STEPS)


def _precision(name: str, value: Any) -> str:
    from .arguments import precision

    return precision(value)


def optional(kind: Kind) -> Kind:
    """A value of a kind, or None, which is the default."""
    check = kind.check
    return replace(
        kind, type=f"{kind.type}, optional", legal=(None, *kind.legal),
        check=None if check is None else lambda name, value: None if value is None else check(name, value),
        illegal=tuple(value for value in kind.illegal if value is not None),
    )  # fmt: skip


def or_auto(kind: Kind, least: int) -> Kind:
    """An integer, or "auto"."""
    check = kind.check
    assert check is not None

    def read(text: str) -> str | int:
        return "auto" if text.strip().lower() == "auto" else int(text)

    def checked_or_auto(name: str, value: Any) -> Any:
        if isinstance(value, str) and value != "auto":
            raise InputError(f"{name}={shown(value)}: 'auto' or an integer of at least {least} is needed")
        return value if isinstance(value, str) else check(name, value)

    return replace(
        kind, type='"auto" or int', check=checked_or_auto, cast=str, read=read, metavar="auto|N",
        form=f"'auto' or an integer of at least {least} is", legal=("auto", *kind.legal),
    )  # fmt: skip


def _integers(text: str) -> list[int]:
    """``1,3``, with ranges such as ``-3:3`` that hold both ends."""
    numbers: list[int] = []
    for part in text.split(","):
        ends = [int(end) for end in part.split(":")]
        if len(ends) > 2 or not 0 <= ends[-1] - ends[0] < _LONGEST_RANGE:
            raise ValueError
        numbers += range(ends[0], ends[-1] + 1)
    return numbers


def _one_or_more(read: Callable[[str], list[Any]]) -> Callable[[str], Any]:
    def reading(text: str) -> Any:
        values = read(text)
        return values if len(values) > 1 else values[0]

    return reading


def _numbers(text: str) -> list[float]:
    return [float(item) for item in text.split(",")]


def _ranges(text: str) -> list[tuple[int, int]]:
    """``0:100,150:200`` as pairs."""
    pairs = [(int(first), int(end)) for first, end in (part.split(":") for part in text.split(","))]
    if not pairs:
        raise ValueError
    return pairs


def _sizes(text: str) -> list[int]:
    """``20,50,100`` or ``20:980:60``."""
    if ":" not in text:
        return [int(item) for item in text.split(",")]
    first, last, step = (int(item) for item in text.split(":"))
    if step < 1 or first > last:
        raise ValueError
    return list(range(first, last + 1, step))


def _pair(text: str) -> tuple[int, int]:
    width, step = (int(item) for item in text.split(","))
    return width, step


def _dimensions(text: str) -> str | int | list[int]:
    """``auto``, one E, or one for each series."""
    if text.strip().lower() == "auto":
        return "auto"
    dims = [int(item) for item in text.split(",")]
    return dims if len(dims) > 1 else dims[0]


def _dimensions_of_two(text: str) -> str | int | list[int]:
    dims = _dimensions(text)
    if isinstance(dims, list) and len(dims) > 2:
        raise ValueError
    return dims


def _rule(text: str) -> str | float:
    """A rule by which E is chosen: its name, or a tolerance."""
    try:
        return float(text)
    except ValueError:
        return text


def names(text: str) -> list[str]:
    """The items of a comma-separated list; double quotes keep a comma within a name."""
    items = [item.strip() for item in next(csv.reader([text], skipinitialspace=True), [])]
    if not items or not all(items):
        raise ValueError
    return items


def _or_none(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """``none`` switches off what the argument asks for."""
    return lambda text: None if text.strip().lower() == "none" else read(text)


WHOLE, POSITIVE, COUNT = whole(), whole(1), whole(0)
DIMENSION = whole(1, MOST_STEPS, "the number of lagged values in an embedded point")
LAG = replace(POSITIVE, check=_lag)
NEAR = replace(COUNT, check=_radius)
COORDINATES = whole(1, MOST_STEPS, "the number of coordinates of a point")
LAG_OF_POINTS = whole(1, MOST_STEPS, "the lag, in steps")
NEIGHBOURS = whole(1, MOST_NEIGHBOURS, "the number of neighbours")
THEILER = whole(0, meaning="the number of diagonals to leave out on either side of the main one, plus itself")
PERIOD = number("a number of rows, at least 2", lambda rows: rows >= 2, (5, 12.42), (0, 1))
FLAG = Kind("bool", _flag, bool, legal=(False, True), illegal=(1, None, *_COMMON))
FOLDER = Kind("path, optional", _folder, metavar="FOLDER", illegal=("", b"1", 1, "\0"))
SHARE = number("a number between 0 and 1", lambda value: 0 < value < 1, (0.05, 0.5), (0, 1, -0.1))
INTEGERS = Kind("int or sequence of int", None, read=_integers, form="integers such as 1,3 or a range such as 1:10 are",
                metavar="N,N,...|A:B", legal=(1, (1, 2)), illegal=(0.5, True, *_COMMON))  # fmt: skip
DIMENSIONS = Kind(
    '"auto", int or sequence of int', None, read=_dimensions, metavar="auto|E|E,E,...",
    form="'auto', one integer, or one for each series (3,4,5) is", legal=("auto", 2), illegal=(0, 0.5, *_COMMON),
)  # fmt: skip
DIMENSIONS_OF_TWO = replace(
    DIMENSIONS, type='int, (int, int) or "auto"', read=_dimensions_of_two, metavar="auto|E|E,E",
    form="'auto', an integer, or one for x and one for y such as 2,3, is", legal=("auto", 2, (1, 2)),
)  # fmt: skip
ROWS = Kind("(int, int), sequence of (int, int), or mask of bool, optional", None, read=_ranges, metavar="A:B[,C:D]",
            form="ranges of rows such as 0:100 or 0:100,150:200 are", legal=(None, (0, 30), [(0, 15), (20, 40)]),
            illegal=((30, 0), 0.5, *_COMMON))  # fmt: skip
NAMES = Kind("str, int, or sequence of these, optional", None, read=names, metavar="A,B,...",
             form="names or positions such as x,y or 0,3 are")  # fmt: skip
SIZES = Kind("int or sequence of int, optional", None, read=_sizes, metavar="L,L,...|A:B:STEP",
             form="rows such as 20,50,100, or first:last:step such as 20:980:60, are", legal=(None, 20, [10, 20]),
             illegal=(0, 0.5, True, *_COMMON))  # fmt: skip
WINDOWS = Kind("(int, int), optional", None, read=_pair, metavar="WIDTH,STEP",
               form="the width and the step, such as 300,10, are", legal=(None, (20, 10), [30, 5]),
               illegal=((0, 1), 5, *_COMMON))  # fmt: skip
RULE = Kind('"best", "one-se" or float', None, read=_rule, metavar="RULE", legal=("best", "one-se", 0.05),
            illegal=(-1, 2, True, math.nan, *_COMMON))  # fmt: skip
THETA = Kind("float or sequence of float", None, read=_one_or_more(_numbers), metavar="THETA[,THETA,...]",
             form="a number of at least 0, or several such as 0,1,2, is", legal=(0, 1.5, [0, 2.0]),
             illegal=(-1, math.nan, *_COMMON))  # fmt: skip
RADIUS = Kind("float or sequence", None, metavar="R[,R,...]", legal=(0.3,), illegal=(-1, math.nan, *_COMMON))
METRIC = Kind("str", None, metavar="NAME", legal=("euclidean", "maximum", "manhattan"), illegal=(1, *_COMMON))
SEED = whole(0, 2**63 - 1)
DRAWN = or_auto(whole(1, MOST_DRAWS, hint=", or 'auto'"), 1)

# Functions that have arguments in common.

FORECASTS = ("simplex", "smap", "predict_nonlinear", "predict_interval", "predict_exclusion_radius")
FITTED = ("smap", "predict_nonlinear")
MAPS = ("xmap", "xmap_grid", "xmap_significance", "ccm_matrix", "causal_network", "partial_ccm")
PAIRS = ("ccm", "ccm_lagged", "ccm_significance")
RECURRENCE = ("rqa", "joint_rqa", "windowed_rqa", "rqa_batch", "lag_profile", "recurrence_plot", "distance_plot",
              "recurrence_network")  # fmt: skip
#: Arguments that hold data, which a command reads from its input.
DATA = ("data", "x", "y", "lib", "pred", "query", "target", "targets", "given", "series", "p_values", "result")

_EMBEDDING, _ROWS, _RUN, _SAMPLES = "Embedding", "Rows", "Running", "Random libraries"
_STATES, _LEGS = "Recurrence", "Tests"


@dataclass(frozen=True)
class Argument:
    """An argument of some functions."""

    name: str
    kind: Kind
    #: As ``help()`` prints it; empty where a function describes it itself.
    doc: str = ""
    #: The line of --help; empty where it is no option.
    help: str = ""
    #: Heading below which --help shows it.
    panel: str | None = None
    option: str = ""
    metavar: str = ""
    #: Functions that this row is for; by default all that have no row of their own.
    of: tuple[str, ...] = ()
    #: What the docstrings of some functions say beside ``doc``.
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def flag(self) -> str:
        """How a shell calls it."""
        return self.option or "--" + self.name.replace("_", "-")

    def entry(self, function: str) -> str:
        """Its entry in the Parameters section of a function."""
        text = " ".join(filter(None, (self.doc, self.more.get(function))))
        lines = textwrap.wrap(text, 112, break_long_words=False, break_on_hyphens=False)
        return "\n".join([f"{self.name} : {self.kind.type}", *(f"    {line}" for line in lines)])


_GROUPS = Kind("str, sequence of str, or labels (n_steps,), optional")
_STATE = Kind("sequence of str or int, optional", None, read=names, metavar="A,B,...",
              form="names or positions such as x,y or 0,3 are")  # fmt: skip
_DEVICE = Kind("str or sequence of str, optional")
_SURROGATE = replace(word(*SURROGATES), type="str")
_AHEAD = "Steps ahead to predict."
_LAG = "Lag into the past, in steps."
_NEAR = "Rows with |t - j| up to this are no neighbours (0: the row itself)."

ARGUMENTS = (
    # Data, which a command reads from its input.
    Argument("lib", Kind("array_like (n,) or (n, columns)"), "The library series, time along the first axis, NaN for "
             "gaps. Of several columns each is embedded."),
    Argument("pred", Kind("array_like (m,) or (m, columns), optional"), "Another series to predict; by default ``lib`` "
             "itself, leaving each row out of its own neighbours."),
    Argument("target", Kind("array_like (n,), optional"), "Series of the library's length whose values are predicted; "
             "``lib`` by default, needed where that has several columns.", of=FORECASTS),
    Argument("targets", Kind("optional"), "What is predicted, where that is not the libraries themselves: names or "
             "positions of columns of ``data``, or other series over the same rows, in any of the forms of ``data``.",
             more={"xmap": "The map is then (n_libraries, n_targets), and costs a search for each library and a lookup "
                           "for each pair. Series without names are called y0, y1, and so on."}),
    Argument("x", Kind("array_like (n,) or (n, columns)"), "The first variable, time along the first axis, NaN for "
             "gaps. Of several columns each is embedded, and the first is what is predicted.", of=PAIRS),
    Argument("y", Kind("array_like (n,) or (n, columns)"), "The second variable, as long as the first.", of=PAIRS),
    Argument("x", Kind("array_like (n,) or (n, d)"), "A series; d series, whose values at one time are one state; or, "
             "with ``embedded``, n points of d coordinates. NaN marks gaps: a point that touches one recurs with no "
             "point and belongs to no cell.",
             of=("rqa", "windowed_rqa", "recurrence_plot", "distance_plot", "recurrence_network")),
    Argument("y", Kind("array_like, optional"), "A second series, of another length perhaps: cross recurrence of the "
             "points of x and y. The plot has x along its horizontal axis, so that vertical lines stay at one point of "
             "x (of y with convention \"recurrenceanalysis\").", of=("rqa", "recurrence_plot", "distance_plot")),
    # Embedding.
    Argument("E", optional(DIMENSION), "Embedding dimension, at least 1; with ``embedded`` the number of columns.",
             "Embedding dimension; left out with --embedded.", _EMBEDDING, of=FORECASTS),
    Argument("E", DIMENSION, "Embedding dimension, at least 1.", of=("knn",)),
    Argument("E", DIMENSIONS, "Embedding dimension of the targets: one for all, or one each. \"auto\" finds each "
             "series' own by :func:`pyedmcl.embed_dimension` with ``E_max``, ``E_rule`` and Tp = 1.",
             "Embedding dimension of the targets; auto finds each one's own.", _EMBEDDING,
             of=("xmap", "xmap_significance")),
    Argument("E", DIMENSIONS, help="Embedding dimension of the libraries; auto finds each one's own.",
             panel=_EMBEDDING, of=("ccm_matrix",)),
    Argument("E", DIMENSIONS, help="Embedding dimension of each series; auto finds each one's own, of at least 2.",
             panel=_EMBEDDING, of=("causal_network",)),
    Argument("E", DIMENSIONS, of=("partial_ccm",)),
    Argument("E", DIMENSIONS_OF_TWO, "Lags of the embedding of x and of y; \"auto\" finds those at which each predicts "
             "itself best.", "Embedding dimension, or one for x and one for y; auto, the default, finds each one's "
             "own.", _EMBEDDING, of=PAIRS, more={"ccm": "The default, unless ``embedded``."}),
    Argument("E", INTEGERS, help="Dimensions, or a range such as 1:20.", panel=_EMBEDDING, metavar="E[,E,...]",
             of=("xmap_grid", "embedding_scan")),
    Argument("E", DIMENSION, "Lags of each series, at least 1.", "Lags of each series to choose from.", _EMBEDDING,
             of=("multiview", "embed")),
    Argument("E", DIMENSION, "Embedding dimension of the states that \"twin\" compares.", of=("surrogate",)),
    Argument("E", Kind("int or sequence of int, optional"), of=("kernel_source",)),
    Argument("tau", LAG, "Lag between the coordinates of a state, in steps; at least 1.", _LAG, _EMBEDDING),
    Argument("tau", INTEGERS, help="Lags, or a range.", panel=_EMBEDDING, metavar="TAU[,TAU,...]",
             of=("xmap_grid", "embedding_scan")),
    Argument("tau", LAG_OF_POINTS, help="Lag between the values of a state, in steps.", panel=_STATES,
             doc="Lag between the coordinates of a point, in steps; at least 1.", of=RECURRENCE),
    Argument("tau", optional(LAG), of=("kernel_source",)),
    Argument("Tp", WHOLE, "Steps ahead; 0 or negative are allowed.", _AHEAD, _EMBEDDING),
    Argument("Tp", WHOLE, "Steps from library row to target; 0 or negative are allowed.",
             "Steps from library state to target value.", _EMBEDDING,
             of=("xmap", "xmap_significance", "ccm_matrix", "partial_ccm", "ccm", "ccm_significance"),
             more={"partial_ccm": "Where effects follow after some steps, -1 or less suits better than 0."}),
    Argument("Tp", WHOLE, of=("knn",)),
    Argument("Tp", WHOLE, help="The only lag that is tested with --lags none.", panel=_LEGS, of=("causal_network",)),
    Argument("Tp", INTEGERS, help="Steps ahead: a list, or from A to B.", panel=_EMBEDDING,
             of=("predict_interval", "embedding_scan")),
    Argument("Tp", INTEGERS, help="Steps from library state to target value, or a range.", panel=_EMBEDDING,
             of=("xmap_grid", "ccm_lagged")),
    Argument("exclusion_radius", NEAR, _NEAR, "Neighbours up to this many steps away in time are left out; 0 leaves "
             "out the row itself.", _EMBEDDING, metavar="STEPS",
             more={"knn": "Without effect with ``query``.",
                   **dict.fromkeys(FORECASTS[:4], "Without effect with ``pred``."),
                   "embedding_scan": "With tau > 1, rows that are near in time are near in state: take some (E - 1) "
                                     "tau to compare lags."}),
    Argument("exclusion_radius", INTEGERS, help="Neighbours up to this many steps away are left out: a list, or from "
             "A to B.", panel=_EMBEDDING, of=("predict_exclusion_radius",)),
    Argument("exclusion_radius", or_auto(NEAR, 0), panel=_EMBEDDING, metavar="auto|STEPS", of=("causal_network",),
             help="Neighbours up to this many steps away in time are left out; auto: as long as smooth series "
                  "remember, else 0."),
    Argument("knn", optional(NEIGHBOURS), "Neighbours; the number of coordinates + 1 by default.",
             "Neighbours (default: the number of coordinates + 1).", _EMBEDDING,
             more=dict.fromkeys(("xmap", "xmap_grid", "ccm", "ccm_matrix"), "Of method \"simplex\".")),
    Argument("knn", optional(POSITIVE), "Only the ``knn`` nearest library rows enter a fit; all by default.",
             "Library rows in a fit, the nearest ones (default: all).", _EMBEDDING, of=FITTED),
    Argument("k", optional(NEIGHBOURS), of=("knn", "kernel_source")),
    Argument("k", POSITIVE, of=("mutual_information",)),
    Argument("method", word(*FITS), "How rows are predicted: by their nearest neighbours, or by linear fits to all "
             "rows of the library that are weighted by nearness, as :func:`pyedmcl.smap` makes them.",
             "Predict by nearest neighbours, or by linear fits weighted by nearness.", _EMBEDDING,
             more={"ccm": "A fit is made for each row and sample, which is slower.",
                   "ccm_matrix": "The sub-libraries of a seed are the same."}),
    Argument("method", word(*INFORMATION), of=("mutual_information",)),
    Argument("method", word(*SURROGATES), of=("surrogate",)),
    Argument("theta", THETA, help="Localisation; 0 is one linear fit for all rows.", panel=_EMBEDDING, of=("smap",)),
    Argument("theta", THETA, help="Localisations to try.", panel=_EMBEDDING, of=("predict_nonlinear",)),
    Argument("theta", replace(THETA, type='float, sequence of float, or "best"', read=lambda text: text if
             text.strip() == "best" else _one_or_more(_numbers)(text), legal=(0, 1.5)),
             help="Localisation of --method smap; best tries several and keeps the highest skill of each pair.",
             panel=_EMBEDDING, metavar="THETA|best", of=("xmap",)),
    Argument("theta", optional(THETA), help="Predict by linear fits of such localisation.", panel=_EMBEDDING,
             of=("xmap_grid",)),
    Argument("theta", Kind("float", None, float, legal=(0, 1.5), illegal=(-1, math.nan, *_COMMON)),
             "Localisation of method \"smap\", at least 0.", "Localisation of --method smap.", _EMBEDDING,
             of=("ccm", "ccm_matrix")),
    Argument("ridge", number("a finite number of at least 0", lambda value: 0 <= value < math.inf, (0, 0.5),
             (-1, math.inf)), "Penalty of linear fits on the squared slopes, as solver \"ridge\" of "
             ":func:`pyedmcl.smap` has it; 0 for none.", "Penalty of linear fits on the squared slopes.", _EMBEDDING),
    Argument("solver", Kind('"svd", "ridge", "lasso", "elasticnet" or a scikit-learn estimator',
             metavar="svd|ridge|lasso|elasticnet", legal=("svd", "ridge"), illegal=("x", 1)),
             "\"svd\" is least squares, of least norm where the fit is not unique. \"ridge\" adds alpha |c|^2. Both "
             "are computed on the device. The others are fitted row by row on the host, with W^2 as sample weights "
             "where the estimator takes them, else on columns and target multiplied by W.",
             "How fits are solved.", _EMBEDDING),
    Argument("alpha", Kind("float", None, float, legal=(0.5, 1), illegal=("x", math.nan)), "Penalty of \"ridge\", and "
             "``alpha`` of scikit-learn's Lasso and ElasticNet; above 0.", "Penalty of the solvers other than svd.",
             _EMBEDDING),
    Argument("coefficients", optional(word("mean"))),
    Argument("singular_values", FLAG),
    Argument("E_max", POSITIVE, "Largest dimension that is tried for E=\"auto\".",
             "Largest dimension that --E auto tries.", _EMBEDDING),
    Argument("E_max", POSITIVE, "Largest dimension that is tried, at least 1.", "Largest E that is tried.", _EMBEDDING,
             of=("embed_dimension", "false_neighbors", "suggest")),
    Argument("E_max", POSITIVE, help="Dimension for which there should be rows enough.", of=("check",)),
    Argument("E_rule", RULE, "Which E is taken where it is searched: that of the highest rho; the smallest whose rho "
             "is at most one standard error below it, from the spread of skill over eight parts of the rows; or the "
             "smallest within a tolerance of it.", "Which E is taken where it is searched: best; one-se, the smallest "
             "within a standard error of the best; or a tolerance of rho such as 0.02.", _EMBEDDING,
             more={"embed_dimension": "\"one-se\" is not available with ``target`` or chosen rows."}),
    Argument("state", _STATE, "Columns of ``lib`` that together are one state, by name or position; of ``pred`` too, "
             "where it is a table.", of=FORECASTS),
    Argument("state", _STATE, "Columns of ``x`` that together are one state, by name or position; of ``y`` too, where "
             "it is a table."),
    Argument("embedded", FLAG, "The columns of ``lib`` are the coordinates themselves; E is then their number.",
             "The columns are the coordinates themselves.", _EMBEDDING, of=FORECASTS),
    Argument("embedded", FLAG, "The columns of x and y are the coordinates of states themselves.", of=("ccm",)),
    Argument("embedded", FLAG, "``x`` (and ``y``) hold points: the columns are the coordinates themselves.",
             "The columns are the coordinates of points themselves.", _STATES, of=("rqa", "joint_rqa", "windowed_rqa",
             "recurrence_plot", "distance_plot", "recurrence_network")),
    Argument("embedded", FLAG, "Each series holds points: its columns are the coordinates themselves.",
             of=("rqa_batch", "lag_profile")),
    Argument("D", optional(POSITIVE), help="Coordinates of a view (default: the number of series).", panel=_EMBEDDING),
    Argument("n_views", optional(POSITIVE), help="How many views are averaged (default: the square root of their "
             "number).", option="--views"),
    Argument("exclude_target", FLAG, help="No view holds the target itself."),
    Argument("ratio", number("a positive number", lambda value: value > 0, (10, 15.5), (0, -1))),
    Argument("size", number("a positive number", lambda value: value > 0, (1, 2.5), (0, -1))),
    Argument("bins", whole(2, 1 << 12)),
    # Rows.
    Argument("columns", NAMES, "Which series to take, by name or position; names with a minus before them are left "
             "out."),
    Argument("columns", NAMES, of=("multiview", "rqa_batch")),
    Argument("groups", _GROUPS, "Recordings (subjects, plots, replicates) that stand one below the other: columns of "
             "the data or levels of its index, or a label for each row. No state and no target crosses a border.",
             "Columns whose combinations tell recordings apart that stand one below the other, such as site,plot: no "
             "state crosses a border. Say which columns hold values, too.", metavar="A,B,...",
             more={"knn": "Of equal distances the row of the earlier group comes first.",
                   **dict.fromkeys(FORECASTS[:4], "Predictions are of each row with all its lags, group by group. "
                                   "With ``pred``, that is in groups where it has that column or level."),
                   "embed": "The first rows of each have no lags.",
                   "check": "Each is looked at by itself; what several have is said once.",
                   "causal_network": "Each has surrogates of its own rows, and a season of its own is removed.",
                   **dict.fromkeys(("xmap_significance", "ccm_significance", "surrogate"),
                                   "Each has surrogates of its own rows.")}),
    Argument("groups", _GROUPS, of=("rqa_batch",), metavar="A,B,...",
             help="Columns whose combinations tell recordings apart that stand one below the other, such as "
                  "subject,channel: each is quantified by itself. Say which columns hold values, too."),
    Argument("regular", optional(word(*REGULAR)), "What is done where times of rows (an index of dates or numbers, a "
             "coordinate, a time column) are not regular, which is refused by default. \"insert\" puts rows of NaN "
             "where rows are missing: ranges and masks are moved along, and rows of the result are those of the longer "
             "table. \"ignore\" takes the rows as they come. Dates whose index has a frequency are regular.",
             "Where times say that rows are missing or uneven, which is refused: insert puts empty rows between, "
             "ignore takes the rows as they come."),
    Argument("regular", word(*REGULAR), help="Where times say that rows are missing: insert puts empty rows between, "
             "ignore takes the rows as they come.", of=("check",)),
    Argument("lib_range", ROWS, "Rows of the library: ranges begin <= t < end, 0-based, in which lags and targets of a "
             "row lie, too; or a mask, whose rows are taken as they are.",
             "Library rows, from A up to but not B, counted from 0.", _ROWS, "--lib",
             more={"embed_dimension": "Of a range each E uses the rows that have E lags.",
                   "xmap": "E=\"auto\" is found from all rows.",
                   **dict.fromkeys(("ccm", "ccm_matrix", "ccm_lagged", "ccm_significance"),
                                   "Sub-libraries are drawn from these.")}),
    Argument("pred_range", ROWS, "Rows that are predicted, in the same form; their lags may lie before them.",
             "Rows that are predicted, likewise.", _ROWS, "--pred",
             more={"ccm_matrix": "One range without holes."}),
    Argument("valid_lib", Kind("mask of bool (n_steps,), optional", metavar="COLUMN"), "Rows that may be used, in "
             "addition to ``lib_range`` (conditional embedding).",
             "A column of the input: library rows are those where it is neither 0 nor empty.", _ROWS),
    Argument("folds", optional(whole(2)), help="Predict K stretches of rows, each from the others; the mean skill.",
             panel=_ROWS, metavar="K"),
    Argument("windows", WINDOWS, "Width of windows that move along the rows, and rows from one to the next: the result "
             "of each window's rows by themselves.",
             "Skill within windows of WIDTH rows, each STEP rows after the one before.", _ROWS,
             more={"simplex": "A window without a neighbour has NaN. For a library that predicts itself, in its whole "
                              "length.",
                   "xmap": "E=\"auto\" is found anew in each. Windows of plain rho share uploads and searches; "
                           "``method=\"smap\"``, ``skill`` and ``folds`` (of each window) take a search for each.",
                   "xmap_significance": "Each has surrogates of its own rows, and false discovery rates are over all.",
                   **dict.fromkeys(("ccm", "ccm_matrix"), "All have the same seed.")}),
    Argument("generate_steps", whole(0, MOST_GENERATED), "Continue the series instead: predict the step after its "
             "last one, append it, and so on, with an unchanging library. For a single series with Tp = 1.",
             "Continue the series by this many steps instead.", option="--generate", metavar="STEPS",
             more={"simplex": "``interval()`` of the result says how far such paths go astray; for that, each state of "
                              "the series is continued as well."}),
    # What is computed of predictions.
    Argument("skill", word(*MEASURES), help="Measure that is shown: pearson, spearman, rmse, mae or nrmse. Columns "
             "called rho hold it.", metavar="MEASURE"),
    Argument("predictions", FLAG, "The result also has the predictions."),
    Argument("predictions", FLAG, of=("xmap",)),
    Argument("keep", Kind("str", legal=("all", "top:1", "top:2:target", "rho>0.1"), illegal=("x", 1, "top:0")),
             panel=_RUN, metavar="all|top:K|top:K:target|rho>X",
             help="Keep the K strongest pairs of each library, or of each target, or those above X, instead of the "
                  "map."),
    Argument("purpose", word("maps", "recurrence"), help="What the table is for."),
    # Random libraries and surrogates.
    Argument("lib_sizes", SIZES, "Rows of a sub-library: more than the neighbours, at most the rows there are; several "
             "up to all by default.", "Rows of random libraries: a list, or from A up to B by STEP. Default: several "
             "up to all.", _SAMPLES),
    Argument("lib_size", optional(POSITIVE), "Rows of sub-libraries; all rows, without drawing, by default.",
             "Rows of random libraries. Default: all rows, without drawing.", _SAMPLES),
    Argument("sample", whole(1, MOST_DRAWS), "Random sub-libraries of each size.", "Random libraries of each size.",
             _SAMPLES, more={**dict.fromkeys(("ccm_lagged", "ccm_significance"), "Without effect unless ``lib_size`` "
                                             "is given."),
                             "ccm_matrix": "Each pair, size and sample has a random stream of its own."}),
    Argument("draw", word(*DRAWS), "What sub-libraries are drawn from: single rows of all groups, or whole groups in "
             "random order until there are enough rows, the last of them in part (Clark et al., Ecology 96, 1174, "
             "2015). Rows of a group resemble each other: whole groups tell what the same number of plots or subjects "
             "would have told.", "Draw libraries from single rows, or from whole groups of --groups.", _SAMPLES,
             more={"ccm_matrix": "\"groups\" is of method \"simplex\" and of Pearson's correlation."}),
    Argument("seed", optional(SEED), "Chooses what is random: the same seed gives the same result, whatever the "
             "device. By default a fresh one, which the result names.",
             "Chooses what is random; the same seed gives the same result. Default: a fresh one.", _SAMPLES,
             more={"ccm": "Each direction, size and sample has a random stream of its own, which depends on nothing "
                          "else.",
                   "ccm_matrix": "A result that is continued has its own. Pair (0, 1) of a seed has the sub-libraries "
                                 "of :func:`pyedmcl.ccm`.",
                   "surrogate": "The first surrogates of a seed are the same whatever ``n`` is."}),
    Argument("surrogate", _SURROGATE, "Method of :func:`pyedmcl.surrogate`. \"auto\" keeps what each series suggests, "
             "such as seasons that several share and slow change; where \"phase\" and others lose that, a warning "
             "says so.", "What surrogates keep; auto looks at each series."),
    Argument("surrogate", replace(optional(_SURROGATE), type="str or None", read=_or_none(str)),
             of=("causal_network",), panel=_LEGS, metavar="auto|phase|...|none",
             help="What surrogates keep, as for surrogate-test; none: no surrogates."),
    Argument("surrogate", word(*SURROGATES_OF_PROFILES), of=("lag_profile",)),
    Argument("n", DRAWN, "Surrogates of each target. The smallest p-value is 1 / (n + 1): with many pairs, many "
             "surrogates are needed. \"auto\" draws them in rounds, and only where it is open whether a pair is "
             "significant at the false discovery rate ``rate``, until all are decided (but for a chance of 0.001 each) "
             "or the ``budget`` is spent.",
             "Surrogates of each target; auto draws as many as it takes to decide at --rate.",
             of=("xmap_significance", "ccm_significance", "causal_network")),
    Argument("n", optional(DRAWN), of=("partial_ccm",)),
    Argument("n", whole(1, MOST_DRAWS), of=("surrogate",)),
    Argument("n", whole(0, meaning="the number of surrogates"), of=("lag_profile",)),
    Argument("n", whole(1, MOST_DRAWS, meaning="the number of surrogates"), of=("rqa_significance",)),
    Argument("rate", SHARE, "False discovery rate at which n=\"auto\" decides; in (0, 1).",
             "False discovery rate at which pairs are called significant.",
             more={"causal_network": "Also the level of the test of convergence."}),
    Argument("rate", SHARE, help="False discovery rate at which links are significant.", of=("report",)),
    Argument("budget", whole(1, MOST_DRAWS), "For n=\"auto\": surrogates of a pair, as a mean over all pairs. What "
             "pairs that are soon decided leave goes to the others, up to 5 times as many for each, and 50 times where "
             "no surrogate has reached the skill.", "For --n auto: surrogates of a pair, as a mean over all pairs."),
    Argument("period", optional(PERIOD),
             "Rows of a cycle, 12.42 as well as 12, for the surrogates \"seasonal\" and \"auto\"; looked for by "
             "default, and for \"seasonal\" a warning says what was found.",
             "Rows of a cycle (12, 12.42); looked for by default.",
             more={"causal_network": "It is also the cycle that ``season`` removes."}),
    Argument("recurrence", SHARE, "Share of pairs of states that count as recurrent in the surrogates \"twin\"; in "
             "(0, 1).", "Share of pairs of states that count as recurrent in the surrogates twin.", metavar="SHARE"),
    Argument("lags", replace(optional(INTEGERS), read=_or_none(_integers)), panel=_LEGS, metavar="A:B|LIST|none",
             help="Lags (Tp) at which skill is compared; none: no comparison.", of=("causal_network",)),
    Argument("lags", optional(INTEGERS), of=("mutual_information",)),
    Argument("lags", optional(COUNT), of=("lag_profile",)),
    Argument("latest", optional(WHOLE), help="The latest best lag at which a cause is believed (default: 0 for smooth "
             "series, else -1).", panel=_LEGS),
    Argument("season", word(*SEASONS), help="What is done with a cycle that half of the series share.", panel=_LEGS),
    Argument("convergence", FLAG, help="Whether skill must grow with the library.", panel=_LEGS),
    Argument("partial", FLAG, help="Whether indirect links are told from direct ones.", panel=_LEGS),
    Argument("partial_surrogates", optional(whole(1, MOST_DRAWS)), panel=_LEGS, metavar="N",
             help="Also test what is left of a link without another series, with up to N surrogates of a link as a "
                  "mean; no verdict depends on it."),
    Argument("forecast", FLAG, help="Whether a cause that improves forecasts of its effect may decide a doubtful "
             "link.", panel=_LEGS),
    # Recurrence.
    Argument("m", COORDINATES, "Embedding dimension: coordinates of a point, at least 1.",
             "Embedding dimension: values of a state.", _STATES),
    Argument("m_y", optional(COORDINATES), "Embedding dimension of y; that of x by default."),
    Argument("tau_y", optional(LAG_OF_POINTS), "Lag of y; that of x by default."),
    Argument("radius", RADIUS, "By ``threshold``: a radius in the unit of the data; a pair (inner, outer); a "
             "recurrence rate in (0, 1); a number of neighbours. A sequence gives a table with a result for each; "
             "radii share one pass.", "In the unit of the data; by --threshold, a corridor 0.2:0.5, a rate, or a "
             "number of neighbours. Several, with commas, share one pass.", _STATES,
             more={"rqa_batch": "An array (n_series, n_radii), of corridors (n_series, n_radii, 2), holds radii of "
                                "each series' own."}),
    Argument("radius", replace(RADIUS, metavar="R"), "One radius: by ``threshold`` in the unit of the data, a pair "
             "(inner, outer), a recurrence rate in (0, 1), or a number of neighbours.", "In the unit of the data; by "
             "--threshold, a corridor 0.2:0.5, a rate, or a number of neighbours. Without it distances are drawn.",
             _STATES, of=("recurrence_plot", "lag_profile"), more={
                 "recurrence_plot": "The cells that recur are those that :func:`pyedmcl.rqa` counts.",
                 "lag_profile": "No Theiler window is left out."}),
    Argument("radius", RADIUS, of=("windowed_rqa", "recurrence_network")),
    Argument("radius_y", replace(RADIUS, type="float or sequence, optional"), "Radius of y; that of x by default."),
    Argument("metric", METRIC, "How far apart two points are: \"euclidean\", \"maximum\", \"manhattan\", or another "
             "row of the table \"Metrics\" in ``docs/recurrence.md``.", "Distance of states, such as euclidean, "
             "maximum or manhattan (all of them: docs/recurrence.md).", _STATES),
    Argument("metric_y", optional(METRIC), "Metric of y; that of x by default."),
    Argument("theiler", optional(or_auto(THEILER, 0)), "Cells with abs(i - j) < theiler are left out: of diagonal "
             "lines, or (conventions \"recurrenceanalysis\" and \"crqa\") of everything. 0 keeps all; 1 leaves out the "
             "main diagonal. By default 1 for one series; for cross recurrence 0, but 1 with convention \"pyrqa\", "
             "which a warning tells. \"auto\" is the lag at which the autocorrelation of the series falls below 1/e, "
             "as smooth series need, and 0 for cross recurrence. Convention \"accrqa\" has no window: 0 and 1 are the "
             "same there.", "Cells |i - j| < W are left out of lines; auto: where the autocorrelation falls below 1/e. "
             "(default: 1; of --against 0, but 1 with pyrqa)", _STATES, metavar="W|auto"),
    Argument("theiler", optional(or_auto(THEILER, 0)), "Only for what a threshold by rate or by neighbours is chosen "
             "from; all cells are drawn.", "Cells |i - j| < W are left out where a radius is chosen by --threshold; "
             "all cells are drawn.", _STATES, metavar="W|auto", of=("recurrence_plot",)),
    Argument("theiler", optional(or_auto(THEILER, 0)), of=("recurrence_network",)),
    Argument("convention", Kind("{" + ", ".join(f'"{one}"' for one in CONVENTIONS) + "}", metavar="|".join(CONVENTIONS),
             legal=CONVENTIONS[:1], illegal=(1, *_COMMON)), "Which tool's rules for the main diagonal, the Theiler "
             "window, the threshold at equality and the denominators. \"crqa\" has those of crqa up to 2.0.7, and "
             "\"crqa-2.1\" its newer denominator of the recurrence rate.", "Whose rules (docs/recurrence.md).", _STATES,
             more={"joint_rqa": "\"accrqa\" has no joint recurrence.",
                   "recurrence_plot": "Here only whether a distance equal to the radius recurs (not with \"pyrqa\")."}),
    Argument("threshold", Kind("{" + ", ".join(f'"{one}"' for one in THRESHOLDS) + "}", metavar="|".join(THRESHOLDS),
             legal=THRESHOLDS[:1], illegal=(1, *_COMMON)), "What ``radius`` holds. \"corridor\": recurrent is inner < "
             "d < outer. \"recurrence_rate\": the smallest radius at which the rate is reached. \"neighbours\": each "
             "column has its own radius, which holds as many recurrent points outside the Theiler window (outside the "
             "main diagonal for theiler = 0), and more only where distances tie.", "What --radius holds.", _STATES,
             more={"rqa_batch": "Radii for a rate are found series by series, and with \"neighbours\" each series is a "
                                "launch of its own."}),
    Argument("threshold", replace(word("fixed", "corridor"), check=None), of=("windowed_rqa",)),
    Argument("threshold", replace(word("fixed", "recurrence_rate"), check=None), of=("recurrence_network",)),
    Argument("normalize", optional(word(*NORMALIZATIONS)), "Each column of x, and of y, is brought to mean 0 and "
             "standard deviation 1, or to 0, ..., 1, by itself, before anything else. Missing values do not count; a "
             "constant column becomes 0.", "Bring each series to mean 0 and deviation 1, or to 0, ..., 1.", _STATES,
             more={"windowed_rqa": "That is of the whole series, so that windows share scale and radius."}),
    Argument("radius_unit", word(*UNITS), "What a radius, or a corridor, is a multiple of: 1; the standard deviation; "
             "greatest minus least value; the largest, or the mean, distance of two points. All are those of the "
             "values that are compared, hence after ``normalize``, and standard deviations divide by the number of "
             "values. With several columns, or with y, \"std\" is the root of the mean variance of all columns and "
             "\"range\" the largest range. The result's ``radius`` is in the unit of the data (of the normalised ones, "
             "with ``normalize``). Other thresholds have no radius, and take \"data\" only.",
             "What --radius is a multiple of.", _STATES,
             more={"windowed_rqa": "Measures are those of the whole series.",
                   "rqa_batch": "Each series has its own.",
                   "joint_rqa": "``radius`` is measured by the spread of x, ``radius_y`` by that of y."}),
    Argument("lmin", whole(1, meaning="the least length of a diagonal line"),
             "Least length of a diagonal line; can be changed on the result.",
             "Least diagonal line.", _STATES),
    Argument("vmin", whole(1, meaning="the least length of a vertical line"),
             "Least length of a vertical line; can be changed on the result.",
             "Least vertical line.", _STATES),
    Argument("wmin", whole(1, meaning="the least length of a white vertical line"),
             "Least length of a white vertical line; can be changed on the result.",
             "Least white vertical line.", _STATES),
    Argument("exact", FLAG, "Cells too close to the radius for ``dtype`` are decided in float64: the counts are those "
             "of float64 arithmetic, the same integers on every device. Otherwise series and radius are rounded to "
             "``dtype``.", "Decide cells near the radius in float64, whatever --dtype says.", _RUN),
    Argument("tile", optional(POSITIVE), "Edge of the parts the matrix is divided into; changes speed and memory, "
             "never the counts.", "Edge of the parts the matrix is divided into; changes speed and memory, never the "
             "counts.", _RUN, metavar="POINTS"),
    Argument("pixels", Kind("int or (int, int), optional", None, int, legal=(None, 10, (5, 7)),
             illegal=(0, 0.5, *_COMMON)), "Pixels of the longer side, or of (y, x). By default a cell each up to 2,000 "
             "points, else 2,000. Never more than points.",
             "Pixels of the longer side. (default: a cell each up to 2000)"),
    Argument("errors", word("nan", "raise"), help="Series that cannot be used: rows of NaN and a warning, or the end.",
             panel=_STATES),
    Argument("axis", WHOLE),
    Argument("partners", Kind("str, optional", legal=(None,))),
    Argument("pseudo", COUNT),
    Argument("window", POSITIVE),
    Argument("window", optional(POSITIVE), of=("rqa_significance", "rqa_bands", "lag_profile")),
    Argument("step", POSITIVE),
    Argument("step", optional(POSITIVE), of=("rqa_significance", "rqa_bands", "lag_profile")),
    Argument("measures", Kind("sequence of str", legal=(("DET",),), illegal=("DET", (), ("none",)))),
    Argument("level", number("a number in (0, 1)", lambda value: 0 < value < 1, (0.9,), (0, 1))),
    Argument("strict", FLAG),
    Argument("links", FLAG),
    # Running.
    Argument("out", FOLDER, option="--output"),
    Argument("out", Kind("path or array, optional"), option="--output", of=("xmap",)),
    Argument("out", Kind("array on the device, optional"), of=("knn", "recurrence_plot", "distance_plot")),
    Argument("resume", FLAG, "False starts ``out`` afresh.", "Continue a result that is there, or remove it and start "
             "anew.", _RUN, more={"ccm_matrix": "Stores of other library sizes stay."}),
    Argument("join", FLAG, "Several processes, on any machines that share the folder ``out``, compute one result: each "
             "takes blocks that nobody has taken, also those of who was lost, and returns when all is done. See "
             "``docs/scale.md``.", "Compute together with all who run the same command on this folder, on any "
             "machine.", _RUN),
    Argument("join", FLAG, "Several processes, on any machines that share the **folder** ``checkpoint``, count "
             "together: each takes bands of rows that nobody has taken, and returns when all are done. See "
             "``docs/scale.md``.", "Compute together with all who run the same command on this folder, on any "
             "machine.", _RUN, of=("rqa", "joint_rqa")),
    Argument("part", Kind("str, optional", metavar="I/N", legal=(None,)), "\"I/N\": this process is the I-th (from 1) "
             "of N that join, and begins at its share of the blocks; it goes on with what others leave. Implies "
             "``join``; by default as the scheduler says (SLURM, Grid Engine, LSF, MPI).",
             "This is the I-th (from 1) of N that join, and begins at its share. Implies --join; by default as the "
             "scheduler says.", _RUN),
    Argument("checkpoint", Kind("path, optional", metavar="FILE"), "A file for very long runs: finished rows are kept "
             "there, and the same call continues behind them after it was killed. The counts are the same however "
             "often that happens.", panel=_RUN,
             help="Keep finished rows there; the same command continues behind them. With --join, a folder."),
    Argument("neighbors", word(*SEARCHES, others="SEARCH"), "How neighbours are searched. \"exact\" takes the fastest "
             "of \"exhaustive\" (compares all pairs), \"pruned\" and \"kdtree\", which find the same neighbours; so "
             "does \"auto\", to which an approximate search would be allowed, too. \"ivf\" and \"hnsw\" may miss some. "
             "Where there was a choice, ``provenance[\"neighbors\"]`` says which ran, why, and its recall.",
             "exact (the fastest of exhaustive, pruned, kdtree, with the same bits), auto, ivf, hnsw (may miss some).",
             _RUN, more={**dict.fromkeys(PAIRS[:2], "It is the nearest rows of the whole library that are searched, "
                                         "among which each sub-library's are then found."),
                         "ccm_matrix": "A result that is continued keeps its search."}),
    Argument("recall", number("a share above 0 and at most 1", lambda value: 0 < value <= 1, (0.5, 1), (0, 1.1)),
             "Share of the true neighbours, in (0, 1], that an approximate search must find.",
             "Share of the true neighbours that ivf and hnsw must find; without effect on other searches.", _RUN),
    Argument("precision", word(*PRECISIONS), "\"compact\" looks targets up in 16 bits, which may change rho by up to "
             "2e-5 and takes GPUs as little as half the time of a lookup; processors gain nothing. Targets with a "
             "range too wide for that, pairs whose predictions hardly vary or are made of few rows, and maps of data "
             "with gaps are computed in full; ``provenance[\"precision\"]`` and a warning say how many targets were. "
             "Fewer than 128 targets of one E are computed in full without a warning: 16 bits save nothing there. "
             "Linear fits predict on matrix units where the device has them, which changes rho by up to 1e-5, and in "
             "full elsewhere. See ``docs/approximate.md``.",
             "compact is faster on some GPUs, and skill may change by up to 2e-5.", _RUN),
    Argument("progress", Kind("callable or True, optional", _reporter, legal=(None, False), illegal=(1, *_COMMON[:3])),
             "Called as ``progress(done, total, unit)``, where the unit says what is counted, such as \"series\"; True "
             "shows a bar."),
    Argument("dtype", Kind('{"float32", "float64"}', _precision, metavar="float32|float64",
             legal=("float32", "float64"), illegal=("float16", None, *_COMMON)), "What the device computes in.",
             "Arithmetic on the device.", _RUN,
             more=dict.fromkeys(FITTED, "Normal equations are float64 in either case.")),
    Argument("dtype", optional(word("float32", "float64")), of=("kernel_source",)),
    Argument("device", _DEVICE, "Which device, or several that share the work; see ``pyedmcl devices``.",
             more={"mutual_information": "\"binned\" is computed by this processor.",
                   "windowed_rqa": "Several share the windows.", "rqa_batch": "Several share the series."},
             help="gpu, cpu, nvidia, a part of a name or an id such as 0:0 (see 'pyedmcl devices'); gpus, all or "
                  "0:0,0:1 for several. Default: PYEDMCL_DEVICE, else the best one.", panel=_RUN, metavar="DEVICE"),
    Argument("device", Kind("str, optional"), "Which device; see ``pyedmcl devices``.", of=("knn", "recurrence_plot",
             "distance_plot", "lag_profile", "recurrence_network"), metavar="DEVICE", panel=_RUN,
             help="gpu, cpu, nvidia, a part of a name or an id such as 0:0 (see 'pyedmcl devices'). Default: "
                  "PYEDMCL_DEVICE, else the best one."),
    Argument("device", Kind("str, optional"), of=("kernel_source",)),
    Argument("client", Kind("optional"), "Workers of a cluster that compute instead of this process: a "
             "``dask.distributed.Client``, an ``Executor`` of ``concurrent.futures`` (spawned processes, MPI, loky), "
             "or another object with ``submit``. Each opens ``device`` where it runs; see ``docs/scale.md``.",
             "Have the workers of this Dask scheduler compute, such as tcp://head:8786; each opens --device where it "
             "runs.", _RUN, metavar="ADDRESS",
             more=dict.fromkeys(RECURRENCE[:4], "What a radius is found by (thresholds \"recurrence_rate\" and "
                                "\"neighbours\", unit \"max_distance\") is searched by this process.")),
    Argument("tune", replace(optional(word("never", "cached", "auto", "force")), check=None),
             "Which tuned parameters kernels take, which "
             "changes speed and never the answer; ``PYEDMCL_TUNE`` or \"cached\" by default.",
             "Which tuned parameters kernels take, which changes speed and never the answer. Default: PYEDMCL_TUNE, "
             "else cached.", _RUN),
    Argument("tune", optional(word("never", "cached")), of=("kernel_source",)),
    # Of reports and files.
    Argument("top", Kind("int", None, int)),
    Argument("cluster", FLAG),
    Argument("title", Kind("str, optional")),
    Argument("by", Kind("str"), of=("compare",)),
    Argument("pair", Kind("str, optional"), of=("compare",)),
    Argument("measures", Kind("sequence of str, optional"), of=("compare",)),
    Argument("n", whole(1, MOST_DRAWS, meaning="the number of permutations"), of=("compare",)),
    Argument("pairs", Kind("sequence of (str, str), optional")),
    Argument("path", Kind("path")),
    Argument("kernel", Kind("str")),
    Argument("values", Kind("")),
)  # fmt: skip

_BY_NAME = {one.name: one for one in ARGUMENTS if not one.of}
_BY_FUNCTION = {(function, one.name): one for one in ARGUMENTS for function in one.of}


def argument(function: str, name: str) -> Argument | None:
    """The row of an argument of a function; None for data, of which a function knows more than a row can say."""
    return _BY_FUNCTION.get((function, name)) or _BY_NAME.get(name)


def arguments_of(function: Callable[..., Any]) -> dict[str, Argument]:
    """The rows of all arguments of a function but its data, in their order."""
    found = {name: argument(function.__name__, name) for name in inspect.signature(function).parameters}
    return {name: row for name, row in found.items() if row is not None}


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Check the arguments that a public function is called with by their rows, before it begins."""
    rows = arguments_of(function)
    checks = {name: row.kind.check for name, row in rows.items() if row.kind.check is not None}
    places = [checks.get(name) for name in inspect.signature(function).parameters]
    placed = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for name, value in kwargs.items():
            check = checks.get(name)
            if check is not None:
                kwargs[name] = check(name, value)
        given: Any = args
        if any(places[: len(args)]):
            given = [
                value if check is None else check(name, value)
                for name, check, value in zip(placed, places, args, strict=False)
            ] + list(args[len(placed) :])
        return function(*given, **kwargs)

    return call


# The Parameters sections of docstrings, in the files of the functions.


def section(function: Callable[..., Any], own: Mapping[str, str]) -> str:
    """The Parameters section of a function: entries of rows, and the ``own`` ones of arguments that have no text."""
    rows, entries = arguments_of(function), []
    for name in inspect.signature(function).parameters:
        if name in rows and rows[name].doc:
            entries.append(rows[name].entry(function.__name__))
        elif not entries or own[name] != entries[-1]:  # one entry may describe two arguments, such as x and y
            entries.append(own[name])
    return "\n".join(entries)


def entries_of(text: str) -> dict[str, str]:
    """The entries of a Parameters section by the names that they describe."""
    found: dict[str, str] = {}
    block: list[str] = []
    for line in [*text.splitlines(), "end"]:
        if line and not line.startswith(" ") and block:
            for name in block[0].partition(" :")[0].split(","):
                found[name.strip().lstrip("*")] = "\n".join(block).rstrip()
            block = []
        block.append(line)
    return found


def described(source: str, function: Callable[..., Any]) -> str:
    """The text of a module in which the Parameters section of a function is as its rows have it."""
    begin = source.index(f"\ndef {function.__name__}(")
    head = source.index("    Parameters\n    ----------\n", begin) + len("    Parameters\n    ----------\n")
    end = source.index("\n\n    Returns\n", head)
    own = entries_of(textwrap.dedent(source[head:end]))
    return source[:head] + textwrap.indent(section(function, own), "    ") + source[end:]


def main() -> None:
    """Write the Parameters sections of all public functions, or say which are not current."""
    from pathlib import Path

    import pyedmcl

    from .functions import FUNCTIONS

    stale = []
    for name, module in FUNCTIONS.items():
        path = Path(__file__).parent.joinpath(*module.split(".")).with_suffix(".py")
        old = path.read_text(encoding="utf-8")
        new = described(old, getattr(pyedmcl, name))
        if new != old:
            stale.append(name)
            if "--write" in sys.argv:
                path.write_text(new, encoding="utf-8")
    print(*stale, sep="\n")
    sys.exit(1 if stale and "--check" in sys.argv else 0)


if __name__ == "__main__":
    main()

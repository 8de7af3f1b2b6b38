"""What a report shows of a result, as plain data: sections, and the parts that they consist of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Layer:
    """One array of a map.

    Attributes
    ----------
    label : str
    cells : ndarray of float64 (rows, columns)
        NaN where there is nothing.
    colours : str
        A colour map of matplotlib.
    low, high : float
        Values at the ends of the colours; what lies beyond has the colour of that end.
    """

    label: str
    cells: Doubles
    colours: str = "RdBu_r"
    low: float = -1.0
    high: float = 1.0


@dataclass(frozen=True)
class Map:
    """Arrays of one shape over the same rows and columns, one of which is seen at a time.

    Attributes
    ----------
    title : str
    layers : tuple of Layer
    rows, columns : tuple of str
        Names; empty where rows are numbered.
    shape : (int, int)
        Rows and columns before they were reduced.
    size : int
        Edge of the square block of pairs that a cell stands for.
    row_label, column_label : str
    upwards : bool
        Row 0 is the lowest, as in recurrence plots.
    note : str
    """

    title: str
    layers: tuple[Layer, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    shape: tuple[int, int]
    size: int = 1
    row_label: str = "effect (library)"
    column_label: str = "cause (target)"
    upwards: bool = False
    note: str = ""


@dataclass(frozen=True)
class Table:
    """Rows that can be sorted and downloaded.

    Attributes
    ----------
    title : str
    columns : tuple of str
    rows : sequence of tuple
        Numbers, texts, truth values or None.
    note : str
    """

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    note: str = ""


@dataclass(frozen=True)
class Network:
    """Links from cause to effect, of which those above a threshold are drawn.

    Attributes
    ----------
    links : sequence of (str, str, float, float or None)
        Cause, effect, strength (above 0), q-value; the strongest first.
    label : str
        What the strength is.
    rate : float
        False discovery rate that a switch offers, where there are q-values.
    note : str
    """

    links: Sequence[tuple[str, str, float, float | None]]
    label: str
    rate: float = 0.05
    note: str = ""


@dataclass(frozen=True)
class Curves:
    """A curve for each of many pairs, some of which are shown from the beginning.

    Attributes
    ----------
    title : str
    x_label, y_label : str
    x : tuple of float
    curves : mapping of (str, str) to sequence of float
        By (cause, effect).
    chosen : sequence of (str, str)
        Pairs that are shown first, in both directions.
    """

    title: str
    x_label: str
    y_label: str
    x: tuple[float, ...]
    curves: Mapping[tuple[str, str], Sequence[float]]
    chosen: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Picture:
    """A drawing of matplotlib.

    Attributes
    ----------
    title : str
    data : bytes
    kind : {"svg+xml", "png"}
    alt : str
        What is seen, for those who do not see it.
    """

    title: str
    data: bytes
    kind: str
    alt: str


@dataclass(frozen=True)
class Words:
    """A paragraph under a title, such as that of a methods section."""

    title: str
    text: str


Part = Map | Table | Network | Curves | Picture | Words


@dataclass(frozen=True)
class Section:
    """What there is to show of one result.

    Attributes
    ----------
    title : str
    lead : str
        What it is and how to read it.
    facts : mapping of str to str
    parts : tuple of Part
    remarks : tuple of str
        What a reader must not overlook, such as that the run has not ended.
    provenance : mapping
    """

    title: str
    lead: str
    facts: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    remarks: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Wishes:
    """What was asked of a report.

    Attributes
    ----------
    top : int
        Rows of a table of links.
    cluster : bool
        Order the series of maps by likeness.
    pairs : tuple of (str, str)
        (cause, effect) whose curves are shown first.
    rate : float
        False discovery rate.
    """

    top: int = 500
    cluster: bool = False
    pairs: tuple[tuple[str, str], ...] = ()
    rate: float = 0.05

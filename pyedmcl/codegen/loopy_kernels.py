"""What loopy is told: the makers of the kernels that it writes, and which of their texts are shipped.

A maker says what is computed (a few lines of loopy's language) apart from how it is laid out over work-groups. It is
handed the module ``loopy`` so that only :mod:`pyedmcl.codegen.loopy_source` imports it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from .sentinels import PRESENT

Values = Mapping[str, Any]

DTYPES = ("float32", "float64")


@dataclass(frozen=True)
class Maker:
    """One kernel that loopy writes.

    Attributes
    ----------
    version : int
        Raised with every change of the text it makes: shipped and memoised texts of another version are not used.
    names : tuple of str
        The values that shape the text, in the order of the file's name.
    make : callable
        ``(loopy, values) -> loopy.TranslationUnit``.
    shipped : tuple of mapping
        The values whose text lies in ``clkernels/generated``: the defaults of each device class.
    """

    version: int
    names: tuple[str, ...]
    make: Callable[[Any, Values], Any]
    shipped: tuple[Values, ...]


def _macros(lp: Any, unit: Any, *names: str) -> Any:
    """``unit`` with macros of numeric.clh made known to loopy as functions whose result has its arguments' type."""
    constantdict = importlib.import_module("constantdict").constantdict

    class Macro(lp.ScalarCallable):  # type: ignore[misc]
        def with_types(self, arg_id_to_dtype: Mapping[Any, Any], context: Any) -> Any:
            types = {i: t for i, t in arg_id_to_dtype.items() if i != -1}
            if any(t is None for t in types.values()):
                return self.copy(arg_id_to_dtype=constantdict(arg_id_to_dtype)), context
            typed = constantdict({**types, -1: types[0]})
            return self.copy(name_in_target=self.name, arg_id_to_dtype=typed), context

        def with_descrs(self, arg_id_to_descr: Mapping[Any, Any], context: Any) -> Any:
            return self.copy(arg_id_to_descr=constantdict(arg_id_to_descr)), context

    for name in names:
        unit = lp.register_callable(unit, name, Macro(name))
    return unit


def _unit(lp: Any, name: str, domains: list[str], body: str, arguments: list[Any], assumptions: str) -> Any:
    return lp.make_kernel(
        domains,
        body,
        arguments,
        name=name,
        assumptions=assumptions,
        target=lp.OpenCLTarget(),
        lang_version=(2018, 2),
        # The default is 32 bits, which a block of predictions can pass.
        index_dtype=np.int64,
        # In the order of the lines: the order of additions is part of what is computed.
        seq_dependencies=True,
    )


def skill(lp: Any, values: Values) -> Any:
    """Partial sums for rho, MAE and RMSE: a work-item per pair and chunk of rows, rows in their order.

    ``predicted`` is [pair][n_rows], NaN where there is no prediction; ``observed`` is read at
    ``observed_of[pair]*observed_stride + observed_offset + t``, a magnitude from PRESENT on being a gap. Rows outside
    [t_begin, t_end) of the pair are not read. ``sums`` is [pair - pair_begin][chunk][8]: n, sum p, sum o, sum p^2,
    sum o^2, sum p*o, sum |p - o|, sum (p - o)^2.
    """
    dtype, chunk = np.dtype(values["dtype"]), values["chunk"]
    totals = ("n", "sum_p", "sum_o", "sum_pp", "sum_oo", "sum_po", "sum_abs", "sum_squares")
    # Literals get their type from a typed variable: written into a condition they would be doubles.
    # p == p is false for a NaN only; an infinite prediction must show in the scores.
    body = f"""
    for pair, c
        <int64> first = t_begin[pair_begin + pair]
        <int64> last = t_end[pair_begin + pair]
        <int64> begin = maximum(first, c*{chunk})
        <int64> end = minimum(minimum(last, n_rows), c*{chunk} + {chunk})
        <int64> series = observed_of[pair_begin + pair]
        <int64> at_p = (pair_begin + pair)*n_rows
        <int64> at_o = series*observed_stride + observed_offset
        <> gap = {PRESENT!r}
        {"; ".join(f"<> {name} = 0.0" for name in totals).replace("; ", chr(10) + "        ")}
        for t
            <> p = predicted[at_p + t]
            <> o = observed[at_o + t]
            <int32> there = p == p and abs(o) < gap
            if there
                <> error = p - o
                n = n + 1
                sum_p = sum_p + p
                sum_o = sum_o + o
                sum_pp = FUSED(p, p, sum_pp)
                sum_oo = FUSED(o, o, sum_oo)
                sum_po = FUSED(p, o, sum_po)
                sum_abs = sum_abs + abs(error)
                sum_squares = FUSED(error, error, sum_squares)
            end
        end
        {chr(10).join(f"        sums[pair, c, {i}] = {name}" for i, name in enumerate(totals)).strip()}
    end
    """
    arguments = [
        *(lp.GlobalArg(name, dtype, shape=None) for name in ("predicted", "observed")),
        *(lp.GlobalArg(name, np.int32, shape=None) for name in ("observed_of", "t_begin", "t_end")),
        lp.GlobalArg("sums", dtype, shape=("n_pairs", "n_chunks", 8)),
        lp.ValueArg("pair_begin, n_pairs, n_chunks, n_rows, observed_stride, observed_offset", np.int64),
    ]
    domains = ["{[pair]: 0 <= pair < n_pairs}", "{[c]: 0 <= c < n_chunks}", "{[t]: begin <= t < end}"]
    unit = _unit(lp, "skill", domains, body.replace("<>", f"<{dtype}>"), arguments, "n_pairs >= 1 and n_chunks >= 1")
    unit = _macros(lp, unit, "FUSED")
    unit = lp.split_iname(unit, "c", values["wg"], outer_tag="g.1", inner_tag="l.0")
    return lp.tag_inames(unit, {"pair": "g.0"})


def _grid(**choices: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [dict(zip(choices, some, strict=True)) for some in product(*choices.values())]


MAKERS: Mapping[str, Maker] = {
    "skill": Maker(
        version=1,
        names=("dtype", "chunk", "wg"),
        make=skill,
        shipped=tuple(_grid(dtype=DTYPES, chunk=(256,), wg=(1, 64))),
    ),
}

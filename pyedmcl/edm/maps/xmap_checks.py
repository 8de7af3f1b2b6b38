"""Which arguments of a map go together, and what to do instead where they do not."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ...data.arguments import shown
from ...device.foreign_arrays import KINDS, is_array
from ...errors import InputError
from ..shared.measures import ERRORS, check_skill
from .keep import Keep
from .linear_fits import LinearFits


def check_one_theta(fits: LinearFits | None, theta: Any, **single: Any) -> None:
    """Refuse several theta together with what takes a single map; ``single`` are such arguments, None if not given."""
    if fits is None or not (fits.several or fits.best):
        return
    for name, given in single.items():
        if given is not None:
            raise InputError(
                f"theta={shown(theta)} with {name}={shown(given)}: it takes one map; give a single theta, or call once "
                "for each"
            )


def check_windows(
    windows: Any, *, keep: Keep | None, out: Any, groups: Any, lib_range: Any, pred_range: Any, predictions: bool
) -> None:
    """Refuse what windows do not go with."""
    instead = {
        "keep=": (keep, "edges(top) of the result names the strongest pairs"),
        "out=": (out, "save() of the result writes it to a file"),
        "groups=": (groups, "windows may not pass from one recording into another; call once for each recording"),
        "lib_range=": (lib_range, "a window is its own library; folds= predicts a part of it from the others"),
        "pred_range=": (pred_range, "a window predicts all its rows; folds= predicts a part of it from the others"),
        "predictions=True": (predictions or None, "call once for each window of interest"),
    }
    for name, (given, advice) in instead.items():
        if given is not None:
            raise InputError(f"windows={shown(windows)} cannot be used with {name}: {advice}")


def check_place(out: Any) -> None:
    """Refuse ``out=`` that is neither a folder nor an array on a device."""
    if out is not None and not isinstance(out, (str, os.PathLike)) and not is_array(out):
        what = type(out).__name__
        raise InputError(f"out={shown(out)}: {what} is no place for a map; {KINDS}, or the path of a folder")


def check_on_device(given: Mapping[str, Any]) -> None:
    """Refuse what a map in an array on the device does not go with: argument to what is not None or False."""
    for name, value in given.items():
        if value is not None and value is not False:
            raise InputError(
                f"out= is an array on a device, which takes plain maps of rho: leave out {name}, or give a folder or "
                "nothing as out="
            )


def check_measure(skill: Any, predictions: bool, fits: LinearFits | None, keep: Keep | None, out: Any) -> str:
    """The measure, checked against what else was asked for."""
    name = check_skill(skill)
    argument = f"skill={name!r}" if name != "pearson" else "predictions=True"
    if (name != "pearson" or predictions) and fits is not None:
        raise InputError(f"{argument}: method='smap' keeps sums of its fits only; take method='simplex'")
    if predictions and (keep is not None or out is not None):
        raise InputError("predictions=True: they are held in memory; leave out keep= and out=")
    if name in ERRORS and keep is not None:
        raise InputError(f"skill={name!r}: keep= takes the largest values, and the smallest errors are the best")
    return name

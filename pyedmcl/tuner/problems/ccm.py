"""Tuning problems of convergent cross mapping: drawing, scanning and comparing are kernels of one engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from ...device.executor import Executor
from ...device.info import DeviceInfo
from ...edm.shared.states import delay_states, future
from ...engines.ccm import SampledSkill
from ...engines.sub_libraries import CcmPair
from ...reference import ccm as oracle
from ...reference.edm import library_mask_of
from ..problem import Answer, OneWayProblem, TuningCase
from ..verify import Close
from .common import maps, releasing, scalar

_LINKS = CcmPair(0, 1, (0, 1)), CcmPair(1, 0, (1, 0))
_SEED = 3
_SAMPLES = 19  # that are verified: no whole number of words
_SHOWN = (0, 1, 16)


class CcmProblem(OneWayProblem):
    """Two series from each other, from random parts of the library.

    Attributes
    ----------
    shares : (float, float)
        Smallest and largest sub-library, as shares of all rows.
    """

    # Weights are exponentials, which vectors may round otherwise than scalars.
    tolerance = (0.0, 2e-5)
    rapid = ({"E": 3},)
    exhaustive: Sequence[Mapping[str, Any]] = ({"E": 3, "dtype": "float64"},)
    shares: ClassVar[tuple[float, float]]

    def like(self, specialisation: Mapping[str, Any], sizes: Mapping[str, int], info: DeviceInfo) -> TuningCase | None:
        s, n = specialisation, min(int(sizes.get("rows", _steps(info))), _steps(info))
        k = int(s.get("k", 4))
        E = int(s.get("E", max(min(k - 1, 20), 1)))
        return self.case(info, n, E=E, k=k, dtype=s.get("dtype", "float32")) if n >= 2 * E + 2 * k + 40 else None

    def case(
        self, info: DeviceInfo, n: int = 0, *, E: int, k: int = 0, part: int = 1, dtype: str = "float32"
    ) -> TuningCase:
        """A case of ``n`` steps, or of a part of those of a common problem."""
        n, k = n or _steps(info) // part, k or E + 1
        sizes = sorted({max(int(share * n), 2 * k) for share in np.linspace(*self.shares, 8)})
        return self.named(f"E={E}", f"{n:,} steps", f"{len(sizes)} sizes of {sizes[0]}..{sizes[-1]}", steps=n,
                          sizes=sizes, samples=100, given={"E": E, "k": k, "dtype": dtype})  # fmt: skip

    def usual(self, case: TuningCase) -> Any:
        n = case.numbers
        return maps(n["steps"], 2, "float64"), n["sizes"], n["samples"], 0, 0, {}

    def ragged(self, case: TuningCase) -> Iterator[tuple[str, Any]]:
        E, k = case.given["E"], case.given["k"]
        for number, (steps, Tp, radius, gaps) in enumerate(((130, 0, 0, ()), (171, 1, 4, (7, 85)))):
            x = np.array(maps(steps + 4 * E, 2, "float64", seed=5 + number))
            x[list(gaps)] = np.nan
            masks = {link: library_mask_of(x[:, link.library], E, 1, Tp, x[:, link.target]) for link in _LINKS}
            # Small samples, whose members are all looked at, and larger ones, which are scanned; the last: all rows.
            most = min(int(rows.sum()) for rows in masks.values())
            sizes = sorted({k + 3, most // 3, 2 * most // 3, most})
            yield f"{steps} steps, E={E}", (x, sizes, _SAMPLES, Tp, radius, masks)

    @contextmanager
    def session(self, executor: Executor, case: TuningCase, small: Any) -> Iterator[Callable[[], Answer]]:
        """Skill, and for small problems, whose masks are known, also the members of each sample."""
        (x, sizes, samples, Tp, radius, masks), g = small, case.given
        states = delay_states(x, g["E"], 1, k=g["k"], Tp=Tp, exclusion_radius=radius, dtype=g["dtype"])
        engine = SampledSkill(executor, states, future(x.T, Tp))

        def go() -> Answer:
            rho = engine.skill(_LINKS, sizes, samples, _SEED)
            answer: dict[str, Any] = {"rho": rho[:, :, list(_SHOWN)] if masks else rho}
            for link in masks:
                for size, members in zip(sizes, engine.members(link, sizes, samples, _SEED), strict=True):
                    answer[f"members of samples of {size} rows of {link.library}"] = members
            return answer

        with releasing(engine):
            yield go

    def expected(self, case: TuningCase, small: Any) -> Mapping[str, Any]:
        x, sizes, _, Tp, radius, masks = small
        E, k = case.given["E"], case.given["k"]
        right: dict[str, Any] = {}
        for link in _LINKS:
            rows = np.flatnonzero(masks[link])
            for size in sizes:
                members = np.zeros((_SAMPLES, len(masks[link])), bool)
                for sample in range(_SAMPLES):
                    members[sample, rows[oracle.sub_library(len(rows), size, sample=sample, **_stream(link))]] = True
                right[f"members of samples of {size} rows of {link.library}"] = members
        rho = [[[oracle.ccm_skill(x[:, link.library], x[:, link.target], size, E=E, Tp=Tp, k=k, exclusion_radius=radius,
                                  sample=sample, **_stream(link))
                 for sample in _SHOWN] for size in sizes] for link in _LINKS]  # fmt: skip
        return {**right, "rho": Close(np.array(rho), *self.tolerance)}


def _steps(info: DeviceInfo) -> int:
    """Of a common problem."""
    return 4000 if scalar(info) else 1000


def _stream(link: CcmPair) -> dict[str, Any]:
    return {"seed": _SEED, "library": link.stream[0], "target": link.stream[1]}


_OTHER_E = ({"E": 1}, {"E": 8}, {"E": 20})
_SHORTER = {"E": 3, "part": 4}


class DrawProblem(CcmProblem):
    """Members of sub-libraries, whatever the numbers are."""

    kernel, entries, shares = "ccm_draw", ("ccm_draw", "ccm_list"), (0.02, 0.95)
    normal, exhaustive = (_SHORTER,), ()


class ScanProblem(CcmProblem):
    """Members among sorted neighbours: of large sub-libraries."""

    kernel, entries, shares = "ccm", ("ccm", "ccm_prepare", "ccm_rho"), (0.2, 0.95)
    normal = (*_OTHER_E, _SHORTER)


class DirectProblem(CcmProblem):
    """All members of small sub-libraries."""

    kernel, shares, normal = "ccm_direct", (0.01, 0.05), _OTHER_E


PROBLEMS = (DrawProblem(), ScanProblem(), DirectProblem())

"""Local linear fits as a job of a single block: the problem, and its engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ...engines.smap import LocalFits
from ...jobs.blocks import Arrays, Block, BlockResult, Record, Report, cut
from ..shared.regression import Doubles, Regression
from .smap_fit import fit_rows, generate, local_fits
from .smap_solvers import Solver, fit_by_estimator

if TYPE_CHECKING:
    from ...device.executor import Executor


@dataclass(frozen=True)
class SmapProblem:
    """Fits around the rows of a regression, for some theta.

    Attributes
    ----------
    regression : Regression
    thetas : ndarray (n_thetas,)
    knn : int or None
        Neighbours of a fit; all if None.
    solver : Solver
    dtype : str
        What distances and weights are computed in.
    singular_values : bool
        Whether they are wanted, too.
    steps : int
        How far to continue the predicted series instead; 0 to fit around the regression's rows.
    """

    regression: Regression
    thetas: Doubles
    knn: int | None
    solver: Solver
    dtype: str
    singular_values: bool = False
    steps: int = 0

    unit: ClassVar[str] = ""  # nothing is reported
    total: ClassVar[int] = 1

    @property
    def kernels(self) -> tuple[str, ...]:
        """Kernels that the answer depends on."""
        return () if self.solver.estimator is not None else ("smap_scale", "smap", "smap_solve")

    def size(self, block: Block) -> int:
        return len(block)

    def blocks(self) -> list[Block]:
        """All fits."""
        return cut(1, 1)

    @property
    def operations(self) -> float:
        library, coordinates = self.regression.library.shape
        pairs = float(library) * max(self.steps, len(self.regression.rows))
        per_pair = 4 * coordinates + len(self.thetas) * (coordinates + 1) ** 2
        return pairs * float(per_pair)

    def open(self, executor: Executor) -> SmapEngine:
        return SmapEngine(self, executor)


class SmapEngine:
    """A library on a device, or on the host where an estimator fits.

    Raises
    ------
    InputError
        The device has no double precision, which sums of products need.
    """

    def __init__(self, problem: SmapProblem, executor: Executor) -> None:
        p = self._problem = problem
        self._fits: LocalFits | None = None
        if p.solver.estimator is None:
            self._fits = local_fits(executor, p.regression, p.knn, p.solver.alpha, p.dtype, once=not p.steps)

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """The pair (Regression, Fits): what was fitted in the end, and how."""
        p, regression = self._problem, self._problem.regression
        if self._fits is None:
            return BlockResult((regression, fit_by_estimator(regression, p.thetas, p.knn, p.solver.estimator)))
        if p.steps:
            regression, fits = generate(self._fits, regression, p.steps, p.thetas, singular_values=p.singular_values)
        else:
            fits = fit_rows(self._fits, regression, p.thetas, singular_values=p.singular_values)
        return BlockResult((regression, fits), Record(self._fits.parameters, self._fits.grade))

    def release(self) -> None:
        """Give the device memory back."""
        if self._fits is not None:
            self._fits.release()

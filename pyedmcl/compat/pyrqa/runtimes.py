"""How long a computation took, in PyRQA's form."""

from __future__ import annotations

from typing import Any


class OperatorRuntimes:
    """Seconds of one step.

    Attributes
    ----------
    transfer_to_device, execute_computations, transfer_from_device : float
    """

    def __init__(
        self, transfer_to_device: float = 0.0, execute_computations: float = 0.0, transfer_from_device: float = 0.0
    ) -> None:
        self.transfer_to_device = transfer_to_device
        self.execute_computations = execute_computations
        self.transfer_from_device = transfer_from_device

    @property
    def total(self) -> float:
        """Of all three."""
        return self.transfer_to_device + self.execute_computations + self.transfer_from_device

    def __add__(self, other: Any) -> OperatorRuntimes:
        return OperatorRuntimes(
            self.transfer_to_device + other.transfer_to_device,
            self.execute_computations + other.execute_computations,
            self.transfer_from_device + other.transfer_from_device,
        )

    def __str__(self) -> str:
        return (
            f"Runtimes\n--------\nTransfer to Device: {self.transfer_to_device:.4f}s\n"
            f"Execute computations: {self.execute_computations:.4f}s\n"
            f"Transfer from Device: {self.transfer_from_device:.4f}s\nTotal: {self.total:.4f}s\n"
        )


class FlavourRuntimesMonolithic(OperatorRuntimes):
    """Seconds of one part of a matrix."""


class MatrixRuntimes:
    """Seconds of the parts of a matrix. A computation here is one part: what happens on the way is not told apart.

    Attributes
    ----------
    number_of_partitions_x, number_of_partitions_y : int
    sub_matrix_runtimes : list of list
        Of the parts, by y and x.
    """

    def __init__(self, number_of_partitions_x: int = 1, number_of_partitions_y: int = 1) -> None:
        self.number_of_partitions_x, self.number_of_partitions_y = number_of_partitions_x, number_of_partitions_y
        self.sub_matrix_runtimes: list[list[Any]] = [
            [None] * number_of_partitions_x for _ in range(number_of_partitions_y)
        ]

    def _sum(self, name: str) -> float:
        return float(sum(getattr(one, name) for row in self.sub_matrix_runtimes for one in row if one is not None))

    @property
    def transfer_to_device(self) -> float:
        return self._sum("transfer_to_device")

    @property
    def execute_computations(self) -> float:
        return self._sum("execute_computations")

    @property
    def transfer_from_device(self) -> float:
        return self._sum("transfer_from_device")

    @property
    def total(self) -> float:
        """Of all parts."""
        return self._sum("total")

    def update_index(self, partition_index_x: int, partition_index_y: int, runtimes: Any) -> None:
        """Set the runtimes of one part."""
        self.sub_matrix_runtimes[partition_index_y][partition_index_x] = runtimes

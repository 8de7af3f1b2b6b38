"""The folder of a grid of cross maps: a store for each combination, which open_xmap opens too, and a list of them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...device.info import DeviceInfo
from ...errors import StoreError, StoreForeignError, StoreMismatchError
from ...jobs import durable
from ...jobs.claims import Member, require_alone
from ...jobs.manifest import Manifest
from ...jobs.opening import open_store, several_to_write
from ...jobs.ownership import require_plain
from ...jobs.records import DamagedError, checked, read_checked
from ...jobs.store import XmapStore
from .xmap_problem import XmapProblem

_LIST = "grid.json"
_FILES, _OTHER_FILES = 2, 256  # that a store keeps open (lease and journal), and what else a process may have open


def map_name(cell: XmapProblem) -> str:
    """Folder of the map of one combination."""
    named = cell.arguments()
    theta = f"-theta_{named['theta']}" if "theta" in named else ""
    fold = f"-fold_{named['fold']}_of_{named['folds']}" if "fold" in named else ""
    return f"E_{named['E']:02d}-tau_{cell.tau}-Tp_{cell.Tp}{theta}{fold}"


def is_grid(path: Path) -> bool:
    """Whether a folder holds a grid."""
    return (path / _LIST).is_file()


def require_grid(path: Path) -> None:
    """Refuse a folder that holds other things than a grid.

    Raises
    ------
    StoreForeignError
        It does.
    """
    if not os.path.lexists(path):
        return
    require_plain(path)
    content = os.listdir(path) if path.is_dir() else ["it"]
    if _LIST not in content and not all(name.startswith(durable.PRIVATE_PREFIX) for name in content):
        raise StoreForeignError(
            f"{path} was not written by pyedmcl xmap-grid and is left alone: choose another output path"
        )


def open_stores(
    path: Path, cells: Sequence[XmapProblem], axes: dict[str, Any], info: DeviceInfo, member: Member | None, *,
    resume: bool,
) -> list[XmapStore]:  # fmt: skip
    """Stores of all maps, in their order, open for writing, with their E.

    Raises
    ------
    StoreForeignError, StoreMismatchError, StoreWriteError, StoreError
        As for :meth:`~pyedmcl.jobs.store.XmapStore.create_or_resume`.
    """
    require_grid(path)
    if member is None:
        require_alone(path)
    _allow_files(_FILES * len(cells) + _OTHER_FILES)
    manifests = {map_name(cell): cell.manifest(info) for cell in cells}
    if not (path / _LIST).exists():  # before its maps, so that a folder of a run that was killed is known as a grid
        _write_list(path, axes, manifests)
    with several_to_write(path, manifests, member, resume=resume) as stores:
        for store, cell in zip(stores, cells, strict=True):
            if store.E is None:
                store.set_E(np.array(cell.E, int))
        _write_list(path, axes, {store.path.name: store.manifest for store in stores})
    return stores


def _allow_files(wanted: int) -> None:
    """Let this process have ``wanted`` files open, as far as the system allows it to ask for that."""
    try:
        import resource  # not on Windows, which has no such limit
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(most, soft), hard))


def _write_list(path: Path, axes: dict[str, Any], manifests: Mapping[str, Manifest]) -> None:
    """Say which maps a grid has, in the order of its axes, and what each must be."""
    ordered = [[name, list(values)] for name, values in axes.items()]  # names alone would be sorted
    maps = [[name, manifest.identity] for name, manifest in manifests.items()]
    with durable.explained(f"{path} cannot be written", ", or choose another output path"):
        durable.make_folder(path)
        durable.write_file(path / _LIST, checked({"axes": ordered, "maps": maps}))


def read_grid(path: Path) -> tuple[dict[str, Any], list[XmapStore]]:
    """Axes of a grid and the stores of its maps, for reading.

    Raises
    ------
    StoreForeignError
        There is no such result.
    StoreMismatchError
        Its maps are of several results, or lie under names of others.
    StoreError
        It is damaged.
    """
    require_plain(path)
    try:
        record = read_checked(path / _LIST)
        if record is None:
            raise StoreForeignError(f"{path} is no result of pyedmcl xmap-grid: name the folder that it wrote")
        axes = {str(name): tuple(values) for name, values in record["axes"]}
        stores = {str(name): open_store(path / str(name)) for name, _ in record["maps"]}
        for name, identity in record["maps"]:
            if stores[name].manifest.identity != identity:
                raise StoreMismatchError(
                    f"{path / name} is a map of another grid, or of another combination of this one: bring the right "
                    "one back from a copy, or remove it and run the same command again"
                )
        return axes, list(stores.values())
    except NotADirectoryError as error:
        raise StoreForeignError(f"{path} is no result of pyedmcl xmap-grid: name the folder that it wrote") from error
    except (DamagedError, OSError, LookupError, TypeError, ValueError) as error:
        raise StoreError(f"{path / _LIST} is damaged ({error}): run the same command again, which mends it") from error


class StoredGrid:
    """Maps of a grid on the disk, which are read when they are used; ``numpy.asarray`` reads all.

    Parameters
    ----------
    maps : sequence of array_like
        In the order of the axes.
    shape : tuple of int
        Lengths of the axes, of libraries and of targets.
    """

    def __init__(self, maps: Sequence[Any], shape: tuple[int, ...]) -> None:
        self.maps, self.shape = list(maps), shape
        self.ndim = len(shape)
        self.dtype = np.dtype(self.maps[0].dtype)

    def __repr__(self) -> str:
        return f"StoredGrid(shape={self.shape}, dtype={self.dtype})"

    def rows(self, begin: int, end: int) -> NDArray[Any]:
        """Libraries ``begin`` to ``end - 1`` of all maps: (*axes, end - begin, n_targets)."""
        layers = np.stack([np.asarray(one[begin:end]) for one in self.maps])
        return layers.reshape(*self.shape[:-2], *layers.shape[1:])

    def take(self, places: NDArray[np.int_]) -> StoredGrid:
        """The maps at some places, counted over all axes, in the shape of ``places``."""
        return StoredGrid([self.maps[place] for place in places.ravel()], (*places.shape, *self.shape[-2:]))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.rows(0, self.shape[-2]).astype(dtype or self.dtype, copy=False)

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]

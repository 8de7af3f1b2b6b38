"""The file of a saved result: a zip archive of arrays (.npy) and one description in JSON, all with checksums.

NumPy opens it, too (``numpy.load(path)["rho"]``). Nothing in it is a program: values are numbers, texts, arrays, and
those classes that :data:`pyedmcl.registry.RESULTS` and :data:`~pyedmcl.registry.PARTS` list.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ..errors import InputError, StoreError, StoreForeignError, StoreMismatchError
from ..files import array_of, output_path, path_of, stored_member, writing
from .portable import Decoder, Encoder, UnknownError

SUFFIX = ".edm"
FORMAT = 1
_KIND = "pyedmcl result"
_DESCRIPTION = "result.json"
_SUM, _OF = "sha256", "of"


class _Summed:
    """What is written to a file, with the checksum of it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._state = file, hashlib.sha256()

    def write(self, data: bytes) -> int:
        self._state.update(data)
        return self._file.write(data)

    def digest(self) -> str:
        return self._state.hexdigest()


def save_result(result: Any, path: Any, *, of: str | None = None) -> Path:
    """Write a result, whole or not at all.

    Parameters
    ----------
    result : object
    path : path
    of : str, optional
        Digest of the run to whose folder it belongs.

    Raises
    ------
    OutputError
        The path does not end in ``.edm``, or its folder is not there.
    StoreWriteError
        The file cannot be written; one that was there is kept then.
    """
    from .. import __version__

    place = output_path(path, (SUFFIX,), "a result")
    encoder = Encoder()
    content = encoder.encode(result, "")
    with writing(place, "the result") as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_STORED) as archive:
        sums = {name: _write_array(archive, name, array) for name, array in encoder.arrays.items()}
        description = {"kind": _KIND, "format": FORMAT, "version": __version__, "content": content, "arrays": sums}
        if of is not None:
            description[_OF] = of
        text = json.dumps({**description, _SUM: _digest(description)}, indent=1, allow_nan=False)
        archive.writestr(zipfile.ZipInfo(_DESCRIPTION), text.encode())
    return place


def _write_array(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> str:
    # The time that ZipInfo takes by default is always the same, so that equal results are equal files.
    with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
        summed = _Summed(member)
        npy.write_array(summed, np.asanyarray(array), allow_pickle=False)
    return summed.digest()


def _digest(description: dict[str, Any]) -> str:
    text = json.dumps(description, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def read_result(path: Any, *, of: str | None = None) -> Any:
    """Read what :func:`save_result` wrote; with ``of``, for the run with that digest.

    Raises
    ------
    InputError
        There is no such file.
    StoreForeignError
        It is no result of ours.
    StoreMismatchError
        Another version of pyedmcl wrote it, in a format that this one does not know; or it is of another run.
    StoreError
        It is damaged, or cannot be read.
    """
    place = path_of(path)
    try:
        with zipfile.ZipFile(place) as archive:
            return _read(archive, place, of)
    except FileNotFoundError as error:
        raise InputError(f"{place}: there is no such file") from error
    except (StoreError, UnknownError) as error:
        if isinstance(error, StoreError):
            raise
        raise StoreMismatchError(f"{place} {error}: open it with the version of pyedmcl that wrote it") from error
    except zipfile.BadZipFile as error:
        raise StoreForeignError(f"{place} is no result that pyedmcl saved, or only a part of one ({error})") from error
    except OSError as error:
        raise StoreError(f"{place} cannot be read ({error.strerror}): check its permissions") from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, EOFError, NotImplementedError,
            RuntimeError) as error:  # fmt: skip
        raise _damaged(place, f"{type(error).__name__}: {error}") from error


def _damaged(place: Path, why: str) -> StoreError:
    return StoreError(f"{place} is damaged ({why}): bring it back from a copy, or save the result again")


def _read(archive: zipfile.ZipFile, place: Path, of: str | None) -> Any:
    if _DESCRIPTION not in archive.namelist():
        raise StoreForeignError(f"{place} is no result that pyedmcl saved (it holds no {_DESCRIPTION})")
    description = json.loads(stored_member(archive, _DESCRIPTION))
    if not isinstance(description, dict) or description.get("kind") != _KIND:
        raise StoreForeignError(f"{place} is no result that pyedmcl saved")
    if description.get("format") != FORMAT:
        raise UnknownError(
            f"has format {description.get('format')!r} of pyedmcl {description.get('version')}, this one knows format "
            f"{FORMAT}"
        )
    stored = description.pop(_SUM, None)
    if stored != _digest(description):
        raise _damaged(place, "the checksum of its description differs")
    if of is not None and description.get(_OF) != of:
        raise StoreMismatchError(
            f"{place} belongs to another run than the other files of its folder: run the same command again, which "
            "writes it anew, or open the file from another folder"
        )

    def array(name: str) -> NDArray[Any]:
        data = stored_member(archive, f"{name}.npy")
        if hashlib.sha256(data).hexdigest() != description["arrays"][name]:
            raise _damaged(place, f"the checksum of {name} differs")
        return array_of(data)

    return Decoder(array).result(description["content"])

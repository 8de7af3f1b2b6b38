"""Errors and warnings: each class names a kind of fault, its text the thing and what to do; and imports that tell a
missing extra.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from typing import Any

_SHOWN = 120  # characters of a value in a message
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class PyedmclError(Exception):
    """Base class of all errors raised by pyedmcl on purpose."""


class PyedmclWarning(RuntimeWarning):
    """What pyedmcl warns of: a result that has no value, less than was asked for, a device that was left out."""


class ConstantSeriesWarning(PyedmclWarning):
    """A series never changes, so that its skill is NaN."""


class GroupsWarning(PyedmclWarning):
    """A column of a table seems to tell recordings apart, and no ``groups`` were given."""


class ReadingWarning(PyedmclWarning):
    """Something in the data was taken in one of several ways, or left out; the message says what and where."""


class RecurrenceWarning(PyedmclWarning):
    """A recurrence matrix is nearly empty or nearly full, or not what was asked for."""


class InputError(PyedmclError, ValueError):
    """Data or a parameter cannot be used; the message names it and says what is needed."""


class DeviceNotFoundError(PyedmclError, LookupError):
    """No OpenCL device matches the request; the message lists the devices there are."""


class DeviceMemoryError(PyedmclError, MemoryError):
    """A block does not fit on the device even at its smallest size; the message holds the numbers.

    Attributes
    ----------
    refused : bool
        The device refused an allocation or a launch that had been planned, so that a smaller plan may fit. False where
        the plan itself found that the numbers do not fit.
    kernel : str
    work_group : int
        Set where a launch was refused, which on some drivers means its work-group.
    last : bool
        Less memory has been tried already.
    """

    last: bool = False
    refused: bool = False
    kernel: str = ""
    work_group: int = 0


class HostMemoryError(DeviceMemoryError):
    """The memory of this machine, rather than that of a device, is too small; the message holds the numbers."""


class BuildError(PyedmclError, RuntimeError):
    """A kernel could not be generated or compiled; the message shows the source around the error.

    Attributes
    ----------
    log : str
        The compiler's own words, unchanged.
    source : str
        The OpenCL C text that it was given.
    kernel : str
        Name of the kernel's spec, where it is known.
    """

    kernel: str = ""

    def __init__(self, message: str, *, log: str = "", source: str = "") -> None:
        super().__init__(message)
        self.log = log
        self.source = source


class LaunchError(PyedmclError, RuntimeError):
    """The driver refused or lost a kernel launch.

    Attributes
    ----------
    kernel : str
        The kernel that was refused; empty for other trouble.
    work_group : int
        Work-items of the group that was asked for; 0 where it was left to the driver.
    """

    kernel: str = ""
    work_group: int = 0


class ClientError(PyedmclError, RuntimeError):
    """The workers of ``client=`` cannot be used or were lost; the message says why, and what is kept."""


class WrongResultError(PyedmclError, RuntimeError):
    """A device gave numbers that cannot be; the message names it and asks for a report. Nothing is returned."""


class StoreError(PyedmclError):
    """A result store cannot be used."""


class StoreForeignError(StoreError):
    """The output path exists and was not written by pyedmcl."""


class StoreMismatchError(StoreError):
    """The store belongs to another input or other parameters; the message says what differs."""


class StoreWriteError(StoreError, OSError):
    """A block could not be written (disk full, permission); finished blocks are kept."""


class OutputError(StoreWriteError, InputError):
    """A file cannot be written as named: an unknown suffix, no such folder, or a file that is an input."""


class MissingExtraError(PyedmclError, ImportError):
    """An optional package is needed; the message names the extra that installs it."""


class Interrupted(PyedmclError, KeyboardInterrupt):
    """Ctrl-C during a long job; the message says what was kept and how to resume."""


def shown(value: object) -> str:
    """``value`` for a message: long arrays by their shape, long texts cut, and whatever has no text by its type."""
    try:
        size, shape = getattr(value, "size", 0), getattr(value, "shape", None)
        if isinstance(shape, tuple) and isinstance(size, int) and size > 8:
            return f"(array of shape {shape})"
        text = repr(value)
    except Exception:  # an int of more digits than Python writes, an object whose repr fails
        return f"(a value of type {type(value).__name__})"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def missing_extra(package: str, extra: str, purpose: str) -> MissingExtraError:
    """Error for an optional ``package`` that ``extra`` installs and ``purpose`` needs."""
    return MissingExtraError(f"{purpose} needs the package {package!r}: pip install 'pyedmcl[{extra}]'")


def warn(message: str, category: type[Warning] = PyedmclWarning) -> None:
    """Warn, naming the line outside this package from which it was called, however deep the call has led."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


# Optional packages, imported at use; their absence is an error that names the extra.


def need(module: str, purpose: str, extra: str = "io") -> Any:
    """Import ``module`` (possibly dotted), of an extra; ``purpose`` says in an error what needed it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise missing_extra(module.partition(".")[0], extra, purpose) from error


def pandas_for(purpose: str) -> Any:
    """The module pandas, for ``purpose``."""
    return need("pandas", purpose)

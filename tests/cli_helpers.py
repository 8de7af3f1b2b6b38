"""Whole commands, in this process or in one of their own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import warnings
from pathlib import Path
from unittest import mock

import pyedmcl
from pyedmcl import call
from pyedmcl.cli.app import main

# The command may run in another folder, and the package need not be installed.
_CHECKOUT = str(Path(pyedmcl.__file__).parents[1])


def environment(**more):
    path = os.pathsep.join(filter(None, [_CHECKOUT, os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, **more}


def words(*parts):
    """The command line of ``pyedmcl`` with these words."""
    return [sys.executable, "-m", "pyedmcl", *map(str, parts)]


def shell(*parts, env=None, **options):
    """Run ``pyedmcl`` to its end."""
    return subprocess.run(words(*parts), capture_output=True, text=True, timeout=240, env=environment(**(env or {})),
                          **options)  # fmt: skip


def inside(*parts, cwd=None):
    """Run ``pyedmcl`` to its end in this process, with streams, warnings and exit code as in one of its own.

    A process of its own (:func:`shell`) takes a second to begin. It is for what a process is about: its streams,
    signals, limits and environment.
    """
    words_here, command, folder = ["pyedmcl", *map(str, parts)], call._command, Path.cwd()
    said, told = io.BytesIO(), io.BytesIO()

    def show(message, category, filename, line_number, file=None, line=None):
        sys.stderr.write(warnings.formatwarning(message, category, filename, line_number, line))

    with (
        mock.patch.object(sys, "argv", words_here),
        mock.patch.object(sys, "stdout", io.TextIOWrapper(said, "utf-8")),
        mock.patch.object(sys, "stderr", io.TextIOWrapper(told, "utf-8")),
        warnings.catch_warnings(),
    ):
        warnings.resetwarnings()
        warnings.showwarning = show
        try:
            os.chdir(cwd or folder)
            main()
        except SystemExit as end:
            sys.stdout.flush()
            sys.stderr.flush()
            return subprocess.CompletedProcess(
                words_here, end.code, *(stream.getvalue().decode() for stream in (said, told))
            )
        finally:
            os.chdir(folder)
            call.ran_by(command)
    raise AssertionError("the command did not end by an exit code")

"""Damage of files as disks, networks and hands do it, and folders of files to try it on."""

from __future__ import annotations

import shutil
from pathlib import Path

from hypothesis import strategies as st

KINDS = ("bit", "byte", "cut", "zeros", "twice", "gone")


@st.composite
def damages(draw, files):
    """(file, kind, place, value): one of ``files``, and what is done to it where; places are shares of its length."""
    kind = draw(st.sampled_from(KINDS + ("bit",) * 4))
    place = draw(st.floats(0, 1, exclude_max=True))
    return draw(st.sampled_from(files)), kind, place, draw(st.integers(0, 255))


def damaged(content, kind, place, value):
    """The bytes after damage of a kind; None where the file is gone."""
    if kind == "gone":
        return None
    at = int(place * len(content))
    changed = bytearray(content)
    if kind == "cut":
        return bytes(changed[:at])
    if kind == "twice":
        return bytes(changed + changed[at:])
    if kind == "zeros":
        length = min(value + 1, len(changed) - at)
        changed[at : at + length] = bytes(length)
    elif changed:
        changed[at] = changed[at] ^ (1 << value % 8) if kind == "bit" else value
    return bytes(changed)


class Folder:
    """A folder as it was written, of which copies are damaged.

    Parameters
    ----------
    path : pathlib.Path
    """

    def __init__(self, path):
        self.path = Path(path)
        self.files = sorted(str(file.relative_to(path)) for file in self.path.rglob("*") if file.is_file())

    def copy(self, to, damage=None):
        """A copy at ``to``, in place of what is there, with one file damaged; whether that changed it."""
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(self.path, to)
        if damage is None:
            return False
        name, *how = damage
        before = (to / name).read_bytes()
        after = damaged(before, *how)
        if after is None:
            (to / name).unlink()
        else:
            (to / name).write_bytes(after)
        return after != before

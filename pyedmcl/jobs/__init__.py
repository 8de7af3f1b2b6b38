"""All-pairs work: blocks of rows, computed, stored and continued after any interruption."""

from __future__ import annotations

from .blocks import default_block_rows
from .manifest import Manifest
from .opening import open_store
from .store import XmapStore

__all__ = ["Manifest", "XmapStore", "default_block_rows", "open_store"]

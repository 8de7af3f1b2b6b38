"""All-pairs work: blocks of rows, computed, stored and continued after any interruption."""

from __future__ import annotations

from .blocks import Manifest, default_block_rows
from .store import XmapStore, open_store

__all__ = ["Manifest", "XmapStore", "default_block_rows", "open_store"]

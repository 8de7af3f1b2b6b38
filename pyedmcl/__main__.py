"""``python -m pyedmcl``: the same as the command ``pyedmcl``."""

from __future__ import annotations

from .cli.app import main

if __name__ == "__main__":
    main()

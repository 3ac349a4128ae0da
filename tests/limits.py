"""Bounds of a server made small for a test (``saferank.service.limits``); ``conftest.py`` puts them back."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from saferank.service import limits

NAMES = {name.lower(): name for name in vars(limits) if name.isupper()}


def set_limits(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Set the limits among these settings; returns the others."""
    for name in asked.keys() & NAMES.keys():
        setattr(limits, NAMES[name], asked[name])
    return {name: value for name, value in asked.items() if name not in NAMES}


def main() -> None:
    """``python -m tests.limits max_pending=2 serve ...``: the command line with small limits."""
    from saferank.cli import main as run

    while sys.argv[1:] and "=" in sys.argv[1]:
        name, _, value = sys.argv.pop(1).partition("=")
        set_limits({name: type(getattr(limits, NAMES[name]))(value)})
    raise SystemExit(run())


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    main()

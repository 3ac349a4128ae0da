"""``python -m saferank.cli`` is ``saferank``."""

import sys

from saferank.cli import main

if __name__ == "__main__":  # doctest collection imports every module
    sys.exit(main())

"""The acceptance tests of the service and its benchmarks use the same load and the same measurements."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

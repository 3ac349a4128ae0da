"""safe-draw whose certificates have a lifetime: many small cases, interpreted in another process."""

import os
import subprocess
import sys
from pathlib import Path

from tests.policies.safe_draw import lifetime_cases as safe_draw_lifetime_cases


def test_the_cases_pass_interpreted() -> None:
    cases = Path(safe_draw_lifetime_cases.__file__)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(cases)],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-8000:]

"""The machine on which something is measured, and its disk."""

import os
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np


def disk_milliseconds(folder: Path, times: int = 200) -> dict[str, float]:
    """How long a small write takes to be on disk."""
    taken = []
    with (folder / "fsync").open("wb", buffering=0) as file:
        for _ in range(times):
            began = time.perf_counter()
            file.write(b"x" * 4096)
            os.fsync(file.fileno())
            taken.append(1000 * (time.perf_counter() - began))
    median, high = np.percentile(taken, [50, 99])
    return {"p50": round(float(median), 2), "p99": round(float(high), 2)}


def machine() -> dict[str, Any]:
    """Where this was measured."""
    models = [line for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if "model name" in line]
    return {
        "processor": models[0].partition(":")[2].strip() if models else platform.machine(),
        "cores": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
    }

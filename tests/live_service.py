"""``saferank serve`` as it is, in a process of its own on a free port, ended by the test."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import saferank

PATIENCE = 240
"""Seconds; the first start on a machine compiles kernels."""


@contextlib.contextmanager
def live_service(folder: Path, *flags: str) -> Iterator[str]:
    """The address of a service whose store and log are in ``folder``."""
    command = [sys.executable, "-m", "saferank.cli", "serve", "--port", "0", "--store", str(folder / "store"), *flags]
    source = str(Path(str(saferank.__file__)).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])}
    with (folder / "service.log").open("w") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("ready: "), (folder / "service.log").read_text(encoding="utf-8")
        yield line.split()[1]
    finally:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(30)
        process.kill()
        process.communicate()

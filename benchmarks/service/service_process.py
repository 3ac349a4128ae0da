"""A real ``saferank serve`` in a process of its own, on loopback, that can be killed and started again on its store."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import quote

_READY = re.compile(r"^ready: http://127\.0\.0\.1:(\d+) ", re.MULTILINE)
_TICKS = os.sysconf("SC_CLK_TCK")


class Usage(NamedTuple):
    """What a process has used so far, and holds."""

    user_seconds: float
    system_seconds: float
    resident_mb: float


class ServiceProcess:
    """One store, and the server that runs on it at present, if one does."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        self.store = folder / "store"
        self.address: str | None = None  # of a store that is not a folder
        self.settings = {"holdout_share": 0, "guardrail_drop": 0, **settings}  # every page is the policy's
        self.program = ["saferank.cli"]  # what ``python -m`` runs, with its first arguments
        self.key: str | None = None  # for the reading calls below
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0
        self.ready_seconds = 0.0
        self.ready_processor_seconds = 0.0  # of the server; unlike the above it does not depend on what else runs

    def start(self, patience: float = 240.0) -> float:
        """Start it and wait until it is ready; the seconds that took."""
        assert self._process is None, "it is running"
        began = time.monotonic()
        self._starts += 1
        with self._said().open("wb") as output, self._logged().open("wb") as log:
            self._process = subprocess.Popen(self._command(), stdout=output, stderr=log)
        self.port = self._wait_for_port(began + patience)
        self._wait_until_ready(began + patience)
        self.ready_seconds = time.monotonic() - began
        used = self.usage()
        self.ready_processor_seconds = used.user_seconds + used.system_seconds
        return self.ready_seconds

    def kill(self) -> None:
        """The end without warning: kill -9."""
        self._end(signal.SIGKILL)

    @property
    def runs(self) -> bool:
        """True between a start, also one that failed, and an end."""
        return self._process is not None

    def pause(self) -> None:
        """It stands still: SIGSTOP."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """It goes on: SIGCONT."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def stop(self, patience: float = 30.0) -> int:
        """The end in order; the exit code."""
        return self._end(signal.SIGTERM, patience)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *problem: object) -> None:
        if self._process is not None:
            self.kill()

    def read(self, path: str) -> Any:
        """The JSON at a path."""
        with self._opened(path) as answer:
            return json.load(answer)

    def context(self, name: str) -> Any:
        """What a context says of itself."""
        return self.read(f"/v1/contexts/{quote(name, safe='')}")

    def lines(self, path: str) -> list[Any]:
        """The JSON lines at a path."""
        with self._opened(path) as answer:
            return [json.loads(line) for line in answer]

    def metrics(self) -> dict[str, float]:
        """The metrics page: name with labels -> value."""
        with self._opened("/metrics") as answer:
            lines = answer.read().decode().splitlines()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[:1] != "#")}

    def usage(self) -> Usage:
        """Processor time and memory of the server."""
        assert self._process is not None
        fields = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text(encoding="ascii").split()[1])
        return Usage(int(fields[11]) / _TICKS, int(fields[12]) / _TICKS, pages * os.sysconf("SC_PAGE_SIZE") / 1e6)

    def log(self) -> str:
        """What the server wrote to stderr since its last start."""
        return self._logged().read_text(encoding="utf-8", errors="replace")

    def _opened(self, path: str) -> Any:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}")
        if self.key is not None:
            request.add_header("Authorization", f"Bearer {self.key}")
        return urllib.request.urlopen(request, timeout=120)

    def _command(self) -> list[str]:
        settings = [f"--set={name}={value}" for name, value in self.settings.items()]
        return [
            sys.executable,
            "-m",
            *self.program,
            "serve",
            "--port=0",
            f"--store={self.address or self.store}",
            *settings,
        ]

    def _wait_for_port(self, until: float) -> int:
        assert self._process is not None
        while time.monotonic() < until and self._process.poll() is None:
            found = _READY.search(self._said().read_text(encoding="utf-8"))
            if found:
                return int(found.group(1))
            time.sleep(0.01)
        self._end(signal.SIGKILL)
        raise RuntimeError(f"the service did not become ready; it said: {self.log()[-2000:]}")

    def _wait_until_ready(self, until: float) -> None:
        """It answers 503 while its store is away."""
        while True:
            try:
                self.read("/readyz")
            except urllib.error.HTTPError as problem:
                if problem.code != 503 or time.monotonic() > until:
                    raise
                time.sleep(0.05)
            else:
                return

    def _end(self, number: signal.Signals, patience: float = 30.0) -> int:
        assert self._process is not None, "it is not running"
        process, self._process = self._process, None
        process.send_signal(number)
        try:
            return process.wait(patience)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def _said(self) -> Path:
        return self.folder / f"said-{self._starts}.txt"

    def _logged(self) -> Path:
        return self.folder / f"logged-{self._starts}.txt"

"""``saferank serve`` on a machine whose clocks jump: ``python -m tests.acceptance.service.jumping_clock FILE serve``.

The clocks of a real machine cannot be set for a test. Here the server's own clock adds what a file says to the readings
of the machine: two numbers, seconds for the monotonic and for the wall clock. The file is mapped into memory, so a jump
holds from one reading to the next, also when it is written while the process stands still.
"""

import mmap
import struct
import sys
from pathlib import Path

from saferank.cli import main
from saferank.service import server
from saferank.service.clock import SystemClock

_SKEWS = struct.Struct("<dd")


class Skews:
    """By how many seconds the clocks of a server are off."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(_SKEWS.pack(0.0, 0.0))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _SKEWS.size)

    @property
    def monotonic(self) -> float:
        return float(_SKEWS.unpack_from(self._map)[0])

    @property
    def wall(self) -> float:
        return float(_SKEWS.unpack_from(self._map)[1])

    def jump(self, monotonic: float = 0.0, wall: float = 0.0) -> None:
        """Set both clocks ahead, or back."""
        _SKEWS.pack_into(self._map, 0, self.monotonic + monotonic, self.wall + wall)


class JumpingClock(SystemClock):
    """The clock of this machine, and what the file says."""

    skews: Skews

    def monotonic(self) -> float:
        return super().monotonic() + self.skews.monotonic

    def wall(self) -> float:
        return super().wall() + self.skews.wall


if __name__ == "__main__":
    JumpingClock.skews = Skews(Path(sys.argv[1]))
    server.SystemClock = JumpingClock  # type: ignore[attr-defined]
    sys.exit(main(sys.argv[2:]))

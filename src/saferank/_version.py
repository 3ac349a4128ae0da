"""What results say about their making: the version, which the build reads without importing numba, and the command."""

from contextvars import ContextVar

__version__ = "0.2.0"
COMMAND_LINE: ContextVar[tuple[str, ...]] = ContextVar("command_line", default=())
"""The command line that runs; none where the library was called."""

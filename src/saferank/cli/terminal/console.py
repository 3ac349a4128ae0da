"""Where output goes: results to stdout, everything about the way there to stderr."""

from rich.console import Console

STDOUT = Console()

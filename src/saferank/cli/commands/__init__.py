"""One file per command: its options, one call, and its output."""

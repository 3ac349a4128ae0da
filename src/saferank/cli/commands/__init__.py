"""One file per command: its options, one call, and what is printed."""

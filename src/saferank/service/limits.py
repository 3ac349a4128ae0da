"""Bounds of a server that are no settings: constants, each with the reason for its value.

They are read where they are used, as ``limits.NAME``, so that a test can make one small.
"""

MAX_PENDING = 20_000
"""Pages and reports that may wait for the store; beyond, feedback is refused with 503. Some seconds of a busy server:
what waits longer is asked for again by its client."""

SNAPSHOT_EVERY = 20_000
"""Pages of a context between two kept snapshots of its knowledge: a rollback or an audit folds no more."""

MAX_LOADED_CONTEXTS = 5000
"""Contexts in the memory of a process; others are read when they are asked for. ``max_loaded_mb`` bounds their size."""

MAX_BODY_BYTES = 1_000_000
"""Larger bodies are refused with 413: a thousand reports or 10,000 items fit."""

BODY_SECONDS = 10.0
"""A body that takes longer to arrive is refused with 408."""

MAX_IN_FLIGHT = 64
"""Rank calls worked on at a time, as many others, four times as many reports; beyond, 503. They take 20 ms together."""

MAX_CONNECTIONS = 2000
"""Connections of a process; one more closes the one that has waited the longest for its client."""

KEEP_ALIVE_SECONDS = 30
"""How long an idle connection stays open."""

STOP_SECONDS = 10.0
"""How long a stop waits for running requests and the disk: half of what containers and systemd wait."""

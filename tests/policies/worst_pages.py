"""What a run has certified."""

from typing import Any


def certificates_of(state: Any) -> set[tuple[int, int]]:
    """All pairs (better, worse) that were ever certified."""
    kept = state.duels.certificates
    given = int(kept.given[0])
    return set(zip(kept.better[:given].tolist(), kept.worse[:given].tolist(), strict=True))

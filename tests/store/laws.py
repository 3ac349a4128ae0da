"""Laws of pages that were drawn, from numbers."""

import struct
from collections.abc import Sequence

from saferank.store.page_record import Law


def drawn_law(start: bytes, end: bytes, weight: Sequence[float], exchanges: Sequence[int]) -> Law:
    """The law of a page with these weights and exchanges by place."""
    return Law(start, end, struct.pack(f"<{len(weight)}d{len(exchanges)}Q", *weight, *exchanges))

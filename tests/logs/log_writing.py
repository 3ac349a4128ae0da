"""Small logs for tests: lines are written with spaces where the log has tabs."""

from pathlib import Path

import numpy as np

from saferank.logs import ClickLog

PERSONALIZED = "yandex-personalized"
RELEVANCE = "yandex-relevance"


def tabbed(*lines: str) -> bytes:
    return "".join(line.replace(" ", "\t") + "\n" for line in lines).encode()


def written(folder: Path, *lines: str, name: str = "log") -> Path:
    path = folder / name
    path.write_bytes(tabbed(*lines))
    return path


def page(session: int, serp: int, query: int, items: str, kind: str = "Q", time: int = 0) -> str:
    """A record of yandex-personalized; ``items`` like "1 2 3"."""
    shown = " ".join(f"{item},7" for item in items.split())
    return f"{session} {time} {kind} {serp} {query} 5,6 {shown}"


def same(one: ClickLog, other: ClickLog) -> bool:
    arrays = all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(one.pages, other.pages, strict=True))
    return arrays and (one.queries, one.pairs, one.rankings) == (other.queries, other.pairs, other.rankings)

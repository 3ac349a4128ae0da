"""What visitors know: every page they were shown, every click that was acknowledged. Kept outside the service."""

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from saferank.service.identifiers import from_text
from saferank.service.wire.calls import milliseconds


@dataclass
class ShownPage:
    """A page as its visitor saw it."""

    context: str
    impression_id: str
    token: str
    ranking: list[str]
    leader_version: int
    mode: str
    explored: str | None
    available: frozenset[str]  # what the call allowed to be shown
    session: str | None
    confirmed: set[str] = field(default_factory=set)  # clicks that were acknowledged
    unsure: Counter[str] = field(default_factory=Counter)  # by item: reports that may have been taken in, or not


class Ledger:
    """All pages by impression."""

    def __init__(self) -> None:
        self.pages: dict[str, ShownPage] = {}
        self.acknowledged = 0
        self.late = 0

    def add(self, call: dict[str, Any], answer: dict[str, Any]) -> ShownPage:
        """A page was shown."""
        assert answer["impression_id"] not in self.pages
        page = ShownPage(
            call["context"], answer["impression_id"], answer["token"], answer["ranking"], answer["leader_version"],
            answer["mode"], answer["safety"]["explored"], frozenset(call["base_ranking"]).union(call["candidates"]),
            call.get("session_id"),
        )  # fmt: skip
        self.pages[page.impression_id] = page
        return page

    def check_clicks(self, kept: dict[str, set[str]]) -> None:
        """Nothing acknowledged is missing from what the service kept, and nothing is there that was never sent."""
        for page in self.pages.values():
            found = kept.get(page.impression_id, set())
            assert page.confirmed <= found, f"{page.impression_id}: {page.confirmed - found} was acknowledged and lost"
            assert found <= page.confirmed | set(+page.unsure), f"{page.impression_id}: {found} has unsent clicks"


Pairs = dict[tuple[str, str], tuple[int, int]]
"""By pair of items in alphabetical order: the lead s of the first, and n."""


def fold_of(pages: Iterable[dict[str, Any]], shown: dict[str, ShownPage] | None = None) -> Pairs:
    """The statistics of a context by the book: for every two items compared on a page of which one was clicked, a win.

    ``pages`` are closed pages that count, with ``groups`` (items compared with each other) and ``clicks``. Of the
    session of a page that was ``shown`` only the first such comparison of two items counts.
    """
    pairs: Pairs = {}
    voted: set[tuple[str, str, str]] = set()
    for page in sorted(pages, key=lambda page: from_text(page["impression_id"])):  # in display order
        clicked, name = set(page["clicks"]), str(page["impression_id"])
        visitor = (None if shown is None else shown[name].session) or name
        for group in page["groups"]:
            for winner in clicked.intersection(group):
                for loser in set(group) - clicked:
                    first, second = sorted((winner, loser))
                    if (visitor, first, second) in voted:
                        continue
                    voted.add((visitor, first, second))
                    s, n = pairs.get((first, second), (0, 0))
                    pairs[first, second] = (s + (1 if winner == first else -1), n + 1)
    return pairs


def pairs_of(view: dict[str, Any]) -> Pairs:
    """The same, as a context reports it; neighbours that were never compared are listed with n = 0."""
    pairs: Pairs = {}
    for pair in view["pairs"]:
        first, second = sorted((pair["better"], pair["worse"]))
        if pair["n"]:
            pairs[first, second] = (pair["s"] if first == pair["better"] else -pair["s"], pair["n"])
    return pairs


def twice_counted(pages: dict[str, ShownPage], stories: dict[str, dict[str, Any]]) -> list[tuple[str, str]]:
    """Impressions of one session, context and window that both count."""
    sessions: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for impression_id, story in stories.items():
        session = pages[impression_id].session
        if session is not None and story["counted"]:
            sessions.setdefault((story["context"], session), []).append(story)
    found = []
    for counted in sessions.values():
        counted.sort(key=lambda story: str(story["issued_at"]))
        found += [
            (first["impression_id"], second["impression_id"])
            for first, second in itertools.pairwise(counted)
            if _window(first) == _window(second)
        ]
    return found


def _window(story: dict[str, Any]) -> int:
    """Windows cut time: the number of the one in which a page was issued."""
    issued, closes = (milliseconds(story[name]) for name in ("issued_at", "closes_at"))
    return issued // (closes - issued)


def why_illegal(leader: Sequence[str], page: ShownPage) -> str | None:
    """Why a page is not the leader with disjoint exchanges of neighbours and at most one new item in the last place."""
    shown, size = page.ranking, len(leader)
    if Counter(shown).most_common(1)[0][1] > 1 or len(shown) != size:
        return f"{shown} has {size} different items no more"
    if not page.available.issuperset(shown):
        return f"{set(shown) - page.available} was not in the call"
    if not any(_follows(leader, shown, parity) for parity in (0, 1)):
        return f"{shown} does not follow from the leader {list(leader)}"
    return None


def _follows(leader: Sequence[str], shown: Sequence[str], parity: int) -> bool:
    size = len(leader)
    for place in range(size):
        partner = place + 1 if (place - parity) % 2 == 0 else place - 1
        allowed = {leader[place]} | ({leader[partner]} if 0 <= partner < size else set())
        new_at_the_end = place == size - 1 and partner == size and shown[place] not in leader
        if shown[place] not in allowed and not new_at_the_end:
            return False
    return True

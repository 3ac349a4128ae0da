"""What feedback does, by the book and slowly: the section "Statistics that must hold in production".

The model is told every page that was shown and every report of clicks, with times. It says what each report must be
answered, and what must be known of every pair of items once windows have closed.
"""

from dataclasses import dataclass, field


@dataclass
class ModelPage:
    name: str
    context: str
    shown: list[str]
    groups: list[list[str]]
    counted: bool
    issued_at: int
    closes_at: int
    session: str | None = None
    clicks: set[str] = field(default_factory=set)
    reports: int = 0
    closed: bool = False


@dataclass
class ModelAnswer:
    status: int
    accepted: bool = False
    duplicate: bool = False
    late: bool = False


class ServiceFold:
    def __init__(self) -> None:
        self.pages: dict[str, ModelPage] = {}
        self.event_ids: dict[tuple[str, str], frozenset[str]] = {}  # by page and id
        self.wins: dict[tuple[str, str, str], int] = {}
        self.learnt: list[str] = []
        self.had_a_page: set[tuple[str, str, int]] = set()
        self.voted: set[tuple[str, str, frozenset[str]]] = set()
        self.accepted = self.duplicates = self.late = 0

    # --- pages ---

    def shown(self, page: ModelPage) -> None:
        self.pages.setdefault(page.name, page)

    def counts(self, page: ModelPage) -> bool:
        """Of a session one page counts in every window, the first in display order."""
        if not page.counted or page.session is None:
            return page.counted
        visit = (page.context, page.session, page.issued_at // (page.closes_at - page.issued_at))
        first = visit not in self.had_a_page
        self.had_a_page.add(visit)
        return first

    # --- reports of clicks ---

    def feedback(self, name: str, clicks: list[str], event_id: str | None, now: int) -> ModelAnswer:
        answer = self._feedback(name, clicks, event_id, now)
        self.accepted += answer.accepted and not answer.duplicate
        self.duplicates += answer.duplicate
        self.late += answer.late
        return answer

    def _feedback(self, name: str, clicks: list[str], event_id: str | None, now: int) -> ModelAnswer:
        if name not in self.pages:
            return ModelAnswer(404)
        page = self.pages[name]
        if any(item not in page.shown for item in clicks) or len(set(clicks)) < len(clicks):
            return ModelAnswer(422)
        if event_id is not None and (name, event_id) in self.event_ids:
            same = self.event_ids[name, event_id] == frozenset(clicks)
            return ModelAnswer(200, accepted=True, duplicate=True) if same else ModelAnswer(409)
        if page.closes_at <= now:
            return ModelAnswer(200, late=True)
        nothing_new = page.reports > 0 and page.clicks.issuperset(clicks)
        if event_id is None and nothing_new:
            return ModelAnswer(200, accepted=True, duplicate=True)
        if event_id is not None:
            self.event_ids[name, event_id] = frozenset(clicks)
        page.clicks.update(clicks)
        page.reports += 1
        return ModelAnswer(200, accepted=True)

    # --- windows close ---

    def close(self, now: int) -> None:
        """Clicks count once, when the window has ended, in the order in which pages were shown."""
        due = [page for page in self.pages.values() if not page.closed and page.closes_at <= now]
        for page in sorted(due, key=lambda page: page.issued_at):
            page.closed = True
            if self.counts(page) and page.clicks:
                self._learn(page)

    def _learn(self, page: ModelPage) -> None:
        self.learnt.append(page.name)
        for group in page.groups:
            for winner in group:
                for loser in group:
                    if winner in page.clicks and loser not in page.clicks and self._may_vote(page, winner, loser):
                        key = (page.context, winner, loser)
                        self.wins[key] = self.wins.get(key, 0) + 1

    def _may_vote(self, page: ModelPage, winner: str, loser: str) -> bool:
        """Of a session the first informative comparison of a pair counts; here there is one epoch."""
        vote = (page.context, page.session or page.name, frozenset((winner, loser)))
        first = vote not in self.voted
        self.voted.add(vote)
        return first

    def pair(self, context: str, item: str, other: str) -> tuple[int, int]:
        """(s, n) seen from the first item."""
        wins, losses = self.wins.get((context, item, other), 0), self.wins.get((context, other, item), 0)
        return wins - losses, wins + losses

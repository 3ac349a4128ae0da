"""Why a ranking is as it is, for people: data first, and readable text from ``str()``."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from saferank.live.drawing import Evidence, draws, evidence_for
from saferank.live.learner import Learner
from saferank.live.page import Item, Page, Risk
from saferank.statistics.certificates import surely
from saferank.statistics.duels import LifetimeDuels
from saferank.verbs import NO_ITEM


@dataclass(frozen=True)
class Pair:
    """Two neighbours of the leader and the evidence of their order."""

    upper: Item
    lower: Item
    s: int  # lead of the upper item
    n: int  # comparisons in which exactly one of the two was clicked
    decided: bool
    evidence: Evidence | None = None  # that the upper item is better; None for a policy that decides by s and n

    def __str__(self) -> str:
        verdict = "decided" if self.decided else "undecided"
        if self.evidence is None:
            return f"{self.upper} over {self.lower}: {verdict} (s={self.s}, n={self.n})"
        if self.decided and self.evidence.capital < self.evidence.needed:
            verdict = "decided by other certificates"
        return f"{self.upper} over {self.lower}: {verdict} ({self.evidence})"


@dataclass(frozen=True)
class Challenger:
    """The unranked item that would contend for the last position on the next page."""

    item: Item
    against: Item
    s: int
    n: int
    index: float | None  # optimistic index of the duel, in -1..1
    evidence: Evidence | None = None  # that it is better; None for a policy that decides by s and n

    def __str__(self) -> str:
        index = "" if self.index is None else f", index {self.index:.3f}"
        known = f"s={self.s}, n={self.n}{index}" if self.evidence is None else f"{self.evidence}{index}"
        return f"{self.item} challenges {self.against} ({known})"


@dataclass(frozen=True)
class Position:
    """What one position of a page is doing there."""

    position: int
    item: Item
    role: str


@dataclass(frozen=True)
class Explanation:
    """A ranker, and if asked for one of its pages, explained."""

    policy: str
    rule: str | None
    pages: int
    leader: tuple[Item, ...]
    pairs: tuple[Pair, ...]
    exploration: str
    challenger: Challenger | None
    positions: tuple[Position, ...]
    risk: Risk | None = None  # of the page, or of any; None for a policy that does not work out the worst case
    working: tuple[Item, ...] | None = None  # the order around which such a policy draws; ``leader`` is certified

    @property
    def undecided(self) -> tuple[Pair, ...]:
        """The neighbours in the leader whose order is not certain."""
        return tuple(pair for pair in self.pairs if not pair.decided)

    def __str__(self) -> str:
        rule = f", rule {self.rule}" if self.rule else ""
        lines = [
            f"{self.policy}{rule}, {self.pages} {'page' if self.pages == 1 else 'pages'} issued",
            f"leader: {', '.join(map(str, self.leader))}",
        ]
        if self.working is not None:
            lines[1] += " (the certified reference)"
            lines.append(f"working order: {', '.join(map(str, self.working))} (pages are drawn around it)")
        lines += [f"  {pair}" for pair in self.pairs]
        lines.append(f"next: {self.exploration}")
        if self.challenger:
            lines.append(f"  {self.challenger}")
        if self.risk:
            lines.append(f"worst case: {self.risk}")
        lines += [f"position {place.position}: {place.item}, {place.role}" for place in self.positions]
        return "\n".join(lines)


def explain(
    learner: Learner,
    plan: Any,
    issued: int,
    woven: Callable[[Sequence[int]], tuple[Item, ...]],
    allowance: int,
    page: Page | None = None,
) -> Explanation:
    """Explain evidence and plan after ``issued`` pages, and a page; ``woven`` puts pinned items into a ranking."""
    kind, policy, evidence, items = learner.kind, learner.policy, learner.evidence, learner.items
    leader = [int(number) for number in kind.leader(evidence, plan)[: len(plan.base)]]
    outlook = kind.outlook(policy, evidence, plan, issued) if kind.outlook else None
    risk = None if kind.worst is None else Risk(allowance)
    challenger = outlook.challenger if outlook else NO_ITEM
    against = outlook.against if outlook and outlook.against != NO_ITEM else leader[-1]
    drawn = draws(policy)

    def known(i: int, j: int) -> Evidence | None:
        return evidence_for(policy, evidence, i, j) if drawn else None

    return Explanation(
        policy=kind.name,
        rule=kind.rule(learner.setup).name if kind.rule else None,
        pages=issued,
        leader=woven(leader),
        pairs=tuple(_pair(learner, plan, i, j, known(i, j)) for i, j in itertools.pairwise(leader)),
        exploration=outlook.note if outlook else "this policy does not explain its exploration",
        challenger=None
        if outlook is None or challenger == NO_ITEM
        else Challenger(
            items[challenger],
            items[against],
            *learner.duel(items[challenger], items[against]),
            outlook.index,
            known(challenger, against),
        ),
        positions=tuple(_position(page, place) for place in range(len(page.items))) if page else (),
        risk=risk if page is None else page.risk,
        working=None if outlook is None or outlook.working is None else woven(outlook.working),
    )


def _pair(learner: Learner, plan: Any, i: int, j: int, evidence: Evidence | None) -> Pair:
    upper, lower = learner.items[i], learner.items[j]
    return Pair(upper, lower, *learner.duel(upper, lower), decided(learner, plan, i, j), evidence)


def decided(learner: Learner, plan: Any, i: int, j: int) -> bool:
    """True when i is surely better: by the certificates that hold, or, if they have no lifetime, by the rule."""
    kind, evidence = learner.kind, learner.evidence
    if kind.settled is not None:
        return kind.settled(evidence, plan, i, j)
    if kind.rule is None:
        return False
    if isinstance(evidence.duels, LifetimeDuels):
        return bool(surely(evidence.duels.closure, i, j))
    s, n = learner.duel(learner.items[i], learner.items[j])
    return n > 0 and kind.rule(learner.setup).decides(s, n)


def _position(page: Page, place: int) -> Position:
    item = page.items[place]
    if item in page.pinned:
        return Position(place + 1, item, "pinned: stands where production has it")
    if page._impression.weight[page.ranked.index(item)] > 0.0:
        return Position(place + 1, item, _chances(page, page.ranked.index(item)))
    group = next(group for group in page.groups if item in group)
    others = [other for other in group if other != item]
    return Position(place + 1, item, _role(page, place, item, others))


_ALTERNATIVES = 3
"""Maximum of items that could have stood at a place to be named."""


def _chances(page: Page, place: int) -> str:
    """Of a page that was drawn: how likely its item was at this place, given those above, and what else was."""
    impression, row = page._impression, _row(page)
    numbers = [b for b in range(place, int(impression.places[0])) if impression.start[b] == impression.start[place]]
    total = sum(float(impression.weight[b]) for b in numbers)
    chances = {row[b]: float(impression.weight[b]) / total for b in numbers}
    mine = chances.pop(row[place])
    others = sorted(chances.items(), key=lambda pair: -pair[1])[:_ALTERNATIVES]
    instead = ", ".join(f"{name} {chance:.1%}" for name, chance in others if chance >= 0.0005)
    return f"{_rank(page, row[place])}, drawn with chance {mine:.1%}" + (f"; instead {instead}" if instead else "")


def _row(page: Page) -> list[Item]:
    """The items by place of the draw: the shown ones, then the hidden ones in their order."""
    return [*page.ranked, *(item for group in page.groups for item in group if item not in page.items)]


def _left_out(page: Page, others: list[Item]) -> str:
    """The item that is compared without being shown, and why."""
    if page.hidden is None or page.hidden not in others:
        return ""
    if page.hidden == page.challenger:
        return f", of which {page.hidden} challenges from outside the page"
    return f", of which {page.hidden} makes room for {page.challenger}"


def _rank(page: Page, item: Item) -> str:
    return "of the leader" if item in page.leader else "unranked"


def _role(page: Page, place: int, item: Item, others: list[Item]) -> str:
    if not others:
        return "stands alone on this page"
    company = f"compared with {', '.join(map(str, others))}"
    if item == page.challenger:
        return f"{_rank(page, item)}, tried in place of {page.hidden}, {company}"
    if others == [page.hidden]:
        return f"{_rank(page, item)}, {company}, which challenges it from outside the page"
    if len(others) > 1:
        return f"shuffled among {len(others) + 1} items, {company}{_left_out(page, others)}"
    swapped = item != page.leader[place]
    return f"{'swapped, ' if swapped else ''}{company}"

"""Visitors of a small world, through knowledge and views alone: no engine, no log, no clock."""

import random
from collections.abc import Sequence

from saferank.service.knowledge.knowledge import Knowledge, Terms
from saferank.service.knowledge.lessons import LaidOut, Lessons, Numbered, Room
from saferank.service.knowledge.view import View
from saferank.service.knowledge.visits import OrderWatch, Votes
from saferank.store.contract import PageRow
from saferank.store.page_record import PageRecord
from saferank.store.record_columns import ClosedPages

TERMS = Terms("kl-ucb-br", "anytime:0.1", window_ms=1000, lifetime_ms=0, opened_at=0)


Lesson = tuple[PageRecord, int]
"""A page, and a bit for each clicked place."""


def recorded(knowledge: Knowledge, page: PageRecord, number: int = 0) -> PageRecord:
    return page._replace(
        impression=number.to_bytes(16, "big"), tenant="t", context="c", policy=knowledge.terms.policy, knowledge=1,
        window_ms=1000,
    )  # fmt: skip


def as_pages(lessons: Sequence[Lesson]) -> ClosedPages:
    return ClosedPages([PageRow(record.impression, 1, 0, record.packed(), clicks) for record, clicks in lessons])


def laid_out(knowledge: Knowledge, lessons: Sequence[Lesson], orders: OrderWatch | None = None) -> LaidOut:
    """Lessons up to the first that has an item without a number."""
    orders, items = orders or OrderWatch(), Numbered()
    items.follow(knowledge.learner, orders)
    part = Lessons(as_pages(lessons), knowledge.index).lay_out(0, items, Votes(), orders, Room())
    orders.name_new(knowledge.learner.items)
    assert part.is_new or part.end == len(lessons)
    return part


class World:
    """Items with an appeal each, production's ranking at random, and visitors who click by appeal."""

    def __init__(
        self, policy: str, n_items: int, k: int, rule: str = "anytime:0.1", seed: int = 0, lifetime_ms: int = 0
    ) -> None:
        self.dice = random.Random(seed)
        self.items = [f"i{number}" for number in range(n_items)]
        self.appeal = {item: 0.9 * (number + 1) / n_items for number, item in enumerate(self.items)}
        self.dice.shuffle(self.items)
        self.base, self.k = list(self.items), k
        self.knowledge = Knowledge(TERMS._replace(policy=policy, rule=rule, lifetime_ms=lifetime_ms), k, self.base)
        self.shown: set[tuple[str, ...]] = set()

    def visit(self, pages: int, views_of: int = 10) -> None:
        """Pages from views that are as old as some pages, all learnt in between."""
        for _ in range(pages // views_of):
            view = self.view()
            lessons = [self.lesson(view) for _ in range(views_of)]
            self.learn(lessons)

    def view(self, base: Sequence[str] | None = None, k: int | None = None) -> View:
        return View(self.knowledge, self.base if base is None else base, (), k or self.k)

    def lesson(self, view: View) -> Lesson:
        page = view.page(self.dice.randbytes(32))  # raises when it is illegal
        self.shown.add(page.shown)
        clicks = sum((self.dice.random() < self.appeal[item]) << place for place, item in enumerate(page.shown))
        return recorded(self.knowledge, page), clicks

    def learn(self, lessons: Sequence[Lesson]) -> None:
        for record, _ in lessons:
            self.knowledge.learner.know(record.row)
        for _ in self.knowledge.learn(laid_out(self.knowledge, lessons)):
            self.knowledge.changed_certificates()

    def wrong_certificates(self) -> int:
        pairs = map(self.knowledge.learner.names, self.knowledge.certified.pairs)
        return sum(self.appeal[str(better)] < self.appeal[str(worse)] for better, worse in pairs)

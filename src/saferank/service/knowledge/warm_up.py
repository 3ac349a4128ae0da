"""Everything that a call may need is compiled, or loaded, before the first one: no caller waits for it."""

import asyncio
from collections.abc import Sequence

from saferank._kernel import is_compiling_refused
from saferank.policies.safe_draw.draw import has_target, odds_of_exchange
from saferank.service.knowledge.knowledge import Knowledge, Terms
from saferank.service.knowledge.lessons import Lessons
from saferank.service.knowledge.page_check import warm_up_check
from saferank.service.knowledge.view import View
from saferank.service.knowledge.votes import OrderWatch, Votes, without_repeats
from saferank.verbs import new_impression

SIZES = (3, 13)
"""Catalogues for which some policy has a plan of its own."""

MANY = 128
"""More items than there is a row for every pair of: the table of pairs becomes another one."""

_COINS = bytes(range(32))

_warm = set[tuple[str, str]]()
"""Policies and kinds of rules that were gone through in this process."""


async def prepare(terms: Terms) -> None:
    """While nothing may be compiled: have a thread compile what other terms need than those of the start."""
    if is_compiling_refused() and (terms.policy, _kind_of(terms.rule)) not in _warm:
        await asyncio.to_thread(warm_up, terms.policy, terms.rule)


def _kind_of(rule: str) -> str:
    return rule.partition(":")[0]


def warm_up(policy: str, rule: str, sizes: Sequence[int] = SIZES) -> None:
    """Go through the life of a page on catalogues of these sizes, with knowledge that is thrown away."""
    warm_up_check()
    for size in sizes:
        items = [str(number) for number in range(size)]
        terms = Terms(policy, rule, 1000, 1000, 0)
        knowledge = Knowledge(terms, 2, items)
        _go_through(knowledge, terms, items)
        View(knowledge, items, ["newer"], 2).page(_COINS)
        knowledge.learner.know(f"new {number}" for number in range(MANY))
        knowledge.turn_to(1)
    _warm.add((policy, _kind_of(rule)))


def _go_through(knowledge: Knowledge, terms: Terms, items: list[str]) -> None:
    """A page, its clicks, another base ranking, and the questions that the dashboard asks."""
    record = View(knowledge, items, (), 2).page(_COINS)._replace(visitor=bytes(8), policy=terms.policy, window_ms=1000)
    lessons = Lessons.of([record, record], [1, 2])
    numbered = knowledge.laid_out(lessons)
    OrderWatch().look_at(numbered, lessons, items)
    without_repeats(Votes(), numbered, lessons, items)
    explained = new_impression(2, 3)
    odds_of_exchange(explained, 2, (0, 1), has_target(explained))
    for _ in knowledge.learn(lessons):
        knowledge.changed_certificates()
    again = View(knowledge, [items[1], items[0], *items[2:]], (), 2)
    again.page(_COINS)
    again.explain()
    knowledge.named([(0, 1)])

"""Everything that a call may need is compiled, or loaded, before the first one: no caller waits for it."""

import asyncio
from collections.abc import Sequence

from saferank._kernel import is_compiling_refused
from saferank.service.knowledge.arms import EXPLORE, takes_part
from saferank.service.knowledge.fold import Fold
from saferank.service.knowledge.knowledge import Terms
from saferank.service.knowledge.page_check import warm_up_check
from saferank.service.knowledge.propensities import first_place_chances
from saferank.service.knowledge.view import View
from saferank.store.contract import PageRow
from saferank.store.page_record import first_id

SIZES = (3, 13)
"""Catalogues for which some policy has a plan of its own."""

MANY = 128
"""More items than there is a row for every pair of: the table of pairs becomes another one."""

_VISITORS = 9
"""More than the table of visitors has room for at first."""

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
    takes_part(EXPLORE, 0)
    for size in sizes:
        fold, items = _opened(policy, rule, size)
        _go_through(fold, items)
        View(fold.knowledge, items, ["newer"], 2).page(_COINS)
        fold.knowledge.learner.know(f"new {number}" for number in range(MANY))
        fold.knowledge.turn_to(1)
    _warm.add((policy, _kind_of(rule)))


def draw_first_page(policy: str, rule: str, size: int) -> None:
    """Go through what differs between sizes: the plan and the draw."""
    fold, items = _opened(policy, rule, size)
    View(fold.knowledge, items, (), 2).page(_COINS)


def _opened(policy: str, rule: str, size: int) -> tuple[Fold, list[str]]:
    items = [str(number) for number in range(size)]
    return Fold.opened(1, Terms(policy, rule, 1000, 1000, 0), 2, bytes(16), (items, [])), items


def _go_through(fold: Fold, items: list[str]) -> None:
    """Pages of many visitors, their clicks, another base ranking, and the questions that the dashboard asks."""
    page = View(fold.knowledge, items, (), 2).page(_COINS)
    page = page._replace(policy=fold.terms.policy, window_ms=1000, knowledge=1, share=0.1)
    for number in range(1, 1 + _VISITORS):  # at time 0 none would count
        visited = page._replace(visitor=number.to_bytes(8, "big"), impression=first_id(number))
        fold.fold([PageRow(visited.impression, 1, 0, visited.packed(), 1 + number % 2)], number)
    assert fold.learnt == _VISITORS
    again = View(fold.knowledge, [items[1], items[0], *items[2:]], (), 2)
    first_place_chances(again.page(_COINS))
    again.explain()
    fold.knowledge.named([(0, 1)])

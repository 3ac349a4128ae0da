"""The users of a synthetic log: which pages a session has, and which items are clicked.

A session is made of one to eight pages. Half of the later ones repeat the query before them. How frequent queries are
falls with their number like 1 / (number + 1)^0.8, number from 0. Of the rankings of a query, the first is production's
order, seen on six pages of ten; the others exchange some of its places, or, where all items are to be seen, show the
items beyond it in turn.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank._kernel import kernel, specialised
from saferank.instances import Instance
from saferank.logs.records import RANKING_LENGTH
from saferank.randomness import Words, below, shuffle_front, stream, uniform, word
from saferank.verbs import Floats, Ints, Items, click

MOST_PAGES = 8
ORDERS = 6
_ANOTHER_PAGE, _SAME_QUERY, _ORIGINAL_ORDER = 0.35, 0.5, 0.6


class Sessions(NamedTuple):
    """Some sessions: their pages one behind the other, and what was clicked."""

    end: Ints  # by session: one past its last page
    query: Ints  # by page
    order: Ints  # by page: which ranking of the query
    manner: Words  # by page: random bits for everything that does not matter to a click model
    clicks: Ints  # [pages, length of a page]


class Users(NamedTuple):
    """The queries of the log and the states of all that is random."""

    instances: tuple[Instance, ...]
    rankings: NDArray[np.uint32]  # [queries, orders, length of a page] items by number
    popularity: Floats  # cumulated
    plan: Words
    clicking: Words  # [queries, 4]


def new_users(
    instances: tuple[Instance, ...], seed: int, length: int = RANKING_LENGTH, all_items: bool = False
) -> Users:
    """Users of these queries, who do what the seed says, on pages of ``length`` items.

    With ``all_items`` every item of a query is on some of its pages; all queries then have equally many.
    """
    made = _wide_orders if all_items else _orders
    popularity = np.cumsum((1.0 + np.arange(len(instances))) ** -0.8)
    return Users(
        instances=instances,
        rankings=np.stack(
            [made(len(instance.items), length, stream(seed, "orders", instance.id)) for instance in instances]
        ),
        popularity=popularity / popularity[-1],
        plan=stream(seed, "plan"),
        clicking=np.stack([stream(seed, "clicking", instance.id) for instance in instances]),
    )


def _orders(n_items: int, length: int, rng: Words) -> NDArray[np.uint32]:
    """Different rankings: the items in their order, then with one, two, ... exchanges."""
    orders: list[list[int]] = [list(range(length))]
    while len(orders) < ORDERS:
        order = list(range(n_items))
        for _ in range(len(orders)):
            one, other = below(rng, length), below(rng, n_items)
            order[one], order[other] = order[other], order[one]
        if order[:length] not in orders:
            orders.append(order[:length])
    return np.array(orders, np.uint32)


def _wide_orders(n_items: int, length: int, rng: Words) -> NDArray[np.uint32]:
    """The items in their order, then pages of which half are items from beyond, each of them at two places."""
    orders = [np.arange(length, dtype=np.uint32)]
    room = max(1, length // 2)
    for first in range(length, n_items, room):
        beyond = np.arange(first, min(first + room, n_items), dtype=np.uint32)
        for _ in range(2):
            order = np.concatenate([orders[0][: length - len(beyond)], beyond])
            shuffle_front(rng, order, 0, length, length)
            orders.append(order)
    return np.stack(orders)


def new_sessions(n_sessions: int, length: int = RANKING_LENGTH) -> Sessions:
    """Room for a number of sessions of any number of pages of ``length`` items."""
    n_pages = n_sessions * MOST_PAGES
    return Sessions(
        end=np.zeros(n_sessions, np.int64),
        query=np.zeros(n_pages, np.int64),
        order=np.zeros(n_pages, np.int64),
        manner=np.zeros(n_pages, np.uint64),
        clicks=np.zeros((n_pages, length), np.int64),
    )


def play(users: Users, sessions: Sessions) -> None:
    """Fill ``sessions`` with the next pages and their clicks."""
    _plan_sessions(users.popularity, users.rankings.shape[1], users.plan, sessions)
    n_pages = int(sessions.end[-1])
    by_query = np.argsort(sessions.query[:n_pages], kind="stable")
    starts = np.searchsorted(sessions.query[by_query], np.arange(len(users.instances) + 1))
    for query, instance in enumerate(users.instances):
        pages = by_query[starts[query] : starts[query + 1]]
        visit = specialised(_visit, type(instance.model))
        visit(instance.model, users.rankings[query], pages, users.clicking[query], sessions)


@kernel
def _plan_sessions(popularity: Floats, n_orders: int, rng: Words, sessions: Sessions) -> None:
    page = 0
    for session in range(len(sessions.end)):
        first = page
        while page == first or (page - first < MOST_PAGES and uniform(rng) < _ANOTHER_PAGE):
            if page > first and uniform(rng) < _SAME_QUERY:
                sessions.query[page] = sessions.query[page - 1]
            else:
                sessions.query[page] = np.searchsorted(popularity, uniform(rng), "right")
            sessions.order[page] = 0 if uniform(rng) < _ORIGINAL_ORDER else 1 + below(rng, n_orders - 1)
            sessions.manner[page] = word(rng)
            page += 1
        sessions.end[session] = page


@kernel
def _visit(model: Any, rankings: Items, pages: Ints, rng: Words, sessions: Sessions) -> None:
    for number in range(len(pages)):
        page = pages[number]
        click(model, rankings[sessions.order[page]], rng, sessions.clicks[page])

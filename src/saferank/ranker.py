"""The live ranker: the same kernels as the simulator, played once per page.

    ranker = Ranker("kl-ucb-br", original=["a", "b", "c"], candidates=["x", "y"], rule="paper:1e-5", seed=7)
    page = ranker.rank()                     # show page.items
    ranker.feedback(page, clicked=["b"])     # later, in any order, or never

Any number of pages may be outstanding. A page is frozen when it is issued: its feedback counts for the pairs as they
were shown, whatever has happened since. A page that never gets feedback changes nothing.
"""

import operator
import secrets
import threading
from collections.abc import Hashable, Iterable, Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np

from saferank import saved_state
from saferank.explanation import Explanation, duel, explain
from saferank.page import Item, Page
from saferank.policies import Setup, has_room, make_room, policy_kind
from saferank.randomness import stream
from saferank.safety import price_of_page
from saferank.saved_state import SavedStateError
from saferank.statistics.decision import decision_rule, whole_horizon
from saferank.verbs import NOBODY, Flags, Impression, choose, learn, new_impression


class RankerError(ValueError):
    """A call that cannot be carried out; the ranker is as it was before."""


class Ranker:
    """A ranking that improves itself from clicks.

    ``policy`` is a name from ``saferank policies``; ``original`` is production's ranking, best first, and sets the
    number of positions; ``candidates`` are items to explore, in the order in which they should be tried. ``horizon`` is
    needed only for the rule ``paper:1/T``.

    >>> ranker = Ranker("kl-ucb-br", original=["a", "b", "c"], candidates=["x", "y"], rule="paper:1e-5", seed=7)
    >>> page = ranker.rank()
    >>> page.items, page.hidden, page.round
    (('a', 'b', 'c'), 'x', 1)
    >>> ranker.feedback(page, clicked=["b"])
    >>> ranker.duels("b", "c")
    (1, 1)
    """

    def __init__(
        self,
        policy: str,
        *,
        original: Sequence[Item],
        candidates: Sequence[Item] = (),
        rule: str = "paper:1e-5",
        seed: int = 0,
        horizon: int | None = None,
    ) -> None:
        self._kind = policy_kind(policy)
        ranked = _listed(original, "original")
        if not ranked:
            raise RankerError("original is empty: give at least one item, production's ranking")
        self._items = _distinct([*ranked, *_listed(candidates, "candidates")])
        self._check_size(len(self._items))
        self._rule_name, self._seed = rule, _seed(seed)
        self._horizon = None if horizon is None else whole_horizon(horizon)
        self._index = {item: number for number, item in enumerate(self._items)}
        self._setup = Setup(len(self._items), len(ranked), decision_rule(rule, self._horizon), self._horizon)
        self._policy, self._state = make_room(self._kind, self._setup, *self._kind.start(self._setup))
        self._present = np.ones(len(self._items), np.bool_)
        self._rng = stream(self._seed, "ranker")
        self._answered = bytearray()
        self._lock = threading.Lock()  # kernels release the GIL
        self._id = secrets.token_hex(8)  # pages of another ranker are refused, even of a twin

    # --- the two calls ---

    def rank(self) -> Page:
        """Issue the next page."""
        with self._lock:
            impression = self._new_impression()
            leader = self._leader_items()
            choose(self._policy, self._state, self._rng, impression)
            if impression.round[0] // 8 >= len(self._answered):
                self._answered.append(0)
            return self._page(impression, leader)

    def feedback(self, page: Page, clicked: Iterable[Item] = ()) -> None:
        """Learn from the items that were clicked on a page: once per page, at any time, in any order.

        A wrong call raises RankerError and changes nothing.
        """
        clicks = self._clicks(page, clicked)
        with self._lock:
            self._mark_answered(page)
            learn(self._policy, self._state, page._impression, clicks)
            if not has_room(self._policy, self._state):
                self._policy, self._state = make_room(self._kind, self._setup, self._policy, self._state)

    # --- what it knows ---

    @property
    def policy(self) -> str:
        """The name of the policy."""
        return self._kind.name

    @property
    def leader(self) -> tuple[Item, ...]:
        """The current leader (for top-rank and uni-rank the current best guess)."""
        with self._lock:
            return self._leader_items()

    @property
    def items(self) -> tuple[Item, ...]:
        """All items that may be shown, in candidate order."""
        with self._lock:
            return tuple(item for item, here in zip(self._items, self._present, strict=True) if here)

    @property
    def pages_issued(self) -> int:
        """How many pages have been issued."""
        return int(self._state.round[0])

    def duels(self, item: Item, other: Item) -> tuple[int, int]:
        """(s, n) of the pair, seen from the first item: lead, and comparisons in which exactly one was clicked."""
        with self._lock:
            return duel(self._state, self._number(item), self._number(other))

    def explain(self, page: Page | None = None) -> Explanation:
        """Why the ranking is as it is: leader, undecided pairs, challenger; with a page, what each position does."""
        if page is not None:
            _page(page)
        with self._lock:
            return explain(self._kind, self._setup, self._policy, self._state, self._items, page)

    # --- items come and go ---

    def add(self, *items: Item) -> None:
        """Let new items, or removed ones, be explored from now on; a removed one has its old statistics again."""
        with self._lock:
            added = _distinct(_listed(items, "items"))
            for item in added:
                if item in self._index and self._present[self._index[item]]:
                    raise RankerError(f"item {item!r} is already here")
            new = [item for item in added if item not in self._index]
            self._check_size(len(self._items) + len(new))
            present = np.append(self._present, np.ones(len(new), np.bool_))
            present[[self._index[item] for item in added if item in self._index]] = True
            self._regroup(present)
            self._index |= {item: len(self._items) + place for place, item in enumerate(new)}
            self._items += new

    def remove(self, item: Item) -> None:
        """Never show an item again. Its statistics are kept; in the leader the next candidate in order fills up."""
        with self._lock:
            number, present = self._number(item), self._present.copy()
            if not present[number]:
                raise RankerError(f"item {item!r} was removed before")
            if present.sum() <= self._setup.n_positions:
                raise RankerError(f"cannot remove {item!r}: {self._setup.n_positions} positions need as many items")
            present[number] = False
            self._regroup(present)

    def _regroup(self, present: Flags) -> None:
        if self._kind.regroup is None:
            raise RankerError(f"policy {self._kind.name} does not let items come and go: it has no regroup")
        setup = Setup(len(present), self._setup.n_positions, self._setup.rule, self._setup.horizon)
        state = self._kind.regroup(self._policy, self._state, present)
        self._policy, self._state = make_room(self._kind, setup, self._policy, state)
        self._setup, self._present = setup, present

    # --- durable ---

    def save(self) -> bytes:
        """The whole ranker as bytes: a ranker loaded from them behaves exactly like this one from here on."""
        with self._lock:
            facts = {
                "policy": self._kind.name,
                "rule": self._rule_name,
                "seed": self._seed,
                "horizon": self._horizon,
                "n_positions": self._setup.n_positions,
                "items": self._items,
                "id": self._id,
            }
            arrays = {f"state.{name}": array for name, array in saved_state.flatten(self._state)}
            if "state.horizon" in arrays:  # says how long this process's table of the rule is; set anew when loaded
                arrays["state.horizon"] = np.zeros(1, np.int64)
            answered = np.frombuffer(bytes(self._answered), np.uint8)
            return saved_state.to_bytes(
                facts, {**arrays, "rng": self._rng, "present": self._present, "answered": answered}
            )

    @classmethod
    def load(cls, data: bytes) -> "Ranker":
        """The ranker that was saved; SavedStateError for foreign, damaged or newer bytes."""
        facts, arrays = saved_state.from_bytes(data)
        try:
            items, size = facts["items"], _positions(facts)
            options = {name: facts[name] for name in ("rule", "seed", "horizon")}
            ranker = cls(facts["policy"], original=items[:size], candidates=items[size:], **options)
            state = {name.removeprefix("state."): array for name, array in arrays.items() if name.startswith("state.")}
            ranker._restore(facts["id"], saved_state.rebuild(ranker._state, state), arrays)
        except (KeyError, TypeError, ValueError, IndexError) as problem:
            raise SavedStateError(f"the saved ranker cannot be restored: {problem}") from problem
        return ranker

    def _restore(self, name: str, state: Any, arrays: saved_state.Arrays) -> None:
        if len(arrays["present"]) != len(self._items) or arrays["rng"].shape != (4,):
            raise ValueError("its arrays do not belong together")
        self._id, self._rng, self._present = name, arrays["rng"], arrays["present"]
        self._answered = bytearray(arrays["answered"].tobytes())
        self._policy, self._state = make_room(self._kind, self._setup, self._policy, state)

    # --- inside ---

    def _check_size(self, n_items: int) -> None:
        largest = self._kind.largest_catalogue
        if largest is not None and n_items > largest:
            raise RankerError(f"{n_items} items: {self._kind.name} compares all pairs and takes at most {largest}")

    def _number(self, item: Item) -> int:
        if not isinstance(item, Hashable) or item not in self._index:
            raise RankerError(f"unknown item {item!r}")
        return self._index[item]

    def _leader_items(self) -> tuple[Item, ...]:
        leader = self._kind.leader(self._state)[: self._setup.n_positions]
        return tuple(self._items[number] for number in leader)

    def _new_impression(self) -> Impression:
        n_positions = self._setup.n_positions
        return new_impression(n_positions, self._kind.places(self._setup))

    def _page(self, impression: Impression, leader: tuple[Item, ...]) -> Page:
        n_positions, places = self._setup.n_positions, int(impression.places[0])
        row = [self._items[number] for number in impression.ranking[:places]]
        challenger = int(impression.challenger[0])
        starts = dict.fromkeys(impression.start[:places].tolist())
        page = Page(
            items=tuple(row[:n_positions]),
            hidden=row[n_positions] if challenger != NOBODY else None,
            round=int(impression.round[0]),
            challenger=self._items[challenger] if challenger != NOBODY else None,
            leader=leader,
            groups=tuple(tuple(row[start : impression.end[start]]) for start in starts),
            issued_by=self._id,
            _impression=impression,
        )
        return self._with_budget(page)

    def _with_budget(self, page: Page) -> Page:
        """The page with what it may spend and what it spends, of a policy that keeps a budget."""
        if self._kind.budget is None:
            return page
        price = price_of_page(page.leader, page.groups, page.challenger, int(self._present.sum()))
        return replace(page, budget=replace(self._kind.budget(self._state), price=price))

    def _clicks(self, page: Page, clicked: Iterable[Item]) -> Any:
        _page(page)
        if isinstance(clicked, str) or not isinstance(clicked, Iterable):
            raise RankerError(f"clicked must be a list of items, not {clicked!r}")
        chosen = set(_distinct(_listed(list(clicked), "clicked")))
        strangers = chosen.difference(page.items)
        if strangers:
            stranger = min(strangers, key=str)
            where = "was compared on this page but not shown" if stranger == page.hidden else "is not on this page"
            raise RankerError(f"clicked item {stranger!r} {where} (round {page.round})")
        return np.array([item in chosen for item in page.items], np.int64)

    def _mark_answered(self, page: Page) -> None:
        if page.issued_by != self._id or page.round > self._state.round[0]:
            raise RankerError(f"page {page.round} was not issued by this ranker")
        byte, bit = page.round // 8, 1 << page.round % 8
        if self._answered[byte] & bit:
            raise RankerError(f"page {page.round} has had its feedback; a second one is refused and changes nothing")
        self._answered[byte] |= bit


def _positions(facts: dict[str, Any]) -> int:
    size = int(facts["n_positions"])
    if not 1 <= size <= len(facts["items"]):
        raise ValueError(f"{size} positions for {len(facts['items'])} items")
    return size


def _page(page: object) -> None:
    if not isinstance(page, Page):
        raise RankerError(f"expected the page that rank() returned, not {type(page).__name__}")


def _listed(items: Sequence[Item], name: str) -> list[Item]:
    if isinstance(items, str | Set) or not isinstance(items, Sequence | np.ndarray):
        raise RankerError(f"{name} must be a list of items in order, not {items!r}")
    return [_item(item, name) for item in items]


def _item(item: object, name: str) -> Item:
    if isinstance(item, str):
        return item
    if isinstance(item, bool) or not isinstance(item, int | np.integer):
        raise RankerError(f"{name} holds {item!r}: an item is a string or a whole number")
    return operator.index(item)


def _distinct(items: list[Item]) -> list[Item]:
    seen: set[Item] = set()
    for item in items:
        if item in seen:
            raise RankerError(f"item {item!r} is given twice")
        seen.add(item)
    return items


def _seed(seed: object) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise RankerError(f"seed must be a whole number, not negative, not {seed!r}")
    return operator.index(seed)

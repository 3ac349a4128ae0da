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
from numpy.typing import NDArray

from saferank import saved_state
from saferank.checks import ContractError
from saferank.checks.plugin import check_plugin_policy
from saferank.live.explanation import Explanation
from saferank.live.learner import Learner
from saferank.live.page import Item, Page
from saferank.policies import TooManyItemsError, policy_kind
from saferank.randomness import stream
from saferank.saved_state import SavedStateError
from saferank.verbs import NOBODY, Flags, Impression


class RankerError(ValueError):
    """A call that cannot be carried out; the ranker is as it was before."""


class Ranker:
    """A ranking that improves itself from clicks.

    ``policy`` is a name from ``saferank policies``; ``original`` is production's ranking, best first, and sets the
    number of positions; ``candidates`` are items to explore, in the order in which they should be tried, which a call
    of ``rank`` may change. ``horizon`` is
    needed only for the rule ``paper:1/T``. Without a ``rule`` the policy takes its own at level 1e-5:
    ``paper:1e-5``, for safe-draw ``anytime:1e-5``. ``lifetime`` is for worlds that change: every so many pages evidence
    starts at zero, and what was certified holds until the end of the next such epoch; None: forever.
    ``examination`` holds, by position, the probability that a visitor looks there: pbm-ucb and pbm-ts need it, other
    policies do not use it. ``trust``, from .5 to .99, is for safe-draw: how sure you are, before any click, that
    production has two neighbours the right way round; at .977, its default, first pages differ little from production.

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
        rule: str | None = None,
        seed: int = 0,
        horizon: int | None = None,
        lifetime: int | None = None,
        examination: Sequence[float] | None = None,
        trust: float | None = None,
    ) -> None:
        ranked = _listed(original, "original")
        if not ranked:
            raise RankerError("original is empty: give at least one item, production's ranking")
        items = _distinct([*ranked, *_listed(candidates, "candidates")])
        _check_size(policy, len(items))
        _check_positions(policy, len(ranked))
        _check_plugin(policy)
        unranked = items[len(ranked) :]
        _check_lifetime(policy, lifetime)
        _check_trust(policy, trust)
        options: Any = {"rule": rule, "horizon": horizon, "lifetime": lifetime, "examination": examination}
        options["trust"] = trust
        self._begin(Learner(policy, original=ranked, candidates=unranked, **options), _seed(seed))

    def __repr__(self) -> str:
        number = self._learner.state.round[0]
        pages = f"{number} {'page' if number == 1 else 'pages'} issued"
        return f"Ranker({self.policy!r}, rule={self._learner.rule!r}, leader={self.leader!r}, {pages})"

    def _begin(self, learner: Learner, seed: int) -> None:
        self._learner, self._seed = learner, seed
        self._rng = stream(seed, "ranker")
        self._answered = bytearray()
        self._lock = threading.Lock()  # kernels release the GIL
        self._id = secrets.token_hex(8)  # pages of another ranker are refused, even of a twin

    # --- the two calls ---

    def rank(self, candidates: Sequence[Item] | None = None, pinned: Sequence[Item] = ()) -> Page:
        """Issue the next page.

        ``candidates``, for safe-draw, names items outside production's ranking in the order in which this page and
        those after it try them, as production has them now; those that are not named come after, in their old order.
        What is known of items stays with them. The page keeps the list: with it, and with the clicks, a ranker of the
        same seed issues the same pages again.

        ``pinned``, for safe-draw, names items of production's ranking that keep their place on this page. They are
        compared with nothing; their clicks teach nothing; the page's promise is about the others.
        """
        first = None if candidates is None else self._ordered(candidates)
        held = self._pinnable(pinned)
        with self._lock:
            self._take_call(first, held)
            self._learner.advance()
            leader = self._learner.leader()
            impression = self._learner.issue(self._rng)
            if impression.round[0] // 8 >= len(self._answered):
                self._answered.append(0)
            page = self._page(impression, leader)
            return replace(page, candidates=None if first is None else tuple(first), pinned=tuple(held))

    def feedback(self, page: Page, clicked: Iterable[Item] = ()) -> None:
        """Learn from the items that were clicked on a page: once per page, at any time, in any order.

        A wrong call raises RankerError and changes nothing.
        """
        clicks = self._clicks(page, clicked)
        with self._lock:
            self._mark_answered(page)
            self._learner.learn(page._impression, clicks)

    # --- what it knows ---

    @property
    def policy(self) -> str:
        """The name of the policy."""
        return self._learner.kind.name

    @property
    def leader(self) -> tuple[Item, ...]:
        """The current leader: for top-rank and uni-rank the best guess, for safe-draw the certified reference."""
        with self._lock:
            return self._learner.leader()

    @property
    def items(self) -> tuple[Item, ...]:
        """All items that may be shown, in candidate order."""
        with self._lock:
            return self._learner.present_items()

    @property
    def pages_issued(self) -> int:
        """How many pages have been issued."""
        return self._learner.round

    @property
    def alarms(self) -> int:
        """How often something contradicted certificates with a lifetime, a sign that the world has changed."""
        with self._lock:
            return self._learner.lifetime_alarms()

    def duels(self, item: Item, other: Item) -> tuple[int, int]:
        """(s, n) of the pair, seen from the first item: lead, and comparisons in which exactly one was clicked."""
        with self._lock:
            return self._learner.duel(self._known(item), self._known(other))

    def explain(self, page: Page | None = None) -> Explanation:
        """Why the ranking is as it is: leader, undecided pairs, challenger; with a page, what each position does."""
        if page is not None:
            _page(page)
        with self._lock:
            return self._learner.explain(page)

    # --- items come and go ---

    def add(self, *items: Item) -> None:
        """Let new items, or removed ones, be explored from now on; a removed one has its old statistics again."""
        with self._lock:
            learner, added = self._learner, _distinct(_listed(items, "items"))
            for item in added:
                if learner.is_present(item):
                    raise RankerError(f"item {item!r} is already here")
            new = [item for item in added if item not in learner.index]
            _check_size(self.policy, len(learner.items) + len(new))
            present = np.append(learner.present, np.ones(len(new), np.bool_))
            present[[learner.index[item] for item in added if item in learner.index]] = True
            self._regroup(present, new)

    def remove(self, item: Item) -> None:
        """Never show an item again. Its statistics are kept; in the leader the next candidate in order fills up."""
        with self._lock:
            learner, item = self._learner, self._known(item)
            if not learner.is_present(item):
                raise RankerError(f"item {item!r} was removed before")
            present = learner.present.copy()
            if present.sum() <= learner.n_positions:
                raise RankerError(f"cannot remove {item!r}: {learner.n_positions} positions need as many items")
            present[learner.index[item]] = False
            self._regroup(present)

    def _regroup(self, present: Flags, new: Sequence[Item] = ()) -> None:
        if self._learner.pinned:
            self._learner.pin(())
        if self._learner.kind.regroup is None:
            raise RankerError(f"policy {self.policy} does not let items come and go: it has no regroup")
        self._learner.regroup(present, new)

    # --- durable ---

    def save(self) -> bytes:
        """The whole ranker as bytes: a ranker loaded from them behaves exactly like this one from here on."""
        with self._lock:
            facts = {**self._learner.facts(), "seed": self._seed, "id": self._id}
            answered = np.frombuffer(bytes(self._answered), np.uint8)
            return saved_state.to_bytes(facts, {**self._learner.arrays(), "rng": self._rng, "answered": answered})

    @classmethod
    def load(cls, data: bytes) -> "Ranker":
        """The ranker that was saved; SavedStateError for foreign, damaged or newer bytes."""
        facts, arrays = saved_state.from_bytes(data)
        try:
            ranker, answered = cls.__new__(cls), _answered(arrays["answered"], int(arrays["state.round"][0]))
            ranker._begin(Learner.restored(facts, arrays), _seed(facts["seed"]))
            ranker._id, ranker._rng = str(facts["id"]), arrays["rng"].astype(np.uint64, casting="safe").reshape(4)
            ranker._answered = answered
        except saved_state.IMPOSSIBLE as problem:
            raise SavedStateError(f"the saved ranker cannot be restored: {problem}") from problem
        return ranker

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle or a copy is what ``save`` writes; neither runs code of a policy."""
        return type(self).load, (self.save(),)

    # --- inside ---

    def _ordered(self, candidates: Sequence[Item]) -> list[Item]:
        if self._learner.kind.reorder is None:
            raise RankerError(
                f"policy {self.policy} tries candidates in the order in which it first saw them: call rank()"
            )
        return [self._known(item) for item in _distinct(_listed(candidates, "candidates"))]

    def _pinnable(self, pinned: Sequence[Item]) -> list[Item]:
        items = [self._known(item) for item in _distinct(_listed(pinned, "pinned"))]
        if items and not self._learner.kind.pins:
            raise RankerError(f"policy {self.policy} cannot rank around pinned items; safe-draw can")
        if len(items) >= self._learner.n_positions:
            raise RankerError(
                f"pinned holds {len(items)} items of {self._learner.n_positions} positions: none is left to rank"
            )
        return items

    def _take_call(self, first: list[Item] | None, pinned: list[Item]) -> None:
        """Let a call's order and pins hold, if they can; otherwise nothing changes."""
        learner, ranked = self._learner, self._learner.production()
        for item in first or ():
            if item in ranked or not learner.is_present(item):
                why = "is in production's ranking" if item in ranked else "was removed"
                raise RankerError(f"candidates holds {item!r}, which {why}")
        for item in pinned:
            if item not in ranked:
                raise RankerError(f"pinned holds {item!r}, which is not in production's ranking and has no place there")
        if first is not None:
            learner.reorder([*ranked, *first])
        learner.pin(pinned)

    def _known(self, item: Item) -> Item:
        if not isinstance(item, Hashable) or item not in self._learner.index:
            raise RankerError(f"unknown item {item!r}")
        return item

    def _page(self, impression: Impression, leader: tuple[Item, ...]) -> Page:
        n_positions, places = len(impression.shown), int(impression.places[0])
        row = self._learner.names(impression.ranking[:places])
        challenger = int(impression.challenger[0])
        labels = impression.start[:places].tolist()
        return Page(
            items=self._learner.names(self._learner.woven(impression.shown.tolist())),
            hidden=row[n_positions] if challenger != NOBODY else None,
            round=int(impression.round[0]),
            challenger=self._learner.items[challenger] if challenger != NOBODY else None,
            leader=leader,
            groups=tuple(
                tuple(item for item, at in zip(row, labels, strict=True) if at == label)
                for label in dict.fromkeys(labels)
            ),
            issued_by=self._id,
            _impression=impression,
            risk=self._learner.risk_of_newest(),
        )

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
        return np.array([item in chosen for item in page.ranked], np.int64)

    def _mark_answered(self, page: Page) -> None:
        if page.issued_by != self._id or page.round > self._learner.round:
            raise RankerError(f"page {page.round} was not issued by this ranker")
        byte, bit = page.round // 8, 1 << page.round % 8
        if self._answered[byte] & bit:
            raise RankerError(f"page {page.round} has had its feedback; a second one is refused and changes nothing")
        self._answered[byte] |= bit


def _answered(flags: NDArray[np.uint8], rounds: int) -> bytearray:
    """Which pages have had their feedback, from a saved state: a bit for each page that was issued."""
    if flags.dtype != np.uint8 or len(flags) != (rounds // 8 + 1 if rounds else 0):
        raise ValueError(f"{len(flags)} bytes of answered pages do not belong to {rounds} pages")
    if rounds and int(flags[-1]) >> (rounds % 8 + 1):
        raise ValueError(f"a page beyond {rounds} is answered")
    return bytearray(flags.tobytes())


def _check_plugin(policy: str) -> None:
    """A policy of a plug-in must keep the contract before it shows anything to anybody."""
    try:
        check_plugin_policy(policy_kind(policy))
    except ContractError as problem:
        raise RankerError(str(problem)) from problem


def _check_size(policy: str, n_items: int) -> None:
    try:
        policy_kind(policy).check_size(n_items)
    except TooManyItemsError as problem:
        raise RankerError(str(problem)) from problem


def _check_positions(policy: str, n_positions: int) -> None:
    try:
        policy_kind(policy).check_positions(n_positions)
    except ValueError as problem:
        raise RankerError(f"original has {problem}") from problem


def _check_lifetime(policy: str, lifetime: int | None) -> None:
    if lifetime is not None and (isinstance(lifetime, bool) or not isinstance(lifetime, int)):
        raise RankerError(f"lifetime must be a whole number of pages, not {lifetime!r}")
    try:
        policy_kind(policy).check_lifetime(lifetime)
    except ValueError as problem:
        raise RankerError(str(problem)) from problem


def _check_trust(policy: str, trust: float | None) -> None:
    if trust is not None and (isinstance(trust, bool) or not isinstance(trust, int | float)):
        raise RankerError(f"trust must be a number from .5 to .99, not {trust!r}")
    try:
        policy_kind(policy).check_trust(trust)
    except ValueError as problem:
        raise RankerError(str(problem)) from problem


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

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
from collections.abc import Callable, Hashable, Iterable, Sequence, Set
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank import saved_state
from saferank.checks import ContractError
from saferank.checks.plugin import check_plugin_policy
from saferank.errors import whole_number
from saferank.live.explanation import Explanation, explain
from saferank.live.learner import Learner
from saferank.live.page import Item, Page, Risk
from saferank.live.ranges import MOST, check_ranges
from saferank.live.replay import Workspace, copy_page, drawing, following, new_workspace
from saferank.policies import TooManyItemsError, make_room_in_plan, policy_kind
from saferank.randomness import stream
from saferank.safety import whole_allowance
from saferank.saved_state import SavedStateError
from saferank.verbs import NO_ITEM, Call, Impression, Ints, Items, new_impression, renew


class RankerError(ValueError):
    """A call that cannot be carried out; the ranker is as it was before."""


def _nothing() -> None:
    """The kernel of a ranker that has not worked yet."""


class Bound(NamedTuple):
    """Kernels that are bound to what they work on."""

    policy: Any = None
    evidence: Any = None
    workspace: Workspace = new_workspace(0, 0)
    draw: Callable[[], None] = _nothing
    follow: Callable[[], None] = _nothing


class Ranker:
    """A ranking that improves itself from clicks. Threads may share it.

    Args:
        policy: A name from ``saferank policies``.
        original: Production's ranking, best first; it sets the number of positions.
        candidates: Items to explore, in the order in which they should be tried; a call of ``rank`` may change it.
        rule: When a pair is decided; None: the policy's own kind at level 1e-5 (safe-draw: ``anytime:1e-5``).
        seed: Seed of all coins; the same seed, calls and clicks give the same pages.
        horizon: Number of pages, for the rule ``paper:1/T`` only.
        lifetime: For worlds that change: after each ``lifetime`` pages evidence starts at zero, and what was certified
            holds until the end of the next such epoch. None: it holds forever.
        examination: By position, the probability that a visitor looks there; pbm-ucb and pbm-ts need it, other
            policies do not use it.
        trust: For safe-draw, from .5 to .99: how sure you are, before any click, that production has two neighbours
            the right way round. None: .977, with which first pages differ little from production's.

    Raises:
        RankerError: An item is given twice or is neither text nor a whole number, ``original`` is empty, or the policy
            cannot take so large a catalogue, so long a page, the lifetime or the trust.
        ValueError: The policy or the rule is not known, or the policy does not take the rule.

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
        from saferank.progress import announce_compilation_to_reader

        announce_compilation_to_reader()
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
        pages = f"{self._issued} {'page' if self._issued == 1 else 'pages'} issued"
        return f"Ranker({self.policy!r}, rule={self._learner.rule!r}, leader={self.leader!r}, {pages})"

    def _begin(self, learner: Learner, seed: int) -> None:
        n_positions = learner.n_positions
        self._learner, self._seed, self._issued = learner, seed, 0
        self._base = list(range(n_positions))  # production's ranking
        self._order = list(range(len(learner.items)))  # all items, in candidate order
        self._gone: set[int] = set()
        self._pinned: tuple[int, ...] = ()
        self._rng = stream(seed, "ranker")
        self._answered = bytearray()
        self._lock = threading.Lock()  # kernels release the GIL
        self._id = secrets.token_hex(8)  # pages of another ranker are refused, even of a twin
        self._make_plan()

    # --- the two calls ---

    def rank(self, candidates: Sequence[Item] | None = None, pinned: Sequence[Item] = ()) -> Page:
        """Issue the next page.

        Args:
            candidates: For safe-draw, items outside production's ranking in the order in which this page and those
                after it try them; those that are not named come after, in their old order. What is known of items
                stays with them. The page keeps the list: with it, and with the clicks, a ranker of the same seed
                issues the same pages again.
            pinned: Items of production's ranking that keep their place on this page. They are compared with nothing;
                their clicks teach nothing; the page's promise is about the others.

        Returns:
            The page; show ``page.items``.

        Raises:
            RankerError: An item is unknown or given twice, or the policy takes no order of candidates or no pins.

        """
        first = None if candidates is None else self._ordered(candidates)
        held = self._pinnable(pinned)
        with self._lock:
            self._take_call(first, held)
            impression = self._draw()
            leader = self._leader()  # a page that begins an epoch may have another one than the page before
            if self._issued // 8 >= len(self._answered):
                self._answered.append(0)
            page = self._page(impression, leader)
            return replace(page, candidates=None if first is None else tuple(first), pinned=tuple(held))

    def feedback(self, page: Page, clicked: Iterable[Item] = ()) -> None:
        """Learn from the items that were clicked on a page: once per page, at any time, in any order.

        Args:
            page: A page that ``rank`` of this ranker returned.
            clicked: Items of the page; none if nothing was clicked, which teaches something, too.

        Raises:
            RankerError: The page is another ranker's or has had its feedback, or an item was not on it; nothing
                changes.

        """
        clicks = self._clicks(page, clicked)
        with self._lock:
            self._mark_answered(page)
            self._learn(page._impression, clicks)

    # --- what it knows ---

    @property
    def policy(self) -> str:
        """The name of the policy."""
        return self._learner.kind.name

    @property
    def leader(self) -> tuple[Item, ...]:
        """The current leader: for top-rank and uni-rank the best guess, for safe-draw the certified reference."""
        with self._lock:
            return self._leader()

    @property
    def items(self) -> tuple[Item, ...]:
        """All items that may be shown, in candidate order."""
        with self._lock:
            return self._learner.names(self._present())

    @property
    def pages_issued(self) -> int:
        """How many pages have been issued."""
        return self._issued

    @property
    def alarms(self) -> int:
        """How often something contradicted certificates with a lifetime, a sign that the world has changed."""
        with self._lock:
            return self._learner.lifetime_alarms()

    def duels(self, item: Item, other: Item) -> tuple[int, int]:
        """What was counted of a pair.

        Args:
            item: The item whose lead it is.
            other: The item that it was compared with.

        Returns:
            Wins minus losses of ``item``, and the comparisons in which exactly one of the two was clicked.

        Raises:
            RankerError: An item is unknown.

        """
        with self._lock:
            return self._learner.duel(self._known(item), self._known(other))

    def explain(self, page: Page | None = None) -> Explanation:
        """Why the ranking is as it is.

        Args:
            page: A page, to know what each of its positions does; None: the ranking alone.

        Returns:
            Leader, working order, undecided pairs and challenger; ``print`` shows them in sentences.

        Raises:
            RankerError: What was given is no page.

        """
        if page is not None:
            _page(page)
        with self._lock:
            return explain(self._learner, self._plan, self._issued, self._woven, self._allowance(), page)

    # --- items come and go ---

    def add(self, *items: Item) -> None:
        """Let items be explored from now on.

        Args:
            items: New items, or removed ones, which have their old statistics again.

        Raises:
            RankerError: An item is there already, there are too many, or the policy's items cannot come and go.

        """
        with self._lock:
            learner, added = self._learner, _distinct(_listed(items, "items"))
            present = set(self._present())
            for item in added:
                if item in learner.index and learner.index[item] in present:
                    raise RankerError(f"item {item!r} is already here")
            new = [item for item in added if item not in learner.index]
            self._check_can_change()
            _check_size(self.policy, len(learner.items) + len(new))
            learner.know(new)
            self._order += [learner.index[item] for item in new]
            self._gone -= {learner.index[item] for item in added}
            self._pinned = ()
            self._make_plan()

    def remove(self, item: Item) -> None:
        """Show an item no more. Its statistics are kept; in the leader the next candidate in order fills up.

        Args:
            item: The item.

        Raises:
            RankerError: It is unknown or removed, or no more items than positions would be left.

        """
        with self._lock:
            learner, number = self._learner, self._learner.index[self._known(item)]
            if number in self._gone:
                raise RankerError(f"item {item!r} was removed before")
            if len(self._present()) <= learner.n_positions:
                raise RankerError(f"cannot remove {item!r}: {learner.n_positions} positions need as many items")
            self._check_can_change()
            self._gone.add(number)
            self._pinned = ()
            self._make_plan()

    def _check_can_change(self) -> None:
        if self._learner.kind.with_items is None:
            raise RankerError(f"policy {self.policy} does not let items come and go: it has no with_items")

    # --- durable ---

    def save(self) -> bytes:
        """The whole ranker as bytes: a ranker loaded from them behaves exactly like this one from here on.

        For that a plan that is not saved but derived (safe-draw's) is made again here as well.

        Returns:
            Bytes for ``Ranker.load``; they hold numbers and text, no code.

        """
        with self._lock:
            facts = {**self._learner.facts(), "plan": type(self._plan).__name__, "seed": self._seed, "id": self._id}
            facts |= {"issued": self._issued, "order": self._order, "gone": sorted(self._gone), "pinned": self._pinned}
            if self._learner.kind.plan_is_derived:  # the one that is loaded makes it from the same evidence
                renew(self._learner.policy, self._learner.evidence, self._plan, self._issued)
            parts = () if self._learner.kind.plan_is_derived else saved_state.flatten(self._plan)
            plan = {f"plan.{name}": array for name, array in parts}
            answered = np.frombuffer(bytes(self._answered), np.uint8)
            arrays = {**self._learner.arrays(), **plan, "rng": self._rng, "answered": answered}
            return saved_state.to_bytes(facts, arrays)

    @classmethod
    def load(cls, data: bytes) -> "Ranker":
        """The ranker that was saved.

        Args:
            data: What ``save`` returned.

        Returns:
            A ranker that continues where the saved one was.

        Raises:
            SavedStateError: The bytes are foreign, damaged or of another version.

        """
        facts, arrays = saved_state.from_bytes(data)
        try:
            ranker = cls.__new__(cls)
            ranker._begin(Learner.restored(facts, arrays), _seed(facts["seed"]))
            ranker._restore(facts, arrays)
        except saved_state.IMPOSSIBLE as problem:
            raise SavedStateError(f"the saved ranker cannot be restored: {problem}") from problem
        return ranker

    def _restore(self, facts: dict[str, Any], arrays: saved_state.Arrays) -> None:
        """Take in what the learner does not have; what is wrong with it is raised as it is found."""
        self._id, self._rng = str(facts["id"]), arrays["rng"].astype(np.uint64, casting="safe").reshape(4)
        self._issued = whole_number(facts["issued"], "issued", at_least=0, at_most=MOST)
        self._answered = _answered(arrays["answered"], self._issued)
        self._order, self._gone = list(map(int, facts["order"])), set(map(int, facts["gone"]))
        self._pinned = tuple(map(int, facts["pinned"]))
        everything = list(range(len(self._learner.items)))
        if sorted(self._order) != everything or not self._gone <= set(everything):
            raise ValueError("its items are not in order")
        if len(self._present()) < self._learner.n_positions or not set(self._pinned) < set(self._production()):
            raise ValueError("its items do not fill a page")
        if self._pinned and not self._learner.kind.can_pin:
            raise ValueError("its policy cannot rank around pinned items")
        self._make_plan()
        if not self._learner.kind.plan_is_derived:
            saved_state.check_shape(facts["plan"], self._plan)
            plan = saved_state.rebuild(self._plan, saved_state.below("plan", arrays))
            check_ranges(plan, self._call(), self._issued)
            self._take_plan(plan)

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle or a copy is what ``save`` writes; neither runs code of a policy."""
        return type(self).load, (self.save(),)

    # --- inside ---

    def _ordered(self, candidates: Sequence[Item]) -> list[Item]:
        if not self._learner.kind.tries_in_order:
            raise RankerError(
                f"policy {self.policy} tries candidates in the order in which it first saw them: call rank()"
            )
        return [self._known(item) for item in _distinct(_listed(candidates, "candidates"))]

    def _pinnable(self, pinned: Sequence[Item]) -> list[Item]:
        items = [self._known(item) for item in _distinct(_listed(pinned, "pinned"))]
        if items and not self._learner.kind.can_pin:
            raise RankerError(f"policy {self.policy} cannot rank around pinned items; safe-draw can")
        if len(items) >= self._learner.n_positions:
            raise RankerError(
                f"pinned holds {len(items)} items of {self._learner.n_positions} positions: none is left to rank"
            )
        return items

    def _take_call(self, first: list[Item] | None, pinned: list[Item]) -> None:
        """Let a call's order and pins hold, if they can; otherwise nothing changes."""
        learner, production = self._learner, self._production()
        ranked = learner.names(production)
        for item in first or ():
            if item in ranked or learner.index[item] in self._gone:
                why = "is in production's ranking" if item in ranked else "was removed"
                raise RankerError(f"candidates holds {item!r}, which {why}")
        for item in pinned:
            if item not in ranked:
                raise RankerError(f"pinned holds {item!r}, which is not in production's ranking and has no place there")
        order = self._order
        if first is not None:
            named = dict.fromkeys([*production, *(learner.index[item] for item in first)])
            order = [*named, *(number for number in order if number not in named)]
        held = tuple(sorted(learner.index[item] for item in pinned))
        if (order, held) != (self._order, self._pinned):
            self._order, self._pinned = order, held
            self._make_plan()

    def _present(self) -> list[int]:
        """All items that may be shown, in candidate order."""
        return [number for number in self._order if number not in self._gone]

    def _production(self) -> list[int]:
        """Production's ranking; where an item has left, the others have closed up."""
        staying = [number for number in self._base if number not in self._gone]
        others = (number for number in self._order if number not in self._gone and number not in staying)
        return [*staying, *islice(others, len(self._base) - len(staying))]

    def _call(self) -> Call:
        """What a plan is for: the items that are here, without those that are pinned."""
        production = self._production()
        base = [number for number in production if number not in self._pinned]
        ranked = set(production)
        candidates = [number for number in self._present() if number not in ranked]
        return Call(np.array(base, np.uint32), np.array(candidates, np.uint32))

    def _make_plan(self) -> None:
        call = self._call()
        self._page_size = len(call.base), self._learner.places(call)
        self._take_plan(self._learner.plan(call, self._issued))

    def _take_plan(self, plan: Any) -> None:
        self._plan, self._bound = plan, Bound()

    def _at_work(self) -> "Bound":
        """The workspace, and the kernels for the present policy, evidence and plan."""
        learner, bound = self._learner, self._bound
        if bound.policy is not learner.policy or bound.evidence is not learner.evidence:
            workspace = new_workspace(*self._page_size)
            parts = learner.policy, learner.evidence, self._plan, workspace
            self._bound = Bound(learner.policy, learner.evidence, workspace, drawing(*parts), following(*parts))
        return self._bound

    def _draw(self) -> Impression:
        """Issue the next page."""
        work, page = self._at_work(), new_impression(*self._page_size)
        workspace = work.workspace
        workspace.words[:], workspace.issued[0] = self._rng, self._issued
        copy_page(page, workspace.impression)
        work.draw()
        self._rng[:] = workspace.words
        self._issued += 1
        copy_page(workspace.impression, page)
        return page

    def _learn(self, impression: Impression, clicks: Ints) -> None:
        """Learn the clicks of a page; the plan follows, unless it is for pages of another size."""
        learner = self._learner
        learner.learn(impression, clicks)
        plan = make_room_in_plan(self._plan)
        if plan is not self._plan:
            self._take_plan(plan)
        work = self._at_work()
        if (len(clicks), len(impression.ranking)) != self._page_size:
            renew(learner.policy, learner.evidence, self._plan, self._issued)
            return
        copy_page(impression, work.workspace.impression)
        work.workspace.clicks[:], work.workspace.issued[0] = clicks, self._issued
        work.follow()

    def _leader(self) -> tuple[Item, ...]:
        learner = self._learner
        row = learner.kind.leader(learner.evidence, self._plan)[: learner.n_positions - len(self._pinned)]
        return self._woven(row.tolist())

    def _woven(self, row: Sequence[int]) -> tuple[Item, ...]:
        """A ranking of the policy's with the pinned items at the places that production's ranking has them at."""
        others = iter(row)
        if not self._pinned:
            return self._learner.names(row)
        numbers = [number if number in self._pinned else next(others) for number in self._production()]
        return self._learner.names(numbers)

    def _allowance(self) -> int:
        n_pinned, n_present = len(self._pinned), len(self._order) - len(self._gone)
        return whole_allowance(n_present - n_pinned, self._learner.n_positions - n_pinned)

    def _risk(self, shown: Items) -> Risk | None:
        """What a page risks; None for a policy that does not work out the worst case."""
        worst = self._learner.kind.worst
        return None if worst is None else Risk(self._allowance(), worst(self._learner.evidence, self._plan, shown))

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
            items=self._woven(impression.shown.tolist()),
            hidden=row[n_positions] if challenger != NO_ITEM else None,
            round=int(impression.round[0]),
            challenger=self._learner.items[challenger] if challenger != NO_ITEM else None,
            leader=leader,
            groups=tuple(
                tuple(item for item, at in zip(row, labels, strict=True) if at == label)
                for label in dict.fromkeys(labels)
            ),
            issued_by=self._id,
            _impression=impression,
            risk=self._risk(impression.shown),
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
        if page.issued_by != self._id or page.round > self._issued:
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

"""The contract of a policy: honest pages, learning without side effects, no memory outside evidence and plan.

A plug-in is played interpreted, which sees every index and names lines, at several sizes, and then compiled at one:
both must play the same pages. The package's own policies, which the tests compare with slow transcriptions, are played
as they are.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from saferank._kernel import JIT, implemented, is_foreign
from saferank.checks.contract import Interpreter, blaming, called, require
from saferank.checks.state import (
    changed_fields,
    check_leader,
    check_page,
    contents_of_page,
    copied,
    copied_impression,
    duels_of,
    nan_field,
    same,
    shared_field,
    started,
)
from saferank.click_models import CLICK_MODELS
from saferank.plugins import home_of
from saferank.policies import PolicyKind, Setup, make_room, make_room_in_plan, policy_kind
from saferank.randomness import Words, stream, uniform
from saferank.safety import whole_allowance
from saferank.safety.worst_case import MOST_SEATS, Possible, at_most, certify_seats, new_possible
from saferank.statistics.decision import decision_rule
from saferank.verbs import (
    Impression,
    Ints,
    choose,
    follow,
    freeze,
    has_room,
    learn,
    new_impression,
    plan_has_room,
    renew,
)


class Verbs(NamedTuple):
    """What a trial calls: as it is compiled, or the interpreted twins."""

    choose: Callable[..., None] = choose
    freeze: Callable[..., None] = freeze
    learn: Callable[..., None] = learn
    follow: Callable[..., None] = follow
    renew: Callable[..., None] = renew
    has_room: Callable[..., bool] = has_room
    plan_has_room: Callable[..., bool] = plan_has_room
    make_room: Callable[..., tuple[Any, Any]] = make_room
    new_possible: Callable[..., Possible] = new_possible
    certify_seats: Callable[..., None] = certify_seats
    at_most: Callable[..., bool] = at_most


class Trial:
    """A policy at work."""

    def __init__(self, kind: PolicyKind, setup: Setup, seed: int, verbs: Verbs) -> None:
        self.kind, self.setup, self.verbs = kind, setup, verbs
        with blaming(kind.start):
            self.policy, self.evidence, self.plan = started(kind, setup)
        self.rng, self.users = stream(seed, "checked policy"), stream(seed, "checked users")
        self.page, self.promise = self._blank(), Promise(kind, setup, verbs)
        self.every = np.ones(setup.n_positions, np.int64)
        self.pages: list[list[list[int]]] = []

    def _blank(self) -> Impression:
        """A page with exactly the room that the simulator gives."""
        return new_impression(self.setup.n_positions, self.kind.places(self.setup.n_items, self.setup.n_positions))

    def issue(self) -> tuple[Impression, Ints]:
        """The next page, checked, in arrays of its own, and how its user clicks."""
        self._make_room()
        before, rng, number = copied((self.policy, self.evidence, self.plan)), self.rng.copy(), len(self.pages) + 1
        leader = check_leader(self.kind, self.evidence, self.plan, self.setup)
        who = f"choose() of {self.kind.name}"
        with blaming(implemented(choose, self.kind.policy)):
            self._draw(self.evidence, self.plan, self.rng, self.page, number)
            check_page(who, self.page, self.setup, number)
            self.promise.check(self.evidence, self.page.shown.tolist())
            require(same(self.policy, before[0]), f"{who} changes the policy. What changes belongs into the evidence.")
            require(
                same(self.evidence, before[1]),
                f"{who} changes {_named(self.evidence, before[1])}. Only learn() may, when the clicks are known.",
            )
            require(
                check_leader(self.kind, self.evidence, self.plan, self.setup) == leader,
                f"{who} changes the leader. Only follow() may, when the clicks are known.",
            )
            self._check_drawing_again(before[1], before[2], rng, number)
            self._check_finite("choose", self.plan)
        self.pages.append(contents_of_page(self.page))
        return copied_impression(self.page), self._clicks(number)

    def answer(self, impression: Impression, clicks: Ints) -> None:
        """Have the policy learn from a page, and check what that does."""
        self._make_room()
        policy, evidence = copied(self.policy), copied(self.evidence)
        page, answers = copied_impression(impression), clicks.copy()
        who = f"learn() of {self.kind.name}"
        with blaming(implemented(learn, self.kind.policy)):
            self._call(self.verbs.learn, self.evidence, impression, clicks)
            require(same(impression, page), f"{who} writes into the impression, which others keep. Copy what you need.")
            require(same(clicks, answers), f"{who} writes into the clicks. Copy what you need.")
            require(same(self.policy, policy), f"{who} changes the policy. What changes belongs into the evidence.")
            require(
                bool(clicks.any()) or same(duels_of(self.evidence), duels_of(evidence)),
                f"{who} changes the duels after a page without clicks, on which no item won.",
            )
            self._check_finite("learn", self.evidence)
            self._check_learning_again(evidence, page, answers)
        self._follow(impression, clicks)

    def _draw(self, evidence: Any, plan: Any, rng: Words, page: Impression, number: int) -> None:
        page.round[0] = number
        self._call(self.verbs.choose, evidence, plan, rng, page)
        self._call(self.verbs.freeze, evidence, plan, page, self.every)

    def _follow(self, impression: Impression, clicks: Ints) -> None:
        """Let the plan follow, and check that another one could be made in its place."""
        who, evidence = f"follow() or renew() of {self.kind.name}", copied(self.evidence)
        with blaming(implemented(follow, self.kind.policy) or self.kind.start):
            self._call(self.verbs.follow, self.evidence, self.plan, impression, clicks, len(self.pages))
            fresh = copied(self.plan)
            self._call(self.verbs.renew, self.evidence, fresh, len(self.pages))
            require(same(self.evidence, evidence), f"{who} changes the evidence. Only learn() may.")
            check_leader(self.kind, self.evidence, fresh, self.setup)
            self._check_finite("follow", self.plan)
            self._draw(self.evidence, fresh, self.rng.copy(), self._blank(), len(self.pages) + 1)

    def _check_finite(self, verb: str, made: Any) -> None:
        field = nan_field(made)
        require(
            field is None,
            f"{verb}() of {self.kind.name} leaves NaN in {field}: a comparison with it is always false. Test "
            "for zero before you divide, and give log and sqrt no negative numbers.",
        )

    def _check_drawing_again(self, evidence: Any, plan: Any, rng: Words, number: int) -> None:
        """The same coins must give the same page: from copies of before, and from the plan that was drawn from."""
        for known in (plan, self.plan):
            page, coins = self._blank(), rng.copy()
            self._draw(evidence, known, coins, page, number)
            require(
                contents_of_page(self.page) == contents_of_page(page) and same(self.rng, coins),
                f"choose() of {self.kind.name} draws another page for the same evidence, plan and generator on a new "
                "page. Draw from rng alone, let no draw read what another one wrote into the plan, give every field "
                "an array of its own, and write every entry of the page each time.",
            )

    def _check_learning_again(self, evidence: Any, page: Impression, clicks: Ints) -> None:
        """A copy must learn the same, whatever stands in the places of the page that are not in use."""
        page.ranking[int(page.places[0]) :] = self.setup.n_items - 1
        self._call(self.verbs.learn, evidence, page, clicks)
        require(
            same(self.evidence, evidence),
            f"learn() of {self.kind.name} does something else for a copy of the same evidence, page and clicks. Use no "
            "randomness, remember nothing outside the evidence, give every field an array of its own, and "
            "read only the first impression.places[0] places of the page: what stands behind them was not compared.",
        )

    def _make_room(self) -> None:
        places = len(self.page.ranking)
        self.policy, self.evidence = self.verbs.make_room(self.kind, self.setup, self.policy, self.evidence, places)
        self.plan = make_room_in_plan(self.plan)
        require(
            self.verbs.has_room(self.policy, self.evidence, places)
            and self.verbs.plan_has_room(self.policy, self.plan),
            f"has_room() of {self.kind.name} is false although make_room() has just been called: a simulation would "
            "never end. make_room() lets duels, leaders and lead_needed grow; size everything else in start().",
        )

    def _call(self, verb: Any, evidence: Any, *arguments: Any) -> None:
        sizes = (
            f"with n_items={self.setup.n_items}, n_positions={self.setup.n_positions}, after {len(self.pages)} pages"
        )
        called(self.kind.name, sizes, self._advice, verb, self.policy, evidence, *arguments)

    def _advice(self, problem: Exception) -> str:
        if not isinstance(problem, IndexError):
            return "Mend the line, or refuse such sizes in start() with a sentence."
        room, shown = len(self.page.ranking), self.setup.n_positions
        return (
            f"Compiled code would read or write beyond the array. A page has room for {room} places, of which "
            "impression.places[0] are in use (a policy that compares more than one hidden item is registered with "
            f"compares_all=True); clicks has one entry for each shown position ({shown}), and the click of a hidden "
            "place is 0."
        )

    def _clicks(self, number: int) -> Ints:
        """A user who likes late items better; now and then one who clicks on nothing, or on everything."""
        if number % 7 in (1, 3):  # the first page among those without clicks: nothing to divide by
            return np.full(self.setup.n_positions, np.int64(number % 7 == 3))
        taste = 0.2 + 0.6 * self.page.shown / self.setup.n_items
        return np.array([uniform(self.users) < t for t in taste], np.int64)


def _named(one: Any, other: Any) -> str:
    return ", ".join(f"evidence.{field}" for field in changed_fields(one, other))


class Promise:
    """What a policy that is registered with ``safe=True`` may show.

    Over all orders of the items that agree with the certificates which the policy has given, the page must stay within
    the allowance; a policy that gives none may show only pages that are within it whatever the truth is. Certificates
    that contradict each other leave no order; from then on there is nothing to hold the policy to.
    """

    def __init__(self, kind: PolicyKind, setup: Setup, verbs: Any) -> None:
        self.kind, self.setup, self.verbs = kind, setup, verbs
        self._holds = kind.safe and setup.n_items <= MOST_SEATS
        self._taken = 0  # number of certificates that are noted
        self._possible: Possible | None = None
        if self._holds:
            limit = whole_allowance(setup.n_items, setup.n_positions)
            self._possible = verbs.new_possible(setup.n_items, setup.n_positions, limit)

    def check(self, evidence: Any, shown: list[int]) -> None:
        """Raise a ``ContractError`` when the page can break the constraint."""
        possible = self._known(evidence)
        if possible is None:
            return
        code = sum(item << (4 * place) for place, item in enumerate(shown))
        limit, original = int(possible.limit[0]), list(range(self.setup.n_positions))
        require(
            self.verbs.at_most(possible, code, limit),
            f"{self.kind.name} is registered with safe=True, but shows {shown} in place of the original {original} of "
            f"{self.setup.n_items} items: an order that its certificates leave possible gives this page more than "
            f"{limit} wrong pairs beyond the original's. Keep every page within the worst case of "
            "saferank.safety.worst_case, give certificates (certifies=True), or register it without safe=True.",
        )

    def _known(self, evidence: Any) -> Possible | None:
        """The orders that the certificates leave possible; None when they leave none."""
        possible = self._possible
        if possible is None or not self.kind.certifies:
            return possible
        kept = evidence.duels.certificates
        given = int(kept.given[0])
        pairs = zip(kept.better[self._taken : given], kept.worse[self._taken : given], strict=True)
        for winner, loser in ((int(winner), int(loser)) for winner, loser in pairs):
            if possible.better[winner] >> loser & 1 or winner == loser:
                self._possible = None
                return None
            if not possible.worse[winner] >> loser & 1:
                self.verbs.certify_seats(possible, winner, loser)
        self._taken = given
        return possible


_LEVEL = "0.5"  # so loose that leaders move within a few rounds
_PAGES_OUT = 3
_EXAMINATION = 0.8  # of the second position, for a policy that asks for it

Pages = list[list[list[int]]]


def is_plugin(kind: PolicyKind) -> bool:
    """True when the class of a policy, or the function that starts it, was written outside the package."""
    return is_foreign(kind.policy) or is_foreign(home_of(kind.start))


def check_policy(
    kind: str | PolicyKind,
    n_items: int = 6,
    n_positions: int = 3,
    rounds: int = 200,
    seed: int = 0,
    *,
    compiled: bool = True,
) -> None:
    """Raise a ``ContractError`` unless the policy keeps the contract of a policy.

    It plays ``rounds`` pages on the given size, as a live ranker without a horizon and with answers that come late or
    never, and again with one position, with every item on the page, and with a single item. Pages of a policy that is
    registered with ``safe=True`` are held against the worst case (up to 12 items). The seeds are fixed: a
    verdict never changes. A plug-in is played interpreted, and unless ``compiled`` is false compiled as well.

    Args:
        kind: A policy, or the name of one.
        n_items: Items of the played catalogue.
        n_positions: Items on a page.
        rounds: Pages of a run.
        seed: Seed of coins and clicks.
        compiled: Play a plug-in compiled as well.

    Raises:
        ContractError: The policy breaks its contract; the message says where and how to mend it.
        ValueError: There is no policy of this name.

    >>> check_policy("kl-ucb-br", n_items=4, n_positions=2, rounds=50)

    """
    kind = policy_kind(kind) if isinstance(kind, str) else kind
    _check_verbs(kind)
    _check_assumption(kind)
    rule = decision_rule(kind.default_rule(_LEVEL))
    known = tuple(_EXAMINATION**position for position in range(n_items)) if kind.needs_examination else None
    asked = Setup(n_items, n_positions, rule, examination=known)
    if not is_plugin(kind):
        _check_sizes(kind, asked, rounds, seed, Verbs())
        return
    interpreter = Interpreter(kind.policy.__module__, home_of(kind.start).__module__)
    with np.errstate(all="ignore"):  # compiled code does not warn either
        verbs = Verbs._make(interpreter.twin(verb) for verb in Verbs())
        pages = _check_sizes(_interpreted(kind, interpreter), asked, rounds, seed, verbs)
    if compiled and JIT:
        _check_compiled(replace(kind, safe=False), asked, rounds, seed, pages)  # the same pages were held to it above


def _check_verbs(kind: PolicyKind) -> None:
    for verb in (choose, learn):
        with blaming(kind.policy):
            require(
                implemented(verb, kind.policy) is not None,
                f"{verb.__name__}() is not implemented for {kind.policy.__name__}. Decorate a function with "
                f"@implements({verb.__name__}, {kind.policy.__name__}).",
            )


def _check_assumption(kind: PolicyKind) -> None:
    """``made_for`` names a click model that is registered."""
    with blaming(kind.start):
        require(
            kind.made_for is None or kind.made_for in CLICK_MODELS,
            f"{kind.name} is registered with made_for={kind.made_for!r}, which is no click model. Known are "
            f"{', '.join(CLICK_MODELS)}; leave made_for out for a policy that assumes none.",
        )


def _interpreted(kind: PolicyKind, interpreter: Interpreter) -> PolicyKind:
    parts = {name: getattr(kind, name) for name in ("start", "plan", "leader", "grow")}
    return replace(kind, **{name: interpreter.twin(part) for name, part in parts.items() if part is not None})


def _check_sizes(kind: PolicyKind, asked: Setup, rounds: int, seed: int, verbs: Verbs) -> Pages:
    """Play at all sizes; returns the pages of the size that was asked for."""
    how: Any = {"seed": seed, "verbs": verbs}
    pages = _play_at_once(kind, asked, rounds, **how)
    _play_with_late_answers(kind, asked, rounds, **how)
    for items, positions in dict.fromkeys([(asked.n_items, 1), (asked.n_items, asked.n_items), (1, 1)]):
        setup = replace(asked, n_items=items, n_positions=positions, horizon=rounds)
        _play_at_once(kind, setup, rounds, **how)
    return pages


def _play_at_once(kind: PolicyKind, setup: Setup, rounds: int, **how: Any) -> Pages:
    """Answer every page before the next one, twice from the start: both must be the same."""
    first, again = Trial(kind, setup, **how), Trial(kind, setup, **how)
    with blaming(kind.start):
        shared = shared_field(first.evidence, again.evidence) or shared_field(first.plan, again.plan)
        require(
            shared is None,
            f"start() or plan() of {kind.name} gives every run the same array as {shared}: one would learn from "
            "another. Make new arrays each time.",
        )
    for trial in (first, again):
        for _ in range(rounds):
            trial.answer(*trial.issue())
    with blaming(kind.start):
        require(
            first.pages == again.pages,
            f"{kind.name} plays other pages when it is started again with the same seed and the same users. Let "
            "start() make new arrays each time, and keep nothing in global variables.",
        )
    return first.pages


def _play_with_late_answers(kind: PolicyKind, setup: Setup, rounds: int, **how: Any) -> None:
    """Have several pages out, lose the first of them and answer the others last come, first served."""
    trial = Trial(kind, setup, **how)
    for _ in range(rounds // _PAGES_OUT):
        pages = [trial.issue() for _ in range(_PAGES_OUT)]
        for impression, clicks in reversed(pages[1:]):
            trial.answer(impression, clicks)


def _check_compiled(kind: PolicyKind, setup: Setup, rounds: int, seed: int, pages: Pages) -> None:
    """Compiled, the policy must play the pages that it played interpreted."""
    trial = Trial(kind, setup, seed, Verbs())
    for page in range(rounds):
        trial.answer(*trial.issue())
        with blaming(implemented(choose, kind.policy)):
            require(trial.pages[page] == pages[page], differently_compiled(kind.name, page + 1))


def differently_compiled(name: str, page: int) -> str:
    """The sentence on a policy whose compiled code does something else than its Python code."""
    return (
        f"choose() or learn() of {name} does something else compiled than interpreted, on page {page}. Numba takes "
        "global variables for constants, and treats unsigned numbers in its own way (0 - 1 of an item; uint64 mixed "
        "with int64 is a float): convert with int() before you subtract, and keep nothing in globals."
    )

"""The names of policies, and what the simulator and the live ranker need to know of each besides its verbs."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import entry_points
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from saferank._kernel import JIT
from saferank.errors import UsageError, unknown
from saferank.policies.shared.settings import Value, in_name, parse_settings, starting_with
from saferank.statistics.decision import DecisionRule, decision_rule
from saferank.verbs import NO_ITEM, Call, Ints, Items, renew

LEAST_TRUST, MOST_TRUST = 0.5, 0.99
"""Between no opinion and near certainty: how likely production's ranking has two neighbours the right way round."""


@dataclass(frozen=True)
class Setup:
    """What a policy starts from. Items are 0..n_items-1, of which the first n_positions are the original ranking."""

    n_items: int
    n_positions: int
    rule: DecisionRule = field(default_factory=lambda: decision_rule("paper:1e-5"))
    horizon: int | None = None  # None for a live ranker, which has none
    lifetime: int | None = None  # pages of an epoch; a certificate ends with the next one. None: it never ends
    examination: tuple[float, ...] | None = None  # by position, for a policy that asks for it; None: not known
    trust: float | None = None  # in production's ranking, for a policy that asks for it; None: the policy's own value

    def first_call(self) -> Call:
        """The call with which a simulation begins, and never ends."""
        items = np.arange(self.n_items, dtype=np.uint32)
        return Call(items[: self.n_positions].copy(), items[self.n_positions :].copy())


@dataclass(frozen=True)
class Outlook:
    """What a policy would explore next, in words and, where it has one, with the optimistic index."""

    note: str
    challenger: int = NO_ITEM
    index: float | None = None
    against: int = NO_ITEM  # whom it challenges; NO_ITEM: the bottom item of the leader
    working: tuple[int, ...] | None = None  # the order around which it draws pages, if it does


class TooManyItemsError(ValueError):
    """A catalogue that is too large for a policy."""


class WrongRuleError(ValueError):
    """A decision rule that a policy does not take."""


class Look(NamedTuple):
    """Colour, line and marker: any one of them tells curves apart, also in grey or for colour-blind eyes."""

    colour: str
    in_the_dark: str
    line: str | tuple[int, tuple[float, ...]]
    marker: str


PAPER, OURS, PEER, YOURS = "paper", "ours", "peer", "yours"
"""Where a policy comes from: the paper, this project, other papers, a plug-in."""


@dataclass(frozen=True)
class Presentation:
    """How a policy appears in lists, figures and reports."""

    title: str
    look: Look | None = None  # None: a free one
    origin: str = YOURS
    order: int = 100  # where it stands in lists, ascending
    about: str = ""  # one sentence for the report


@runtime_checkable
class Servable(Protocol):
    """What a policy must offer, beyond the verbs, to be served: a ``PolicyKind`` that certifies, with these parts.

    The service folds closed pages into evidence (``learn``), and lets it grow when items come (``with_items``). For a
    call it makes a plan (``plan``, then ``renew``), and draws every page from it by coins of its own; so ``renew``,
    ``choose`` and ``freeze`` must leave the evidence as it is, and the same coins must give the same page from the same
    plan. ``follow`` is not asked. The certificates, by which every page is checked, are read from
    ``evidence.duels.certificates``. ``follows_base`` says that the leader is what certified exchanges make of the
    call's base ranking. A plan has the fields ``base`` and ``candidates``, from which ``renew`` derives everything
    else: the service writes another call there. ``checks.check_servable`` tries all of this.
    """

    name: str
    certifies: bool
    follows_base: bool
    leader: Callable[[Any, Any], Ints]
    plan: Callable[[Any, Any, Call], Any]
    with_items: Callable[[Any, int], Any]


SERVABLE_PARTS = ("plan", "with_items", "follows_base")
"""The parts of ``Servable`` that are optional in a ``PolicyKind``."""


@dataclass(frozen=True)
class PolicyKind:
    """An algorithm by name, and everything that the rest of the package needs to know about it."""

    name: str
    policy: type  # the NamedTuple for which choose and learn are implemented
    start: Callable[[Setup], tuple[Any, Any]]  # its hyper-parameters and its first evidence
    leader: Callable[[Any, Any], Ints]  # its current best guess, n_positions items, from evidence and plan
    plan: Callable[[Any, Any, Call], Any] | None = None  # room for a plan of this call; None: the call itself is one
    plan_is_derived: bool = False  # a plan is what renew makes of evidence and call; others remember pages
    for_many_pages: Callable[[Any], Any] | None = (
        None  # a plan with what makes many pages faster; None: the plan itself
    )
    certifies: bool = False  # its evidence has duels with certificates
    safe: bool = False  # no page violates the constraint as long as no certificate is wrong
    made_for: str | None = None  # the click model that it assumes; None: it assumes none
    rule: Callable[[Setup], DecisionRule] | None = None  # the rule that it decides by, if it has one
    rules: tuple[str, ...] = ("paper", "anytime", "budget")  # the kinds of rules that it takes, its own choice first
    compares_all: bool = False  # a page may compare items that are not shown, any number of them
    compared: Callable[[int, int], int] | None = None  # places that a page of L items and K positions may compare
    largest_catalogue: int | None = None  # more items than this are refused; None: no limit
    most_positions: int | None = None  # larger pages than this are refused; None: no limit
    with_items: Callable[[Any, int], Any] | None = None  # the evidence with room for n items; None: none may come
    follows_base: bool = False  # its leader follows from the call's base ranking and certificates: it can be served
    tries_in_order: bool = False  # untried items are tried in the order of the call's candidates
    outlook: Callable[[Any, Any, Any, int], Outlook] | None = None  # for explanations; the number is of issued pages
    settled: Callable[[Any, Any, int, int], bool] | None = None  # is the order of two settled? None: ask the rule
    worst: Callable[[Any, Any, Items], int] | None = None  # the most further wrong pairs of a page, by certificates
    grow: Callable[[Any, int], Any] | None = None  # the evidence with room for a page; None: make_room knows
    shown_as: Presentation | None = None  # None: by its name, in a free colour
    lifetimes: bool = False  # its certificates may have a lifetime
    needs_examination: bool = False  # it cannot start without ``Setup.examination``
    keeps_budget: bool = False  # it spends a ``budget`` by itself, with a part for items that come later
    trusts: bool = False  # it starts from ``Setup.trust``: how likely production has two items right

    def check_examination(self, examination: Sequence[float] | None, n_positions: int) -> None:
        """ValueError when the policy needs examination probabilities that are not there or cannot be used."""
        if examination is not None:
            check_examination(examination, n_positions)
        elif self.needs_examination:
            raise ValueError(f"{self.name} needs the examination probability of every position: give examination=")

    def check_lifetime(self, lifetime: int | None) -> None:
        """ValueError when certificates of this policy cannot have this lifetime."""
        if lifetime is None:
            return
        if lifetime < 1:
            raise ValueError(f"the lifetime of certificates is at least 1 page, not {lifetime}")
        if not self.lifetimes:
            raise ValueError(f"certificates of {self.name} cannot have a lifetime; use it without one")

    def check_trust(self, trust: float | None) -> None:
        """ValueError when the policy cannot take this trust in production's ranking."""
        if trust is None:
            return
        if not self.trusts:
            raise ValueError(f"{self.name} has no trust in production's ranking that could be set; safe-draw has")
        if not LEAST_TRUST <= trust <= MOST_TRUST:  # NaN fails as well
            raise ValueError(
                f"trust is {trust}, expected a number from {LEAST_TRUST} (none) to {MOST_TRUST}: how likely production "
                "has two neighbours the right way round"
            )

    @property
    def title(self) -> str | None:
        """Its name in figures and tables; None: it has none."""
        return None if self.shown_as is None else self.shown_as.title

    def begin(self, setup: Setup) -> tuple[Any, Any]:
        """Policy and evidence of the start; raises ``UsageError`` when the latter cannot be copied and compiled."""
        policy, evidence = self.start(setup)
        self._check_parts(evidence, "evidence")
        return policy, evidence

    def empty_plan(self, policy: Any, evidence: Any, call: Call) -> Any:
        """Room for a plan, which ``renew`` fills in; ``UsageError`` when it cannot be copied and compiled."""
        plan = call if self.plan is None else self.plan(policy, evidence, call)
        self._check_parts(plan, "plan")
        return plan

    def plan_for(self, policy: Any, evidence: Any, call: Call, issued: int = 0) -> Any:
        """The plan of a call after ``issued`` pages."""
        plan = self.empty_plan(policy, evidence, call)
        renew(policy, evidence, plan, issued)
        return plan

    def _check_parts(self, made: Any, what: str) -> None:
        problem = _problem_of(made, what) if JIT else None  # plain Python plays with anything
        if problem is not None:
            raise UsageError(f"policy {self.name}: {problem}; {what} is a NamedTuple of arrays, or of such NamedTuples")

    @property
    def can_pin(self) -> bool:
        """True when it can rank around pinned items: a plan may be for fewer positions than before."""
        return self.plan is not None and not self.needs_examination

    def missing_to_be_served(self) -> list[str]:
        """The parts of ``Servable`` that the policy does not have; none: it can be served."""
        missing = [part for part in SERVABLE_PARTS if not getattr(self, part)]
        return missing if self.certifies else [*missing, "certificates"]

    def check_size(self, n_items: int) -> None:
        """TooManyItemsError when the policy cannot take ``n_items`` items."""
        if self.largest_catalogue is not None and n_items > self.largest_catalogue:
            raise TooManyItemsError(
                f"{n_items} items: {self.name} compares all pairs and takes at most {self.largest_catalogue}"
            )

    def check_positions(self, n_positions: int) -> None:
        """ValueError when the policy cannot make pages of ``n_positions`` positions."""
        if self.most_positions is not None and n_positions > self.most_positions:
            raise ValueError(
                f"{n_positions} positions: {self.name} takes at most {self.most_positions}; show fewer, or take a "
                "policy without that limit, such as kl-ucb-br"
            )

    def check_rule(self, rule: DecisionRule, live: bool = False) -> None:
        """WrongRuleError when the policy cannot decide by a rule of this kind; live, where items may come."""
        if rule.kind not in self.rules:
            takes = " or ".join(f"{kind}:{_LEVELS[kind]}" for kind in self.rules)
            raise WrongRuleError(f"{self.name} takes the rule {takes}, not {rule.name}")
        if live and rule.kind == "budget" and self.certifies and not self.keeps_budget:
            raise WrongRuleError(
                f"{rule.name}: {self.name} spends it evenly on the items it begins with, and has none left for items "
                "that come later; safe-draw has, and in simulate none come"
            )

    def default_rule(self, level: str = "1e-5") -> str:
        """The rule that it takes where none is given."""
        return f"{self.rules[0]}:{level}"

    def places(self, n_items: int, n_positions: int) -> int:
        """How many places a page may compare: what the policy says, all items, or the shown ones and one hidden."""
        if self.compared is not None:
            return self.compared(n_items, n_positions)
        return n_items if self.compares_all else n_positions + 1


_LEVELS = {"paper": "DELTA", "anytime": "ALPHA", "budget": "ALPHA"}


def _problem_of(value: Any, path: str) -> str | None:
    """The first part of evidence or plan that is neither an array nor a NamedTuple of them, in words."""
    if isinstance(value, np.ndarray):
        return None
    if not isinstance(value, tuple) or not hasattr(value, "_fields"):
        return f"{path} is a {type(value).__name__}"
    parts = (_problem_of(part, f"{path}.{name}") for name, part in zip(value._fields, value, strict=True))
    return next((problem for problem in parts if problem is not None), None)


def check_examination(examination: Sequence[float], n_positions: int) -> None:
    """ValueError unless every one of the positions has a probability above 0."""
    if len(examination) < n_positions:
        raise ValueError(f"examination covers {len(examination)} positions, expected at least {n_positions}")
    for position, probability in enumerate(examination[:n_positions], start=1):
        if not 0 < probability <= 1:  # NaN fails as well
            raise ValueError(
                f"examination of position {position} is {probability}, expected a probability above 0 and at most 1"
            )


def given_rule(setup: Setup) -> DecisionRule:
    """The rule of the setup: what the bubble policies decide by."""
    return setup.rule.for_items(setup.n_items)


POLICIES: dict[str, PolicyKind] = {}
VARIANTS: dict[str, PolicyKind] = {}
"""Policies with another reading of an open point, called ``policy:reading``: for sensitivity runs, not on offer."""


def register(name: str, policy: type, **parts: Any) -> PolicyKind:
    """Make an algorithm known under ``name``; the same module may register the name again, which replaces it.

    Of its parts ``start`` and ``leader`` are needed. The others give more: ``with_items`` lets items come and go in
    a live ranker, ``plan`` makes room for what follows from evidence and call, and with both and ``follows_base`` a
    policy that certifies can be served (see ``Servable``); ``outlook``, ``settled`` and ``worst`` let it explain
    itself, ``tries_in_order`` says that it looks at the order of a call's candidates, ``shown_as`` is its title and
    look in figures and reports,
    ``lifetimes`` says that it starts from ``setup.lifetime`` and implements ``advance``,
    ``needs_examination`` that it needs the examination probabilities of the positions, ``setup.examination``,
    ``safe`` what it promises, and ``made_for`` which click model it assumes: the report compares by them.

    Args:
        name: The name for simulations, rankers and reports.
        policy: The NamedTuple for which ``choose`` and ``learn`` are implemented.
        **parts: The other fields of ``PolicyKind``.

    Returns:
        The policy as it is known from now on.

    Raises:
        TypeError: A part is missing or not known.
        UsageError: Another module has registered the name: results would carry the wrong one.

    """
    strange = sorted(parts.keys() - {field.name for field in fields(PolicyKind)})
    if strange:
        known = ", ".join(field.name for field in fields(PolicyKind)[2:])
        raise TypeError(f"register() of {name!r}: a policy has no part {strange[0]!r}; known ones: {known}")
    missing = [part for part in ("start", "leader") if part not in parts]
    if missing:
        raise TypeError(f"register() of {name!r}: {missing[0]}= is missing; a policy needs start= and leader=")
    kind = PolicyKind(name, policy, **parts)
    _check_free(kind)
    POLICIES[name] = kind
    return kind


def _check_free(kind: PolicyKind) -> None:
    known = POLICIES.get(kind.name) or VARIANTS.get(kind.name)
    if known is not None and known.start.__module__ != kind.start.__module__:
        home = known.start.__module__
        raise UsageError(f"register() of {kind.name!r}: the name is taken by a policy of {home}; choose another one")


def register_variant(kind: PolicyKind, reading: str, start: Callable[[Setup], tuple[Any, Any]]) -> PolicyKind:
    """Make a policy that differs from ``kind`` in its hyper-parameters known as ``policy:reading``."""
    variant = replace(kind, name=f"{kind.name}:{reading}", start=start)
    VARIANTS[variant.name] = variant
    return variant


def policy_kind(policy: "str | PolicyKind | type") -> PolicyKind:
    """The policy, or variant of a policy, of this name; also by the class that it is registered for.

    A name may set hyper-parameters: ``bubble-rank:hidden_duels=false``.
    """
    if isinstance(policy, PolicyKind):
        return policy
    if isinstance(policy, type):
        return _kind_of_class(policy)
    name = policy
    base, *texts = name.split(":")
    if base not in POLICIES:
        load_installed()
    if base in POLICIES and texts and all("=" in text for text in texts):
        return with_settings(POLICIES[base], parse_settings(base, POLICIES[base].policy, texts))
    if name not in POLICIES and name not in VARIANTS:
        raise ValueError(unknown("policy", name, sorted(POLICIES)))
    return POLICIES[name] if name in POLICIES else VARIANTS[name]


@functools.cache
def load_installed() -> None:
    """Import what installed packages offer: the entry points of the group ``saferank.policies``, modules that register.

    [project.entry-points."saferank.policies"]
    mine = "my_package.my_policies"
    """
    for entry in entry_points(group="saferank.policies"):
        try:
            entry.load()
        except Exception as problem:  # a plug-in may fail in any way
            why = f"{type(problem).__name__}: {problem}"
            raise ValueError(f"the entry point {entry.name} ({entry.value}) cannot be imported: {why}") from problem


def with_settings(kind: PolicyKind, values: Mapping[str, Value]) -> PolicyKind:
    """The policy with these hyper-parameters; they are part of its name."""
    if kind.trusts:
        kind.check_trust(values.get("trust"))
    return replace(kind, name=f"{kind.name}:{in_name(values)}", start=starting_with(kind.start, values))


def policies_of(*origins: str) -> tuple[str, ...]:
    """The names of the policies of these origins, in the order of lists.

    >>> policies_of("paper")
    ('kl-ucb-br', 'bubble-rank', 'top-rank', 'uni-rank', 'original')
    """
    listed = [kind for kind in POLICIES.values() if origin_of(kind) in origins]
    return tuple(kind.name for kind in sorted(listed, key=lambda kind: kind.shown_as.order if kind.shown_as else 100))


def origin_of(kind: PolicyKind) -> str:
    """Where a policy comes from."""
    return YOURS if kind.shown_as is None else kind.shown_as.origin


def _kind_of_class(policy: type) -> PolicyKind:
    found = [kind for kind in POLICIES.values() if kind.policy is policy]
    if not found:
        raise ValueError(f"class {policy.__name__} is not registered; call saferank.policies.register for it first")
    return found[-1]

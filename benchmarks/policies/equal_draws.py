"""False certificates of safe-draw between equal items, through whole runs under four click models.

A pair of equal items is certified in a given direction with probability at most alpha over all time. Each run looks at
one ordered pair that is fixed beforehand, so runs are independent trials and the binomial law bounds their number. The
draws are the policy's own, so most odds are uneven. The mutant bets at even odds whatever the draw was.

``equal_items.py`` prints the table of both forms of the policy.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from saferank._kernel import kernel
from saferank.click_models.cm import CM
from saferank.click_models.dcm import DCM
from saferank.click_models.pbm import PBM
from saferank.click_models.ubm import UBM
from saferank.policies import Setup, make_room, policy_kind
from saferank.randomness import Words, stream
from saferank.safety.worst_case import MOST_SEATS
from saferank.statistics.decision import decision_rule
from saferank.verbs import (
    Floats,
    Impression,
    Ints,
    advance,
    choose,
    click,
    follow,
    freeze,
    has_room,
    learn,
    new_impression,
    renew,
)

MODELS = ("pbm", "cm", "dcm", "ubm")
LEVELS = (0.05, 0.01, 1e-3)
SURPRISE = 1e-3
"""A policy that keeps its level shows more false certificates than ``allowed`` with at most this probability."""


class Users(NamedTuple):
    """The four models with the same attractions. One compiled loop serves them all."""

    pbm: PBM
    cm: CM
    dcm: DCM
    ubm: UBM


class Scene(NamedTuple):
    """What a run needs beside the policy."""

    page: Impression
    clicks: Ints
    policy_rng: Words
    user_rng: Words


class Terms(NamedTuple):
    """How the policy plays."""

    rule: str
    even: bool = False  # bets at even odds: the mutant
    trust: float | None = None
    lifetime: int | None = None
    late: int = 0  # number of items that come half-way


class World(NamedTuple):
    """A size of the policy and the attractions of its items."""

    name: str
    n_positions: int
    attraction: tuple[float, ...]
    pages: int

    def equal_pairs(self) -> list[tuple[int, int]]:
        """All ordered pairs of equal items."""
        a = self.attraction
        return [(i, j) for i, j in permutations(range(len(a)), 2) if a[i] == a[j]]

    def watched(self) -> list[tuple[int, int]]:
        """Those of which a run looks at one: in a large catalogue those of production's ranking, which meet most."""
        most = self.n_positions if len(self.attraction) > MOST_SEATS else len(self.attraction)
        return [pair for pair in self.equal_pairs() if max(pair) < most]


EXACT = World("exact, all equal", 3, (0.4,) * 5, 2000)
EXACT_IN_TWOS = World("exact, equal in twos", 3, (0.3, 0.15, 0.6, 0.6, 0.3, 0.15), 2000)
SLOTS = World("slots, all equal", 5, (0.4,) * 13, 2500)
SLOTS_IN_TWOS = World("slots, twos, threes", 5, (0.3, 0.15, 0.15, *(0.5, 0.3, 0.2, 0.1, 0.05) * 2), 2500)


def users_of(world: World) -> Users:
    """The models, whose users prefer higher places in one way or another."""
    attraction, k = np.array(world.attraction), world.n_positions
    falling = (0.8 ** np.arange(k)).astype(np.float64)
    after = np.zeros((k, k))
    for r in range(k):
        after[r, 0] = falling[r]
        after[r, 1 : r + 1] = 0.7 * falling[r - 1 :: -1] if r else 0.0
    return Users(PBM(attraction, falling), CM(attraction), DCM(attraction, 0.6 * falling), UBM(attraction, after))


@kernel
def _click_as(users: Users, model: int, scene: Scene) -> None:
    if model == 0:
        click(users.pbm, scene.page.shown, scene.user_rng, scene.clicks)
    elif model == 1:
        click(users.cm, scene.page.shown, scene.user_rng, scene.clicks)
    elif model == 2:
        click(users.dcm, scene.page.shown, scene.user_rng, scene.clicks)
    else:
        click(users.ubm, scene.page.shown, scene.user_rng, scene.clicks)


@kernel
def play(policy: Any, evidence: Any, plan: Any, users: Users, model: int, scene: Scene, pages: int, even: bool) -> int:
    """Play ``pages`` pages, or fewer if there is no room for more; returns how many were left."""
    page = scene.page
    while pages > 0 and has_room(policy, evidence, len(page.ranking)):
        if advance(policy, evidence, page.round[0]):
            renew(policy, evidence, plan, page.round[0])
        page.round[0] += 1
        choose(policy, evidence, plan, scene.policy_rng, page)
        _click_as(users, model, scene)
        freeze(policy, evidence, plan, page, scene.clicks)
        if even:
            for place in range(scene.page.places[0]):
                scene.page.weight[place] = 1.0
        learn(policy, evidence, page, scene.clicks)
        follow(policy, evidence, plan, page, scene.clicks, page.round[0])
        pages -= 1
    return pages


def certificates_of_run(world: World, model: str, terms: Terms, seed: int, loop: Any) -> set[Any]:
    """The pairs that were certified by their own bets, in a run of its own."""
    n_items, kind = len(world.attraction), policy_kind("safe-draw")
    setup = Setup(n_items, world.n_positions, decision_rule(terms.rule), lifetime=terms.lifetime, trust=terms.trust)
    began = replace(setup, n_items=n_items - terms.late)
    policy, evidence = kind.start(began)
    plan = kind.plan_for(policy, evidence, began.first_call())
    rngs = stream(seed, "policy", model), stream(seed, "users", model)
    scene = Scene(
        new_impression(world.n_positions, kind.places(n_items, world.n_positions)),
        np.zeros(world.n_positions, np.int64),
        *rngs,
    )
    users = users_of(world)
    for half in (world.pages // 2, world.pages - world.pages // 2):
        left = half
        while left > 0:
            policy, evidence = make_room(kind, setup, policy, evidence, len(scene.page.ranking))
            left = loop(policy, evidence, plan, users, MODELS.index(model), scene, left, terms.even)
        if terms.late and kind.with_items is not None:
            evidence = kind.with_items(evidence, n_items)
            plan = kind.plan_for(policy, evidence, setup.first_call(), int(scene.page.round[0]))
    kept = evidence.duels.certificates
    better, worse, given = kept.better, kept.worse, kept.given
    return set(zip(better[: given[0]].tolist(), worse[: given[0]].tolist(), strict=True))


class Count(NamedTuple):
    """False certificates of some runs."""

    runs: int
    alpha: float
    one_pair: int  # runs that certified the ordered pair that was chosen for them beforehand
    shares: Floats  # by run: certified pairs of all ordered pairs of equal items

    @property
    def allowed(self) -> int:
        """The largest number for which a policy that keeps its level is not suspect."""
        return int(stats.binom.ppf(1 - SURPRISE, self.runs, self.alpha))

    @property
    def keeps_its_level(self) -> bool:
        """The verdict on the pairs that were chosen beforehand."""
        return self.one_pair <= self.allowed

    def __str__(self) -> str:
        error = self.shares.std(ddof=1) / math.sqrt(self.runs)
        rate, verdict = self.one_pair / self.runs, "keeps" if self.keeps_its_level else "BREAKS"
        return (
            f"{self.one_pair:6d} of {self.runs} ({rate:.4f}), allowed {self.allowed:4d}, {verdict:6s} "
            f"all pairs {self.shares.mean():.5f} ({error:.5f})"
        )


def count(world: World, model: str, alpha: float, runs: int, *, even: bool = False, loop: Any = play) -> Count:
    """Play the runs; run number r looks at the watched pair number r, cyclically."""
    pairs, watched, found, shares = world.equal_pairs(), world.watched(), 0, np.zeros(runs)
    for seed in range(runs):
        certified = certificates_of_run(world, model, Terms(f"anytime:{alpha}", even), seed, loop)
        found += watched[seed % len(watched)] in certified
        shares[seed] = len(certified & set(pairs)) / len(pairs)
    return Count(runs, alpha, found, shares)


def runs_with_a_false_one(world: World, model: str, terms: Terms, runs: int, loop: Any = play) -> int:
    """Of how many runs some pair of equal items was certified for the item with the lower number.

    A direction of each pair that is chosen beforehand: with ``budget:ALPHA`` each run has such a certificate, of
    whichever pair, with probability at most alpha.
    """
    wrong = {(i, j) for i, j in world.equal_pairs() if i < j}
    return sum(bool(certificates_of_run(world, model, terms, seed, loop) & wrong) for seed in range(runs))


def table(runs: int) -> Iterator[str]:
    """A line for each world, click model and level, and for the mutant."""
    few = runs // 10  # a run of the slot form takes longer
    for world, size in ((EXACT, runs), (EXACT_IN_TWOS, runs), (SLOTS, few), (SLOTS_IN_TWOS, few)):
        for model in MODELS:
            for alpha in LEVELS:
                yield f"{world.name:22s} {model:4s} {alpha:<6g} {count(world, model, alpha, size)}"
            mutant = count(world, model, LEVELS[0], max(size // 10, 20), even=True)
            yield f"{world.name:22s} {model:4s} {LEVELS[0]:<6g} {mutant}   bets at even odds (mutant)"

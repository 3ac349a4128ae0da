"""What holds for every policy, by discovery: a new one is tested as soon as it is registered.

The heart is exact equality with the literal transcriptions in ``reference``: same coins, same pages, same statistics.
"""

import functools
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tests.reference.peers.batch_rank as transcribed_batches
import tests.reference.peers.cascade_kl_ucb as transcribed_cascade
import tests.reference.policies as transcribed
from saferank.checks import check_policy
from saferank.click_models import CLICK_MODELS
from saferank.policies import POLICIES, PolicyKind, Setup
from saferank.randomness import Words, stream
from saferank.safety import wrong_pairs
from saferank.statistics.bets import Bets
from saferank.statistics.decision import DecisionRule, decision_rule
from saferank.statistics.duels import AnyDuels, new_duels
from saferank.statistics.pairs import duel_of
from saferank.verbs import NO_ITEM, Floats, Impression, Ints, new_impression
from tests.policies.at_work import AtWork
from tests.reference import decision as literal
from tests.reference.kl_index import index, sbb
from tests.reference.peers.pbm_ts import PbmTs
from tests.reference.peers.pbm_ucb import PbmUcb
from tests.reference.randomness import Xoshiro
from tests.reference.safe_draw import slow_safe_draw

EVERY = pytest.mark.parametrize("name", POLICIES)
BUBBLES = pytest.mark.parametrize("name", ["bubble-rank", "kl-ucb-br"])
SIZES = [(1, 1), (2, 1), (5, 1), (2, 2), (4, 4), (5, 5), (4, 2), (6, 3), (7, 4), (8, 5)]
RULES = ["paper:0.5", "anytime:0.1", "paper:1e-3", "anytime:1e-2"]
KAPPA = (0.9, 1.0, 0.6, 0.6, 0.3, 0.4, 0.2, 0.1)
"""Examination by position for the policies that ask: the best position is not the first, and two are equal."""

User = Callable[[np.random.Generator, Floats, list[int]], list[int]]


def browses(rng: np.random.Generator, attraction: Floats, shown: list[int]) -> list[int]:
    """Clicks independently, the less the lower."""
    return [int(rng.random() < attraction[item] * 0.8**k) for k, item in enumerate(shown)]


def takes_the_first(rng: np.random.Generator, attraction: Floats, shown: list[int]) -> list[int]:
    """Clicks at most once, from the top."""
    clicks = [int(rng.random() < attraction[item]) for item in shown]
    return [int(click and not any(clicks[:k])) for k, click in enumerate(clicks)]


def wants_the_last_item(rng: np.random.Generator, attraction: Floats, shown: list[int]) -> list[int]:
    """Clicks without chance on the item with the largest number: as much as production can be wrong."""
    return [int(item == max(shown)) for item in shown]


def clicks_without_pattern(rng: np.random.Generator, attraction: Floats, shown: list[int]) -> list[int]:
    """Every item is as good as any other: whatever is decided is wrong."""
    return [int(rng.random() < 0.5) for _ in shown]


def clicks_on_everything(rng: np.random.Generator, attraction: Floats, shown: list[int]) -> list[int]:
    return [1] * len(shown)


def clicks_on_nothing(rng: np.random.Generator, attraction: Floats, shown: list[int]) -> list[int]:
    return [0] * len(shown)


def changes_sides(rng: np.random.Generator, attraction: Floats, shown: list[int]) -> list[int]:
    """Wants the first half of the items or the second, mostly for a while: what was decided opens again."""
    favourites = rng.random() < 0.9
    return [int((2 * item < len(attraction)) == favourites) for item in shown]


USERS: list[User] = [
    browses,
    takes_the_first,
    wants_the_last_item,
    clicks_without_pattern,
    clicks_on_everything,
    clicks_on_nothing,
    changes_sides,
]


def rule_for(name: str, rule: str) -> DecisionRule:
    """The rule; some take from it only the level: TopRank and BatchRank have their own, safe-draw bets."""
    kind, _, level = rule.partition(":")
    if name in ("top-rank", "batch-rank"):
        kind = "paper"
    return decision_rule(f"{kind if kind in POLICIES[name].rules else POLICIES[name].rules[0]}:{level}")


def ties(n_items: int, seed: int) -> Floats:
    """Attractions with one digit, so that some are equal."""
    return np.round(np.random.default_rng([seed, n_items]).random(n_items), 1)


class Turn(NamedTuple):
    """A page that is out, and what its user will click."""

    kind: PolicyKind
    state: AtWork
    impression: Impression
    clicks: list[int]
    rng: Words


def turns(
    name: str, size: tuple[int, int], rounds: int, rule: str = "paper:0.5", seed: int = 0, user: User = browses
) -> Iterator[Turn]:
    """Play, handing over every page before its clicks are learnt."""
    kind, known = POLICIES[name], KAPPA if POLICIES[name].needs_examination else None
    setup = Setup(*size, rule_for(name, rule), examination=known)
    state = AtWork(kind, setup)
    rng, users, attraction = stream(seed, "policy"), np.random.default_rng(seed), ties(size[0], seed)
    impression = state.blank()
    for _ in range(rounds):
        state.choose(rng, impression)
        clicks = user(users, attraction, impression.shown.tolist())
        yield Turn(kind, state, impression, clicks, rng)
        state.learn(impression, np.array(clicks, np.int64))


class LiteralPage(NamedTuple):
    """What was shown, and the groups of items that are compared."""

    shown: list[int]
    compared: list[list[int]]


class DrawnLiteral:
    """safe-draw's transcription, asked as the others are."""

    def __init__(self, size: tuple[int, int], alpha: float, rng: Xoshiro) -> None:
        self.slow, self.rng = slow_safe_draw(size, alpha, rng.state, trust=0.977), rng

    def show(self) -> LiteralPage:
        self.page = self.slow.rank()
        self.rng.state = self.slow.coins.words
        return LiteralPage(self.page.shown, [self.page.row])

    def feedback(self, clicks: list[int]) -> None:
        self.slow.learn(self.page, clicks)

    @property
    def leader(self) -> list[int]:
        return list(self.slow.plan.R)

    def _of_pairs(self, sign: int) -> list[list[int]]:
        items, wins = range(self.slow.L), self.slow.wins
        return [[wins[i, j] + sign * wins[j, i] for j in items] for i in items]

    @property
    def s(self) -> list[list[int]]:
        return self._of_pairs(-1)

    @property
    def n(self) -> list[list[int]]:
        return self._of_pairs(1)


def transcription(name: str, size: tuple[int, int], rule: str, seed: int) -> Any:
    """The literal policy in the same situation, with the same random words."""
    kind, _, level = rule.partition(":")
    rng = Xoshiro(stream(seed, "policy").tolist())
    decides = literal.paper_decides if kind == "paper" else literal.anytime_decides

    @functools.cache
    def beats(s: int, n: int) -> bool:
        return decides(s, n, float(level))

    literals: dict[str, Callable[[], Any]] = {
        "original": lambda: transcribed.Original(*size, rng),
        "bubble-rank": lambda: transcribed.BubbleRank(*size, rng, beats),
        "kl-ucb-br": lambda: transcribed.KlUcbBr(*size, rng, beats),
        "top-rank": lambda: transcribed.TopRank(*size, rng, float(level)),
        "uni-rank": lambda: transcribed.UniRank(*size, rng),
        "cascade-kl-ucb": lambda: transcribed_cascade.CascadeKlUcb(*size, rng),
        "pbm-ucb": lambda: PbmUcb(*size, rng, list(KAPPA)),
        "pbm-ts": lambda: PbmTs(*size, rng, list(KAPPA)),
        "batch-rank": lambda: transcribed_batches.BatchRank(*size, rng, 1 / float(level)),
        "safe-draw": lambda: DrawnLiteral(size, float(level), rng),
    }
    return literals[name]()


@pytest.fixture(autouse=True, scope="module")
def _remembered_indices() -> Iterator[None]:
    """The literal index takes milliseconds; equal questions are asked once. The transcription itself stays."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transcribed, "sbb", functools.cache(sbb))
        for other in (transcribed_cascade, transcribed_batches):
            patch.setattr(other, "index", functools.cache(index))
        yield


def groups_of(impression: Impression) -> list[list[int]]:
    """The compared items, group by group, without the places on their own."""
    places = int(impression.places[0])
    groups: dict[int, list[int]] = {}
    for start, item in zip(impression.start[:places].tolist(), impression.ranking[:places].tolist(), strict=True):
        groups.setdefault(start, []).append(item)
    return [group for group in groups.values() if len(group) > 1]


def leader_of(turn: Turn) -> list[Any]:
    """The leader as the transcription says it: items, or parts of items."""
    if turn.kind.name == "batch-rank":
        row, starts = turn.state.leader(), np.unique(turn.state.start)
        return [batch.tolist() for batch in np.split(row, starts[1:])]
    parts = getattr(turn.state, "blocks", getattr(turn.state, "parts", None))
    if parts is None:
        return [*turn.state.leader().tolist()]
    return [parts.order[parts.start == start].tolist() for start in sorted(set(parts.start.tolist()))]


def wins_of_all(duels: AnyDuels | Bets, n_items: int) -> Ints:
    items = range(n_items)
    return np.array([[duel_of(duels, i, j)[0] if i != j else 0 for j in items] for i in items])


def as_sets(groups: list[list[int]]) -> list[list[int]]:
    return sorted(sorted(group) for group in groups if len(group) > 1)


def assert_equal_to_the_transcription(
    name: str, size: tuple[int, int], rounds: int, rule: str, seed: int, user: User
) -> None:
    slow = transcription(name, size, rule, seed)
    for number, turn in enumerate(turns(name, size, rounds, rule, seed, user), start=1):
        page, case = slow.show(), (name, size, rule, seed, user.__name__, number)
        assert turn.impression.round[0] == number
        assert turn.impression.shown.tolist() == page.shown, case
        assert as_sets(groups_of(turn.impression)) == as_sets(page.compared), case
        assert turn.rng.tolist() == slow.rng.state, case
        assert leader_of(turn) == slow.leader, case
        if hasattr(turn.state, "duels"):
            wins = wins_of_all(turn.state.duels, size[0])
            assert (wins - wins.T).tolist() == slow.s, case
            assert (wins + wins.T).tolist() == slow.n, case
        slow.feedback(turn.clicks)


@EVERY
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_it_equals_its_transcription_whatever_the_user(name: str, size: tuple[int, int]) -> None:
    """Rules and seeds take turns, so that every user meets every rule somewhere."""
    for number, user in enumerate(USERS):
        case = number + SIZES.index(size)
        assert_equal_to_the_transcription(name, size, 100, RULES[case % len(RULES)], case, user)


@EVERY
@pytest.mark.parametrize("rule", RULES)
def test_it_equals_its_transcription_for_longer(name: str, rule: str) -> None:
    for seed, user in enumerate([browses, takes_the_first]):
        assert_equal_to_the_transcription(name, (5, 3), 350, rule, seed, user)


@BUBBLES
@pytest.mark.parametrize("user", [browses, wants_the_last_item, changes_sides])
def test_it_equals_its_transcription_with_duels_in_a_hash_table_that_grows(
    name: str, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        f"saferank.policies.{name.replace('-', '_')}.duels_for", lambda *size: new_duels(8, 8, direct_items=0)
    )
    *_, last = turns(name, (8, 4), 150, user=user)
    assert len(last.state.duels.pairs.low) > 9
    assert_equal_to_the_transcription(name, (8, 4), 150, "paper:0.5", 3, user)


@pytest.mark.parametrize("size", [(135, 131), (129, 129), (131, 130)], ids=str)
def test_pages_with_more_than_64_pairs_draw_a_second_word(size: tuple[int, int]) -> None:
    assert_equal_to_the_transcription("bubble-rank", size, 40, "paper:0.5", 1, browses)


def test_every_policy_has_a_transcription() -> None:
    for name in POLICIES:
        assert transcription(name, (3, 2), "paper:0.1", 0).leader


@EVERY
def test_it_keeps_the_public_contract(name: str) -> None:
    check_policy(name)
    check_policy(name, n_items=7, n_positions=4, rounds=60, seed=1)


def pairs_of(impression: Impression) -> list[tuple[int, int]]:
    """The compared pairs by position, from 1."""
    starts = [p for p in range(int(impression.places[0])) if impression.end[p] - impression.start[p] == 2]
    return [(p + 1, p + 2) for p in starts if impression.start[p] == p]


@BUBBLES
def test_pairs_alternate_with_the_parity_of_the_round(name: str) -> None:
    odd_of_five, even_of_five = [pairs_of(turn.impression) for turn in turns(name, (8, 5), 2)]
    assert odd_of_five == [(2, 3), (4, 5)]
    assert even_of_five == [(1, 2), (3, 4), (5, 6)]
    odd_of_four, even_of_four = [pairs_of(turn.impression) for turn in turns(name, (8, 4), 2)]
    assert odd_of_four == [(2, 3), (4, 5)]
    assert even_of_four == [(1, 2), (3, 4)]


@BUBBLES
@pytest.mark.parametrize("size", [(9, 5), (9, 4), (3, 1), (5, 5)], ids=str)
def test_a_page_is_the_leader_with_disjoint_adjacent_swaps_and_at_most_one_substitution(
    name: str, size: tuple[int, int]
) -> None:
    swaps = substitutions = 0
    for turn in turns(name, size, 400, seed=2):
        leader, ranking = turn.state.leader().tolist(), turn.impression.ranking.tolist()
        row = [*leader, turn.impression.challenger[0]][: turn.impression.places[0]]
        swapped = [p for p in range(len(row) - 1) if ranking[p] != row[p] and ranking[p] == row[p + 1]]
        for p in swapped:
            row[p], row[p + 1] = row[p + 1], row[p]
        assert ranking[: len(row)] == row
        assert all(q - p > 1 for p, q in itertools.pairwise(swapped))
        assert [item for item in row[:-1] if item not in leader] in ([], [turn.impression.shown[-1]])
        swaps += len(swapped)
        substitutions += turn.impression.shown[-1] not in leader
    assert swaps > 50 or size == (3, 1)
    assert substitutions > 20 or size == (5, 5)


def wrong_certificates(state: Any, attraction: Floats) -> bool:
    certificates = state.duels.certificates
    given = certificates.given[0]
    return bool(np.any(attraction[certificates.better[:given]] < attraction[certificates.worse[:given]]))


@BUBBLES
def test_the_leader_never_gets_worse_unless_a_certificate_is_wrong(name: str) -> None:
    improvements = mistakes = 0
    for seed in range(20):
        attraction = ties(7, seed)
        grade = np.array([np.sum(attraction > a) for a in attraction])
        before = 7 * 7
        for turn in turns(name, (7, 4), 500, "paper:0.3", seed):
            if wrong_certificates(turn.state, attraction):
                mistakes += 1
                break
            now = wrong_pairs(grade, turn.state.leader().astype(np.uint32))
            assert now <= before
            improvements += now < before
            before = now
    assert improvements > 40
    assert 0 < mistakes < 15  # there is something that the test could have got wrong


def test_an_item_that_falls_to_the_bottom_meets_other_challengers_although_nothing_was_decided() -> None:
    """Item 2 replaces 1 below 0, which it surely beats: one page later, without a click, it stands above 0.

    Then only item 1 is left to challenge, because 0 surely beats 3; of item 2 it was the other way round.
    """
    kind, setup = POLICIES["bubble-rank"], Setup(4, 2, decision_rule("paper:0.5"))
    state = AtWork(kind, setup)
    page = new_impression(2, 3)

    def learn_of(winner: int, loser: int, challenger: int = NO_ITEM, clicks: tuple[int, int] = (1, 0)) -> None:
        page.ranking[:2], page.start[:2], page.end[:2], page.challenger[0] = (winner, loser), 0, 2, challenger
        state.learn(page, np.array(clicks))

    for winner, loser in [(2, 0), (0, 3), (2, 1)] * 3:
        learn_of(winner, loser)
    learn_of(0, 1, challenger=2, clicks=(0, 0))
    assert state.leader().tolist() == [0, 2]
    learn_of(0, 1, clicks=(0, 0))
    assert state.leader().tolist() == [2, 0]
    rng, challengers = stream(1, "challengers"), set()
    for _ in range(20):
        state.choose(rng, page)
        challengers.add(int(page.challenger[0]))
    assert challengers == {1}


def test_without_unranked_items_kl_ucb_br_is_bubble_rank() -> None:
    for seed, size in enumerate([(1, 1), (2, 2), (5, 5), (6, 6)]):
        pages = [
            [(turn.impression.shown.tolist(), turn.rng.tolist()) for turn in turns(name, size, 300, seed=seed)]
            for name in ("kl-ucb-br", "bubble-rank")
        ]
        assert pages[0] == pages[1]


@pytest.mark.parametrize(
    ("name", "rule", "comparisons", "pages_each"),
    [
        ("bubble-rank", "paper:1e-5", 47, 2),
        ("kl-ucb-br", "paper:1e-5", 47, 2),
        ("bubble-rank", "paper:1e-20", 185, 2),
        ("kl-ucb-br", "paper:1e-20", 185, 2),
        ("top-rank", "paper:1e-5", 29, 1),
    ],
)
def test_a_one_sided_pair_is_decided_as_early_as_the_document_says(
    name: str, rule: str, comparisons: int, pages_each: int
) -> None:
    """Of two items the bubble policies compare the pair on every other page, TopRank on each."""
    pages = comparisons * pages_each
    leaders = [leader_of(turn) for turn in turns(name, (2, 2), pages + 1, rule, user=wants_the_last_item)]
    assert all(leader == leaders[0] for leader in leaders[:pages])
    assert leaders[pages] in ([1, 0], [[1], [0]])


ROWS = """
from saferank.instances.embedded import embedded_instances
from saferank.policies import POLICIES
from saferank.simulation.experiment import Plan, cells_of, run
for policies, models in ((tuple(POLICIES), ("pbm", "cm")), (("kl-ucb-br",), ("dcm", "dbn", "ubm", "ccm"))):
    plan = Plan(policies, n_positions=4, rounds=150, repetitions=1, rule="anytime:0.1", checkpoints=(1, 50, 150))
    for cell in cells_of(embedded_instances(2, models=models), plan):
        print(cell.kind.name, cell.instance.model_name, [float(x).hex() for x in run(cell, 0).ravel()])
"""

LONG_RUNS = """
from saferank.instances.embedded import embedded_instances
from saferank.policies import POLICIES
from saferank.simulation.experiment import Plan, cells_of, run
for n_positions in (1, 5, 10):
    plan = Plan(tuple(POLICIES), n_positions, rounds=4000, repetitions=1, rule="anytime:0.1")
    for cell in cells_of(embedded_instances(2, models=("pbm",)), plan):
        print(cell.kind.name, run(cell, 0)[-1].tolist())
"""


def output_of(script: str, **environment: str) -> str:
    run = [sys.executable, "-W", "error", "-c", script]
    finished = subprocess.run(run, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr[-2000:]
    return finished.stdout


@pytest.mark.check  # every policy again, interpreted, in a process of its own: more than a minute
def test_compiled_and_interpreted_runs_agree_to_the_last_digit() -> None:
    """All policies under two click models, one policy under the others: every pair compiles a loop of its own."""
    compiled, interpreted = output_of(ROWS, NUMBA_DISABLE_JIT="0"), output_of(ROWS, NUMBA_DISABLE_JIT="1")
    assert compiled == interpreted
    assert compiled.count("\n") == (len(POLICIES) * 2 + len(CLICK_MODELS) - 2) * 2


@pytest.mark.soak  # compiles everything once more, which takes minutes; interpreted runs check indices too
def test_no_index_is_ever_out_of_bounds(tmp_path: Path) -> None:
    """Compiled with checks of every index, into a cache of its own that holds nothing without them."""
    output = output_of(LONG_RUNS, NUMBA_BOUNDSCHECK="1", NUMBA_CACHE_DIR=str(tmp_path))
    assert output.count("\n") == len(POLICIES) * 2 * 3

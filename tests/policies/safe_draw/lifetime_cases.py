"""safe-draw whose certificates have a lifetime: the cases that run interpreted.

``test_safe_draw_lifetime.py`` runs this file in another process with ``NUMBA_DISABLE_JIT=1``: compiling takes longer
than all of it.
"""

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest

import saferank
from saferank import Ranker
from saferank.checks.state import same
from saferank.click_models import PBM
from saferank.instances import Instance
from saferank.live.learner import Learner
from saferank.policies import POLICIES, Setup
from saferank.policies.safe_draw.large import LargePlan
from saferank.policies.safe_draw.small import SmallPlan
from saferank.randomness import stream
from saferank.safety import allowance, whole_allowance
from saferank.safety.worst_case import certify_seats, change_certainty, new_possible, page_code
from saferank.safety.worst_case import worst_case as worst_case_of
from saferank.statistics.bets import CURRENT, PREVIOUS, SOFT, SURGE, Bets, entry_of, settle_bet, with_more_items
from saferank.statistics.certificates import ENDLESS, NOTHING, held, surely
from saferank.statistics.decision import decision_rule
from saferank.statistics.epochs import begin_epoch, certify, sound_alarm
from saferank.statistics.pairs import row_of
from saferank.verbs import Impression, new_impression
from tests.policies.at_work import AtWork
from tests.reference.safe_draw import slow_safe_draw
from tests.reference.worst_case import worst_case

KIND = POLICIES["safe-draw"]


def fickle_user(rng: np.random.Generator, attraction: Any, shown: Any) -> list[int]:
    return [int(rng.random() < attraction[item]) for item in shown]


def mood(size: tuple[int, int], seed: int, era: int) -> Any:
    """Attractions of an era: two items equal, the others far apart."""
    ladder = np.maximum(np.linspace(0.02, 0.98, size[0]), 0.03 + 0.9 / size[0])
    return np.random.default_rng([seed, era]).permutation(ladder)


class Both(NamedTuple):
    """The policy and its transcription, side by side, with the same random words."""

    state: AtWork
    rng: Any
    slow: Any


def started(size: tuple[int, int], alpha: float, seed: int, lifetime: int, trust: float = 0.5) -> Both:
    setup = Setup(*size, decision_rule(f"anytime:{alpha}"), lifetime=lifetime, trust=trust)
    state = AtWork(KIND, setup)
    rng = stream(seed, "policy")
    return Both(state, rng, slow_safe_draw(size, alpha, rng.tolist(), lifetime, trust))


def capital(bets: Bets, kind: int, i: int, j: int) -> list[float]:
    """The capital of a kind that is staked on i against j, by stake."""
    values: list[float] = bets.capital[entry_of(bets, row_of(bets, i, j), kind, int(i > j))].tolist()
    return values


def certain(state: Any) -> set[tuple[int, int]]:
    """What follows from the certificates that hold."""
    numbers, closure = range(len(state.duels.closure.number)), state.duels.closure
    return {(i, j) for i in numbers for j in numbers if surely(closure, i, j)}


def issued(both: Both, size: tuple[int, int]) -> tuple[Impression, Any]:
    """A page of both, which must be the same one, with the same weights and the same numbers drawn for it."""
    impression = new_impression(size[1], size[0])
    both.state.choose(both.rng, impression)
    page = both.slow.rank()
    assert impression.ranking.tolist() == page.row
    assert impression.weight.tolist() == page.weights
    assert both.rng.tolist() == both.slow.coins.words
    return impression, page


def assert_same_knowledge(both: Both) -> None:
    state, slow = both.state, both.slow
    bets: Bets = state.duels
    assert held(bets.certificates) == [tuple(certificate) for certificate in slow.holding()]
    assert certain(state) == slow.over
    assert bets.certificates.alarms[0] == slow.alarms
    assert state.item[state.reference].tolist() == slow.plan.R
    for i, j in itertools.permutations(state.item.tolist(), 2):
        assert capital(bets, SOFT, i, j) == slow.soft[i, j]
        assert capital(bets, CURRENT, i, j) == slow.current[i, j]
        assert capital(bets, PREVIOUS, i, j) == slow.previous[i, j]
        assert capital(bets, SURGE, i, j) == slow.surge[i, j]
        assert bets.information[row_of(bets, i, j)] == slow.I[min(i, j), max(i, j)]
        assert bets.pairs.wins[2 * row_of(bets, i, j) + int(i > j)] == slow.wins[i, j]
    assert state.appeal.exposure[state.item].tolist() == [slow.M[item] for item in state.item.tolist()]


def play(size: tuple[int, int], lifetime: int, seed: int, pages: int, trust: float = 0.5) -> tuple[int, int]:
    """Users who change their mind every second epoch or so; returns how many certificates and targets there were."""
    both, users, targets = started(size, 0.2, seed, lifetime, trust), np.random.default_rng(seed), 0
    for number in range(pages):
        impression, page = issued(both, size)
        targets += page.target is not None
        clicks = fickle_user(users, mood(size, seed, number // (2 * lifetime + 13)), page.shown)
        both.state.learn(impression, np.array(clicks))
        both.slow.learn(page, clicks)
        if number % 7 == 0:
            assert_same_knowledge(both)
    return len(both.slow.certificates), targets


@pytest.mark.parametrize(
    ("size", "lifetime", "trust"), [((5, 3), 60, 0.977), ((4, 4), 50, 0.5), ((3, 1), 70, 0.5)], ids=str
)
def test_it_equals_its_transcription(size: tuple[int, int], lifetime: int, trust: float) -> None:
    """With certificates that are renewed, replaced and end."""
    certificates, targets = play(size, lifetime, 1, 5 * lifetime, trust)
    assert certificates > 3
    assert targets > 5 or size == (3, 1)


def test_streams_and_alarms_are_those_of_the_transcription() -> None:
    """Bets at all kinds of odds, in worlds that turn round while certificates hold; epochs begin now and then."""
    both, users = started((3, 2), 0.05, 1, 400), np.random.default_rng(1)
    bets, slow, revoked = both.state.duels, both.slow, 0
    for number in range(1, 1000):
        attraction = mood((3, 2), 1, number // 300)
        i, j = users.permutation(3)[:2].tolist()
        p0 = float(users.choice([0.5, 0.3, 0.82]))
        if users.random() < (1 - p0) * attraction[j] / ((1 - p0) * attraction[j] + p0 * attraction[i]):
            i, j, p0 = j, i, 1 - p0
        settle_bet(both.state.policy.table, bets, row_of(bets, i, j), int(i > j), p0, number)
        slow.settle(i, j, p0, number)
        before = len(slow.holding())
        assert sound_alarm(bets, i, j) == slow.alarm(i, j)
        revoked += len(slow.holding()) < before
        assert (certify(both.state.policy.table, bets, i, j, number) != NOTHING) == (slow.certify(i, j) > 0)
        slow.issued = number
        assert begin_epoch(bets, number) == (number % 400 == 0)
        if number % 400 == 0:
            slow.begin_epoch()
        assert bets.certificates.alarms[0] == slow.alarms
        assert certain(both.state) == slow.over
    both.state.reference[:] = slow.plan.R
    assert_same_knowledge(both)
    assert slow.alarms > 0 and revoked > 0


def test_late_feedback_equals_the_transcription() -> None:
    """Up to 70 pages out at a time with epochs of 60, answered in another order, some never."""
    size = (5, 3)
    both, users, targets = started(size, 0.2, 1, 60), np.random.default_rng(1), 0
    for batch in range(7):
        out = []
        for _ in range([30, 70, 40][batch % 3]):
            impression, page = issued(both, size)
            both.state.freeze(impression)
            out.append((impression, page))
            targets += page.target is not None
        for place in users.permutation(len(out))[: len(out) - 1]:
            impression, page = out[place]
            clicks = fickle_user(users, mood(size, 1, batch // 6), page.shown)
            both.state.learn(impression, np.array(clicks), frozen=True)
            both.slow.learn(page, clicks)
        assert_same_knowledge(both)
    assert len(both.slow.certificates) > 4 and targets > 0


def test_items_come_and_go_as_in_the_transcription() -> None:
    both = started((6, 3), 0.2, 5, 80, 0.977)
    state, rng, slow, users = *both, np.random.default_rng(5)

    def visit(times: int) -> None:
        for _ in range(times):
            impression, page = state.issue(rng), slow.rank()
            assert impression.ranking[: len(page.row)].tolist() == page.row
            clicks = fickle_user(users, [0.3, 0.8, 0.2, 0.7, 0.1, 0.5, 0.9], page.shown)
            state.learn(impression, np.array(clicks), frozen=True)
            slow.learn(page, clicks)

    visit(110)
    assert held(state.duels.certificates)
    for call in (([1, 2, 3], [4, 5]), ([1, 2, 3], [4, 5, 6])):  # an item leaves production's ranking; another comes
        state.call(*call)
        slow.call(*call)
        visit(40)
    assert 0 not in state.leader()


@pytest.mark.parametrize("size", [(5, 3), (4, 4), (4, 1)], ids=str)
def test_no_page_is_unsafe_in_any_order_that_the_certificates_that_hold_allow(size: tuple[int, int]) -> None:
    worst_of_all = -99
    for seed in range(2):
        setup = Setup(*size, decision_rule("anytime:0.1"), lifetime=40 + seed)
        state = AtWork(KIND, setup)
        words, users, page = stream(seed, "policy"), np.random.default_rng(seed), new_impression(size[1], size[0])
        for number in range(120):
            state.choose(words, page)
            known = certain(state)
            worst = worst_case(size[0], known, list(range(size[1])), page.shown.tolist())
            assert worst is not None, "what follows from certificates never contradicts itself"
            assert worst <= allowance(*size), (size, seed, number)
            worst_of_all = max(worst_of_all, worst)
            state.learn(page, np.array(fickle_user(users, mood(size, seed, number // 50), page.shown)))
    assert worst_of_all == int(allowance(*size))


def law_of(slow: Any, issued: Any) -> dict[tuple[int, ...], float]:
    """The probability of every page that the plan could have drawn by the variant of this one."""
    weight = dict(zip(issued.row, issued.weights, strict=True))
    law: dict[tuple[int, ...], float] = {}
    for page in itertools.permutations(range(slow.L), slow.K):
        left, chance = sum(weight.values()), 1.0
        for seat in page:
            chance *= weight[seat] / left
            left -= weight[seat]
        law[page] = chance
    if issued.target is not None:
        other = dict(zip(issued.target, reversed(issued.target), strict=True))
        drawn, law = law, {}
        for page, chance in drawn.items():
            twin = tuple(other.get(seat, seat) for seat in page)
            law[page] = law.get(page, 0.0) + 0.916 * chance
            law[twin] = law.get(twin, 0.0) + 0.084 * chance
    return {page: chance for page, chance in law.items() if slow.plan.W(list(page)) <= slow.A}


def test_the_odds_of_bets_are_those_of_the_law_of_the_page() -> None:
    """Every bet of a run, with targets and without, against the law of its page by enumeration."""
    size, seen = (4, 4), {True: 0, False: 0}
    both, users = started(size, 0.2, 1, 60), np.random.default_rng(1)
    for number in range(200):
        impression, page = issued(both, size)
        law, row, renewing = law_of(both.slow, page), page.row, page.target is not None
        clicks = fickle_user(users, mood(size, 1, number // 150), page.shown)
        before = both.state.duels.information.copy()
        for a, b in sorted(page.possible):
            if not clicks[a] or (b < 4 and clicks[b]):
                continue
            other = {row[a]: row[b], row[b]: row[a]}
            here, there = law[tuple(row[:4])], law[tuple(other.get(item, item) for item in row[:4])]
            p0 = here / (here + there)
            before[row_of(both.state.duels, row[a], row[b])] += p0 * (1 - p0)
            seen[renewing] += 1
        both.state.learn(impression, np.array(clicks))
        alarms = both.slow.alarms
        both.slow.learn(page, clicks)
        if both.slow.alarms == alarms:
            assert both.state.duels.information == pytest.approx(before, rel=1e-9)
    assert min(seen.values()) > 20


PEAKS = Instance("peaks", PBM(np.array([0.1, 0.2, 0.3, 0.9, 0.8]), np.ones(3)), "pbm", tuple("abcde"))


def test_after_the_world_has_turned_round_pages_are_legal_again_within_two_lifetimes() -> None:
    """A drift world through ``simulate``: the order turns round at page 701, in the middle of an epoch of 200.

    Then production's ranking is the best one. It is found again: nothing is frozen.
    """
    options: Any = {"positions": 3, "rounds": 1500, "repetitions": 1, "rule": "anytime:1e-2", "seed": 2}
    marks = (500, 700, 900, 1100, 1500)
    drifting: Any = {"world": {"drift": "step:701:reversed"}, "lifetime": 200, "checkpoints": marks}
    (curve,) = saferank.simulate([PEAKS], ["safe-draw"], **options, **drifting).curves
    violations, regret = curve.violations_mean, np.diff(curve.regret_mean)
    assert violations[1] == 0 and violations[4] == violations[3], "none from page 701 + 2 * 200 on"
    assert violations[2] > 0, "there was something to recover from"
    assert regret[3] / 400 < 0.2 * regret[1] / 200


def test_a_late_answer_to_a_page_of_an_epoch_before_speaks_for_that_epoch_only() -> None:
    state = AtWork(KIND, Setup(5, 3, decision_rule("anytime:0.1"), lifetime=10))
    words = stream(1, "pages")
    pages = [state.issue(words) for _ in range(21)]
    bets = state.duels
    kinds = bets.capital.reshape(-1, 4, 2, 8)
    state.learn(pages[3], np.array([0, 0, 1]), frozen=True)  # two epochs ago
    assert not kinds.any()
    state.learn(pages[13], np.array([0, 0, 1]), frozen=True)  # the epoch before
    assert (
        kinds[:, PREVIOUS].any() and kinds[:, SOFT].any() and not kinds[:, CURRENT].any() and not bets.pairs.wins.any()
    )
    state.learn(pages[20], np.array([0, 0, 1]), frozen=True)
    assert kinds[:, CURRENT].any() and bets.pairs.wins.any()


@pytest.mark.parametrize("n_items", [5, 14])
def test_a_saved_ranker_goes_on_in_its_epoch(n_items: int) -> None:
    ranker = Ranker("safe-draw", original=range(3), candidates=range(3, n_items), rule="anytime:0.2", lifetime=60)
    for _ in range(150):
        page = ranker.rank()
        ranker.feedback(page, [max(page.items)])
    twin = Ranker.load(ranker.save())
    assert twin._learner.valid_certificates() == ranker._learner.valid_certificates() != []
    for _ in range(90):
        page, again = ranker.rank(), twin.rank()
        assert (page.items, page.groups, ranker.leader) == (again.items, again.groups, twin.leader)
        ranker.feedback(page, page.items[:1])
        twin.feedback(again, again.items[:1])
    assert ranker.alarms == twin.alarms


@pytest.mark.parametrize("n_items", [5, 14])
def test_a_learner_that_never_draws_comes_to_the_same_evidence(n_items: int) -> None:
    options: Any = {"rule": "anytime:0.2", "lifetime": 40, "trust": 0.5}
    learner = Learner("safe-draw", original=range(3), candidates=range(3, n_items), **options)
    state = AtWork(KIND, Setup(n_items, 3, decision_rule("anytime:0.2"), lifetime=40, trust=0.5))
    words, users, waiting = stream(5, "pages"), np.random.default_rng(5), []
    for number in range(200):
        waiting.append(state.issue(words))
        learner.advance(number)
        if len(waiting) > 3:
            late = waiting.pop(users.integers(3))
            clicks = (users.random(3) < late.shown / n_items).astype(np.int64)
            state.learn(late, clicks, frozen=True)
            learner.learn(late, clicks)
        plan = learner.plan(state.setup.first_call(), number + 1)
        assert KIND.leader(learner.evidence, plan).tolist() == state.leader().tolist()
    assert certain(state) == certain(learner.evidence) and learner.certificates()
    for name in ("learned", "changes", "appeal", "trust"):
        assert same(getattr(learner.evidence, name), getattr(state.evidence, name))


@pytest.mark.parametrize("n_items", [5, 14])
def test_certificates_end_with_the_next_epoch_and_the_leader_goes_back(n_items: int) -> None:
    ranker = Ranker("safe-draw", original=range(3), candidates=range(3, n_items), rule="anytime:0.2", lifetime=150)
    for _ in range(150):
        page = ranker.rank()
        ranker.feedback(page, [max(page.items)])
    moved = ranker.leader
    assert moved != (0, 1, 2)
    for _ in range(150):
        ranker.rank()
        assert ranker.leader == moved
    ranker.rank()
    assert ranker.leader == (0, 1, 2)


def test_a_plan_with_a_target_says_so() -> None:
    ranker = Ranker("safe-draw", original=list("abc"), candidates=list("xy"), rule="anytime:0.2", lifetime=80, seed=1)
    users, told = np.random.default_rng(1), []
    for _ in range(160):
        page = ranker.rank()
        if ranker._plan.draw.target[0] >= 0:
            told.append(str(ranker.explain(page)))
        wanted = {"x": 0.9, "y": 0.7, "c": 0.5}
        ranker.feedback(page, [item for item in page.items if users.random() < wanted.get(str(item), 0.1)])
    assert told
    assert "whose certificate is to be earned again" in told[0] and "challenges" in told[0]


@pytest.mark.parametrize("size", [(14, 4)], ids=str)
def test_no_page_of_the_slot_form_is_dearer_than_what_holds_allows(size: tuple[int, int]) -> None:
    """Prices are proved for any certificates (docs/policies/safe-draw.md); R and m must be those of what holds now."""
    setup = Setup(*size, decision_rule("anytime:0.1"), lifetime=100)
    state = AtWork(KIND, setup)
    words, users, page = stream(1, "policy"), np.random.default_rng(1), state.blank()
    incomes = set()
    for number in range(330):
        state.choose(words, page)
        assert KIND.worst(state.evidence, state.plan, page.shown) <= whole_allowance(*size)  # type: ignore[misc]
        incomes.add(int(state.reference.income[0]))
        above = certain(state)
        assert all(surely(state.duels.closure, i, j) == ((i, j) in above) for i in range(5) for j in range(5))
        state.learn(page, np.array(fickle_user(users, mood(size, 1, number // 150), page.shown)))
    assert len(incomes) > 2 and 0 in incomes


def test_items_cross_the_line_between_the_forms_with_a_lifetime() -> None:
    options: Any = {"rule": "anytime:0.2", "lifetime": 60, "seed": 2, "trust": 0.5}
    ranker = Ranker("safe-draw", original=list("abc"), candidates=list("xy"), **options)
    for step in range(240):
        if step == 60:
            ranker.add(*(f"n{number}" for number in range(10)))
            assert isinstance(ranker._plan, LargePlan)
        if step == 150:
            for number in range(10):
                ranker.remove(f"n{number}")
            assert isinstance(ranker._plan, SmallPlan)
        page = ranker.rank()
        ranker.feedback(page, [max(page.items, key=str)])
    assert ranker.leader[0] == "y"


def test_more_pairs_keep_what_is_known() -> None:
    run = started((4, 2), 0.2, 1, 50)
    for number in range(120):
        impression, page = issued(run, (4, 2))
        clicks = fickle_user(np.random.default_rng(number), mood((4, 2), 1, 0), page.shown)
        run.state.learn(impression, np.array(clicks))
        run.slow.learn(page, clicks)
    bets = run.state.duels
    for n_items in (7, 20):  # rows by number, and by hash
        larger = with_more_items(bets, n_items)
        for i, j in itertools.permutations(range(4), 2):
            assert all(capital(larger, kind, i, j) == capital(bets, kind, i, j) for kind in range(4))
        assert held(larger.certificates) == held(bets.certificates) != []
        assert surely(larger.closure, *held(bets.certificates)[0][:2])


def test_the_number_of_items_decides_which_plan_it_has() -> None:
    for (n_items, lifetime), kind in {(5, None): SmallPlan, (13, None): LargePlan, (13, 9): LargePlan}.items():
        setup = Setup(n_items, 3, decision_rule("anytime:0.1"), lifetime=lifetime)
        assert isinstance(AtWork(KIND, setup).plan, kind)


@pytest.mark.parametrize("size", [(6, 3), (14, 4)], ids=str)
def test_an_endless_lifetime_is_none_to_the_last_digit(size: tuple[int, int]) -> None:
    """The served policy is the measured one: pages, weights, random words, certificates and capital are the same."""
    runs = [Setup(*size, decision_rule("anytime:0.1"), lifetime=lifetime) for lifetime in (None, ENDLESS)]
    one, other = (AtWork(KIND, setup) for setup in runs)
    words, twins, users = stream(1, "policy"), stream(1, "policy"), np.random.default_rng(1)
    page, twin = one.blank(), other.blank()
    for number in range(250):
        one.choose(words, page)
        other.choose(twins, twin)
        assert page.ranking.tolist() == twin.ranking.tolist() and page.weight.tolist() == twin.weight.tolist()
        clicks = np.array(fickle_user(users, mood(size, 1, number // 100), page.shown))
        one.learn(page, clicks)
        other.learn(twin, clicks)
    assert words.tolist() == twins.tolist() and one.duels.capital.tolist() == other.duels.capital.tolist()
    assert held(one.duels.certificates) == held(other.duels.certificates) != []
    assert one.duels.certificates.alarms[0] == 0


def test_what_is_remembered_of_pages_is_forgotten_before_versions_run_out() -> None:
    """A page and the version of what is certain share a word, and certificates with a lifetime change for ever."""
    possible = new_possible(4, 2, 3)
    possible.version[0] = (1 << 15) - 1
    certify_seats(possible, 3, 0)  # a version beyond those of a lifetime: only to have something certain
    possible.version[0] = (1 << 15) - 1
    before = worst_case_of(possible, page_code(np.array([3, 1])))
    change_certainty(possible, True)
    assert possible.version[0] == 0 and (possible.memory[::2] == -1).all() and not possible.worse.any()
    assert worst_case_of(possible, page_code(np.array([3, 1]))) > before

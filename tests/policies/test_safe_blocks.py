"""Pages of safe-blocks computed by hand, its memory against the plain definition, and its account in a live ranker."""

from typing import Any

import numpy as np
import pytest

from saferank import Ranker
from saferank.checks.state import copied_impression
from saferank.live.learner import Learner
from saferank.policies import POLICIES, Setup, make_room
from saferank.randomness import stream, word
from saferank.safety import Budget, Price, price_of_page
from saferank.statistics.decision import decision_rule
from saferank.statistics.duels import surely_better, wins_of
from saferank.statistics.kl import duel_index
from saferank.statistics.tournament import CANDIDATE
from saferank.verbs import NOBODY, Impression, choose, learn, new_impression

KIND = POLICIES["safe-blocks"]


def started(n_items: int, n_positions: int, rule: str = "paper:1e-5") -> tuple[Any, Any, Impression]:
    setup = Setup(n_items, n_positions, decision_rule(rule))
    policy, state = make_room(KIND, setup, *KIND.start(setup))
    return policy, state, new_impression(n_positions, n_positions + 1)


def blocks_of(page: Impression) -> list[list[int]]:
    """The blocks from the top, each in item order."""
    ends = sorted(set(page.end[: page.places[0]].tolist()))
    return [sorted(page.ranking[a:b].tolist()) for a, b in zip([0, *ends], ends, strict=False)]


def blocks_by_coins(n_items: int, n_positions: int, income: int = 0) -> dict[str, list[list[int]]]:
    """The blocks of a first page by the highest bits of its word: offset, then stop coins."""
    found: dict[str, list[list[int]]] = {}
    for seed in range(200):
        policy, state, page = started(n_items, n_positions)
        state.account[1] = income
        rng = stream(seed, "coins")
        bits = f"{int(word(rng.copy())):064b}"
        choose(policy, state, rng, page)
        blocks = blocks_of(page)
        assert found.setdefault(bits[:5], blocks) == blocks
    assert len(found) == 32
    return found


def test_the_first_page_of_ten_items_and_five_positions() -> None:
    """B = 7. The challenger costs 5, which leaves 2: for one item more in its block, or for two pairs above it."""
    for bits, blocks in blocks_by_coins(10, 5).items():
        if bits[1] == "0":
            assert blocks == [[0], [1], [2], [3, 4, 5]]
        elif bits[0] == "0":
            assert blocks == [[0, 1], [2, 3], [4, 5]]
        else:
            assert blocks == [[0], [1, 2], [3], [4, 5]]


def test_without_unranked_items_the_whole_budget_goes_into_blocks_from_the_top() -> None:
    for bits, blocks in blocks_by_coins(4, 4).items():
        assert blocks == ([[0, 1], [2, 3]] if bits[0] == "0" else [[0], [1, 2], [3]])


def test_certified_swaps_pay_for_larger_blocks() -> None:
    for bits, blocks in blocks_by_coins(4, 4, income=4).items():
        assert blocks == ([[0, 1, 2, 3]] if bits[0] == "0" else [[0], [1, 2, 3]])


def test_one_position_is_a_block_with_the_challenger_and_nothing_above_it() -> None:
    assert all(blocks == [[0, 1]] for blocks in blocks_by_coins(3, 1).values())
    assert all(blocks == [[0]] for blocks in blocks_by_coins(1, 1).values())


def test_a_rich_account_buys_blocks_of_five_from_the_top_and_as_many_as_the_coins_let_in_below() -> None:
    for bits, blocks in blocks_by_coins(12, 12, income=1000).items():
        assert [len(block) for block in blocks] == ([5, 5, 2] if bits[0] == "0" else [1, 5, 5, 1])
    for bits, blocks in blocks_by_coins(6, 5, income=1000).items():
        coins = bits[1:5]
        assert len(blocks[-1]) == 2 + (4 if coins == "0000" else coins.index("1"))


def test_a_page_spends_no_word_more_than_the_document_says() -> None:
    policy, state, page = started(10, 5)
    rng = stream(3, "words")
    for _ in range(50):
        twin = rng.copy()
        choose(policy, state, rng, page)
        for _ in range(1 + sum(len(block) - 1 for block in blocks_of(page))):
            word(twin)
        assert twin.tolist() == rng.tolist()


def plainly_open(policy: Any, state: Any, upper: int, lower: int, t: int) -> bool:
    index = duel_index(wins_of(state.duels, lower, upper), wins_of(state.duels, upper, lower), t)
    return index > 0 and not surely_better(state.duels, policy.lead_needed, upper, lower)


def plain_reach(policy: Any, state: Any, place: int, t: int) -> int:
    row, reach = state.row, 0
    while reach < place and plainly_open(policy, state, row[place - reach - 1], row[place], t):
        reach += 1
    return reach


def plain_challenger(policy: Any, state: Any, t: int) -> int:
    best, best_index, bottom = NOBODY, 0.0, int(state.row[-2])
    for item in np.flatnonzero(state.standing == CANDIDATE).tolist():
        index = duel_index(wins_of(state.duels, item, bottom), wins_of(state.duels, bottom, item), t)
        if index > best_index and not surely_better(state.duels, policy.lead_needed, bottom, item):
            best, best_index = item, index
    return best


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("rule", ["anytime:0.05", "paper:0.2"])
def test_what_it_remembers_of_open_pairs_equals_the_plain_definition(rule: str, seed: int) -> None:
    """Also where time is so late that the table of budgets ends, and where answers come late and out of order."""
    policy, state, page = started(9, 6, rule)
    rng, users, late = stream(seed, "page"), np.random.default_rng(seed), seed % 2
    attraction = np.array([0.9, 0.85, 0.8, 0.8, 0.75, 0.7, 0.03, 0.02, 0.01]) if seed < 3 else users.random(9)
    state.leaders.counts[0] = [0, 5, 300, 65_000][seed % 4]
    waiting, quiet, closed = [], 0, 0
    for _ in range(400):
        t = int(state.leaders.counts[state.leaders.current[0]])
        challenger = plain_challenger(policy, state, t)
        choose(policy, state, rng, page)
        assert page.challenger[0] == challenger
        reach = [plain_reach(policy, state, place, t) for place in range(6)]
        assert state.reach[:6].tolist() == reach
        quiet, closed = quiet + (challenger == NOBODY), closed + (reach != [0, 1, 2, 3, 4, 5])
        waiting.append(copied_impression(page))
        while len(waiting) > 5 * late:
            answered = waiting.pop(users.integers(len(waiting)))
            clicks = users.random(6) < attraction[answered.ranking[:6]] * 0.9 ** np.arange(6)
            learn(policy, state, answered, clicks.astype(np.int64))
    assert closed > 50
    assert quiet > 0 or seed >= 3


def rich(**options: Any) -> Ranker:
    """A ranker whose users have moved its leader a few times."""
    ranker = Ranker("safe-blocks", original=list("abcd"), candidates=list("xyz"), rule="paper:0.1", **options)
    for _ in range(200):
        page = ranker.rank()
        ranker.feedback(page, [max(page.items, key=str)])
    return ranker


def test_every_live_page_tells_what_it_spends_and_stays_within_its_budget() -> None:
    ranker, prices = rich(seed=2), set()
    for _ in range(100):
        page = ranker.rank()
        assert page.budget is not None and page.budget.covered
        assert page.budget.price == price_of_page(page.leader, page.groups, page.challenger, 7)
        assert page.budget.allowance == 5
        prices.add(page.budget.price)
        ranker.feedback(page, page.items[:1])
    assert len(prices) > 2


def test_explain_tells_the_account_in_fields_and_in_words() -> None:
    ranker = Ranker("safe-blocks", original=["a", "b"], candidates=["x", "y", "z"], seed=1)
    assert ranker.explain().budget == Budget(allowance=4, income=0)
    assert "\nbudget: 4 possibly wrong pairs a page: allowance 4, 0 certified swaps" in str(ranker.explain())
    page = ranker.rank()
    told = ranker.explain(page)
    assert told.budget == page.budget and told.budget is not None and told.budget.price is not None
    assert told.budget.price.challenger == 3
    assert f"; this page spends {told.budget.price.total}: 3 on the challenger, " in str(told)
    assert Ranker("kl-ucb-br", original=["a", "b"]).explain().budget is None


def test_positions_of_a_larger_block_have_roles() -> None:
    ranker, roles = rich(seed=4), set()
    for _ in range(300):
        page = ranker.rank()
        for place in ranker.explain(page).positions:
            roles.add(place.role.rpartition(", of which ")[2])
    assert any(role.endswith("challenges from outside the page") for role in roles)
    assert any("makes room for" in role for role in roles)


def test_new_items_leave_the_income_as_it_is_and_a_removal_counts_it_again() -> None:
    ranker = rich(seed=3)
    before = ranker.explain().budget
    assert before is not None and before.income > 0
    ranker.add("v", "w")
    assert ranker.explain().budget == Budget(before.allowance + 2, before.income)
    ranker.remove("v")
    again = ranker.explain().budget
    assert again is not None and again.allowance == before.allowance + 1
    assert again.income >= before.income  # v never met anybody, so all certificates are still there
    ranker.add("v")
    assert ranker.explain().budget == Budget(before.allowance + 2, again.income)
    for _ in range(300):
        page = ranker.rank()
        assert page.budget is not None and page.budget.covered
        assert page.budget.price in (None, price_of_page(page.leader, page.groups, page.challenger, 9))
        ranker.feedback(page, [min(page.items, key=str)])


def test_a_saved_ranker_goes_on_with_the_same_account() -> None:
    ranker = rich(seed=5)
    twin = Ranker.load(ranker.save())
    assert twin.explain().budget == ranker.explain().budget
    for _ in range(50):
        page, same = ranker.rank(), twin.rank()
        assert (page.items, page.groups, page.budget) == (same.items, same.groups, same.budget)
        ranker.feedback(page, page.items[:1])
        twin.feedback(same, same.items[:1])


def test_a_catalogue_of_a_hundred_thousand_items() -> None:
    ranker = Ranker("safe-blocks", original=range(10), candidates=range(10, 100_000), rule="paper:0.1", seed=6)
    for _ in range(300):
        page = ranker.rank()
        assert page.budget is not None and page.budget.covered
        assert page.budget.price is not None and page.budget.price.challenger in (0, 99_990)
        ranker.feedback(page, [max(int(item) for item in page.items)])
    assert ranker.leader != tuple(range(10))


def test_the_price_of_a_challenger_is_the_number_of_unranked_items() -> None:
    assert price_of_page("abc", ["a", "bxc"], "x", n_items=6) == Price(challenger=3, blocks=2)


def test_a_removal_derives_the_leader_from_production_s_ranking() -> None:
    """b rose above a, then above x, which had replaced c; without b only x over c is certain among those here."""
    learner = Learner("safe-blocks", original=list("abc"), candidates=list("xy"))
    for winner, loser in [("b", "a"), ("x", "c"), ("b", "x")]:
        i, j = learner.index[winner], learner.index[loser]
        learner.state.duels.wins[i, j] = 100
        kept = learner.state.duels.certificates
        kept.better[kept.given[0]], kept.worse[kept.given[0]] = i, j
        kept.given[0] += 1
    learner.regroup(np.array([True, False, True, True, True]))
    assert learner.leader() == ("a", "x", "c")  # production's a, c, x, in which x rises by one certified swap
    assert learner.state.account.tolist() == [2, 1, 1]

"""What is served is what was measured: with an endless lifetime a context is the simulated run, to the last digit."""

import numpy as np
import pytest

from saferank.checks.state import same
from saferank.click_models import PBM
from saferank.instances import Instance
from saferank.policies import make_room, make_room_in_plan, policy_kind
from saferank.service.knowledge.knowledge import Knowledge, Terms
from saferank.service.knowledge.view import Views
from saferank.simulation.experiment import Plan, cells_of
from saferank.simulation.rounds import Table, new_tally, play
from saferank.statistics.pairs import Pairs, n_rows
from saferank.verbs import Floats, new_impression
from tests.service.knowledge.worlds import laid_out, recorded

RULE = "anytime:1e-3"


@pytest.mark.parametrize(("n_items", "k", "pages"), [(10, 5, 1500), (40, 10, 1500)])
def test_the_same_words_and_clicks_give_the_same_pages_evidence_and_certificates(
    n_items: int, k: int, pages: int
) -> None:
    """Page by page: the simulator plays a round, the service draws with the same words and folds the same clicks."""
    attraction = np.linspace(0.1, 0.9, n_items)[np.random.default_rng(2).permutation(n_items)]
    model = PBM(attraction, np.array([0.95**place for place in range(k)]))
    names = [f"i{number}" for number in range(n_items)]
    plan = Plan(("safe-draw",), n_positions=k, rounds=pages, repetitions=1, rule=RULE, rule_is_given=True)
    (cell,) = cells_of([Instance("served", model, "pbm", tuple(names))], plan)
    kind, setup = cell.kind, cell.setup
    policy, evidence = kind.begin(setup)
    kept = kind.empty_plan(policy, evidence, setup.first_call())
    page, clicks = new_impression(k, kind.places(n_items, k)), np.zeros(k, np.int64)
    policy_rng, user_rng = cell.streams(0)
    page_rng, tally = user_rng.copy(), new_tally(cell.checkpoints)
    knowledge, views = Knowledge(Terms("safe-draw", RULE, 1000, 0, 0), k, names), Views()
    for number in range(pages):
        words = policy_rng.copy()
        policy, evidence = make_room(kind, setup, policy, evidence, len(page.ranking))
        kept = make_room_in_plan(kept)
        table = Table(page, clicks, evidence.duels.certificates, policy_rng, user_rng, page_rng)
        play(policy, evidence, kept, cell.world, table, tally, number + 1)
        served = views.view(1, knowledge, b"", (names[:k], names[k:]), k).page(words.tobytes())
        places = int(page.places[0])
        assert served.row == tuple(names[item] for item in page.ranking[:places]), number
        assert np.frombuffer(served.law.start, np.uint8).tolist() == page.start[:places].tolist()
        bits = sum(int(click) << place for place, click in enumerate(clicks.tolist()))
        list(knowledge.learn(laid_out(knowledge, [(recorded(knowledge, served), bits)])))
        knowledge.changed_certificates()
    mine = knowledge.learner.evidence
    given = int(evidence.duels.certificates.given[0])
    assert given > 3
    for column in ("better", "worse"):
        simulated, of_context = (getattr(one.duels.certificates, column)[:given] for one in (evidence, mine))
        assert simulated.tolist() == of_context.tolist()
    assert int(mine.duels.certificates.given[0]) == given
    for part in ("learned", "changes", "appeal", "trust"):
        assert same(getattr(mine, part), getattr(evidence, part)), part
    for part in ("lead", "information", "capital"):  # rows that are not used yet depend on when the table has grown
        theirs, ours = (by_row(getattr(one.duels, part), one.duels.pairs) for one in (mine, evidence))
        assert theirs.tolist() == ours.tolist(), part


def by_row(column: Floats, pairs: Pairs) -> Floats:
    """The rows of a table of pairs that are used."""
    return column.reshape(n_rows(pairs), -1)[: pairs.used[0]]


def test_the_policy_of_a_context_is_the_one_that_is_simulated() -> None:
    knowledge = Knowledge(Terms("safe-draw", RULE, 1000, 0, 0), 3, list("abcdef"))
    assert knowledge.learner.kind is policy_kind("safe-draw")

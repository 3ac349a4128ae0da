"""Knowledge is a fold: the same whatever the batches, and the same as a Ranker's for the same pages."""

import itertools
import math
import random

import numpy as np
import pytest

from saferank.live.learner import Learner
from saferank.saved_state import bytes_in_use, flatten
from saferank.service.knowledge.knowledge import ROUNDS, Knowledge
from saferank.service.knowledge.view import View
from saferank.verbs import Impression, new_impression
from tests.service.knowledge.test_page_check import SERVED
from tests.service.knowledge.worlds import TERMS, Lesson, World, laid_out, recorded


@pytest.mark.parametrize("policy", SERVED)
def test_a_page_is_a_function_of_the_view_and_the_coins(policy: str) -> None:
    world = World(policy, 7, 3, rule="anytime:0.01", seed=1)
    world.visit(30)
    before = world.knowledge.learner.save()
    view, twin = world.view(), world.view()
    coins = [world.dice.randbytes(32) for _ in range(15)]
    pages = [view.page(each) for each in coins]
    assert [view.page(each) for each in reversed(coins)] == pages[::-1]
    assert [twin.page(each) for each in coins] == pages
    assert len({page.row for page in pages}) > 1
    assert world.knowledge.learner.save() == before


@pytest.mark.parametrize("policy", SERVED)
def test_batches_make_no_difference(policy: str) -> None:
    """One lesson at a time, some, and all at once: the same bytes, the same certificates after the same lessons."""
    world = World(policy, 7, 3, rule="anytime:0.5", seed=2)
    lessons = [lesson for _ in range(12) for lesson in (world.lesson(world.view()),) * 8]
    folds = []
    for size in (1, 7, len(lessons)):
        knowledge, changes = Knowledge(world.knowledge.terms, 3, world.items), []
        for start in range(0, len(lessons), size):
            numbers = knowledge.learn(laid_out(knowledge, lessons[start : start + size]))
            changes += [(start + number, knowledge.changed_certificates()) for number in numbers]
        folds.append((knowledge.learner.save(), changes, knowledge.pages))
    assert folds[0] == folds[1] == folds[2]
    assert folds[0][1]
    saved = Knowledge.restored(world.knowledge.terms, 0, folds[0][2], knowledge.learner.save())
    assert saved.certified.pairs == knowledge.certified.pairs
    assert saved.learner.save() == folds[0][0]


def thawed(knowledge: Knowledge, lesson: Lesson) -> tuple[Impression, np.ndarray]:
    """A record as the library's learner takes it."""
    (record, bits), learner = lesson, knowledge.learner
    places = len(record.row)
    impression = new_impression(record.k, places)
    impression.round[0], impression.places[0] = record.round, places
    impression.ranking[:places] = [learner.index[item] for item in record.row]
    impression.start[:places], impression.end[:places] = list(record.law.start), list(record.law.end)
    if record.law.drawn:
        impression.weight[:places], impression.exchanges[:places] = record.law.weight, record.law.exchanges
    if record.challenger is not None:
        impression.challenger[0] = learner.index[record.row[record.challenger]]
    return impression, np.array([bits >> place & 1 for place in range(record.k)], np.int64)


@pytest.mark.parametrize("policy", SERVED)
def test_the_service_and_the_library_hold_the_same_evidence_after_the_same_pages(policy: str) -> None:
    """A constant base ranking, feedback before the next page, parity and coins given."""
    world = World(policy, 7, 3, rule="anytime:0.5", seed=5)
    knowledge, rule = world.knowledge, world.knowledge.terms.rule
    library = Learner(
        policy, original=world.items[:3], candidates=world.items[3:], rule=rule, lifetime=knowledge.learner.lifetime,
        trust=knowledge.learner.setup.trust,
    )  # fmt: skip
    for _ in range(120):
        lesson = world.lesson(world.view())
        library.learn(*thawed(knowledge, lesson))
        world.learn([lesson])
    assert library.save() == knowledge.learner.save()
    assert library.certificates()


@pytest.mark.parametrize("policy", SERVED)
@pytest.mark.parametrize("sizes", [(7, 6, 8), (10, 20, 9), (14, 5, 14)])
def test_knowledge_is_saved_whatever_items_have_come_and_gone(policy: str, sizes: tuple[int, ...]) -> None:
    """Also when a policy has plans for few and for many items; what is learnt afterwards is the same."""
    world = World(policy, sizes[0], 3, rule="anytime:0.5", seed=6)
    for turn, size in enumerate(sizes):
        world.items = [*world.items[1:size], *(f"i{100 * turn + number}" for number in range(size))][:size]
        world.base = list(world.items)
        world.appeal.update({item: world.dice.random() for item in world.items})
        world.visit(20)
        terms, pages = world.knowledge.terms, world.knowledge.pages
        twin = Knowledge.restored(terms, 0, pages, world.knowledge.learner.save())
        assert twin.learner.save() == world.knowledge.learner.save()
        lessons = [world.lesson(world.view()) for _ in range(5)]
        world.learn(lessons)
        for record, _ in lessons:
            twin.learner.know(record.row)
        for _ in twin.learn(laid_out(twin, lessons)):
            pass
        assert twin.learner.save() == world.knowledge.learner.save()


@pytest.mark.parametrize("policy", SERVED)
@pytest.mark.parametrize(("n_items", "k"), [(7, 3), (14, 4)])
def test_calls_that_share_a_slot_get_the_pages_of_plans_of_their_own(policy: str, n_items: int, k: int) -> None:
    """Three calls take turns while knowledge grows; one has other items."""
    world = World(policy, n_items, k, rule="anytime:0.2", seed=4)
    for turn in range(4):
        world.visit(40)
        bases = [world.base, world.dice.sample(world.items, n_items), [f"new{turn}", *world.items[1:]]]
        views = [world.view(base) for base in bases]
        for number in range(12):
            coins = world.dice.randbytes(32)
            alone = Knowledge.restored(world.knowledge.terms, 0, world.knowledge.pages, world.knowledge.learner.save())
            mine = View(alone, bases[number % 3], (), k).page(coins)
            assert views[number % 3].page(coins) == mine


@pytest.mark.parametrize("policy", SERVED)
def test_pages_of_all_sizes_are_evidence_for_all(policy: str) -> None:
    """What pages of five teach makes the leader of pages of three, and pages of any size are legal."""
    world = World(policy, 7, 5, "anytime:0.1", seed=3)
    world.visit(600)
    assert world.knowledge.certified.pairs
    assert world.view(k=3).leader != tuple(world.base[:3])
    before = world.knowledge.learner.evidence.learned[0]
    world.learn([world.lesson(world.view(k=k)) for k in (1, 2, 3, 4, 5, 6, 7) for _ in range(20)])
    assert world.knowledge.learner.evidence.learned[0] == before + 140


def test_parity_is_drawn_from_the_coins() -> None:
    """Base rankings that alternate cannot alias with it. 200 coins: outside 60..140 once in 10^8 runs."""
    world = World("kl-ucb-br", 7, 3)
    view = world.view()
    rounds = [view.page(random.Random(seed).randbytes(32)).round for seed in range(200)]
    assert set(rounds) == {1, 2}
    assert 60 < rounds.count(1) < 140


def test_epochs_are_rounds_to_the_policy() -> None:
    terms = TERMS._replace(lifetime_ms=1000, rule="anytime:0.5", opened_at=5000)
    assert [terms.epoch_at(at) for at in (0, 5000, 5999, 6000, 9001)] == [0, 0, 0, 1, 4]
    world = World("kl-ucb-br", 4, 2, rule="anytime:0.5", seed=4, lifetime_ms=1000)
    world.visit(150)
    certified = world.knowledge.certified.pairs
    assert certified
    assert world.knowledge.turn_to(1) and world.knowledge.changed_certificates() == ([], [])
    assert not world.knowledge.turn_to(1)
    page = world.view().page(bytes(range(32)))
    assert page.round in (ROUNDS + 1, ROUNDS + 2)
    assert world.knowledge.turn_to(2)
    gained, lost = world.knowledge.changed_certificates()
    assert (gained, len(lost)) == ([], len(certified))
    assert world.view().leader == tuple(world.base[:2])


def test_a_lesson_that_names_unknown_items_or_clicks_beyond_its_page_teaches_nothing() -> None:
    world = World("kl-ucb-br", 7, 3)
    record = recorded(world.knowledge, world.view().page(bytes(range(32))))
    unknown = (record._replace(row=("nobody", *record.row[1:])), 1)
    strange = [
        (record._replace(row=(), instead=record.shown, law=record.law._replace(start=b"", end=b"")), 1),
        (record, 8),
        unknown,
        (record, 1),
    ]
    part = laid_out(world.knowledge, strange)
    assert (part.end, part.is_new, part.rows) == (2, True, 0)
    assert list(world.knowledge.learn(part)) == []
    assert (world.knowledge.pages, int(world.knowledge.learner.evidence.learned[0])) == (2, 0)
    world.learn([(record, 1)])
    assert int(world.knowledge.learner.evidence.learned[0]) == 1


def pairs(world: World) -> list[tuple[str, str]]:
    return list(itertools.permutations(world.items, 2))


def test_any_number_of_items_may_come_and_certificates_stay() -> None:
    world = World("kl-ucb-br", 7, 3, rule="anytime:0.5")
    world.visit(200)
    knowledge = world.knowledge
    held = {pair[:2] for pair in knowledge.named(knowledge.certified.pairs)}
    assert held
    knowledge.learner.know(f"n{number}" for number in range(300))
    knowledge.changed_certificates()
    assert {pair[:2] for pair in knowledge.named(knowledge.certified.pairs)} == held
    View(knowledge, [f"n{number}" for number in range(300)], (), 3).page(bytes(range(32)))  # or it raises


@pytest.mark.parametrize(("policy", "lifetime"), [("safe-draw", 0), ("safe-draw", 1000)])
def test_a_context_of_forty_items_takes_little_memory(policy: str, lifetime: int) -> None:
    """Rows are for pairs that were compared, not for all pairs of items."""
    knowledge = Knowledge(TERMS._replace(policy=policy, lifetime_ms=lifetime), 10, [f"i{n}" for n in range(40)])
    knowledge.turn_to(1)
    assert bytes_in_use(knowledge.learner.evidence) < 2**17


def test_certificates_that_never_end_are_those_of_the_simulator() -> None:
    """With an endless lifetime a context has the policy that is measured: no epochs, no largest gap, no alarms."""
    knowledge = Knowledge(TERMS._replace(policy="safe-draw", lifetime_ms=0), 3, list("abcdef"))
    simulated = Learner("safe-draw", original=list("abc"), candidates=list("def"), rule=TERMS.rule)
    for mine, other in zip(flatten(knowledge.learner.evidence), flatten(simulated.evidence), strict=True):
        assert np.array_equal(mine[1], other[1]), mine[0]


def test_an_epoch_is_expected_to_have_as_many_pages_as_the_one_before() -> None:
    world = World("safe-draw", 7, 3, lifetime_ms=1000)
    assert world.knowledge.learner.evidence.duels.levels.tolist()[::2] == [7.0, 5.0]
    world.knowledge.pages = 10**6
    world.knowledge.turn_to(1)
    assert world.knowledge.learner.evidence.duels.levels[2] == pytest.approx(math.log(1e6 / 200))
    world.knowledge.turn_to(2)
    assert world.knowledge.learner.evidence.duels.levels[2] == 5.0

"""Knowledge is a fold: the same whatever the batches, and the same as a Ranker's for the same pages."""

import itertools
import math
import random

import numpy as np
import pytest

from saferank.live.learner import Learner
from saferank.saved_state import bytes_in_use, flatten
from saferank.service.knowledge.knowledge import ROUNDS, Knowledge
from saferank.service.knowledge.lessons import Lesson, Lessons
from saferank.service.knowledge.view import View
from saferank.verbs import Impression, new_impression
from tests.service.knowledge.test_page_check import SERVED
from tests.service.knowledge.worlds import TERMS, World, recorded


@pytest.mark.parametrize("policy", SERVED)
def test_a_page_is_a_function_of_the_view_and_the_coins(policy: str) -> None:
    world = World(policy, 7, 3, rule="anytime:0.01", seed=1)
    world.visit(30)
    before = world.knowledge.learner.canonical()
    view, twin = View(world.knowledge, world.base), View(world.knowledge, world.base)
    coins = [world.dice.randbytes(32) for _ in range(15)]
    pages = [view.page(each) for each in coins]
    assert [view.page(each) for each in reversed(coins)] == pages[::-1]
    assert [twin.page(each) for each in coins] == pages
    assert len({page.row for page in pages}) > 1
    assert world.knowledge.learner.canonical() == before


@pytest.mark.parametrize("policy", SERVED)
def test_batches_make_no_difference(policy: str) -> None:
    """One lesson at a time, some, and all at once: the same bytes, the same certificates after the same lessons."""
    world = World(policy, 7, 3, rule="anytime:0.5", seed=2)
    lessons = [lesson for _ in range(12) for lesson in (world.lesson(View(world.knowledge, world.base)),) * 8]
    folds = []
    for size in (1, 7, len(lessons)):
        knowledge, changes = Knowledge(world.knowledge.terms, 3, world.items), []
        for start in range(0, len(lessons), size):
            numbers = knowledge.learn(Lessons.of(lessons[start : start + size]))
            changes += [(start + number, knowledge.changed_certificates()) for number in numbers]
        folds.append((knowledge.learner.canonical(), changes, knowledge.pages))
    assert folds[0] == folds[1] == folds[2]
    assert folds[0][1]
    saved = Knowledge.restored(world.knowledge.terms, 3, 0, folds[0][2], knowledge.learner.save())
    assert saved.certified.pairs == knowledge.certified.pairs
    assert saved.learner.canonical() == folds[0][0]


def thawed(knowledge: Knowledge, lesson: Lesson) -> tuple[Impression, np.ndarray]:
    """A record as the library's learner takes it."""
    record = lesson.record
    assert record is not None
    places, learner = len(record.row), knowledge.learner
    impression = new_impression(knowledge.k, max(places, learner.kind.places(learner.setup)))
    impression.round[0], impression.places[0], impression.frozen[0] = record.round, places, record.law.drawn
    impression.ranking[:places] = [learner.index[item] for item in record.row]
    impression.start[:places], impression.end[:places] = list(record.law.start), list(record.law.end)
    if record.law.drawn:
        impression.weight[:places], impression.exchanges[:places] = record.law.weight, record.law.exchanges
    if record.challenger is not None:
        impression.challenger[0] = learner.index[record.row[record.challenger]]
    return impression, np.array([lesson.clicks >> place & 1 for place in range(knowledge.k)], np.int64)


@pytest.mark.parametrize("policy", SERVED)
def test_the_service_and_the_library_hold_the_same_evidence_after_the_same_pages(policy: str) -> None:
    """A constant base ranking, feedback before the next page, parity and coins given."""
    world = World(policy, 7, 3, rule="anytime:0.5", seed=5)
    knowledge, rule = world.knowledge, world.knowledge.terms.rule
    library = Learner(
        policy, original=world.items[:3], candidates=world.items[3:], rule=rule, lifetime=knowledge.learner.lifetime
    )
    for _ in range(120):
        lesson = world.lesson(View(knowledge, world.base))
        library.count_issued()
        if lesson.record is not None:
            library.learn(*thawed(knowledge, lesson))
        world.learn([lesson])
    pairs = [(i, j) for i in world.items for j in world.items if i < j]
    assert [library.duel(i, j) for i, j in pairs] == [knowledge.learner.duel(i, j) for i, j in pairs]
    assert [entry[:2] for entry in library.certificates()] == [entry[:2] for entry in knowledge.learner.certificates()]
    assert library.certificates()


@pytest.mark.parametrize("policy", SERVED)
@pytest.mark.parametrize("sizes", [(7, 6, 8), (10, 20, 9), (14, 5, 14)])
def test_knowledge_is_saved_whatever_items_have_come_and_gone(policy: str, sizes: tuple[int, ...]) -> None:
    """Also when a policy changes the form of its state on the way; what is learnt afterwards is the same."""
    world = World(policy, sizes[0], 3, rule="anytime:0.5", seed=6)
    for turn, size in enumerate(sizes):
        world.items = [*world.items[1:size], *(f"i{100 * turn + number}" for number in range(size))][:size]
        world.base = list(world.items)
        world.appeal.update({item: world.dice.random() for item in world.items})
        world.knowledge.know(world.items)
        world.visit(20)
        terms, pages = world.knowledge.terms, world.knowledge.pages
        twin = Knowledge.restored(terms, 3, 0, pages, world.knowledge.learner.save())
        assert twin.learner.canonical() == world.knowledge.learner.canonical()
        lessons = [world.lesson(View(world.knowledge, world.base)) for _ in range(5)]
        world.learn(lessons)
        for _ in twin.learn(Lessons.of(lessons)):
            pass
        assert twin.learner.canonical() == world.knowledge.learner.canonical()


def test_parity_is_drawn_from_the_coins() -> None:
    """Base rankings that alternate cannot alias with it. 200 coins: outside 60..140 once in 10^8 runs."""
    world = World("kl-ucb-br", 7, 3)
    view = View(world.knowledge, world.base)
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
    page = View(world.knowledge, world.base).page(bytes(range(32)))
    assert page.round in (ROUNDS + 1, ROUNDS + 2)
    assert world.knowledge.turn_to(2)
    gained, lost = world.knowledge.changed_certificates()
    assert (gained, len(lost)) == ([], len(certified))
    assert View(world.knowledge, world.base).leader == tuple(world.base[:2])


def test_a_lesson_that_names_unknown_items_or_is_of_another_size_or_form_teaches_nothing() -> None:
    world = World("kl-ucb-br", 7, 3)
    view = View(world.knowledge, world.base)
    record = recorded(world.knowledge, view, view.page(bytes(range(32))))
    strange = [
        record._replace(row=("nobody", *record.row[1:])),
        record._replace(k=2),
        record._replace(form="LargeState"),
        record._replace(row=(), law=record.law._replace(start=b"", end=b"")),
    ]
    world.learn([*(Lesson(each, 1) for each in strange), Lesson(record, 8)])
    assert (world.knowledge.pages, int(world.knowledge.learner.state.learned[0])) == (5, 0)
    world.learn([Lesson(record, 1)])
    assert int(world.knowledge.learner.state.learned[0]) == 1


def pairs(world: World) -> list[tuple[str, str]]:
    return list(itertools.permutations(world.items, 2))


def test_any_number_of_items_may_come_and_certificates_stay() -> None:
    world = World("kl-ucb-br", 7, 3, rule="anytime:0.5")
    world.visit(200)
    knowledge = world.knowledge
    held = {pair[:2] for pair in knowledge.named(knowledge.certified.pairs)}
    assert held
    knowledge.know([*world.items[:3], *(f"n{number}" for number in range(300))])
    knowledge.changed_certificates()
    assert {pair[:2] for pair in knowledge.named(knowledge.certified.pairs)} == held
    assert View(knowledge, [f"n{number}" for number in range(300)]).page(bytes(range(32))).fault is None


@pytest.mark.parametrize(("policy", "lifetime"), [("safe-draw", 0), ("safe-draw", 1000)])
def test_a_context_of_forty_items_takes_little_memory(policy: str, lifetime: int) -> None:
    """Rows are for pairs that were compared, not for all pairs of items."""
    knowledge = Knowledge(TERMS._replace(policy=policy, lifetime_ms=lifetime), 10, [f"i{n}" for n in range(40)])
    knowledge.turn_to(1)
    assert bytes_in_use(knowledge.learner.state) < 2**17


def test_certificates_that_never_end_are_those_of_the_simulator() -> None:
    """With an endless lifetime a context has the policy that is measured: no epochs, no largest gap, no alarms."""
    knowledge = Knowledge(TERMS._replace(policy="safe-draw", lifetime_ms=0), 3, list("abcdef"))
    simulated = Learner("safe-draw", original=list("abc"), candidates=list("def"), rule=TERMS.rule)
    for mine, other in zip(flatten(knowledge.learner.state), flatten(simulated.state), strict=True):
        assert np.array_equal(mine[1], other[1]), mine[0]
    assert type(knowledge.learner.state) is type(simulated.state)


def test_an_epoch_is_expected_to_have_as_many_pages_as_the_one_before() -> None:
    world = World("safe-draw", 7, 3, lifetime_ms=1000)
    assert world.knowledge.learner.state.duels.levels.tolist()[::2] == [7.0, 5.0]
    world.knowledge.pages = 10**6
    world.knowledge.turn_to(1)
    assert world.knowledge.learner.state.duels.levels[2] == pytest.approx(math.log(1e6 / 200))
    world.knowledge.turn_to(2)
    assert world.knowledge.learner.state.duels.levels[2] == 5.0

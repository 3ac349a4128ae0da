"""The contract of a policy catches every kind of broken policy, each with a sentence that says what to mend.

A broken policy is OriginalRank with one fault: a few lines that run after its sound ``choose`` or ``learn``, a spoilt
start, or a promise that it does not keep.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from saferank._kernel import JIT, implements, kernel
from saferank.checks import ContractError, check_policy
from saferank.policies import POLICIES, PolicyKind, Setup
from saferank.policies.registry import given_rule
from saferank.randomness import Words
from saferank.statistics.duels import Duels, new_duels
from saferank.verbs import Call, Floats, Impression, Ints, Items, choose, has_room, learn

Start = Callable[[Setup], tuple[Any, Any]]


class State(NamedTuple):
    ranking: Items
    memory: Ints
    duels: Duels
    seen: Ints
    share: Floats


def sound_state(setup: Setup) -> State:
    ranking = np.arange(setup.n_positions, dtype=np.uint32)
    memory, seen = np.zeros(2, np.int64), np.zeros(1, np.int64)
    return State(ranking, memory, new_duels(setup.n_items), seen, np.zeros(1))


def leader_of(state: Any, plan: Any) -> Ints:
    return state.ranking.astype(np.int64)  # type: ignore[no-any-return]


@kernel
def no_fault_in_choosing(policy: Any, state: State, impression: Impression) -> None:
    pass


@kernel
def no_fault_in_learning(policy: Any, state: State, impression: Impression, clicks: Ints) -> None:
    pass


def broken(
    choosing: Callable[[Any, State, Impression], None] = no_fault_in_choosing,
    learning: Callable[[Any, State, Impression, Ints], None] = no_fault_in_learning,
    start: Callable[[Setup, type], tuple[Any, Any]] | None = None,
    leader: Callable[[Any, Any], Ints] = leader_of,
    **promises: Any,
) -> PolicyKind:
    """A policy of a type of its own that differs from a sound one in what is given."""
    named_tuple: Any = NamedTuple
    policy: type = named_tuple("Broken", [("numbers", Floats)])
    spoil_page, spoil_state = kernel(choosing), kernel(learning)

    @implements(choose, policy)
    def _choose(policy: Any, state: State, plan: Call, rng: Words, impression: Impression) -> None:
        impression.places[0] = len(state.ranking)
        for place in range(len(state.ranking)):
            impression.ranking[place] = state.ranking[place]
            impression.start[place], impression.end[place] = place, place + 1
        spoil_page(policy, state, impression)

    @implements(learn, policy)
    def _learn(policy: Any, state: State, impression: Impression, clicks: Ints) -> None:
        spoil_state(policy, state, impression, clicks)

    def begin(setup: Setup) -> tuple[Any, Any]:
        return start(setup, policy) if start else (policy(np.zeros(1)), sound_state(setup))

    return PolicyKind("broken", policy, begin, leader, **promises)


def show_twice(policy: Any, state: State, impression: Impression) -> None:
    impression.ranking[1] = impression.ranking[0]


def show_a_stranger(policy: Any, state: State, impression: Impression) -> None:
    impression.ranking[0] = 77


def compare_twice(policy: Any, state: State, impression: Impression) -> None:
    hidden = len(impression.shown)
    impression.places[0] = hidden + 1
    impression.ranking[hidden] = impression.ranking[0]
    impression.start[hidden], impression.end[hidden] = hidden, hidden + 1


def use_too_few_places(policy: Any, state: State, impression: Impression) -> None:
    impression.places[0] -= 1


def use_too_many_places(policy: Any, state: State, impression: Impression) -> None:
    impression.places[0] += 2


def leave_a_place_without_group(policy: Any, state: State, impression: Impression) -> None:
    impression.end[0] = 0


def tear_a_group(policy: Any, state: State, impression: Impression) -> None:
    impression.end[0] = impression.end[1]


def let_a_group_reach_beyond(policy: Any, state: State, impression: Impression) -> None:
    impression.end[len(impression.shown) - 1] += 1


def count_by_itself(policy: Any, state: State, impression: Impression) -> None:
    impression.round[0] = 1


def write_behind(policy: Any, state: State, impression: Impression) -> None:
    impression.ranking[len(impression.shown) + 1] = 0


def invent_a_challenger(policy: Any, state: State, impression: Impression) -> None:
    impression.challenger[0] = -2


def keep_the_challenger(policy: Any, state: State, impression: Impression) -> None:
    if impression.round[0] == 1:
        impression.challenger[0] = 0


def count_a_win_too_early(policy: Any, state: State, impression: Impression) -> None:
    state.duels.pairs.wins[1] += 1


def move_the_leader(policy: Any, state: State, impression: Impression) -> None:
    state.ranking[0], state.ranking[1] = state.ranking[1], state.ranking[0]


def choose_by_other_coins(policy: Any, state: State, impression: Impression) -> None:
    if np.random.random() < 0.5:
        impression.ranking[0], impression.ranking[1] = impression.ranking[1], impression.ranking[0]


def change_the_policy(policy: Any, state: State, impression: Impression) -> None:
    policy.numbers[0] += 1.0


def grow_tired(policy: Any, state: State, impression: Impression) -> None:
    state.memory[0] += 1
    if state.memory[0] > 200:
        impression.ranking[0], impression.ranking[1] = impression.ranking[1], impression.ranking[0]


def refuse_short_pages(policy: Any, state: State, impression: Impression) -> None:
    if len(impression.shown) == 1:
        raise ValueError("too short")


def refuse_single_items(policy: Any, state: State, impression: Impression) -> None:
    if len(state.duels.pairs.wins) == 2:
        raise ValueError("too few")


def write_into_the_page(policy: Any, state: State, impression: Impression, clicks: Ints) -> None:
    impression.ranking[0] = 5


def write_into_the_clicks(policy: Any, state: State, impression: Impression, clicks: Ints) -> None:
    clicks[0] = 2


def learn_into_the_policy(policy: Any, state: State, impression: Impression, clicks: Ints) -> None:
    policy.numbers[0] += 1.0


def count_every_page(policy: Any, state: State, impression: Impression, clicks: Ints) -> None:
    state.duels.pairs.wins[1] += 1


def learn_by_coins(policy: Any, state: State, impression: Impression, clicks: Ints) -> None:
    state.memory[0] = np.random.randint(0, 1_000_000)


HIDDEN = np.zeros(2, np.int64)


def choose_by_a_global(policy: Any, state: State, impression: Impression) -> None:
    HIDDEN[0] += 1
    if HIDDEN[0] % 2:
        impression.ranking[0], impression.ranking[1] = impression.ranking[1], impression.ranking[0]


def learn_a_global(policy: Any, state: State, impression: Impression, clicks: Ints) -> None:
    HIDDEN[1] += 1
    state.memory[0] = HIDDEN[1]


def learn_behind_the_page(policy: Any, state: State, impression: Impression, clicks: Ints) -> None:
    state.memory[0] += impression.ranking[len(clicks)]


def divide_by_nothing(policy: Any, state: State, impression: Impression, clicks: Ints) -> None:
    state.share[0] = float("nan") if clicks.sum() == 0 else 1.0


def note_in_choosing(policy: Any, state: State, impression: Impression) -> None:
    state.memory[0] = impression.round[0]


def start_with_shared_memory(setup: Setup, policy: type) -> tuple[Any, Any]:
    return policy(np.zeros(1)), sound_state(setup)._replace(memory=SHARED)


SHARED = np.zeros(2, np.int64)
STARTS = [0]


def start_by_counting(setup: Setup, policy: type) -> tuple[Any, Any]:
    STARTS[0] += 1
    return policy(np.full(1, STARTS[0] % 2)), sound_state(setup)


def swap_when_odd(policy: Any, state: State, impression: Impression) -> None:
    if policy.numbers[0] == 1 and len(state.ranking) > 1:
        impression.ranking[0], impression.ranking[1] = impression.ranking[1], impression.ranking[0]


def start_with_one_array_twice(setup: Setup, policy: type) -> tuple[Any, Any]:
    state = sound_state(setup)
    return policy(np.zeros(1)), state._replace(seen=state.memory[:1])


def start_with_a_word(setup: Setup, policy: type) -> tuple[Any, Any]:
    return policy("slow"), sound_state(setup)


def start_with_a_list(setup: Setup, policy: type) -> tuple[Any, Any]:
    return policy(np.zeros(1)), sound_state(setup)._replace(memory=[0, 0])  # type: ignore[arg-type]


def start_with_a_number(setup: Setup, policy: type) -> tuple[Any, Any]:
    return policy(np.zeros(1)), sound_state(setup)._replace(memory=3)  # type: ignore[arg-type]


def start_with_words_below(setup: Setup, policy: type) -> tuple[Any, Any]:
    state = sound_state(setup)
    return policy(np.zeros(1)), state._replace(duels=state.duels._replace(certified=np.array(["a"])))


def start_without_state(setup: Setup, policy: type) -> tuple[Any, Any]:
    return policy(np.zeros(1)), np.zeros(3)


class LooseState(NamedTuple):
    numbers: Any
    ranking: Any


def start_with_short_numbers(setup: Setup, policy: type) -> tuple[Any, Any]:
    return policy(np.zeros(1)), LooseState(np.zeros(1, np.int16), sound_state(setup).ranking)


def start_with_floats(setup: Setup, policy: type) -> tuple[Any, Any]:
    return policy(np.zeros(1)), sound_state(setup)._replace(memory=np.zeros(2))  # type: ignore[arg-type]


def start_nothing(setup: Setup, policy: type) -> tuple[Any, Any]:
    return None  # type: ignore[return-value]


def start_badly(setup: Setup, policy: type) -> tuple[Any, Any]:
    return policy(np.zeros(1) / (1 // 0)), sound_state(setup)


def start_another_policy(setup: Setup, policy: type) -> tuple[Any, Any]:
    return POLICIES["original"].start(setup)


def without_room() -> PolicyKind:
    kind = broken()

    @implements(has_room, kind.policy)
    def _has_room(policy: Any, state: State, places: int) -> bool:
        return False

    return kind


class Foreign(NamedTuple):
    ranking: Items


def count_seen(policy: Any, state: State, impression: Impression, clicks: Ints) -> None:
    state.seen[0] += 1


BROKEN = [
    (broken(show_twice), r"choose\(\) of broken shows an item twice: \[0, 0, 2\]"),
    (broken(show_a_stranger), r"ranks item \[77\], but the items are 0 to 5"),
    (broken(compare_twice), r"compares a hidden item that has a place already: \[0, 1, 2, 0\]"),
    (broken(use_too_few_places), "uses 2 places for 3 positions"),
    (broken(use_too_many_places), r"uses 5 places for 3 positions; .* at most the room, 4"),
    (broken(leave_a_place_without_group), r"no proper group at place 0: start is \[0, 1, 2\] and end \[0, 2, 3\]"),
    (broken(tear_a_group), r"no proper group at place 0: start is \[0, 1, 2\] and end \[2, 2, 3\]"),
    (broken(let_a_group_reach_beyond), "no proper group at place 2"),
    (broken(count_by_itself), "numbers page 2 as 1; the caller gives pages their numbers"),
    (broken(write_behind), "out of bounds.* A page has room for 4 places"),
    (broken(invent_a_challenger), "names -2 as the challenger, which is neither an item below 6 nor NO_ITEM"),
    (broken(keep_the_challenger), "on a new page.* write every entry of the page each time"),
    (broken(count_a_win_too_early), r"changes evidence.duels. Only learn\(\) may"),
    (broken(move_the_leader), r"changes evidence.ranking. Only learn\(\) may"),
    (broken(choose_by_other_coins), r"test_policy.py:\d+: .* draws another page .* Draw from rng alone"),
    (broken(choose_by_a_global), "draws another page for the same evidence, plan and generator"),
    (broken(change_the_policy), r"choose\(\) of broken changes the policy"),
    (broken(refuse_short_pages), r"choose\(\) of broken fails with n_items=6, n_positions=1, .* ValueError: too short"),
    (broken(refuse_single_items), r"choose\(\) of broken fails with n_items=1, n_positions=1, .* too few"),
    (broken(start=start_with_shared_memory), "gives every run the same array as memory"),
    (broken(swap_when_odd, start=start_by_counting), "plays other pages when it is started again"),
    (broken(learning=write_into_the_page), r"learn\(\) of broken writes into the impression"),
    (broken(learning=write_into_the_clicks), "writes into the clicks"),
    (broken(learning=learn_into_the_policy), r"learn\(\) of broken changes the policy"),
    (broken(learning=count_every_page), "changes the duels after a page without clicks"),
    (broken(learning=learn_by_coins), "does something else for a copy .* Use no randomness"),
    (broken(learning=learn_a_global), "does something else for a copy of the same evidence, page and clicks"),
    (broken(learning=learn_behind_the_page), r"read only the first impression.places\[0\] places of the page"),
    (broken(learning=divide_by_nothing), r"learn\(\) of broken leaves NaN in share"),
    (broken(note_in_choosing), r"choose\(\) of broken changes evidence.memory. Only learn\(\) may"),
    (broken(learning=count_seen, start=start_with_one_array_twice), "give every field an array of its own"),
    (broken(start=start_with_a_word), "policy.numbers of broken is nothing to compute with"),
    (broken(start=start_with_a_list), "evidence.memory of broken cannot be saved"),
    (broken(start=start_with_a_number), "evidence.memory of broken cannot be saved"),
    (broken(start=start_with_words_below), "evidence.duels.certified of broken cannot be saved"),
    (broken(start=start_without_state), "evidence of broken cannot be saved"),
    (broken(start=start_with_short_numbers), "The evidence of broken is saved but not loaded: .* int16"),
    (
        broken(start=start_with_floats),
        "evidence.memory of broken is declared as an array of int64, .* makes one of float64",
    ),
    (broken(start=start_nothing), r"start\(\) of broken returns NoneType; it must return two"),
    (broken(start=start_badly), r"test_policy.py:\d+: start\(\) of broken fails with n_items=6.* ZeroDivisionError"),
    (broken(leader=lambda state, plan: state.nothing), r"leader\(\) of broken fails: AttributeError"),
    (broken(plan=lambda policy, evidence, call: Foreign(call.base)), "has no field base with the call's own"),
    (broken(start=start_another_policy), "returns a policy of type Original, but it is registered for Broken"),
    (
        broken(leader=lambda state, plan: state.ranking[:1]),
        r"leader\(\) of broken returns \[0\]; .* at least 3 different",
    ),
    (broken(leader=lambda state, plan: state.ranking + 4), r"returns \[4, 5, 6\], but the items are 0 to 5"),
    (
        broken(rule=given_rule),
        "has no policy.lead_needed, evidence.learned, evidence.horizon",
    ),
    (without_room(), r"has_room\(\) of broken is false although make_room\(\) has just been called"),
]


@pytest.mark.parametrize(("kind", "sentence"), BROKEN, ids=[sentence for _, sentence in BROKEN])
def test_a_broken_policy_is_caught(kind: PolicyKind, sentence: str) -> None:
    if not JIT and any(words in sentence for words in ("nothing to compute with", "cannot be saved", "is saved")):
        pytest.skip("plain Python plays with anything")
    with pytest.raises(ContractError, match=sentence) as caught:
        check_policy(kind)
    assert str(caught.value).endswith(".")


def test_the_policy_without_a_fault_passes() -> None:
    check_policy(broken())
    check_policy(broken(), n_items=3, n_positions=3, rounds=20, seed=5, compiled=False)


def test_promises_that_are_kept_are_no_fault() -> None:
    check_policy(broken(compares_all=True), compiled=False)
    check_policy(broken(certifies=True), compiled=False)


class Mute(NamedTuple):
    numbers: Floats


def test_missing_verbs_are_named() -> None:
    kind = PolicyKind("mute", Mute, lambda setup: (Mute(np.zeros(1)), sound_state(setup)), leader_of)
    with pytest.raises(ContractError, match=r"choose\(\) is not implemented for Mute.*@implements\(choose, Mute\)"):
        check_policy(kind)
    implements(choose, Mute)(no_fault_in_choosing)
    with pytest.raises(ContractError, match=r"learn\(\) is not implemented for Mute"):
        check_policy(kind)


def test_certificates_must_be_there_when_they_are_promised() -> None:
    original = POLICIES["original"]
    kind = PolicyKind("original", original.policy, original.start, original.leader, certifies=True)
    with pytest.raises(ContractError, match="its evidence has no duels with certificates"):
        check_policy(kind)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown policy 'klucb'; known ones: .*kl-ucb-br"):
        check_policy("klucb")

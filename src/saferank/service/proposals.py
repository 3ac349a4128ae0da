"""A page as the learner wants it, checked before anyone sees it."""

from typing import NamedTuple

from saferank.service.context import Context
from saferank.service.learning import random_words
from saferank.service.serving_check import Proposal, Verdict, check_page
from saferank.verbs import NOBODY


class Choice(NamedTuple):
    """What the learner chose, and whether it may be served."""

    numbers: tuple[int, ...]  # by place: the shown items, then those compared without being shown
    group_ends: tuple[int, ...]
    challenger: int | None  # its place
    round: int
    verdict: Verdict


def propose(context: Context, coins: bytes, *, counted: bool) -> Choice:
    """The next page by these coins; one that is not counted, or not legal, leaves the learner as it was."""
    learner = context.learner
    words = random_words(coins)
    impression = learner.issue(words) if counted else learner.preview(words)
    places, challenger = int(impression.places[0]), int(impression.challenger[0])
    numbers = tuple(impression.ranking[:places].tolist())
    ends = tuple(dict.fromkeys(impression.end[:places].tolist()))
    items, round_ = context.items, int(impression.round[0])
    name = None if challenger == NOBODY else items[challenger]
    page = Proposal([items[number] for number in numbers], ends, name, round_)
    verdict = check_page(context.leader, context.available, page)
    if counted and verdict.fault is not None:
        learner.count_issued(-1)
    place = numbers.index(challenger) if challenger in numbers else None
    return Choice(numbers, ends, place, round_, verdict)

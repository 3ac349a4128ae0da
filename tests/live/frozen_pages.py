"""Pages by name, for tests that keep a log of their own, and what a learner with a lifetime holds for certain."""

from typing import NamedTuple

from saferank.live.learner import Learner
from saferank.live.page import Item
from saferank.verbs import NOBODY, Impression, new_impression


class FrozenPage(NamedTuple):
    """What must be kept of a page until its clicks are learnt, by names."""

    row: tuple[Item, ...]  # by place: the shown items, then the hidden one if there is a challenger
    group_ends: tuple[int, ...]  # by group of neighbouring places: one past its last place
    challenger: Item | None
    round: int


def frozen(learner: Learner, impression: Impression) -> FrozenPage:
    """A page in names, for a log."""
    places, challenger = int(impression.places[0]), int(impression.challenger[0])
    return FrozenPage(
        row=learner.names(impression.ranking[:places]),
        group_ends=tuple(dict.fromkeys(impression.end[:places].tolist())),
        challenger=None if challenger == NOBODY else learner.items[challenger],
        round=int(impression.round[0]),
    )


def thaw(learner: Learner, page: FrozenPage) -> Impression:
    """The page as ``learn`` needs it."""
    places = len(page.row)
    impression = new_impression(learner.n_positions, max(places, learner.kind.places(learner.setup)))
    impression.round[0], impression.places[0] = page.round, places
    impression.ranking[:places] = [learner.index[item] for item in page.row]
    start = 0
    for end in page.group_ends:
        impression.start[start:end], impression.end[start:end] = start, end
        start = end
    if page.challenger is not None:
        impression.challenger[0] = learner.index[page.challenger]
    return impression

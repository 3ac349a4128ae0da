"""What is done with the evidence and the plans of a live policy, in compiled calls of little cost.

* ``Folding``: the clicks of pages are learnt, one after the other. It stops where a caller may want to look: after a
  page that gave or dropped a certificate, and when there is no room.
* ``Drawing``: pages are drawn from a plan, frozen for feedback that comes late; the plan is derived again if asked for.
* ``Following``: a plan that is kept follows a page that was learnt.

Ranker, replay and service all do their work here: one kernel of each for a policy.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saferank._kernel import kernel, specialised
from saferank.memory import bound, unpacked
from saferank.randomness import Words
from saferank.statistics.certificates import new_certificates
from saferank.verbs import (
    Floats,
    Impression,
    Ints,
    Items,
    advance,
    choose,
    follow,
    freeze,
    has_room,
    is_outdated,
    learn,
    new_impression,
    renew,
)

# --- pages of a log are learnt ---


class Pages(NamedTuple):
    """Pages with their clicks, in the order in which they are learnt."""

    round: Ints
    ranking: Items  # [page, place]
    start: Ints  # [page, place] first place of the place's group
    end: Ints  # [page, place] one past its last
    places: Ints  # how many places are in use
    challenger: Ints  # item or NO_ITEM
    weight: Floats  # [page, place] of a page that was drawn
    exchanges: Ints  # [page, place]
    clicks: Ints  # [page, position]
    positions: Ints  # how many places are shown
    drawn: Ints  # 1 for a page that was drawn from weights


def new_pages(size: int, n_positions: int, n_places: int) -> Pages:
    """Room for ``size`` pages of at most this number of positions and places."""
    shape = (size, n_places)
    return Pages(
        round=np.zeros(size, np.int64),
        ranking=np.zeros(shape, np.uint32),
        start=np.zeros(shape, np.int64),
        end=np.zeros(shape, np.int64),
        places=np.zeros(size, np.int64),
        challenger=np.zeros(size, np.int64),
        weight=np.zeros(shape),
        exchanges=np.zeros(shape, np.int64),
        clicks=np.zeros((size, n_positions), np.int64),
        positions=np.full(size, n_positions, np.int64),
        drawn=np.zeros(size, np.int64),
    )


class Workspace(NamedTuple):
    """Where one page at a time is laid out, and how far the work is."""

    impression: Impression
    clicks: Ints
    words: Words  # from which pages are drawn
    every: Ints  # [position] 1: all places are frozen
    done: Ints  # [3] pages that are learnt; 0 when there is no room for the next one; pages that are there
    issued: Ints  # [2] pages issued before the next one; whether the plan is to be derived again before it is drawn


def new_workspace(n_positions: int, n_places: int) -> Workspace:
    """An empty workspace."""
    clicks, every = np.zeros(n_positions, np.int64), np.ones(n_positions, np.int64)
    done, issued = np.zeros(3, np.int64), np.zeros(2, np.int64)
    return Workspace(new_impression(n_positions, n_places), clicks, np.zeros(4, np.uint64), every, done, issued)


@kernel
def lay_out(pages: Pages, number: int, impression: Impression) -> None:
    """Copy a page to where one at a time is laid out."""
    impression.round[0], impression.places[0] = pages.round[number], pages.places[number]
    impression.challenger[0] = pages.challenger[number]
    for place in range(pages.places[number]):
        impression.ranking[place] = pages.ranking[number, place]
        impression.start[place], impression.end[place] = pages.start[number, place], pages.end[number, place]
        impression.weight[place] = pages.weight[number, place]
        impression.exchanges[place] = pages.exchanges[number, place]


@kernel
def _fold(policy: Any, evidence: Any, given: Ints, alarms: Ints, pages: Pages, workspace: Workspace) -> None:
    workspace.done[1] = 1
    for number in range(workspace.done[0], workspace.done[2]):
        if not has_room(policy, evidence, pages.places[number]):
            workspace.done[1] = 0
            break
        workspace.done[0] = number + 1
        certified, dropped = given[0], alarms[0]
        lay_out(pages, number, workspace.impression)
        learn(policy, evidence, workspace.impression, pages.clicks[number, : pages.positions[number]])
        if given[0] != certified or alarms[0] != dropped:
            break


@kernel
def _fold_from(kinds: Any, table: Ints) -> None:
    policy, evidence, given, alarms, pages, workspace = unpacked(kinds, table)
    _fold(policy, evidence, given, alarms, pages, workspace)


_NO_CERTIFICATES = new_certificates(0)


def folding(policy: Any, evidence: Any, pages: Pages, workspace: Workspace) -> Callable[[], None]:
    """A function that learns the pages that are there and not learnt (``Workspace.done``), whenever it is called."""
    certificates = getattr(getattr(evidence, "duels", None), "certificates", _NO_CERTIFICATES)
    plain = specialised(_fold, type(policy), type(evidence))
    return bound(_fold_from, plain, policy, evidence, certificates.given, certificates.alarms, pages, workspace)


# --- pages are drawn ---


KEEP, IF_OUTDATED, AGAIN = 0, 1, 2
"""Whether a plan is to be derived again."""


@kernel
def _draw(policy: Any, evidence: Any, plan: Any, workspace: Workspace) -> None:
    issued, impression, asked = workspace.issued[0], workspace.impression, workspace.issued[1]
    again = asked == AGAIN or (asked == IF_OUTDATED and is_outdated(policy, evidence, plan))
    if advance(policy, evidence, issued) or again:
        renew(policy, evidence, plan, issued)
    workspace.issued[1] = KEEP
    impression.round[0] = issued + 1
    choose(policy, evidence, plan, workspace.words, impression)
    freeze(policy, evidence, plan, impression, workspace.every)


@kernel
def _draw_from(kinds: Any, table: Ints) -> None:
    policy, evidence, plan, workspace = unpacked(kinds, table)
    _draw(policy, evidence, plan, workspace)


def drawing(policy: Any, evidence: Any, plan: Any, workspace: Workspace) -> Callable[[], None]:
    """A function that draws the page after ``workspace.issued[0]`` others into the workspace, whenever it is called."""
    plain = specialised(_draw, type(policy), type(evidence), type(plan))
    return bound(_draw_from, plain, policy, evidence, plan, workspace)


# --- a plan follows ---


@kernel
def _follow(policy: Any, evidence: Any, plan: Any, workspace: Workspace) -> None:
    follow(policy, evidence, plan, workspace.impression, workspace.clicks, workspace.issued[0])


@kernel
def _follow_from(kinds: Any, table: Ints) -> None:
    policy, evidence, plan, workspace = unpacked(kinds, table)
    _follow(policy, evidence, plan, workspace)


def following(policy: Any, evidence: Any, plan: Any, workspace: Workspace) -> Callable[[], None]:
    """A function by which a plan follows the page in the workspace, which was learnt."""
    plain = specialised(_follow, type(policy), type(evidence), type(plan))
    return bound(_follow_from, plain, policy, evidence, plan, workspace)


def copy_page(source: Sequence[NDArray[Any]], target: Sequence[NDArray[Any]]) -> None:
    """Copy a page into another one with as much room."""
    for mine, theirs in zip(target, source, strict=True):
        mine[...] = theirs


def put_in(pages: Pages, impression: Impression, clicks: Ints) -> None:
    """Make an impression the only page."""
    for name in Impression._fields:
        if name != "shown":
            array = getattr(impression, name)
            getattr(pages, name).reshape(-1)[: len(array)] = array
    pages.clicks[0, : len(clicks)], pages.positions[0] = clicks, len(clicks)

"""What pages of one size have certified counts for pages of every size of the context.

"i is better than j" does not depend on how many places a page has. Evidence stays apart: a bet is settled at the odds
of a draw with so many places. So each size learns from its own pages, and certificates are joined where they are used:
for leaders, for the policy that chooses a page, and for the check before serving. A size's own certificates come first,
then those of the others by size and name. One that contradicts what is certain before it is left out.

Each size errs about a pair with the probability alpha of the rule, so all s sizes together with s alpha at most.
Certificates are shared by catalogues that are small enough for a table of all pairs.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from saferank.live.learner import Learner
from saferank.service.knowledge.certified import Certified, Pair
from saferank.service.knowledge.knowledge import Knowledge

Names = tuple[str, str]
"""Better and worse item."""


class Held(NamedTuple):
    """The certificates of a page size at some moment."""

    certified: Certified
    items: Sequence[Any]  # names by number


NONE_HELD = Held(Certified(), ())


def introduce(known: Mapping[int, Knowledge]) -> None:
    """Let the knowledge of every page size see that of the others."""
    for k, knowledge in known.items():
        knowledge.others = tuple(known[size] for size in sorted(known) if size != k)


def shares(learner: Learner) -> bool:
    """True when it has a table of certificates for all pairs."""
    return hasattr(learner.state.duels, "table")


def held(knowledge: Knowledge) -> Held:
    """What a page size has to tell the others."""
    return Held(knowledge.certified, knowledge.learner.items) if shares(knowledge.learner) else NONE_HELD


def heard(knowledge: Knowledge) -> tuple[Held, ...]:
    """What a page size is told by the others."""
    return tuple(held(other) for other in knowledge.others) if shares(knowledge.learner) else ()


def named(sources: Iterable[Held]) -> list[Names]:
    """Certificates by name, in an order that does not depend on how items are numbered."""
    return [
        pair
        for source in sources
        for pair in sorted((str(source.items[i]), str(source.items[j])) for i, j in source.certified.pairs)
    ]


def joined(own: Certified, others: Sequence[Names], index: Mapping[Any, int]) -> Certified:
    """Certificates together with those of other sizes; ``index`` numbers the items, those that it lacks come after."""
    if not others:
        return own
    numbers = dict(index)
    for item in (item for pair in others for item in pair):
        numbers.setdefault(item, len(numbers))
    return own.extended((numbers[better], numbers[worse]) for better, worse in others)


def all_certified(knowledge: Knowledge) -> Certified:
    """What all page sizes of a context have certified, in the item numbers of this one."""
    return joined(knowledge.certified, named(heard(knowledge)), knowledge.learner.index)


def teach(knowledge: Knowledge, certified: Certified) -> None:
    """Let the policy know the certificates of other sizes. The state is that of a view: nothing is learnt by it."""
    learner, n_items = knowledge.learner, len(knowledge.learner.items)
    new = [pair for pair in certified.pairs[len(knowledge.certified.pairs) :] if max(pair) < n_items]
    duels = learner.state.duels
    table = duels.table._replace(expires=duels.table.expires.copy(), above=_closure(certified, n_items))
    for i, j in new:
        table.expires[i, j] = _end(knowledge.others, str(learner.items[i]), str(learner.items[j]))
    duels = duels._replace(table=table, certificates=_longer(duels.certificates, new))
    learner.state = learner.state._replace(duels=duels)
    learner.base = ()  # the leader is derived again, whatever the base ranking is


def _closure(certified: Certified, n_items: int) -> Any:
    above, size, mask = np.zeros((n_items, n_items), np.bool_), -(-n_items // 8), (1 << n_items) - 1
    for item in certified.winners():
        if item < n_items:
            bits = np.frombuffer((certified.below(item) & mask).to_bytes(size, "little"), np.uint8)
            above[item] = np.unpackbits(bits, count=n_items, bitorder="little")
    return above


def _end(others: Iterable[Knowledge], better: str, worse: str) -> int:
    """The last round in which some size holds a certificate; all sizes count the rounds of epochs alike."""
    learners = [other.learner for other in others if shares(other.learner)]
    return max(
        int(learner.state.duels.table.expires[learner.index[better], learner.index[worse]])
        if better in learner.index and worse in learner.index
        else 0
        for learner in learners
    )


def _longer(kept: Any, new: Sequence[Pair]) -> Any:
    """A list of certificates with further ones behind, in arrays of its own."""
    size, more = int(kept.given[0]), len(new)
    columns = ([i for i, _ in new], [j for _, j in new], [0] * more)
    room = [np.zeros(len(kept.better) + more, array.dtype) for array in kept[:3]]
    for array, old, column in zip(room, kept[:3], columns, strict=True):
        array[:size], array[size : size + more] = old[:size], column
    return type(kept)(*room, np.array([size + more], kept.given.dtype))

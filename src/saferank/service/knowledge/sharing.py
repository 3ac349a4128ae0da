"""What pages of one size have certified counts for pages of every size of the context.

"i is better than j" does not depend on how many places a page has. Evidence stays apart: a bet is settled at the odds
of a draw with so many places. So each size learns from its own pages, and certificates are joined where they are used:
for leaders, for the policy that chooses a page, and for the check before serving. A size's own certificates come first,
then those of the others by size and name. One that contradicts what is certain before it is left out.

Each size errs about a pair with the probability alpha of the rule, so all s sizes together with s alpha at most.
Certificates are shared by policies whose certificates may have a lifetime, endless or not.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from saferank.live.learner import Learner
from saferank.service.knowledge.certified import Certified
from saferank.service.knowledge.knowledge import Knowledge
from saferank.statistics.certificates import (
    BITS,
    Certificates,
    close,
    keep_certificate,
    new_closure,
    with_longer_list,
)
from saferank.statistics.certificates import held as held_by
from saferank.statistics.epochs import end_of_fresh

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
    """True when it keeps what follows from its certificates."""
    return hasattr(learner.state.duels, "closure")


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
    ends = _ends(knowledge.others)
    duels = learner.state.duels
    kept = with_longer_list(duels.certificates)
    while len(kept.better) < kept.given[0] + len(new):
        kept = with_longer_list(kept)
    for i, j in new:
        keep_certificate(kept, i, j, 0, ends[str(learner.items[i]), str(learner.items[j])])
    closures = {name: new_closure(n_items, _room(kept)) for name in ("closure", "fresh") if hasattr(duels, name)}
    duels = duels._replace(certificates=kept, **closures)
    close(kept, duels.closure, 1)
    if "fresh" in closures:
        close(kept, duels.fresh, end_of_fresh(duels))
    learner.state = learner.state._replace(duels=duels)
    learner.base = ()  # the leader is derived again, whatever the base ranking is


def _room(kept: Certificates) -> int:
    """Numbers that the items of all certificates need."""
    return BITS * (1 + 2 * len(held_by(kept)) // BITS)


def _ends(others: Iterable[Knowledge]) -> dict[Names, int]:
    """The last round in which some size holds a certificate, by names; all sizes count the rounds of epochs alike."""
    ends: dict[Names, int] = {}
    for other in others:
        for better, worse, end in other.learner.valid_certificates() if shares(other.learner) else ():
            pair = str(better), str(worse)
            ends[pair] = max(end, ends.get(pair, 0))
    return ends

"""Everything that names an item, without it: knowledge, catalogues, versions and alarms."""

import json
from collections.abc import Iterator, Sequence

from saferank import saved_state
from saferank.service.knowledge.catalogues import Catalogue
from saferank.service.knowledge.closed_pages import NewestPage
from saferank.service.knowledge.fold import Fold, Moment, to_json
from saferank.service.knowledge.knowledge import Changed, Knowledge, NamedPair
from saferank.service.knowledge.publications import read_head, read_parts
from saferank.store.contract import VersionRow

DELETED = "[deleted]"
"""Stands for the item in leaders of earlier versions and in alarms."""

WHY = "an item was deleted (saferank forget)"
"""Of the version that is made by it."""


def is_named(body: bytes, item: str) -> bool:
    """True when a publication names an item."""
    facts = read_head(body)
    pages = any(item in base or item in items for _, base, items in facts["looks"])
    return pages or item in facts["watch"] or any(item in _items(part.learner) for part in read_parts(body))


def _items(learner: bytes) -> Sequence[str]:
    items: Sequence[str] = saved_state.from_bytes(learner)[0]["items"]
    return items


def drop_item(fold: Fold, item: str) -> list[int]:
    """Know nothing of an item; returns the page sizes that begin again, because it cannot be taken out of them.

    A new version is made of each page size that knew it. Marks of votes stay: they name nobody.
    """
    fold.watch.bets.pop(item, None)
    begun, changed = [], dict[int, Changed]()
    for k, knowledge in fold.knowledge.items():
        before, knew = fold.looks[k], item in knowledge.learner.index
        look = fold.looks[k] = _look_without(before, item, knowledge)
        if knew:
            begun += [] if knowledge.can_spare(item) else [k]
            changed[k] = _of_others(knowledge.forget(item, look.base), item)
        elif look != before:
            changed[k] = ((), ())
    for k, pairs in changed.items():
        fold.new_version(fold.knowledge[k], "restart", Moment(fold.through), pairs, WHY)
    return begun


def _look_without(look: NewestPage, item: str, knowledge: Knowledge) -> NewestPage:
    """The others move up, and if they are too few, names that no item has."""
    if item not in look.base and item not in look.items:
        return look
    base, items = ([name for name in names if name != item] for names in look)
    known = [str(name) for name in knowledge.learner.present_items() if name != item]
    return NewestPage(_filled(base, [*items, *known], len(look.base)), tuple(items))


def _filled(base: Sequence[str], others: Sequence[str], size: int) -> tuple[str, ...]:
    nobody = [f"{number}" for number in range(size)]
    return tuple(dict.fromkeys([*base, *others, *nobody]))[:size]


def _of_others(changed: Changed | None, item: str) -> Changed:
    gained, lost = changed or ((), ())
    return _pairs_of_others(gained, item), _pairs_of_others(lost, item)


def _pairs_of_others(pairs: Sequence[NamedPair], item: str) -> list[NamedPair]:
    return [pair for pair in pairs if item not in pair[:2]]


def lists_without(lists: Catalogue, item: str, k: int) -> Catalogue:
    """A catalogue without an item. A base ranking that is shorter than a page then is filled up."""
    base, candidates = ([name for name in names if name != item] for names in lists)
    size = len(base) if len(base) >= k else min(k, len(lists[0]))
    return list(_filled(base, candidates, size)), candidates


def versions_without(rows: Sequence[VersionRow], item: str) -> Iterator[VersionRow]:
    """The versions that name an item, without it: masked in leaders, and certificates with it are left out."""
    for row in rows:
        leader, evidence = json.loads(row.leader), json.loads(row.evidence)
        pairs = {name: _pairs_of_others(evidence[name], item) for name in ("gained", "lost")}
        if item in leader or any(pairs[name] != evidence[name] for name in pairs):
            masked = [DELETED if name == item else name for name in leader]
            yield row._replace(leader=to_json(masked), evidence=to_json({**evidence, **pairs}))


def details_without(details: Sequence[str], item: str) -> dict[str, str]:
    """By detail of an alarm that names an item: the detail without it."""
    return {detail: detail.replace(repr(item), DELETED) for detail in details if repr(item) in detail}

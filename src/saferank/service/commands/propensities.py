"""How likely each item of a page was to be first, as far as the record of the page can tell.

Exact is the chance given the class of the page: the page itself, and every page that the draw could have made from it
by exchanging the first item with another one. The law says how likely each of those is against the page, and the
record says which of them the safety check would have let through. The chances of a class sum to 1.

The chance over all pages is not in the record: pages that are not safe are drawn again, and by how much that raises
the others depends on every page there is.
"""

from saferank.store.page_record import PageRecord


def first_place_chances(record: PageRecord) -> list[float]:
    """By place of the row: the chance of its item to be first. Production's page is certain."""
    if not record.row or record.instead:
        return [float(place == 0) for place in range(len(record.shown))]
    if not record.law.drawn:
        return _coins(record)
    odds = [1.0, *(_odds(record, other) for other in range(1, len(record.row)))]
    total = sum(odds)
    return [odd / total for odd in odds]


def _coins(record: PageRecord) -> list[float]:
    """A group of places was shuffled: all its items alike. A certified pair is kept, which the record does not say."""
    group = [start == record.law.start[0] for start in record.law.start]
    return [float(inside) / sum(group) for inside in group]


def _odds(record: PageRecord, other: int) -> float:
    """How likely the page with the first item and another one exchanged was, against the page; 0 if it is not safe.

    A group is drawn item by item from its weights: Q(page) is the product of weight / D over its shown places, where D
    is the sum of the weights from that place on. An exchange changes the D of the places between.
    """
    law = record.law
    if not law.exchanges[0] >> other & 1 or law.start[other] != law.start[0]:
        return 0.0
    change = law.weight[0] - law.weight[other]
    ratio = law.weight[other] / law.weight[0] if other >= record.k else 1.0
    tail = 0.0
    for place in range(len(law.weight) - 1, 0, -1):
        if law.start[place] == law.start[0]:
            tail += law.weight[place]
            if place <= other and place < record.k:
                ratio *= tail / (tail + change)
    return ratio

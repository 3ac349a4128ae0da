"""The inequality of docs/algorithms/evidence.md: P(clicks | page) <= P(clicks | i and j exchanged).

i is clicked, j is not or is hidden, and i is at most as attractive. All click vectors of pages of 3 places and a hidden
item, models with random parameters from fixed seeds. No chance is left in the verdicts.
"""

import random
from collections import Counter
from itertools import product

import pytest

from tests.reference.users.click_models import CCM, CM, DBN, DCM, PBM, UBM, ClickModel

K = 3
ITEMS = list(range(K + 1))  # the last one is hidden


def uniforms(rng: random.Random, size: int) -> list[float]:
    return [rng.random() for _ in range(size)]


def breaches(model: ClickModel, attraction: list[float]) -> Counter[str]:
    """Where the inequality fails, by the place of j and whether i's click is the last one."""
    found: Counter[str] = Counter()
    for clicks in product([0, 1], repeat=K):
        last = max([place for place in range(K) if clicks[place]], default=-1)
        for a, b in product(range(K), range(K + 1)):
            worse = attraction[a] <= attraction[b]
            if clicks[a] and worse and (b == K or not clicks[b]):
                other = list(ITEMS)
                other[a], other[b] = b, a
                here, there = (model.probability_of(row[:K], list(clicks)) for row in (ITEMS, other))
                if here > there * (1 + 1e-12):
                    where = "hidden" if b == K else "above the last click" if b < last else "below the last click"
                    found[f"{where}, {'last' if a == last else 'not the last'}"] += 1
    return found


def model_of(name: str, rng: random.Random, attraction: list[float]) -> ClickModel:
    if name == "pbm":
        return PBM(attraction, uniforms(rng, K))
    if name == "cm":
        return CM(attraction)
    if name == "dcm":
        return DCM(attraction, uniforms(rng, K))
    if name == "ubm":
        return UBM(attraction, [uniforms(rng, K) for _ in range(K)])
    if name.startswith("dbn"):
        equal = [rng.random()] * (K + 1)
        return DBN(attraction, equal if name == "dbn, equal" else uniforms(rng, K + 1), rng.random())
    less, more = sorted(uniforms(rng, 2))
    relevant_stays = name == "ccm, relevant clicks keep"
    return CCM(attraction, rng.random(), less if relevant_stays else more, more if relevant_stays else less)


def all_breaches(name: str, models: int = 400) -> Counter[str]:
    rng, found = random.Random(1), Counter[str]()
    for _ in range(models):
        attraction = uniforms(rng, K + 1)
        found += breaches(model_of(name, rng, attraction), attraction)
    return found


@pytest.mark.parametrize("name", ["pbm", "cm", "dcm", "ubm", "dbn, equal"])
def test_it_holds(name: str) -> None:
    assert not all_breaches(name)


def test_it_fails_for_users_whom_items_satisfy_differently() -> None:
    assert all_breaches("dbn, unequal")


def test_where_it_fails_for_ccm_users() -> None:
    """Never while the unclicked item is above the last click."""
    leave = all_breaches("ccm, relevant clicks end")
    assert set(leave) == {"hidden, not the last", "below the last click, not the last"}
    keep = all_breaches("ccm, relevant clicks keep")
    assert set(keep) == {"hidden, last", "below the last click, last"}


def test_ccm_users_are_fair_up_to_the_attraction_that_is_documented() -> None:
    """a <= n / (2 (n - r)) for all items: nothing fails when relevant clicks end visits."""
    rng = random.Random(2)
    for _ in range(400):
        r, n = sorted(uniforms(rng, 2))
        most = min(1.0, n / (2 * (n - r)))
        attraction = [most * u for u in uniforms(rng, K + 1)]
        assert not breaches(CCM(attraction, rng.random(), n, r), attraction)

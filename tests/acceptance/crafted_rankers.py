"""Saved rankers with a right checksum and a crafted content, one after the other: loaded, ranked with, taught, saved.

    python -m tests.acceptance.crafted_rankers FIRST LAST

Each case changes arrays or facts of a ranker that was saved properly, from the number of the case. The line ``case N``
is printed before a case and ``refused N`` or ``works N`` after it, so that its parent process knows which one
ended it. A case that takes too long ends it as well.
"""

import faulthandler
import random
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saferank import Ranker, SavedStateError
from saferank.policies import POLICIES
from saferank.saved_state import from_bytes, to_bytes

PATIENCE = 30.0
"""Seconds for one case; what is compiled for the first time takes longest."""

_EXTREMES = (-1, 0, 1, 2, 7, 63, 64, 1 << 20, (1 << 31) - 1, 1 << 40, 1 << 62, -(1 << 31), -(1 << 62))
_FLOATS = (0.0, -1.0, 1e-320, 1e300, -1e300, float("inf"), float("-inf"), float("nan"), 0.5)


def forms() -> list[dict[str, Any]]:
    """Every policy, with and without an end of certificates where it can, small and large."""
    found: list[dict[str, Any]] = []
    for name, kind in sorted(POLICIES.items()):
        examination = [0.9, 0.7, 0.5] if kind.needs_examination else None
        for n_items in (6, 30) if kind.certifies else (6,):
            for lifetime in (None, 40) if kind.lifetimes else (None,):
                form: dict[str, Any] = {"policy": name, "n": n_items, "lifetime": lifetime, "examination": examination}
                found += [form]
    found.append({"policy": "kl-ucb-br", "n": 300, "lifetime": None, "examination": None})  # rows found by hash
    return found


def saved(policy: str, n: int, lifetime: int | None, examination: list[float] | None, came: bool) -> bytes:
    """A ranker that has learnt, sometimes with an item that came and one that went."""
    options: dict[str, Any] = {"lifetime": lifetime, "examination": examination, "seed": n}
    ranker = Ranker(policy, original=list(range(3)), candidates=list(range(3, n)), **options)
    for number in range(150):
        page = ranker.rank()
        ranker.feedback(page, [item for item in page.items if (int(item) * 7 + number) % 3 == 0])
        if came and number == 60:
            ranker.add(n)
            ranker.remove(1)
    return ranker.save()


def crafted(data: bytes, chance: random.Random) -> bytes:
    """The same with one to three arrays changed, or now and then a fact."""
    facts, arrays = from_bytes(data)
    if chance.random() < 0.1:
        return to_bytes({**facts, **_other_facts(facts, chance)}, arrays)
    for name in chance.sample(sorted(arrays), chance.choice((1, 1, 1, 2, 3))):
        arrays[name] = _changed(arrays[name], chance)
    return to_bytes(facts, arrays)


def _other_facts(facts: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    numbers = [chance.choice(_EXTREMES) for _ in facts["order"]]
    small = [chance.randrange(-1, len(facts["items"]) + 1) for _ in facts["order"]]
    return chance.choice(
        (
            {"order": numbers},
            {"order": small},
            {"gone": small[:1]},
            {"gone": small},
            {"issued": chance.choice(_EXTREMES)},
            {"pinned": numbers[:2]},
            {"pinned": small[:2]},
            {"started": chance.choice(_EXTREMES)},
            {"lifetime": chance.choice(_EXTREMES)},
            {"horizon": chance.choice(_EXTREMES)},
            {"n_positions": chance.choice(_EXTREMES)},
        )
    )


def _changed(array: NDArray[Any], chance: random.Random) -> NDArray[Any]:
    changed = array.copy()
    if chance.random() < 0.1 and array.ndim:
        longer = np.zeros((chance.choice((0, 1, 2 * len(array), len(array) + 1)), *array.shape[1:]), array.dtype)
        longer[: len(array)] = array[: len(longer)]
        return longer
    flat = changed.reshape(-1)
    if not len(flat):
        return changed
    places = (
        range(len(flat))
        if chance.random() < 0.2
        else [chance.randrange(len(flat)) for _ in range(chance.choice((1, 1, 4)))]
    )
    value = _value(array, chance)
    for place in places:
        flat[place] = value
        if chance.random() < 0.5:
            value = _value(array, chance)
    return changed


def _value(array: NDArray[Any], chance: random.Random) -> Any:
    if array.dtype.kind == "f":
        return chance.choice(_FLOATS)
    if array.dtype.kind == "b":
        return chance.random() < 0.5
    number = chance.randrange(-2, 40) if chance.random() < 0.4 else chance.choice(_EXTREMES)
    return np.asarray(number).astype(array.dtype)  # wraps where the type is smaller


def attempt(data: bytes) -> str:
    """Load a ranker and use it; what becomes of it."""
    try:
        ranker = Ranker.load(data)
    except SavedStateError:
        return "refused"
    for number in range(40):
        page = ranker.rank()
        ranker.feedback(page, [item for item in page.items if hash((item, number)) % 3 == 0])
    str(ranker.explain())
    ranker.save()
    return "works"


def main(first: int, last: int) -> None:
    """Play the cases of these numbers."""
    with np.errstate(all="ignore"):
        kinds = [(form, came) for form in forms() for came in (False, True)]
        known: dict[int, bytes] = {}
        for number in range(first, last):
            chance = random.Random(number)
            which = number % len(kinds)
            form, came = kinds[which]
            if which not in known:
                known[which] = saved(**form, came=came)
            data = crafted(known[which], chance)
            print(f"case {number} {form['policy']}", flush=True)
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
            print(f"{attempt(data)} {number}", flush=True)
            faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))

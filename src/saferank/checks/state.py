"""What a policy makes: evidence and plans as data that can be copied, compared and saved, and honest pages."""

import copy
from collections.abc import Iterator
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from saferank._kernel import JIT
from saferank.checks.contract import ContractError, blaming, failing, require
from saferank.policies import PolicyKind, Setup
from saferank.saved_state import SavedStateError, flatten, from_bytes, rebuild, to_bytes
from saferank.verbs import NO_ITEM, Impression, Ints


def started(kind: PolicyKind, setup: Setup) -> tuple[Any, Any, Any]:
    """A policy, its first evidence and its first plan, or a ``ContractError`` on what they are made of."""
    sizes = f"with n_items={setup.n_items}, n_positions={setup.n_positions}"
    with failing(f"start() of {kind.name} fails {sizes}", lambda _: "It must work for every size."):
        begun = kind.start(setup)
    pair = isinstance(begun, tuple) and len(begun) == 2 and not _is_record(begun)
    require(pair, f"start() of {kind.name} returns {type(begun).__name__}; it must return two: policy, evidence.")
    policy, evidence = begun
    require(
        isinstance(policy, kind.policy),
        f"start() of {kind.name} returns a policy of type {type(policy).__name__}, but it is registered for "
        f"{kind.policy.__name__}.",
    )
    if JIT:  # before plan(), which may be compiled for what it gets
        _check_parts(kind, policy, {"evidence": evidence})
    with failing(f"plan() or renew() of {kind.name} fails {sizes}", lambda _: "It must work for every call."):
        plan = kind.plan_for(policy, evidence, setup.first_call())
    if JIT:
        _check_parts(kind, policy, {"plan": plan})
        _check_saved(kind, {"evidence": evidence, "plan": plan})
    _check_types(kind, evidence, "evidence", "start")
    _check_types(kind, plan, "plan", "plan")
    _check_promises(kind, policy, evidence, plan, setup)
    return policy, evidence, plan


def _check_parts(kind: PolicyKind, policy: Any, made: dict[str, Any]) -> None:
    """Only numbers and arrays are compiled and saved; plain Python plays with whatever there is."""
    plain = "To try an idea, NUMBA_DISABLE_JIT=1 plays anything as plain Python."
    strange = next(_strange(policy, "policy", (np.ndarray, np.generic, int, float)), None)
    require(
        strange is None,
        f"{strange} of {kind.name} is nothing to compute with. A policy is a NamedTuple whose fields are numbers, "
        f"arrays of numbers or such NamedTuples. {plain}",
    )
    for what, value in made.items():
        strange = next(_strange(value, what, np.ndarray), None)
        require(
            strange is None,
            f"{strange} of {kind.name} cannot be saved. Evidence and plan are NamedTuples whose fields are arrays of "
            f"numbers, also for single numbers, or such NamedTuples. {plain}",
        )


def _check_types(kind: PolicyKind, made: Any, path: str, by: str) -> None:
    """Where the class names the type of an array (Ints, Items, Floats), the array must have it."""
    for name, array in zip(made._fields, made, strict=True):
        if _is_record(array):
            _check_types(kind, array, f"{path}.{name}", by)
            continue
        wanted, found = _declared(type(made), name), getattr(array, "dtype", None)
        require(
            wanted in (None, found),
            f"{path}.{name} of {kind.name} is declared as an array of {wanted}, but {by}() makes one of {found}: "
            f"give np.zeros, np.full or np.arange the dtype np.{wanted}.",
        )


def _declared(kind: type, field: str) -> np.dtype[Any] | None:
    """The type of number that a field is annotated with, like ``NDArray[np.int64]``; None when there is none."""
    try:
        hint = get_type_hints(kind).get(field)
    except (NameError, TypeError, AttributeError):  # annotations that mean something elsewhere only
        return None
    types = [get_args(part)[0] for part in get_args(hint) if get_origin(part) is np.dtype]
    return np.dtype(types[0]) if types and isinstance(types[0], type) else None


def _strange(value: Any, path: str, allowed: type | tuple[type, ...]) -> Iterator[str]:
    """The paths to everything in a NamedTuple that is neither an allowed kind of number nor such a NamedTuple."""
    if not _is_record(value):
        yield path
        return
    for name, field in zip(value._fields, value, strict=True):
        if not isinstance(field, allowed) or np.asarray(field).dtype.kind not in "biuf":
            yield from _strange(field, f"{path}.{name}", allowed)


def _check_saved(kind: PolicyKind, made: dict[str, Any]) -> None:
    for what, value in made.items():
        try:
            loaded = rebuild(value, from_bytes(to_bytes({}, dict(flatten(value))))[1])
        except SavedStateError as problem:
            raise ContractError(f"The {what} of {kind.name} is saved but not loaded: {problem}.") from problem
        require(same(value, loaded), f"The {what} of {kind.name} is not the same after it was saved and loaded.")


def _check_promises(kind: PolicyKind, policy: Any, evidence: Any, plan: Any, setup: Setup) -> None:
    """What others read must be there: production's ranking, and what the registration says of certificates and rule."""
    base = getattr(plan, "base", None)
    require(
        base is not None and list(base) == list(range(setup.n_positions)),
        f"The plan of {kind.name} has no field base with the call's own: the live ranker reads production's ranking "
        "there. Give it base: Items, and let plan() put call.base in.",
    )
    require(
        not kind.certifies or hasattr(duels_of(evidence), "certificates"),
        f"{kind.name} is registered with certifies=True, but its evidence has no duels with certificates.",
    )
    by_table = hasattr(policy, "lead_needed") or not hasattr(policy, "table")  # a table of bets needs no horizon
    needed = [("policy", policy, "lead_needed")]
    needed += [("evidence", evidence, name) for name in ("duels", "learned", "horizon")]
    missing = [f"{what}.{name}" for what, value, name in needed if not hasattr(value, name)]
    require(
        kind.rule is None or not by_table or not missing,
        f"{kind.name} is registered with a rule, but has no {', '.join(missing)}.",
    )


def _is_record(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def duels_of(evidence: Any) -> Any:
    """The statistics of duels, empty for evidence without."""
    return getattr(evidence, "duels", ())


def copied(value: Any) -> Any:
    """The same in arrays of its own."""
    if _is_record(value):
        return type(value)(*(copied(field) for field in value))
    return copy.deepcopy(value)


def changed_fields(one: Any, other: Any) -> Iterator[str]:
    """The fields that differ."""
    for name, a, b in zip(one._fields, one, other, strict=True):
        if not same(a, b):
            yield name


def shared_field(one: Any, other: Any) -> str | None:
    """The first field of which two have the same memory, by its path."""
    for (path, a), (_, b) in zip(flatten(one), flatten(other), strict=True):
        if isinstance(a, np.ndarray) and np.shares_memory(a, b):
            return path
    return None


def nan_field(made: Any) -> str | None:
    """The first field that holds NaN, by its path."""
    for path, array in flatten(made):
        if isinstance(array, np.ndarray) and array.dtype.kind == "f" and np.isnan(array).any():
            return path
    return None


def same(one: Any, other: Any) -> bool:
    """True when both hold the same numbers, and what else plain Python may hold."""
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, np.ndarray | np.generic | int | float):
        return np.array_equal(one, other, equal_nan=True)
    return bool(one == other) or (hasattr(one, "__dict__") and same(vars(one), vars(other)))


def copied_impression(impression: Impression) -> Impression:
    """The same page in arrays of its own."""
    copies: list[Any] = [field.copy() for field in impression]
    other = Impression(*copies)
    return other._replace(shown=other.ranking[: len(impression.shown)])


def contents_of_page(impression: Impression) -> list[list[int]]:
    """What a page says, without the places that are not in use."""
    places = int(impression.places[0])
    rows = (impression.ranking[:places], impression.start[:places], impression.end[:places])
    return [row.tolist() for row in (impression.round, impression.challenger, *rows)]


def check_page(who: str, impression: Impression, setup: Setup, number: int) -> None:
    """Raise a ``ContractError`` unless ``choose() of who`` has filled the page ``number`` properly."""
    room = len(impression.ranking)
    counted, places = int(impression.round[0]), int(impression.places[0])
    require(
        counted == number,
        f"{who} numbers page {number} as {counted}; the caller gives pages their numbers, impression.round is read.",
    )
    require(
        setup.n_positions <= places <= room,
        f"{who} uses {places} places for {setup.n_positions} positions; impression.places must be at least the "
        f"number of positions and at most the room, {room}.",
    )
    _check_items(who, impression.ranking[:places].tolist(), setup)
    _check_groups(who, impression.start[:places], impression.end[:places])
    challenger = int(impression.challenger[0])
    require(
        challenger == NO_ITEM or 0 <= challenger < setup.n_items,
        f"{who} names {challenger} as the challenger, which is neither an item below {setup.n_items} nor NO_ITEM.",
    )


def _check_items(who: str, ranking: list[int], setup: Setup) -> None:
    shown, strangers = ranking[: setup.n_positions], [item for item in ranking if item >= setup.n_items]
    require(not strangers, f"{who} ranks item {strangers[:1]}, but the items are 0 to {setup.n_items - 1}.")
    require(len(set(shown)) == len(shown), f"{who} shows an item twice: {shown}. A page needs different items.")
    require(
        len(set(ranking)) == len(ranking),
        f"{who} compares a hidden item that has a place already: {ranking}. Lower impression.places, or put a "
        "different item there.",
    )


def _check_groups(who: str, start: Ints, end: Ints) -> None:
    """Groups must tile the places: each begins where the one before ends, and its places agree on its extent."""
    first = 0
    while first < len(start):
        last = int(end[first])
        whole = first < last <= len(end) and np.all(start[first:last] == first) and np.all(end[first:last] == last)
        require(
            bool(whole),
            f"{who} leaves no proper group at place {first}: start is {start.tolist()} and end {end.tolist()}. Every "
            "place in use needs the first place of its group and one past the last, the same for the whole group; a "
            "place on its own has itself and the next.",
        )
        first = last


def check_leader(kind: PolicyKind, evidence: Any, plan: Any, setup: Setup) -> list[int]:
    """The leader of evidence and plan; a ``ContractError`` unless it is a ranking of different items."""
    with blaming(kind.leader):
        advice = "It must return the items of the best ranking so far."
        with failing(f"leader() of {kind.name} fails", lambda _: advice):
            leader = [int(item) for item in kind.leader(evidence, plan)]
        require(
            len(leader) >= setup.n_positions and len(set(leader)) == len(leader),
            f"leader() of {kind.name} returns {leader}; it must be at least {setup.n_positions} different items.",
        )
        require(
            all(0 <= item < setup.n_items for item in leader),
            f"leader() of {kind.name} returns {leader}, but the items are 0 to {setup.n_items - 1}.",
        )
        return leader

"""What a policy makes: states as data that can be copied, compared and saved, and honest pages."""

import copy
from collections.abc import Iterator
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from saferank._kernel import JIT
from saferank.checks.contract import ContractError, blaming, require
from saferank.plugins import place_of_problem
from saferank.policies import PolicyKind, Setup
from saferank.saved_state import SavedStateError, flatten, from_bytes, rebuild, to_bytes
from saferank.verbs import NOBODY, Impression, Ints


def started(kind: PolicyKind, setup: Setup) -> tuple[Any, Any]:
    """A policy and its first state, or a ``ContractError`` on what they are made of."""
    policy, state = _begun(kind, setup)
    require(
        isinstance(policy, kind.policy),
        f"start() of {kind.name} returns a policy of type {type(policy).__name__}, but it is registered for "
        f"{kind.policy.__name__}.",
    )
    if JIT:
        _check_parts(kind, policy, state)
        _check_saved(kind, state)
    _check_types(kind, state)
    _check_promises(kind, policy, state)
    return policy, state


def _check_parts(kind: PolicyKind, policy: Any, state: Any) -> None:
    """Only numbers and arrays are compiled and saved; plain Python plays with whatever there is."""
    plain = "To try an idea, NUMBA_DISABLE_JIT=1 plays anything as plain Python."
    strange = next(_strange(policy, "policy", (np.ndarray, np.generic, int, float)), None)
    require(
        strange is None,
        f"{strange} of {kind.name} is nothing to compute with. A policy is a NamedTuple whose fields are numbers, "
        f"arrays of numbers or such NamedTuples. {plain}",
    )
    strange = next(_strange(state, "state", np.ndarray), None)
    require(
        strange is None,
        f"{strange} of {kind.name} cannot be saved. A state is a NamedTuple whose fields are arrays of numbers, also "
        f"for single numbers, or such NamedTuples. {plain}",
    )


def _begun(kind: PolicyKind, setup: Setup) -> tuple[Any, Any]:
    sizes = f"n_items={setup.n_items}, n_positions={setup.n_positions}"
    try:
        begun = kind.start(setup)
    except Exception as problem:
        what = f"start() of {kind.name} fails with {sizes}: {type(problem).__name__}: {problem}."
        raise ContractError(f"{what} It must work for every size.", place_of_problem(problem)) from problem
    pair = isinstance(begun, tuple) and len(begun) == 2 and not _is_record(begun)
    require(pair, f"start() of {kind.name} returns {type(begun).__name__}; it must return two: policy, state.")
    return begun


def _check_types(kind: PolicyKind, state: Any, path: str = "state") -> None:
    """Where the class of a state names the type of an array (Ints, Items, Floats), the array must have it."""
    for name, array in zip(state._fields, state, strict=True):
        if _is_record(array):
            _check_types(kind, array, f"{path}.{name}")
            continue
        wanted, made = _declared(type(state), name), getattr(array, "dtype", None)
        require(
            wanted in (None, made),
            f"{path}.{name} of {kind.name} is declared as an array of {wanted}, but start() makes one of {made}: "
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


def _check_saved(kind: PolicyKind, state: Any) -> None:
    try:
        loaded = rebuild(state, from_bytes(to_bytes({}, dict(flatten(state))))[1])
    except SavedStateError as problem:
        raise ContractError(f"The state of {kind.name} is saved but not loaded: {problem}.") from problem
    require(same(state, loaded), f"The state of {kind.name} is not the same after it was saved and loaded.")


def _check_promises(kind: PolicyKind, policy: Any, state: Any) -> None:
    """What others read must be there: the pages issued, and what the registration says of certificates and rule."""
    rounds = getattr(state, "round", np.empty(0))
    require(
        rounds.shape == (1,) and rounds.dtype == np.int64,
        f"The state of {kind.name} has no field round, an array of one number: the pages issued, for the live ranker. "
        "Give it round: Ints, and let start() make np.zeros(1, np.int64).",
    )
    require(
        not kind.certifies or hasattr(duels_of(state), "certificates"),
        f"{kind.name} is registered with certifies=True, but its state has no duels with certificates.",
    )
    by_table = hasattr(policy, "lead_needed") or not hasattr(policy, "table")  # a table of bets needs no horizon
    needed = [("policy", policy, "lead_needed"), *(("state", state, name) for name in ("duels", "learned", "horizon"))]
    missing = [f"{what}.{name}" for what, value, name in needed if not hasattr(value, name)]
    require(
        kind.rule is None or not by_table or not missing,
        f"{kind.name} is registered with a rule, but has no {', '.join(missing)}.",
    )


def _is_record(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def duels_of(state: Any) -> Any:
    """The statistics of duels, empty for a state without."""
    return getattr(state, "duels", ())


def copied(value: Any) -> Any:
    """The same in arrays of its own."""
    if _is_record(value):
        return type(value)(*(copied(field) for field in value))
    return copy.deepcopy(value)


def changed_fields(one: Any, other: Any) -> Iterator[str]:
    """The fields of two states that differ."""
    for name, a, b in zip(one._fields, one, other, strict=True):
        if not same(a, b):
            yield name


def shared_field(one: Any, other: Any) -> str | None:
    """The first field of which two states have the same memory, by its path."""
    for (path, a), (_, b) in zip(flatten(one), flatten(other), strict=True):
        if isinstance(a, np.ndarray) and np.shares_memory(a, b):
            return path
    return None


def nan_field(state: Any) -> str | None:
    """The first field of a state that holds NaN, by its path."""
    for path, array in flatten(state):
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
    """Raise a ``ContractError`` unless ``choose() of who`` has filled the page properly as page ``number``."""
    room = len(impression.ranking)
    counted, places = int(impression.round[0]), int(impression.places[0])
    require(
        counted == number,
        f"{who} numbers page {number} as {counted}; impression.round must count the pages issued, from 1 by ones.",
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
        challenger == NOBODY or 0 <= challenger < setup.n_items,
        f"{who} names {challenger} as the challenger, which is neither an item below {setup.n_items} nor NOBODY.",
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


def check_leader(kind: PolicyKind, state: Any, setup: Setup) -> list[int]:
    """The leader of a state; a ``ContractError`` unless it is a ranking of different items."""
    with blaming(kind.leader):
        try:
            leader = [int(item) for item in kind.leader(state)]
        except Exception as problem:
            failed = f"leader() of {kind.name} fails: {type(problem).__name__}: {problem}."
            raise ContractError(
                f"{failed} It must return the items of the best ranking so far.", place_of_problem(problem)
            ) from problem
        require(
            len(leader) >= setup.n_positions and len(set(leader)) == len(leader),
            f"leader() of {kind.name} returns {leader}; it must be at least {setup.n_positions} different items.",
        )
        require(
            all(0 <= item < setup.n_items for item in leader),
            f"leader() of {kind.name} returns {leader}, but the items are 0 to {setup.n_items - 1}.",
        )
        return leader

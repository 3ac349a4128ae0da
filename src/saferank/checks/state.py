"""The contract of policies and states as data: NamedTuples of numbers that can be copied, compared and saved."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from saferank.checks.contract import ContractError, require
from saferank.policies import PolicyKind, Setup
from saferank.saved_state import SavedStateError, flatten, from_bytes, rebuild, to_bytes


def started(kind: PolicyKind, setup: Setup) -> tuple[Any, Any]:
    """A policy and its first state, or a ``ContractError`` on what they are made of."""
    policy, state = kind.start(setup)
    require(
        isinstance(policy, kind.policy),
        f"start() of {kind.name} returns a policy of type {type(policy).__name__}, but it is registered for "
        f"{kind.policy.__name__}.",
    )
    strange = next(_strange(policy, "policy", (np.ndarray, np.generic, int, float)), None)
    require(
        strange is None,
        f"{strange} of {kind.name} is nothing to compute with. A policy is a NamedTuple whose fields are numbers, "
        "arrays of numbers or such NamedTuples.",
    )
    strange = next(_strange(state, "state", np.ndarray), None)
    require(
        strange is None,
        f"{strange} of {kind.name} cannot be saved. A state is a NamedTuple whose fields are arrays of numbers, also "
        "for single numbers, or such NamedTuples.",
    )
    _check_saved(kind, state)
    _check_promises(kind, policy, state)
    return policy, state


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
    require(
        getattr(state, "round", np.empty(0)).shape == (1,),
        f"The state of {kind.name} has no field round, an array of one number: the pages issued, for the live ranker.",
    )
    require(
        not kind.certifies or hasattr(duels_of(state), "certificates"),
        f"{kind.name} is registered with certifies=True, but its state has no duels with certificates.",
    )
    needed = [("policy", policy, "lead_needed"), *(("state", state, name) for name in ("duels", "learned", "horizon"))]
    missing = [f"{what}.{name}" for what, value, name in needed if not hasattr(value, name)]
    require(
        kind.rule is None or not missing,
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
    return value.copy() if isinstance(value, np.ndarray) else value


def same(one: Any, other: Any) -> bool:
    """True when both hold the same numbers."""
    if isinstance(one, tuple):
        return all(same(a, b) for a, b in zip(one, other, strict=True))
    return np.array_equal(one, other, equal_nan=True)

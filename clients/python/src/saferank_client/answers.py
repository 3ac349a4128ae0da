"""What goes out in a rank call, and what of the answer is believed: pure functions, no network."""

import json
import operator
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

LONGEST_LIST = 10_000
"""Ids in one list of a call; the service takes no more."""


class Trouble(Exception):  # noqa: N818 (it is handled, never a bug)
    """Why a call failed: ``kind`` names the sort of failure (warned about once each), ``str()`` the sentence."""

    def __init__(self, kind: str, why: str, retry_after: float = 0.0) -> None:
        super().__init__(why)
        self.kind = kind
        self.retry_after = retry_after


class Refused(Trouble):
    """The service is well and says no (4xx): asking again would not help, and it is no sign of an outage."""


class Unusable(Trouble):
    """The arguments cannot be sent at all."""


@dataclass(frozen=True)
class Ranked:
    """A page to show: ``items``; ``fallback`` is True when it is production's own because of ``why``.

    >>> Ranked(("a", "b"), token=None, fallback=True, why="the service did not answer within 100 ms").items
    ('a', 'b')
    """

    items: tuple[Any, ...]
    token: str | None
    fallback: bool = False
    why: str | None = None
    impression_id: str | None = None
    leader_version: int | None = None
    mode: str | None = None


class Wish(NamedTuple):
    """The arguments of ``rank`` as the caller gave them, good or bad."""

    context: Any
    base_ranking: Any
    candidates: Any
    k: Any
    session_id: Any
    request_id: Any
    mode: Any
    pinned: Any = ()


class PreparedCall(NamedTuple):
    """A wish that can be sent: the body, and what an answer may contain."""

    body: bytes
    allowed: frozenset[str]
    k: int
    pinned: dict[str, int]  # by id: its place


def production_page(base_ranking: Any, k: Any) -> tuple[Any, ...]:
    """``base_ranking[:k]`` of whatever is there: nothing that callers pass makes it raise.

    >>> production_page(["a", "b", "c"], 2), production_page(None, 2), production_page(["a"], "two")
    (('a', 'b'), (), ('a',))
    """
    items = _listed(base_ranking)
    size = _whole(k)
    return items if size is None or size < 0 else items[:size]


def prepare(wish: Wish) -> PreparedCall:
    """The call for a wish; ``Unusable`` names the argument that does not do."""
    base, extra = _ids("base_ranking", wish.base_ranking), _ids("candidates", wish.candidates)
    k = len(base) if wish.k is None else _whole(wish.k)
    if k is None or not 1 <= k <= len(base):
        raise Unusable("k", f"k is {wish.k!r}: expected a whole number from 1 to the {len(base)} ids of base_ranking")
    fields: dict[str, Any] = {"context": wish.context, "base_ranking": base, "candidates": extra, "k": k}
    for name in ("context", "session_id", "request_id", "mode"):
        value = getattr(wish, name)
        if value is None and name != "context":
            continue
        if not isinstance(value, str):
            raise Unusable(name, f"{name} is {value!r}: expected text")
        fields[name] = value
    pinned = {item: base[:k].index(item) if item in base[:k] else k for item in _ids("pinned", wish.pinned)}
    if k in pinned.values() or len(pinned) >= k:
        raise Unusable("pinned", f"pinned is {wish.pinned!r}: expected some of {base[:k]!r}, and not all of them")
    if pinned:
        fields["pinned"] = list(pinned)
    return PreparedCall(json.dumps(fields).encode(), frozenset(base) | frozenset(extra), k, pinned)


def believed(call: PreparedCall, body: bytes) -> Ranked:
    """The page in an answer, if it is one that this call may get; ``Trouble`` otherwise."""
    answer = decoded(body)
    ranking, token = answer.get("ranking"), answer.get("token")
    if not isinstance(ranking, list) or len(ranking) != call.k:
        raise Trouble("answer", f"the answer holds no ranking of {call.k} ids")
    if not all(isinstance(item, str) and item in call.allowed for item in ranking):
        raise Trouble("answer", "the answer ranks an id that was neither in base_ranking nor in candidates")
    if len(set(ranking)) != call.k:
        raise Trouble("answer", "the answer ranks an id twice")
    if any(ranking[place] != item for item, place in call.pinned.items()):
        raise Trouble("answer", "the answer moves an id that is pinned")
    if not isinstance(token, str) or not token:
        raise Trouble("answer", "the answer holds no token")
    return Ranked(
        items=tuple(ranking),
        token=token,
        impression_id=_if(str, answer.get("impression_id")),
        leader_version=_if(int, answer.get("leader_version")),
        mode=_if(str, answer.get("mode")),
    )


def decoded(body: bytes) -> dict[str, Any]:
    """The JSON object in an answer; ``Trouble`` when there is none."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        raise Trouble("answer", "the answer is not JSON") from None
    if not isinstance(answer, dict):
        raise Trouble("answer", "the answer is not a JSON object")
    return answer


def _if(kind: type, value: Any) -> Any:
    return value if isinstance(value, kind) else None


def _listed(items: Any) -> tuple[Any, ...]:
    """The entries of a list, or of anything that can be gone through; nothing of what cannot."""
    if isinstance(items, str | bytes):
        return ()
    try:
        return tuple(islice(items, LONGEST_LIST + 1))
    except Exception:
        return ()


def _ids(name: str, items: Any) -> list[str]:
    if not isinstance(items, Iterable) or isinstance(items, str | bytes | Set | Mapping):
        raise Unusable(name, f"{name} is {type(items).__name__}: expected a list of ids")
    listed = list(_listed(items))
    stranger = next((item for item in listed if not isinstance(item, str)), None)
    if stranger is not None:
        raise Unusable(name, f"{name} holds {stranger!r}: ids are text")
    if len(listed) > LONGEST_LIST:
        raise Unusable(name, f"{name} holds more than {LONGEST_LIST} ids")
    if len(set(listed)) != len(listed):
        raise Unusable(name, f"{name} holds an id twice")
    return listed


def _whole(k: Any) -> int | None:
    try:
        return None if isinstance(k, bool) else operator.index(k)
    except Exception:
        return None

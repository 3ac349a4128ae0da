"""From Personalizer's calls to rank calls, and from pages to its answers. Pure functions."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from saferank.service.http.adapters.calls import made
from saferank.service.http.adapters.personalizer.models import Features, MultiSlotRank, Rank, SingleRank
from saferank.service.wire.calls import RankAnswer, RankCall
from saferank.service.wire.problems import Problem

ONE = ""
"""The name of the only slot of an event that has no slots."""


class Question(NamedTuple):
    """A rank call, and the slots whose actions are rewarded: those of the first places of the page."""

    call: RankCall
    slots: tuple[str, ...]


def single_question(body: SingleRank, feature_names: Sequence[str]) -> Question:
    """The actions are production's ranking; those excluded are left out."""
    _refuse_twice((action.id for action in body.actions), "actions[{}].id")
    excluded = set(body.excluded or ())
    actions = [action.id for action in body.actions if action.id not in excluded]
    if not actions:
        raise _invalid("excludedActions leaves no action to choose from; exclude fewer", "excludedActions")
    return Question(_call(body, actions, [], len(actions), f"{len(actions)} actions", feature_names), (ONE,))


def multi_slot_question(body: MultiSlotRank, feature_names: Sequence[str]) -> Question:
    """The baseline actions of the slots are production's ranking, the other actions are candidates."""
    _refuse_twice((action.id for action in body.actions), "actions[{}].id")
    _refuse_twice((slot.id for slot in body.slots), "slots[{}].id")
    _refuse_twice((slot.baseline_action for slot in body.slots), "slots[{}].baselineAction")
    excluded = _excluded_everywhere(body)
    actions = [action.id for action in body.actions if action.id not in excluded]
    for place, slot in enumerate(body.slots):
        if slot.baseline_action not in actions:
            field = f"slots[{place}].baselineAction"
            raise _invalid(f"{field} {slot.baseline_action!r} is not among the actions that may be shown", field)
    base = [slot.baseline_action for slot in body.slots]
    candidates = [action for action in actions if action not in base]
    call = _call(body, base, candidates, len(base), f"{len(base)} slots", feature_names)
    return Question(call, tuple(slot.id for slot in body.slots))


def single_answer(body: SingleRank, event_id: str, page: RankAnswer) -> dict[str, Any]:
    """All actions in the order of the page; those excluded stay where they were, with probability 0."""
    chances = {note.item: note.first for note in page.explanation.positions} if page.explanation else {}
    ranked, shown = iter(page.ranking), set(page.ranking)
    order = [next(ranked) if action.id in shown else action.id for action in body.actions]
    return {
        "ranking": [{"id": item, "probability": chances.get(item, 0.0)} for item in order],
        "eventId": event_id,
        "rewardActionId": page.ranking[0],
    }


def multi_slot_answer(event_id: str, slots: Sequence[str], page: RankAnswer) -> dict[str, Any]:
    """The action of every slot."""
    chosen = [{"id": slot, "rewardActionId": item} for slot, item in zip(slots, page.ranking, strict=True)]
    return {"slots": chosen, "eventId": event_id}


def context_name(features: Features | None, names: Sequence[str], size: str) -> str:
    """The context: the size of the page, and the values of the features that the settings name.

    >>> context_name([{"device": "phone"}, {"user": {"plan": "free"}}], ["user.plan", "weather"], "3 actions")
    'personalizer: 3 actions, user.plan=free'
    """
    values = ((name, _value(features or [], name.split("."))) for name in names)
    return ", ".join([f"personalizer: {size}", *(f"{name}={value}" for name, value in values if value is not None)])


def _value(features: Features, path: Sequence[str]) -> str | None:
    for found in features:
        value: Any = found
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, str | int | float | bool):
            return str(value)
    return None


def _call(
    body: Rank, base: list[str], candidates: list[str], k: int, size: str, feature_names: Sequence[str]
) -> RankCall:
    context = context_name(body.context, feature_names, size)
    return made(
        RankCall, "contextFeatures", context=context, base_ranking=base, candidates=candidates, k=k,
        request_id=body.event_id, explain=True,
    )  # fmt: skip


def _excluded_everywhere(body: MultiSlotRank) -> set[str]:
    """Actions that no slot may show; Problem for those that only some slots may not: places cannot be told apart."""
    lists = [set(slot.excluded or ()) for slot in body.slots]
    everywhere = set.intersection(*lists)
    for place, excluded in enumerate(lists):
        if excluded - everywhere:
            field, action = f"slots[{place}].excludedActions", min(excluded - everywhere)
            raise _invalid(f"{field} has {action!r}, which other slots may show; exclude it in all or in none", field)
    return everywhere


def _refuse_twice(names: Iterable[str], field: str) -> None:
    seen: set[str] = set()
    for place, name in enumerate(names):
        if name in seen:
            raise _invalid(f"{field.format(place)} {name!r} is in the list twice; keep one", field.format(place))
        seen.add(name)


def _invalid(detail: str, field: str) -> Problem:
    return Problem(422, "Invalid request", detail, field)

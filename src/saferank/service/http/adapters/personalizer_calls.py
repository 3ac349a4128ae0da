"""Personalizer's calls as rank calls, and pages as its answers. Pure functions.

``docs/engineers/personalizer.md`` says what each of its words means here. Fields that mean nothing here are
accepted and ignored.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from saferank.service.commands.events import EventPage
from saferank.service.http.adapters.calls import made
from saferank.service.wire.calls import LONGEST_ID, MOST_POSITIONS, Id, RankCall
from saferank.service.wire.problems import Problem

_CONTEXT, _SLOTS = "personalizer: ", "slots "
_NAMES = {"context": "contextFeatures", "base_ranking": "actions", "candidates": "actions", "request_id": "eventId"}
Features = list[dict[str, Any]]


class Body(BaseModel):
    """A body, or a part of one."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class Action(Body):
    """Something to choose; its features are not used."""

    id: Id
    features: Features | None = None


class Slot(Body):
    """A place of a page, and the action that production would show in it."""

    id: Id
    baseline_action: Id = Field(alias="baselineAction")
    features: Features | None = None
    excluded: list[str] | None = Field(default=None, alias="excludedActions")


class Rank(Body):
    """What both rank calls have."""

    context: Features | None = Field(default=None, alias="contextFeatures")
    actions: list[Action] = Field(min_length=1, max_length=MOST_POSITIONS)
    event_id: Id | None = Field(default=None, alias="eventId")
    deferred: bool | None = Field(default=None, alias="deferActivation")


class SingleRank(Rank):
    """Which action to use."""

    excluded: list[str] | None = Field(default=None, alias="excludedActions")


class MultiSlotRank(Rank):
    """Which action to use in every slot."""

    slots: list[Slot] = Field(min_length=1, max_length=MOST_POSITIONS)


class RewardBody(Body):
    """How good the chosen action was; more than 0 is a click."""

    value: float


class SlotReward(Body):
    """How good the action of a slot was."""

    slot: Id = Field(alias="slotId")
    value: float


class MultiSlotReward(Body):
    """How good the actions of some slots were."""

    reward: list[SlotReward] = Field(min_length=1, max_length=MOST_POSITIONS)


def single_call(body: SingleRank, feature_names: Sequence[str]) -> RankCall:
    """The actions are production's ranking; those excluded are left out."""
    _refuse_twice((action.id for action in body.actions), "actions[{}].id")
    excluded = set(body.excluded or ())
    actions = [action.id for action in body.actions if action.id not in excluded]
    if not actions:
        raise _invalid("excludedActions leaves no action to choose from; exclude fewer", "excludedActions")
    return _call(body, actions, [], f"{len(actions)} actions", feature_names)


def multi_slot_call(body: MultiSlotRank, feature_names: Sequence[str]) -> RankCall:
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
    page = _SLOTS + json.dumps([slot.id for slot in body.slots], ensure_ascii=False)
    longest = LONGEST_ID - len(_CONTEXT)
    if len(page) > longest:
        raise _invalid(f"slots: their ids, written as a list, may have {longest - len(_SLOTS)} characters", "slots")
    return _call(body, base, candidates, page, feature_names)


def single_answer(body: SingleRank, event_id: str, page: EventPage) -> dict[str, Any]:
    """All actions in the order of the page; those excluded stay where they were, with probability 0."""
    chances = dict(zip(page.ranking, page.first, strict=True))
    ranked, shown = iter(page.ranking), set(page.ranking)
    order = [next(ranked) if action.id in shown else action.id for action in body.actions]
    return {
        "ranking": [{"id": item, "probability": chances.get(item, 0.0)} for item in order],
        "eventId": event_id,
        "rewardActionId": page.ranking[0],
    }


def multi_slot_answer(event_id: str, page: EventPage) -> dict[str, Any]:
    """The action of every slot."""
    chosen = [{"id": slot, "rewardActionId": item} for slot, item in (actions_of(page) or {}).items()]
    return {"slots": chosen, "eventId": event_id}


def actions_of(page: EventPage) -> dict[str, str] | None:
    """The action of every slot of a page; None for a page without slots."""
    if not page.context.startswith(_CONTEXT + _SLOTS):
        return None
    slots, _ = json.JSONDecoder().raw_decode(page.context.removeprefix(_CONTEXT + _SLOTS))
    return dict(zip(slots, page.ranking, strict=True))


def context_name(features: Features | None, names: Sequence[str], page: str) -> str:
    """The context: the kind of page, and the values of the features that the settings name.

    >>> context_name([{"device": "phone"}, {"user": {"plan": "free"}}], ["user.plan", "weather"], "3 actions")
    'personalizer: 3 actions, user.plan=free'
    """
    values = ((name, _value(features or [], name.split("."))) for name in names)
    return ", ".join([_CONTEXT + page, *(f"{name}={value}" for name, value in values if value is not None)])


def _value(features: Features, path: Sequence[str]) -> str | None:
    for found in features:
        value: Any = found
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, str | int | float | bool):
            return str(value)
    return None


def _call(body: Rank, base: list[str], candidates: list[str], page: str, feature_names: Sequence[str]) -> RankCall:
    context = context_name(body.context, feature_names, page)
    return made(
        RankCall, _NAMES, context=context, base_ranking=base, candidates=candidates, k=len(base),
        request_id=body.event_id, deferred=bool(body.deferred),
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

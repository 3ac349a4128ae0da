"""Bodies of Personalizer's API, as its SDKs send them. Fields that mean nothing here are accepted and ignored."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from saferank.service.wire.calls import MOST_POSITIONS, Id

Features = list[dict[str, Any]]
EventId = Annotated[Id | None, Field(default=None)]


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


class Reward(Body):
    """How good the chosen action was; more than 0 is a click."""

    value: float


class SlotReward(Body):
    """How good the action of a slot was."""

    slot: Id = Field(alias="slotId")
    value: float


class MultiSlotReward(Body):
    """How good the actions of some slots were."""

    reward: list[SlotReward] = Field(min_length=1, max_length=MOST_POSITIONS)

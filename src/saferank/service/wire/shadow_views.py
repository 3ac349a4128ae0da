"""What ``GET /v1/shadow`` and ``GET /v1/contexts/{context}/shadow`` answer."""

from pydantic import Field

from saferank.service.wire.calls import Answer


class ClickBoundsView(Answer):
    """Clicks a page that the policy's pages would have got, as far as they are known."""

    low: float = Field(description="What is known, a page.")
    high: float = Field(description="The same and a click on every place of which nothing is known, a page.")


class ShadowView(Answer):
    """Closed shadow pages: production's page was shown, the policy's was noted."""

    pages: int = Field(ge=0)
    same: int = Field(ge=0, description="Pages for which the policy chose production's page.")
    differing: int = Field(ge=0)
    differing_share: float | None = Field(description="null without pages, like all that is a page.")
    exchanged_pairs: float | None = Field(
        description="Pairs of items a page in the opposite order to production's, all pages; hidden items are last."
    )
    new_items: float | None = Field(description="Items a page that production's did not show, all pages.")
    clicks: float | None = Field(description="Clicks a page on production's page, all pages.")
    clicks_where_same: float | None = Field(description="Clicks a page where the policy chose production's page.")
    clicks_where_differing: float | None = Field(description="Clicks a page, on production's page, where it did not.")
    would_have_got: ClickBoundsView | None = Field(
        default=None, description="Clicks a page of the policy's pages, without a click model."
    )
    would_have_got_read_from_the_top: ClickBoundsView | None = Field(
        default=None,
        description="Model estimate: visitors read from the top, so a click does not depend on what is below it.",
    )
    would_have_got_by_place: ClickBoundsView | None = Field(
        default=None, description="Model estimate: a click depends on the item and its place alone."
    )
